"""Robust risk minimization in the manner of statsmodels."""

from rrmstats import datasets
from rrmstats.formula import cov, glm, logit, ols, pca, poisson, wls
from rrmstats.models import (
    RRMGLM,
    RRMNLS,
    RRMOLS,
    RRMPCA,
    RRMCov,
    RRMCustom,
    RRMLikelihood,
    RRMLogit,
    RRMPoisson,
    curve_fit,
    custom,
    feols,
    few_rows,
    nls,
    robust_weights,
    robustify,
)
from rrmstats.results import UnstableWarning

__version__ = "0.2.0"

__all__ = [
    "RRMGLM",
    "RRMNLS",
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
    "curve_fit",
    "custom",
    "datasets",
    "feols",
    "few_rows",
    "glm",
    "logit",
    "nls",
    "ols",
    "pca",
    "poisson",
    "robust_weights",
    "robustify",
    "wls",
]
