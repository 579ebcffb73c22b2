import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rrmstats
from replication.samples import noisy_line, shifted_cluster
from rrmstats import RRMPCA

SPREAD = np.array([4.0, 2.0, 1.0, 0.5])


def sample(n=200, seed=0, share=0.1, shift=(0, 0, 0, 20)):
    """Return points of known spread around 1, 2, 3, 4; the first ones are shifted."""
    rng, cov = np.random.default_rng(seed), np.diag(SPREAD**2)
    return shifted_cluster(rng, n, cov, share, shift, center=[1, 2, 3, 4])


def rotation(d, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


@pytest.mark.slow
def test_points_near_a_line():
    """About 0.0001 in the mean over other seeds."""
    rng, truth = np.random.default_rng(0), np.array([1, 2]) / np.sqrt(5)
    misalignment = [
        1 - abs(truth @ RRMPCA(noisy_line(rng), 1, 0.4, demean=False).fit(steps=1).loadings[:, 0])
        for _ in range(25)
    ]
    assert np.mean(misalignment) < 2e-4


@pytest.mark.parametrize("demean", [True, False])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_orthogonal_equivariance(q, demean):
    data, turn = sample(), rotation(4)
    shift = np.array([5.0, -1.0, 2.0, 0.0]) * demean
    res = RRMPCA(data, q, 0.2, demean=demean).fit(steps=1)
    moved = RRMPCA(3 * data @ turn + shift, q, 0.2, demean=demean).fit(steps=1)
    assert_allclose(np.abs(moved.loadings.T @ turn.T @ res.loadings), np.eye(q), atol=1e-7)
    assert_allclose(moved.eigenvals, 9 * res.eigenvals, rtol=1e-6)
    assert_allclose(moved.explained_variance_ratio, res.explained_variance_ratio, rtol=1e-6)
    assert_allclose(moved.weights, res.weights, rtol=1e-5, atol=1e-9)
    assert_allclose(moved.risk, 9 * res.risk, rtol=1e-8)
    assert_allclose(moved.mean, 3 * res.mean @ turn + shift, atol=1e-6)


def test_loadings_are_orthonormal_with_a_fixed_sign():
    loadings = RRMPCA(sample(), 3, 0.2).fit(steps=1).loadings
    assert_allclose(loadings.T @ loadings, np.eye(3), atol=1e-12)
    assert (loadings[np.abs(loadings).argmax(axis=0), range(3)] > 0).all()


def test_standardize_knows_no_units():
    data, unit = sample(), np.array([1e3, 1, 1e-4, 7])
    res = RRMPCA(data, 2, 0.2, standardize=True).fit(steps=1)
    scaled = RRMPCA(data * unit, 2, 0.2, standardize=True).fit(steps=1)
    for name in ("loadings", "eigenvals", "scores", "weights", "score_distance"):
        assert_allclose(getattr(scaled, name), getattr(res, name), rtol=1e-6, atol=1e-8)
    assert_allclose(scaled.mean, res.mean * unit, rtol=1e-6)
    assert_allclose(scaled.reconstruct() / unit, res.reconstruct(), rtol=1e-6, atol=1e-8)


def test_standardize_says_which_variables_do_not_vary():
    data = pd.DataFrame(sample(), columns=list("abcd")).assign(b=7.0)
    with pytest.raises(ValueError, match="same in b; drop them or use standardize=False"):
        RRMPCA(data, 2, 0.2, standardize=True).fit(steps=1)


@pytest.mark.parametrize(("fraction", "q"), [(0.5, 1), (0.9, 2), (0.97, 3)])
def test_a_fraction_of_the_variance(fraction, q):
    """Variances 16, 4, 1, 1/4: shares 0.75, 0.94, 0.99."""
    data = pd.DataFrame(sample(2000), columns=list("abcd"))
    data.iloc[7, 1] = np.nan
    counts = 1.0 + np.arange(2000) % 2
    res = rrmstats.pca(
        "~ a + b + c + d", data, 0.2, n_components=fraction, freq_weights=counts
    ).fit(steps=1)
    assert res.loadings.shape == (4, q)
    assert res.explained_variance_ratio.sum() >= fraction
    kept = data.dropna()
    whole = RRMPCA(kept, q, 0.2, freq_weights=np.delete(counts, 7)).fit(steps=1)
    assert_allclose(res.loadings, whole.loadings, atol=1e-7)
    assert list(res.scores.columns) == [f"comp_{i + 1}" for i in range(q)]


def test_a_fraction_keeps_the_formula():
    data = pd.DataFrame(np.exp(sample() / 10), columns=list("abcd"))
    formula = "~ np.log(a) + np.log(b) + c"
    res = rrmstats.pca(formula, data, 0.2, n_components=0.5).fit(steps=1)
    assert_allclose(res.transform(data), res.scores)


@pytest.mark.parametrize("n_components", [0, 4, 9, -1, 1.5, 1.0, 0.0, True, np.nan, None, "mle"])
def test_bad_n_components(n_components):
    with pytest.raises(ValueError, match=r"n_components must be .* from 1 to 3.* got "):
        RRMPCA(sample(), n_components, 0.2)


def test_wide_data_are_the_same_data_in_their_span():
    rng = np.random.default_rng(0)
    narrow = rng.standard_normal((30, 6)) * [9, 5, 3, 1, 1, 1]
    narrow[:4] += 30
    basis = np.linalg.qr(rng.standard_normal((200, 6)))[0]
    res, wide = RRMPCA(narrow, 2, 0.3).fit(steps=1), RRMPCA(narrow @ basis.T, 2, 0.3).fit(steps=1)
    assert_allclose(wide.eigenvals, res.eigenvals, rtol=1e-6)
    assert_allclose(wide.explained_variance_ratio, res.explained_variance_ratio, rtol=1e-6)
    assert_allclose(wide.weights, res.weights, rtol=1e-5, atol=1e-9)
    assert_allclose(np.abs(wide.loadings.T @ (basis @ res.loadings)), np.eye(2), atol=1e-7)
    assert_allclose(wide.mean, basis @ res.mean, atol=1e-6)
    with pytest.raises(ValueError, match=r"n_components=30 is too large: .* span 30 dimensions"):
        RRMPCA(narrow @ basis.T, 30, 0.3).fit(steps=1)


@pytest.mark.parametrize("eps_bar", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("q", [1, 2])
def test_clean_eigenvalues_are_consistent(eps_bar, q):
    """A variance of n values has standard error sqrt(2 / n); a third is paid for the weights."""
    n = 5000
    res = RRMPCA(sample(n, share=0), q, eps_bar).fit(steps=1)
    noise = 4 * 1.5 * np.sqrt(2 / n)
    assert_allclose(res.eigenvals, SPREAD[:q] ** 2, rtol=noise)
    assert_allclose(res.explained_variance_ratio, SPREAD[:q] ** 2 / np.sum(SPREAD**2), rtol=noise)
    if eps_bar:
        assert res.raw_eigenvals.shape == (q,)


def test_points_far_out_in_the_subspace_do_not_inflate_eigenvalues():
    """Four standard errors of a variance of 450 rows, of which a half is lost to the weights."""
    res = RRMPCA(sample(500, share=0.1, shift=(300, 300, 0, 0)), 2, 0.25).fit(steps=1)
    assert_allclose(res.eigenvals, SPREAD[:2] ** 2, rtol=4 * np.sqrt(2 / 225))
    assert_allclose(res.eps_hat, 0.1, atol=0.03)
    assert_allclose(res.mean, [1, 2, 3, 4], atol=1)
    assert res.raw_eigenvals[0] > 100 * SPREAD[0] ** 2
    assert res.outliers()[:50].all()


def test_scores_and_reconstructions_agree():
    data = pd.DataFrame(sample(), columns=list("abcd"))
    for standardize in (False, True):
        res = RRMPCA(data, 2, 0.2, standardize=standardize).fit(steps=1)
        assert_allclose(res.transform(data), res.scores)
        assert_allclose(res.transform(data.to_numpy()[:3]), res.scores.iloc[:3])
        assert_allclose(res.transform(data[list("dcba")]), res.scores)
        assert_allclose(res.transform(res.reconstruct()), res.scores, atol=1e-9)
        assert_array_equal(res.reconstruct().columns, data.columns)
        if not standardize:
            rest = np.linalg.norm(data - res.reconstruct(), axis=1)
            assert_allclose(res.orthogonal_distance, rest)
        assert_allclose(res.orthogonal_distance**2, res.losses, rtol=1e-7, atol=1e-12)
        scaled = res.scores / np.sqrt(res.eigenvals)
        assert_allclose(res.score_distance, np.linalg.norm(scaled, axis=1))


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (np.ones((3, 5)), r"must have 4 columns, got shape \(3, 5\)"),
        (pd.DataFrame({"a": [1.0], "c": [1.0]}), "lack the variables b, d"),
    ],
)
def test_new_data_that_do_not_fit(new, message):
    res = RRMPCA(pd.DataFrame(sample(), columns=list("abcd")), 2, 0.2).fit(steps=1)
    with pytest.raises(ValueError, match=message):
        res.transform(new)


