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

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from rrmstats.core.block_array import taken
from rrmstats.core.blocks import sample_places
from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_newton, damped_root
from rrmstats.core.tolerances import MAX_STEPS, ROUNDING, SUM_ROUNDING, TINY
from rrmstats.laws.rows import PredictorRows

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
    """Functions of each row: the log-density of its label, and its flips.

    Derivatives are those in the linear predictor, and in the d rates.

    Attributes
    ----------
    bad : ndarray, shape (n,)
        Probability that the label was flipped, given what it is.
    value : ndarray, shape (1 + d, n)
        Log-density of the label, and the probability of a flip by each of the rates.
    first, second : ndarray, shapes (1 + d, 1 + d, n) and (1 + d, 1 + d, 1 + d, n)
        Derivatives of each of these.
    """

    bad: Array
    value: Array
    first: Array
    second: Array


def label_rows(rows: PredictorRows, z: Array, flips: Flips, fixed: bool) -> LabelRows:
    """Return functions of rows at coefficients and rates, shape (k + d,).

    With `fixed`, derivatives take the flips not to move with the coefficients.
    """
    (eta, *_), endog, of_flips = rows.predictors(z), rows.seen.endog, z[rows.n_params :]
    ones, signs = endog == 1, 2.0 * endog - 1.0
    own = signs * eta  # log-odds of the class that a label has
    own_slope = np.zeros((1 + flips.n_rates, len(endog)))
    own_slope[0] = signs
    if not flips.n_rates:
        right = _product((own, own_slope))
        return LabelRows(np.zeros_like(own), *(part[None] for part in right))
    # Log-odds of a flip of a label's own class, and of the other, and how they move.
    rates = np.where(flips.chain.any(axis=1), flips.chain @ of_flips, -np.inf)
    steep, drift = flips.steepness * own, 0.0 if fixed else flips.steepness
    slopes = np.column_stack([[drift, -drift], flips.chain])[:, :, None]
    of_own, of_other = np.where(ones, *rates) + steep, np.where(ones, *rates[::-1]) - steep
    own_flip, other_flip = np.where(ones, slopes, slopes[::-1])
    # A label is right and was not flipped; or it was of the other class, and was flipped.
    right = _product((own, own_slope), (-of_own, -own_flip))
    wrong = _product((-own, -own_slope), (of_other, other_flip))
    bad, apart = expit(wrong[0] - right[0]), wrong[1] - right[1]
    value = [np.logaddexp(right[0], wrong[0])]
    first = [right[1] + bad * apart]
    second = [right[2] + bad * (wrong[2] - right[2] + (1.0 - bad) * _outer(apart))]
    lost = right[0] + of_own, right[1] + own_flip, right[2]
    chances = [np.exp(lost[0]), np.exp(wrong[0])]
    bends = [part[2] + _outer(part[1]) for part in (lost, wrong)]
    for flip in zip(own_flip[1:], other_flip[1:], strict=True):
        shares = [chance * moved for chance, moved in zip(chances, flip, strict=True)]
        value.append(shares[0] + shares[1])
        first.append(shares[0] * lost[1] + shares[1] * wrong[1])
        second.append(shares[0] * bends[0] + shares[1] * bends[1])
    return LabelRows(bad, np.array(value), np.array(first), np.array(second))


