"""Rows as the paper has them: good with a share 1 - eps, bad otherwise.

A row is apart (a false zero, or in a cluster) with probability z; otherwise it is wide with
probability e, and else good. Its density is ``(1 - z) ((1 - e) p + e q) + z h``. The equations of
its parameters weigh each row by its probability to be good, so that bad rows play no part in
those of theta, and any equation that good rows solve on average is solved by the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.special import expit, log_expit, logit

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good

# Least share of bad rows; none is another explanation.
LEAST_SHARE = 1e-6
# Share of bad rows of each kind from which a fit starts.
START_SHARE = 0.05
# Bounds of the logarithm of the odds of a row to be apart, and of its slope.
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


class Parameters(NamedTuple):
    """Parameters of a mixture, each of shape (m,), or (m, n) where they are those of rows.

    Attributes
    ----------
    good : ndarray
        Those of the good rows.
    odds : ndarray
        Log-odds to be apart: none, a constant, or one and their slope in the log of the center.
    apart : ndarray
        Those of rows apart.
    share : ndarray
        Share of wide rows among those that are not apart, or none.
    wide : ndarray
        Those of wide rows.
    """

    good: Array
    odds: Array
    apart: Array
    share: Array
    wide: Array


class Probabilities(NamedTuple):
    """Rows under a mixture, each of shape (n,).

    Attributes
    ----------
    log_density : ndarray
    good, apart, wide : ndarray
        Probability of each row to be so, given its response.
    z, e : ndarray
        The same before it is known.
    rows : GoodRows
    at : Parameters
    """

    log_density: Array
    good: Array
    apart: Array
    wide: Array
    z: Array
    e: Array
    rows: GoodRows
    at: Parameters

    @property
    def bad_share(self) -> Array:
        """Share of bad rows at each row's predictors."""
        return self.z + (1.0 - self.z) * self.e