@pytest.mark.parametrize("eps_bar", [0.0, 0.2])
@pytest.mark.parametrize("level", [0.9, 0.975])
def test_false_alarms_on_clean_data(eps_bar, level):
    n = 4000
    data = np.random.default_rng(0).standard_normal((n, 8)) * np.r_[4, 2, np.ones(6)]
    res = RRMPCA(data, 2, eps_bar).fit(steps=1)
    noise = 5 * np.sqrt(level * (1 - level) / n)
    for far in (
        res.score_distance > res.score_cutoff(level),
        res.orthogonal_distance > res.orthogonal_cutoff(level),
        res.outliers(level),
    ):
        assert_allclose(np.mean(far), 1 - level, atol=noise)


@pytest.mark.parametrize("level", [0, 1, -0.5, np.nan])
def test_bad_levels(level):
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got"):
        RRMPCA(sample(), 2, 0.2).fit(steps=1).outliers(level)


def on_a_line(demean=True):
    rng = np.random.default_rng(0)
    data = np.outer(rng.standard_normal(60), [1.0, 2.0, -1.0]) + np.array([3.0, 0, 1]) * demean
    data[:15] = 5 + rng.standard_normal((15, 3))
    return data


@pytest.mark.parametrize("demean", [True, False])
def test_an_exact_fit_has_lambda_zero(demean):
    res = RRMPCA(on_a_line(demean), 1, 0.4, demean=demean).fit(steps=1)
    assert res.lambda_ == res.risk == 0
    assert_allclose(res.weights, np.r_[np.zeros(15), np.full(45, 1 / 45)])
    assert_allclose(np.abs(res.loadings[:, 0] @ [1, 2, -1]), np.sqrt(6), rtol=1e-10)
    assert "Exact fit" in str(res.summary())
    assert res.outliers()[:15].all()


