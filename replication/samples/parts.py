"""Parts that several samples are made of."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array

# What rounding may take from a share of the rows that is a whole number.
WHOLE = 1e-9

#: endog, shape (n,), and exog, shape (n, k).
Regression = tuple[Array, Array]


def count_bad(n: int, share: float) -> int:
    """Return how many of `n` rows are bad: a share of them, rounded down.

    Parameters
    ----------
    n : int
        Number of rows.
    share : float
        Share of bad rows, in [0, 1].

    Returns
    -------
    int

    Examples
    --------
    >>> from replication.samples import count_bad
    >>> count_bad(100, 0.29), count_bad(10, 0.19)
    (29, 1)
    """
    return int(share * n + WHOLE)


def normal_design(rng: np.random.Generator, n: int, k: int) -> Array:
    """Return a constant and standard normal predictors.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of rows.
    k : int
        Number of columns, the constant among them.

    Returns
    -------
    ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import normal_design
    >>> exog = normal_design(np.random.default_rng(0), 50, 3)
    >>> exog.shape, bool((exog[:, 0] == 1).all())
    ((50, 3), True)
    """
    return np.c_[np.ones(n), rng.standard_normal((n, k - 1))]


def student_points(rng: np.random.Generator, n: int, d: int = 2, df: float = 1.5) -> Array:
    """Return points of a spherical t distribution around the origin.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of points.
    d : int, optional
        Dimension.
    df : float, optional
        Degrees of freedom; with 2 or fewer there is no variance.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import student_points
    >>> data = student_points(np.random.default_rng(0), 1000)
    >>> data.shape, bool(np.abs(data).max() > 50)
    ((1000, 2), True)
    """
    return rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(df, n) / df)[:, None]
