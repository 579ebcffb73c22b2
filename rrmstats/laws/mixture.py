"""Rows as the paper has them: good with a share 1 - eps, bad otherwise.

A row is apart (a false zero, or in a cluster) with probability z; otherwise it is wide with
probability e, and else good. Its density is ``(1 - z) ((1 - e) p + e q) + z h``. The equations of
its parameters weigh each row by its probability to be good, so that bad rows play no part in
those of theta, and any equation that good rows solve on average is solved by the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, log_expit

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good

# Least share of bad rows; none is another explanation.
LEAST_SHARE = 1e-6
# Share of bad rows of each kind from which a fit starts.
START_SHARE = 0.05
# Bounds of the logarithm of the odds of a row to be apart, and of its slope.
STEEPEST, FARTHEST = 20.0, 30.0
# Standard deviation of a normal prior of the slope, which keeps it finite where centers tell rows
# apart from others without error.
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
    own : ndarray, shape (m, n)
        What the probability to be good is multiplied by in the equations of its own parameters.
    rest : ndarray, shape (m,)
        What is added to these.
    """

    log_density: Array
    slopes: Array
    information: Array
    center: Array
    spread: Array
    own: Array
    rest: Array


class GoodLaw(Protocol):
    """The distribution of good rows."""

    @property
    def kind(self) -> Good:
        """What the good rows are like."""

    def start(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return its own parameters to start from, shape (m,)."""

    def rows(self, endog: Array, size: Array, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (q, n) and own parameters (m,)."""

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return own parameters nearer to the root of their equations under a mass (n,)."""

    @property
    def bounds(self) -> Bounds:
        """Least and largest its own parameters, shape (m,) each."""


class BadLaw(Protocol):
    """The distribution of bad rows, given what good ones would look like."""

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return its parameters to start from, shape (m,)."""

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows, shape (n,)."""

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return what the probability to be bad is multiplied by in its equations, (m, n)."""

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return parameters nearer to the root of the equations under a mass (n,)."""

    @property
    def bounds(self) -> Bounds:
        """Least and largest parameters, shape (m,) each."""


class Parameters(NamedTuple):
    """Parameters besides theta.

    Attributes
    ----------
    good : ndarray
        Those of the good rows.
    odds : ndarray, shape (0,), (1,) or (2,)
        Log-odds to be apart: a constant, and their slope in the log of the center.
    apart : ndarray
        Those of rows apart.
    share : ndarray, shape (0,) or (1,)
        Share of wide rows among those that are not apart.
    wide : ndarray
        Those of wide rows.
    """

    good: Array
    odds: Array
    apart: Array
    share: Array
    wide: Array

    def flat(self) -> Array:
        """Return all in one vector."""
        return np.concatenate(self)

    def like(self, flat: Array) -> Parameters:
        """Return the parameters of a vector."""
        return Parameters(*np.split(flat, np.cumsum([len(part) for part in self])[:-1]))


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
    """

    log_density: Array
    good: Array
    apart: Array
    wide: Array
    z: Array
    e: Array
    rows: GoodRows

    @property
    def bad_share(self) -> Array:
        """Share of bad rows at each row's predictors."""
        return self.z + (1.0 - self.z) * self.e


@dataclass(frozen=True, eq=False)
class Mixture:
    """An explanation of rows, as a distribution.

    Attributes
    ----------
    good : GoodLaw
    bad : Bad
        The name of what bad rows are like.
    n_extra : int
        Parameters besides theta and those that plain good rows have.
    eps_bar : float
        Largest share of bad rows.
    total : float
        Number of observations.
    apart, wide : BadLaw or None
    sloped : bool
        Whether the share of rows apart depends on the center of the good ones.
    middle : float
        Logarithm of a center at which the odds to be apart are their constant.
    full : bool
        Whether bad rows are as many as `eps_bar` allows, and no more because of it.
    """

    good: GoodLaw
    bad: Bad
    n_extra: int
    eps_bar: float
    total: float
    apart: BadLaw | None = None
    wide: BadLaw | None = None
    sloped: bool = False
    middle: float = 0.0
    full: bool = False

    def log_centers(self, rows: GoodRows) -> Array:
        """Return what the odds to be apart may depend on, shape (n,)."""
        return np.log(np.maximum(rows.center, np.finfo(float).tiny)) - self.middle

    def probabilities(
        self, endog: Array, size: Array, predictors: Array, at: Parameters
    ) -> Probabilities:
        """Return the rows at predictors (q, n) and parameters."""
        with np.errstate(all="ignore"):
            rows = self.good.rows(endog, size, predictors, at.good)
        none = np.zeros(len(endog))
        z = e = none
        parts = [rows.log_density]
        if self.wide is not None:
            e = none + at.share[0]
            parts[0] = parts[0] + np.log1p(-e)
            parts.append(np.log(e) + self.wide.log_density(endog, size, rows, at.wide))
        if self.apart is not None:
            odds = at.odds[0] + (at.odds[1] * self.log_centers(rows) if self.sloped else none)
            z = expit(odds)
            parts = [part + log_expit(-odds) for part in parts]
            parts.append(log_expit(odds) + self.apart.log_density(endog, size, rows, at.apart))
        density = parts[0]
        for part in parts[1:]:
            density = np.logaddexp(density, part)
        shares = [np.exp(part - density) for part in parts]
        apart = shares.pop() if self.apart is not None else none
        wide = shares.pop() if self.wide is not None else none
        return Probabilities(density, shares[0], apart, wide, z, e, rows)

    def equations(self, endog: Array, size: Array, found: Probabilities, at: Parameters) -> Array:
        """Return the equations of the parameters besides theta, shape (m, n)."""
        rows, own = found.rows, []
        own += list(found.good * rows.own + rows.rest[:, None])
        if self.apart is not None:
            off = found.bad_share - self.eps_bar if self.full else found.apart - found.z
            own.append(off)
            if self.sloped:
                slope = (found.apart - found.z) * self.log_centers(rows)
                own.append(slope - at.odds[1] / (PRIOR_SD**2 * self.total))
            own += list(found.apart * self.apart.equations(endog, size, rows, at.apart))
        if self.wide is not None:
            alone = self.full and self.apart is None
            off = found.wide - found.e * (1.0 - found.apart)
            own.append(found.bad_share - self.eps_bar if alone else off)
            own += list(found.wide * self.wide.equations(endog, size, rows, at.wide))
        return np.array(own).reshape(len(own), len(endog))

    @cached_property
    def bounds(self) -> Bounds:
        """Least and largest parameters besides theta, shape (m,) each."""
        none, odds = NO_BOUNDS, np.array([FARTHEST, STEEPEST])[: 1 + self.sloped]
        share = np.array([LEAST_SHARE]), np.array([self.eps_bar])
        pairs = [
            self.good.bounds,
            none if self.apart is None else (-odds, odds),
            none if self.apart is None else self.apart.bounds,
            none if self.wide is None else share,
            none if self.wide is None else self.wide.bounds,
        ]
        low, high = zip(*pairs, strict=True)
        return np.concatenate(low), np.concatenate(high)

    def bounded(self, at: Parameters) -> Parameters:
        """Return parameters within their bounds."""
        return at.like(np.clip(at.flat(), *self.bounds))

    def start(self, endog: Array, size: Array, predictors: Array) -> Parameters:
        """Return parameters to start from, at predictors (q, n)."""
        good = self.good.start(endog, size, predictors)
        with np.errstate(all="ignore"):
            rows = self.good.rows(endog, size, predictors, good)
        share = max(min(START_SHARE, 0.25 * self.eps_bar), LEAST_SHARE)
        none, odds = np.zeros(0), np.array([np.log(share / (1.0 - share))])
        return Parameters(
            good,
            none if self.apart is None else np.append(odds, np.zeros(int(self.sloped))),
            none if self.apart is None else self.apart.start(endog, rows),
            none if self.wide is None else np.array([share]),
            none if self.wide is None else self.wide.start(endog, rows),
        )

    def updated(
        self,
        at: Parameters,
        mass: Array,
        endog: Array,
        size: Array,
        found: Probabilities,
        predictors: Array,
    ) -> tuple[Mixture, Parameters]:
        """Return the parameters besides theta after a step, and whether bad rows are too many.

        Odds are those at the predictors (q, n) of the step.
        """
        rows = found.rows
        good = self.good.updated(at.good, mass * found.good, rows)
        odds, apart, share, wide = at[1:]
        if self.apart is not None:
            moved = self.good.rows(endog, size, predictors, at.good) if self.sloped else rows
            odds = self._new_odds(odds, mass, found, moved)
            apart = self.apart.updated(apart, mass * found.apart, endog, size, rows)
        if self.wide is not None:
            left = float(mass @ (1.0 - found.apart))
            share = np.array([max(float(mass @ found.wide) / left, LEAST_SHARE)])
            wide = self.wide.updated(wide, mass * found.wide, endog, size, rows)
        new = Parameters(good, odds, apart, share, wide)
        return self._within(self.bounded(new), mass, rows if self.apart is None else moved)

    def _new_odds(self, odds: Array, mass: Array, found: Probabilities, rows: GoodRows) -> Array:
        """Return the odds to be apart after a step of their logistic regression."""
        if not self.sloped:
            share = np.clip(mass @ found.apart / self.total, LEAST_SHARE, 1.0 - LEAST_SHARE)
            return np.array([np.log(share / (1.0 - share))])
        at, apart = self.log_centers(rows), found.apart

        def value(odds: Array) -> float:
            z = odds[0] + odds[1] * at
            gain = mass @ (apart * z + log_expit(-z))
            return float(gain) - 0.5 * odds[1] ** 2 / PRIOR_SD**2

        best = value(odds)
        for _ in range(ODDS_STEPS):
            step = self._odds_step(odds, mass, apart, at)
            for _ in range(HALVINGS):
                new = np.clip(odds + step, [-FARTHEST, -STEEPEST], [FARTHEST, STEEPEST])
                if (found_value := value(new)) >= best:
                    odds, best = new, found_value
                    break
                step = 0.5 * step
        return odds

    @staticmethod
    def _odds_step(odds: Array, mass: Array, apart: Array, at: Array) -> Array:
        """Return a step of Newton's method in the regression of odds on centers."""
        z = expit(odds[0] + odds[1] * at)
        spread, off = mass * z * (1.0 - z), mass * (apart - z)
        level, cross = float(spread.sum()) + LEAST_SHARE, float(spread @ at)
        slope = float(spread @ at**2) + PRIOR_SD**-2
        one, two = float(off.sum()), float(off @ at) - odds[1] / PRIOR_SD**2
        step = np.array([slope * one - cross * two, level * two - cross * one])
        return step / (level * slope - cross**2)

    def _within(self, at: Parameters, mass: Array, rows: GoodRows) -> tuple[Mixture, Parameters]:
        """Return parameters whose share of bad rows is at most `eps_bar`."""
        if self.apart is None and self.wide is None:
            return self, at
        e = at.share[0] if len(at.share) else 0.0
        slope = at.odds[1] * self.log_centers(rows) if self.sloped else np.zeros(len(mass))

        def share(shift: float, e: float) -> float:
            if self.apart is None:
                return e
            z = float(mass @ expit(at.odds[0] + slope - shift)) / self.total
            return z + (1.0 - z) * e

        found = share(0.0, e)
        full = found > self.eps_bar
        own = self if full == self.full else replace(self, full=full)
        if not full:
            return own, at
        if self.apart is None:
            return own, at._replace(share=np.array([self.eps_bar]))
        e *= self.eps_bar / found
        low, high = 0.0, 2.0 * FARTHEST
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if share(middle, e) > self.eps_bar else (low, middle)
        odds = at.odds - np.append(high, np.zeros(len(at.odds) - 1))
        shares = at.share if not len(at.share) else np.array([e])
        return own, at._replace(odds=odds, share=shares)
