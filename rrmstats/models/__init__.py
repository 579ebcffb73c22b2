"""What a user constructs: models that check their data, fit and return results."""

from rrmstats.models.base import RRMModel
from rrmstats.models.bootstrap import Bootstrap
from rrmstats.models.components import RRMPCA
from rrmstats.models.covariance import RRMCov
from rrmstats.models.curves import RRMNLS, curve_fit, nls
from rrmstats.models.generalized import RRMGLM, RRMPoisson
from rrmstats.models.likelihood import RRMLikelihood, robustify
from rrmstats.models.linear import RRMOLS
from rrmstats.models.logistic import RRMLogit
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
    "few_rows",
    "nls",
    "robust_weights",
    "robustify",
]
