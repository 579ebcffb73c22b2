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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import MAX_STEPS, ROUNDING, SUM_ROUNDING, TINY

# Expected gain of a step, in units of the log-likelihood, below which rounding may hide it.
HIDDEN = 1e-7
#: Scale of the Cauchy prior of a slope whose predictor has standard deviation one: the default of
#: Gelman, Jakulin, Pittau and Su (2008), which is 2.5 for a standard deviation of one half.
#: Derived: 2.5 / 2.
PRIOR_SCALE = 1.25


@dataclass(frozen=True, slots=True)
class Flips:
    """How labels are flipped.

    Attributes
    ----------
    ways : tuple of tuple of float, shape (2, d)
        What each of d rates adds to the log-odds of a flip of a 1, and of a 0: one or nothing. A
        class whose rates all add nothing is not flipped.
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


class LabelRows(NamedTuple):
    """Functions of each row at b parameters: the log-density of its label, and its flips.

    Derivatives are those in the linear predictor, and in the d rates.

    Attributes
    ----------
    bad : ndarray, shape (b, n)
        Probability that the label was flipped, given what it is.
    value : ndarray, shape (b, 1 + d, n)
        Log-density of the label, and the probability of a flip by each of the rates.
    first, second : ndarray, shapes (b, 1 + d, 1 + d, n) and (b, 1 + d, 1 + d, 1 + d, n)
        Derivatives of each of these.
    """

    bad: Array
    value: Array
    first: Array
    second: Array


def label_rows(
    endog: Array, exog: Array, offset: Array | float, z: Array, flips: Flips, fixed: bool
) -> LabelRows:
    """Return functions of rows at coefficients and rates, shape (b, k + d).

    With `fixed`, derivatives take the flips not to move with the coefficients.
    """
    k, d, ones, signs = exog.shape[1], flips.n_rates, endog == 1, 2.0 * endog - 1.0
    own = signs * (z[:, :k] @ exog.T + offset)  # log-odds of the class that a label has
    sure, doubt = expit(own), expit(-own)
    value, first, second = (np.zeros((len(z), *m * [1 + d], len(endog))) for m in (1, 2, 3))
    value[:, 0], first[:, 0, 0], second[:, 0, 0, 0] = log_expit(own), signs * doubt, -sure * doubt
    if not d:
        return LabelRows(np.zeros_like(own), value, first, second)

    rates = np.where(flips.chain.any(axis=1), z[:, k:] @ flips.chain.T, -np.inf)

    def of_flips(function: Callable[[Array], Array], same: bool) -> Array:
        """Return a function of the log-odds of flips of the class of a label, or of the other."""
        of_one, of_zero = rates[:, :1], rates[:, 1:]
        if not flips.steepness:
            return np.where(ones == same, function(of_one), function(of_zero))
        steep = flips.steepness * own
        return function(np.where(ones == same, of_one, of_zero) + (steep if same else -steep))

    # A label is right and was not flipped; or it was of the other class, and was flipped.
    lost, kept = of_flips(expit, True), of_flips(lambda odds: log_expit(-odds), True)
    left, flipped = of_flips(lambda odds: expit(-odds), False), of_flips(log_expit, False)
    gap = flipped - kept - own
    bad = expit(gap)
    value[:, 0] += kept - log_expit(-gap)
    # How the log-odds of flips move with the predictor and the rates.
    drift = 0.0 if fixed else flips.steepness
    moves = np.column_stack([[drift, -drift], flips.chain])[:, :, None]
    own_moves, other_moves = np.where(ones, moves, moves[::-1])
    right, wrong = first[:, 0] - lost[:, None] * own_moves, left[:, None] * other_moves
    wrong[:, 0] -= signs * sure
    bends = [
        second[:, 0] - (chance * (1.0 - chance))[:, None, None] * _outer(moved)
        for chance, moved in ((lost, own_moves), (left, other_moves))
    ]
    weight = bad[:, None, None]
    first[:, 0] = right + bad[:, None] * (wrong - right)
    second[:, 0] = (1.0 - weight) * (bends[0] + weight * _outer(wrong - right))
    second[:, 0] += weight * bends[1]
    for share, slope, bend, moved in (
        (sure * lost, right + own_moves, bends[0], own_moves),
        (doubt * np.exp(flipped), wrong, bends[1], other_moves),
    ):
        bend += _outer(slope)
        for j in range(1, 1 + d):
            part = share * moved[j]
            value[:, j] += part
            first[:, j] += part[:, None] * slope
            second[:, j] += part[:, None, None] * bend
    return LabelRows(bad, value, first, second)


def _outer(slopes: Array) -> Array:
    """Return the products of derivatives (..., m, n) with each other, shape (..., m, m, n)."""
    return slopes[..., :, None, :] * slopes[..., None, :, :]


class Value(NamedTuple):
    """A distribution at some parameters, or at b of them: then all shapes have b in front.

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
    mirrored : bool
        Whether most of the labels of a class are wrong. Then the classes have changed places:
        the same rows, and the opposite coefficients.
    """

    z: Array
    penalized: Array
    log_likelihood: Array
    log_prior: Array
    gradient: Array
    hessian: Array
    shares: Array
    share_slopes: Array
    mirrored: Array

    def at(self, places: int | np.ndarray) -> Value:
        """Return the distribution at one of the parameters, or at some."""
        return Value(*(part[places] for part in self))


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
    def eps(self) -> float:
        """Expected share of flipped labels."""
        return float(self.value.shares.sum())

    @cached_property
    def fixed(self) -> Value:
        """The distribution, its derivatives as if flips did not move with the coefficients.

        A steep threshold lies among few rows, and what they tell would make coefficients look
        better known than they are.
        """
        return self.law.values(self.value.z[None], fixed=True).at(0)

    @cached_property
    def variance(self) -> Array:
        """Covariance of coefficients and rates, flips as in `fixed`, shape (k + d, k + d)."""
        return np.linalg.pinv(-self.fixed.hessian, hermitian=True)

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
        to_share = self.variance @ self.fixed.share_slopes.sum(axis=0)
        to_both = np.column_stack([self.variance[:, :k], to_share])
        rows = law.endog, law.exog, law.offset
        moved = row_map(
            _influence, *rows, self.value.z, law.flips, self.variance, to_both, self.eps, law.total
        )
        pull = log_priors(law.units @ self.theta)[1] @ law.units
        return moved[:, :k], moved[:, k], self.variance[:k, :k] @ pull

    def prob_bad(self) -> Array:
        """Return the probability of each row that its label was flipped, shape (n,)."""
        law = self.law
        return row_map(_prob_bad, law.endog, law.exog, law.offset, self.value.z, law.flips)


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

    def values(self, z: Array, fixed: bool = False) -> Value:
        """Return the penalized log-likelihood at coefficients and rates (b, k + d).

        With `fixed` its derivatives take the flips not to move with the coefficients.
        """
        k = self.n_coef
        sums, gradients, hessians, wrong, labels = row_sums(
            _sums, self.endog, self.exog, self.counts, self.offset, z, self.flips, fixed
        )
        log_prior, pull, bend = log_priors(z[:, :k] @ self.units.T)
        gradients[:, 0, :k] += pull @ self.units
        hessians[:, 0, :k, :k] += self.units.T @ (bend[:, :, None] * self.units)
        shares, slopes, bends = (part[:, 1:] / self.total for part in (sums, gradients, hessians))
        found = sums[:, 0] + log_prior, gradients[:, 0], hessians[:, 0]
        for j in range(self.flips.n_rates):
            found = _with_log(*found, shares[:, j], slopes[:, j], bends[:, j])
        if self.flips.n_rates:
            left = self.eps_bar - shares.sum(axis=1), -slopes.sum(axis=1), -bends.sum(axis=1)
            found = _with_log(*found, *left)
        mirrored = (wrong > 0.5 * labels).any(axis=1)
        return Value(
            z, found[0], sums[:, 0], log_prior, found[1], found[2], shares, slopes, mirrored
        )

    def fit(self, start: Array) -> LabelFit:
        """Return the maximum of the penalized likelihood near coefficients and rates (k + d,)."""
        value, converged = self.climb(start[None], self.steps)
        return LabelFit(self, value.at(0), bool(converged[0]))

    def polished(self, start: Array) -> LabelFit:
        """Return the maximum near that of a sample, by Newton's steps as they are."""
        here = self.values(start[None])
        for _ in range(MAX_STEPS):
            step = uphill(here.gradient, here.hessian)
            gain = float(here.gradient[0] @ step[0])
            here = self.values(here.z + step)
            if gain <= SUM_ROUNDING:
                return LabelFit(self, here.at(0), True)
        return self.fit(start)

    def climb(self, starts: Array, steps: int) -> tuple[Value, np.ndarray]:
        """Return where Newton steps from coefficients and rates lead, and which have converged.

        Uphill also where the likelihood is not concave, with halved steps.

        Parameters
        ----------
        starts : ndarray, shape (b, k + d)
        steps : int
            Number of steps at most.
        """
        here = self.values(starts.copy())
        converged = np.zeros(len(starts), bool)
        active = np.isfinite(here.penalized)
        for _ in range(min(steps, self.steps)):
            if not active.any():
                break
            going = np.flatnonzero(active)
            step = uphill(here.gradient[going], here.hessian[going])
            gain = np.einsum("bk,bk->b", here.gradient[going], step)
            while len(going):
                ahead = self.values(here.z[going] + step)
                arrived = gain <= SUM_ROUNDING
                taken = (ahead.penalized > here.penalized[going]) | arrived
                for part, new in zip(here, ahead, strict=True):
                    part[going[taken]] = new[taken]
                stopped = ~taken & (gain <= HIDDEN)
                converged[going[arrived | stopped]] = True
                on = ~taken & ~stopped
                going, step, gain = going[on], 0.5 * step[on], 0.5 * gain[on]
            active &= ~converged
        return here, converged


