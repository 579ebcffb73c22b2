"""Rows as the paper has them: good with a share 1 - eps, bad otherwise.

Bad rows are of one kind or of two: a row is of the first with probability z, otherwise of the
second with probability e, and else good. Its density is ``z h + (1 - z) (e q + (1 - e) p)``. The
equations of its parameters weigh each row by its probability to be good, so that bad rows play no
part in those of theta, and any equation that good rows solve on average is solved by the mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.core.tolerances import TINY
from rrmstats.laws.rows import PredictorRows, Responses
from rrmstats.laws.together import BY_THEMSELVES, Together

# Least share of bad rows; none is another explanation.
LEAST_SHARE = 1e-6
# Bounds of the logarithm of the odds of a row to be bad, and of its slope.
FARTHEST, STEEPEST = 30.0, 20.0
# Standard deviation of a normal prior of the slope, which keeps it finite where centers tell rows
# apart from others without error. By `benchmarks/glm.py --part zeros` errors with 30 % of false
# zeros are 1.08 times those of the good rows with 2.5 or 5, 1.18 with 10, 1.36 without it.
# Convention: odds change by at most a factor of exp(5) or so.
PRIOR_SD = 5.0
# Largest change of a parameter in one step: of its logarithm, or relative to its size.
LONGEST = float(np.log(3.0))
#: Least and largest parameters.
Bounds = tuple[Array, Array]


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
    own : ndarray, shape (m, n), or (0, 1)
        What the probability to be good is multiplied by in the equations of its own parameters.
    rest : ndarray or float
        What is added to these.
    """

    log_density: Array
    slopes: Array
    information: Array
    center: Array
    spread: Array
    own: Array = np.zeros((0, 1))
    rest: Array | float = 0.0


class GoodLaw:
    """The distribution of good rows.

    By default it has no parameters of its own; one that is positive is fitted by scoring.

    Attributes
    ----------
    kind : Good
        What the good rows are like.
    bounds : Bounds
        Least and largest own parameters, shape (m,) each.
    """

    kind: Good = Good.PLAIN
    bounds: Bounds = (np.zeros(0), np.zeros(0))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return its own parameters to start from, shape (m,)."""
        return np.zeros(0)

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (q, n) and own parameters (m, 1)."""
        raise NotImplementedError

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return own parameters (m,) nearer to the root of their equations under a mass (n,)."""
        if not len(own):
            return own
        scores = np.where(mass > 0, rows.own, 0.0)[0] * own[0]
        spread = float(mass @ scores**2)
        step = float(mass @ scores) / spread if spread > 0 else 0.0
        return own * np.exp(np.clip(step, -LONGEST, LONGEST))


class BadLaw:
    """The distribution of bad rows, given what good ones would look like.

    By default it has no parameters.

    Attributes
    ----------
    bounds : Bounds
        Least and largest parameters, shape (m,) each.
    """

    bounds: Bounds = (np.zeros(0), np.zeros(0))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return its parameters to start from, shape (m,), or (s, m) for several starts."""
        return np.zeros(0)

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows at parameters (m, ..., 1), shape (..., n)."""
        raise NotImplementedError

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the derivatives of the log-densities in the parameters, shape (m, ..., n)."""
        return np.zeros((0, len(seen.endog)))

    def updated(self, own: Array, mass: Array, seen: Responses, rows: GoodRows) -> Array:
        """Return parameters (m,) nearer to the root of their equations under a mass (n,)."""
        if not len(own):
            return own
        return newton_step(partial(self.scores, seen, rows), own, mass, self.bounds)


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
    place : ndarray, shape (1 or 2, n)
        What the log-odds to be bad are linear in; see `Share`.
    odds : list of ndarray, shape (1 or 2, 1) each
        Their parameters for each kind of bad rows.
    own : list of ndarray, shape (m, 1) each
        Parameters of the distribution of each kind.
    """

    log_density: Array
    good: Array
    bad: Array
    z: Array
    rows: GoodRows
    place: Array
    odds: list[Array]
    own: list[Array]

    @property
    def bad_share(self) -> Array:
        """Share of bad rows at each row's predictors."""
        return 1.0 - np.prod(1.0 - self.z, axis=0)

    @property
    def left(self) -> Array:
        """Probability of each row not to be of a kind before, shape (c, n)."""
        return 1.0 - np.cumsum(self.bad, axis=0) + self.bad


class Share(Enum):
    """What the share of bad rows of the first kind depends on."""

    NOTHING = auto()
    CENTER = auto()  # the logarithm of the center of good rows
    FAR = auto()  # whether a row is far from the others in X


