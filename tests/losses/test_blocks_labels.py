"""Labels and generalized linear models on rows in blocks: the same estimates as in memory."""

import pickle
from functools import partial

import numpy as np
import pytest
from statsmodels.genmod.families import links

from rrmstats.core.block_array import BlockArray, leaf_arrays
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.laws.families import (
    Binomial,
    Gamma,
    Gaussian,
    Link,
    MeanFunction,
    NegativeBinomial,
    Poisson,
    Tweedie,
)
from rrmstats.losses.classification import ClassificationProblem
from rrmstats.losses.generalized import GeneralizedProblem
from rrmstats.losses.logistic import LogisticProblem, separable

pytestmark = pytest.mark.usefixtures("as_many_rows")
RTOL = 1e-8


def in_parts(parts, *arrays):
    """Return arrays as rows in blocks of very different sizes, one of them empty."""
    n = len(arrays[0])
    cuts = np.sort((n * np.random.default_rng(0).random(parts - 1) ** 2).astype(int))
    if parts > 2:
        cuts[1] = cuts[0]
    blocks = ArrayBlocks(list(zip(*(np.split(array, cuts) for array in arrays), strict=True)))
    return leaf_arrays(blocks, tuple(array.shape[1:] for array in arrays))


def design(n, rng):
    return np.column_stack([np.ones(n), rng.standard_normal((n, 2))])


def labels(n, share, seed=0):
    rng = np.random.default_rng(seed)
    exog = design(n, rng)
    endog = (rng.random(n) < 1 / (1 + np.exp(-exog @ [0.3, 1.5, -1.0]))).astype(float)
    endog[np.argsort(-exog[:, 1])[: int(share * n)]] = 0.0
    return endog, exog


def responses(family, n, share, seed=0):
    rng = np.random.default_rng(seed)
    exog = design(n, rng) * [1.0, 0.5, 0.5]
    mu = np.exp(exog @ [1.0, 0.6, -0.4])
    sizes, link = np.ones(n), Link.log()
    if isinstance(family, Gaussian):
        endog, link = rng.normal(np.log(mu)), Link.identity()
    elif isinstance(family, Binomial):
        logit, sizes = links.Logit(), rng.integers(5, 9, n).astype(float)
        link = Link(logit.__call__, logit.inverse, logit.inverse_deriv, logit.inverse_deriv2)
        endog = rng.binomial(sizes.astype(int), mu / (1 + mu)) / sizes
    elif isinstance(family, Gamma):
        endog = rng.gamma(2.0, mu / 2.0)
    elif isinstance(family, Tweedie):
        endog = rng.gamma(np.maximum(2.0 * rng.poisson(mu), 1e-300), 0.5)
    else:
        endog = rng.poisson(mu).astype(float)
    bad = np.argsort(-exog[:, 1])[: int(share * n)]
    endog[bad] = 0.0 if isinstance(family, Binomial) else 40.0
    mean = MeanFunction.between(link, *family.mean_bounds(endog))
    if isinstance(family, Gaussian):
        mean = MeanFunction(link)
    offset = 0.1 * rng.standard_normal(n)
    make = partial(generalized, family, mean)
    return make, (endog, exog, offset, sizes)


def generalized(family, mean, endog, exog, offset, sizes):
    return GeneralizedProblem(endog, exog, offset, sizes, family=family, mean=mean)


def numbers(estimate):
    """Return what must not depend on where the rows lie."""
    found, told = estimate.solution, estimate.explained
    covariance = estimate.covariance()
    errors = np.sqrt(np.diag(covariance)) if getattr(estimate, "identified", True) else 0.0
    return {
        "params": estimate.params,
        "raw_params": estimate.raw_params,
        "lambda": found.lambda_,
        "risk": found.risk,
        "n_eff": found.n_eff,
        "bse": errors,
        "scale": getattr(estimate, "scale", 1.0),
        "eps_hat": estimate.eps_hat,
        "eps_hat_se": estimate.eps_hat_se,
        "chosen": None if told is None else told.chosen.name,
        "converged": found.converged,
    }