@dataclass(frozen=True, eq=False)
class BadRows:
    """What bad rows may look like.

    Attributes
    ----------
    kind : Bad
    apart, wide : BadLaw or None
    sloped : bool
        Whether the share of rows apart depends on the center of the good ones.
    parts : tuple of int
        Simpler ones before it: it is tried only where each of these is better than none.
    """

    kind: Bad
    apart: BadLaw | None = None
    wide: BadLaw | None = None
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
        Logarithm of a center at which the odds to be apart are their constant.
    full : bool
        Whether bad rows are as many as `eps_bar` allows, and no more because of it.
    """

    good: GoodLaw
    bad: BadRows
    eps_bar: float
    total: float
    middle: float
    full: bool = False

    def log_centers(self, rows: GoodRows) -> Array:
        """Return what the odds to be apart may depend on, shape (n,)."""
        return np.log(np.maximum(rows.center, np.finfo(float).tiny)) - self.middle

    @cached_property
    def _bounds(self) -> list[Bounds]:
        """Least and largest values of each of the `Parameters`."""
        none, odds = NO_BOUNDS, np.array([FARTHEST, STEEPEST])[: 1 + self.bad.sloped]
        return [
            self.good.bounds,
            none if self.bad.apart is None else (-odds, odds),
            none if self.bad.apart is None else self.bad.apart.bounds,
            none if self.bad.wide is None else (np.array([LEAST_SHARE]), np.array([self.eps_bar])),
            none if self.bad.wide is None else self.bad.wide.bounds,
        ]

    @cached_property
    def bounds(self) -> Bounds:
        """Least and largest parameters, shape (m,) each."""
        low, high = zip(*self._bounds, strict=True)
        return np.concatenate(low), np.concatenate(high)

    def parted(self, values: Array) -> Parameters:
        """Return parameters (m,) or (m, n) by what they belong to."""
        ends = np.cumsum([len(low) for low, _ in self._bounds])[:-1]
        return Parameters(*np.split(values, ends))

    def probabilities(self, endog: Array, size: Array, predictors: Array) -> Probabilities:
        """Return the rows at predictors (q + m, n), the last of which are the parameters."""
        q = len(predictors) - len(self.bounds[0])
        at = self.parted(predictors[q:])
        with np.errstate(all="ignore"):
            rows = self.good.rows(endog, size, predictors[:q], at.good)
        none = np.zeros(len(endog))
        z = e = none
        parts = [rows.log_density]
        if self.bad.wide is not None:
            e = at.share[0]
            parts[0] = parts[0] + np.log1p(-e)
            parts.append(np.log(e) + self.bad.wide.log_density(endog, size, rows, at.wide))
        if self.bad.apart is not None:
            odds = at.odds[0] + (at.odds[1] * self.log_centers(rows) if self.bad.sloped else 0.0)
            z = expit(odds)
            parts = [part + log_expit(-odds) for part in parts]
            parts.append(log_expit(odds) + self.bad.apart.log_density(endog, size, rows, at.apart))
        density = np.logaddexp.reduce(parts)
        shares = [np.exp(part - density) for part in parts]
        apart = shares.pop() if self.bad.apart is not None else none
        wide = shares.pop() if self.bad.wide is not None else none
        return Probabilities(density, shares[0], apart, wide, z, e, rows, at)

    def equations(self, endog: Array, size: Array, found: Probabilities) -> Array:
        """Return the equations of the parameters, shape (m, n)."""
        rows, at = found.rows, found.at
        own: list[Array] = [*(found.good * rows.own + rows.rest)]
        if self.bad.apart is not None:
            off = found.apart - found.z
            own.append(found.bad_share - self.eps_bar if self.full else off)
            if self.bad.sloped:
                prior = at.odds[1] / (PRIOR_SD**2 * self.total)
                own.append(off * self.log_centers(rows) - prior)
            own += [*(found.apart * self.bad.apart.equations(endog, size, rows, at.apart))]
        if self.bad.wide is not None:
            more = found.wide - found.e * (1.0 - found.apart)
            alone = self.full and self.bad.apart is None
            own.append(found.bad_share - self.eps_bar if alone else more)
            own += [*(found.wide * self.bad.wide.equations(endog, size, rows, at.wide))]
        return np.array(own).reshape(len(own), len(endog))

    def starts(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return parameters to start from, at predictors (q, n), shape (s, m)."""
        good = self.good.start(endog, size, predictors)
        with np.errstate(all="ignore"):
            own = np.repeat(good[:, None], len(endog), axis=1)
            rows = self.good.rows(endog, size, predictors, own)
        share = max(min(START_SHARE, 0.25 * self.eps_bar), LEAST_SHARE)
        found = [good]
        if self.bad.apart is not None:
            odds = np.array([logit(share), 0.0])[: 1 + self.bad.sloped]
            found += [odds, self.bad.apart.start(endog, rows)]
        if self.bad.wide is not None:
            found += [np.array([share]), self.bad.wide.start(endog, rows)]
        n_starts = max(len(np.atleast_2d(part)) for part in found)
        each = [np.broadcast_to(part, (n_starts, np.shape(part)[-1])) for part in found]
        return np.clip(np.concatenate(each, axis=1), *self.bounds)

    def updated(
        self, own: Array, mass: Array, endog: Array, size: Array, found: Probabilities
    ) -> tuple[Mixture, Array]:
        """Return the parameters after a step, and whether bad rows are too many."""
        rows, at = found.rows, self.parted(own)
        good = self.good.updated(at.good, mass * found.good, rows)
        odds, apart, share, wide = at[1:]
        if self.bad.apart is not None:
            odds = self._new_odds(odds, mass, found)
            apart = self.bad.apart.updated(apart, mass * found.apart, endog, size, rows)
        if self.bad.wide is not None:
            share = np.array([mass @ found.wide / (mass @ (1.0 - found.apart))])
            wide = self.bad.wide.updated(wide, mass * found.wide, endog, size, rows)
        return self._within(Parameters(good, odds, apart, share, wide), mass, rows)

    def _new_odds(self, odds: Array, mass: Array, found: Probabilities) -> Array:
        """Return the odds to be apart after a step of their logistic regression."""
        if not self.bad.sloped:
            share = np.clip(mass @ found.apart / self.total, LEAST_SHARE, 1.0 - LEAST_SHARE)
            return np.array([logit(share)])
        at = np.stack([np.ones(len(mass)), self.log_centers(found.rows)])
        limits, prior = np.array([FARTHEST, STEEPEST]), np.array([0.0, PRIOR_SD**-2])

        def value(odds: Array) -> float:
            gain = mass @ (found.apart * (odds @ at) + log_expit(-odds @ at))
            return float(gain - 0.5 * prior @ odds**2)

        for _ in range(ODDS_STEPS):
            z = expit(odds @ at)
            spread = (mass * z * (1.0 - z) * at) @ at.T + np.diag(prior + LEAST_SHARE)
            pull, best = at @ (mass * (found.apart - z)) - prior * odds, value(odds)
            step = np.linalg.solve(spread, pull)
            for length in 0.5 ** np.arange(HALVINGS):
                new = np.clip(odds + length * step, -limits, limits)
                if value(new) >= best:
                    odds = new
                    break
        return odds

    def _within(self, at: Parameters, mass: Array, rows: GoodRows) -> tuple[Mixture, Array]:
        """Return parameters whose share of bad rows is at most `eps_bar`."""
        at = self.parted(np.clip(np.concatenate(at), *self.bounds))
        e = at.share[0] if self.bad.wide is not None else 0.0
        slope = at.odds[1] * self.log_centers(rows) if self.bad.sloped else np.zeros(len(mass))

        def share(shift: float, e: float) -> float:
            if self.bad.apart is None:
                return e
            z = float(mass @ expit(at.odds[0] + slope - shift)) / self.total
            return z + (1.0 - z) * e

        found = share(0.0, e)
        full = found > self.eps_bar
        own = self if full == self.full else replace(self, full=full)
        if full and self.bad.apart is not None:
            e *= self.eps_bar / found
            low, high = 0.0, 2.0 * FARTHEST
            for _ in range(60):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if share(middle, e) > self.eps_bar else (low, middle)
            at.odds[0] -= high
            at.share[:] = e
        return own, np.concatenate(at)
