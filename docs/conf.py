import os
import sys
from importlib.metadata import version as _version
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]
# Kernels of pages find the experiments of the checkout as well.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
)

# Cells show their figures only where the kernel may choose its own backend.
os.environ.pop("MPLBACKEND", None)

project = "rrmstats"
author = "rrmstats developers"
copyright = "rrmstats developers"
release = version = _version("rrmstats")

extensions = [
    "mathml",
    "matplotlib.sphinxext.plot_directive",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
]
exclude_patterns = ["_build", "_ext"]
templates_path = ["_templates"]
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_typehints = "none"
default_role = "autolink"  # a name in single backticks is a link where there is such an object
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
# Each class of the reference has a page, with all that it defines, or these members.
autosummary_context = {
    "shown": {
        "rrmstats.RRMOLS": "from_formula, fit, fit_regularized, path, leverages, design_distances",
        "rrmstats.RRMLogit": "fit",
        "rrmstats.RRMGLM": "fit, row_sizes",
        "rrmstats.RRMPoisson": "fit",
        "rrmstats.RRMCov": "fit",
        "rrmstats.RRMPCA": "fit",
        "rrmstats.RRMNLS": "fit, predict",
        "rrmstats.RRMLikelihood": "fit, predict",
        "rrmstats.RRMCustom": "fit",
        "rrmstats.results.ChosenExplanation": "name",
        "rrmstats.results.FewRows": "n_rows, share, sentence, plot",
        "rrmstats.results.RRMRegularizedResults": "selected, outliers, summary",
        "rrmstats.results.RRMAbsorbedResults": "fixef, predict",
        "rrmstats.sklearn.RRMRegressor": "fit, predict",
        "rrmstats.sklearn.RRMClassifier": (
            "fit, predict, predict_proba, predict_log_proba, decision_function"
        ),
        "rrmstats.sklearn.RRMCovariance": "fit, mahalanobis, get_precision, score, error_norm",
        "rrmstats.sklearn.RRMDecomposition": "fit, transform, inverse_transform",
        "rrmstats.sklearn.RRMOutlierDetector": "fit, predict, score_samples, decision_function",
        "rrmstats.sklearn.RRMWrapper": "fit, predict, predict_proba, score",
    }
}

plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 110)]

html_theme = "pydata_sphinx_theme"
html_title = "rrmstats"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages without others below them have no menu on the left.
html_sidebars = {name: [] for name in ("index", "get_started")}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
