"""Nonlinear regression: limits, bad rows, bounds, references, and input that is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import curve_fit as scipy_fit

import rrmstats
from rrmstats import RRMNLS, RRMOLS, curve_fit


def decay(x, a, b, c):
    return a * np.exp(-b * x) + c


TRUTH = (2.5, 1.3, 0.5)


def points(seed=0, n=100, share=0.0, noise=0.1):
    """Return points of a decay, some of them far above it, and which ones."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 4, n)
    y = decay(x, *TRUTH) + noise * rng.standard_normal(n)
    bad = rng.permutation(n) < share * n
    y[bad] += noise * (10 + 3 * rng.standard_normal(bad.sum()))
    return x, y, bad


def test_without_bad_rows_it_is_scipys_fit():
    x, y, _ = points()
    found, cov = curve_fit(decay, x, y, eps_bar=0)
    wanted, _ = scipy_fit(decay, x, y, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert_allclose(found, wanted, rtol=1e-6)
    nonrobust = RRMNLS(decay, x, y, 0).fit(cov_type="nonrobust")
    assert_allclose(nonrobust.cov_params(), scipy_fit(decay, x, y)[1], rtol=1e-4)
    assert cov.shape == (3, 3)


def test_a_straight_curve_is_a_linear_regression():
    x, y, _ = points(share=0.1)
    curve = RRMNLS(lambda x, a, b: a + b * x, x, y, 0.2).fit()
    line = RRMOLS(y, np.c_[np.ones(len(x)), x], 0.2).fit()
    assert_allclose(curve.params, line.params, rtol=1e-7)
    assert_allclose(curve.bse, line.bse, rtol=1e-6)
    assert_allclose(curve.prob_bad, line.prob_bad, atol=1e-7)
    assert curve.eps_hat == pytest.approx(line.eps_hat, rel=1e-6)
    assert curve.explanation.name == line.explanation.name


def test_the_end_does_not_depend_on_where_the_tangent_was():
    x, y, _ = points(share=0.2)
    near, far = (RRMNLS(decay, x, y, 0.3, p0=p0).fit() for p0 in (TRUTH, (1, 1, 1)))
    assert_allclose(near.params, far.params, rtol=1e-6)
    assert_allclose(near.bse, far.bse, rtol=1e-5)


def test_bad_rows_are_found_and_leave_the_curve_alone():
    x, y, bad = points(share=0.25)
    res = RRMNLS(decay, x, y).fit()
    wanted, cov = scipy_fit(decay, x[~bad], y[~bad])
    assert (res.outliers() == bad).all()
    assert (np.abs(res.params - wanted) < 0.3 * np.sqrt(np.diag(cov))).all()
    assert res.eps_hat == pytest.approx(0.25, abs=0.01)
    assert (np.abs(scipy_fit(decay, x, y)[0] - wanted) > 3 * np.sqrt(np.diag(cov))).any()


def test_given_derivatives_are_used():
    x, y, _ = points(share=0.1)
    calls = []

    def jac(x, a, b, c):
        calls.append(a)
        return np.c_[np.exp(-b * x), -a * x * np.exp(-b * x), np.ones_like(x)]

    given, differences = (RRMNLS(decay, x, y, 0.2, jac=each).fit() for each in (jac, None))
    assert calls
    assert_allclose(given.params, differences.params, rtol=1e-6)


def test_functions_of_one_parameter_vector_work_too():
    x, y, _ = points(share=0.1)

    def scalars_only(x, a, b, c):
        return np.array([float(a) * np.exp(-float(b) * each) + float(c) for each in x])

    one_by_one, at_once = (RRMNLS(each, x, y, 0.2).fit() for each in (scalars_only, decay))
    assert_allclose(one_by_one.params, at_once.params, rtol=1e-9)


def test_parameters_stay_within_bounds():
    x, y, _ = points(share=0.1)
    res = RRMNLS(decay, x, y, 0.2, bounds={"b": (0, 1)}).fit()
    assert res.params["b"] == pytest.approx(1.0)
    assert RRMNLS(decay, x, y, 0.2, bounds=(0, [3, 2, 1])).fit().params["b"] == pytest.approx(
        RRMNLS(decay, x, y, 0.2).fit().params["b"], rel=1e-5
    )


def test_either_end_of_the_bounds_may_be_missing():
    x, y, _ = points(n=40)
    for bounds in ((None, [3, 2, 1]), (-np.inf, [3, 2, 1]), {"b": (None, 2)}):
        model = RRMNLS(decay, x, y, 0.2, bounds=bounds)
        assert np.isneginf(model.bounds[0]).all() and model.bounds[1][1] == 2


def test_relative_noise_is_that_of_scaled_rows():
    x, y, _ = points(share=0.1)
    sigma = 1 + x
    given = RRMNLS(decay, x, y, 0.2, sigma=sigma).fit()
    scaled = RRMNLS(lambda x, a, b, c: decay(x, a, b, c) / sigma, x, y / sigma, 0.2).fit()
    assert_allclose(given.params, scaled.params, rtol=1e-7)
    assert_allclose(given.prob_bad, scaled.prob_bad, atol=1e-7)
    assert_allclose(given.resid, y - decay(x, *given.params), rtol=1e-9)


def test_formula_names_columns_parameters_and_functions_of_the_caller():
    x, y, _ = points(share=0.1)
    data = pd.DataFrame({"time": x, "left": y}, index=[f"r{i}" for i in range(len(x))])
    data.loc["r3", "left"] = np.nan

    def half(values):
        return values / 2

    model = rrmstats.nls(
        "left ~ top * exp(-2 * half(rate) * time) + end", data, 0.2,
        p0={"top": 1, "rate": 1, "end": 0},
    )  # fmt: skip
    res = model.fit()
    assert list(res.params.index) == ["top", "rate", "end"]
    assert "r3" not in res.weights.index and len(res.weights) == len(x) - 1
    assert_allclose(res.params, RRMNLS(decay, np.delete(x, 3), np.delete(y, 3), 0.2).fit().params,
                    rtol=1e-5)  # fmt: skip
    new = res.predict(pd.DataFrame({"time": [0.0, 1.0]}, index=["a", "b"]))
    assert_allclose(new["b"], decay(1.0, *res.params))


def test_prediction_bands_hold_the_curve_and_the_points():
    x, y, bad = points(share=0.1)
    frame = RRMNLS(decay, x, y).fit().get_prediction().summary_frame()
    inside = (frame.obs_ci_lower <= y) & (y <= frame.obs_ci_upper)
    assert 0.9 < inside[~bad].mean() <= 1 and not inside[bad].any()
    truth = decay(x, *TRUTH)
    assert ((frame.mean_ci_lower <= truth) & (truth <= frame.mean_ci_upper)).mean() > 0.8


def test_scipys_documented_examples():
    rng = np.random.default_rng(7)
    x = np.linspace(0, 4, 50)
    y = decay(x, 2.5, 1.3, 0.5) + 0.2 * rng.normal(size=x.size)
    popt, pcov = curve_fit(decay, x, y)
    assert np.abs(popt - TRUTH).max() < 1.5 and (np.linalg.eigvalsh(pcov) > 0).all()
    popt, pcov = curve_fit(decay, x, y, bounds=(0, [3.0, 1.0, 0.5]))
    assert (popt <= [3.0, 1.0, 0.5]).all() and (popt >= 0).all()

    def redundant(x, a, b, c, d):
        return a * d * np.exp(-b * x) + c

    popt, pcov = curve_fit(redundant, x, y)
    a, b, c, d = popt
    assert_allclose([a * d, b, c], curve_fit(decay, x, y)[0], rtol=1e-4)
    assert np.abs(popt).max() < 10 and np.linalg.cond(pcov) > 1e10


def test_full_output_is_scipys_and_holds_the_results():
    x, y, bad = points(share=0.1)
    popt, _, info, mesg, ier = curve_fit(decay, x, y, full_output=True)
    assert ier == 1 and "converged" in mesg
    flags = info["results"].outliers()
    assert not flags[~bad].any() and flags[bad].sum() >= 9  # one of them is within the noise
    assert_allclose(info["fvec"], y - decay(x, *popt))


def test_known_standard_deviations_are_not_scaled():
    x, y, _ = points()
    sigma = np.full(len(x), 0.1)
    _, pcov = curve_fit(decay, x, y, sigma=sigma, absolute_sigma=True, eps_bar=0)
    _, wanted = scipy_fit(decay, x, y, sigma=sigma, absolute_sigma=True)
    assert_allclose(pcov, wanted, rtol=1e-4)


def test_gross_errors_of_an_assay_beside_nlrob():
    """DNase1 of R with rows 3 and 11 times 4 and 0.2; the other rows by R's nls."""
    conc = np.repeat([0.04882812, 0.1953125, 0.390625, 0.78125, 1.5625, 3.125, 6.25, 12.5], 2)
    low, high = [0.017, 0.018, 0.121, 0.124, 0.206, 0.215, 0.377, 0.374], [0.614, 0.609, 1.019]
    density = np.array([*low, *high, 1.001, 1.334, 1.364, 1.730, 1.710])
    density[[2, 10]] *= [4, 0.2]
    data = pd.DataFrame({"conc": conc, "density": density})
    res = rrmstats.nls(
        "density ~ Asym / (1 + exp((xmid - log(conc)) / scal))", data,
        p0={"Asym": 3, "xmid": 0, "scal": 1},
    ).fit()  # fmt: skip
    assert sorted(res.outliers()[res.outliers()].index) == [2, 10]
    nls = np.array([2.345179, 1.483089, 1.041454])
    assert (np.abs(res.params - nls) < res.bse).all()
    nlrob_mm = np.array([2.446765, 1.602905, 1.073297])
    assert (np.abs(res.params - nlrob_mm) < res.bse).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p0": (1, 2)}, "one prediction|missing"),
        ({"p0": (1, np.nan, 1)}, "p0 must be finite"),
        ({"p0": (1, 1, 1), "bounds": (0, [1, 1, 0.5])}, "outside of its bounds"),
        ({"bounds": (1, 0)}, "must be smaller"),
        ({"bounds": {"d": (0, 1)}}, "parameters are"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"endog": np.ones((100, 2))}, "one number per row"),
        ({"endog": np.r_[np.nan, np.ones(99)]}, "endog"),
        ({"function": lambda x, a, b, c: x[:5] * a}, "one prediction per row"),
        ({"function": lambda x, a, b, c: a * np.log(x - 1)}, "the function is"),
    ],
)
def test_what_cannot_be_fitted_is_told(change, words):
    x, y, _ = points()
    given = {"function": decay, "x": x, "endog": y, **change}
    with np.errstate(all="ignore"), pytest.raises((ValueError, TypeError), match=words):
        RRMNLS(**given)


