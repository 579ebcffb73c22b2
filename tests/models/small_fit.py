"""A small regression that tests spoil."""

import numpy as np

from replication.samples import one_sided_outliers
from rrmstats import RRMOLS

N = 50

ENDOG, EXOG = one_sided_outliers(np.random.default_rng(0), N)


def fit(endog=ENDOG, exog=EXOG, eps_bar=0.3, **kwargs):
    return RRMOLS(endog, exog, eps_bar, **kwargs).fit(steps=1)


def replaced(values, place, value):
    changed = np.array(values, dtype=float)
    changed[place] = value
    return changed
