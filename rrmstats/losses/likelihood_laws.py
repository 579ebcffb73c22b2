"""What a likelihood is made of: functions of its parameters, and the law of its responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rrmstats.core.entropy import Array

if TYPE_CHECKING:
    from rrmstats.losses.predictors import PredictorLikelihood

# Counts that are taken one by one; beyond, cells grow by this factor each.
ONE_BY_ONE, GROWTH = 150, 1.04
# Standard deviations, and counts more, within which a sum over counts runs.
REACH, MORE = 9.0, 25.0
# Nodes of a quadrature over probabilities, and how far out they go.
N_NODES, FARTHEST = 60, 3.0
# Steps of a golden section, which shrink an interval by 0.618 each.
GOLDEN_STEPS = 45
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


class Law(Protocol):
    """The distribution of the response of each row, given parameters."""

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return responses, and logarithms of what their densities count, (m, n) or (m, 1).

        The expectation of a function is its sum over these, times density and count, at theta and
        at parameters near it.
        """

    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-likelihoods of responses, shape (m, n)."""

    def slopes(self, theta: Array, y: Array, unit: Array) -> tuple[Array, Array | None]:
        """Return slopes in q predictors, (q, m, n), and those of these in theta, (q, n, k).

        The second is None where the predictors are theta; units of theta serve for differences.
        """


@dataclass(frozen=True, eq=False, kw_only=True)
class Likelihood:
    """A likelihood that is a sum over rows.

    Attributes
    ----------
    n_obs : int
    start : ndarray, shape (k,)
        Parameters within the domain: the maximum of the likelihood.
    log_likelihood : callable
        Takes theta (k,) and returns the log-likelihoods of the rows (n,).
    scores : callable or None
        Takes theta and returns their gradients (n, k).
    hessian : callable or None
        Takes theta and weights (n,) and returns the weighted sum of their Hessians (k, k).
    largest : callable or None
        Takes responses, shape (..., n), and returns the largest log-likelihood that each could
        have; None where it is not known.
    lower : ndarray, shape (k,), or None
        Least values of the parameters.
    endog : ndarray, shape (n,)
        Responses as `largest` and `law` take them.
    law : Law or None
        Distribution of the responses, where it is known.
    classes : bool
        Whether the responses are labels, which may have probability one.
    kinds : tuple of ndarray
        Masks of rows, each of which weights must keep a part of.
    closed : PredictorLikelihood or None
        Its closed form, where it has one.
    part : callable or None
        Takes rows and returns the likelihood of these; None where only the whole can be evaluated.
    """

    n_obs: int
    start: Array
    log_likelihood: Callable[[Array], Array]
    scores: Callable[[Array], Array] | None = None
    hessian: Callable[[Array, Array], Array] | None = None
    largest: Callable[[Array], Array] | None = None
    lower: Array | None = None
    endog: Array
    law: Law | None = None
    classes: bool = False
    kinds: tuple[np.ndarray, ...] = ()
    closed: PredictorLikelihood | None = None
    part: Callable[[np.ndarray], Likelihood | None] | None = None


def count_cells(mean: Array, spread: Array) -> tuple[Array, Array]:
    """Return counts that stand for all that are likely, and for how many each.

    Both have shape (m, n), or (m, 1) where they are the same for all rows. The first are taken one
    by one. Those further on stand for cells around them, ever wider, in which a distribution that
    has its spread further out is nearly linear.

    Parameters
    ----------
    mean, spread : ndarray, shape (n,)
        Means and standard deviations of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import poisson
    >>> from rrmstats.losses.likelihood_laws import count_cells
    >>> mean = np.array([0.5, 3000.0])
    >>> counts, widths = count_cells(mean, np.sqrt(mean))
    >>> (widths * poisson(mean).pmf(counts)).sum(axis=0).round(3)
    array([1., 1.])
    """
    # Outside the domain of the parameters, where differences may look, there are no moments.
    known = np.isfinite(mean) & np.isfinite(spread)
    mean, spread = np.where(known, mean, 0.0), np.where(known, spread, 0.0)
    low = np.floor(np.maximum(mean - REACH * spread, 0.0))
    length = float(np.max(mean + REACH * spread + MORE - low))
    widths = np.ones(min(ONE_BY_ONE, int(np.ceil(length)) + 1))
    if length > ONE_BY_ONE:
        # odd, so that a count is the middle of its cell
        growing = 1.0 + 2.0 * np.floor(0.5 * GROWTH ** np.arange(1000.0))
        needed = int(np.searchsorted(np.cumsum(growing), length - ONE_BY_ONE)) + 1
        widths = np.concatenate([widths, growing[:needed]])
    middles = np.cumsum(widths) - 0.5 * (widths + 1.0)
    if (low == low[0]).all():
        low = low[:1]
    return low + middles[:, None], widths[:, None]


def probability_nodes() -> tuple[Array, Array]:
    """Return probabilities in (0, 1) and their weights in a mean over them, shape (m,) each.

    The double exponential rule, which integrates what grows like a logarithm at the ends.

    Examples
    --------
    >>> from rrmstats.losses.likelihood_laws import probability_nodes
    >>> at, weight = probability_nodes()
    >>> import numpy as np
    >>> bool(abs(weight @ np.log(at) + 1) < 1e-8)
    True
    """
    t = np.linspace(-FARTHEST, FARTHEST, N_NODES)
    inner = 0.5 * np.pi * np.sinh(t)
    at = 1.0 / (1.0 + np.exp(-2.0 * inner))
    weight = np.cosh(t) / np.cosh(inner) ** 2
    return at, weight / weight.sum()


def highest(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the largest values of functions with one peak each, by golden sections.

    Parameters
    ----------
    function : callable
        Takes an array of the shape of `low` and returns one.
    low, high : ndarray
        Bounds within which the peaks lie.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.likelihood_laws import highest
    >>> peaks = np.array([1.0, 2.5])
    >>> highest(lambda t: peaks - (t - peaks) ** 2, np.zeros(2), np.full(2, 9.0)).round(6)
    array([1. , 2.5])
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(GOLDEN_STEPS):
        up = at_right > at_left
        low, high = np.where(up, left, low), np.where(up, high, right)
        new = np.where(up, low + GOLDEN * (high - low), high - GOLDEN * (high - low))
        at_new = function(new)
        left, right = np.where(up, right, new), np.where(up, new, left)
        at_left, at_right = np.where(up, at_right, at_new), np.where(up, at_new, at_left)
    return np.maximum(at_left, at_right)