def _product(*factors: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Return the logarithm of a product of probabilities, (n,), and its derivatives.

    Of each there are log-odds, (n,), and their slopes, (1 + d, n).
    """
    value: Any = 0.0
    first: Any = 0.0
    second: Any = 0.0
    for odds, slope in factors:
        left = expit(-odds)
        value = value + log_expit(odds)
        first = first + left * slope
        second = second + left * (left - 1.0) * _outer(slope)
    return value, first, second


def _outer(slopes: Array) -> Array:
    """Return the products of derivatives (m, n) with each other, shape (m, m, n)."""
    return slopes[:, None] * slopes


@dataclass(frozen=True, eq=False)
class LabelFit:
    """A distribution of labels at some parameters.

    Attributes
    ----------
    law : FlippedLabels
    z : ndarray, shape (k + d,)
        Coefficients and rates.
    penalized : float
        Log-likelihood with the priors; minus infinity where the share exceeds its bound, or where
        most of the labels of a class are wrong, so that the classes have changed places.
    log_likelihood, log_prior : float
        Of the labels, and of the coefficients.
    gradient, hessian : ndarray, shapes (k + d,) and (k + d, k + d)
        Derivatives of `penalized`.
    shares : ndarray, shape (d,)
        Expected share of the rows that each rate flips.
    share_slopes : ndarray, shape (d, k + d)
        Its derivatives.
    converged : bool
        Whether it is known to be a maximum.
    """

    law: FlippedLabels
    z: Array
    penalized: float
    log_likelihood: float
    log_prior: float
    gradient: Array
    hessian: Array
    shares: Array
    share_slopes: Array
    converged: bool = False

    @property
    def curvature(self) -> Array:
        """The Hessian with the sizes of all its curvatures, positive definite.

        They are those of parameters in units of their own curvature, and SUM_ROUNDING at least.
        """
        unit = np.sqrt(np.maximum(np.abs(np.diag(self.hessian)), TINY))
        curvatures, axes = np.linalg.eigh(self.hessian / np.outer(unit, unit))
        size = np.maximum(np.abs(curvatures), SUM_ROUNDING)
        return (axes * size) @ axes.T * np.outer(unit, unit)

    @property
    def step(self) -> tuple[Array, float]:
        """Newton's step uphill, and the gain that is expected of it."""
        step = np.linalg.solve(self.curvature, self.gradient)
        return step, float(self.gradient @ step)

    @property
    def theta(self) -> Array:
        """Coefficients, shape (k,)."""
        return self.z[: self.law.n_coef]

    @property
    def eps(self) -> float:
        """Expected share of flipped labels."""
        return float(self.shares.sum())

    @cached_property
    def fixed(self) -> LabelFit:
        """The distribution, its derivatives as if flips did not move with the coefficients.

        A steep threshold lies among few rows, and what they tell would make coefficients look
        better known than they are.
        """
        return self.law.values(self.z, fixed=True) if self.law.flips.steepness else self

    @cached_property
    def variance(self) -> Array:
        """Covariance of coefficients and rates, flips as in `fixed`, shape (k + d, k + d)."""
        return np.linalg.pinv(-self.fixed.hessian, hermitian=True)

    def influence(self) -> tuple[Array, Array, Array]:
        """Return influence functions of coefficients and of the share, and the prior's shift.

        An estimate moves by the mean of its influence functions over the observations. Flips move
        in them as in `variance`, and residuals have HC3's factors.

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
        to_both = law.total * np.column_stack([self.variance[:, :k], to_share])
        kernel = partial(_influence, law.flips, self.variance, to_both)
        moved = law.rows.map(kernel, self.z, (k + 1,))
        pull = log_priors(law.units @ self.theta)[1] @ law.units
        return moved[:, :k], moved[:, k] - self.eps, self.variance[:k, :k] @ pull

    def prob_bad(self) -> Array:
        """Return the probability of each row that its label was flipped, shape (n,)."""
        return self.law.rows.map(partial(_prob_bad, self.law.flips), self.z)


@dataclass(frozen=True, eq=False)
class FlippedLabels:
    """The labels of some rows under a kind of flips.

    Attributes
    ----------
    rows : PredictorRows
        Labels, 0 or 1, and their design.
    units : ndarray, shape (m, k)
        Takes coefficients to those of predictors in units of their spread, which have priors.
    eps_bar : float
        Bound on the share of flipped labels.
    flips : Flips
    steps : int
        Newton steps that a fit may take.
    columns : ndarray or BlockArray, shape (n, k), optional
        The design in the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.labels import NO_FLIPS, FlippedLabels
    >>> from rrmstats.laws.rows import PredictorRows
    >>> rows = PredictorRows.plain(np.ones(4), 4.0, np.array([0.0, 1, 1, 1]), (np.ones((4, 1)),))
    >>> law = FlippedLabels(rows, np.zeros((1, 1)), 0.1, NO_FLIPS)
    >>> bool(np.isclose(law.fit(np.zeros(1)).theta[0], np.log(3)))
    True
    """

    rows: PredictorRows
    units: Array
    eps_bar: float
    flips: Flips
    steps: int = 1000
    columns: Any = None

    @property
    def n_coef(self) -> int:
        """Number of coefficients."""
        return self.rows.n_params

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.rows.total

    def take(self, places: np.ndarray) -> FlippedLabels:
        """Return some of the rows, in memory."""
        (columns,) = taken(places, self.columns)
        return replace(self, rows=self.rows.part(places), columns=columns)

    def thinned(self, most: int) -> FlippedLabels:
        """Return rows in memory, evenly spaced where there are more than `most`."""
        n = len(self.rows.mass)
        if not self.rows.in_blocks and n <= most:
            return self
        drawn = sample_places(n)
        count = min(len(drawn), most)
        return self.take(drawn[np.arange(count) * len(drawn) // count])

    def values(self, z: Array, fixed: bool = False) -> LabelFit:
        """Return the penalized log-likelihood at coefficients and rates (k + d,).

        With `fixed` its derivatives take the flips not to move with the coefficients.
        """
        k = self.n_coef
        kernel = partial(_sums, self.flips, fixed)
        sums, gradients, hessians, wrong, labels = self.rows.sums(kernel, z)
        log_prior, pull, bend = log_priors(self.units @ z[:k])
        gradients[0, :k] += pull @ self.units
        hessians[0, :k, :k] += self.units.T @ (bend[:, None] * self.units)
        shares, slopes, bends = (part[1:] / self.total for part in (sums, gradients, hessians))
        # The prior of shares and of what they leave of the bound: the product of their roots.
        parts = np.append(shares, self.eps_bar - shares.sum())
        allowed = bool((parts > 0).all() and (wrong <= 0.5 * labels).all())
        parts = parts if allowed else np.ones_like(parts)
        moved = np.vstack([slopes, -slopes.sum(axis=0)]) / parts[:, None]
        bent = np.concatenate([bends, -bends.sum(axis=0, keepdims=True)]) / parts[:, None, None]
        return LabelFit(
            law=self,
            z=z,
            penalized=sums[0] + log_prior + 0.5 * np.log(parts).sum() if allowed else -np.inf,
            log_likelihood=sums[0],
            log_prior=float(log_prior),
            gradient=gradients[0] + 0.5 * moved.sum(axis=0),
            hessian=hessians[0] + 0.5 * (bent.sum(axis=0) - moved.T @ moved),
            shares=shares,
            share_slopes=slopes,
        )

    def fit(self, start: Array, steps: int | None = None) -> LabelFit:
        """Return the maximum of the penalized likelihood near coefficients and rates (k + d,).

        Uphill also where the likelihood is not concave, in at most `steps` Newton steps.
        """
        last = self.values(start)

        def at(z: Array) -> LabelFit:
            nonlocal last
            if not np.array_equal(z, last.z):
                last = self.values(z)
            return last

        end = damped_newton(
            lambda z, _: np.array([-at(z[0]).penalized]),
            lambda z, _: (-at(z[0]).gradient[None], at(z[0]).curvature[None]),
            np.add,
            start[None],
            self.steps if steps is None else steps,
            SUM_ROUNDING / (1.0 + abs(last.log_likelihood)),
        )
        fit = at(end[0])
        return replace(fit, converged=fit.penalized > -np.inf and fit.step[1] <= ROUNDING)

    def polished(self, start: Array) -> LabelFit:
        """Return the maximum near that of a sample, without comparing likelihoods."""
        fit, gain = damped_root(
            self.values(start),
            lambda at: at.step,
            lambda at, step: self.values(at.z + step),
            SUM_ROUNDING,
            MAX_STEPS,
        )
        if gain > SUM_ROUNDING:
            return self.fit(start)
        return replace(self.values(fit.z + fit.step[0]), converged=True)


def log_priors(slopes: Array) -> tuple[Array, Array, Array]:
    """Return the logarithm of the prior of slopes (..., m), up to a constant, and derivatives."""
    size = PRIOR_SCALE**2 + slopes**2
    first, second = -2.0 * slopes / size, 2.0 * (slopes**2 - PRIOR_SCALE**2) / size**2
    return -np.log(size / PRIOR_SCALE**2).sum(axis=-1), first, second


def _sums(flips: Flips, fixed: bool, rows: PredictorRows, z: Array) -> tuple[Array, ...]:
    """Return sums of the functions of `label_rows` and their derivatives in z.

    Shapes (1 + d,), (1 + d, k + d) and (1 + d, k + d, k + d); further the labels of each class
    that were flipped, (2,), and all of them, (2,).
    """
    at, (exog,), counts = label_rows(rows, z, flips, fixed), rows.designs, rows.mass
    weighted, ones = counts[:, None] * exog, rows.seen.endog == 1
    gradients = [at.first[:, 0] @ weighted, at.first[:, 1:] @ counts]
    coupled = at.second[:, 1:, 0] @ weighted
    hessians = [
        [weighted.T @ (at.second[:, 0, 0, :, None] * exog), np.swapaxes(coupled, -1, -2)],
        [coupled, at.second[:, 1:, 1:] @ counts],
    ]
    classes = counts * np.array([~ones, ones])
    both = np.concatenate(gradients, axis=-1), np.block(hessians)
    return at.value @ counts, *both, classes @ at.bad, classes.sum(axis=1)


def _prob_bad(flips: Flips, rows: PredictorRows, z: Array) -> Array:
    return label_rows(rows, z, flips, True).bad


def _influence(flips: Flips, bread: Array, moves: Array, rows: PredictorRows, z: Array) -> Array:
    """Return influence functions of coefficients, and of the number of flips, (n, k + 1)."""
    at = label_rows(rows, z, flips, True)
    first, log_density = at.first[0], at.value[0]
    scores = np.column_stack([first[0][:, None] * rows.designs[0], first[1:].T])
    information = np.einsum("ni,ni->n", scores @ bread, scores)
    other = np.maximum(-np.expm1(log_density), TINY)
    leverage = np.minimum(information * np.exp(log_density) / other, MOST_LEVERAGE)
    moved = (scores / (1.0 - leverage)[:, None]) @ moves
    moved[:, -1] += at.value[1:].sum(axis=0)
    return moved
