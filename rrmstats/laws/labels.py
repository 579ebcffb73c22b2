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

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit, log_expit

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.linear import weighted_gram

# Smallest probability and curvature that anything is divided by.
TINY = 1e-300
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
        What each of d rates adds to the log-odds of a flip of a 1, and of a 0. A class whose rates
        all add nothing is not flipped.
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
    def chain(self) -> Array:
        """Derivatives of the log-odds of flips of a 1, and of a 0, in the rates, shape (2, d)."""
        return np.reshape(self.ways, (2, self.n_rates))

    @property
    def n_params(self) -> int:
        """Parameters besides the coefficients: rates, and the steepness and ends of sure flips."""
        return self.n_rates + (2 if self.steepness > 0 else 0)


NO_FLIPS = Flips(((), ()))
BOTH_ENDS, ONES, ZEROS = ((1.0,), (1.0,)), ((1.0,), (0.0,)), ((0.0,), (1.0,))
ONE_RATE, BY_CLASS = Flips(BOTH_ENDS), Flips(((1.0, 0.0), (0.0, 1.0)))


class Chance(NamedTuple):
    """A function of each row, and its derivatives.

    They are derivatives in the linear predictor and in the log-odds of flips of a 1, and of a 0.

    Attributes
    ----------
    value, first, second : ndarray, shapes (n,), (3, n) and (3, 3, n)
    """

    value: Array
    first: Array
    second: Array

    def exp(self) -> Chance:
        """Return the exponential function of it."""
        value = np.exp(self.value)
        second = self.second + self.first[:, None] * self.first
        return Chance(value, value * self.first, value * second)

    def sums(self, exog: Array, counts: Array) -> tuple[float, Array, Array]:
        """Return the sum over rows, and its derivatives in coefficients and log-odds of flips."""
        cross = (self.second[0, 1:] * counts) @ exog
        corner = weighted_gram(exog, counts * self.second[0, 0])
        gradient = np.append((self.first[0] * counts) @ exog, self.first[1:] @ counts)
        hessian = np.block([[corner, cross.T], [cross, self.second[1:, 1:] @ counts]])
        return float(self.value @ counts), gradient, hessian


@dataclass(frozen=True, slots=True, eq=False)
class Odds:
    """Log-odds of labels and of their flips: what the rows have in common.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        Coefficients.
    log_odds : ndarray, shape (2,)
        Of a flip of a 1, and of a 0, where the linear predictor is zero.
    steepness : float
        How much they grow with those of the label.
    drift : float
        How much they do so in derivatives: zero where flips are taken not to move with `theta`.
    """

    theta: Array
    log_odds: Array
    steepness: float
    drift: float

    def log_chance(self, eta: Array, true: Array | float, flipped: bool) -> Chance:
        """Return the log-probability that labels were of a class, and were flipped or were not.

        Parameters
        ----------
        eta : ndarray, shape (n,)
            Linear predictors.
        true : ndarray, shape (n,), or float
            Class of the label before a flip: 1, or -1 for a label of 0.
        flipped : bool
        """
        turn, of_ones = (1.0 if flipped else -1.0), np.equal(true, 1.0)
        log_odds = np.where(of_ones, *self.log_odds) + true * self.steepness * eta
        value = log_expit(true * eta) + log_expit(turn * log_odds)
        against, unlikely = expit(-true * eta), expit(-turn * log_odds)
        which = np.array([of_ones, ~of_ones], float).reshape(2, -1)
        moves = np.vstack([true * self.drift + 0.0 * eta, which + 0.0 * eta])  # of the log-odds
        first = turn * unlikely * moves
        first[0] += true * against
        second = -unlikely * (1.0 - unlikely) * moves[:, None] * moves
        second[0, 0] -= against * (1.0 - against)
        return Chance(value, first, second)

    def rows(self, endog: Array, exog: Array, offset: Array | float) -> tuple[Chance, Chance]:
        """Return the log-densities of labels that are right, and of those that were flipped."""
        eta, sign = exog @ self.theta + offset, 2.0 * endog - 1.0
        return self.log_chance(eta, sign, False), self.log_chance(eta, -sign, True)

    def flipped(self, exog: Array, offset: Array | float) -> list[Chance]:
        """Return the probability of a flip of a 1, and of a 0."""
        eta = exog @ self.theta + offset
        return [self.log_chance(eta, true, True).exp() for true in (1.0, -1.0)]


