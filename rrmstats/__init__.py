"""Robust risk minimization in the manner of statsmodels."""

from rrmstats import datasets
from rrmstats.formula import cov, logit, ols, pca
from rrmstats.models import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.results import UnstableWarning

__version__ = "0.2.0.dev0"

__all__ = [
    "RRMOLS",
    "RRMPCA",
    "RRMCov",
    "RRMLogit",
    "UnstableWarning",
    "__version__",
    "cov",
    "datasets",
    "logit",
    "ols",
    "pca",
]
