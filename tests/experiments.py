"""Data of the regressions that the tests and their properties are about."""

import numpy as np


def contaminated(rng, n=200, k=3, share=0.2, shift=20.0):
    """Return endog and exog (with a constant); the first rows are shifted up."""
    exog = np.c_[np.ones(n), rng.standard_normal((n, k - 1))]
    endog = exog.sum(axis=1) + rng.standard_normal(n)
    endog[: int(share * n)] += shift
    return endog, exog


def leverage(rng, n=100, k=4, share=0.2):
    """Return a regression on ones, a fifth of whose rows are bad leverage points."""
    exog = np.c_[np.ones(n), rng.standard_normal((n, k - 1))]
    endog = exog.sum(axis=1) + 0.5 * rng.standard_normal(n)
    bad = slice(int(share * n))
    exog[bad, 1:] += 10
    endog[bad] = -20 + rng.standard_normal(len(endog[bad]))
    return endog, exog


def linreg(rng, n=40, k=10, share=0.2):
    """Return a regression on ones, about a fifth of whose noise is heavy-tailed."""
    exog = np.c_[np.ones(n), rng.uniform(-5, 5, (n, k - 1))]
    bad = rng.random(n) < share
    noise = np.where(bad, rng.standard_t(1.5, n), 0.25 * rng.standard_normal(n))
    return exog.sum(axis=1) + noise, exog
