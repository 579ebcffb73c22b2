import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

import rrmstats
from replication.samples import logistic_labels, separated_strip
from rrmstats import RRMLogit, datasets


def sample(n=300, seed=0, share=0.05):
    """Return labels and exog of a steep law; labels where it is surest are wrong."""
    rng = np.random.default_rng(seed)
    endog, exog = logistic_labels(rng, n, params=(0.5, 2.0, -1.0))
    surest = np.argsort(-exog @ [0.5, 2.0, -1.0])[: int(share * n)]
    endog[surest] = 0
    return endog, exog


def frame(labels):
    endog, exog = sample()
    return pd.DataFrame({"x": exog[:, 1], "z": exog[:, 2], "state": labels(endog)})


LEVELS = {
    "numbers": (lambda y: y, {}),
    "integers": (lambda y: y.astype(int), {}),
    "bool": (lambda y: y == 1, {}),
    "strings": (lambda y: np.where(y == 1, "sick", "well"), {"level": "sick"}),
    "categorical": (
        lambda y: pd.Categorical(np.where(y == 1, "sick", "well"), ["well", "sick"]),
        {"level": "sick"},
    ),
    "two numbers": (lambda y: np.where(y == 1, 1, 2), {"level": 1}),
}


@pytest.mark.parametrize("kind", LEVELS)
def test_labels_of_any_kind(kind):
    labels, level = LEVELS[kind]
    endog, exog = sample()
    expected = RRMLogit(endog, exog, 0.1).fit(steps=1).params
    given = frame(labels)
    for values in (labels(endog), given.state):
        assert_allclose(
            RRMLogit(values, exog, 0.1, **level).fit(steps=1).params, expected, rtol=1e-9
        )
    if kind != "two numbers":  # numbers are not dummies to a formula
        res = rrmstats.logit("state ~ x + z", given, 0.1, **level).fit(steps=1)
        assert_allclose(res.params, expected, rtol=1e-9)


def test_missing_labels_are_dropped():
    endog, exog = sample()
    words = pd.Series(np.where(endog == 1, "sick", "well"), dtype=object)
    words[[3, 50]] = None
    kept = np.delete(np.arange(len(endog)), [3, 50])
    res = RRMLogit(words, pd.DataFrame(exog), 0.1, level="sick", missing="drop").fit(steps=1)
    assert_allclose(
        res.params, RRMLogit(endog[kept], exog[kept], 0.1).fit(steps=1).params, rtol=1e-9
    )
    assert list(res.weights.index) == list(kept)


def words(y):
    return np.where(y == 1, "sick", "well")


@pytest.mark.parametrize(
    ("labels", "kwargs", "message"),
    [
        (words, {}, r"levels \[.*'well'.*name the one that counts as 1, .*level="),
        (words, {"level": "ill"}, "level='ill' is not among the levels of endog: .*well"),
        (lambda y: np.array(list("abc") * 100), {"level": "a"}, "two levels, got 3"),
        (lambda y: 2 * y, {}, r"must be 0 and 1, got \[0. 2.\].*level="),
        (np.ones_like, {}, "one class only, all 1"),
        (lambda y: y[:0], {}, "endog is empty"),
        (lambda y: y, {"alpha": -1.0}, "alpha must be .* got -1.0"),
        (lambda y: y, {"alpha": np.nan}, "alpha must be .* got nan"),
        (lambda y: y, {"penalty": "l1"}, "penalty must be None or 'l2', got 'l1'"),
    ],
)
def test_errors_say_what_is_wrong(labels, kwargs, message):
    endog, exog = sample()
    with pytest.raises(ValueError, match=message):
        RRMLogit(labels(endog), exog, 0.1, **kwargs)


