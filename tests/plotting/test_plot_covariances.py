import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from scipy.stats import chi2

import rrmstats
from rrmstats import plotting

from .axes_content import flagged, level_lines, named


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
