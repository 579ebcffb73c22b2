"""Explanations fitted by EM, one step of scoring for the parameters in each iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Explanation, of_groups
from rrmstats.laws.mixture import GoodRows, Mixture, Probabilities
from rrmstats.laws.rows import Rows, design_gram, design_sums

# Gain of the log-likelihood in one step below which an explanation is known well enough to be
# compared with others, and the steps that it may take.
ENOUGH, MOST_STEPS = 1e-2, 60
# The same where theta is held, which only leads to a start.
START_ENOUGH, START_STEPS = 0.3, 20
# Multiple of the gain still to be expected, were steps to shrink as the last two did, within which
# a fit that is worth while must come.
HOPE = 5.0
# Largest change of a predictor in one step, in the root mean square over the good rows.
LONGEST = 1.0
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Fit:
    """An explanation at some parameters.

    Attributes
    ----------
    rows : Rows
    mixture : Mixture
    params : ndarray, shape (k + m,)
        Theta, then the parameters of the mixture.
    lower : ndarray, shape (k,), or None
        Least values of theta.
    good : GoodRows or None
        The rows were they good, where they are known at these parameters.
    """

    rows: Rows
    mixture: Mixture
    params: Array
    lower: Array | None = None
    good: GoodRows | None = None

    @property
    def theta(self) -> Array:
        """Parameters of the model, shape (k,)."""
        return self.params[: self.rows.n_params]

    @property
    def others(self) -> Array:
        """Parameters of the mixture, shape (m,)."""
        return self.params[self.rows.n_params :]

    @cached_property
    def found(self) -> Probabilities:
        """Densities of rows in memory, and their probabilities to be good."""
        predictors = self.rows.predictors(self.params)
        return self.mixture.probabilities(self.rows.seen, predictors, self.good)

    @cached_property
    def log_likelihood(self) -> float:
        """Log-likelihood of rows in memory; -inf where it is not defined."""
        value = float(self.rows.together.decisions @ self.found.log_density)
        return value if np.isfinite(value) else -np.inf

    @property
    def bic_gain(self) -> float:
        """Log-likelihood less Schwarz's penalty, up to a constant."""
        return self.log_likelihood - 0.5 * len(self.others) * float(np.log(self.rows.total))

    def explanation(self, n_plain: int) -> Explanation:
        """Return what is told of the fit; plain good rows have so many parameters of their own."""
        return Explanation(
            good=self.mixture.good.kind,
            bad=self.mixture.bad.kind,
            log_likelihood=self.log_likelihood,
            penalty=(len(self.others) - n_plain) * float(np.log(self.rows.total)),
            eps=float(self.rows.mass @ self.found.bad_share) / self.rows.total,
            prob_bad=of_groups(1.0 - self.found.good, self.rows.groups),
            theta=self.theta,
        )

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest values of all parameters."""
        low, high = self.mixture.bounds
        free = np.full(self.rows.n_params, np.inf)
        least = -free if self.lower is None else self.lower
        return np.concatenate([least, low]), np.concatenate([free, high])

    def moved(self, step: Array) -> Fit:
        """Return the fit at other parameters, within their bounds."""
        return replace(self, params=np.clip(self.params + step, *self.bounds), good=None)

    def stepped(self, held: bool = False) -> Fit:
        """Return the fit after one step of EM; theta may be held."""
        rows, found = self.rows, self.found
        theta = 0.0 * self.theta if held else self._theta_step(rows.mass * found.good)
        mixture, others = self.mixture.updated(self.others, rows.mass, rows.seen, found)
        new = self.moved(np.concatenate([theta, others - self.others]))
        same = held and not len(mixture.good.bounds[0])
        return replace(new, mixture=mixture, good=found.rows if same else None)

    def _theta_step(self, mass: Array) -> Array:
        """Return a step towards the weighted fit, at most as long as is safe."""
        good, designs = self.found.rows, self.rows.designs
        slopes = np.where(mass > 0, mass * good.slopes, 0.0)
        information = np.where(mass > 0, mass * good.information, 0.0)
        pull, bread = design_sums(designs, slopes), design_gram(designs, information)
        if self.lower is not None:
            held = (self.theta <= self.lower) & (pull <= 0)
            pull = np.where(held, 0.0, pull)
            bread = np.where(held[:, None] | held, np.diag(1.0 * held), bread)
        try:
            np.linalg.cholesky(bread)
        except np.linalg.LinAlgError:  # the outer products of the slopes take its place
            bread = design_gram(designs, np.where(mass > 0, slopes[:, None] * good.slopes, 0.0))
        step = np.linalg.lstsq(bread, pull, rcond=None)[0]
        change = self.rows.predictors(step) - self.rows.predictors(0.0 * step)
        longest = np.sqrt((change**2 @ mass).max() / max(mass.sum(), TINY))
        return step * min(1.0, LONGEST / max(float(longest), TINY))


def fitted(
    fit: Fit,
    steps: int = MOST_STEPS,
    enough: float = ENOUGH,
    held: bool = False,
    aim: float = -np.inf,
) -> Fit:
    """Return a fit after steps of EM, as long as they change the likelihood by enough.

    Parameters
    ----------
    fit : Fit
    steps : int, optional
        Number of steps at most.
    enough : float, optional
        Gain of the log-likelihood in one step that is worth another.
    held : bool, optional
        Whether theta is held.
    aim : float, optional
        The `bic_gain` below which the fit is of no interest: it stops where it cannot come there.
    """
    last = np.inf
    for _ in range(steps):
        new = fit.stepped(held)
        if not new.log_likelihood > -np.inf:
            break
        gain, fit = new.log_likelihood - fit.log_likelihood, new
        ahead = gain**2 / (last - gain) if 0 < gain < last else np.inf
        if abs(gain) < enough or fit.bic_gain + HOPE * ahead < aim:
            break
        last = gain
    return fit
