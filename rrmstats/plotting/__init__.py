"""Pictures of fits, after the conventions of statsmodels: they return a Figure and show nothing.

Flagged rows are drawn as triangles, the others as circles; robust fits as solid lines, classical
ones as dashed lines. The colors are those of Okabe and Ito, which color-blind readers can tell
apart. matplotlib is imported only when a picture is drawn.
"""

from rrmstats.plotting.classification import plot_reliability, plot_separation
from rrmstats.plotting.components import plot_biplot, plot_outlier_map, plot_scree
from rrmstats.plotting.covariances import plot_distances, plot_ellipse
from rrmstats.plotting.explanations import plot_explanation
from rrmstats.plotting.iterations import plot_trace
from rrmstats.plotting.path_rows import plot_path_residuals, plot_path_weights
from rrmstats.plotting.paths import plot_path
from rrmstats.plotting.regression import plot_diagnostics, plot_fit
from rrmstats.plotting.weights import plot_weights

__all__ = [
    "plot_biplot",
    "plot_diagnostics",
    "plot_distances",
    "plot_ellipse",
    "plot_explanation",
    "plot_fit",
    "plot_outlier_map",
    "plot_path",
    "plot_path_residuals",
    "plot_path_weights",
    "plot_reliability",
    "plot_scree",
    "plot_separation",
    "plot_trace",
    "plot_weights",
]
