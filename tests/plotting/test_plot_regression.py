"""Pictures of regressions, of generalized linear models and of labels."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import chi2, norm
from statsmodels.graphics.regressionplots import partial_resids

import rrmstats
from rrmstats import datasets, plotting
from rrmstats.plotting.regression import reliability

from .axes_content import flagged, level_lines, named, texts
from .conftest import counts


def test_diagnostics_cutoffs_and_points(fits):
    results = fits["hbk"]
    leverage, qq, weights, scale = plotting.plot_diagnostics(results).axes
    cutoff = np.sqrt(chi2.ppf(0.975, 1))
    rows, columns = level_lines(leverage)
    np.testing.assert_allclose(rows, [-cutoff, cutoff])
    np.testing.assert_allclose(columns, [np.sqrt(chi2.ppf(0.975, 3))])
    np.testing.assert_allclose(level_lines(scale)[0], [np.sqrt(cutoff)])
    # The ten bad leverage points are flagged; rows 10 to 13 are good ones, far out but fitted.
    x, y = named(leverage, "flagged (10)").get_data()
    assert (x > columns[0]).all() and (np.abs(y) > cutoff).all()
    x, y = named(leverage, "row").get_data()
    assert (x > columns[0]).sum() == 4 and (np.abs(y) < cutoff).all()
    quantiles = np.r_[named(qq, "row").get_xdata(), named(qq, "flagged").get_xdata()]
    np.testing.assert_allclose(np.sort(quantiles), norm.ppf((np.arange(75) + 0.5) / 75))
    standardized = np.asarray(results.resid) / np.sqrt(results.scale)
    np.testing.assert_allclose(named(qq, "flagged").get_ydata(), standardized[:10])
    np.testing.assert_allclose(
        named(scale, "flagged").get_data(),
        [np.asarray(results.fittedvalues)[:10], np.sqrt(np.abs(standardized[:10]))],
    )
    assert weights.get_ylabel() == "weight * n"


def test_diagnostics_level_moves_the_cutoffs(fits):
    axes = plotting.plot_diagnostics(fits["hbk"], level=0.5).axes
    np.testing.assert_allclose(level_lines(axes[0])[0][1], norm.ppf(0.75))
    assert named(axes[0], "flagged").get_xdata().size == fits["hbk"].outliers(0.5).sum() > 20


def test_dummies_have_leverages_in_place_of_distances():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": list("aaaaaaaabc") * 6, "y": rng.standard_normal(60)})
    results = rrmstats.ols("y ~ g", frame, eps_bar=0.1).fit(steps=1)
    ax = plotting.plot_diagnostics(results).axes[0]
    assert ax.get_xlabel() == "leverage"
    np.testing.assert_allclose(level_lines(ax)[1], [2 * 3 / 60])
    points = [line for line in ax.lines if line.get_label().startswith(("row", "flagged"))]
    x = np.concatenate([line.get_xdata() for line in points])
    np.testing.assert_allclose(np.sort(x), np.sort([1 / 48] * 48 + [1 / 6] * 12))


def test_exact_fits_have_diagnostics():
    x = np.linspace(0, 1, 40)
    y = 1 + 2 * x
    y[:4] += 3
    results = rrmstats.RRMOLS(y, sm.add_constant(x), eps_bar=0.2).fit(steps=1)
    axes = plotting.plot_diagnostics(results).axes
    assert axes[0].get_ylabel() == "residual"


def test_fit_has_the_robust_line_beside_least_squares(fits):
    results = fits["stars"]
    ax, bar = plotting.plot_fit(results).axes
    frame = datasets.stars_cyg.load_pandas()
    slope = np.polyfit(frame.exog["log_te"], frame.endog, 1)
    robust, classical = named(ax, "robust"), named(ax, "least squares")
    own = np.asarray(results.params)[::-1]
    np.testing.assert_allclose(robust.get_ydata(), np.polyval(own, robust.get_xdata()))
    np.testing.assert_allclose(classical.get_ydata(), np.polyval(slope, classical.get_xdata()))
    assert robust.get_linestyle() != classical.get_linestyle()
    assert bar.get_ylabel() == "weight * n"
    rows, bad = ax.collections
    assert len(bad.get_offsets()) == flagged(results).sum()
    assert len(rows.get_offsets()) + len(bad.get_offsets()) == 47
    # Yellow for no weight, dark blue for the largest: far apart in print too.
    lightness = rows.to_rgba(rows.get_array())[:, :3] @ [0.2126, 0.7152, 0.0722]
    order = np.argsort(rows.get_array())
    assert (np.diff(lightness[order]) <= 1e-12).all() and np.ptp(lightness) > 0.4
    assert texts(ax)[0] == "33"


def test_rows_without_weight_have_one_color_in_all_fits(fits):
    hbk = datasets.hbk.load_pandas().data
    other = rrmstats.ols("y ~ x1", hbk, eps_bar=0.3).fit(steps=1)
    colors = []
    for results in (fits["stars"], other):
        bad = plotting.plot_fit(results).axes[0].collections[1]
        assert bad.get_array().min() < 1e-3
        colors.append(bad.to_rgba(bad.get_array().min()))
    np.testing.assert_allclose(colors[0], colors[1], atol=0.01)


def test_fit_counts_rows_by_their_frequency_weights():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 30))
    count = np.where(np.arange(30) < 10, 3.0, 1.0)
    results = rrmstats.RRMOLS(y, sm.add_constant(x), 0.1, freq_weights=count).fit(steps=1)
    line = named(plotting.plot_fit(results).axes[0], "least squares")
    own = sm.WLS(y, sm.add_constant(x), count).fit().params
    np.testing.assert_allclose(line.get_ydata(), np.polyval(own[::-1], line.get_xdata()))


@pytest.mark.parametrize("exog_idx", ["x3", 3])
def test_fit_of_one_of_several_predictors(exog_idx, fits):
    results = fits["hbk"]
    ax = plotting.plot_fit(results, exog_idx).axes[0]
    points = np.vstack([part.get_offsets() for part in ax.collections])
    model = results.model
    expected = np.c_[model.exog[:, 3], model.endog]
    order = [np.lexsort(part.T) for part in (points, expected)]
    np.testing.assert_allclose(points[order[0]], expected[order[1]])
    assert ax.get_xlabel() == "x3" and "other predictors" in ax.get_title(loc="left")
    middle = np.asarray(results.weights) @ model.exog
    for name, params in (
        ("robust", np.asarray(results.params)),
        ("least squares", sm.OLS(model.endog, model.exog).fit().params),
    ):
        x, y = named(ax, name).get_data()
        np.testing.assert_allclose(y, middle @ params + (x - middle[3]) * params[3])


@pytest.mark.parametrize("exog_idx", ["Intercept", 0, "z", 4])
def test_fit_refuses_what_is_no_predictor(exog_idx, fits):
    with pytest.raises(ValueError, match=r"^exog_idx must be one of the predictors x1, x2, x3, "):
        plotting.plot_fit(fits["hbk"], exog_idx)


def test_fit_needs_one_predictor(fits):
    with pytest.raises(ValueError, match="one predictor, got x1, x2, x3; choose one by exog_idx="):
        plotting.plot_fit(fits["hbk"])


F = sm.families


def test_diagnostics(fits):
    results = fits["counts"]
    leverage, qq, explanation, fit = plotting.plot_diagnostics(results).axes
    rows = flagged(results)
    deviance, quantile = (np.asarray(results.resid_deviance), np.asarray(results.resid_quantile))
    np.testing.assert_allclose(named(leverage, "flagged").get_ydata(), deviance[rows])
    drawn = np.r_[named(qq, "row").get_xdata(), named(qq, "flagged").get_xdata()]
    np.testing.assert_allclose(np.sort(drawn), norm.ppf((np.arange(100) + 0.5) / 100))
    np.testing.assert_allclose(named(qq, "row").get_ydata(), quantile[~rows])
    x = np.log(results.fittedvalues)
    np.testing.assert_allclose(named(fit, "row").get_data(), [x[~rows], deviance[~rows]])
    assert explanation.get_xlabel() == "deviance residual"
    assert plotting.plot_diagnostics(results.first_step).axes[2].get_ylabel() == "weight * n"


def test_exact_fits_of_a_glm_have_diagnostics():
    x = np.linspace(0, 1, 40)
    y = np.exp(1 + 2 * x)
    y[:4] *= 3
    model = rrmstats.RRMGLM(y, sm.add_constant(x), 0.2, family=F.Gamma(F.links.Log()))
    for ax in plotting.plot_diagnostics(model.fit(steps=1)).axes:
        assert all(np.isfinite(line.get_ydata()).all() for line in ax.lines)


def test_fit_beside_maximum_likelihood(fits):
    results = fits["counts"]
    ax = plotting.plot_fit(results).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "count")
    x, mean = named(ax, "robust").get_data()
    np.testing.assert_allclose(mean, results.predict(pd.DataFrame({"x": x})))
    data = counts()
    classical = sm.GLM(data["count"], sm.add_constant(data["x"]), family=F.Poisson()).fit()
    found = named(ax, "maximum likelihood").get_ydata()
    np.testing.assert_allclose(found, classical.predict(sm.add_constant(x)), rtol=1e-6)


def test_fit_with_an_exposure_shows_rates():
    data = counts()
    results = rrmstats.poisson("count ~ x", data, 0.2, exposure=data["time"]).fit(steps=1)
    ax = plotting.plot_fit(results).axes[0]
    assert ax.get_ylabel() == "count at an offset of 0"
    drawn = np.concatenate([points.get_offsets()[:, 1] for points in ax.collections])
    np.testing.assert_allclose(np.sort(drawn), np.sort(data["count"] / data["time"]))
    means = named(ax, "robust").get_ydata()
    np.testing.assert_allclose(means[0], np.exp(results.params @ [1, data["x"].min()]))
    family = F.Poisson(F.links.Identity())
    with pytest.warns(sm.tools.sm_exceptions.DomainWarning):
        results = rrmstats.glm("count ~ x", data, 0.2, family=family, offset=data["time"]).fit(
            steps=1
        )
    with pytest.raises(ValueError, match="only under a log link, got Identity"):
        plotting.plot_fit(results)


def test_shares_of_successes_are_called_so():
    data = counts().assign(more=40)
    results = rrmstats.glm("count + more ~ x", data, 0.2, family=F.Binomial()).fit(steps=1)
    assert plotting.plot_fit(results).axes[0].get_ylabel() == "share of count"


def test_separation(fits):
    results = fits["logit"]
    ax = plotting.plot_separation(results).axes[0]
    (bands,) = ax.collections
    probability = 1 / (1 + np.exp(-np.asarray(results.fittedvalues)))
    order = np.argsort(probability, kind="stable")
    (band,) = bands.get_paths()
    in_band = band.contains_points(np.c_[np.arange(len(order)), np.full(len(order), 0.5)])
    np.testing.assert_array_equal(in_band, results.model.endog[order] == 1)
    line = named(ax, "fitted probability").get_ydata()
    np.testing.assert_allclose(line, np.sort(probability))
    (expected,) = named(ax, "expected").get_xdata()
    np.testing.assert_allclose(results.nobs - expected, probability.sum())
    marks = named(ax, "flagged").get_xdata()
    np.testing.assert_array_equal(marks, np.flatnonzero(flagged(results)[order]))


def test_reliability(fits):
    results = fits["logit"]
    ax = plotting.plot_reliability(results, bins=4).axes[0]
    curves = {c.get_label(): c.lines[0].get_data() for c in ax.containers}
    bad = flagged(results)
    assert set(curves) == {"all rows", f"without {bad.sum()} flagged"}
    x, y = curves["all rows"]
    assert 2 <= len(x) <= 4 and np.abs(x - y).max() < 0.1 and (np.diff(x) > 0).all()
    with pytest.raises(ValueError, match="bins must be 1 or more, got 0"):
        plotting.plot_reliability(results, bins=0)


def test_separation_of_labels_that_are_not_flagged():
    x = np.linspace(-1, 1, 40)
    labels = np.arange(40) % 3 == 0
    results = rrmstats.RRMLogit(labels.astype(float), np.c_[np.ones(40), x], 0.0).fit(steps=1)
    assert not flagged(results).any()
    ax = plotting.plot_separation(results).axes[0]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["labeled 1", "fitted probability", "expected start of ones"]


def test_groups_of_similar_probability_by_hand():
    probability = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.8])
    mean, share, count = reliability(probability, np.array([0, 0, 1, 0, 1, 1.0]), 3)
    np.testing.assert_allclose(mean, [0.1, 0.85])
    np.testing.assert_allclose(share, [0.25, 1.0])
    assert count.tolist() == [4, 2]


def classical(kind):
    data = pd.DataFrame(np.random.default_rng(0).standard_normal((80, 2)), columns=["a", "b"])
    data["count"], data["label"] = np.arange(80) % 5, np.arange(80.0) % 2
    data["y"] = data.a + np.arange(80) % 3
    formula, make = {
        "ols": ("y ~ a + b", rrmstats.ols),
        "poisson": ("count ~ a + b", rrmstats.poisson),
        "logit": ("label ~ a + b", rrmstats.logit),
    }[kind]
    return make(formula, data, 0).fit(steps=1)


@pytest.mark.parametrize("kind", ["ols", "poisson", "logit"])
def test_added_variables_have_the_slope_of_the_coefficient(kind):
    results = classical(kind)
    figure = plotting.plot_added_variable(results, "a")
    rows = np.vstack([part.get_offsets() for part in figure.axes[0].collections])
    assert abs(rows[:, 0].mean()) < 0.2
    weights = np.asarray(results.working_weights)
    order = np.argsort(rows[:, 0])
    others = results.model.exog[:, [0, 2]]
    x = results.model.exog[:, 1]
    x = x - sm.WLS(x, others, weights).fit().fittedvalues
    x_drawn, y_drawn = rows[order].T
    np.testing.assert_allclose(x_drawn, np.sort(x))
    w = weights[np.argsort(x)]
    slope = w @ (x_drawn * y_drawn) / (w @ x_drawn**2)
    np.testing.assert_allclose(slope, results.params["a"], rtol=1e-6)


def test_partial_residuals_are_those_of_statsmodels():
    results = classical("poisson")
    model = sm.GLM(results.model.endog, results.model.exog, family=sm.families.Poisson())
    expected = partial_resids(model.fit(), 1)
    figure = plotting.plot_partial_residuals(results, "a")
    rows = np.vstack([part.get_offsets() for part in figure.axes[0].collections])
    np.testing.assert_allclose(np.sort(rows[:, 1]), np.sort(expected), rtol=1e-6)
    with pytest.raises(ValueError, match="focus_exog must be one of the predictors a, b"):
        results.plot_partial_residuals("c")
