"""What a fit was asked for, in one object that reaches every search of every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.block_array import blocked
from rrmstats.core.entropy import Array, base_weights, check_eps_bar
from rrmstats.core.points import Budget

#: Defaults of `tol` and `maxiter`.
TOL, MAXITER = 1e-10, 1000
DEFAULT_SEED = 20200707


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
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

    Examples
    --------
    >>> from rrmstats.core import Setting
    >>> setting = Setting(eps_bar=0.2, n_starts=50, rng=1)
    >>> setting.eps_bar, setting.wnobs(100)
    (0.2, 100.0)
    """

    eps_bar: float
    freq_weights: Array | None = None
    n_starts: int | None = None
    rng: int | np.random.Generator | None = None
    tol: float = TOL
    maxiter: int = MAXITER
    accelerate: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps_bar", check_eps_bar(self.eps_bar))
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

    @property
    def generator(self) -> np.random.Generator:
        """The source of the random subsets."""
        return np.random.default_rng(DEFAULT_SEED if self.rng is None else self.rng)

    def budget(self, n: int) -> Budget:
        """Return the constraint on the weights of n rows."""
        return Budget(self.eps_bar, self.base(n), self.wnobs(n))
