"""Rows as the paper has them: good with a share 1 - eps, bad otherwise.

Bad rows are of one kind or of two: a row is of the first with probability z, otherwise of the
second with probability e, and else good. Its density is ``z h + (1 - z) (e q + (1 - e) p)``. The
equations of its parameters weigh each row by its probability to be good, so that bad rows play no
part in those of theta, and any equation that good rows solve on average is solved by the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.special import expit, log_expit, logit

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.laws.together import Together

# Least share of bad rows; none is another explanation.
LEAST_SHARE = 1e-6
# Share of bad rows of each kind from which a fit starts.
START_SHARE = 0.05
# Bounds of the logarithm of the odds of a row to be bad, and of its slope.
STEEPEST, FARTHEST = 20.0, 30.0
# Standard deviation of a normal prior of the slope, which keeps it finite where centers tell rows
# apart from others without error. By `benchmarks/glm.py --part zeros` errors with 30 % of false
# zeros are 1.08 times those of the good rows with 2.5 or 5, 1.18 with 10, 1.36 without it.
PRIOR_SD = 5.0
# Steps of the regression of odds on centers in each step of EM, and how often one is halved.
ODDS_STEPS, HALVINGS = 2, 10


#: Least and largest parameters.
Bounds = tuple[Array, Array]
NO_BOUNDS: Bounds = (np.zeros(0), np.zeros(0))


class GoodRows(NamedTuple):
    """Good rows at some parameters.

    Attributes
    ----------
    log_density : ndarray, shape (n,)
    slopes : ndarray, shape (q, n)
        Its derivatives in the predictors.
    information : ndarray, shape (q, q, n)
        Minus its second derivatives, or what has their expectation.
    center, spread : ndarray, shape (n,)
        Where responses are and how they spread, in the units in which bad ones are far.
    own, rest : ndarray, shape (m, n)
        What the probability to be good is multiplied by in the equations of its own parameters,
        and what is added to these.
    """

    log_density: Array
    slopes: Array
    information: Array
    center: Array
    spread: Array
    own: Array
    rest: Array


class GoodLaw(Protocol):
    """The distribution of good rows; its own parameters may differ by row."""

    @property
    def kind(self) -> Good:
        """What the good rows are like."""

    @property
    def bounds(self) -> Bounds:
        """Least and largest its own parameters, shape (m,) each."""

    def start(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return its own parameters to start from, shape (m,)."""

    def rows(self, endog: Array, size: Array, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (q, n) and own parameters (m, n)."""

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return own parameters (m,) nearer to the root of their equations under a mass (n,)."""


class BadLaw(Protocol):
    """The distribution of bad rows, given what good ones would look like."""

    @property
    def bounds(self) -> Bounds:
        """Least and largest parameters, shape (m,) each."""

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return its parameters to start from, shape (m,), or (s, m) for several starts."""

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows at parameters (m, n), shape (n,)."""

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return what the probability to be bad is multiplied by in its equations, (m, n)."""

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return parameters (m,) nearer to the root of the equations under a mass (n,)."""


class NoParameters:
    """A distribution without parameters of its own."""

    bounds: ClassVar[Bounds] = NO_BOUNDS

    def start(self, *rows: Any) -> Array:
        """Return no parameters."""
        return np.zeros(0)

    def updated(self, own: Array, *rows: Any) -> Array:
        """Return no parameters."""
        return own

    def equations(self, endog: Array, *rows: Any) -> Array:
        """Return no equations."""
        return np.zeros((0, len(endog)))


class Part(NamedTuple):
    """Parameters of bad rows of one kind, shape (m,) each, or (m, n) where they are those of rows.

    Attributes
    ----------
    odds : ndarray
        Log-odds of rows to be so: a constant, and maybe their slope in the log of the center.
    own : ndarray
        Parameters of their distribution.
    """

    odds: Array
    own: Array


class Probabilities(NamedTuple):
    """Rows under a mixture, each of shape (n,).

    Attributes
    ----------
    log_density : ndarray
        That of its group, where rows are good or bad by groups.
    good : ndarray
        Probability of each row to be good, given its response.
    bad : ndarray, shape (c, n)
        Probability to be bad of each kind.
    z : ndarray, shape (c, n)
        The same before it is known, given that the row is of no kind before.
    rows : GoodRows
    at : list of Part
    """

    log_density: Array
    good: Array
    bad: Array
    z: Array
    rows: GoodRows
    at: list[Part]

    @property
    def bad_share(self) -> Array:
        """Share of bad rows at each row's predictors."""
        return 1.0 - np.prod(1.0 - self.z, axis=0)

    @property
    def left(self) -> Array:
        """Probability of each row not to be of a kind before, shape (c, n)."""
        return 1.0 - np.cumsum(self.bad, axis=0) + self.bad


@dataclass(frozen=True, eq=False)
class BadRows:
    """What bad rows may look like.

    Attributes
    ----------
    kind : Bad
    laws : tuple of BadLaw
        One for each kind.
    sloped : bool
        Whether the share of the first depends on the center of the good rows.
    parts : tuple of int
        Simpler ones before it: it is tried only where each of these is better than none.
    """

    kind: Bad
    laws: tuple[BadLaw, ...] = ()
    sloped: bool = False
    parts: tuple[int, ...] = ()


NO_BAD_ROWS = BadRows(Bad.NONE)


@dataclass(frozen=True, eq=False)
class Mixture:
    """An explanation of rows, as a distribution.

    Attributes
    ----------
    good : GoodLaw
    bad : BadRows
    eps_bar : float
        Largest share of bad rows.
    total : float
        Number of observations.
    middle : float
        Logarithm of a center at which the odds to be bad are their constant.
    together : Together
        Which rows are good or bad together.
    full : bool
        Whether bad rows are as many as `eps_bar` allows, and no more because of it.
    """

    good: GoodLaw
    bad: BadRows
    eps_bar: float
    total: float
    middle: float
    together: Together
    full: bool = False

    @cached_property
    def _bounds(self) -> list[Bounds]:
        """Least and largest values: of the good rows, and of odds and parameters of each kind."""
        found = [self.good.bounds]
        for j, law in enumerate(self.bad.laws):
            odds = np.array([FARTHEST, STEEPEST])[: 1 + (self.bad.sloped and j == 0)]
            found += [(-odds, odds), law.bounds]
        return found

    @cached_property
    def bounds(self) -> Bounds:
        """Least and largest parameters, shape (m,) each."""
        low, high = zip(*self._bounds, strict=True)
        return np.concatenate(low), np.concatenate(high)

    def parted(self, values: Array) -> tuple[Array, list[Part]]:
        """Return parameters (m,) or (m, n): of the good rows, and of each kind of bad ones."""
        ends = np.cumsum([len(low) for low, _ in self._bounds])[:-1]
        good, *rest = np.split(values, ends)
        return good, [Part(*rest[j : j + 2]) for j in range(0, len(rest), 2)]

    def log_centers(self, rows: GoodRows) -> Array:
        """Return what the odds to be bad may depend on, shape (n,)."""
        return np.log(np.maximum(rows.center, np.finfo(float).tiny)) - self.middle

    def _odds(self, odds: Array, rows: GoodRows) -> Array:
        """Return the log-odds of rows, shape (n,)."""
        return odds[0] + (odds[1] * self.log_centers(rows) if len(odds) > 1 else 0.0)

    def probabilities(self, endog: Array, size: Array, predictors: Array) -> Probabilities:
        """Return the rows at predictors (q + m, n), the last of which are the parameters."""
        q = len(predictors) - len(self.bounds[0])
        own, at = self.parted(predictors[q:])
        with np.errstate(all="ignore"):
            rows = self.good.rows(endog, size, predictors[:q], own)
        odds = np.array([self._odds(part.odds, rows) for part in at]).reshape(len(at), len(endog))
        left, parts = np.zeros(len(endog)), []
        for law, part, one in zip(self.bad.laws, at, odds, strict=True):
            density = law.log_density(endog, size, rows, part.own)
            parts.append(left + log_expit(one) + self.together.sums(density))
            left = left + log_expit(-one)
        parts.append(left + self.together.sums(rows.log_density))
        density = np.logaddexp.reduce(parts)
        found = np.exp(np.array(parts) - density)
        return Probabilities(density, found[-1], found[:-1], expit(odds), rows, at)

    def equations(self, endog: Array, size: Array, found: Probabilities) -> Array:
        """Return the equations of the parameters, shape (m, n)."""
        rows, off = found.rows, found.bad - found.z * found.left
        own: list[Array] = [found.good * rows.own + rows.rest]
        for j, (law, part) in enumerate(zip(self.bad.laws, found.at, strict=True)):
            own.append(
                found.bad_share[None] - self.eps_bar if self.full and j == 0 else off[j : j + 1]
            )
            if len(part.odds) > 1:
                prior = part.odds[1:] / (PRIOR_SD**2 * self.total)
                own.append(off[j] * self.log_centers(rows) - prior)
            own.append(found.bad[j] * law.equations(endog, size, rows, part.own))
        return np.concatenate(own)

    def starts(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return parameters to start from, at predictors (q, n), shape (s, m)."""
        good = self.good.start(endog, size, predictors)
        with np.errstate(all="ignore"):
            own = np.repeat(good[:, None], len(endog), axis=1)
            rows = self.good.rows(endog, size, predictors, own)
        share = max(min(START_SHARE, 0.25 * self.eps_bar), LEAST_SHARE)
        found = [good]
        for law, (low, _) in zip(self.bad.laws, self._bounds[1::2], strict=True):
            found += [np.array([logit(share), 0.0])[: len(low)], law.start(endog, rows)]
        n_starts = max(len(np.atleast_2d(part)) for part in found)
        each = [np.broadcast_to(part, (n_starts, np.shape(part)[-1])) for part in found]
        return np.clip(np.concatenate(each, axis=1), *self.bounds)

    def updated(
        self, own: Array, mass: Array, endog: Array, size: Array, found: Probabilities
    ) -> tuple[Mixture, Array]:
        """Return the parameters after a step, and whether bad rows are too many."""
        rows, (good, at) = found.rows, self.parted(own)
        new = [self.good.updated(good, mass * found.good, rows)]
        for j, (law, part) in enumerate(zip(self.bad.laws, at, strict=True)):
            if len(part.odds) > 1:
                odds = self._sloped_odds(part.odds, mass, found)
            else:
                share = mass @ found.bad[j] / (mass @ found.left[j])
                odds = logit(np.clip([share], LEAST_SHARE, 1.0 - LEAST_SHARE))
            new += [odds, law.updated(part.own, mass * found.bad[j], endog, size, rows)]
        return self._within(np.clip(np.concatenate(new), *self.bounds), mass, rows)

    def _sloped_odds(self, odds: Array, mass: Array, found: Probabilities) -> Array:
        """Return the odds to be bad of the first kind after steps of their logistic regression."""
        at, bad = np.stack([np.ones(len(mass)), self.log_centers(found.rows)]), found.bad[0]
        limits, prior = np.array([FARTHEST, STEEPEST]), np.array([0.0, PRIOR_SD**-2])

        def value(odds: Array) -> float:
            gain = mass @ (bad * (odds @ at) + log_expit(-odds @ at))
            return float(gain - 0.5 * prior @ odds**2)

        for _ in range(ODDS_STEPS):
            z = expit(odds @ at)
            spread = (mass * z * (1.0 - z) * at) @ at.T + np.diag(prior + LEAST_SHARE)
            step = np.linalg.solve(spread, at @ (mass * (bad - z)) - prior * odds)
            best = value(odds)
            for length in 0.5 ** np.arange(HALVINGS):
                new = np.clip(odds + length * step, -limits, limits)
                if value(new) >= best:
                    odds = new
                    break
        return odds

    def _within(self, own: Array, mass: Array, rows: GoodRows) -> tuple[Mixture, Array]:
        """Return parameters whose share of bad rows is at most `eps_bar`."""
        parts = self.parted(own)[1]
        odds = np.array([self._odds(part.odds, rows) + np.zeros(len(mass)) for part in parts])

        def share(shift: float) -> float:
            return 1.0 - float(mass @ np.prod(expit(shift - odds), axis=0)) / self.total

        full = len(parts) > 0 and share(0.0) > self.eps_bar
        if full:
            low, high = 0.0, 2.0 * FARTHEST
            for _ in range(60):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if share(middle) > self.eps_bar else (low, middle)
            for part in parts:  # views of all parameters
                part.odds[0] -= high
        return self if full == self.full else replace(self, full=full), own
