"""The samples of the paper's figures, and what is true of them."""

from __future__ import annotations

import numpy as np

from replication.samples.parts import Regression, count_bad, student_points
from rrmstats.core.entropy import Array

#: Plane that `separated_strip` has its labels from: constant, x1 and x2.
TRUE_PLANE = np.array([-1.0, 1.0, 1.0])
#: Axis of `noisy_line`.
TRUE_AXIS = np.array([1.0, 2.0]) / np.sqrt(5)
#: Covariance of the good rows of `correlated_points`.
TRUE_COV = np.array([[1.0, 0.8], [0.8, 1.0]])


def wrong_end(rng: np.random.Generator, n: int = 40, n_bad: int = 8) -> Regression:
    """Return a line with intercept 1 and slope 1 whose right end is far too low: figure 1.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows, sorted by x.
    n_bad : int, optional
        Number of bad rows; they are the last.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import wrong_end
    >>> endog, exog = wrong_end(np.random.default_rng(0))
    >>> bool(endog[-8:].max() < -4), bool(exog[-8, 1] > 2)
    (True, True)
    """
    x = np.sort(rng.uniform(-5, 5, n))
    y = 1 + x + 0.5 * rng.standard_normal(n)
    y[n - n_bad :] = -6 + rng.standard_normal(n_bad)
    return y, np.c_[np.ones(n), x]


def point_mass(
    rng: np.random.Generator,
    distance: float,
    n: int = 100,
    share: float = 0.2,
    sigma: float = 0.25,
    angle: float = -np.pi / 18,
) -> Regression:
    """Return a line of slope 1 through the origin, and rows that are all one point: figure 2.

    Parameters
    ----------
    rng : numpy.random.Generator
    distance : float
        Distance of the point from the origin.
    n : int, optional
        Number of rows.
    share : float, optional
        Share of rows at the point; they are the last.
    sigma : float, optional
        Standard deviation of the noise of the others.
    angle : float, optional
        Direction of the point, in radians from the x axis.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, 1)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import point_mass
    >>> endog, exog = point_mass(np.random.default_rng(0), 10.0)
    >>> print(f"{endog[80:].min():.2f} {exog[80:].max():.2f}")
    -1.74 9.85
    """
    x = rng.standard_normal(n)
    y = x + sigma * rng.standard_normal(n)
    bad = slice(n - count_bad(n, share), n)
    x[bad], y[bad] = distance * np.cos(angle), distance * np.sin(angle)
    return y, x[:, None]


def heavy_tailed_noise(
    rng: np.random.Generator, share: float = 0.2, df: float = 1.5, n: int = 40, k: int = 10
) -> Regression:
    """Return a regression on ones, a random share of whose noise has heavy tails: figure 3.

    Predictors are uniform on [-5, 5]. The noise has standard deviation 0.25, but follows
    Student's t distribution in a row with probability `share`.

    Parameters
    ----------
    rng : numpy.random.Generator
    share : float, optional
        Expected share of rows with heavy tails.
    df : float, optional
        Degrees of freedom of their noise.
    n, k : int, optional
        Numbers of rows, and of columns with the constant.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import heavy_tailed_noise
    >>> endog, exog = heavy_tailed_noise(np.random.default_rng(0), n=1000)
    >>> print(f"{(np.abs(endog - exog.sum(axis=1)) > 1).mean():.2f}")
    0.08
    """
    exog = np.c_[np.ones(n), rng.uniform(-5, 5, (n, k - 1))]
    noise = 0.25 * rng.standard_normal(n)
    heavy = rng.standard_t(df, n)
    return exog.sum(axis=1) + np.where(rng.random(n) < share, heavy, noise), exog


def separated_strip(
    rng: np.random.Generator, share: float = 0.05, n: int = 100, rho: float = 0.99
) -> Regression:
    """Return labels that the line x1 + x2 = 1 separates, but for a bad cluster: figure 4.

    Parameters
    ----------
    rng : numpy.random.Generator
    share : float, optional
        Share of rows with wrong labels, around (0.5, 1.25); they are the last.
    n : int, optional
        Number of rows.
    rho : float, optional
        Minus the correlation of x1 and x2 in the good rows, which lie along the line.

    Returns
    -------
    endog : ndarray, shape (n,)
        Zeros and ones.
    exog : ndarray, shape (n, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import separated_strip
    >>> labels, exog = separated_strip(np.random.default_rng(0))
    >>> np.flatnonzero((exog @ [-1, 1, 1] >= 0) != labels).tolist()
    [95, 96, 97, 98, 99]
    """
    bad = count_bad(n, share)
    spread = 0.25 * np.array([[1, -rho], [-rho, 1]])
    good = rng.multivariate_normal([0.5, 0.5], spread, n - bad)
    wrong = 0.1 * rng.standard_normal((bad, 2)) + [0.5, 1.25]
    labels = np.r_[(good.sum(axis=1) >= 1).astype(float), np.zeros(bad)]
    return labels, np.c_[np.ones(n), np.vstack([good, wrong])]


def noisy_line(rng: np.random.Generator, n: int = 40, share: float = 0.2) -> Array:
    """Return points near the line along (1, 2), but for heavy-tailed ones: figure 5.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of points.
    share : float, optional
        Expected share of points that have a t distribution around the origin instead.

    Returns
    -------
    ndarray, shape (n, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import noisy_line
    >>> data = noisy_line(np.random.default_rng(0), 1000)
    >>> print(f"{(np.abs(data @ [2, -1]) < 0.75).mean():.1f}")
    0.8
    """
    along = rng.standard_normal(n)
    good = np.c_[along, 2 * along + 0.25 * rng.standard_normal(n)]
    wrong = student_points(rng, n)
    return np.where(rng.random(n)[:, None] < share, wrong, good)


def correlated_points(rng: np.random.Generator, n: int = 50, share: float = 0.2) -> Array:
    """Return points of unit variance and correlation 0.8, some with heavy tails: figure 6.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of points.
    share : float, optional
        Expected share of points that have a t distribution with the same axes instead.

    Returns
    -------
    ndarray, shape (n, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import correlated_points
    >>> data = correlated_points(np.random.default_rng(0), 5000, 0.0)
    >>> print(f"{np.corrcoef(data.T)[0, 1]:.1f}")
    0.8
    """
    good, wrong = rng.standard_normal((n, 2)), student_points(rng, n)
    root = np.linalg.cholesky(TRUE_COV)
    return np.where(rng.random(n)[:, None] < share, wrong, good) @ root.T
