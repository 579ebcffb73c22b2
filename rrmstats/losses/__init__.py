"""One loss per file, on numpy and scipy alone: its problem, and the estimates it makes."""

from rrmstats.losses.classification import ClassificationProblem
from rrmstats.losses.components import ComponentsProblem, SubspaceProblem
from rrmstats.losses.covariance import CovarianceProblem, ScatterProblem
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.generalized import GeneralizedProblem
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.regression import RegressionProblem, SquaresProblem

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