def _with_log(
    value: Array, gradient: Array, hessian: Array, share: Array, slope: Array, bend: Array
) -> tuple[Array, Array, Array]:
    """Return functions (b,) and their derivatives with half the logarithm of a share added."""
    positive = share > 0
    share = np.where(positive, share, 1.0)
    slope = slope / share[:, None]
    added = bend / share[:, None, None] - slope[:, :, None] * slope[:, None]
    value = np.where(positive, value + 0.5 * np.log(share), -np.inf)
    return value, gradient + 0.5 * slope, hessian + 0.5 * added


def log_priors(slopes: Array) -> tuple[Array, Array, Array]:
    """Return the logarithm of the prior of slopes (..., m), up to a constant, and derivatives."""
    size = PRIOR_SCALE**2 + slopes**2
    first, second = -2.0 * slopes / size, 2.0 * (slopes**2 - PRIOR_SCALE**2) / size**2
    return -np.log(size / PRIOR_SCALE**2).sum(axis=-1), first, second


def uphill(gradient: Array, hessian: Array) -> Array:
    """Return Newton's steps to maxima (b, k), with the sizes of all curvatures.

    They are those of parameters in units of their own curvature, and ROUNDING at least.
    """
    unit = np.sqrt(np.maximum(np.abs(np.einsum("bii->bi", hessian)), TINY))
    curvatures, axes = np.linalg.eigh(hessian / (unit[:, :, None] * unit[:, None]))
    size = np.maximum(np.abs(curvatures), ROUNDING)
    along = np.einsum("bji,bj->bi", axes, gradient / unit) / size
    return np.einsum("bij,bj->bi", axes, along) / unit


