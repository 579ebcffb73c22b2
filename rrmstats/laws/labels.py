r"""Labels of a logistic regression some of which were flipped.

A label that was 1 is flipped with probability :math:`f_1`, one that was 0 with :math:`f_0`:

.. math:: P(y = 1 \mid x) = (1 - f_1) p + f_0 (1 - p), \quad
          \mathrm{logit} f_1 = u_1 + b x'\beta, \quad \mathrm{logit} f_0 = u_0 - b x'\beta.

With steepness b = 0 labels flip at random, by class. With b > 0 they flip where the model is sure
of them. Without flips it is logistic regression.

Coefficients of predictors in units of their spread have Cauchy priors, so that fits stay finite
where labels are separated; that of the constant is flat. Shares of flipped labels have Jeffreys'
prior between 0 and their bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.special import gammaln

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.linear import weighted_gram

# Smallest probability of a label, and log-odds past which those of the opposite would be smaller.
TINY, MOST_LOG_ODDS = 1e-300, 690.0
# Expected gain of a step, in units of the log-likelihood, at which a fit has converged; and the
# one below which rounding may hide it.
CONVERGED, HIDDEN = 1e-12, 1e-7
# Smallest curvature, relative to that of the parameters one by one, that a step relies on.
FLAT = 1e-8
# Scale of the Cauchy prior of a slope whose predictor has standard deviation one: the default of
# Gelman, Jakulin, Pittau and Su (2008), which is 2.5 for a standard deviation of one half.
PRIOR_SCALE = 1.25
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
    def classes(self) -> tuple[int, ...]:
        """Which of `ways` flip any labels: 0 for those of 1, 1 for those of 0."""
        return tuple(i for i, way in enumerate(self.ways) if any(way))

    @property
    def chain(self) -> Array:
        """Derivatives of the log-odds of flips of `classes` in the rates, shape (m, d)."""
        return np.reshape([self.ways[i] for i in self.classes], (len(self.classes), self.n_rates))

    @property
    def n_params(self) -> int:
        """Parameters besides the coefficients: rates, and the steepness and ends of sure flips."""
        return self.n_rates + (2 if self.steepness > 0 else 0)


NO_FLIPS = Flips(((), ()))
BOTH_ENDS, ONES, ZEROS = ((1.0,), (1.0,)), ((1.0,), (0.0,)), ((0.0,), (1.0,))
ONE_RATE, BY_CLASS = Flips(BOTH_ENDS), Flips(((1.0, 0.0), (0.0, 1.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Odds:
    """Log-odds of labels and of their flips: what the rows have in common.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        Coefficients.
    rates : ndarray, shape (d,)
    flips : Flips
    fixed : bool
        Whether derivatives take the flips not to move with the coefficients.
    """

    theta: Array
    rates: Array
    flips: Flips
    fixed: bool

    def of(self, endog: Array, exog: Array, offset: Array | float) -> Flipped:
        """Return the probabilities of some rows."""
        eta, steepness = exog @ self.theta + offset, self.flips.steepness
        p, q = odds_shares(eta)
        flips: list[Any] = [0.0, 1.0, 0.0, 1.0]
        for i in self.flips.classes:
            log_odds = np.dot(self.flips.ways[i], self.rates) + (1 - 2 * i) * steepness * eta
            flips[2 * i : 2 * i + 2] = odds_shares(log_odds)
        f1, g1, f0, g0 = flips
        one, zero, is_one = g1 * p + f0 * q, f1 * p + g0 * q, endog == 1
        label, other = np.where(is_one, one, zero), np.where(is_one, zero, one)
        label, other = np.maximum(label, TINY), np.maximum(other, TINY)
        return Flipped(p, q, f1, g1, f0, g0, label, other)

    def slopes(self, endog: Array, exog: Array, offset: Array | float) -> tuple[Flipped, Slopes]:
        """Return the probabilities of some rows, and derivatives of that of their labels."""
        at = self.of(endog, exog, offset)
        drift = 0.0 if self.fixed else self.flips.steepness
        return at, at.slopes(endog, self.flips.classes, drift)


class Flipped(NamedTuple):
    """Probabilities of each row, shape (n,).

    Attributes
    ----------
    p, q : ndarray
        Of a true label of 1, and of 0.
    f1, g1, f0, g0 : ndarray or float
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

    def slopes(self, endog: Array, classes: Sequence[int], drift: float) -> Slopes:
        """Return derivatives of ln P(label), and of the probabilities of flips.

        Parameters
        ----------
        endog : ndarray, shape (n,)
        classes : sequence of int
            Of the m kinds of flips that there are; see `Flips.classes`.
        drift : float
            How much the log-odds of flips move with those of the label.
        """
        p, q, f1, g1, f0, g0, label, _ = self
        m, n, is_one, both = len(classes), len(p), endog == 1, p * q
        flips, pairs = np.empty((m, 3, n)), np.empty((m, 3, n))
        first, second = np.empty((1 + m, n)), np.empty((1 + m, 1 + m, n))
        signed = np.where(is_one, 1.0, -1.0) / label
        seen = np.zeros((2, 2, n))  # derivatives of the probabilities to see a 1, and a 0, in eta
        for i, (f, g, own, slope) in enumerate([(f1, g1, p, q), (f0, g0, q, -p)]):
            b = (1 - 2 * i) * drift if i in classes else 0.0
            slope, bend = slope - b * f, both + b**2 * f * g
            seen[i] += g * own * slope, g * own * (slope**2 - bend)
            if i not in classes:
                continue
            j, sign, turn = classes.index(i), 2.0 * i - 1.0, slope + b
            flips[j] = f * own, f * own * turn, f * own * g
            pairs[j, 0] = flips[j, 0] * (turn**2 - bend)
            pairs[j, 1:] = flips[j, 2] * (turn - b * f), flips[j, 2] * (g - f)
            seen[1 - i] += flips[j, 1], pairs[j, 0]
            first[1 + j] = sign * signed * flips[j, 2]
            second[0, 1 + j], second[1 + j, 1 + j] = sign * signed * pairs[j, 1:]
        first[0], second[0, 0] = np.where(is_one, *seen) / label
        for i in range(1 + m):
            for j in range(i, 1 + m):
                mixed = 0.0 if 0 < i < j else second[i, j]
                second[i, j] = second[j, i] = mixed - first[i] * first[j]
        return Slopes(first, second, flips, pairs)


