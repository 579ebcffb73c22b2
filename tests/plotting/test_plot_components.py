import numpy as np
import pytest

import rrmstats
from rrmstats import plotting

from .axes_content import flagged, level_lines, named, texts


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


def test_scree_around_the_origin_and_standardized():
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
    assert ax.get_xlabel().startswith("component 2 (31%")
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
