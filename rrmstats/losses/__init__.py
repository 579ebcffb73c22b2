"""One loss per file, on numpy and scipy alone: its problem, and the estimates it makes."""

from rrmstats.losses.classification import ClassificationProblem
from rrmstats.losses.components import ComponentsProblem
from rrmstats.losses.covariance import CovarianceProblem
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.generalized import GeneralizedProblem
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.regression import RegressionProblem
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.squares import SquaresProblem
from rrmstats.losses.subspace import SubspaceProblem

__all__ = [
    "ClassificationProblem",
    "ComponentsProblem",
    "CovarianceProblem",
    "DevianceProblem",
    "GeneralizedProblem",
    "LogisticProblem",
    "RegressionProblem",
    "ScatterProblem",
    "SquaresProblem",
    "SubspaceProblem",
]
