import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, rel_entr, softmax

from rrmstats.core import entropy_weights


def draw(n=40, seed=0):
    return np.random.default_rng(seed).standard_normal(n) ** 2


def size(weights):
    """Return the exponential of the entropy."""
    return np.exp(-np.sum(weights * np.log(np.where(weights > 0, weights, 1.0)), axis=-1))


def general_solver(losses, eps_bar, prior):
    """Solve the weight step with a general optimiser, over the logarithms of the weights."""
    q = prior / prior.sum()

    def spare(z):
        return -np.log1p(-eps_bar) - rel_entr(softmax(z), q).sum()

    found = minimize(
        lambda z: softmax(z) @ losses,
        np.log(q) - 0.1 * losses,
        constraints={"type": "ineq", "fun": spare},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    return softmax(found.x)


def dual_risk(lambda_, losses, eps_bar, prior):
    """Return a lower bound on the risk of all weights within the budget."""
    q = prior / prior.sum()
    return -lambda_ * (logsumexp(-losses / lambda_, b=q) - np.log1p(-eps_bar))


@pytest.mark.parametrize("eps_bar", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_weights_have_lower_risk(eps_bar, weighted):
    losses = draw(12, seed=3)
    prior = np.arange(1.0, 13.0) if weighted else np.ones(12)
    found = entropy_weights(losses, eps_bar, freq_weights=prior)
    risk = found.weights @ losses
    expected = general_solver(losses, eps_bar, prior)
    assert risk <= (1 + 1e-6) * (expected @ losses)
    assert_allclose(found.weights, expected, atol=1e-3)
    dual = minimize_scalar(
        lambda t: -dual_risk(np.exp(t), losses, eps_bar, prior), bounds=(-15, 15), method="bounded"
    )
    assert_allclose(risk, -dual.fun, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-10, 1e10, 1e150, 1e300])
@pytest.mark.parametrize("shift", [0.0, -1.0, 7.0])
def test_shift_and_scale_do_not_matter(scale, shift):
    losses = draw()
    weights, lambda_, divergence = entropy_weights(losses, 0.3)
    moved = entropy_weights((losses + shift) * scale, 0.3)
    assert_allclose(moved.weights, weights, rtol=1e-9)
    assert_allclose(moved.lambda_ / scale, lambda_, rtol=1e-9)
    assert_allclose(moved.divergence, divergence, rtol=1e-9)


@pytest.mark.parametrize(
    ("losses", "eps_bar"), [(draw(), 0.0), (np.full(7, 3.2), 0.4), ([5.0], 0.0), ([0.0] * 30, 0.9)]
)
def test_uniform_weights(losses, eps_bar):
    weights, lambda_, divergence = entropy_weights(losses, eps_bar)
    assert_allclose(weights, 1 / len(losses), rtol=1e-14)
    assert lambda_ == np.inf
    assert divergence == 0


@pytest.mark.parametrize("ties", [6, 8, 9])
def test_ties_at_the_minimum_share_the_weight(ties):
    losses = np.r_[np.full(ties, 2.0), 2.0 + draw(10 - ties) + 1e-9]
    weights, lambda_, divergence = entropy_weights(losses, 0.4)
    assert_allclose(weights, np.r_[np.full(ties, 1 / ties), np.zeros(10 - ties)])
    assert lambda_ == 0
    assert_allclose(np.exp(-divergence), ties / 10)


def test_too_few_ties_leave_lambda_positive():
    weights, lambda_, _ = entropy_weights(np.r_[np.zeros(5), draw(5)], 0.4)
    assert lambda_ > 0
    assert_allclose(size(weights), 6)


@pytest.mark.parametrize(
    ("losses", "eps_bar", "message"),
    [
        ([1.0, 2.0, 3.0], 0.7, r"eps_bar=0.7 leaves .* = 0.9 of 3 observations.*lower eps_bar"),
        ([1.0, np.nan], 0.2, "found NaN"),
        ([1.0, -np.inf], 0.2, "-inf"),
        ([np.inf, np.inf], 0.2, r"only \+inf"),
        ([1.0, np.inf, np.inf], 0.4, r"more than a fraction eps_bar=0.4 .* \+inf"),
        ([], 0.2, "at least one observation"),
        (3.0, 0.2, "at least one observation"),
        ([1.0, 2.0], 1.0, r"eps_bar must be in \[0, 1\), got 1"),
        ([1.0, 2.0], -0.1, "got -0.1"),
        ([1.0, 2.0], np.nan, "got nan"),
    ],
)
def test_errors_say_what_is_wrong(losses, eps_bar, message):
    with pytest.raises(ValueError, match=message):
        entropy_weights(losses, eps_bar)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1.0, 2.0], r"shape \(3,\), one weight per loss, got \(2,\)"),
        ([1.0, -1.0, 2.0], "nonnegative"),
        ([1.0, np.nan, 2.0], "finite"),
        ([0.0, 0.0, 0.0], "not all zero"),
    ],
)
def test_bad_prior(prior, message):
    with pytest.raises(ValueError, match=message):
        entropy_weights([1.0, 2.0, 3.0], 0.2, freq_weights=prior)


def test_infinite_loss_has_no_weight():
    losses = draw(10)
    with_infinite = entropy_weights(np.r_[losses, np.inf], 0.3)
    with_huge = entropy_weights(np.r_[losses, 1e9], 0.3)
    assert with_infinite.weights[-1] == 0
    assert_allclose(with_infinite.weights, with_huge.weights, rtol=1e-10)
    assert_allclose(size(with_infinite.weights), 0.7 * 11)


