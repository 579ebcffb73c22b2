"""Robust risk minimization in the manner of statsmodels."""

from rrmstats import datasets
from rrmstats.formula import cov, glm, logit, ols, pca, poisson
from rrmstats.models import (
    RRMGLM,
    RRMOLS,
    RRMPCA,
    RRMCov,
    RRMCustom,
    RRMLikelihood,
    RRMLogit,
    RRMPoisson,
    custom,
    robust_weights,
    robustify,
)
from rrmstats.results import UnstableWarning

__version__ = "0.2.0"

__all__ = [
    "RRMGLM",
    "RRMOLS",
    "RRMPCA",
    "RRMCov",
    "RRMCustom",
    "RRMLikelihood",
    "RRMLogit",
    "RRMPoisson",
    "UnstableWarning",
    "__version__",
    "cov",
    "custom",
    "datasets",
    "glm",
    "logit",
    "ols",
    "pca",
    "poisson",
    "robust_weights",
    "robustify",
]
