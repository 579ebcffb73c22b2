import re
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

import rrmstats
from rrmstats import plotting
from rrmstats.plotting.catalog import PICTURES, checked_picture, missing_attributes

FITS = {
    "plot_weights": "stars",
    "plot_fit": "stars",
    "plot_partial_residuals": "stars",
    "plot_added_variable": "stars",
    "plot_distances": "cov",
    "plot_ellipse": "cov",
    "plot_scree": "pca",
    "plot_biplot": "pca",
    "plot_outlier_map": "pca",
    "plot_separation": "logit",
    "plot_reliability": "logit",
    "plot_trace": "stars",
    "plot_diagnostics": "hbk",
    "plot_explanation": "counts",
    "plot_path": "path",
    "plot_path_weights": "path",
    "plot_path_residuals": "path",
}
OF_PATHS = ["plot_path", "plot_path_weights", "plot_path_residuals"]
OF_REGRESSIONS = {"plot_diagnostics", "plot_partial_residuals", "plot_added_variable"}
OF_ANY_MODEL = {"plot_weights", "plot_trace", "plot_explanation"}
OF_ONE_MODEL = sorted(set(FITS) - {*OF_ANY_MODEL, *OF_PATHS})


def test_every_picture_has_one_row():
    assert sorted(picture.function for picture in PICTURES) == sorted(plotting.__all__)


@pytest.mark.parametrize("function", FITS)
def test_draws_where_it_should(function, fits):
    """On the axes or the figure given, or on a new figure of the size of the catalog."""
    draw, results = getattr(plotting, function), fits[FITS[function]]
    (picture,) = [picture for picture in PICTURES if picture.function == function]
    if picture.target == "ax":
        fig, (ax, other) = plt.subplots(1, 2)
        assert draw(results, ax=ax) is fig
        assert ax.has_data() and not other.has_data()
    else:
        fig = plt.figure()
        assert draw(results, fig=fig) is fig
    assert plt.get_fignums() == [fig.number]
    new = draw(results)
    assert new is not fig and all(ax.has_data() for ax in new.axes)
    assert new.axes[0].get_ylabel() or picture.target == "fig"
    np.testing.assert_allclose(new.get_size_inches(), picture.size)


@pytest.mark.parametrize("function", FITS)
def test_without_matplotlib_it_says_how_to_install_it(function, fits, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError) as error:
        getattr(plotting, function)(fits[FITS[function]])
    assert str(error.value) == (
        "matplotlib is not installed; install it with: pip install 'rrmstats[plot]'"
    )


def test_importing_the_package_does_not_import_matplotlib():
    code = "import sys, rrmstats.plotting, rrmstats.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("function", OF_ONE_MODEL)
@pytest.mark.parametrize("other", ["stars", "cov", "pca", "logit"])
def test_results_of_other_models_are_refused(function, other, fits):
    model, given = type(fits[FITS[function]].model), type(fits[other].model)
    if model is given or (function in OF_REGRESSIONS and other == "logit"):
        checked_picture(function, fits[other])
        return
    message = (
        rf"^{function} needs results that have `\w+`( and `\w+`)*, such as those of "
        rf"{model.__name__}; got those of {given.__name__}$"
    )
    with pytest.raises(TypeError, match=message):
        getattr(plotting, function)(fits[other])


def test_the_error_names_what_is_missing(fits):
    with pytest.raises(TypeError) as error:
        plotting.plot_distances(fits["stars"])
    assert str(error.value) == (
        "plot_distances needs results that have `mahalanobis`, such as those of RRMCov; got those "
        "of RRMOLS"
    )


@pytest.mark.parametrize("function", OF_PATHS)
def test_pictures_of_paths_refuse_results(function, fits):
    message = (
        rf"^{function} needs results that have `eps_bars` and .*, such as those of "
        r"model.path\(\); got those of RRMCov$"
    )
    with pytest.raises(TypeError, match=message):
        getattr(plotting, function)(fits["cov"])


def test_the_check_computes_nothing():
    class Lazy:
        @property
        def score_distance(self):
            pytest.fail("the check computed an attribute")

    (picture,) = [picture for picture in PICTURES if picture.function == "plot_outlier_map"]
    assert missing_attributes(picture, Lazy()) == ["orthogonal_distance"]


def test_after_remove_data_only_the_trace_is_left():
    results = rrmstats.RRMCov(np.random.default_rng(0).standard_normal((40, 2)), 0.1).fit(steps=1)
    results.remove_data()
    for draw in (plotting.plot_weights, plotting.plot_distances):
        message = f"{draw.__name__} needs the data, which remove_data dropped; fit again"
        with pytest.raises(ValueError, match=re.escape(message)):
            draw(results)
    assert plotting.plot_trace(results).axes[0].has_data()
