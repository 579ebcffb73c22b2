"""Samples that the experiments, the tests and the benchmarks share.

Each function takes a numpy Generator first. Regressions are returned as endog and exog, points as
one array. Bad rows come first, but for the samples of the paper's figures, where they come last
or anywhere.
"""

from replication.samples.classes import extreme_flips, logistic_labels, random_flips
from replication.samples.distant import KINDS, Kind, distant_points, distant_regression
from replication.samples.leverage import factor_leverage, gradient_attack, leverage_shift
from replication.samples.noise import (
    changing_noise,
    grouped_noise,
    heavy_tailed_rows,
    one_sided_outliers,
    skewed_noise,
)
from replication.samples.paper import (
    TRUE_AXIS,
    TRUE_COV,
    TRUE_PLANE,
    correlated_points,
    heavy_tailed_noise,
    noisy_line,
    point_mass,
    separated_strip,
    wrong_end,
)
from replication.samples.parts import (
    Regression,
    count_bad,
    normal_design,
    student_points,
)
from replication.samples.points import other_subspace, shifted_cluster
from replication.samples.responses import (
    DIRT,
    FAMILY_NAMES,
    RESPONSE_PARAMS,
    Dirt,
    FamilyName,
    dirty_responses,
)

__all__ = [
    "DIRT",
    "FAMILY_NAMES",
    "KINDS",
    "RESPONSE_PARAMS",
    "TRUE_AXIS",
    "TRUE_COV",
    "TRUE_PLANE",
    "Dirt",
    "FamilyName",
    "Kind",
    "Regression",
    "changing_noise",
    "correlated_points",
    "count_bad",
    "dirty_responses",
    "distant_points",
    "distant_regression",
    "extreme_flips",
    "factor_leverage",
    "gradient_attack",
    "grouped_noise",
    "heavy_tailed_noise",
    "heavy_tailed_rows",
    "leverage_shift",
    "logistic_labels",
    "noisy_line",
    "normal_design",
    "one_sided_outliers",
    "other_subspace",
    "point_mass",
    "random_flips",
    "separated_strip",
    "shifted_cluster",
    "skewed_noise",
    "student_points",
    "wrong_end",
]
