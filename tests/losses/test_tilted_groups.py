"""Consistency under weights of groups, for families and likelihoods with a tilted law."""

import numpy as np
import pytest
import statsmodels.api as sm

import rrmstats
from rrmstats.core import Groups
from rrmstats.core.grouped import GroupedProblem
from rrmstats.core.setting import Setting
from rrmstats.losses.likelihood import LikelihoodProblem
from rrmstats.losses.tilted_rows import LawRows, Sample, tilted_fit

FAMILIES = {
    "poisson": (sm.families.Poisson(), lambda rng, mu: rng.poisson(mu)),
    "labels": (sm.families.Binomial(), lambda rng, mu: rng.binomial(1, mu / (1 + mu))),
    "gamma": (
        sm.families.Gamma(sm.families.links.Log()),
        lambda rng, mu: rng.gamma(2.0, mu / 2.0),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_small_groups_of_clean_rows_give_the_truth(name):
    """Weights of groups of three rows would halve a dispersion, and double a slope of labels."""
    family, draw = FAMILIES[name]
    rng = np.random.default_rng(1)
    truth, exog = np.array([0.3, 0.6]), sm.add_constant(rng.standard_normal(6000))
    endog = draw(rng, np.exp(exog @ truth)).astype(float)
    groups = np.arange(6000) // 3
    res = rrmstats.RRMGLM(endog, exog, 0.2, family=family, groups=groups).fit(n_starts=2)
    assert np.abs((res.params - truth) / res.bse).max() < 3
    assert res.bse.max() < 0.08
    if name == "gamma":
        assert res.scale == pytest.approx(0.5, rel=0.06)
    if name == "labels":
        assert res.raw_params[1] > 1.3 * res.params[1]


def test_counts_and_likelihoods_agree_and_move_with_lambda():
    rng = np.random.default_rng(2)
    exog = sm.add_constant(rng.standard_normal(60))
    endog = rng.poisson(np.exp(exog @ [1.0, 0.5])).astype(float)
    raw, rates = np.array([0.9, 0.6]), rng.uniform(0.1, 0.5, 60)
    problem = rrmstats.RRMPoisson(endog, exog, 0.2).problem()
    assert problem.design.back is None  # the coordinates are the parameters
    counts = problem.counts_likelihood(raw, 1.0)
    known = rrmstats.robustify(sm.Poisson(endog, exog), 0.2).problem()
    setting = Setting(eps_bar=0.2, freq_weights=60 * rng.dirichlet(np.full(60, 5.0)))

    def fitted(likelihood, rates):
        sample = Sample(LikelihoodProblem(likelihood), setting)
        return tilted_fit(LawRows.weighed(sample, raw, rates))

    (one, root), (two, other) = fitted(counts, rates), fitted(known.likelihood, rates)
    assert root and other
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-6)
    for ours, law in zip(one.moves(), two.moves(), strict=True):
        np.testing.assert_allclose(ours, law, rtol=1e-4, atol=1e-6)
    moved = [fitted(counts, rates * np.exp(-t))[0].theta for t in (1e-3, -1e-3)]
    np.testing.assert_allclose(one.moves()[2], (moved[0] - moved[1]) / 2e-3, rtol=1e-3)


def test_starts_of_large_samples_are_those_of_small_ones(monkeypatch):
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal(80))
    problem = rrmstats.RRMOLS(exog @ [1.0, 2.0] + rng.standard_normal(80), exog, 0.1).problem()
    grouped = GroupedProblem(problem, Groups(np.arange(80) // 8, 10, rng.uniform(1, 2, 80)))
    subsets = np.array([[0, 3], [7, 2], [9, 1]])
    whole = grouped.subset_fits(subsets)
    monkeypatch.setattr("rrmstats.core.grouped.BLOCK_ENTRIES", 0)
    np.testing.assert_allclose(grouped.subset_fits(subsets), whole, rtol=1e-8)
