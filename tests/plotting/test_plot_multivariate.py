"""Pictures of covariances and of principal components."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import mahalanobis
from scipy.stats import chi2

import rrmstats
from rrmstats import plotting
from rrmstats.plotting.canvas import short_names
from rrmstats.plotting.multivariate import classical_moments, distances_from, ellipse

from .axes_content import flagged, level_lines, named, overlap, texts, written_boxes


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
    np.testing.assert_allclose(level_lines(ax), [[results.cutoff()], [cutoff]])
    # Most of the outliers are masked: within the classical cutoff, beyond the robust one.
    assert (x < cutoff).sum() >= 10 and (y > cutoff).all()


def test_distances_of_a_singular_covariance_are_refused():
    z = np.random.default_rng(0).standard_normal((50, 2))
    z[:45, 1] = z[:45, 0]
    with pytest.raises(ValueError, match=r"singular.*see hyperplane"):
        plotting.plot_distances(rrmstats.RRMCov(z, 0.2).fit(steps=1))


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
    assert (
        plotting.plot_scree(rrmstats.RRMPCA(clean, 1, 0.1).fit(steps=1)).axes[0].get_ylim()[0] == 0
    )


def test_scree_around_the_origin_and_standardized():
    z = 3 + np.random.default_rng(0).standard_normal((100, 3)) * [1, 10, 100]
    results = rrmstats.RRMPCA(z, 2, 0.0, demean=False, standardize=True).fit(steps=1)
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
    assert ax.get_xlabel().startswith("component 2 (31%")
    # The arrows lie within the picture.
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert (drawn > [left, low]).all() and (drawn < [right, high]).all()


def test_biplot_needs_two_components(fits):
    one = rrmstats.RRMPCA(fits["pca"].model.endog, 1, 0.2).fit(steps=1)
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


def wide_fit(variables):
    """Return two components of thirty variables, with rows off the plane and far out in it."""
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((100, 2)) * [5, 3] @ rng.standard_normal((2, 30))
    data = plane + 0.3 * rng.standard_normal((100, 30))
    data[:5] += 20 * rng.standard_normal((5, 30))
    data[5:8] *= 6
    return rrmstats.RRMPCA(pd.DataFrame(data, columns=variables), 2, eps_bar=0.1).fit(
        n_starts=5, steps=1
    )


def test_a_biplot_of_many_variables_names_the_longest_arrows():
    variables = [f"a rather long name of variable {j}" for j in range(30)]
    results = wide_fit(variables)
    ax = plotting.plot_biplot(results, label=0).axes[0]
    lengths = np.linalg.norm(np.asarray(results.loadings), axis=1)
    longest = np.sort(np.argsort(-lengths)[:12])
    assert texts(ax) == [short_names(variables)[j] for j in longest]
    assert len(ax.collections[0].U) == 30
    assert ax.get_title(loc="left").startswith("The 12 longest of 30 arrows are named.")
    boxes = [box.extents for box in written_boxes(ax)]
    for i, box in enumerate(boxes):
        assert not any(overlap(box, other) for other in boxes[:i])
    points = np.vstack([ax.transData.transform(line.get_xydata()) for line in ax.lines])
    assert not any(box.contains(*point) for box in written_boxes(ax) for point in points)


def test_scree_of_many_components_has_room_for_its_numbers():
    results = rrmstats.RRMPCA(np.random.default_rng(0).standard_normal((80, 40)), 30, 0.0).fit(
        steps=1
    )
    fig = plotting.plot_scree(results)
    ax = fig.axes[0]
    boxes = [box.extents for box in written_boxes(ax)]
    assert 0 < len(boxes) <= 12
    for found in (boxes, [text.get_window_extent().extents for text in ax.get_xticklabels()]):
        for i, box in enumerate(found):
            assert not any(overlap(box, other) for other in found[:i])


def test_scree_writes_no_share_that_rounds_to_nothing():
    data = np.random.default_rng(0).standard_normal((80, 4)) * [10, 1, 0.1, 0.1]
    ax = plotting.plot_scree(rrmstats.RRMPCA(data, 3, 0.0).fit(steps=1)).axes[0]
    assert texts(ax) == ["99%", "1%"]


def test_frequency_weights_repeat_rows():
    rng = np.random.default_rng(0)
    data, count = rng.standard_normal((20, 3)), rng.integers(1, 4, 20)
    rows = np.repeat(data, count, axis=0)
    mean, cov = classical_moments(data, count.astype(float))
    np.testing.assert_allclose(mean, rows.mean(axis=0))
    np.testing.assert_allclose(cov, np.cov(rows, rowvar=False))


def test_distances_are_those_of_scipy_whatever_the_units():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 3))
    mean, cov = data.mean(axis=0), np.cov(data, rowvar=False)
    own = [mahalanobis(row, mean, np.linalg.inv(cov)) for row in data]
    for unit in (1.0, np.array([1e-9, 1.0, 1e9])):
        found = distances_from(mean * unit, cov * np.outer(unit, unit), data * unit)
        np.testing.assert_allclose(found, own)


def test_the_ellipse_lies_at_its_distance_and_surrounds_the_mean():
    mean, cov = np.array([1.0, -2.0]), np.array([[4.0, 1.5], [1.5, 1.0]])
    points = ellipse(mean, cov, 2.5)
    np.testing.assert_allclose(distances_from(mean, cov, points), 2.5)
    np.testing.assert_allclose(points[:-1].mean(axis=0), mean)
