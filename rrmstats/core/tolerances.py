"""Numbers of the computer, not of the statistics: rounding, iterations, sizes of blocks.

A result may not depend on them by more than its own rounding. Numbers that change what is reported
stand beside the formula or the calibration that they come from.
"""

from __future__ import annotations

import numpy as np

#: Smallest positive number with full precision: the floor of what a logarithm is taken of.
TINY = float(np.finfo(float).tiny)
#: Relative rounding of a sum over rows.
SUM_ROUNDING = 1e-12
#: Relative rounding of a solution of linear equations, and of a rank.
ROUNDING = 1e-8
#: Most iterations of Newton's method or of EM.
MAX_STEPS = 100
#: Most halvings of a step that does not improve.
HALVINGS = 10
#: Most entries of an array that is made for a block of rows.
BLOCK_ENTRIES = 400_000
