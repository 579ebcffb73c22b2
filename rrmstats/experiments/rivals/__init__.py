"""Rivals of robust risk minimization with the same interface: SEVER and Huber's regression."""

from rrmstats.experiments.rivals.classification import SeverLogit
from rrmstats.experiments.rivals.filtering import filter_round, sever
from rrmstats.experiments.rivals.mean_covariance import SeverCov
from rrmstats.experiments.rivals.principal_components import SeverPCA
from rrmstats.experiments.rivals.regression import SeverOLS, huber

__all__ = [
    "SeverCov",
    "SeverLogit",
    "SeverOLS",
    "SeverPCA",
    "filter_round",
    "huber",
    "sever",
]
