"""The pictures that exist and the results that each of them needs.

A new picture is one row of `PICTURES`: the picture checks its results against the row, and the
report draws every row that the results offer, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rrmstats.plotting.arrays import varying_columns
from rrmstats.plotting.offers import (
    ComponentsResults,
    CovarianceResults,
    FittedPath,
    RegressionResults,
    Results,
)

SMALL, LARGE = (6.4, 4.4), (9.6, 7.6)
# What all pictures of a path need.
PATH = ("eps_bars", "frame", "residuals", "leaves", "jumps")


class Picture(NamedTuple):
    """One row of the catalog.

    Attributes
    ----------
    function : str
        Name of the function of `rrmstats.plotting` that draws it.
    caption : str
    size : (float, float)
        Width and height in inches.
    needs : tuple of str
        Attributes that the results must have.
    model : str
        A model whose results have them.
    in_report : callable, optional
        Whether the report shows the picture of results that have them.
    target : {"ax", "fig"}, optional
        Argument of the function that says where to draw.
    options : tuple of (str, object), optional
        Further arguments that the report passes to the function.
    uses_rows : bool, optional
        Whether the picture needs the data, which `remove_data` drops.
    """

    function: str
    caption: str
    size: tuple[float, float]
    needs: tuple[str, ...]
    model: str
    in_report: Callable[[Any], bool] = lambda results: True
    target: str = "ax"
    options: tuple[tuple[str, object], ...] = ()
    uses_rows: bool = True


def has_one_predictor(results: RegressionResults) -> bool:
    """Return whether one column of the design varies."""
    return len(varying_columns(results.model.exog)) == 1


def has_two_variables(results: CovarianceResults) -> bool:
    """Return whether there are two variables to draw against each other."""
    return len(results.model.variables) > 1


def has_two_components(results: ComponentsResults) -> bool:
    """Return whether there are two components to draw against each other."""
    return np.size(results.eigenvals) > 1


def has_explanation(results: Results) -> bool:
    """Return whether a second step explains the rows, and some of them may be bad."""
    return results.explanation is not None and results.eps_bar > 0


PICTURES = (
    Picture("plot_fit", "Fit", SMALL, ("resid_scaled", "params"), "RRMOLS", has_one_predictor),
    Picture(
        "plot_diagnostics",
        "Diagnostics",
        LARGE,
        ("resid_pearson",),
        "RRMOLS",
        target="fig",
    ),
    Picture(
        "plot_explanation",
        "Explanation",
        SMALL,
        ("explanation",),
        "two steps",
        has_explanation,
    ),
    Picture("plot_separation", "Separation", (7.2, 3.2), ("pred_table",), "RRMLogit"),
    Picture("plot_reliability", "Reliability", (5.4, 5.0), ("pred_table",), "RRMLogit"),
    Picture("plot_distances", "Distances", SMALL, ("mahalanobis",), "RRMCov"),
    Picture(
        "plot_ellipse", "Tolerance ellipse", SMALL, ("mean", "cov"), "RRMCov", has_two_variables
    ),
    Picture("plot_scree", "Variances", SMALL, ("eigenvals", "column_unit"), "RRMPCA"),
    Picture("plot_biplot", "Biplot", SMALL, ("scores", "loadings"), "RRMPCA", has_two_components),
    Picture(
        "plot_outlier_map",
        "Outlier map",
        SMALL,
        ("score_distance", "orthogonal_distance"),
        "RRMPCA",
    ),
    Picture(
        "plot_weights",
        "Weights by loss",
        SMALL,
        ("relative_weights", "losses"),
        "any model",
        options=(("against", "losses"),),
    ),
    Picture(
        "plot_trace",
        "Risk and lambda",
        (6.4, 4.8),
        ("trace",),
        "any model",
        target="fig",
        uses_rows=False,
    ),
    Picture("plot_path", "Path", (10.4, 6.4), PATH, "model.path()", target="fig"),
    Picture("plot_path_weights", "Weights along the path", (7.2, 7.2), PATH, "model.path()"),
    Picture("plot_path_residuals", "Residuals along the path", (8.0, 5.0), PATH, "model.path()"),
)


def missing_attributes(picture: Picture, results: Results | FittedPath) -> list[str]:
    """Return what the results lack for a picture, without computing any of it."""
    offered = set(dir(results))
    return [name for name in picture.needs if name not in offered]


def report_pictures(results: Results) -> list[Picture]:
    """Return the pictures that a report on these results shows."""
    return [
        picture
        for picture in PICTURES
        if not missing_attributes(picture, results) and picture.in_report(results)
    ]


def checked_picture(function: str, results: Results | FittedPath) -> Picture:
    """Return the row of a picture, or raise an error if it cannot be drawn from the results."""
    (picture,) = [picture for picture in PICTURES if picture.function == function]
    missing = missing_attributes(picture, results)
    if missing:
        model = getattr(results, "model", results)
        raise TypeError(
            f"{function} needs results that have {' and '.join(f'`{name}`' for name in missing)}, "
            f"such as those of {picture.model}; got those of {type(model).__name__}"
        )
    if picture.uses_rows and getattr(results, "weights", None) is None:
        raise ValueError(f"{function} needs the data, which remove_data dropped; fit again")
    return picture
