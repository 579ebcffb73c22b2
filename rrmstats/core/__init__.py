"""The generic method of the paper, on numpy and scipy alone."""

from rrmstats.core.block_array import BlockArray, row_sums
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.core.choice import Choice
from rrmstats.core.descent import Step
from rrmstats.core.entropy import EntropyWeights, entropy_weights
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.grouped import GroupedProblem, Groups
from rrmstats.core.linear import LinearProblem
from rrmstats.core.problem import FunctionProblem, Problem, SmoothProblem
from rrmstats.core.search import Solution, minimize
from rrmstats.core.setting import Setting

__all__ = [
    "ArrayBlocks",
    "BlockArray",
    "Choice",
    "EntropyWeights",
    "EstimableProblem",
    "Estimate",
    "FunctionProblem",
    "GroupedProblem",
    "Groups",
    "LinearProblem",
    "Problem",
    "Setting",
    "SmoothProblem",
    "Solution",
    "Step",
    "entropy_weights",
    "minimize",
    "row_sums",
]