@pytest.mark.parametrize(
    ("labels", "kwargs", "message"),
    [
        (words, {}, "name the one that counts as 1"),
        (words, {"level": "ill"}, "'ill' is not among the levels of endog: .*'sick'"),
        (lambda y: list("abc") * 100, {"level": "a"}, "two levels, got 3"),
        (lambda y: "well", {"level": "well"}, "one class only"),
    ],
)
def test_formula_errors_say_what_is_wrong(labels, kwargs, message):
    with pytest.raises(ValueError, match=message):
        rrmstats.logit("state ~ x", frame(labels), 0.1, **kwargs)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_penalty_the_optimum_is_a_weighted_glm(weighted):
    endog, exog = sample()
    counts = 1.0 + np.arange(len(endog)) % 3 if weighted else None
    res = RRMLogit(endog, exog, 0.05, alpha=0, freq_weights=counts).fit(steps=1)
    glm = sm.GLM(endog, exog, sm.families.Binomial(), var_weights=len(endog) * res.weights)
    assert_allclose(res.raw_params, glm.fit(tol=1e-14, steps=1).params, rtol=1e-6)
    assert res.lambda_ > 1
    assert_allclose(res.params, (1 - 1 / res.lambda_) * res.raw_params, rtol=1e-8)
    assert_allclose(res.losses, -np.log(expit((2 * endog - 1) * (exog @ res.raw_params))))


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_alpha_is_part_of_each_loss(alpha):
    endog, exog = sample()
    res = RRMLogit(endog, exog, 0.1, alpha=alpha).fit(steps=1)
    eta = exog @ res.raw_params
    plain = np.logaddexp(0, -(2 * endog - 1) * eta)
    assert_allclose(res.losses, plain + alpha / 4 * eta**4, rtol=1e-9)
    score = exog.T @ (res.weights * (expit(eta) - endog + alpha * eta**3))
    assert_allclose(score, 0, atol=1e-9)


def test_alpha_matters_little_to_params():
    endog, exog = logistic_labels(np.random.default_rng(0), 5000)
    plain, bounded = (RRMLogit(endog, exog, 0.05, alpha=a).fit(steps=1) for a in (0, 1e-2))
    raw_change = abs(bounded.raw_params[1] / plain.raw_params[1] - 1)
    assert abs(bounded.params[1] / plain.params[1] - 1) < 0.5 * raw_change


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_the_default_loss_is_equivariant(alpha):
    endog, exog = sample()
    turn = np.random.default_rng(1).standard_normal((3, 3))
    res = RRMLogit(endog, exog, 0.2, alpha=alpha).fit(steps=1)
    turned = RRMLogit(endog, exog @ turn, 0.2, alpha=alpha).fit(steps=1)
    assert_allclose(turn @ turned.params, res.params, rtol=1e-6)
    assert_allclose(turned.weights, res.weights, rtol=1e-5, atol=1e-9)


def ridge(endog, exog, **kwargs):
    return RRMLogit(endog, exog, 0.2, penalty="l2", **{"alpha": 0.01, **kwargs}).fit(steps=1)


@pytest.mark.parametrize("unit", [1e-3, 1e5])
def test_the_ridge_knows_no_units_and_leaves_the_intercept_out(unit):
    endog, exog = sample()
    res = ridge(endog, exog)
    scaled = ridge(endog, exog * [1, unit, 1])
    assert_allclose(scaled.params * [1, unit, 1], res.params, rtol=1e-6)
    shifted = ridge(endog, exog + np.array([0, 3, 0]))
    assert_allclose(shifted.params[1:], res.params[1:], rtol=1e-6)
    assert_allclose(shifted.params[0] + 3 * shifted.params[1], res.params[0], rtol=1e-6)
    for other in (scaled, shifted):
        assert_allclose(other.weights, res.weights, rtol=1e-5, atol=1e-9)


def test_the_ridge_shrinks_slopes_by_its_definition():
    endog, exog = sample()
    res = ridge(endog, exog, alpha=0.05)
    spread = exog.std(axis=0)
    score = exog.T @ (res.weights * (expit(exog @ res.raw_params) - endog))
    assert_allclose(score, -0.05 * spread**2 * res.raw_params, rtol=0.02, atol=1e-8)
    assert abs(res.raw_params[1]) < abs(ridge(endog, exog, alpha=0.01).raw_params[1])


def test_an_outlier_does_not_set_the_scale_of_the_ridge():
    endog, exog = sample()
    first, far = ridge(endog, exog), exog.copy()
    far[np.argmin(first.weights), 1] = 1e6
    assert_allclose(ridge(endog, far).params, first.params, rtol=0.05)


def test_a_mostly_constant_predictor_keeps_its_scale():
    endog, exog = sample()
    exog[:, 2] = np.arange(len(endog)) % 10 == 0
    score = ridge(endog, exog)
    gradient = exog.T @ (score.weights * (expit(exog @ score.raw_params) - endog))
    assert_allclose(gradient[2], -0.01 * exog[:, 2].var() * score.raw_params[2], rtol=0.02)