def test_duplicated_rows_and_constant_columns():
    data = sample()
    res = RRMPCA(data, 2, 0.2).fit(steps=1)
    twice = RRMPCA(np.repeat(data, 2, axis=0), 2, 0.2).fit(steps=1)
    constant = RRMPCA(np.c_[data, np.full(200, 7.0)], 2, 0.2).fit(steps=1)
    assert_allclose(twice.raw_eigenvals, res.raw_eigenvals, rtol=1e-6)
    # Corrections for the number of rows are half as large.
    assert_allclose(twice.eigenvals, res.eigenvals, rtol=0.02)
    assert_allclose(constant.eigenvals, res.eigenvals, rtol=1e-6)
    assert_allclose(constant.loadings, np.vstack([res.loadings, [0, 0]]), atol=1e-7)
    assert_allclose(constant.mean[-1], 7)
    two, constant = RRMPCA(data, 2).fit(), RRMPCA(np.c_[data, np.full(200, 7.0)], 2).fit()
    assert_allclose(constant.eps_hat, two.eps_hat)
    assert_allclose(constant.unexplained_variance, two.unexplained_variance)
    same = np.tile(data[100], (60, 1))
    same[:10] = data[:10]
    assert_allclose(RRMPCA(same, 1, 0.3).fit(steps=1).mean, data[100])


