"""Data of the problems that the tests and their properties are about."""

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


def logistic(rng, n, slopes=(0.0, 1.0)):
    """Return clean labels and their exog, with a constant."""
    exog = np.c_[np.ones(n), rng.standard_normal((n, len(slopes) - 1))]
    return (rng.random(n) < 1 / (1 + np.exp(-exog @ slopes))).astype(float), exog


def labelled_plane(rng, n=100, share=0.05):
    """Return labels that the line x1 + x2 = 1 separates, and exog; the last rows are wrong."""
    bad = n - int((1 - share) * n)
    spread = 0.25 * np.array([[1, -0.99], [-0.99, 1]])
    good = rng.multivariate_normal([0.5, 0.5], spread, n - bad)
    wrong = 0.1 * rng.standard_normal((bad, 2)) + [0.5, 1.25]
    labels = np.r_[(good.sum(axis=1) >= 1).astype(float), np.zeros(bad)]
    return labels, np.c_[np.ones(n), np.vstack([good, wrong])]


def _heavy(rng, n, d, df=1.5):
    return rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(df, n) / df)[:, None]


def line(rng, n=40, share=0.2):
    """Return points near the line along (1, 2), about a fifth of them heavy-tailed noise."""
    along = rng.standard_normal(n)
    good = np.c_[along, 2 * along + 0.25 * rng.standard_normal(n)]
    return np.where(rng.random(n)[:, None] < share, _heavy(rng, n, 2), good)


def ellipse(rng, n=50, share=0.2):
    """Return Gaussian points of correlation 0.8, about a fifth of them with heavy tails."""
    root = np.linalg.cholesky([[1, 0.8], [0.8, 1]])
    good, wrong = rng.standard_normal((n, 2)), _heavy(rng, n, 2)
    return np.where(rng.random(n)[:, None] < share, wrong, good) @ root.T
