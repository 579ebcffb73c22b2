"""Pictures of generalized linear models."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import norm

import rrmstats
from rrmstats import plotting

from .axes_content import flagged, named
from .conftest import counts

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


def test_exact_fits_have_diagnostics():
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