def check_same(make, arrays, parts, eps_bar, steps, counts=None):
    """Fit in memory and in blocks, compare, and return both with the blocks."""
    whole = take_steps(make(*arrays), Setting(eps_bar=eps_bar, freq_weights=counts), None, steps)
    *lazy, freq = in_parts(parts, *arrays, np.ones(len(arrays[0])) if counts is None else counts)
    setting = Setting(eps_bar=eps_bar, freq_weights=None if counts is None else freq)
    found = take_steps(make(*lazy), setting, None, steps)
    expected = numbers(whole)
    for name, value in numbers(found).items():
        if name in ("chosen", "converged"):
            assert value == expected[name], name
        else:
            unit = np.max(np.abs(expected[name]), initial=0.0)
            unit = unit if np.isfinite(unit) else 1.0
            np.testing.assert_allclose(
                value, expected[name], rtol=RTOL, atol=RTOL * unit, err_msg=name
            )
    return whole, found, freq.blocks


@pytest.mark.parametrize(
    ("n", "share", "eps_bar", "parts", "steps"),
    [
        (300, 0.05, 0.1, 7, 1),
        (300, 0.0, 0.1, 7, 2),
        (3000, 0.05, 0.1, 1, 2),
        (3000, 0.0, 0.1, 7, 2),
        (300, 0.05, 0.1, 40, 2),
        (3000, 0.0, 0.0, 7, 1),
        pytest.param(30000, 0.03, 0.05, 7, 2, marks=pytest.mark.slow),
        (30000, 0.03, 0.05, 2, 1),
    ],
)
def test_logistic_regression_is_the_same(n, share, eps_bar, parts, steps):
    make = partial(ClassificationProblem, alpha=1e-5 if eps_bar else 0.0)
    whole, found, _ = check_same(make, labels(n, share), parts, eps_bar, steps)
    assert whole.identified == found.identified


def test_logistic_regression_with_counts_and_a_ridge_is_the_same():
    counts = np.random.default_rng(1).integers(0, 4, 2000).astype(float)
    ridge = np.diag([0.0, 1e-2, 1e-2])
    make = partial(ClassificationProblem, alpha=1e-5)
    check_same(make, labels(2000, 0.05), 7, 0.1, 2, counts)
    make = partial(ClassificationProblem, alpha=0.0, ridge=ridge)
    check_same(make, labels(2000, 0.05), 7, 0.1, 1, counts)


def test_labels_that_a_hyperplane_nearly_separates_are_the_same():
    rng = np.random.default_rng(0)
    exog = design(100, rng)
    endog = (exog @ [-0.2, 1.0, 0.5] > 0).astype(float)
    endog[:2] = 1 - endog[:2]
    make = partial(ClassificationProblem, alpha=1e-5)
    whole, found, _ = check_same(make, (endog, exog), 7, 0.1, 2)
    assert whole.explained.chosen.name == found.explained.chosen.name
    assert whole.identified == found.identified


def test_separable_rows_are_found_in_blocks(monkeypatch):
    monkeypatch.setattr("rrmstats.losses.logistic.PROGRAM_ROWS", 20)
    monkeypatch.setattr("rrmstats.losses.logistic.ADDED_ROWS", 5)
    exog = design(2000, np.random.default_rng(0))
    endog = (exog @ [-0.2, 1.0, 0.5] > 0).astype(float)
    wrong = endog.copy()
    far = int(np.argmax(exog @ [-0.2, 1.0, 0.5]))
    wrong[far] = 0.0
    for values, expected in ((endog, True), (wrong, False)):
        problem = LogisticProblem(*in_parts(7, values, exog))
        assert separable(problem, problem.endog >= 0) is expected
    kept = np.arange(2000) != far
    _, *lazy, rows = in_parts(7, wrong, wrong, exog, kept)
    assert separable(LogisticProblem(*lazy), rows)


