"""Every option of fit reaches every search of every step, and each step warns for itself."""

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.tools.sm_exceptions import ConvergenceWarning

import rrmstats.core.search
from replication.samples import (
    logistic_labels,
    one_sided_outliers,
    separated_strip,
    shifted_cluster,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.core.steps import FRACTIONS


def rng():
    return np.random.default_rng(0)


def cloud():
    return shifted_cluster(rng(), 80, np.diag([9.0, 4.0, 1.0]))


MODELS = {
    "ols": lambda: RRMOLS(*one_sided_outliers(rng(), 80), 0.2),
    "logit": lambda: RRMLogit(*logistic_labels(rng(), 200, (0.2, 1.0)), 0.05),
    "logit, separated": lambda: RRMLogit(*separated_strip(rng()), 0.3),
    "cov": lambda: RRMCov(cloud(), 0.2),
    "pca": lambda: RRMPCA(cloud(), 2, 0.2),
    "pca, a fraction": lambda: RRMPCA(cloud(), 0.9, 0.2),
}
# Labels are searched at one bound, others at larger ones too.
ONE_BOUND = ("logit", "logit, separated")
# Where the functions that take a setting are called, and the place of it among the arguments.
SEARCHING = {
    "rrmstats.core.steps.global_minimum": 1,
    "rrmstats.core.steps.global_minima": 1,
    "rrmstats.losses.components.global_minimum": 1,
}


def spy(monkeypatch, name, place, seen):
    module, attribute = name.rsplit(".", 1)
    plain = getattr(__import__(module, fromlist=[attribute]), attribute)

    def spied(*args, **kwargs):
        start = args[place + 1] if len(args) > place + 1 else kwargs.get("start_theta")
        asked = args[place] if isinstance(args[place], list) else [args[place]]
        seen.extend((getattr(each, "setting", each), start) for each in asked)
        return plain(*args, **kwargs)

    monkeypatch.setattr(name, spied)


@pytest.fixture(params=MODELS)
def case(request, monkeypatch):
    """Return a name, a model, and the settings of the searches of its fits."""
    searches = []
    for name, place in SEARCHING.items():
        spy(monkeypatch, name, place, searches)
    return request.param, MODELS[request.param](), searches


@pytest.mark.parametrize("accelerate", [True, False])
def test_options_reach_every_search(case, accelerate):
    name, model, searches = case
    options = {"tol": 3e-3, "maxiter": 777, "rng": 5, "accelerate": accelerate}
    model.fit(n_starts=7, **options)
    for setting, start in searches:
        assert setting.n_starts == (7 if start is None else 0)
    for setting, _ in searches:
        assert {key: getattr(setting, key) for key in options} == options
    bounds = {setting.eps_bar for setting, _ in searches}
    assert model.eps_bar in bounds
    if name not in ONE_BOUND:
        largest = max(bounds)
        assert largest > model.eps_bar
        assert {part * largest for part in FRACTIONS} < bounds


@pytest.mark.parametrize("name", MODELS)
def test_the_number_of_starts_reaches_the_search(name, monkeypatch):
    drawn, plain = [], rrmstats.core.search.screened_starts

    def spied(problem, budgets, order, first, n_starts, rng, kind):
        state = rng.bit_generator.state["state"]["state"]
        drawn.extend((count, state) for count in n_starts)
        return plain(problem, budgets, order, first, n_starts, rng, kind)

    monkeypatch.setattr(rrmstats.core.search, "screened_starts", spied)
    model = MODELS[name]()
    model.fit(n_starts=9, rng=1)
    first, drawn[:] = drawn.copy(), []
    model.fit(n_starts=9, rng=2)
    assert {count for count, _ in first + drawn} == {9}
    assert not {state for _, state in first} & {state for _, state in drawn}
    drawn.clear()
    model.fit(n_starts=0)
    assert drawn == []


SECOND_STEPS = {
    "subspace": ("pca", "rrmstats.losses.components.explained_plane", "settled"),
    "scores": ("pca", "rrmstats.losses.covariance.explained_gaussian", "converged"),
    "covariance": ("cov", "rrmstats.losses.covariance.explained_gaussian", "converged"),
    "regression": ("ols", "rrmstats.losses.regression.explained_gaussian", "converged"),
}


@pytest.mark.parametrize("where", SECOND_STEPS)
def test_a_second_step_that_does_not_converge_warns(where, monkeypatch):
    model, name, flag = SECOND_STEPS[where]
    module, attribute = name.rsplit(".", 1)
    plain = getattr(__import__(module, fromlist=[attribute]), attribute)
    monkeypatch.setattr(
        name, lambda *args, **kwargs: replace(plain(*args, **kwargs), **{flag: False})
    )
    with pytest.warns(ConvergenceWarning, match="second step did not converge"):
        res = MODELS[model]().fit()
    assert not res.converged
    assert res.first_step.converged
    assert "did not converge" in " ".join(str(res.summary()).split())
    assert "did not converge" not in " ".join(str(res.first_step.summary()).split())


@pytest.mark.parametrize("name", ["ols", "logit", "cov", "pca"])
def test_a_first_step_that_does_not_converge_warns(name):
    with pytest.warns(ConvergenceWarning, match="first step did not converge .* maxiter=1 "):
        res = MODELS[name]().fit(n_starts=0, maxiter=1, steps=1)
    assert not res.converged