def test_formulas_that_cannot_be_read_are_told():
    data = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]})
    for formula, p0, words in [
        ("y = a * x", {"a": 1}, "formula must be such as"),
        ("y ~ a * * x", {"a": 1}, "not an expression"),
        ("y ~ a * z", {"a": 1}, "neither a parameter"),
        ("y ~ a * x", [1.0], "p0 must name"),
    ]:
        with pytest.raises(ValueError, match=words):
            rrmstats.nls(formula, data, p0=p0)


def test_rows_that_stand_for_several():
    x, y, _ = points(n=60, share=0.1)
    counts = 1 + np.arange(60) % 3
    weighted = RRMNLS(decay, x, y, 0.2, freq_weights=counts).fit()
    repeated = RRMNLS(decay, np.repeat(x, counts), np.repeat(y, counts), 0.2).fit()
    assert_allclose(weighted.params, repeated.params, rtol=1e-5)
    assert weighted.eps_hat == pytest.approx(repeated.eps_hat, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_intervals_cover(share):
    hits = []
    for seed in range(150):
        x, y, _ = points(3000 + seed, share=share)
        low, high = np.asarray(RRMNLS(decay, x, y, 0.3).fit(stability=False).conf_int()).T
        hits.append((low < TRUTH) & (TRUTH < high))
    assert 0.92 <= np.mean(hits) <= 0.975
