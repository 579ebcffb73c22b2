"""Rivals of robust risk minimization with the same interface: SEVER and Huber's regression."""

from replication.rivals.classification import SeverLogit
from replication.rivals.filtering import filter_round, sever
from replication.rivals.mean_covariance import SeverCov
from replication.rivals.principal_components import SeverPCA
from replication.rivals.regression import SeverOLS, huber

__all__ = [
    "SeverCov",
    "SeverLogit",
    "SeverOLS",
    "SeverPCA",
    "filter_round",
    "huber",
    "sever",
]
