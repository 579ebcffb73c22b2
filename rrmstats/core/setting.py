"""What a fit was asked for, in one object that reaches every search of every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from rrmstats.core.block_array import blocked
from rrmstats.core.entropy import Array, base_weights, check_eps_bar
from rrmstats.core.points import Budget

#: Refit under given weights (n,), from parameters (k,) near its minimum.
ThetaStep = Callable[[Array, Array], Array]

#: Defaults of `tol` and `maxiter`.
TOL, MAXITER = 1e-10, 1000


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The bound on the share of bad rows, the frequency weights and the options of the search.

    Attributes
    ----------
    eps_bar : float
        Upper bound on the share of bad rows, in [0, 1).
    freq_weights : ndarray, shape (n,), or None
        How often each observation counts; None where each counts once.
    n_starts : int or None
        Random subsets to start from; None for the default of the problem.
    rng : int, numpy.random.Generator or None
        Source of the random subsets; None for a fixed one.
    tol : float
        Size of the last step, in the metric of the risk; without acceleration, relative decrease
        of the risk.
    maxiter : int
        Iterations that a descent may take.
    accelerate : bool
        False takes only the steps of the paper's Algorithm 1.
    theta_step : callable or None
        The refit of Algorithm 1 when `accelerate` is False; None for the problem's own
        `weighted_fit`.
    stability : bool
        Whether results may compare the fit with one that has a larger bound.
    groups : ndarray of int, shape (n,), or None
        Number of the group of each row, for a second step of rows that are good or bad by whole
        groups; None where each row is by itself.

    Examples
    --------
    >>> from rrmstats.core import Setting
    >>> setting = Setting(0.2, n_starts=50, rng=1)
    >>> setting.eps_bar, setting.wnobs(100)
    (0.2, 100.0)
    """

    eps_bar: float
    _: KW_ONLY
    freq_weights: Array | None = None
    n_starts: int | None = None
    rng: int | np.random.Generator | None = None
    tol: float = TOL
    maxiter: int = MAXITER
    accelerate: bool = True
    theta_step: ThetaStep | None = None
    stability: bool = True
    groups: np.ndarray | None = None

    def __post_init__(self) -> None:
        check_eps_bar(self.eps_bar)
        for name, value in (("n_starts", self.n_starts), ("maxiter", self.maxiter)):
            if not (value is None or isinstance(value, int | np.integer)):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
        negative = self.maxiter < 0 or (self.n_starts is not None and self.n_starts < 0)
        if negative or not self.tol > 0:
            raise ValueError(
                "n_starts and maxiter must not be negative and tol must be positive, got "
                f"n_starts={self.n_starts}, maxiter={self.maxiter}, tol={self.tol:g}"
            )

    def wnobs(self, n: int) -> float:
        """Return the number of observations that n rows stand for."""
        return float(n if self.freq_weights is None else np.sum(self.freq_weights))

    def base(self, n: int) -> Array | None:
        """Return the frequency weights scaled to sum to one, or None where they are equal."""
        if self.freq_weights is not None and blocked(self.freq_weights):
            return self.freq_weights / self.freq_weights.sum()
        return base_weights(self.freq_weights, n)

    def spread(self, n: int) -> Array:
        """Return the weights of largest entropy, shape (n,)."""
        base = self.base(n)
        return np.broadcast_to(1.0 / n, (n,)) if base is None else base

    def counts(self, n: int) -> Array:
        """Return how often each of n rows counts, shape (n,)."""
        given = self.freq_weights
        if given is None:
            return np.broadcast_to(1.0, (n,))
        return given if blocked(given) else np.asarray(given, dtype=float)

    def budget(self, n: int) -> Budget:
        """Return the constraint on the weights of n rows."""
        return Budget(self.eps_bar, self.base(n), self.wnobs(n))