def test_infinite_losses_that_use_up_the_budget():
    weights, lambda_, _ = entropy_weights(np.r_[draw(8), np.inf, np.inf], 0.2)
    assert_allclose(weights, np.r_[np.full(8, 1 / 8), 0, 0])
    assert lambda_ == np.inf


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_prior_weight_two_is_the_row_twice(unit):
    losses, counts = draw(30), np.random.default_rng(1).integers(0, 4, 30)
    found = entropy_weights(losses, 0.3, freq_weights=unit * counts)
    repeated = entropy_weights(np.repeat(losses, counts), 0.3)
    assert_allclose(np.repeat(found.weights / np.maximum(counts, 1), counts), repeated.weights)
    assert_allclose(found.lambda_, repeated.lambda_)
    assert_allclose(found.divergence, repeated.divergence)
    assert (found.weights[counts == 0] == 0).all()


def test_prior_ties_share_the_weight_by_prior():
    weights, lambda_, _ = entropy_weights([1.0, 1.0, 2.0], 0.4, freq_weights=[1, 2, 1])
    assert_allclose(weights, [1 / 3, 2 / 3, 0])
    assert lambda_ == 0


def test_batch_equals_loop():
    losses = np.random.default_rng(5).standard_exponential((3, 4, 25))
    losses[0, 1] = 1.0  # uniform
    losses[1, 2, :20] = 0.0  # ties
    losses[2, 3, 0] = np.inf
    losses[2, 0] *= 1e200
    batch = entropy_weights(losses, 0.3)
    for i in np.ndindex(3, 4):
        single = entropy_weights(losses[i], 0.3)
        assert_allclose(batch.weights[i], single.weights, rtol=1e-9)
        assert_allclose(batch.lambda_[i], single.lambda_, rtol=1e-9)
        assert_allclose(batch.divergence[i], single.divergence, atol=1e-12)


CLUSTERS = {
    "far cluster": np.r_[draw(70), 1e12 + draw(30)],
    "very far cluster": np.r_[draw(70), 1e200 + 1e190 * draw(30)],
    "cluster as large as the budget": np.r_[np.linspace(0, 1, 60), 1e6 + np.linspace(0, 1, 40)],
    "two plateaus": np.repeat([0.0, 1.0], 50),
    "three plateaus": np.repeat([0.0, 1e-6, 1e6], [30, 30, 40]),
    "plateau above a point": np.r_[0.0, np.ones(99)],
    "near ties": np.r_[np.linspace(0, 1e-14, 60), np.ones(40)],
    "heavy tail": np.abs(np.random.default_rng(0).standard_cauchy(100)) ** 5,
    "ladder": 10.0 ** np.arange(-150, 150, 3),
}


@pytest.mark.parametrize("eps_bar", [1e-9, 0.01, 0.1, 0.3, 0.4, 0.45, 0.9])
@pytest.mark.parametrize("losses", CLUSTERS.values(), ids=CLUSTERS)
def test_clusters_and_plateaus(losses, eps_bar):
    weights, lambda_, divergence = entropy_weights(losses, eps_bar)
    assert (np.diff(weights[np.argsort(losses, kind="stable")]) <= 1e-16).all()
    assert_allclose(weights.sum(), 1)
    target = (1 - eps_bar) * len(losses)
    least = np.count_nonzero(losses == losses.min())
    expected = max(target, least)
    assert_allclose(size(weights), expected, rtol=1e-9)
    assert_allclose(np.exp(-divergence) * len(losses), expected, rtol=1e-9)
    if least >= target:
        assert lambda_ == 0
    else:
        tilted = np.exp(-(losses - losses.min()) / lambda_)
        assert_allclose(weights, tilted / tilted.sum(), rtol=1e-7, atol=1e-14)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e-6, 0.5, 2.0, 1e6, 1e300, 0.0, np.inf])
def test_a_warm_start_does_not_change_the_answer(factor):
    losses = draw(200)
    cold = entropy_weights(losses, 0.3)
    warm = entropy_weights(losses, 0.3, lambda_start=factor * cold.lambda_)
    assert_allclose(warm.weights, cold.weights, rtol=1e-9)
    assert_allclose(warm.lambda_, cold.lambda_, rtol=1e-9)


losses_strategy = hnp.arrays(
    float, st.integers(5, 30), elements=st.floats(-1e9, 1e9, allow_subnormal=False)
)


@given(losses=losses_strategy, eps_bar=st.floats(0, 0.8))
def test_properties(losses, eps_bar):
    weights, lambda_, _ = entropy_weights(losses, eps_bar)
    target = (1 - eps_bar) * len(losses)
    assert_allclose(weights.sum(), 1, rtol=1e-12)
    assert (weights >= 0).all()
    if 0 < lambda_ < np.inf:
        assert_allclose(size(weights), target, rtol=1e-8)
    else:
        assert size(weights) >= target * (1 - 1e-9)
    assert (np.diff(weights[np.argsort(losses, kind="stable")]) <= 1e-15).all()


@given(losses=losses_strategy, eps_bar=st.floats(0.01, 0.8), seed=st.integers(0, 2**32 - 1))
def test_permutation(losses, eps_bar, seed):
    order = np.random.default_rng(seed).permutation(len(losses))
    straight = entropy_weights(losses, eps_bar).weights
    assert_allclose(entropy_weights(losses[order], eps_bar).weights, straight[order], atol=1e-8)
