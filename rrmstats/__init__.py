"""Robust risk minimization in the manners of statsmodels."""

from rrmstats import datasets
from rrmstats.ols import RRMOLS

__version__ = "0.1.0"

ols = RRMOLS.from_formula

__all__ = ["RRMOLS", "__version__", "datasets", "ols"]