@dataclass(frozen=True, eq=False)
class BadRows:
    """What bad rows may look like.

    Attributes
    ----------
    kind : Bad
    laws : tuple of BadLaw
        One for each kind.
    share : Share
    parts : tuple of int
        Simpler ones before it: it is tried only where each of these is better than none.
    """

    kind: Bad
    laws: tuple[BadLaw, ...] = ()
    share: Share = Share.NOTHING
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
    together: Together = BY_THEMSELVES
    full: bool = False

    @cached_property
    def _bounds(self) -> list[Bounds]:
        """Least and largest values: of the good rows, and of odds and parameters of each kind."""
        limits, found = np.array([FARTHEST, STEEPEST]), [self.good.bounds]
        for j, law in enumerate(self.bad.laws):
            odds = limits[: 1 + (j == 0 and self.bad.share is not Share.NOTHING)]
            found += [(-odds, odds), law.bounds]
        return found

    @cached_property
    def bounds(self) -> Bounds:
        """Least and largest parameters, shape (m,) each."""
        low, high = zip(*self._bounds, strict=True)
        return np.concatenate(low), np.concatenate(high)

    @cached_property
    def _places(self) -> list[slice]:
        ends = np.cumsum([0, *(len(low) for low, _ in self._bounds)]).tolist()
        return [slice(*ends) for ends in pairwise(ends)]

    def parted(self, values: Array) -> tuple[Array, list[Array], list[Array]]:
        """Return parameters (m, ...) of the good rows, and odds and others of each kind."""
        good, *rest = (values[place] for place in self._places)
        return good, rest[::2], rest[1::2]

    def _place(self, seen: Responses, rows: GoodRows) -> Array:
        """Return what the log-odds to be bad are linear in, shape (1 or 2, n)."""
        ones = np.ones(len(seen.endog))
        if self.bad.share is Share.NOTHING:
            return ones[None]
        if self.bad.share is Share.FAR:
            return np.stack([ones, seen.far])
        return np.stack([ones, np.log(np.maximum(rows.center, TINY)) - self.middle])

    def probabilities(
        self, seen: Responses, predictors: Sequence[Array], rows: GoodRows | None = None
    ) -> Probabilities:
        """Return the rows at predictors, shape (n,) each, and then parameters, shape (1,).

        What they are like if good is given where it is known.
        """
        q = len(predictors) - len(self.bounds[0])
        good, odds, own = self.parted(np.array(predictors[q:]).reshape(-1, 1))
        if rows is None:
            with np.errstate(all="ignore"):
                rows = self.good.rows(seen, np.array(predictors[:q]), good)
        place = self._place(seen, rows)
        log_odds = _log_odds(place, odds)
        left, parts = np.zeros(len(seen.endog)), []
        for law, each, one in zip(self.bad.laws, own, log_odds, strict=True):
            log_density = law.log_density(seen, rows, each)
            parts.append(left + log_expit(one) + self.together.sums(log_density))
            left = left + log_expit(-one)
        parts.append(left + self.together.sums(rows.log_density))
        density = reduce(np.logaddexp, parts)
        found = np.exp(np.array(parts) - density)
        z = expit(log_odds)
        return Probabilities(density, found[-1], found[:-1], z, rows, place, odds, own)

    def equations(self, seen: Responses, found: Probabilities) -> Array:
        """Return the equations of the parameters, shape (m, n)."""
        rows, off = found.rows, found.bad - found.z * found.left
        every = [found.good * rows.own + rows.rest]
        for j, (law, odds, own) in enumerate(
            zip(self.bad.laws, found.odds, found.own, strict=True)
        ):
            scores = off[j] * found.place[: len(odds)] - self._prior[: len(odds)] * odds
            if self.full and j == 0:
                scores[0] = found.bad_share - self.eps_bar
            every += [scores, found.bad[j] * law.scores(seen, rows, own)]
        return np.concatenate(every)

    @property
    def _prior(self) -> Array:
        """Precisions of the priors of the constant and of the slope of log-odds, shape (2, 1)."""
        return np.array([[0.0], [PRIOR_SD**-2 / self.total]])

    def starts(self, seen: Responses, theta_predictors: Sequence[Array]) -> Array:
        """Return parameters to start from, at the predictors of theta, shape (s, m)."""
        predictors = np.array(theta_predictors)
        good = self.good.start(seen, predictors)
        with np.errstate(all="ignore"):
            rows = self.good.rows(seen, predictors, good[:, None])
        share = max(min(0.05, 0.25 * self.eps_bar), LEAST_SHARE)
        found = [good]
        for law, (low, _) in zip(self.bad.laws, self._bounds[1::2], strict=True):
            found += [np.array([logit(share), 0.0])[: len(low)], law.start(seen, rows)]
        n_starts = max(len(np.atleast_2d(part)) for part in found)
        each = [np.broadcast_to(part, (n_starts, np.shape(part)[-1])) for part in found]
        return np.clip(np.concatenate(each, axis=1), *self.bounds)

    def updated(
        self, own: Array, mass: Array, seen: Responses, found: Probabilities
    ) -> tuple[Mixture, Array]:
        """Return the parameters after a step, were it known which rows are good.

        The share of bad rows is at most `eps_bar`; the mixture knows whether because of that.
        """
        good, odds, parts = self.parted(own)
        new = [self.good.updated(good, mass * found.good, found.rows)]
        for j, law in enumerate(self.bad.laws):
            new.append(self._updated_odds(j, odds[j], mass, found))
            new.append(law.updated(parts[j], mass * found.bad[j], seen, found.rows))
        return self._within(np.clip(np.concatenate(new), *self.bounds), mass, found.place)

    def _updated_odds(self, j: int, odds: Array, mass: Array, found: Probabilities) -> Array:
        """Return the log-odds to be bad of a kind after a step of their logistic regression."""
        if len(odds) == 1:
            share = mass @ found.bad[j] / (mass @ found.left[j])
            return logit(np.clip([share], LEAST_SHARE, 1.0 - LEAST_SHARE))

        place, share, prior = found.place, found.z[j], self._prior
        pull = (place * (found.bad[j] - share) - prior * odds[:, None]) @ mass
        bend = (place**2 * (share * (1.0 - share)) + prior) @ mass
        limits = np.array([FARTHEST, STEEPEST])
        return np.clip(odds + np.clip(pull / bend, -LONGEST, LONGEST), -limits, limits)

    def _within(self, own: Array, mass: Array, place: Array) -> tuple[Mixture, Array]:
        """Return parameters whose share of bad rows is at most `eps_bar`."""
        odds = self.parted(own)[1]
        log_odds = _log_odds(place, odds)

        def excess(shift: float) -> float:
            good = float(mass @ np.prod(expit(shift - log_odds), axis=0)) / self.total
            return 1.0 - good - self.eps_bar

        full = len(odds) > 0 and excess(0.0) > 0
        if full:
            most = FARTHEST + max(FARTHEST, float(log_odds.max()))  # slopes may take odds further
            shift = float(brentq(excess, 0.0, most))
            for one in odds:  # views of all parameters
                one[0] -= shift
        return self if full == self.full else replace(self, full=full), own


