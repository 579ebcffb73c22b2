"""What a user constructs: models that check their data, fit and return results."""

from rrmstats.models.base import RRMModel
from rrmstats.models.bootstrap import Bootstrap
from rrmstats.models.curves import RRMNLS, curve_fit, nls
from rrmstats.models.generalized import RRMGLM, RRMPoisson
from rrmstats.models.likelihood import RRMLikelihood, robustify
from rrmstats.models.linear import RRMOLS, feols
from rrmstats.models.logistic import RRMLogit
from rrmstats.models.multivariate import RRMPCA, RRMCov
from rrmstats.models.own_loss import RRMCustom, custom, robust_weights
from rrmstats.models.removal import few_rows

__all__ = [
    "RRMGLM",
    "RRMNLS",
    "RRMOLS",
    "RRMPCA",
    "Bootstrap",
    "RRMCov",
    "RRMCustom",
    "RRMLikelihood",
    "RRMLogit",
    "RRMModel",
    "RRMPoisson",
    "curve_fit",
    "custom",
    "feols",
    "few_rows",
    "nls",
    "robust_weights",
    "robustify",
]
