"""How far out the rows are, and how good and bad ones are distributed there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rrmstats.core.entropy import Array


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedDistances:
    """Residuals or distances of the rows, with the densities of their explanation.

    Attributes
    ----------
    values : ndarray, shape (n,)
        Residuals or distances of the rows, or of the groups that have the weights.
    name : str
        What they are.
    densities : callable or None
        Return the densities of good and of bad rows at some values (m,), each times its share;
        None where they have no simple form.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> found = rrmstats.ols("log_light ~ log_te", stars).fit().explained_distances()
    >>> good, bad = found.densities(np.array([0.0, 30.0]))
    >>> found.name, bool(good[0] > bad[0])
    ('standardized residual', True)
    """

    values: Array
    name: str
    densities: Callable[[Array], tuple[Array, Array]] | None = None
