"""Labels that are separated but for a few: what is kept, and what is told of the size."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal

import rrmstats
from replication.errors import angle_error
from replication.samples import separated_strip
from rrmstats import RRMLogit
from rrmstats.losses.logistic import LogisticProblem, separable

FOLDER = Path(__file__).parents[1] / "reference"
DATA = {
    "vaso": "Y ~ np.log(Volume) + np.log(Rate)",
    "birthwt": "low ~ age + lwt + C(race) + smoke + ptl + ht + ui + ftv",
    "biopsy": "malignant ~ " + " + ".join(f"V{i}" for i in range(1, 10)),
}


def real(name, eps_bar):
    data = pd.read_csv(FOLDER / f"{name}.csv")
    if name == "biopsy":
        data["malignant"] = (data["class"] == "malignant").astype(float)
    return rrmstats.logit(DATA[name], data, eps_bar)


@pytest.mark.parametrize("touching", [0, 1])
def test_separable_labels_are_told_from_others(touching):
    exog = sm.add_constant(np.linspace(-1, 1, 20))
    endog = (exog[:, 1] > 0).astype(float)
    everything = np.ones(20, dtype=bool)
    assert separable(LogisticProblem(endog, exog), everything)
    endog[2] = 1
    problem = LogisticProblem(endog, exog)
    assert not separable(problem, everything)
    rest = everything.copy()
    rest[2] = False
    assert separable(problem, rest)
    if touching:  # two rows at one place, with both labels
        twice = np.r_[exog, exog[[9]]]
        clean = (twice[:, 1] > exog[9, 1]).astype(float)
        clean[-1] = 1
        assert separable(LogisticProblem(clean, twice), np.ones(21, dtype=bool))


@pytest.mark.parametrize("seed", [504, 2001, 2002])
def test_a_budget_far_above_the_share_of_wrong_labels_finds_the_same_plane(seed):
    endog, exog = separated_strip(np.random.default_rng([seed]))  # 5 % wrong
    fit = RRMLogit(endog, exog, 0.44).fit()
    assert angle_error(np.asarray(fit.params)) < 1
    assert_array_equal(np.flatnonzero(fit.weights < 1e-6), np.arange(95, 100))


def test_vaso_may_have_labels_that_are_wrong():
    """Of 39 labels none is called wrong, but intervals allow for it."""
    res = real("vaso", 0.1).fit()
    assert res.identified
    assert np.isfinite(res.bse).all()
    assert np.isnan(res.first_step.bse).all()
    explained = res._estimate.explained
    bics = dict(zip((each.name for each in explained.explanations), explained.bics, strict=True))
    assert explained.chosen.name == "none"
    assert 0 < bics["label noise"] < 6
    assert (np.diff(res.conf_int())[:, 0] > 2.05 * 1.96 * res.bse).all()
    assert "cannot be checked against it" in " ".join(str(res.summary()).split())
    assert np.isnan(res.steps_pvalue)


def test_a_budget_that_identifies_the_size_has_errors():
    res = real("birthwt", 0.1).fit()
    assert res.identified and res.first_step.identified
    assert np.isfinite(res.bse).all()
    assert "only the direction" not in " ".join(str(res.summary()).split())


@pytest.mark.parametrize("eps_bar", [0.0, 0.05, "auto"])
def test_a_summary_of_separated_labels_does_not_contradict_itself(eps_bar, recwarn):
    rng = np.random.default_rng(5)
    exog = sm.add_constant(rng.standard_normal((60, 2)))
    res = RRMLogit((exog @ [0.2, 1.5, -1.0] > 0).astype(float), exog, eps_bar).fit()
    assert [str(each.category.__name__) for each in recwarn] == (
        ["PerfectSeparationWarning"] if eps_bar == 0 else []
    )
    notes = " ".join(str(res.summary()).partition("[1]")[2].split())
    assert "A hyperplane separates the labels: only the direction" in notes
    assert "no standard errors, tests or intervals" in notes
    for untrue in (
        "Standard errors",
        "allow for",
        "onditional",
        "raise maxiter",
        "Lower",
        "maller",
    ):
        assert untrue not in notes
    has_priors = eps_bar != 0
    assert ("weak prior" in notes) == has_priors
    assert ("Maximum likelihood has no finite estimate" in notes) != has_priors
    assert "those of maximum likelihood" not in notes


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")
def test_tiny_samples_are_finite_and_told_truthfully(n, steps):
    exog = sm.add_constant(np.random.default_rng([9, n]).standard_normal(n))
    for labels in itertools.product([0.0, 1.0], repeat=n):
        if len(set(labels)) == 1:
            continue
        res = RRMLogit(np.array(labels), exog, 0.5).fit(steps=steps)
        assert np.isfinite(res.params).all()
        assert np.isfinite(res.risk) or not res.converged
        assert_allclose(res.weights.sum(), 1)