def prob_flipped(right: Chance, flipped: Chance) -> Array:
    """Return the probability of each row that its label was flipped, shape (n,)."""
    return expit(flipped.value - right.value)


def right_or_flipped(right: Chance, flipped: Chance) -> Chance:
    """Return the log-density of labels that are right or were flipped."""
    bad = prob_flipped(right, flipped)
    gap = flipped.first - right.first
    second = (1.0 - bad) * right.second + bad * flipped.second
    return Chance(
        np.logaddexp(right.value, flipped.value),
        right.first + bad * gap,
        second + bad * (1.0 - bad) * gap[:, None] * gap,
    )


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
            law.to_rates,
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
    def to_rates(self) -> Array:
        """Derivatives of coefficients and log-odds of flips in coefficients and rates."""
        return block_diag(np.eye(self.n_coef), self.flips.chain)

    def odds(self, z: Array, fixed: bool = False) -> Odds:
        """Return the log-odds that coefficients and rates stand for."""
        chain, steepness = self.flips.chain, self.flips.steepness
        log_odds = np.where(chain.any(axis=1), chain @ z[self.n_coef :], -np.inf)
        return Odds(z[: self.n_coef], log_odds, steepness, 0.0 if fixed else steepness)

    def value(self, z: Array, fixed: bool = False) -> Value:
        """Return the penalized log-likelihood at coefficients and rates, and its derivatives.

        With `fixed` they take the flips not to move with the coefficients.
        """
        k = self.n_coef
        (log_likelihood, *flipped), gradients, hessians = row_sums(
            _sums, self.endog, self.exog, self.counts, self.offset, self.odds(z, fixed)
        )
        gradients = gradients @ self.to_rates
        hessians = self.to_rates.T @ hessians @ self.to_rates
        log_prior, pull, curvature = log_priors(self.units @ z[:k])
        gradients[0, :k] += pull @ self.units
        hessians[0, :k, :k] += weighted_gram(self.units, curvature)
        ways = self.flips.chain.T / self.total
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
        here = self.value(start)
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


def _sums(
    endog: Array, exog: Array, counts: Array, offset: Array | float, odds: Odds
) -> tuple[Array, Array, Array]:
    """Return sums of the log-likelihood and of flips of a 1, and of a 0, and their derivatives.

    In coefficients and log-odds of flips: shapes (3,), (3, k + 2) and (3, k + 2, k + 2).
    """
    parts = [right_or_flipped(*odds.rows(endog, exog, offset)), *odds.flipped(exog, offset)]
    values, gradients, hessians = zip(*(part.sums(exog, counts) for part in parts), strict=True)
    return np.array(values), np.array(gradients), np.array(hessians)


def _prob_bad(endog: Array, exog: Array, offset: Array | float, odds: Odds) -> Array:
    return prob_flipped(*odds.rows(endog, exog, offset))


def _influence(
    endog: Array,
    exog: Array,
    offset: Array | float,
    odds: Odds,
    to_rates: Array,
    bread: Array,
    moves: Array,
    eps: float,
    total: float,
) -> Array:
    """Return influence functions of coefficients and of the share of flips, shape (n, k + 1)."""
    at = right_or_flipped(*odds.rows(endog, exog, offset))
    scores = np.column_stack([at.first[0][:, None] * exog, at.first[1:].T]) @ to_rates
    information = np.einsum("ni,ij,nj->n", scores, bread, scores)
    other = np.maximum(-np.expm1(at.value), TINY)
    leverage = np.minimum(information * np.exp(at.value) / other, LEVERAGE_MAX)
    moved = (scores / (1.0 - leverage)[:, None]) @ moves
    moved[:, -1] += (sum(part.value for part in odds.flipped(exog, offset)) - eps) / total
    return moved
