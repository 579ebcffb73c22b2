"""Models from a formula and a data frame: the functions that most users call."""

from rrmstats.formula.generalized_models import glm, poisson
from rrmstats.formula.regressions import logit, ols
from rrmstats.formula.variables import cov, pca

__all__ = ["cov", "glm", "logit", "ols", "pca", "poisson"]
