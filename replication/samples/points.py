"""Points for covariances and principal components; the bad ones come first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from replication.samples.parts import count_bad
from rrmstats.core.entropy import Array


def shifted_cluster(
    rng: np.random.Generator,
    n: int,
    cov: ArrayLike,
    share: float = 0.1,
    shift: ArrayLike = 8.0,
    center: ArrayLike = 0.0,
) -> Array:
    """Return Gaussian points of which the first are shifted together.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of points.
    cov : array_like, shape (d, d)
        Covariance; ``np.eye(d)`` in d dimensions.
    share : float, optional
        Share of shifted points.
    shift : float or array_like, shape (d,), optional
        Shift of these points.
    center : float or array_like, shape (d,), optional
        Mean of the others.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import shifted_cluster
    >>> data = shifted_cluster(np.random.default_rng(0), 200, np.eye(20), 0.1, 5.0)
    >>> data.shape, [round(float(part.mean())) for part in (data[:20], data[20:])]
    ((200, 20), [5, 0])
    """
    root = np.linalg.cholesky(np.asarray(cov, float))
    data = rng.standard_normal((n, len(root))) @ root.T + np.asarray(center, float)
    data[: count_bad(n, share)] += np.asarray(shift, float)
    return data


def other_subspace(
    rng: np.random.Generator,
    n: int = 200,
    d: int = 10,
    q: int = 2,
    share: float = 0.2,
    spread: float = 5.0,
    noise: float = 0.1,
) -> Array:
    """Return points near the first q axes, and the first of them near the next q axes.

    Good points have standard deviation 1 along their subspace.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of points.
    d : int, optional
        Dimension, at least ``2 * q``.
    q : int, optional
        Dimension of either subspace.
    share : float, optional
        Share of points near the other subspace.
    spread : float, optional
        Standard deviation of these points along it.
    noise : float, optional
        Standard deviation of all points off their subspace.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import other_subspace
    >>> data = other_subspace(np.random.default_rng(0), 1000, d=5)
    >>> data[:200].std(axis=0).round(), data[200:].std(axis=0).round()
    (array([0., 0., 5., 5., 0.]), array([1., 1., 0., 0., 0.]))
    """
    if d < 2 * q:
        raise ValueError(f"two subspaces of dimension q={q} need d >= {2 * q}, got d={d}")
    spreads = np.full((n, d), noise)
    bad = count_bad(n, share)
    spreads[bad:, :q] = 1.0
    spreads[:bad, q : 2 * q] = spread
    return spreads * rng.standard_normal((n, d))