@pytest.mark.parametrize(
    ("family", "n", "share", "eps_bar", "parts", "steps"),
    [
        (Poisson(), 300, 0.05, 0.1, 7, 2),
        (Poisson(), 3000, 0.1, 0.2, 7, 1),
        (Poisson(), 300, 0.1, 0.2, 40, 1),
        (Poisson(), 3000, 0.0, 0.0, 7, 1),
        pytest.param(Poisson(), 30000, 0.05, 0.1, 7, 2, marks=pytest.mark.slow),
        (Gamma(), 300, 0.0, 0.1, 7, 2),
        (Gamma(), 3000, 0.05, 0.1, 1, 2),
        (Binomial(), 300, 0.05, 0.1, 7, 2),
        (Binomial(), 8000, 0.05, 0.1, 7, 1),
        (Gaussian(), 300, 0.05, 0.1, 7, 2),
        (NegativeBinomial(0.5), 300, 0.05, 0.1, 7, 1),
        (Tweedie(1.5), 150, 0.05, 0.1, 7, 1),
    ],
)
def test_generalized_linear_models_are_the_same(family, n, share, eps_bar, parts, steps):
    make, arrays = responses(family, n, share)
    whole, found, _ = check_same(make, arrays, parts, eps_bar, steps)
    assert whole.boundary == found.boundary
    tails = found.tail()
    assert isinstance(tails, BlockArray)
    np.testing.assert_allclose(tails[:50], whole.tail()[:50], rtol=1e-7, atol=1e-12)


def test_counts_of_rows_are_the_same():
    make, arrays = responses(Poisson(), 2000, 0.05)
    counts = np.random.default_rng(1).integers(0, 4, 2000).astype(float)
    check_same(make, arrays, 7, 0.1, 0.95, counts)


def test_no_offset_and_no_sizes_need_no_rows_in_memory():
    _, (endog, exog, _, _) = responses(Poisson(), 300, 0.05)
    make = partial(GeneralizedProblem, family=Poisson(), mean=MeanFunction(Link.log(), -9.0, 9.0))
    check_same(make, (endog, exog), 7, 0.1, None)


@pytest.mark.parametrize("eps_bar", [0.05, 0.3])
def test_rows_that_share_the_least_loss(eps_bar):
    """Of a design of dummies alone many rows are tied, as many as the budget leaves or fewer."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1000)
    endog = (rng.random(1000) < np.array([0.9, 0.8])[group]).astype(float)
    endog[0] = 1.0
    make = partial(ClassificationProblem, alpha=1e-5)
    arrays = endog, np.eye(2)[group]
    whole = take_steps(make(*arrays), Setting(eps_bar=eps_bar))
    found = take_steps(make(*in_parts(7, *arrays)), Setting(eps_bar=eps_bar))
    np.testing.assert_allclose(found.params, whole.params, rtol=RTOL)
    np.testing.assert_allclose(found.solution.risk, whole.solution.risk, rtol=RTOL)


def test_passes_stay_few():
    endog, exog = in_parts(7, *labels(12000, 0.03))
    take_steps(ClassificationProblem(endog, exog, alpha=1e-5), Setting(eps_bar=0.05)).covariance()
    assert endog.blocks.passes < 40
    make, arrays = responses(Poisson(), 12000, 0.05)
    lazy = in_parts(7, *arrays)
    take_steps(make(*lazy), Setting(eps_bar=0.1)).covariance()
    assert lazy[0].blocks.passes < 40


def test_kernels_can_be_sent_to_workers():
    class Sent(ArrayBlocks):
        def collect(self, tasks):
            return super().collect(pickle.loads(pickle.dumps(tasks)))

    make, arrays = responses(Binomial(), 150, 0.05)
    lazy = leaf_arrays(Sent([arrays]), tuple(array.shape[1:] for array in arrays))
    whole = take_steps(make(*arrays), Setting(eps_bar=0.1), None, 0.95)
    found = take_steps(make(*lazy), Setting(eps_bar=0.1), None, 0.95)
    np.testing.assert_allclose(found.params, whole.params, rtol=RTOL)
