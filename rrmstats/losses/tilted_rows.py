"""Rows under weights of an order, and fits at a fixed order.

Weights ``w = exp(-(a - 1) l)`` of order a, with l the loss (half a deviance over the dispersion),
tilt the distribution of good rows. The mean score under the tilted distribution, c = E(w u) /
E(w), is known at each row, so that ``sum w (u - c) = 0`` is solved by the true parameters (Fisher
consistency). Rows without weight play no part in it, wherever their predictors are.

`TiltedRows` has what follows from the scores in a row's predictors and their expectations.
`FamilyRows` are those of a generalized linear model, in memory or in blocks, whose expectations
have closed forms or are interpolated. `LawRows` are those of any likelihood whose responses have a
known law. The weights of its first step are those at its raw parameters, the anchor, and stay so
while the equation is solved: what they are a function of does not matter for consistency, and
other parameters would give weights that resist less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import brentq

from rrmstats.core.block_array import aligned, row_map, row_sums
from rrmstats.core.consistency import bad_share, scale_factor, share_factor
from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_root
from rrmstats.core.setting import Setting
from rrmstats.core.tolerances import (
    BLOCK_ENTRIES,
    HALVINGS,
    MAX_STEPS,
    ROUNDING,
    SUM_ROUNDING,
    TINY,
)
from rrmstats.laws.families import Family, Moments
from rrmstats.laws.rows import (
    design_gram,
    design_leverage,
    design_rows,
    design_sums,
    parameter_parts,
)
from rrmstats.losses.finite_differences import differences, inside
from rrmstats.losses.numerical import BEYOND, without_held

if TYPE_CHECKING:
    from rrmstats.losses.likelihood_laws import Likelihood

# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
# Convention: within a factor of two.
BREAD = (0.5, 2.0)
# Size of a last step, in standard errors, that has converged for all purposes, and change of a log
# dispersion.
SETTLED = 1e-4

#: One array per predictor, shape (n,) each.
PerPredictor = Sequence[Array]
#: Rows of one kind.
AnyRows = TypeVar("AnyRows", bound="TiltedRows")


class Expectations(NamedTuple):
    """Expectations over the responses of each row.

    Attributes
    ----------
    mass : ndarray, shape (n,)
        E(w), w the weight.
    first : sequence of q ndarray, shape (n,) each
        E(w u), u the slopes of the log-likelihood in the predictors.
    second : sequence of q sequences of q ndarray
        E(w u u').
    """

    mass: Array
    first: PerPredictor
    second: Sequence[PerPredictor]


class TiltedRows:
    """Rows under weights of an order at some parameters.

    Attributes
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
    order : float, or ndarray, shape (n,)
    anchor : ndarray, shape (k,), or None
        Parameters at which the weights are taken; None means `theta`.
    tol : float
        Size of the last step of a fit, in standard errors.
    weights : ndarray, shape (n,)
    slopes : sequence of q ndarray, shape (n,) each
        Derivatives of the log-likelihoods in the predictors.
    expectations : Expectations
    bread, observed_bread : ndarray, shape (k, k)
        Minus the derivative of the equation: expected at rows with weight, and observed. Under
        the model ``E(w u (u - c))`` is the expected derivative, and ``w / E(w)`` has mean one at
        good rows and is zero at bad ones.
    pull : ndarray, shape (k,)
        The estimating equation: the sum of the scores.

    Subclasses also define `step`, which returns a step towards the root of the equation and its
    size in standard errors, and `moved`, which returns the rows a step away, or a safe part of it.
    """

    sample: Any
    theta: Array
    order: Any
    anchor: Array | None = None
    tol: float
    weights: Array
    slopes: PerPredictor
    expectations: Expectations
    bread: Array
    observed_bread: Array
    pull: Array

    @cached_property
    def center(self) -> PerPredictor:
        """Mean slopes of each row under the tilted distribution."""
        return [each / self.expectations.mass for each in self.expectations.first]

    @cached_property
    def spread(self) -> Sequence[PerPredictor]:
        """Covariance of a row's slopes under the tilted distribution."""
        mass, _, second = self.expectations
        rows = zip(second, self.center, strict=True)
        return [
            [each / mass - a * b for each, b in zip(row, self.center, strict=True)]
            for row, a in rows
        ]

    @cached_property
    def scores(self) -> PerPredictor:
        """Contributions of the rows to the estimating equation, in the predictors."""
        both = zip(self.slopes, self.center, strict=True)
        return [self.weights * (slope - center) for slope, center in both]

    @property
    def free(self) -> np.ndarray:
        """Which parameters the rows tell something about, shape (k,)."""
        return np.full(len(self.theta), True)

    @cached_property
    def root(self) -> Array:
        """Root of the inverse of the bread of the free parameters, zero for others."""
        places = np.ix_(self.free, self.free)
        root = np.zeros_like(self.bread)
        root[places] = inverse_root(self.bread[places])
        return root

    @cached_property
    def relative_bread(self) -> tuple[Array, Array]:
        """Eigenvalues of the observed bread in units of the expected one, and the axes."""
        observed = np.nan_to_num(self.observed_bread)
        values, vectors = np.linalg.eigh(self.root @ observed @ self.root.T)
        return values, vectors.T @ self.root

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the observed bread, kept near the expected one, shape (k, k)."""
        values, axes = self.relative_bread
        return (axes.T / np.clip(values, *BREAD)) @ axes

    @cached_property
    def influence(self) -> Array:
        """Influence functions of theta, with HC3's factors, shape (n, k): it moves by the sum."""
        designs = self.sample.designs
        leverage = design_leverage(designs, self.inverse, self.spread) * self.weights
        longer = 1.0 / (1.0 - np.clip(leverage, 0.0, MOST_LEVERAGE))
        parts = zip(designs, parameter_parts(self.inverse, designs), self.scores, strict=False)
        moved = [(design @ part) * (longer * one)[:, None] for design, part, one in parts]
        return sum(moved[1:], moved[0])

    @cached_property
    def ratio(self) -> Array:
        """Weights over their expectations, shape (n,): mean one at good rows, zero at bad ones."""
        return self.weights / self.expectations.mass

    @cached_property
    def mean_ratio(self) -> float:
        """Mean of `ratio` over the observations."""
        return float(self.sample.mass @ self.ratio) / self.sample.total

    def bad_share(self) -> tuple[float, float]:
        """Return the estimated share of bad rows, at most eps_bar, and its standard error.

        Each row moves the share of good rows by its own ratio, and through the parameters.
        """
        if np.all(self.order == 1.0):
            return 0.0, 0.0
        by_weights = 0.0 if self.anchor is not None else self.order - 1.0
        mass, total, eps_bar = self.sample.mass, self.sample.total, self.sample.setting.eps_bar
        change = [
            mass * self.ratio * (by_weights * (slope - center) - center)
            for slope, center in zip(self.slopes, self.center, strict=True)
        ]
        slope = self.sample.pull(change)
        moved = (self.ratio - self.mean_ratio) / total + self.influence @ (slope / total)
        share = bad_share(self.mean_ratio, len(self.theta), total, self.order, eps_bar)
        return share, float(np.sqrt(mass @ moved**2))


def tilted_fit(rows: AnyRows) -> tuple[AnyRows, bool]:
    """Return the rows at the consistent fit of their order, and whether they are at one."""
    kind: Any = type(rows)
    rows, size = damped_root(rows, kind.step, kind.moved, rows.tol, MAX_STEPS)
    return rows, size < SETTLED


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a problem, with what a fit was asked for.

    Attributes
    ----------
    problem : DevianceProblem or LikelihoodProblem
    setting : Setting
    """

    problem: Any
    setting: Setting

    @cached_property
    def mass(self) -> Array:
        """How often each row counts, shape (n,)."""
        return aligned(self.setting.counts(self.problem.n_obs), self.problem.blocks)

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.problem.n_obs)

    @property
    def designs(self) -> tuple[Array, ...]:
        """The designs of the predictors."""
        found: tuple[Array, ...] = self.problem.designs
        return found

    def pull(self, target: PerPredictor) -> Array:
        """Return the sum of the designs' rows times a target for each predictor, shape (k,)."""
        found: Array = row_sums(partial(_pulled, len(target)), *target, *self.designs)
        return found


def _pulled(q: int, *arrays: Array) -> Array:
    return design_sums(arrays[q:], np.array(arrays[:q]))


class FamilyRows(TiltedRows):
    """Rows of a generalized linear model under weights of an order at some dispersion.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
    dispersion, order : float
    """

    tol = 1e-9

    def __init__(self, sample: Sample, theta: Array, dispersion: float, order: float) -> None:
        self.sample, self.theta = sample, theta
        self.dispersion, self.order = dispersion, order
        problem = sample.problem
        self.eta = problem.predictor(theta)
        self.mu = problem.mean.mean(self.eta + problem.offset)
        self.size = problem.var_weights / dispersion

    @cached_property
    def deviance(self) -> Array:
        """Deviances over the dispersion, shape (n,)."""
        problem = self.sample.problem
        return self.size * problem.family.deviance(problem.endog, self.mu)

    @cached_property
    def weights(self) -> Array:  # type: ignore[override]  # a value in others
        """Weights of the rows, in [0, 1]."""
        return np.exp(-0.5 * (self.order - 1.0) * self.deviance)

    @cached_property
    def moments(self) -> Moments:
        """Expectations under the model."""
        family = self.sample.problem.family
        columns = row_map(
            _moment_columns, self.mu, self.size, tail=(4,), family=family, order=self.order
        )
        return Moments(*(columns[:, i] for i in range(4)))

    @cached_property
    def expectations(self) -> Expectations:  # type: ignore[override]  # a value in others
        """Expectations of the slopes in the linear predictor."""
        per_response, moments = self._per_response, self.moments
        least = moments.first**2 / moments.mass  # rounding may leave less
        second = per_response**2 * np.maximum(moments.second, least)
        return Expectations(moments.mass, [per_response * moments.first], [[second]])

    @cached_property
    def _totals(self) -> list[float]:
        """Sums of ratios, of weighted deviances, and of those that the model expects."""
        moments, pull = self.moments, self.sample.mass * self.weights
        expected = moments.deviance / moments.mass
        values = [self.sample.mass * self.ratio, pull * self.deviance, pull * expected]
        found: list[float] = self.sample.problem.products([], [], values)[2]
        return found

    @property
    def mean_ratio(self) -> float:
        """Mean of `ratio` over the observations."""
        return self._totals[0] / self.sample.total

    @cached_property
    def _products(self) -> tuple[list[Array], list[Array], list[float]]:
        """Sums of which a step is made, in one pass over rows in blocks."""
        mass, ((spread,),), (scores,) = self.sample.mass, self.spread, self.scores
        weights = mass * self.weights
        return self.sample.problem.products(
            [weights * spread, mass * self._observed, weights], [mass * scores], [weights]
        )

    @property
    def bread(self) -> Array:  # type: ignore[override]  # a value in others
        """Minus the expected derivative of the equation at rows with weight, shape (k, k)."""
        return self._products[0][0]

    @property
    def observed_bread(self) -> Array:  # type: ignore[override]  # a value in others
        """Minus the derivative of the equation, shape (k, k)."""
        return self._products[0][1]

    @property
    def pull(self) -> Array:  # type: ignore[override]  # a value in others
        """The estimating equation, shape (k,)."""
        return self._products[1][0]

    @cached_property
    def _slopes(self) -> tuple[Array, Array, Array]:
        """Slopes in the linear predictor, information, and the rest of the derivative."""
        first, expected, swing = self.sample.problem.score_parts(self.eta)
        phi = self.dispersion
        return first / phi, expected / phi, swing / phi

    @property
    def slopes(self) -> PerPredictor:  # type: ignore[override]  # a value in others
        """Derivatives of the log-likelihoods in the linear predictor."""
        return self._slopes[:1]

    @cached_property
    def _per_response(self) -> Array:
        """Change of a slope with its response, shape (n,)."""
        problem = self.sample.problem
        slope = problem.mean.slopes(self.eta + problem.offset)[0]
        return self.size * slope / problem.family.variance(self.mu)

    @property
    def _observed(self) -> Array:
        """Minus the derivative of each score in the linear predictor, shape (n,)."""
        u, expected, swing = self._slopes
        (c,), mass, _, ((second,),) = self.center, *self.expectations
        off = self.sample.problem.endog - self.mu
        bend = swing / np.where(off == 0, 1.0, off)
        drift = self.order * (second / mass - c**2) - expected
        drift = drift + bend * self.moments.first / mass
        return -self.weights * ((self.order - 1.0) * u * (u - c) - expected + swing - drift)

    @property
    def params_per_row(self) -> float:
        """Parameters per good row; of these there are as many as the budget leaves at least."""
        sample = self.sample
        good = np.clip(self.mean_ratio, 1.0 - sample.setting.eps_bar, 1.0)
        return sample.problem.n_params / max(sample.total * float(good), 1.0)

    def step(self) -> tuple[Array, float]:
        """Return a step towards the root of the equation, and its size in standard errors.

        Newton's in directions in which the derivative has the sign that is expected, else that of
        scoring.
        """
        values, axes = self.relative_bread
        scaled = axes @ self.pull / np.where(values > 0.05, values, 1.0)
        return axes.T @ scaled, float(np.sqrt(scaled @ scaled))

    def moved(self, step: Array) -> FamilyRows:
        """Return the rows a step away.

        At most as far as changes linear predictors by one in root mean square under weights.
        """
        square = float(step @ self._products[0][2] @ step) / max(self._products[2][0], TINY)
        theta = self.theta + step / max(square**0.5, 1.0)
        return FamilyRows(self.sample, theta, self.dispersion, self.order)

    def log_growth(self, fitted: float) -> float:
        """Return the change of the log dispersion in one step of its fixed point.

        It never ends below what the budget allows.

        Parameters
        ----------
        fitted : float
            Order of the fit that left the residuals.
        """
        sample, per_row = self.sample, self.params_per_row
        factor = scale_factor(per_row, self.order, fitted)
        growth = float(np.log(factor * self._totals[1] / self._totals[2]))
        left = 1.0 - sample.setting.eps_bar
        least = min(left * share_factor(per_row, self.order, fitted), 1.0)
        if growth >= 0:
            return growth
        after = FamilyRows(sample, self.theta, self.dispersion * float(np.exp(growth)), self.order)
        if after.mean_ratio >= least:
            return growth
        found = budget_dispersion(sample, self.theta, self.order, least, self.dispersion)
        return float(np.log(found / self.dispersion))


def _moment_columns(mu: Array, size: Array, family: Family, order: float) -> Array:
    return np.column_stack(family.moments(mu, size, order))


def budget_dispersion(
    sample: Sample, theta: Array, order: float, good: float, start: float
) -> float:
    """Return the dispersion at which the weights leave exactly a share of good rows.

    The root of ``log(mean(w / E(w))) = log(good)`` in the log dispersion, which is looked for in
    steps of 3.
    """

    def gap(at: float) -> float:
        ratio = FamilyRows(sample, theta, float(np.exp(at)), order).mean_ratio
        return float(np.log(max(ratio, TINY) / good))

    at = float(np.log(start))
    below = gap(at) < 0
    for _ in range(MAX_STEPS):
        last, at = at, at + (3.0 if below else -3.0)
        if (gap(at) < 0) != below:
            return float(np.exp(brentq(gap, last, at, xtol=SUM_ROUNDING)))
    return float(np.exp(at))


def dispersion_fit(
    sample: Sample, theta: Array, order: float, start: float, lambda_: float
) -> tuple[float, bool]:
    """Return the dispersion of an order around parameters, and whether it converged.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
        Parameters of a first step.
    order, start : float
    lambda_ : float
        Temperature of the first step's weights, in units of half the deviance.
    """
    dispersion, change = start, np.inf
    tol = max(100.0 * sample.setting.tol, FamilyRows.tol)
    for _ in range(sample.setting.maxiter):
        rows = FamilyRows(sample, theta, dispersion, order)
        growth = rows.log_growth(1.0 + dispersion / lambda_)
        last, change = change, abs(growth)
        # Near the end steps are lengthened to about Newton's.
        length = order if change < min(0.05, last) else 1.0
        dispersion *= float(np.exp(length * growth))
        if change < tol:
            break
    return dispersion, change < SETTLED


@dataclass(frozen=True, eq=False)
class Nodes:
    """Responses over which expectations are sums.

    Attributes
    ----------
    y : ndarray, shape (m, n) or (m, 1)
    log_count : ndarray
        Logarithms of what the density of each counts.
    largest : ndarray
        Largest log-likelihoods that they could have.
    """

    y: Array
    log_count: Array
    largest: Array

    @classmethod
    def of(cls, likelihood: Likelihood, theta: Array) -> Nodes:
        """Return the responses over which expectations are sums at theta and near it."""
        with np.errstate(all="ignore"):
            y, log_count = likelihood.rows.nodes(theta)
            largest = likelihood.largest or np.zeros_like
            return cls(y, log_count, np.asarray(largest(y)) + 0.0 * y)

    def blocks(self, n: int) -> Iterator[Nodes]:
        """Yield parts of the responses whose arrays have about BLOCK_ENTRIES entries."""
        size = max(1, BLOCK_ENTRIES // n)
        for i in range(0, len(self.y), size):
            part = slice(i, i + size)
            yield Nodes(self.y[part], self.log_count[part], self.largest[part])


@dataclass(frozen=True, eq=False)
class LawRows(TiltedRows):
    """Rows of a likelihood under weights of an order at some parameters.

    Attributes
    ----------
    sample : Sample
    theta, order, anchor
        See `TiltedRows`.
    near : Nodes or None
        Responses over which expectations are sums at parameters near these.
    counted : bool
        Whether the weights are frequency weights already.
    """

    sample: Sample
    theta: Array
    order: Any
    anchor: Array | None = None
    near: Nodes | None = None
    counted: bool = False

    @classmethod
    def weighed(cls, sample: Sample, raw: Array, rates: Array) -> LawRows:
        """Return the rows under weights of groups, which are frequency weights already.

        Parameters
        ----------
        sample : Sample
        raw : ndarray, shape (k,)
            Parameters of least risk, at which the rows had their losses.
        rates : ndarray, shape (n,)
            The weight of a row is proportional to ``exp(-rates * losses)``.
        """
        return cls(sample, raw, 1.0 + rates, raw, counted=True)

    @property
    def _likelihood(self) -> Likelihood:
        found: Likelihood = self.sample.problem.likelihood
        return found

    @cached_property
    def nodes(self) -> Nodes:
        """Responses over which expectations are sums."""
        return self.near or Nodes.of(self._likelihood, self.theta)

    @property
    def tol(self) -> float:  # type: ignore[override]  # a value in others
        """Size of the last step of a fit, in standard errors."""
        return 1e-8 if self.counted else 1e-7

    def moved(self, step: Array) -> LawRows:
        """Return the rows a step away, or a part of it where the rows with weight are defined."""
        longest = 2.0 * self.sample.problem.unit
        step = np.clip(step, -longest, longest)
        used = self.weights * self.sample.mass > 0
        for _ in range(HALVINGS):
            theta = np.maximum(self.theta + step, self.sample.problem.lower)
            # Responses of a quadrature stay over short steps.
            near = float(np.abs(step / self.sample.problem.unit).max()) < 0.05
            moved = replace(self, theta=theta, near=self.nodes if near else None)
            if np.isfinite(moved.losses[used]).all() and np.isfinite(moved.bread).all():
                return moved
            step = 0.5 * step
        return self

    @property
    def _weighing(self) -> Array:
        return self.theta if self.anchor is None else self.anchor

    def _losses_at(self, theta: Array) -> Array:
        found = self.sample.problem.losses(theta)
        return np.where(found >= BEYOND, np.inf, found)

    @cached_property
    def losses(self) -> Array:
        """Losses of the rows, shape (n,); +inf outside of the domain."""
        return self._losses_at(self.theta)

    @cached_property
    def weights(self) -> Array:  # type: ignore[override]  # a value in others
        """Weights of the rows, shape (n,)."""
        if self.counted:
            return np.ones(self.sample.problem.n_obs)
        return np.exp(-(self.order - 1.0) * self._losses_at(self._weighing))

    @cached_property
    def slopes(self) -> Array:  # type: ignore[override]  # a value in others
        """Derivatives of the log-likelihoods in the predictors, zero where they have none."""
        rows = self._likelihood.rows
        with np.errstate(all="ignore"):
            found = rows.slopes(self.theta, rows.endog, self.sample.problem.unit)
        return np.where(np.isfinite(found), found, 0.0)

    def _tilted(self, some: Nodes) -> Array:
        """Return the probabilities of responses times their weights, shape (m, n)."""
        law = self._likelihood.rows
        with np.errstate(all="ignore"):
            density = law.log_density(self.theta, some.y)
            weighing = density if self.anchor is None else law.log_density(self.anchor, some.y)
            found = np.exp(
                some.log_count + density - (self.order - 1.0) * (some.largest - weighing)
            )
        return np.where(np.isfinite(found), found, 0.0)

    @cached_property
    def expectations(self) -> Expectations:  # type: ignore[override]  # a value in others
        """Expectations as sums over the nodes."""
        mass = first = second = np.zeros(())
        for some in self.nodes.blocks(self.sample.problem.n_obs):
            tilted = self._tilted(some)
            slopes = self._likelihood.rows.slopes(self.theta, some.y, self.sample.problem.unit)
            slopes = np.where((tilted > 0) & np.isfinite(slopes), slopes, 0.0)
            pulled = tilted * slopes
            mass = mass + tilted.sum(axis=0)
            first = first + pulled.sum(axis=1)
            second = second + np.array([[(p * s).sum(axis=0) for s in slopes] for p in pulled])
        return Expectations(np.maximum(mass, TINY), list(first), list(second))

    @cached_property
    def pull(self) -> Array:  # type: ignore[override]  # a value in others
        """The estimating equation, shape (k,)."""
        return self.sample.pull(self.sample.mass * np.asarray(self.scores))

    @property
    def tilted_likelihood(self) -> float:
        """Weighted tilted log-likelihood; the root of an anchor maximizes it."""
        used = (self.weights > 0) & (self.sample.mass > 0)
        mass = (self.sample.mass * self.weights)[used]
        gain = -self.losses[used] - np.log(self.expectations.mass[used])
        return float(mass @ gain)

    @cached_property
    def flat(self) -> np.ndarray:
        """Which parameters the rows tell nothing about, shape (k,).

        A hundredth of each lies, squared, in directions in which the mean loss, in units of the
        parameters, bends by less than 1e-4.
        """
        unit = self.sample.problem.unit
        values, axes = np.linalg.eigh(self.bread * np.outer(unit, unit))
        none = values < 1e-4 * self.sample.total
        return (axes[:, none] ** 2).sum(axis=1) > 0.01

    @cached_property
    def free(self) -> np.ndarray:
        """Which parameters are neither flat nor held at their bounds, shape (k,)."""
        return ~(self.flat | (self.theta <= self.sample.problem.lower) & (self.pull <= 0))

    @cached_property
    def bread(self) -> Array:  # type: ignore[override]  # a value in others
        """Minus the expected derivative of the equation at rows with weight, shape (k, k)."""
        weights = self.sample.mass * self.weights
        return design_gram(self.sample.designs, weights * np.asarray(self.spread))

    @cached_property
    def observed_bread(self) -> Array:  # type: ignore[override]  # a value in others
        """Minus the derivative of the equation, shape (k, k)."""
        problem, here = self.sample.problem, replace(self, near=self.nodes)
        at = inside(self.theta, problem.unit, problem.lower)
        slope = -differences(lambda theta: replace(here, theta=theta).pull, at, problem.unit)
        return 0.5 * (slope + slope.T)

    def anchored_influence(self, raw: Array, log_lambda: Array) -> Array:
        """Return the influence functions of theta where those of the anchor are known, (n, k).

        Parameters
        ----------
        raw : ndarray, shape (n, k)
            Those of the anchor, which moves by their sum too.
        log_lambda : ndarray, shape (n,)
            Those of the logarithm of lambda, where the order is 1 + 1 / lambda.
        """
        by_anchor, by_lambda = self._anchor_slopes
        moved = raw @ by_anchor + np.outer(log_lambda, by_lambda)
        return self.influence + moved @ self.inverse

    @cached_property
    def _anchor_slopes(self) -> tuple[Array, Array]:
        """Derivatives of the equation in the anchor (k, k) and in ln(lambda) (k,)."""

        def pull(weighing: Array, log_lambda: float) -> Array:
            order = 1.0 + (self.order - 1.0) * float(np.exp(-log_lambda))
            return replace(self, order=order, anchor=weighing, near=self.nodes).pull

        by_anchor = differences(lambda at: pull(at, 0.0), self._weighing, self.sample.problem.unit)
        by_lambda = differences(
            lambda at: pull(self._weighing, float(at[0])), np.zeros(1), np.ones(1)
        )[0]
        return np.nan_to_num(by_anchor), np.nan_to_num(by_lambda)

    def moves(self) -> tuple[Array, Array, Array]:
        """Return how theta moves with the rows (n, k), the anchor (k, k) and ln(lambda) (k,)."""
        inverse = self.root.T @ self.root
        by_anchor, by_lambda = self._anchor_slopes
        used = np.where(self.sample.mass > 0, self.scores, 0.0)
        by_row = self.sample.total * design_rows(self.sample.designs, used)
        return by_row @ inverse, by_anchor @ inverse, by_lambda @ inverse

    def step(self) -> tuple[Array, float]:
        """Return a step of scoring, and its size in standard errors."""
        held = (self.theta <= self.sample.problem.lower) & (self.pull < 0)
        pull, bread = without_held(self.pull, self.bread, held)
        root = inverse_root(bread)
        scaled = root @ pull
        return root.T @ scaled, float(np.sqrt(scaled @ scaled))

    def tail(self) -> Array:
        """Return the probability of a loss at least as large as each row's, shape (n,)."""
        found = np.zeros(len(self.losses))
        least = self.losses - ROUNDING * (1.0 + np.abs(self.losses))
        for some in self.nodes.blocks(len(found)):
            with np.errstate(all="ignore"):
                density = self._likelihood.rows.log_density(self.theta, some.y)
                far = ~(some.largest - density < least)
                chance = np.exp(some.log_count + density)
            found += np.where(far & np.isfinite(chance), chance, 0.0).sum(axis=0)
        return np.minimum(found, 1.0)
