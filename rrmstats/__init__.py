"""Robust risk minimization in the manner of statsmodels."""

from rrmstats import datasets
from rrmstats.formula import cov, glm, logit, ols, pca, poisson
from rrmstats.models import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLikelihood, RRMLogit, RRMPoisson, robustify
from rrmstats.results import UnstableWarning

__version__ = "0.2.0.dev0"

__all__ = [
    "RRMGLM",
    "RRMOLS",
    "RRMPCA",
    "RRMCov",
    "RRMLikelihood",
    "RRMLogit",
    "RRMPoisson",
    "UnstableWarning",
    "__version__",
    "cov",
    "datasets",
    "glm",
    "logit",
    "ols",
    "pca",
    "poisson",
    "robustify",
]
