"""What a user reads: results are views of an estimate, and never search or fit."""

from rrmstats.losses.covariance import Hyperplane
from rrmstats.results.absorbed import RRMAbsorbedResults
from rrmstats.results.base import RRMResults
from rrmstats.results.explanations import ChosenExplanation, Stability, UnstableWarning
from rrmstats.results.generalized import RRMGLMResults
from rrmstats.results.inference import Replicates
from rrmstats.results.influence import RRMInfluence
from rrmstats.results.likelihood import RRMLikelihoodResults
from rrmstats.results.linear import RRMOLSResults
from rrmstats.results.logistic import RRMLogitResults
from rrmstats.results.means import MeanPrediction, MeanResults
from rrmstats.results.multivariate import RRMCovResults, RRMPCAResults
from rrmstats.results.own_loss import RRMCustomResults
from rrmstats.results.path_results import RRMPath
from rrmstats.results.regularized import RRMRegularizedResults
from rrmstats.results.removal import FewRows, FittedTerm

__all__ = [
    "ChosenExplanation",
    "FewRows",
    "FittedTerm",
    "Hyperplane",
    "MeanPrediction",
    "MeanResults",
    "RRMAbsorbedResults",
    "RRMCovResults",
    "RRMCustomResults",
    "RRMGLMResults",
    "RRMInfluence",
    "RRMLikelihoodResults",
    "RRMLogitResults",
    "RRMOLSResults",
    "RRMPCAResults",
    "RRMPath",
    "RRMRegularizedResults",
    "RRMResults",
    "Replicates",
    "Stability",
    "UnstableWarning",
]
