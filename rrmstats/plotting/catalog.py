"""The pictures that exist and the results that each of them needs.

A new picture is one row of `PICTURES`: the picture checks its results against the row, and the
report draws every row that the results offer, in this order. Pictures know results only by these
attributes, and import neither models nor results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

Array = npt.NDArray[np.floating[Any]]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
# Results of a model, and a path of them: anything that has the attributes.
Results = Any
FittedPath = Any

SMALL, LARGE = (6.4, 4.4), (9.6, 7.6)
# What some pictures need.
EXPLAINED, MOMENTS = ("explanation",), ("mean", "cov")
DISTANCES = ("score_distance", "orthogonal_distance")
ONE_TERM = ("working_weights",)
WEIGHTS = ("relative_weights", "losses")
PATH = ("eps_bars", "frame", "residuals", "leaves", "jumps")


class Picture(NamedTuple):
    """One row of the catalog.

    Attributes
    ----------
    function : str
        Name of the function of `rrmstats.plotting` that draws it.
    caption : str
    needs : tuple of str
        Attributes that the results must have.
    model : str
        A model whose results have them.
    size : (float, float)
        Width and height in inches.
    in_report : callable, optional
        Whether the report shows the picture of results that have them.
    target : {"ax", "fig"}, optional
        Argument of the function that says where to draw.
    options : tuple of (str, object), optional
        Further arguments that the report passes to the function.
    """

    function: str
    caption: str
    needs: tuple[str, ...]
    model: str
    size: tuple[float, float]
    in_report: Callable[[Results], bool] = lambda results: True
    target: str = "ax"
    options: tuple[tuple[str, object], ...] = ()

    @property
    def uses_rows(self) -> bool:
        """Whether the picture needs the data, which `remove_data` drops."""
        return "trace" not in self.needs


def varying_columns(exog: Array) -> Rows:
    """Return the columns of a design that are not constant."""
    return np.flatnonzero(np.ptp(exog, axis=0) > 0)


def has_one_predictor(results: Results) -> bool:
    """Return whether one column of the design varies, or a curve has one variable."""
    if hasattr(results.model, "axis"):
        return results.model.axis is not None
    return len(varying_columns(results.model.exog)) == 1


def on_request(results: Results) -> bool:
    """Return False: the picture needs to be told of a predictor."""
    return False


def has_two_variables(results: Results) -> bool:
    """Return whether there are two variables to draw against each other."""
    return len(results.model.variables) > 1


def has_two_components(results: Results) -> bool:
    """Return whether there are two components to draw against each other."""
    return np.size(results.eigenvals) > 1


def has_explanation(results: Results) -> bool:
    """Return whether a second step explains the rows, and some of them may be bad."""
    return results.explanation is not None and results.eps_bar > 0


BY_LOSS = (("against", "losses"),)
PICTURES = (
    Picture("plot_fit", "Fit", ("resid_scaled", "params"), "RRMOLS", SMALL, has_one_predictor),
    Picture("plot_diagnostics", "Diagnostics", ("resid_pearson",), "RRMOLS", LARGE, target="fig"),
    Picture("plot_partial_residuals", "Partial residuals", ONE_TERM, "RRMOLS", SMALL, on_request),
    Picture("plot_added_variable", "Added variable", ONE_TERM, "RRMOLS", SMALL, on_request),
    Picture("plot_explanation", "Explanation", EXPLAINED, "two steps", SMALL, has_explanation),
    Picture("plot_separation", "Separation", ("pred_table",), "RRMLogit", (7.2, 3.2)),
    Picture("plot_reliability", "Reliability", ("pred_table",), "RRMLogit", (5.4, 5.0)),
    Picture("plot_distances", "Distances", ("mahalanobis",), "RRMCov", SMALL),
    Picture("plot_ellipse", "Tolerance ellipse", MOMENTS, "RRMCov", SMALL, has_two_variables),
    Picture("plot_scree", "Variances", ("eigenvals", "column_unit"), "RRMPCA", SMALL),
    Picture("plot_biplot", "Biplot", ("scores", "loadings"), "RRMPCA", SMALL, has_two_components),
    Picture("plot_outlier_map", "Outlier map", DISTANCES, "RRMPCA", SMALL),
    Picture("plot_weights", "Weights by loss", WEIGHTS, "any model", SMALL, options=BY_LOSS),
    Picture("plot_trace", "Risk and lambda", ("trace",), "any model", (6.4, 4.8), target="fig"),
    Picture("plot_path", "Path", PATH, "model.path()", (10.4, 6.4), target="fig"),
    Picture("plot_path_weights", "Weights along the path", PATH, "model.path()", (7.2, 7.2)),
    Picture("plot_path_residuals", "Residuals along the path", PATH, "model.path()", (8.0, 5.0)),
)


def missing_attributes(picture: Picture, results: Results) -> list[str]:
    """Return what the results lack for a picture, without computing any of it."""
    offered = set(dir(results))
    return [name for name in picture.needs if name not in offered]


def report_pictures(results: Results) -> list[Picture]:
    """Return the pictures that a report on these results shows."""
    possible = [each for each in PICTURES if not missing_attributes(each, results)]
    return [each for each in possible if each.in_report(results)]


def checked_picture(function: str, results: Results) -> Picture:
    """Return the row of a picture, or raise an error if it cannot be drawn from the results."""
    (picture,) = [picture for picture in PICTURES if picture.function == function]
    missing = " and ".join(f"`{name}`" for name in missing_attributes(picture, results))
    if missing:
        raise TypeError(
            f"{function} needs results that have {missing}, such as those of {picture.model}; "
            f"got those of {type(getattr(results, 'model', results)).__name__}"
        )
    if picture.uses_rows and getattr(results, "weights", None) is None:
        raise ValueError(f"{function} needs the data, which remove_data dropped; fit again")
    return picture