def test_units_do_not_matter():
    data = sample()
    res = RRMPCA(data, 2, 0.2).fit(steps=1)
    for unit in (1e-100, 1e100):
        scaled = RRMPCA(unit * data, 2, 0.2).fit(steps=1)
        assert_allclose(scaled.loadings, res.loadings, atol=1e-7)
        assert_allclose(np.sqrt(scaled.eigenvals) / unit, np.sqrt(res.eigenvals), rtol=1e-7)
        assert_allclose(scaled.weights, res.weights, rtol=1e-5, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("d", [200, 500])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_the_contamination_of_wide_data(d, share):
    """That of one step within two of its standard errors, that of two steps exactly."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((100, 2)) @ rng.standard_normal((2, d))
    z += 0.5 * rng.standard_normal((100, d))
    z[: int(100 * share)] += 3 * rng.standard_normal(d)
    res = RRMPCA(z, 2, eps_bar=0.2).fit()
    assert_allclose(res.eps_hat, share, atol=0.005)
    assert abs(res.first_step.eps_hat - share) < 2 * res.first_step.eps_hat_se


@pytest.mark.parametrize("eps_bar", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("steps", [1, 2])
def test_exact_fits_of_all_rows(eps_bar, steps):
    rng = np.random.default_rng(2)
    plane = np.c_[rng.standard_normal((50, 2)), np.zeros(50)]
    line = np.outer(rng.standard_normal(50), [1.0, 2.0, 3.0]) + 5
    for data, q in ((plane, 2), (line, 1)):
        res = RRMPCA(data, q, eps_bar).fit(steps=steps)
        assert res.converged and (res.eigenvals > 0).all()
        assert max(res.risk, res.unexplained_variance) < 1e-25
        assert_allclose(res.reconstruct(), data, atol=1e-10)
        assert str(res.summary())


@pytest.mark.parametrize("eps_bar", [0.0, 0.2])
def test_rows_that_span_too_few_dimensions_are_refused(eps_bar):
    rng = np.random.default_rng(0)
    line = np.outer(rng.standard_normal(40), [1.0, 2.0, 3.0]) * [1e-9, 1.0, 1e9] + [0, 5, 0]
    told = "n_components=2 is too large: the rows span 1 dimension; use n_components=1 or fewer"
    with pytest.raises(ValueError, match=told):
        RRMPCA(line, 2, eps_bar).fit(steps=1)
    with pytest.raises(ValueError, match="the rows are all the same, and have no components"):
        RRMPCA(np.full((20, 3), 7.0), 0.5, eps_bar).fit(steps=1)
    assert RRMPCA(np.full((20, 3), 7.0), 1, eps_bar, demean=False).fit(steps=1).risk < 1e-20
    with pytest.raises(ValueError, match="the rows span 4 dimensions"):
        RRMPCA(np.repeat(rng.standard_normal((5, 9)), 4, axis=0), 5, eps_bar).fit(steps=1)
    # Rows far off span more, but those that do not count span nothing.
    line[:2] += rng.standard_normal((2, 3)) * [1e14, 1.0, 1.0]
    assert len(RRMPCA(line, 2, eps_bar).fit(steps=1).eigenvals) == 2
    counts = np.r_[0.0, 0.0, np.ones(38)]
    with pytest.raises(ValueError, match="rows of positive frequency weight span 1 dimension"):
        RRMPCA(line, 2, eps_bar, freq_weights=counts).fit(steps=1)


def test_rounding_does_not_make_rows_of_an_exact_subspace_bad():
    """Rows near the point of the subspace are off it by as much as the others are."""
    rng = np.random.default_rng(5)
    data = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 2))
    data[:8] += 15
    res = RRMPCA(np.c_[data, data], n_components=2).fit()
    assert not (res.prob_bad > 0.5)[8:].any()