def separable():
    exog = np.c_[np.ones(60), np.linspace(-1, 1, 60)]
    return (exog[:, 1] > 0.1).astype(float), exog


@pytest.mark.parametrize("eps_bar", [0.0, 0.2])
def test_separable_data_without_penalty(eps_bar):
    with pytest.warns(PerfectSeparationWarning, match=r"alpha > 0 .* or penalty='l2'"):
        res = RRMLogit(*separable(), eps_bar, alpha=0).fit(steps=1)
    assert not res.converged
    assert np.isfinite(res.params).all()
    assert 0 <= res.risk < 0.05
    assert np.trace(res.pred_table()) >= 60 * (1 - eps_bar)


@pytest.mark.parametrize("kwargs", [{}, {"penalty": "l2"}])
def test_separable_data_with_penalty(kwargs):
    res = RRMLogit(*separable(), 0.2, **kwargs).fit(steps=1)
    assert res.converged
    assert np.abs(res.params).max() < 1e3
    assert np.trace(res.pred_table()) >= 60 * (1 - 0.2)


def test_summary_says_when_only_the_direction_is_identified():
    res = RRMLogit(*separated_strip(np.random.default_rng(0)), 0.3).fit(steps=1)
    assert res.lambda_ <= 1
    assert not res.identified
    assert "only the direction" in " ".join(str(res.summary()).split())
    assert_array_equal(res.params, res.raw_params)
    sure = RRMLogit(*sample(), 0.02).fit(steps=1)
    assert sure.identified
    assert "only the direction" not in " ".join(str(sure.summary()).split())


def test_predictions():
    endog, exog = sample()
    res, reference = RRMLogit(endog, exog, 0.0).fit(steps=1), sm.Logit(endog, exog).fit(disp=0)
    for threshold in (0.2, 0.5):
        assert_array_equal(res.pred_table(threshold), reference.pred_table(threshold))
    assert_allclose(res.predict(), reference.predict(), rtol=1e-7)
    assert_allclose(res.predict(exog[:5]), expit(exog[:5] @ res.params))
    given = frame(lambda y: y)
    by_formula = rrmstats.logit("state ~ x + z", given, 0.1).fit(steps=1)
    assert_allclose(by_formula.predict(given.iloc[:4]), expit(by_formula.fittedvalues.iloc[:4]))


@pytest.mark.parametrize("eps_bar", [0.01, 0.05, 0.1])
def test_clean_data_give_the_true_slope(eps_bar):
    """Within four standard errors of maximum likelihood; raw ones are out by 20 or more."""
    endog, exog = logistic_labels(np.random.default_rng(0), 20_000)
    res = RRMLogit(endog, exog, eps_bar).fit(steps=1)
    noise = 4 * sm.Logit(endog, exog).fit(disp=0).bse
    assert (np.abs(res.params - [0, 1]) < noise).all()
    assert abs(res.raw_params[1] - 1) > 5 * noise[1] - 0.05


def degrees_off(endog, exog):
    params = RRMLogit(endog, exog, 0.3).fit(steps=1).params
    return np.degrees(np.arccos(params @ [-1, 1, 1] / np.linalg.norm(params) / np.sqrt(3)))


@pytest.mark.slow
def test_wrong_labels_turn_the_direction_little():
    """About 0.75 degrees in the mean over other seeds; maximum likelihood is out by ten."""
    rng = np.random.default_rng(8)
    degrees = [degrees_off(*separated_strip(rng)) for _ in range(25)]
    assert np.mean(degrees) < 0.9
    assert np.max(degrees) < 5


def test_a_rare_class_is_not_left_out():
    rng = np.random.default_rng(7)
    samples = [separated_strip(rng) for _ in range(3)]
    assert samples[2][0].mean() < 0.3
    assert degrees_off(*samples[2]) < 5


def flipped_cancer(seed):
    """Return a training and a test part; 40 of the surest labels of the first are wrong."""
    data = datasets.breast_cancer.load_pandas()
    endog, exog = data.endog.to_numpy(float), sm.add_constant(data.exog.to_numpy(float))
    order = np.random.default_rng([0, seed]).permutation(len(endog))
    train, test = np.split(order, [int(0.6 * len(order))])
    score = exog[train] @ sm.Logit(endog[train], exog[train]).fit(disp=0).params
    wrong = np.argsort(np.where(endog[train] == 1, -score, np.inf))[:40]
    given = endog[train].copy()
    given[wrong] = 0
    return given, exog[train], endog[test], exog[test]


