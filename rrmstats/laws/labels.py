r"""Labels of a logistic regression some of which were flipped.

A label that was 1 is flipped with probability :math:`f_1`, one that was 0 with :math:`f_0`:

.. math:: P(y = 1 \mid x) = (1 - f_1) p + f_0 (1 - p), \quad
          \mathrm{logit} f_1 = u_1 + b x'\beta, \quad \mathrm{logit} f_0 = u_0 - b x'\beta.

With steepness b = 0 labels flip at random, by class. With b > 0 they flip where the model is sure
of them. Without flips it is logistic regression. All of them are fitted with Jeffreys' prior for
the coefficients, and for each rate of flips: that of a share between 0 and its bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.linear import weighted_gram

# Smallest probability of a label.
TINY = 1e-300
# Expected gain of a step, in units of the log-likelihood, at which a fit has converged; and the
# one below which rounding may hide it.
CONVERGED, HIDDEN = 1e-12, 1e-7
# Smallest eigenvalue of a Hessian of unit diagonal that counts as positive.
CONCAVE = 1e-8
# Levenberg's damping: where it begins, and its growth and decline.
DAMPING, HARDER, SOFTER = 1e-2, 5.0, 0.1
# Part of what flips that move with the coefficients tell about these that errors count: a steep
# threshold lies among few rows, and all of it would make coefficients look better known than they
# are. Calibrated by the coverage of intervals in benchmarks/dirty_labels.py.
COUNTED = 0.5
# Leverage past which the influence of a row is not raised further.
LEVERAGE_MAX = 0.99


@dataclass(frozen=True, slots=True)
class Flips:
    """How labels are flipped.

    Attributes
    ----------
    ways : tuple of tuple of float, shape (2, d)
        What each of d rates adds to the log-odds of a flip of a 1, and of a 0.
    steepness : float
        How much the log-odds of a flip grow with those of the label.
    """

    ways: tuple[tuple[float, ...], tuple[float, ...]]
    steepness: float = 0.0

    @property
    def n_rates(self) -> int:
        """Number of rates."""
        return len(self.ways[0])

    @property
    def n_params(self) -> int:
        """Parameters besides the coefficients: rates, and the steepness and ends of sure flips."""
        return self.n_rates + (2 if self.steepness > 0 else 0)


NO_FLIPS = Flips(((), ()))
ONE_RATE = Flips(((1.0,), (1.0,)))
BY_CLASS = Flips(((1.0, 0.0), (0.0, 1.0)))
BOTH_ENDS, ONES, ZEROS = ((1.0,), (1.0,)), ((1.0,), (0.0,)), ((0.0,), (1.0,))


class Flipped(NamedTuple):
    """Probabilities of each row, shape (n,).

    Attributes
    ----------
    p, q : ndarray
        Of a true label of 1, and of 0.
    f1, g1, f0, g0 : ndarray
        That a label of 1 is flipped, and that it is not; likewise of 0.
    label, other : ndarray
        Of the label that was seen, and of the other.
    """

    p: Array
    q: Array
    f1: Array
    g1: Array
    f0: Array
    g0: Array
    label: Array
    other: Array


class Value(NamedTuple):
    """A law at some parameters.

    Attributes
    ----------
    z : ndarray, shape (k + d,)
        Coefficients and rates.
    penalized : float
        Log-likelihood with the prior; minus infinity where the share exceeds its bound.
    log_likelihood : float
    information : ndarray, shape (k, k)
        Of true labels.
    log_prior : float
        Jeffreys' prior of the coefficients: half the logarithm of its determinant.
    shares : ndarray, shape (d,)
        Expected share of the rows that each rate flips.
    """

    z: Array
    penalized: float
    log_likelihood: float
    information: Array
    log_prior: float
    shares: Array


@dataclass(frozen=True, slots=True, eq=False)
class LabelFit:
    """The end of a fit.

    Attributes
    ----------
    law : FlippedLabels
    value : Value
    converged : bool
    """

    law: FlippedLabels
    value: Value
    converged: bool

    @property
    def theta(self) -> Array:
        """Coefficients, shape (k,)."""
        return self.value.z[: self.law.n_coef]

    @property
    def eps(self) -> float:
        """Expected share of flipped labels."""
        return float(self.value.shares.sum())


@dataclass(frozen=True, eq=False)
class FlippedLabels:
    """The labels of some rows under a kind of flips.

    Attributes
    ----------
    endog : ndarray or BlockArray, shape (n,)
        Labels, 0 or 1.
    exog : ndarray or BlockArray, shape (n, k)
    counts : ndarray or BlockArray, shape (n,)
        How often each row counts.
    eps_bar : float
        Bound on the share of flipped labels.
    flips : Flips
    steps : int
        Newton steps that a fit may take.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.labels import NO_FLIPS, FlippedLabels
    >>> law = FlippedLabels(np.array([0.0, 1, 1, 1]), np.ones((4, 1)), np.ones(4), 0.1, NO_FLIPS)
    >>> bool(np.isclose(law.fit(np.zeros(1)).theta[0], np.log(3.5 / 1.5)))
    True
    """

    endog: Array
    exog: Array
    counts: Array
    eps_bar: float
    flips: Flips
    steps: int = 1000

    @property
    def n_coef(self) -> int:
        """Number of coefficients."""
        return int(self.exog.shape[1])

    @cached_property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return float(self.counts.sum())

    @cached_property
    def _spread_rates(self) -> Array:
        """Take coefficients and d rates to coefficients and both log-odds, (k + 2, k + d)."""
        k, d = self.n_coef, self.flips.n_rates
        spread = np.zeros((k + 2, k + d))
        spread[:k, :k] = np.eye(k)
        spread[k:, k:] = np.reshape(self.flips.ways, (2, d))
        return spread

    def offsets(self, z: Array) -> tuple[float, float]:
        """Return the log-odds of a flip of a 1, and of a 0, at even odds of the label."""
        rates = z[self.n_coef :]
        found = [float(np.dot(way, rates)) if any(way) else -np.inf for way in self.flips.ways]
        return found[0], found[1]

    def value(self, z: Array) -> Value:
        """Return the log-likelihood and its prior at coefficients and rates."""
        log_likelihood, information, by_class = row_sums(
            _values, self.endog, self.exog, self.counts, *self._arguments(z)
        )
        with np.errstate(divide="ignore"):  # singular: no start, or no way to go
            sign, log_det = np.linalg.slogdet(information)
        shares = by_class @ np.reshape(self.flips.ways, (2, -1)) / self.total
        room = 1.0 - float(shares.sum()) / self.eps_bar if len(shares) else 1.0
        penalized = -np.inf
        if sign > 0 and room > 0 and (shares > 0).all():
            prior = log_det + np.log(shares).sum() + np.log(room)
            penalized = float(log_likelihood + 0.5 * prior)
        return Value(
            z, penalized, float(log_likelihood), information, 0.5 * float(log_det), shares
        )

    def _arguments(self, z: Array) -> tuple[Array, float, float, float]:
        return (z[: self.n_coef], *self.offsets(z), self.flips.steepness)

    def slopes(
        self, at: Value, expected: bool = False, drift: float | None = None
    ) -> tuple[Array, Array]:
        """Return the gradient (k + d,) of `penalized`, and minus its Hessian (k + d, k + d).

        That of the prior is approximate: hat values are fixed, and the logarithms of the shares
        have no curvature. `expected` takes the expected one of the log-likelihood; `drift` is how
        the log-odds of flips move with the predictor, by default their steepness.
        """
        inverse = np.linalg.inv(at.information)
        score, hessian, by_class = row_sums(
            _slopes,
            self.endog,
            self.exog,
            self.counts,
            *self._arguments(at.z),
            inverse,
            self.flips.steepness if drift is None else drift,
            expected,
        )
        spread, k = self._spread_rates, self.n_coef
        gradient, hessian = spread.T @ score, spread.T @ hessian @ spread
        if self.flips.n_rates:
            shares = spread[k:, k:].T @ by_class @ spread / self.total
            room = self.eps_bar - float(at.shares.sum())
            toward = shares.sum(axis=0) / room
            gradient = gradient + 0.5 * ((1.0 / at.shares) @ shares - toward)
            hessian = hessian + 0.5 * np.outer(toward, toward)
        return gradient, hessian

    def fit(self, start: Array, steps: int | None = None) -> LabelFit:
        """Return the maximum of the penalized likelihood near coefficients and rates.

        Parameters
        ----------
        start : ndarray, shape (k + d,)
        steps : int, optional
            Newton steps, if fewer than usual. The expected Hessian takes over where it is not
            positive, and damping where a step does not climb.
        """
        here, damping, climbed = self.value(start), 0.0, None
        correction: Array = np.zeros((len(start), len(start)))
        for _ in range(self.steps if steps is None else min(steps, self.steps)):
            if not np.isfinite(here.penalized):
                break
            gradient, hessian = self.slopes(here)
            if climbed is not None:
                correction = corrected(correction, hessian, *climbed, gradient)
            step = damped(gradient, hessian + correction, damping)
            if step is None:
                step, correction = damped(gradient, hessian, damping), 0.0 * correction
            if step is None:
                gradient, hessian = self.slopes(here, expected=True)
            ahead, step, damping = self._climb(here, gradient, hessian, step, damping)
            gain = float(gradient @ step)
            if ahead is None:
                return LabelFit(self, here, gain <= HIDDEN)
            here, climbed = ahead, (step, gradient)
            if gain <= CONVERGED:
                return LabelFit(self, here, True)
        return LabelFit(self, here, False)

    def _climb(
        self, here: Value, gradient: Array, hessian: Array, step: Array | None, damping: float
    ) -> tuple[Value | None, Array, float]:
        """Return the end of a step that climbs, if there is one, the step, and its damping."""
        while True:
            if step is None:
                step = damped(gradient, hessian, damping, floor=True)
                assert step is not None
            gain = float(gradient @ step)
            ahead = self.value(here.z + step)
            if ahead.penalized > here.penalized or gain <= CONVERGED:
                return ahead, step, SOFTER * damping if damping > DAMPING else 0.0
            if not gain > HIDDEN:
                return None, step, damping
            damping, step = max(HARDER * damping, DAMPING), None

    def prob_bad(self, at: Value) -> Array:
        """Return the probability of each row that its label was flipped, shape (n,)."""
        return row_map(_prob_bad, self.endog, self.exog, *self._arguments(at.z))

    def bread(self, at: Value) -> Array:
        """Return the inverse of minus the Hessian, shape (k + d, k + d).

        The observed one where it is positive; flips move with the coefficients in part, see
        COUNTED.
        """
        drift = COUNTED * self.flips.steepness
        _, hessian = self.slopes(at, drift=drift)
        if damped(np.ones(len(hessian)), hessian, 0.0) is None:
            _, hessian = self.slopes(at, expected=True, drift=drift)
        return np.linalg.pinv(hessian, hermitian=True)

    def influence(self, at: Value) -> tuple[Array, Array, Array]:
        """Return influence functions of coefficients and of the share, and the prior's shift.

        An estimate moves by the sum of its influence functions over the rows. Flips move in them
        as in `bread`, and residuals have HC3's factors.

        Returns
        -------
        moves : ndarray, shape (n, k)
            Of the coefficients.
        share_moves : ndarray, shape (n,)
            Of the share of flipped labels.
        shift : ndarray, shape (k,)
            How far Jeffreys' prior moved the coefficients, to first order.
        """
        k, spread, bread = self.n_coef, self._spread_rates, self.bread(at)
        pull, by_class = row_sums(
            _pulls,
            self.endog,
            self.exog,
            self.counts,
            *self._arguments(at.z),
            np.linalg.inv(at.information),
        )
        shares = by_class.sum(axis=0) @ spread / self.total
        moved = row_map(
            _influence,
            self.endog,
            self.exog,
            *self._arguments(at.z),
            spread @ np.column_stack([bread[:, :k], bread @ shares]),
            spread @ bread @ spread.T,
            float(at.shares.sum()),
            self.total,
        )
        return moved[:, :k], moved[:, k], bread[:k, :k] @ pull


def damped(gradient: Array, hessian: Array, damping: float, floor: bool = False) -> Array | None:
    """Return Newton's step with Levenberg's damping; None where a Hessian is not positive.

    With `floor` its eigenvalues are raised to what counts as positive.
    """
    diagonal = np.abs(np.diag(hessian))
    unit = np.sqrt(np.maximum(diagonal, TINY))
    if not np.isfinite(hessian).all():
        return np.zeros_like(gradient) if floor else None
    scaled = hessian / np.outer(unit, unit) + damping * np.eye(len(unit))
    values, vectors = np.linalg.eigh(scaled)
    if values[0] < CONCAVE:
        if not floor:
            return None
        values = np.maximum(values, CONCAVE)
    return np.asarray(vectors @ (vectors.T @ (gradient / unit) / values) / unit)


def corrected(
    correction: Array, hessian: Array, step: Array, before: Array, gradient: Array
) -> Array:
    """Return what a Hessian lacks, as the change of gradients along a step tells.

    The symmetric update of rank one, so that ``(hessian + correction) @ step`` is the change.
    """
    lacking = before - gradient - (hessian + correction) @ step
    along = float(lacking @ step)
    if abs(along) <= CONCAVE * float(np.linalg.norm(lacking) * np.linalg.norm(step)):
        return correction
    return correction + np.outer(lacking, lacking) / along


def flipped(endog: Array, eta: Array, one: float, zero: float, steepness: float) -> Flipped:
    """Return the probabilities of rows at linear predictors."""
    p, q = odds_shares(eta)
    f1, g1 = odds_shares(one + steepness * eta)
    f0, g0 = odds_shares(zero - steepness * eta)
    one_seen, zero_seen = (np.maximum(g1 * p + f0 * q, TINY), np.maximum(f1 * p + g0 * q, TINY))
    label, other = np.where(endog == 1, (one_seen, zero_seen), (zero_seen, one_seen))
    return Flipped(p, q, f1, g1, f0, g0, label, other)


def odds_shares(log_odds: Array) -> tuple[Array, Array]:
    """Return the probabilities of what has given log-odds, and of its opposite."""
    small = np.exp(-np.abs(log_odds))
    large = 1.0 / (1.0 + small)
    small *= large
    positive = log_odds > 0
    return np.where(positive, large, small), np.where(positive, small, large)


def _values(
    endog: Array, exog: Array, counts: Array, theta: Array, one: float, zero: float, steep: float
) -> tuple[Array, ...]:
    """Return log-likelihood, information of true labels, and flips by class; sums over rows."""
    at = flipped(endog, exog @ theta, one, zero, steep)
    information = weighted_gram(exog, counts * at.p * at.q)
    by_class = np.array([counts @ (at.f1 * at.p), counts @ (at.f0 * at.q)])
    return counts @ np.log(at.label), information, by_class


def _prob_bad(
    endog: Array, exog: Array, theta: Array, one: float, zero: float, steep: float
) -> Array:
    at = flipped(endog, exog @ theta, one, zero, steep)
    return np.where(endog == 1, at.f0 * at.q, at.f1 * at.p) / at.label


def _firsts(at: Flipped, endog: Array, drift: float) -> Array:
    """Return derivatives of ln P(label) in the predictor and both log-odds, shape (3, n)."""
    by_one, by_zero = -at.f1 * at.g1 * at.p, at.f0 * at.g0 * at.q
    by_eta = (at.g1 - at.f0) * at.p * at.q + drift * (by_one - by_zero)
    return np.where(endog == 1, 1.0, -1.0) / at.label * np.stack([by_eta, by_one, by_zero])


def _seconds(at: Flipped, endog: Array, drift: float) -> Array:
    """Return second derivatives of P(label) over P(label), shape (3, 3, n)."""
    spread, r1, r0 = at.p * at.q, at.f1 * at.g1, at.f0 * at.g0
    one_one, zero_zero = -r1 * (at.g1 - at.f1) * at.p, r0 * (at.g0 - at.f0) * at.q
    eta_one, eta_zero = -r1 * spread + drift * one_one, -r0 * spread - drift * zero_zero
    eta_eta = (at.g1 - at.f0) * spread * (at.q - at.p) + drift * (
        drift * (one_one + zero_zero) + 2.0 * spread * (r0 - r1)
    )
    none = np.zeros_like(spread)
    rows = [[eta_eta, eta_one, eta_zero], [eta_one, one_one, none], [eta_zero, none, zero_zero]]
    return np.where(endog == 1, 1.0, -1.0) / at.label * np.array(rows)


def _expected(at: Flipped, firsts: Array) -> Array:
    """Return the expected information of each row, shape (3, 3, n)."""
    return firsts[:, None] * firsts[None, :] * (at.label / at.other)


def _slopes(
    endog: Array,
    exog: Array,
    counts: Array,
    theta: Array,
    one: float,
    zero: float,
    steep: float,
    inverse: Array,
    drift: float,
    expected: bool,
) -> tuple[Array, Array, Array]:
    """Return score and Hessian with Jeffreys' prior, and slopes of flips by class.

    In the coefficients and both log-odds of flips: shapes (k + 2,), (k + 2, k + 2), (2, k + 2).
    """
    k = exog.shape[1]
    at = flipped(endog, exog @ theta, one, zero, steep)
    firsts = _firsts(at, endog, drift)
    if expected:
        seconds = _expected(at, firsts)
    else:
        seconds = firsts[:, None] * firsts[None, :] - _seconds(at, endog, drift)
    seconds *= counts
    hat = counts * at.p * at.q * np.einsum("ni,ni->n", exog @ inverse, exog)
    score = np.empty(k + 2)
    score[:k] = (counts * firsts[0] + hat * (0.5 - at.p)) @ exog
    score[k:] = firsts[1:] @ counts
    hessian = np.empty((k + 2, k + 2))
    hessian[:k, :k] = weighted_gram(exog, seconds[0, 0] + hat * at.p * at.q)
    hessian[k:, :k] = seconds[0, 1:] @ exog
    hessian[:k, k:] = hessian[k:, :k].T
    hessian[k:, k:] = seconds[1:, 1:].sum(axis=-1)
    return score, hessian, _flip_slopes(at, exog, counts, drift)


def _flip_slopes(at: Flipped, exog: Array, counts: Array, drift: float) -> Array:
    """Return how the numbers of flipped ones and zeros move, shape (2, k + 2)."""
    k = exog.shape[1]
    by_one, by_zero = at.f1 * at.g1 * at.p, at.f0 * at.g0 * at.q
    spread = at.p * at.q
    slopes = np.zeros((2, k + 2))
    slopes[0, :k] = (counts * (at.f1 * spread + drift * by_one)) @ exog
    slopes[1, :k] = -(counts * (at.f0 * spread + drift * by_zero)) @ exog
    slopes[0, k], slopes[1, k + 1] = counts @ by_one, counts @ by_zero
    return slopes


def _pulls(
    endog: Array,
    exog: Array,
    counts: Array,
    theta: Array,
    one: float,
    zero: float,
    steep: float,
    inverse: Array,
) -> tuple[Array, Array]:
    """Return the pull of Jeffreys' prior (k,), and slopes of flips by class (2, k + 2)."""
    at = flipped(endog, exog @ theta, one, zero, steep)
    hat = counts * at.p * at.q * np.einsum("ni,ni->n", exog @ inverse, exog)
    return (hat * (0.5 - at.p)) @ exog, _flip_slopes(at, exog, counts, COUNTED * steep)


def _influence(
    endog: Array,
    exog: Array,
    theta: Array,
    one: float,
    zero: float,
    steep: float,
    moves: Array,
    bread: Array,
    eps: float,
    total: float,
) -> Array:
    """Return influence functions of coefficients and of the share of flips, shape (n, k + 1)."""
    at = flipped(endog, exog @ theta, one, zero, steep)
    firsts = _firsts(at, endog, COUNTED * steep)
    scores = np.column_stack([firsts[0][:, None] * exog, firsts[1], firsts[2]])
    information = np.einsum("ni,ij,nj->n", scores, bread, scores)
    leverage = np.minimum(information * at.label / at.other, LEVERAGE_MAX)
    moved = (scores / (1.0 - leverage)[:, None]) @ moves
    moved[:, -1] += (at.f1 * at.p + at.f0 * at.q - eps) / total
    return moved
