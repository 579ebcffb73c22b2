"""How few rows decide a conclusion, beside all subsets of small data and refits by hand."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from model_table import MODELS, frame

import rrmstats
from rrmstats.models.removal import RobustRemoval


def small(seed, n=15):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.standard_normal((n, 2)), columns=["x", "z"], index=range(100, 100 + n))
    data["y"] = 1 + 0.6 * data.x + rng.standard_t(3, n)
    data["label"] = (rng.random(n) < 1 / (1 + np.exp(-data.x))).astype(float)
    return data


def overturned(before, after, what, place=1):
    """Tell whether a conclusion changes, from the results alone."""
    opposite = before.params.iloc[place] * after.params.iloc[place] < 0
    if what == "sign":
        return opposite
    sure, still = (res.pvalues.iloc[place] < 0.05 for res in (before, after))
    return (not still or opposite) if sure else still


def smallest_by_hand(data, fit, what, most):
    """Return the size of the smallest set, up to `most` rows; None where there is none."""
    before = fit(data)
    for size in range(1, most + 1):
        for rows in combinations(data.index, size):
            if overturned(before, fit(data.drop(index=list(rows))), what):
                return size
    return None


@pytest.fixture
def few_refits(monkeypatch):
    """Refits that look for fewer rows take long."""
    monkeypatch.setattr(RobustRemoval, "limits", (5, 10_000))


def ols(data):
    exog = sm.add_constant(data[["x", "z"]])
    return sm.OLS(data.y, exog).fit()


def glm(data):
    return smf.glm("y ~ x + z", data).fit(cov_type="HC1")


@pytest.mark.parametrize("what", ["sign", "significance"])
@pytest.mark.parametrize("seed", [1, 4, 5])
def test_least_squares_on_15_rows_is_exact(seed, what):
    data = small(seed)
    found = rrmstats.few_rows(ols(data), "x", what)
    assert found.smallest
    assert overturned(ols(data), ols(data.drop(index=found.rows.index)), what) == found.confirmed
    size = smallest_by_hand(data, ols, what, min(found.n_rows, 3))
    assert size == (found.n_rows if found.n_rows <= 3 else None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.ModelWarning")
@pytest.mark.parametrize("what", ["sign", "significance"])
@pytest.mark.parametrize("seed", range(3))
def test_a_robust_regression_on_15_rows_is_exact(seed, what):
    data = small(seed)

    def fit(rows):
        return rrmstats.ols("y ~ x + z", rows, eps_bar=0.2).fit(stability=False)

    found = fit(data).few_rows("x", what)
    assert overturned(fit(data), fit(data.drop(index=found.rows.index)), what)
    size = smallest_by_hand(data, fit, what, min(found.n_rows, 2))
    assert size == (found.n_rows if found.n_rows <= 2 else None)


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize(("robust", "what"), [(False, "sign"), (True, "significance")])
def test_a_refit_confirms_the_set_of_5000_rows(robust, what):
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.standard_normal((5_000, 1)), columns=["x"])
    data["y"] = 0.08 * data.x + rng.standard_normal(5_000)
    data.loc[:30, ["x", "y"]] = 4, 12

    def fit(rows):
        if robust:
            return rrmstats.ols("y ~ x", rows, eps_bar=0.02).fit(stability=False)
        return smf.ols("y ~ x", rows).fit()

    found = rrmstats.few_rows(fit(data), "x", what)
    again = fit(data.drop(index=found.rows.index))
    assert found.confirmed and overturned(fit(data), again, what)
    assert again.params["x"] == pytest.approx(found.after.estimate, abs=1e-7)
    assert again.bse["x"] == pytest.approx(found.after.bse, rel=1e-5)
    if robust:  # far rows bend the moves of least squares
        assert found.n_predicted == pytest.approx(found.n_rows, rel=0.3)


CLASSICAL = {
    "wls": lambda d: smf.wls("y ~ x + z", d, weights=1 + d.x**2).fit(cov_type="HC3"),
    "glm": glm,
    "logit": lambda d: smf.logit("label ~ x + z", d).fit(disp=0),
    "poisson": lambda d: smf.poisson("label ~ x", d).fit(disp=0, cov_type="HC0"),
    "cluster": lambda d: smf.ols("y ~ x", d).fit(
        cov_type="cluster", cov_kwds={"groups": d.index // 4}
    ),
    "HAC": lambda d: smf.ols("y ~ x", d).fit(cov_type="HAC", cov_kwds={"maxlags": 2}),
}


@pytest.mark.parametrize("name", CLASSICAL)
@pytest.mark.parametrize("what", ["sign", "significance"])
def test_classical_fits_are_those_of_statsmodels(name, what):
    data = small(3, 60)
    fit = CLASSICAL[name]
    found = rrmstats.few_rows(fit(data), "x", what)
    again = fit(data.drop(index=found.rows.index))
    assert found.confirmed and overturned(fit(data), again, what)
    assert again.params["x"] == pytest.approx(found.after.estimate, abs=1e-5)
    assert again.bse["x"] == pytest.approx(found.after.bse, rel=1e-4)
    assert again.pvalues["x"] == pytest.approx(found.after.pvalue, abs=1e-4)


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize("name", MODELS)
def test_every_model_finds_rows_that_a_refit_confirms(name):
    data = frame()
    model = MODELS[name].array(data, eps_bar=0.2)
    res = model.fit(stability=False)
    term = {"pca": "comp_2", "cov": "cov[z, y]"}.get(name, "z")
    found = res.few_rows(term, "significance")
    places = found.rows["position"].to_numpy()
    assert list(found.rows.index) == list(data.index[places])
    left = data.drop(index=found.rows.index)
    options = {"family": MODELS["glm"].array.keywords["family"]} if name == "glm" else {}
    again = MODELS[name].array(left, eps_bar=0.2, **options).fit(stability=False)
    place = res.model.data.param_names.index(term)
    assert np.asarray(again.params)[place] == pytest.approx(found.after.estimate, rel=1e-4)
    assert np.asarray(again.bse)[place] == pytest.approx(found.after.bse, rel=1e-3)
    assert found.confirmed == (name not in ("pca", "ols"))


@pytest.mark.usefixtures("few_refits")
def test_curves_and_losses_of_ones_own():
    rng = np.random.default_rng(4)
    x = np.linspace(0, 2, 60)
    y = np.exp(-0.05 * x) + 0.3 * rng.standard_normal(60)

    def curve(x, a, b):
        return a * np.exp(-b * x)

    res = rrmstats.RRMNLS(curve, x, y, 0.1).fit(stability=False)
    found = res.few_rows("b")
    keep = np.setdiff1d(np.arange(60), found.rows.position)
    again = rrmstats.RRMNLS(curve, x[keep], y[keep], 0.1).fit(stability=False)
    assert found.confirmed
    assert again.params["b"] == pytest.approx(found.after.estimate, abs=1e-5)

    own = rrmstats.custom(lambda theta: (y - 1 - theta[0]) ** 2, [0.0], 0.1).fit()
    found = own.few_rows("theta_0")
    kept = np.delete(y, found.rows.position)
    again = rrmstats.custom(lambda theta: (kept - 1 - theta[0]) ** 2, [0.0], 0.1).fit()
    assert found.confirmed
    assert again.params[0] == pytest.approx(found.after.estimate, abs=1e-6)


@pytest.mark.parametrize("kind", ["columns", "rows", "frame", "tuple"])
def test_a_curve_of_many_rows_is_fitted_whatever_its_x(kind):
    """Fits to a sample of the rows take the rows of x."""
    n = 24
    x = np.random.default_rng(0).random((2, n))
    y = 2 * x[0] + x[1]
    given = {"columns": x, "rows": x.T, "frame": pd.DataFrame(x.T), "tuple": (x[0], x[1])}[kind]

    def plane(z, a, b):
        one, two = (z[:, 0], z[:, 1]) if kind == "rows" else (z[0], z[1])
        return a * one + b * two

    part = rrmstats.RRMNLS(plane, given, y, 0.1)._part(np.arange(5, 15))
    np.testing.assert_allclose(part.predict(np.array([2.0, 1.0])), y[5:15])


def test_a_function_of_all_rows_together_is_refused():
    x = np.arange(20.0)
    model = rrmstats.RRMNLS(lambda x, a: a * (x - x.mean()), x, x - x.mean(), 0.1)
    with pytest.raises(NotImplementedError, match="each row by itself"):
        model._part(np.arange(10))


def test_rows_count_as_often_as_their_frequency_weights():
    data = small(1, 30)
    twice = pd.concat([data, data]).reset_index(drop=True)
    one = rrmstats.ols("y ~ x", data, eps_bar=0.1, freq_weights=np.full(30, 2)).fit()
    two = rrmstats.ols("y ~ x", twice, eps_bar=0.1).fit()
    moves, others = (
        RobustRemoval(res._results, "x", "sign", 0.05).whole.moves for res in (one, two)
    )
    np.testing.assert_allclose(moves, 2 * others[:30], rtol=1e-5)


@pytest.mark.usefixtures("few_refits")
def test_clusters_are_those_of_the_rows_that_stay():
    data = small(2, 60)
    unit = np.arange(60) // 5

    def fit(rows, groups):
        model = rrmstats.ols("y ~ x", rows, eps_bar=0.1)
        return model.fit(cov_type="cluster", cov_kwds={"groups": groups}, stability=False)

    found = fit(data, unit).few_rows("x", "significance")
    keep = np.setdiff1d(np.arange(60), found.rows.position)
    again = fit(data.iloc[keep], unit[keep])
    assert again.bse["x"] == pytest.approx(found.after.bse, rel=1e-5)


def test_no_set_is_told_and_not_looked_for_forever():
    x = np.linspace(1, 2, 40)
    data = pd.DataFrame({"x": x, "y": 3 * x + 0.01 * np.sin(50 * x)})
    found = rrmstats.few_rows(smf.ols("y ~ x", data).fit(), "x")
    assert not found.confirmed and not found.smallest
    assert found.n_rows <= 20
    assert found.sentence.startswith(
        "No set of rows was found whose removal changes the sign of x"
    )
    assert len(found.refits) < 20


def test_sentences():
    data = small(0)
    data.loc[100, ["x", "y"]] = 6, -30
    found = rrmstats.few_rows(ols(data), "x")
    assert found.n_rows == 1 and found.rows.index.tolist() == [100]
    assert found.share == pytest.approx(1 / 15)
    assert str(found).startswith("Removing 1 of 15 rows (6.7 %) changes the sign of x: -")
    assert found.before.estimate < 0 < found.after.estimate
    lost = rrmstats.few_rows(ols(data), "x", "significance")
    assert "significance" in lost.sentence or "sign" in lost.sentence


@pytest.mark.usefixtures("few_refits")
def test_clear_errors():
    data = small(0, 40)
    res = rrmstats.ols("y ~ x", data, eps_bar=0.1).fit()
    with pytest.raises(ValueError, match="no term 'w'; terms are Intercept, x"):
        res.few_rows("w")
    with pytest.raises(ValueError, match="'sign' or 'significance', got 'size'"):
        res.few_rows("x", "size")
    with pytest.raises(ValueError, match=r"alpha must be in \(0, 1\), got 5"):
        res.few_rows("x", alpha=5)
    with pytest.raises(TypeError, match="got RLMResults"):
        rrmstats.few_rows(smf.rlm("y ~ x", data).fit(), "x")
    groups = np.arange(40) // 4
    grouped = rrmstats.ols("y ~ x", data, eps_bar=0.1, groups=groups).fit(stability=False)
    with pytest.raises(NotImplementedError, match="whole groups; fit without groups="):
        grouped.few_rows("x")
    drawn = rrmstats.ols("y ~ x", data, eps_bar=0.1).fit(
        cov_type="bootstrap", cov_kwds={"n_boot": 20}
    )
    with pytest.raises(NotImplementedError, match="bootstrap of each refit"):
        drawn.few_rows("x", "significance")
    assert drawn.few_rows("x").confirmed
    exact = sm.OLS(2 * data.x, data[["x"]]).fit()
    with pytest.raises(ValueError, match="an error that is known"):
        rrmstats.few_rows(sm.OLS(0 * data.x, data[["x"]]).fit(), "x")
    assert not rrmstats.few_rows(exact, "x").confirmed
    res.remove_data()
    with pytest.raises(ValueError, match="remove_data"):
        res.few_rows("x")