class Slopes(NamedTuple):
    """Derivatives of each row, in eta and the log-odds of each of m kinds of flips.

    Attributes
    ----------
    first, second : ndarray, shapes (1 + m, n) and (1 + m, 1 + m, n)
        Of ln P(label).
    flips : ndarray, shape (m, 3, n)
        The probability of each flip, and its derivatives in eta and its own log-odds.
    pairs : ndarray, shape (m, 3, n)
        Its second derivatives: in eta twice, in both, and in its log-odds twice.
    """

    first: Array
    second: Array
    flips: Array
    pairs: Array


class Value(NamedTuple):
    """A law at some parameters.

    Attributes
    ----------
    z : ndarray, shape (k + d,)
        Coefficients and rates.
    penalized : float
        Log-likelihood with the priors; minus infinity where the share exceeds its bound.
    log_likelihood, log_prior : float
        Of the labels, and of the coefficients.
    gradient, hessian : ndarray, shapes (k + d,) and (k + d, k + d)
        Derivatives of `penalized`.
    shares : ndarray, shape (d,)
        Expected share of the rows that each rate flips.
    share_slopes : ndarray, shape (d, k + d)
        Its derivatives.
    """

    z: Array
    penalized: float
    log_likelihood: float
    log_prior: float
    gradient: Array
    hessian: Array
    shares: Array
    share_slopes: Array