def _sums(
    endog: Array,
    exog: Array,
    counts: Array,
    offset: Array | float,
    z: Array,
    flips: Flips,
    fixed: bool,
) -> tuple[Array, ...]:
    """Return sums of the functions of `label_rows` and their derivatives in z.

    Shapes (b, 1 + d), (b, 1 + d, k + d) and (b, 1 + d, k + d, k + d); further the labels of each
    class that were flipped, (b, 2), and all of them, (2,).
    """
    at, k = label_rows(endog, exog, offset, z, flips, fixed), exog.shape[1]
    gradients = np.empty((*at.value.shape[:2], z.shape[1]))
    hessians = np.empty((*gradients.shape, z.shape[1]))
    weighted = counts[:, None] * exog
    gradients[..., :k] = at.first[:, :, 0] @ weighted
    gradients[..., k:] = at.first[:, :, 1:] @ counts
    hessians[..., :k, :k] = weighted.T @ (at.second[:, :, 0, 0, :, None] * exog)
    hessians[..., k:, :k] = at.second[:, :, 1:, 0] @ weighted
    hessians[..., :k, k:] = np.swapaxes(hessians[..., k:, :k], -1, -2)
    hessians[..., k:, k:] = at.second[:, :, 1:, 1:] @ counts
    classes = counts * np.array([endog == 0, endog == 1])
    return at.value @ counts, gradients, hessians, at.bad @ classes.T, classes.sum(axis=1)


def _prob_bad(endog: Array, exog: Array, offset: Array | float, z: Array, flips: Flips) -> Array:
    return label_rows(endog, exog, offset, z[None], flips, True).bad[0]


def _influence(
    endog: Array,
    exog: Array,
    offset: Array | float,
    z: Array,
    flips: Flips,
    bread: Array,
    moves: Array,
    eps: float,
    total: float,
) -> Array:
    """Return influence functions of coefficients and of the share of flips, shape (n, k + 1)."""
    at = label_rows(endog, exog, offset, z[None], flips, True)
    first, log_density = at.first[0, 0], at.value[0, 0]
    scores = np.column_stack([first[0][:, None] * exog, first[1:].T])
    information = np.einsum("ni,ij,nj->n", scores, bread, scores)
    other = np.maximum(-np.expm1(log_density), TINY)
    leverage = np.minimum(information * np.exp(log_density) / other, MOST_LEVERAGE)
    moved = (scores / (1.0 - leverage)[:, None]) @ moves
    moved[:, -1] += (at.value[0, 1:].sum(axis=0) - eps) / total
    return moved
