"""Robust risk minimization in the manners of statsmodels."""

from rrmstats import datasets
from rrmstats.cov import RRMCov
from rrmstats.logit import RRMLogit
from rrmstats.ols import RRMOLS
from rrmstats.pca import RRMPCA

__version__ = "0.1.0"

ols = RRMOLS.from_formula
logit = RRMLogit.from_formula
pca = RRMPCA.from_formula
cov = RRMCov.from_formula

__all__ = [
    "RRMOLS",
    "RRMPCA",
    "RRMCov",
    "RRMLogit",
    "__version__",
    "cov",
    "datasets",
    "logit",
    "ols",
    "pca",
]