@dataclass(frozen=True, eq=False)
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
    def mirrored(self) -> bool:
        """Whether most of the labels of a class are wrong; rows in memory.

        Then the classes have changed places: the same rows, and the opposite coefficients.
        """
        law, bad = self.law, self.prob_bad()
        wrong = [
            float(law.counts[rows] @ bad[rows]) > 0.5 * float(law.counts[rows].sum())
            for rows in (law.endog == 0, law.endog == 1)
        ]
        return any(wrong)

    @property
    def eps(self) -> float:
        """Expected share of flipped labels."""
        return float(self.value.shares.sum())

    @cached_property
    def variance(self) -> Array:
        """Covariance of coefficients and rates under the law, shape (k + d, k + d).

        Flips do not move with the coefficients in it: a steep threshold lies among few rows, and
        what they tell would make coefficients look better known than they are.
        """
        fixed = self.law.value(self.value.z, fixed=True)
        return np.linalg.pinv(-fixed.hessian, hermitian=True)

    @property
    def log_evidence(self) -> float:
        """Logarithm of the probability of the labels, up to what all kinds of flips share.

        By Laplace's method, in coefficients and the logistic coordinates of the shares, where
        Jeffreys' prior is Dirichlet's with exponents one half.
        """
        at, d, eps_bar = self.value, self.law.flips.n_rates, self.law.eps_bar
        sign, curvature = np.linalg.slogdet(-at.hessian)
        if not self.converged or sign <= 0:
            return -np.inf
        parts = np.log(np.append(at.shares, eps_bar - self.eps) / eps_bar).sum() if d else 0.0
        by_rates = np.linalg.slogdet(at.share_slopes[:, self.law.n_coef :] / eps_bar)[1]
        constant = gammaln(0.5 * (d + 1)) - 0.5 * np.log(np.pi) + 0.5 * d * np.log(2.0)
        fitted = at.log_likelihood + at.log_prior
        return float(fitted + constant - 0.5 * parts + by_rates - 0.5 * curvature)

    def influence(self) -> tuple[Array, Array, Array]:
        """Return influence functions of coefficients and of the share, and the prior's shift.

        An estimate moves by the sum of its influence functions over the rows. Flips move in them
        as in `variance`, and residuals have HC3's factors.

        Returns
        -------
        moves : ndarray, shape (n, k)
            Of the coefficients.
        share_moves : ndarray, shape (n,)
            Of the share of flipped labels.
        shift : ndarray, shape (k,)
            How far the prior moved the coefficients, to first order.
        """
        law, k = self.law, self.law.n_coef
        at = law.value(self.value.z, fixed=True)
        to_share = self.variance @ at.share_slopes.sum(axis=0)
        moved = row_map(
            _influence,
            law.endog,
            law.exog,
            law.offset,
            law.odds(at.z, fixed=True),
            self.variance,
            np.column_stack([self.variance[:, :k], to_share]),
            self.eps,
            law.total,
        )
        pull = log_priors(law.units @ self.theta)[1] @ law.units
        return moved[:, :k], moved[:, k], self.variance[:k, :k] @ pull

    def prob_bad(self) -> Array:
        """Return the probability of each row that its label was flipped, shape (n,)."""
        law = self.law
        return row_map(_prob_bad, law.endog, law.exog, law.offset, law.odds(self.value.z))


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
    units : ndarray, shape (m, k)
        Takes coefficients to those of predictors in units of their spread, which have priors.
    eps_bar : float
        Bound on the share of flipped labels.
    flips : Flips
    steps : int
        Newton steps that a fit may take.
    offset : ndarray or BlockArray, shape (n,), or float
        Added to the linear predictor.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.labels import NO_FLIPS, FlippedLabels
    >>> labels, one = np.array([0.0, 1, 1, 1]), np.ones((4, 1))
    >>> law = FlippedLabels(labels, one, np.ones(4), np.zeros((1, 1)), 0.1, NO_FLIPS)
    >>> bool(np.isclose(law.fit(np.zeros(1)).theta[0], np.log(3)))
    True
    """

    endog: Array
    exog: Array
    counts: Array
    units: Array
    eps_bar: float
    flips: Flips
    steps: int = 1000
    offset: Array | float = 0.0

    @property
    def n_coef(self) -> int:
        """Number of coefficients."""
        return int(self.exog.shape[1])

    @cached_property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return float(self.counts.sum())

    @cached_property
    def _to_rates(self) -> Array:
        """Derivatives of coefficients and log-odds of flips in coefficients and rates."""
        return block_diag(np.eye(self.n_coef), self.flips.chain)

    def odds(self, z: Array, fixed: bool = False) -> Odds:
        """Return the log-odds that coefficients and rates stand for."""
        return Odds(z[: self.n_coef], z[self.n_coef :], self.flips, fixed)

    def value(self, z: Array, fixed: bool = False) -> Value:
        """Return the penalized log-likelihood at coefficients and rates, and its derivatives.

        With `fixed` they take the flips not to move with the coefficients.
        """
        k, chain = self.n_coef, self.flips.chain
        (log_likelihood, *flipped), gradients, hessians = row_sums(
            _sums, self.endog, self.exog, self.counts, self.offset, self.odds(z, fixed)
        )
        gradients = gradients @ self._to_rates
        hessians = self._to_rates.T @ hessians @ self._to_rates
        log_prior, pull, curvature = log_priors(self.units @ z[:k])
        gradients[0, :k] += pull @ self.units
        hessians[0, :k, :k] += weighted_gram(self.units, curvature)
        ways = chain.T / self.total
        shares, slopes = ways @ np.array(flipped), ways @ gradients[1:]
        curvatures = np.tensordot(ways, hessians[1:], 1)
        found = log_likelihood + log_prior, gradients[0], hessians[0]
        for each in zip(shares, slopes, curvatures, strict=True):
            found = _with_log(*found, *each)
        if len(shares):
            room = self.eps_bar - shares.sum()
            found = _with_log(*found, room, -slopes.sum(axis=0), -curvatures.sum(axis=0))
        return Value(
            z, float(found[0]), float(log_likelihood), log_prior, *found[1:], shares, slopes
        )

    def fit(self, start: Array, steps: int | None = None) -> LabelFit:
        """Return the maximum of the penalized likelihood near coefficients and rates.

        Newton's method, uphill also where the likelihood is not concave, with halved steps.

        Parameters
        ----------
        start : ndarray, shape (k + d,)
        steps : int, optional
            Newton steps, if fewer than usual.
        """
        return self.fit_from(self.value(start), steps)

    def fit_from(self, here: Value, steps: int | None = None) -> LabelFit:
        """Return the maximum near parameters whose value is known; see `fit`."""
        for _ in range(self.steps if steps is None else min(steps, self.steps)):
            if not np.isfinite(here.penalized):
                break
            step = uphill(here.gradient, here.hessian)
            gain = float(here.gradient @ step)
            while True:
                ahead = self.value(here.z + step)
                if ahead.penalized > here.penalized or gain <= CONVERGED:
                    break
                if gain <= HIDDEN:
                    return LabelFit(self, here, True)
                step, gain = 0.5 * step, 0.5 * gain
            here = ahead
            if gain <= CONVERGED:
                return LabelFit(self, here, True)
        return LabelFit(self, here, False)


def _with_log(
    value: float, gradient: Array, hessian: Array, share: float, slope: Array, curvature: Array
) -> tuple[float, Array, Array]:
    """Return a function and its derivatives with half the logarithm of a share added."""
    if not share > 0:
        return -np.inf, gradient, hessian
    slope = slope / share
    added = curvature / share - np.outer(slope, slope)
    return value + 0.5 * np.log(share), gradient + 0.5 * slope, hessian + 0.5 * added


def log_priors(slopes: Array) -> tuple[float, Array, Array]:
    """Return the logarithm of the prior of slopes (m,), up to a constant, and its derivatives."""
    size = PRIOR_SCALE**2 + slopes**2
    first, second = -2.0 * slopes / size, 2.0 * (slopes**2 - PRIOR_SCALE**2) / size**2
    return float(-np.log(size / PRIOR_SCALE**2).sum()), first, second


def uphill(gradient: Array, hessian: Array) -> Array:
    """Return Newton's step to a maximum, with the sizes of all curvatures.

    They are those of parameters in units of their own curvature, and FLAT at least.
    """
    unit = np.sqrt(np.maximum(np.abs(np.diag(hessian)), TINY))
    curvatures, axes = np.linalg.eigh(hessian / np.outer(unit, unit))
    size = np.maximum(np.abs(curvatures), FLAT)
    return np.asarray(axes @ (axes.T @ (gradient / unit) / size) / unit)


def odds_shares(log_odds: Array) -> tuple[Array, Array]:
    """Return the probabilities of what has given log-odds, and of its opposite."""
    odds = np.exp(np.minimum(log_odds, MOST_LOG_ODDS))
    opposite = 1.0 / (1.0 + odds)
    return odds * opposite, opposite


def _sums(
    endog: Array, exog: Array, counts: Array, offset: Array | float, odds: Odds
) -> tuple[Array, Array, Array]:
    """Return sums over rows of the log-likelihood and of m kinds of flips, and derivatives.

    In coefficients and log-odds of flips: shapes (1 + m,), (1 + m, k + m), (1 + m, k + m, k + m).
    """
    at, (first, second, flips, pairs) = odds.slopes(endog, exog, offset)
    k, m = exog.shape[1], len(flips)
    values = np.append(np.log(at.label) @ counts, flips[:, 0] @ counts)
    gradients, hessians = np.zeros((1 + m, k + m)), np.zeros((1 + m, k + m, k + m))
    gradients[0] = np.append((first[0] * counts) @ exog, first[1:] @ counts)
    gradients[1:, :k] = (flips[:, 1] * counts) @ exog
    hessians[0, k:, :k] = (second[0, 1:] * counts) @ exog
    hessians[0, k:, k:] = second[1:, 1:] @ counts
    crossed = (pairs[:, 1] * counts) @ exog
    for j, curved in enumerate([second[0, 0], *pairs[:, 0]]):
        hessians[j, :k, :k] = weighted_gram(exog, counts * curved)
    for j in range(m):
        gradients[1 + j, k + j] = flips[j, 2] @ counts
        hessians[1 + j, k + j, :k] = crossed[j]
        hessians[1 + j, k + j, k + j] = pairs[j, 2] @ counts
    hessians[:, :k, k:] = hessians[:, k:, :k].swapaxes(1, 2)
    return values, gradients, hessians


def _prob_bad(endog: Array, exog: Array, offset: Array | float, odds: Odds) -> Array:
    at = odds.of(endog, exog, offset)
    return np.where(endog == 1, at.f0 * at.q, at.f1 * at.p) / at.label


def _influence(
    endog: Array,
    exog: Array,
    offset: Array | float,
    odds: Odds,
    bread: Array,
    moves: Array,
    eps: float,
    total: float,
) -> Array:
    """Return influence functions of coefficients and of the share of flips, shape (n, k + 1)."""
    at, (first, *_) = odds.slopes(endog, exog, offset)
    scores = np.column_stack([first[0][:, None] * exog, first[1:].T @ odds.flips.chain])
    information = np.einsum("ni,ij,nj->n", scores, bread, scores)
    leverage = np.minimum(information * at.label / at.other, LEVERAGE_MAX)
    moved = (scores / (1.0 - leverage)[:, None]) @ moves
    moved[:, -1] += (at.f1 * at.p + at.f0 * at.q - eps) / total
    return moved
