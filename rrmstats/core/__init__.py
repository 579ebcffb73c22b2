"""The generic method of the paper, on numpy and scipy alone."""

from rrmstats.core.descent import Step
from rrmstats.core.entropy import EntropyWeights, entropy_weights
from rrmstats.core.minimise import Solution, minimise
from rrmstats.core.problem import FunctionProblem, Problem, SmoothProblem

__all__ = [
    "EntropyWeights",
    "FunctionProblem",
    "Problem",
    "SmoothProblem",
    "Solution",
    "Step",
    "entropy_weights",
    "minimise",
]
