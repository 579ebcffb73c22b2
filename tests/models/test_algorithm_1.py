"""fit(n_starts=0, accelerate=False): the paper's Algorithm 1, with statsmodels' weighted fits."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from replication.samples import logistic_labels, one_sided_outliers
from rrmstats import RRMOLS, RRMLogit

COUNTS = 1.0 + np.arange(150) % 3


def regression(**kwargs):
    sample = one_sided_outliers(np.random.default_rng(0), 150, np.ones(3))
    return RRMOLS(*sample, 0.3, **kwargs)


def classification(**kwargs):
    sample = logistic_labels(np.random.default_rng(0), 150, (0.3, 1.0, -0.5))
    return RRMLogit(*sample, 0.05, **kwargs)


MODELS = {
    "ols": (regression, {}, "rrmstats.models.linear.WLS"),
    "ols, counts": (regression, {"freq_weights": COUNTS}, "rrmstats.models.linear.WLS"),
    "logit": (classification, {"alpha": 0.0}, "rrmstats.models.logistic.GLM"),
    "logit, counts": (
        classification,
        {"alpha": 0.0, "freq_weights": COUNTS},
        "rrmstats.models.logistic.GLM",
    ),
}


@pytest.fixture(params=MODELS)
def spied(request, monkeypatch):
    """Return a model whose calls of statsmodels and whose refits are recorded."""
    make, kwargs, name = MODELS[request.param]
    module, attribute = name.rsplit(".", 1)
    statsmodels_class = getattr(__import__(module, fromlist=[attribute]), attribute)
    seen = SimpleNamespace(model=make(**kwargs), kwargs=[], fits=0, refits=[])

    class Counting(statsmodels_class):
        def __init__(self, *args, **kwargs):
            seen.kwargs.append(kwargs)
            super().__init__(*args, **kwargs)

        def fit(self, *args, **kwargs):
            seen.fits += 1
            return super().fit(*args, **kwargs)

    plain = type(seen.model)._theta_step

    def theta_step(self, problem):
        refit = plain(self, problem)

        def recorded(weights, theta):
            before, found = seen.fits, refit(weights, theta)
            seen.refits.append((weights, theta, found, seen.fits - before))
            return found

        return recorded

    monkeypatch.setattr(name, Counting)
    monkeypatch.setattr(type(seen.model), "_theta_step", theta_step)
    return seen


@pytest.mark.parametrize("steps", [1, 2])
def test_every_step_is_a_fit_of_statsmodels_and_agrees_with_the_kernel(spied, steps):
    model = spied.model
    res = model.fit(n_starts=0, accelerate=False, steps=steps, stability=False)
    first = res if steps == 1 else res.first_step
    assert first.n_iter > 3
    assert set(first.trace.step[1:]) == {"algorithm 1"}
    # the start, and one refit an iteration; the last may have been the one that did not descend
    assert len(spied.refits) >= first.n_iter + 1
    problem = model.problem()
    for weights, theta, found, fits in spied.refits:
        assert fits >= 1
        expected = problem.weighted_fit(weights[None], theta[None])[0]
        assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    weight_name = "weights" if isinstance(model, RRMOLS) else "var_weights"
    assert all(weight_name in kwargs for kwargs in spied.kwargs)
    if isinstance(model, RRMLogit):
        assert {type(kwargs["family"]).__name__ for kwargs in spied.kwargs} == {"Binomial"}


def test_the_iterates_are_those_of_the_batched_kernel(spied, monkeypatch):
    by_statsmodels = spied.model.fit(n_starts=0, accelerate=False, steps=1)
    monkeypatch.setattr(type(spied.model), "_theta_step", lambda self, problem: None)
    calls = spied.fits
    by_kernel = spied.model.fit(n_starts=0, accelerate=False, steps=1)
    assert spied.fits == calls
    assert abs(len(by_kernel.trace) - len(by_statsmodels.trace)) <= 1
    size = min(len(by_kernel.trace), len(by_statsmodels.trace))
    for name in ("risk", "lambda_", "n_eff"):
        found, expected = (res.trace[name][:size] for res in (by_statsmodels, by_kernel))
        assert_allclose(found, expected, rtol=1e-8)


def test_the_accelerated_search_makes_no_fit_of_statsmodels(spied):
    spied.model.fit(stability=False)
    assert spied.fits == 0
