"""Models with one weight per group of rows."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from model_table import clone

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

GROUPS, ROWS, BAD = 24, 12, 3


def frame(seed=0, bad=BAD):
    """Return data in which the first groups have slopes, labels and variables of their own."""
    rng = np.random.default_rng(seed)
    hospital = np.repeat([f"h{i}" for i in range(GROUPS)], ROWS)
    n = len(hospital)
    data = pd.DataFrame({"hospital": hospital, "x": rng.standard_normal(n)})
    wrong = np.repeat(np.arange(GROUPS) < bad, ROWS)
    sign = np.where(wrong, -1, 1)
    data["y"] = 1 + 2 * sign * data.x + rng.standard_normal(n)
    data["label"] = (rng.random(n) < 1 / (1 + np.exp(-4 * sign * data.x))).astype(float)
    data["count"] = rng.poisson(np.exp(1 + sign * data.x))
    data["a"] = 2 * rng.standard_normal(n) + 8 * wrong
    data["b"] = np.where(wrong, -1, 0.5) * data.a + rng.standard_normal(n)
    return data


FORMULAS = {
    "ols": (rrmstats.ols, "y ~ x", {}),
    "logit": (rrmstats.logit, "label ~ x", {}),
    "pca": (rrmstats.pca, "~ x + a + b", {"n_components": 1}),
    "cov": (rrmstats.cov, "~ a + b", {}),
    "poisson": (rrmstats.poisson, "count ~ x", {}),
}
ARRAYS = {
    "ols": lambda d, **kw: RRMOLS(d.y, sm.add_constant(d[["x"]]), **kw),
    "logit": lambda d, **kw: RRMLogit(d.label, sm.add_constant(d[["x"]]), **kw),
    "pca": lambda d, **kw: RRMPCA(d[["x", "a", "b"]], 1, **kw),
    "cov": lambda d, **kw: RRMCov(d[["a", "b"]], **kw),
    "poisson": lambda d, **kw: RRMPoisson(d["count"], sm.add_constant(d[["x"]]), **kw),
}
# Models that take no formula, beside those that have the same losses.
SAME = {
    "poisson": lambda d, **kw: rrmstats.robustify(
        sm.Poisson(d["count"], sm.add_constant(d[["x"]])), **kw
    ),
    "ols": lambda d, **kw: rrmstats.custom(squares(d), np.zeros(2), **kw),
}


def squares(data):
    """Return squared residuals as a function of the parameters, labeled as the rows."""
    y, exog = data.y.to_numpy(), sm.add_constant(data.x.to_numpy())
    return lambda theta: pd.Series((y - exog @ theta) ** 2, index=data.index)


def made(name, data, **kwargs):
    function, formula, options = FORMULAS[name]
    return function(formula, data, **{"eps_bar": 0.25, **options, **kwargs})


@pytest.mark.parametrize("name", FORMULAS)
def test_bad_groups_have_no_weight_and_rows_share_it(name):
    res = made(name, frame(), groups="hospital").fit(steps=1)
    assert (res.group_weights[:BAD] < 0.1).all()
    assert res.group_weights.mean() == pytest.approx(1)
    rows = np.asarray(res.weights).reshape(GROUPS, ROWS)
    np.testing.assert_allclose(rows, np.repeat(rows[:, :1], ROWS, axis=1), rtol=1e-12)
    np.testing.assert_allclose(GROUPS * rows.sum(axis=1), res.group_weights, rtol=1e-12)
    assert res.cov_type == "cluster"
    assert (np.asarray(res.bse) > 0).all()


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_arrays_and_clones_agree(name):
    data = frame()
    by_name = made(name, data, groups="hospital")
    by_labels = ARRAYS[name](data, eps_bar=0.25, groups=data.hospital.to_list())
    params = np.asarray(by_name.fit(steps=1).params)
    np.testing.assert_allclose(by_labels.fit(steps=1).params, params, rtol=1e-8)
    np.testing.assert_allclose(clone(by_name).fit(steps=1).params, params, rtol=1e-8)


@pytest.mark.parametrize("name", FORMULAS)
def test_frequency_weights_repeat_rows(name):
    data = frame()
    counts = np.random.default_rng(1).integers(1, 4, len(data))
    again = data.loc[data.index.repeat(counts)].reset_index(drop=True)
    weighted = made(name, data, groups="hospital", freq_weights=counts).fit()
    repeated = made(name, again, groups="hospital").fit()
    for one, other in ((weighted, repeated), (weighted.first_step, repeated.first_step)):
        np.testing.assert_allclose(one.params, other.params, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(one.group_weights, other.group_weights, atol=1e-6)


@pytest.mark.parametrize("name", FORMULAS)
def test_groups_of_one_row_are_rows(name):
    data = frame()[::6]
    plain = made(name, data).fit()
    single = made(name, data, groups=np.arange(len(data))).fit()
    np.testing.assert_array_equal(single.params, plain.params)
    np.testing.assert_allclose(single.bse, plain.bse, rtol=1e-12)
    np.testing.assert_allclose(single.group_weights, plain.relative_weights, rtol=1e-12)
    np.testing.assert_array_equal(single.outlier_groups(), plain.outliers())


@pytest.mark.parametrize("name", FORMULAS)
def test_rows_with_missing_values_take_their_labels_with_them(name):
    data = frame()
    gaps = data.copy()
    gaps.loc[[3, 17, 287], ["x", "a"]] = np.nan
    whole = made(name, gaps.dropna(), groups="hospital").fit(steps=1)
    np.testing.assert_allclose(
        made(name, gaps, groups="hospital").fit(steps=1).group_weights, whole.group_weights
    )
    by_array = ARRAYS[name](gaps, eps_bar=0.25, groups=gaps.hospital, missing="drop").fit(steps=1)
    np.testing.assert_allclose(by_array.group_weights, whole.group_weights, atol=1e-7)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_subset_of_the_rows_has_its_own_groups(name):
    data = frame()
    chosen = data.index[4 * ROWS :]
    part = made(name, data, groups="hospital", subset=chosen).fit(steps=1)
    whole = made(name, data.loc[chosen], groups="hospital").fit(steps=1)
    assert list(part.group_weights.index) == [f"h{i}" for i in range(4, GROUPS)]
    np.testing.assert_allclose(part.group_weights, whole.group_weights)


@pytest.mark.parametrize("name", FORMULAS)
def test_no_bad_groups_allowed_is_the_classical_fit(name):
    data = frame()
    np.testing.assert_allclose(
        made(name, data, eps_bar=0.0, groups="hospital").fit(steps=1).params,
        made(name, data, eps_bar=0.0).fit(steps=1).params,
        rtol=1e-6,
    )


def test_errors_of_least_squares_are_clustered():
    data = frame()
    res = made("ols", data, eps_bar=0.0, groups="hospital").fit(steps=1)
    classical = made("ols", data, eps_bar=0.0).fit(
        cov_type="cluster", cov_kwds={"groups": data.hospital}, steps=1
    )
    np.testing.assert_allclose(res.bse, classical.bse, rtol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_second_step_finds_the_bad_groups_and_fits_the_others(name):
    data = frame()
    res = made(name, data, groups="hospital").fit()
    assert list(res.outlier_groups()) == [True] * BAD + [False] * (GROUPS - BAD)
    np.testing.assert_array_equal(res.outliers(), np.repeat(res.outlier_groups(), ROWS))
    assert res.eps_hat == pytest.approx(BAD / GROUPS, abs=0.02)
    assert res.explanations["n_bad"][0] == BAD
    good = np.asarray(1 - res.prob_bad)
    fitted = made(name, data, eps_bar=0.0, freq_weights=good).fit(steps=1)
    np.testing.assert_allclose(res.params, fitted.params, rtol=1e-5)
    assert "Bad: h0, h1, h2." in " ".join(str(res.summary()).split())


def test_regression_is_one_model_in_two_classes():
    data = frame()
    exog = sm.add_constant(data[["x"]])
    ols = RRMOLS(data.y, exog, 0.25, groups=data.hospital).fit()
    glm = rrmstats.RRMGLM(data.y, exog, 0.25, groups=data.hospital).fit()
    for name in ("params", "bse", "prob_bad"):
        np.testing.assert_allclose(getattr(glm, name), getattr(ols, name), rtol=1e-6, atol=1e-9)
    assert glm.eps_hat == pytest.approx(ols.eps_hat, rel=1e-6)
    assert glm.eps_hat_se == pytest.approx(ols.eps_hat_se, rel=1e-6)


def test_labels_are_one_model_in_two_classes():
    data = frame()
    exog = sm.add_constant(data[["x"]])
    one = RRMLogit(data.label, exog, 0.25, groups=data.hospital).fit()
    other = rrmstats.RRMGLM(
        data.label, exog, 0.25, family=sm.families.Binomial(), groups=data.hospital
    ).fit()
    for name in ("params", "bse", "prob_bad"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-6, atol=1e-9)
    assert other.eps_hat == pytest.approx(one.eps_hat, rel=1e-6)


def test_groups_that_share_a_part_of_their_noise_are_not_bad():
    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(60), 15)
    x = rng.standard_normal(900)
    y = 1 + 2 * x + rng.standard_normal(900) + rng.standard_normal(60)[group]
    res = RRMOLS(y, sm.add_constant(x), 0.2, groups=group).fit()
    assert not res.outlier_groups().any()
    # 1 + 14 / 2: half of the variance of a row is shared.
    assert 4 < res._design_effect < 13
    assert "depend on each other" in " ".join(str(res.summary()).split())


@pytest.mark.parametrize("name", FORMULAS)
def test_algorithm_1_reaches_a_stationary_point_of_the_same_risk(name):
    model = made(name, frame(bad=0), groups="hospital")
    fast = model.fit(n_starts=0, steps=1)
    slow = model.fit(n_starts=0, accelerate=False, tol=1e-13, maxiter=2000, steps=1)
    assert slow.risk == pytest.approx(fast.risk, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMULAS)
def test_path_and_automatic_choice(name):
    data = frame()
    path = made(name, data, groups="hospital").path([0.0, 0.05, 0.25], steps=1)
    res = made(name, data, groups="hospital").fit(steps=1)
    np.testing.assert_allclose(path.results[-1].params, res.params, rtol=1e-5, atol=1e-6)
    chosen = made(name, data, groups="hospital", eps_bar="auto").fit(steps=1)
    assert BAD / GROUPS <= chosen.eps_bar <= 0.45
    assert (chosen.group_weights[:BAD] < 0.2).all()


@pytest.mark.parametrize("name", SAME)
def test_any_likelihood_and_loss_have_groups(name):
    data = frame()
    known = made(name, data, groups="hospital").fit()
    model = SAME[name](data, eps_bar=0.25, groups=data.hospital)
    found = model.fit(n_starts=5)
    pairs = [(known.first_step, found.first_step or found)]
    if name == "poisson":  # losses without a distribution have one step
        pairs.append((known, found))
    for one, other in pairs:
        np.testing.assert_allclose(other.params, one.params, rtol=1e-4)
        np.testing.assert_allclose(other.group_weights, one.group_weights, atol=1e-4)
        # Those of regressions and generalized models have HC3's factors.
        np.testing.assert_allclose(other.bse, one.bse, rtol=0.06)
    assert found.cov_type == "cluster"
    assert list(found.outlier_groups(0.999)[:BAD]) == [True] * BAD
    listed = "Groups of smallest weight" if found.steps == 1 else "Most likely bad groups"
    assert listed in " ".join(str(found.summary()).split())


@pytest.mark.parametrize("name", SAME)
def test_labels_that_are_wrong_in_any_likelihood_and_loss(name):
    data = frame()
    labels = data.hospital.astype(object).copy()
    labels[5] = None
    for groups, text in (
        (labels, "1 missing labels"),
        (data.hospital[:7], "one label for each of the 288 rows, got 7"),
        (data.hospital[::-1], "order"),
    ):
        with pytest.raises(ValueError, match=text):
            SAME[name](data, eps_bar=0.25, groups=groups)
    with pytest.raises(TypeError, match="names a column"):
        SAME[name](data, eps_bar=0.25, groups="hospital")


def test_groups_of_a_loss_without_derivatives():
    with pytest.raises(NotImplementedError, match="two derivatives"):
        rrmstats.custom(
            lambda theta: np.abs(np.arange(9.0) - theta[0]),
            [0.0],
            0.1,
            smooth=False,
            groups=np.arange(9) // 3,
        )


def test_few_labels_tell_bad_groups_where_the_model_is_sure_of_them():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(150), 4)
    x = rng.standard_normal(600)
    slope = np.where(group < 15, -1.5, 1.5)
    sure = (rng.random(600) < 1 / (1 + np.exp(-8 * slope * x))).astype(float)
    model = RRMLogit(sure, sm.add_constant(x), 0.2, groups=group)
    res = model.fit(n_starts=10)
    assert res.eps_hat == pytest.approx(0.1, abs=0.03)
    assert res.explanation == "label noise"
    assert "of the groups have labels that were flipped" in res.explanation.sentence


def test_a_bound_that_is_too_small_is_told():
    res = made("ols", frame(bad=6), eps_bar=0.02, groups="hospital").fit()
    assert list(res.outlier_groups()[:6]) == [True] * 6
    text = " ".join(str(res.summary()).split())
    assert "The share of bad rows is at its bound, eps_bar" in text


def test_bootstrap_draws_whole_groups():
    data = frame(bad=0)
    data["y"] += np.repeat(np.random.default_rng(5).standard_normal(GROUPS), ROWS)
    model = made("ols", data, eps_bar=0.1, groups="hospital")
    boot = model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 200}, steps=1)
    np.testing.assert_allclose(boot.bse, model.fit(steps=1).bse, rtol=0.25)
    by_row = made("ols", data, eps_bar=0.1).fit(steps=1)
    assert boot.bse["Intercept"] > 1.5 * by_row.bse["Intercept"]
    with pytest.raises(ValueError, match="strata"):
        model.fit(cov_type="bootstrap", cov_kwds={"strata": data.x > 0}, steps=1)


def test_clusters_may_be_coarser_than_the_groups():
    data = frame(bad=0)
    region = data.hospital.map(lambda name: int(name[1:]) // 3)
    model = made("ols", data, groups="hospital")
    coarse = model.fit(cov_type="cluster", cov_kwds={"groups": region}, steps=1)
    assert not np.allclose(coarse.bse, model.fit(steps=1).bse, rtol=1e-3)
    with pytest.raises(ValueError, match="splits"):
        model.fit(cov_type="cluster", cov_kwds={"groups": np.arange(len(data)) % 5}, steps=1)
    with pytest.raises(ValueError, match="clustered by the groups"):
        model.fit(cov_type="sandwich", steps=1)


BROKEN = [
    ({"groups": "hospitl"}, ValueError, "did you mean 'hospital'"),
    ({"groups": ["h"] * (GROUPS * ROWS)}, ValueError, "at least two groups"),
    ({"groups": list("ab")}, ValueError, "one label for each of the 288 rows, got 2"),
    ({"groups": np.ones((288, 2))}, ValueError, "one label per row"),
]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(("options", "error", "text"), BROKEN)
def test_labels_that_are_wrong(name, options, error, text):
    with pytest.raises(error, match=text):
        made(name, frame(), **options)


@pytest.mark.parametrize("name", FORMULAS)
def test_missing_labels_and_column_names_of_arrays(name):
    data = frame()
    data.loc[5, "hospital"] = None
    with pytest.raises(ValueError, match="1 missing labels"):
        made(name, data, groups="hospital")
    with pytest.raises(TypeError, match="names a column"):
        ARRAYS[name](data, eps_bar=0.2, groups="hospital")


def test_too_few_groups_left():
    data = frame(bad=0)
    with pytest.raises(ValueError, match=r"leaves .* of 2 groups, but 2 are needed"):
        made("ols", data, eps_bar=0.3, groups=np.arange(len(data)) // 144).fit(steps=1)


def test_many_groups_that_are_a_little_off_tell_together():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(200), 10)
    x = rng.standard_normal(2000)
    y = np.where(group < 50, 0.8, 2.0) * x + rng.standard_normal(2000)
    res = RRMOLS(y, x[:, None], 0.3, groups=group).fit()
    assert abs(res.params[0] - 2) < 0.1
    assert res.explanation == "other line"
    assert res.eps_hat == pytest.approx(0.25, abs=0.03)
