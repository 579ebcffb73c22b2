import numpy as np
import pytest
import statsmodels.api as sm

import rrmstats
from rrmstats import datasets, plotting

from .axes_content import flagged, level_lines, named, texts


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


def test_the_worst_flagged_rows_are_named_by_index():
    stars = datasets.stars_cyg.load_pandas().data
    stars.index = [f"star {i}" for i in range(len(stars))]
    results = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(steps=1)
    for count in (0, 1, 4):
        ax = plotting.plot_weights(results, label=count).axes[0]
        assert texts(ax) == ["star 33", "star 29", "star 19", "star 10"][:count]
    most = plotting.plot_weights(results, label=1000).axes[0]
    assert len(texts(most)) == flagged(results).sum() < 47
    arrays = rrmstats.RRMOLS(stars["log_light"].to_numpy(), sm.add_constant(stars["log_te"]), 0.2)
    assert texts(plotting.plot_weights(arrays.fit(steps=1), label=2).axes[0])[0].endswith("33")


def test_a_row_counted_twice_is_at_the_height_of_two_rows():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((60, 2))
    twice = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = rrmstats.RRMCov(z, 0.2, freq_weights=twice).fit(steps=1)
    repeated = rrmstats.RRMCov(np.vstack([z, z[:20]]), 0.2).fit(steps=1)
    heights = []
    for results in (weighted, repeated):
        ax = plotting.plot_weights(results).axes[0]
        points = np.vstack([named(ax, label).get_xydata() for label in ("row", "flagged")])
        heights.append(points[np.argsort(points[:, 0]), 1])
    np.testing.assert_allclose(heights[0], heights[1][:60], rtol=1e-6)
    assert np.ptp(heights[0]) > 0.5


def test_rows_and_groups_are_counted_in_whole_numbers():
    z, unit = np.random.default_rng(0).standard_normal((90, 2)), np.repeat(np.arange(18), 5)
    fig = plotting.plot_weights(rrmstats.RRMCov(z, 0.1, groups=unit).fit(steps=1))
    fig.draw_without_rendering()
    assert (fig.axes[0].get_xticks() % 1 == 0).all()
