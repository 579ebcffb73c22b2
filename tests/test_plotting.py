import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from scipy.spatial.distance import mahalanobis
from scipy.stats import chi2, norm
from statsmodels.stats.proportion import proportion_confint

import rrmstats
from rrmstats import datasets, plotting

ON_AXES = {
    "plot_weights": "stars",
    "plot_fit": "stars",
    "plot_distances": "cov",
    "plot_ellipse": "cov",
    "plot_scree": "pca",
    "plot_biplot": "pca",
    "plot_outlier_map": "pca",
    "plot_separation": "logit",
    "plot_reliability": "logit",
}
ON_FIGURES = {"plot_trace": "stars", "plot_diagnostics": "hbk"}


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Fail where a picture is shown, and close what a test leaves open."""
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("a picture was shown"))
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fits():
    stars = datasets.stars_cyg.load_pandas().data
    hbk = datasets.hbk.load_pandas().data
    cancer = datasets.breast_cancer.load_pandas().data
    return {
        "stars": rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(),
        "hbk": rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit(),
        "cov": rrmstats.RRMCov(hbk, eps_bar=0.2).fit(),
        "pca": rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit(),
        "logit": rrmstats.logit(
            "malignant ~ clump_thickness + bland_chromatin", cancer, eps_bar=0.03
        ).fit(),
    }


def named(ax, prefix):
    """Return the one line of axes whose label begins so."""
    (line,) = [line for line in ax.lines if line.get_label().startswith(prefix)]
    return line


def texts(ax):
    return [text.get_text() for text in ax.texts]


def flagged(results):
    return np.asarray(results.outliers())


def level_lines(ax):
    """Return the heights of horizontal lines across axes and the places of vertical ones."""
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    rows = [line.get_ydata()[0] for line in dotted if list(line.get_xdata()) == [0, 1]]
    columns = [line.get_xdata()[0] for line in dotted if list(line.get_ydata()) == [0, 1]]
    return sorted(rows), sorted(columns)


@pytest.mark.parametrize(("picture", "fit"), ON_AXES.items())
def test_draws_on_the_axes_it_is_given_or_on_new_ones(picture, fit, fits):
    draw = getattr(plotting, picture)
    fig, (ax, other) = plt.subplots(1, 2)
    assert draw(fits[fit], ax=ax) is fig
    assert ax.has_data() and not other.has_data()
    assert plt.get_fignums() == [fig.number]
    new = draw(fits[fit])
    assert new is not fig and new.axes[0].has_data()
    assert new.axes[0].get_xlabel() and new.axes[0].get_ylabel()


@pytest.mark.parametrize(("picture", "fit"), ON_FIGURES.items())
def test_draws_on_the_figure_it_is_given_or_on_a_new_one(picture, fit, fits):
    draw = getattr(plotting, picture)
    fig = plt.figure()
    assert draw(fits[fit], fig=fig) is fig
    assert plt.get_fignums() == [fig.number]
    assert all(ax.has_data() for ax in fig.axes)
    assert draw(fits[fit]) is not fig


@pytest.mark.parametrize("picture", plotting.__all__)
def test_without_matplotlib_it_says_how_to_install_it(picture, fits, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError) as error:
        getattr(plotting, picture)(fits[(ON_AXES | ON_FIGURES)[picture]])
    assert str(error.value) == (
        "matplotlib is not installed; install it with: pip install 'rrmstats[plot]'"
    )


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, rrmstats.plotting, rrmstats.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("picture", sorted(set(plotting.__all__) - {"plot_weights", "plot_trace"}))
def test_wrong_results_are_refused(picture, fits):
    fit = (ON_AXES | ON_FIGURES)[picture]
    other = fits["stars" if fit not in ("stars", "hbk") else "cov"]
    model = type(fits[fit].model).__name__
    with pytest.raises(TypeError, match=f"{picture} needs results of {model}, got those of RRM"):
        getattr(plotting, picture)(other)


def test_removed_data_are_missed():
    results = rrmstats.RRMCov(np.random.default_rng(0).standard_normal((40, 2)), 0.1).fit()
    results.remove_data()
    for draw in (plotting.plot_weights, plotting.plot_distances):
        with pytest.raises(ValueError, match="remove_data dropped; fit again"):
            draw(results)


@pytest.mark.parametrize("fit", ["stars", "hbk", "cov", "pca", "logit"])
def test_weights_against_index(fit, fits):
    results = fits[fit]
    ax = plotting.plot_weights(results).axes[0]
    bad, relative = flagged(results), np.asarray(results.weights) * results.nobs
    kept, marked = named(ax, "row"), named(ax, f"flagged ({bad.sum()})")
    np.testing.assert_array_equal(marked.get_xdata(), np.flatnonzero(bad))
    np.testing.assert_allclose(marked.get_ydata(), relative[bad])
    np.testing.assert_allclose(kept.get_ydata(), relative[~bad])
    assert level_lines(ax)[0] == [1.0]


def test_weights_against_losses(fits):
    ax = plotting.plot_weights(fits["stars"], against="losses").axes[0]
    x, y = named(ax, "row").get_data()
    log_ratio = np.log(y) + x / fits["stars"].lambda_
    np.testing.assert_allclose(log_ratio, log_ratio[0])
    with pytest.raises(ValueError, match="against must be 'index' or 'losses', got 'time'"):
        plotting.plot_weights(fits["stars"], against="time")


def test_the_worst_flagged_rows_are_named_by_index(fits):
    stars = datasets.stars_cyg.load_pandas().data
    stars.index = [f"star {i}" for i in range(len(stars))]
    results = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    for count in (0, 1, 4):
        ax = plotting.plot_weights(results, label=count).axes[0]
        assert texts(ax) == ["star 33", "star 29", "star 19", "star 10"][:count]
    most = plotting.plot_weights(results, label=1000).axes[0]
    assert len(texts(most)) == flagged(results).sum() < 47
    arrays = rrmstats.RRMOLS(stars["log_light"].to_numpy(), sm.add_constant(stars["log_te"]), 0.2)
    assert texts(plotting.plot_weights(arrays.fit(), label=2).axes[0])[0].endswith("33")


def test_weights_are_relative_to_the_prior_ones():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((60, 2))
    twice = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = rrmstats.RRMCov(z, 0.2, weights=twice).fit()
    repeated = rrmstats.RRMCov(np.vstack([z, z[:20]]), 0.2).fit()
    np.testing.assert_allclose(
        plotting.weights_times_n(weighted), plotting.weights_times_n(repeated)[:60], rtol=1e-6
    )


def test_flags_without_outliers_are_small_weights(fits):
    class Bare:
        weights, _share = np.array([0.5, 0.48, 0.02]), None

    assert plotting.flags(Bare()).tolist() == [False, False, True]


def test_flagged_rows_differ_in_shape_colour_and_grey(fits):
    ax = plotting.plot_weights(fits["hbk"]).axes[0]
    kept, marked = named(ax, "row"), named(ax, "flagged")
    assert kept.get_marker() != marked.get_marker()
    assert kept.get_markerfacecolor() == "none" != marked.get_markerfacecolor()
    assert to_rgb(kept.get_color()) != to_rgb(marked.get_color())


def test_trace(fits):
    results = fits["hbk"]
    fig = plotting.plot_trace(results)
    for ax, column in zip(fig.axes, ["risk", "lambda_"], strict=True):
        x, y = ax.lines[0].get_data()
        np.testing.assert_array_equal(x, results.trace.index)
        np.testing.assert_array_equal(y, results.trace[column])
    counts = {line.get_label(): len(line.get_xdata()) for line in fig.axes[0].lines[1:]}
    assert counts == {"start": 1, "Newton step": len(results.trace) - 1}
    paper = results.model.fit(n_starts=0, accelerate=False)
    assert named(plotting.plot_trace(paper).axes[0], "Algorithm 1").get_marker() == "D"


def test_trace_without_robustness_has_no_lambda(fits):
    results = rrmstats.RRMCov(np.random.default_rng(0).standard_normal((40, 2)), 0.0).fit()
    fig = plotting.plot_trace(results)
    fig.draw_without_rendering()
    assert np.isnan(fig.axes[1].lines[0].get_ydata()).all()


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
    standardised = np.asarray(results.resid) / np.sqrt(results.scale)
    np.testing.assert_allclose(named(qq, "flagged").get_ydata(), standardised[:10])
    np.testing.assert_allclose(
        named(scale, "flagged").get_data(),
        [np.asarray(results.fittedvalues)[:10], np.sqrt(np.abs(standardised[:10]))],
    )
    assert weights.get_ylabel() == "weight * n"


def test_diagnostics_level_moves_the_cutoffs(fits):
    axes = plotting.plot_diagnostics(fits["hbk"], level=0.5).axes
    np.testing.assert_allclose(level_lines(axes[0])[0][1], norm.ppf(0.75))
    assert named(axes[0], "flagged").get_xdata().size == fits["hbk"].outliers(0.5).sum() > 20


def test_dummies_have_leverages_in_place_of_distances():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": list("aaaaaaaabc") * 6, "y": rng.standard_normal(60)})
    results = rrmstats.ols("y ~ g", frame, eps_bar=0.1).fit()
    ax = plotting.plot_diagnostics(results).axes[0]
    assert ax.get_xlabel() == "leverage"
    np.testing.assert_allclose(level_lines(ax)[1], [2 * 3 / 60])
    points = [line for line in ax.lines if line.get_label().startswith(("row", "flagged"))]
    x = np.concatenate([line.get_xdata() for line in points])
    np.testing.assert_allclose(np.sort(x), np.sort([1 / 48] * 48 + [1 / 6] * 12))


def test_design_distances_are_those_of_the_covariance_model():
    rng = np.random.default_rng(3)
    exog = rng.standard_normal((80, 2)) @ [[2.0, 1.0], [0.0, 0.5]]
    exog[:8] += 20
    own = rrmstats.RRMCov(exog, 0.2).fit().mahalanobis()
    np.testing.assert_allclose(
        plotting.design_distances(sm.add_constant(exog), 0.2), own, rtol=1e-6
    )
    assert plotting.design_distances(np.ones((30, 1)), 0.2) is None
    assert plotting.design_distances(np.c_[exog, exog[:, 0] + exog[:, 1]], 0.2) is None
    assert plotting.design_distances(exog[:6], 0.2) is None


def test_leverages_are_those_of_statsmodels():
    rng = np.random.default_rng(3)
    exog, prior = sm.add_constant(rng.standard_normal((30, 2))), rng.uniform(1, 2, 30)
    whitened = exog * np.sqrt(prior)[:, None]
    own = sm.OLS(rng.standard_normal(30), whitened).fit().get_influence()
    np.testing.assert_allclose(plotting.leverages(exog, prior), own.hat_matrix_diag)


def test_exact_fits_have_diagnostics():
    x = np.linspace(0, 1, 40)
    y = 1 + 2 * x
    y[:4] += 3
    results = rrmstats.RRMOLS(y, sm.add_constant(x), eps_bar=0.2).fit()
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


def test_fit_needs_one_predictor(fits):
    with pytest.raises(ValueError, match="needs one predictor, got x1, x2, x3; use plot_diag"):
        plotting.plot_fit(fits["hbk"])


def test_distances(fits):
    results = fits["cov"]
    ax = plotting.plot_distances(results).axes[0]
    data = results.model.endog
    precision = np.linalg.inv(np.cov(data, rowvar=False))
    classical = [mahalanobis(row, data.mean(axis=0), precision) for row in data]
    bad = flagged(results)
    x, y = named(ax, "flagged (14)").get_data()
    np.testing.assert_allclose(x, np.array(classical)[bad])
    np.testing.assert_allclose(y, np.asarray(results.mahalanobis())[bad])
    cutoff = np.sqrt(chi2.ppf(0.975, 4))
    np.testing.assert_allclose(level_lines(ax), [[cutoff], [cutoff]])
    # Most of the outliers are masked: within the classical cut-off, beyond the robust one.
    assert (x < cutoff).sum() >= 10 and (y > cutoff).all()


def test_distances_of_a_singular_covariance_are_refused():
    z = np.random.default_rng(0).standard_normal((50, 2))
    z[:45, 1] = z[:45, 0]
    with pytest.raises(ValueError, match=r"singular.*see hyperplane"):
        plotting.plot_distances(rrmstats.RRMCov(z, 0.2).fit())


def test_ellipses(fits):
    results = fits["cov"]
    ax = plotting.plot_ellipse(results, ("x3", 0), level=0.9).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x3", "x1")
    pair, data = [2, 0], results.model.endog[:, [2, 0]]
    own = {
        "robust, 90.0%": (np.asarray(results.mean)[pair], np.asarray(results.cov)[pair][:, pair]),
        "classical, 90.0%": (data.mean(axis=0), np.cov(data, rowvar=False)),
    }
    for name, (mean, cov) in own.items():
        points = named(ax, name).get_xydata()
        found = [mahalanobis(p, mean, np.linalg.inv(cov)) for p in points]
        np.testing.assert_allclose(found, np.sqrt(chi2.ppf(0.9, 2)), rtol=1e-6)
    styles = {named(ax, name).get_linestyle() for name in own}
    assert len(styles) == 2


@pytest.mark.parametrize("variables", [(0, 0), (0, 4), ("x1", "z"), (0,), (-1, 0), (0, 1, 2)])
def test_ellipse_needs_two_variables(variables, fits):
    with pytest.raises(ValueError, match="variables must be two of x1, x2, x3, y, got"):
        plotting.plot_ellipse(fits["cov"], variables)


def test_scree(fits):
    results = fits["pca"]
    ax = plotting.plot_scree(results).axes[0]
    np.testing.assert_allclose(named(ax, "robust").get_ydata(), results.eigenvals)
    classical = np.linalg.eigvalsh(np.cov(results.model.endog, rowvar=False))[::-1]
    np.testing.assert_allclose(named(ax, "classical").get_ydata(), classical)
    assert texts(ax) == [f"{share:.0%}" for share in results.explained_variance_ratio]
    assert ax.get_yscale() == "log"
    clean = np.random.default_rng(0).standard_normal((200, 3))
    assert plotting.plot_scree(rrmstats.RRMPCA(clean, 1, 0.1).fit()).axes[0].get_ylim()[0] == 0


def test_scree_around_the_origin_and_standardised():
    z = 3 + np.random.default_rng(0).standard_normal((100, 3)) * [1, 10, 100]
    results = rrmstats.RRMPCA(z, 2, 0.0, demean=False, standardize=True).fit()
    ax = plotting.plot_scree(results).axes[0]
    found = named(ax, "classical").get_ydata()[:2]
    np.testing.assert_allclose(found, results.eigenvals, rtol=0.02)


def test_biplot(fits):
    results = fits["pca"]
    ax = plotting.plot_biplot(results, (1, 0)).axes[0]
    (arrows,) = ax.collections
    loadings = np.asarray(results.loadings)[:, [1, 0]]
    drawn = np.c_[arrows.U, arrows.V]
    factor = np.linalg.norm(drawn) / np.linalg.norm(loadings)
    np.testing.assert_allclose(drawn, factor * loadings)
    assert texts(ax)[:4] == ["x1", "x2", "x3", "y"]
    x, y = named(ax, "flagged").get_data()
    np.testing.assert_allclose(np.c_[x, y], np.asarray(results.scores)[flagged(results)][:, ::-1])
    assert ax.get_xlabel().startswith("component 2 (36%")
    # The arrows lie within the picture.
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert (drawn > [left, low]).all() and (drawn < [right, high]).all()


def test_biplot_needs_two_components(fits):
    one = rrmstats.RRMPCA(fits["pca"].model.endog, 1, 0.2).fit()
    with pytest.raises(ValueError, match=r"from 0 to 0, got .*; fit with n_components=2 or more"):
        plotting.plot_biplot(one)
    with pytest.raises(ValueError, match=r"from 0 to 1, got \(0, 2\)$"):
        plotting.plot_biplot(fits["pca"], (0, 2))


@pytest.mark.parametrize("level", [0.975, 0.8])
def test_outlier_map_flags_what_lies_beyond_its_cutoffs(level, fits):
    ax = plotting.plot_outlier_map(fits["pca"], level=level).axes[0]
    (row,), (column,) = level_lines(ax)
    x, y = named(ax, "flagged").get_data()
    assert ((x > column) | (y > row)).all()
    x, y = named(ax, "row").get_data()
    assert ((x <= column) & (y <= row)).all()


def test_separation(fits):
    results = fits["logit"]
    ax = plotting.plot_separation(results).axes[0]
    (bands,) = ax.patches
    probability = 1 / (1 + np.exp(-np.asarray(results.fittedvalues)))
    order = np.argsort(probability, kind="stable")
    np.testing.assert_array_equal(bands.get_data().values, results.model.endog[order])
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


def test_reliability_by_hand():
    probability = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.8])
    mean, share, count = plotting.reliability(probability, np.array([0, 0, 1, 0, 1, 1.0]), 3)
    np.testing.assert_allclose(mean, [0.1, 0.85])
    np.testing.assert_allclose(share, [0.25, 1.0])
    assert count.tolist() == [4, 2]
    low, high = plotting.wilson_interval(share, count)
    expected = proportion_confint([1, 2], [4, 2], method="wilson")
    np.testing.assert_allclose([low, high], expected)


def boxes(ax):
    ax.figure.draw_without_rendering()
    # That of an annotation would include its line.
    return [Text.get_window_extent(text) for text in ax.texts]


@pytest.mark.parametrize(
    ("picture", "fit"),
    [
        ("plot_diagnostics", "hbk"),
        ("plot_diagnostics", "stars"),
        ("plot_fit", "stars"),
        ("plot_ellipse", "cov"),
    ],
)
def test_names_do_not_cover_each_other(picture, fit, fits):
    fig = getattr(plotting, picture)(fits[fit])
    for ax in fig.axes:
        found = [(box.x0, box.y0, box.x1, box.y1) for box in boxes(ax)]
        for i, box in enumerate(found):
            assert not any(plotting.overlap(box, other) for other in found[:i])


def test_names_stand_by_their_own_points(fits):
    """Of four giants one over the other, each has its name nearest, or tied to it by a line."""
    fig = plotting.plot_fit(fits["stars"])
    ax = fig.axes[0]
    bad = ax.transData.transform(ax.collections[1].get_offsets())
    for text, box in zip(ax.texts, boxes(ax), strict=True):
        middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
        own = ax.transData.transform(text.xy)
        nearest = np.linalg.norm(bad - middle, axis=1).min()
        assert text.arrow_patch is not None or np.linalg.norm(own - middle) <= nearest + 2


def test_free_places():
    frame = np.array([0.0, 0.0, 100.0, 100.0])
    alone = np.array([[50.0, 50.0]])
    assert plotting.free_places(alone, [(10, 10)], alone, frame) == [(5, 4)]
    corner = np.array([[98.0, 98.0]])
    assert plotting.free_places(corner, [(10, 10)], corner, frame) == [(-5, -4)]
    crowd = np.repeat(alone, 30, axis=0)
    assert len(plotting.free_places(crowd, [(10, 10)] * 30, crowd, frame)) == 30


def test_many_rows_are_drawn_as_an_image():
    x = np.random.default_rng(0).standard_normal((6000, 2))
    few, many = (rrmstats.RRMCov(x[:n], 0.0).fit() for n in (100, 6000))
    for results, image in ((few, False), (many, True)):
        ax = plotting.plot_distances(results).axes[0]
        assert named(ax, "row").get_rasterized() == image
        assert named(ax, "flagged").get_rasterized() == image


@pytest.mark.parametrize("place", ["upper left", "upper right", "lower left", "lower right"])
def test_the_legend_stands_in_the_emptiest_corner(place):
    x, y = np.random.default_rng(0).random((2, 1000))
    far = (x > 0.5) == ("right" in place), (y > 0.5) == ("upper" in place)
    rest = ~(far[0] & far[1])
    assert plotting.emptiest_corner(x[rest], y[rest]) == place