def _log_odds(place: Array, odds: list[Array]) -> Array:
    """Return log-odds linear in a place, of each kind of bad rows, shape (c, n)."""
    found = [one.T @ place[: len(one)] for one in odds]
    return np.array(found).reshape(len(odds), place.shape[-1])


@dataclass(frozen=True, eq=False)
class Laws:
    """What rows may look like.

    Attributes
    ----------
    good : GoodLaw
        Good rows as the model has them.
    wider : GoodLaw or None
        Good rows that vary more.
    bad : tuple of BadRows
    lower : ndarray, shape (k,), or None
        Least values of theta.
    divisible : bool
        Whether some of the rows can be evaluated without the others.
    """

    good: GoodLaw
    wider: GoodLaw | None
    bad: tuple[BadRows, ...]
    lower: Array | None = None
    divisible: bool = True

    def mixture(
        self, rows: PredictorRows, eps_bar: float, bad: BadRows, wider: bool = False
    ) -> Mixture:
        """Return an explanation of rows."""
        good = self.wider if wider and self.wider is not None else self.good
        middle = float(np.log(max(float(np.mean(rows.seen.counts)), TINY)))
        together = BY_THEMSELVES if rows.groups is None else rows.together
        return Mixture(good, bad, eps_bar, rows.total, middle, together)


def newton_step(
    scores: Callable[[Array], Array], own: Array, mass: Array, bounds: Bounds
) -> Array:
    """Return parameters (m,) after a step of Newton's method: of their logarithms where positive.

    Parameters
    ----------
    scores : callable
        Takes parameters (m, p, 1) and returns the derivatives of log-densities, (m, p, n).
    own : ndarray, shape (m,)
    mass : ndarray, shape (n,)
        How often the rows count.
    bounds : Bounds
    """
    delta, n_steps = 1e-4, len(own)
    low, high = (end[:, None] for end in bounds)
    positive, here = low > 0, own[:, None]
    unit = np.where(positive, here, np.maximum(np.abs(here), 1.0))

    def moved(steps: Array) -> Array:
        return np.clip(np.where(positive, here * np.exp(steps), here + unit * steps), low, high)

    # Here, and a step along each parameter to both sides of it.
    around = moved(delta * np.hstack([np.zeros((n_steps, 1)), np.eye(n_steps), -np.eye(n_steps)]))
    found = scores(around[..., None]) * np.where(positive, around, unit)[..., None]
    pull = np.where((mass > 0) & np.isfinite(found), found, 0.0) @ mass
    above, below = pull[:, 1 : n_steps + 1], pull[:, n_steps + 1 :]
    bend = np.abs(np.diag(below - above)) / (2.0 * delta)
    step = pull[:, 0] / np.maximum(bend, TINY)
    return moved(np.clip(step, -LONGEST, LONGEST)[:, None])[:, 0]
