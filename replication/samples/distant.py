"""Data whose first rows are bad in one of four ways, at a distance that can grow without bound."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from replication.samples.parts import Regression, count_bad, normal_design
from rrmstats.core.entropy import Array

Kind = Literal["vertical", "good leverage", "bad leverage", "cluster", "tight cluster"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Width of a tight cluster, relative to the good rows.
TIGHT = 0.1


def distant_regression(
    rng: np.random.Generator,
    kind: Kind,
    n: int = 200,
    params: ArrayLike = (1.0, 1.0, -0.5, 0.5),
    share: float = 0.2,
    distance: float = 10.0,
) -> Regression:
    """Return a regression with standard normal noise whose first rows are far out.

    Parameters
    ----------
    rng : numpy.random.Generator
    kind : {"vertical", "good leverage", "bad leverage", "cluster", "tight cluster"}
        Bad rows have responses shifted up; or predictors far out in all directions, with
        responses that obey the model or do not; or they are a cluster, with predictors as wide
        as those of the good rows, or a tenth as wide, and responses that do not obey the model.
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    share : float, optional
        Share of bad rows.
    distance : float, optional
        Distance of the bad rows. Responses that do not obey the model are -10 times as far.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import distant_regression
    >>> endog, exog = distant_regression(np.random.default_rng(0), "cluster", distance=1e3)
    >>> print(f"{endog[:40].mean():.0f} {exog[:40, 1].mean():.0f}")
    -10000 1000
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    noise = rng.standard_normal(n)
    bad = slice(count_bad(n, share))
    if kind in ("cluster", "tight cluster"):
        exog[bad, 1:] = distance + exog[bad, 1:] * (TIGHT if kind == "tight cluster" else 1.0)
    elif kind != "vertical":
        exog[bad, 1:] *= distance
    endog = exog @ params + noise
    if kind == "vertical":
        endog[bad] += distance
    elif kind != "good leverage":
        endog[bad] = -10 * distance + noise[bad]
    return endog, exog


def distant_points(
    rng: np.random.Generator,
    kind: Kind,
    n: int = 200,
    spread: ArrayLike = (3.0, 2.0, 0.5, 0.5),
    share: float = 0.2,
    distance: float = 10.0,
) -> Array:
    """Return Gaussian points with mean zero whose first rows are far out.

    Parameters
    ----------
    rng : numpy.random.Generator
    kind : {"vertical", "good leverage", "bad leverage", "cluster", "tight cluster"}
        Bad rows are shifted along the last axis; or far out along the first axis; or far out
        along all other axes; or a cluster, as wide as the good rows or a tenth as wide.
    n : int, optional
        Number of rows.
    spread : array_like, shape (d,), optional
        Standard deviations along the axes.
    share : float, optional
        Share of bad rows.
    distance : float, optional
        Distance of the bad rows.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import distant_points
    >>> data = distant_points(np.random.default_rng(0), "vertical", distance=1e3)
    >>> data[:40].mean(axis=0).round(-2) + 0.0
    array([   0.,    0.,    0., 1000.])
    """
    spread = np.asarray(spread, float)
    data = rng.standard_normal((n, len(spread))) * spread
    bad = slice(count_bad(n, share))
    if kind == "vertical":
        data[bad, -1] += distance
    elif kind == "good leverage":
        data[bad, 0] *= distance
    elif kind == "bad leverage":
        data[bad, 1:] *= distance
    else:
        data[bad] = distance + data[bad] * (TIGHT if kind == "tight cluster" else 1.0)
    return data
