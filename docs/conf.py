from importlib.metadata import version as _version

project = "rrmstats"
author = "rrmstats developers"
copyright = "rrmstats developers"
release = version = _version("rrmstats")

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 110)]
html_theme = "alabaster"
html_theme_options = {"page_width": "1160px", "body_max_width": "900px"}
