"""Pictures of fits, after the conventions of statsmodels: they return a Figure and show nothing.

Flagged rows are drawn as triangles, the others as circles; robust fits as solid lines, classical
ones as dashed lines. The colors are those of Okabe and Ito, which color-blind readers can tell
apart. matplotlib is imported only when a picture is drawn.
"""

from rrmstats.plotting.any_model import plot_explanation, plot_trace, plot_weights
from rrmstats.plotting.multivariate import (
    plot_biplot,
    plot_distances,
    plot_ellipse,
    plot_outlier_map,
    plot_scree,
)
from rrmstats.plotting.paths import plot_path, plot_path_residuals, plot_path_weights
from rrmstats.plotting.regression import (
    plot_added_variable,
    plot_diagnostics,
    plot_fit,
    plot_partial_residuals,
    plot_reliability,
    plot_separation,
)

__all__ = [
    "plot_added_variable",
    "plot_biplot",
    "plot_diagnostics",
    "plot_distances",
    "plot_ellipse",
    "plot_explanation",
    "plot_fit",
    "plot_outlier_map",
    "plot_partial_residuals",
    "plot_path",
    "plot_path_residuals",
    "plot_path_weights",
    "plot_reliability",
    "plot_scree",
    "plot_separation",
    "plot_trace",
    "plot_weights",
]