def accuracy(params, endog, exog):
    return np.mean((exog @ params > 0) == (endog == 1))


@pytest.mark.slow
def test_wrong_diagnoses_of_breast_cancer():
    scores = []
    for seed in range(5):
        given, exog, *test = flipped_cancer(seed)
        fits = (
            sm.Logit(given, exog).fit(disp=0),
            RRMLogit(given, exog, 0.15).fit(steps=1),
            RRMLogit(given, exog, 0.15, penalty="l2").fit(steps=1),
        )
        scores.append([accuracy(fit.params, *test) for fit in fits])
    classical, default, penalised = np.mean(scores, axis=0)
    assert classical < 0.88
    assert default > 0.93
    assert penalised > 0.96


@pytest.mark.parametrize("given", [{}, {"penalty": "l2"}, {"alpha": 0.0}])
def test_an_offset_in_the_columns_moves_the_coefficients_alone(given):
    endog, exog = sample()
    by = np.array([0.3, -0.5, 0.4])
    plain = RRMLogit(endog, exog, 0.05, **given).fit(steps=1)
    moved = RRMLogit(endog, exog, 0.05, offset=exog @ by, **given).fit(steps=1)
    if "penalty" in given:  # which pulls towards zero, wherever that is
        assert np.isfinite(moved.bse).all()
        return
    assert_allclose(moved.params, plain.params - by, atol=1e-7)
    assert_allclose(moved.bse, plain.bse, rtol=1e-6)
    assert_allclose(moved.fittedvalues, plain.fittedvalues, atol=1e-7)
    assert_allclose([moved.eps_hat, moved.risk], [plain.eps_hat, plain.risk], rtol=1e-6)


def test_an_offset_is_statsmodels():
    endog, exog = sample()
    offset = 0.5 * np.sin(np.arange(len(endog)))
    ours = RRMLogit(endog, exog, 0, offset=offset).fit()
    theirs = sm.Logit(endog, exog, offset=offset).fit(disp=0)
    assert_allclose(ours.params, theirs.params, rtol=1e-7)
    assert_allclose(ours.model.predict(ours.params), theirs.predict(), rtol=1e-7)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_constant_offset_moves_the_constant(steps):
    endog, exog = sample()
    groups = np.arange(len(endog)) // 4
    for given in ({}, {"groups": groups}):
        plain = RRMLogit(endog, exog, 0.1, **given).fit(steps=steps)
        moved = RRMLogit(endog, exog, 0.1, offset=np.full(300, 0.7), **given).fit(steps=steps)
        assert_allclose(moved.params, plain.params - [0.7, 0, 0], atol=1e-6)
        assert_allclose(moved.bse, plain.bse, rtol=1e-5)
        assert_allclose(moved.weights, plain.weights, atol=1e-6)


def test_an_offset_names_a_column_and_goes_with_its_rows():
    data = frame(lambda y: y)
    data["o"] = 0.5 * np.sin(np.arange(len(data)))
    data.loc[[3, 7], "x"], data.loc[9, "o"] = np.nan, np.nan
    left = data.dropna()
    fits = [
        RRMLogit.from_formula("state ~ x + z", rows, 0.1, offset=offset).fit(steps=1).params
        for rows, offset in ((data, "o"), (data, data["o"]), (left, "o"))
    ]
    for found in fits[1:]:
        assert_allclose(found, fits[0], rtol=1e-12)
    part = RRMLogit.from_formula("state ~ x + z", left, 0.1, offset="o", subset=left["z"] > 0)
    assert_allclose(part.offset, left["o"][left["z"] > 0])
    with pytest.raises(ValueError, match="offset='oo' is not a column of the data; did you mean"):
        RRMLogit.from_formula("state ~ x + z", data, 0.1, offset="oo")


def test_a_first_step_with_an_offset_is_consistent():
    rng = np.random.default_rng(5)
    exog = sm.add_constant(rng.standard_normal((40_000, 2)))
    offset = rng.standard_normal(40_000)
    endog = (rng.random(40_000) < expit(exog @ [0.2, 1.0, -0.5] + offset)).astype(float)
    res = RRMLogit(endog, exog, 0.05, offset=offset).fit(steps=1)
    assert_allclose(res.params, [0.2, 1.0, -0.5], atol=0.06)
