"""Rows under weights of an order, and fits at a fixed order.

Weights ``w = exp(-(a - 1) l)`` of order a, with l the loss (half a deviance over the dispersion),
tilt the distribution of good rows. The mean score under the tilted distribution, c = E(w u) /
E(w), is known at each row, so that ``sum w (u - c) = 0`` is solved by the true parameters (Fisher
consistency). Rows without weight play no part in it, wherever their predictors are.

`TiltedRows` are those of a generalized linear model, in memory or in blocks, whose expectations
have closed forms or are interpolated. `LawRows` are those of any likelihood whose responses have a
known law. The weights of its first step are those at its raw parameters, the anchor, and stay so
while the equation is solved: what they are a function of does not matter for consistency, and
other parameters would give weights that resist less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from rrmstats.core.block_array import aligned, row_map, row_reduce
from rrmstats.core.consistency import bad_share, scale_factor, share_factor
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_root
from rrmstats.core.sandwich import mean_and_error
from rrmstats.core.setting import Setting
from rrmstats.laws.families import MANY_ROWS, Counts, Family, Moments
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.finite_differences import differences, inside
from rrmstats.losses.likelihood_laws import Law, Likelihood
from rrmstats.losses.numerical import without_held

# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
BREAD = (0.5, 2.0)
# Derivative, relative to the expected one, from which Newton's steps are taken.
LEAST_SLOPE = 0.05
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9
# Longest step of a linear predictor, in the root mean square over the rows with weight.
LONGEST = 1.0
# Size of the last step in standard errors, in units of the tolerance, and at least.
STEP_SIZE, LEAST_STEP = 100.0, 1e-9
# Steps of a fit: they converge in a few, and a fit that does not never will.
MOST_STEPS = 100
TINY = float(np.finfo(float).tiny)
# Change of a log dispersion, and of a fit in standard errors, that has converged for all purposes.
SETTLED = 1e-4
# Change of the log dispersion below which steps are lengthened to about Newton's.
NEAR = 0.05
# Accuracy of a root in the log dispersion, and the steps in which it is looked for.
ROOT_TOL, FARTHEST_STEP = 1e-12, 3.0
# Information on a parameter per row, in its unit, below which there is none.
FLAT = 1e-4
# Part of a parameter, squared, in directions without information that makes it unknown.
LOADING = 0.01
# Entries of the arrays that a block of responses works on.
BLOCK = 400_000
# Steps, in units of the parameters, over which the responses of a quadrature stay.
NEAR = 0.05
# Losses that differ by this are ties.
TIES = 1e-9
# Longest step, in units of the parameters in which the mean loss bends by one.
LONGEST_UNITS = 2.0
# Size of the last step in standard errors, also under weights of groups, and one that has
# converged for all purposes.
STEP_TOL, GROUPS_TOL, LAW_SETTLED = 1e-7, 1e-8, 1e-3
MOST_LAW_STEPS = 60
HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a generalized linear model, with what a fit was asked for.

    Attributes
    ----------
    problem : DevianceProblem
    setting : Setting
    """

    problem: DevianceProblem
    setting: Setting

    @cached_property
    def mass(self) -> Array:
        """How often each row counts, shape (n,)."""
        return aligned(self.setting.counts(self.problem.n_obs), self.problem.blocks)

    @cached_property
    def interpolates(self) -> bool:
        """Whether rows of few sizes are so many that expectations are interpolated."""
        problem = self.problem
        if not isinstance(problem.family, Counts):
            return False
        return problem.n_obs > MANY_ROWS * len(row_reduce(np.unique, _union, problem.var_weights))

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.problem.n_obs)

    def at(self, theta: Array, dispersion: float, order: float) -> TiltedRows:
        """Return the rows under weights of an order."""
        return TiltedRows(self, theta, dispersion, order)


class Totals(NamedTuple):
    """Sums over rows, each as often as it counts.

    Attributes
    ----------
    ratio, deviance : float
        Of the weights over their expectations, and of weights times deviances.
    wanted : float
        Of weights times the deviances that the model expects under them.
    """

    ratio: float
    deviance: float
    wanted: float


class Products(NamedTuple):
    """Sums of which a step is made.

    Attributes
    ----------
    bread : ndarray, shape (k, k)
        Minus the expected derivative of the equation at rows with weight. Under the model
        ``E(w u (u - c))`` is the expected derivative, and ``w / E(w)`` has mean one at good rows
        and is zero at bad ones.
    observed_bread : ndarray, shape (k, k)
        Minus the derivative of the equation.
    gram : ndarray, shape (k, k)
        Gram matrix of the design under the weights.
    pull : ndarray, shape (k,)
        Sum of the scores.
    weight : float
        Sum of the weights.
    """

    bread: Array
    observed_bread: Array
    gram: Array
    pull: Array
    weight: float


class TiltedRows:
    """Rows under weights of an order at some parameters and dispersion.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
    dispersion, order : float
    """

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
    def weights(self) -> Array:
        """Weights of the rows, in [0, 1]."""
        return np.exp(-0.5 * (self.order - 1.0) * self.deviance)

    @cached_property
    def moments(self) -> Moments:
        """Expectations under the model."""
        columns = row_map(
            moment_columns, self.mu, self.size, tail=(4,), family=self.sample.problem.family,
            order=self.order, interpolates=self.sample.interpolates,
        )  # fmt: skip
        return Moments(*(columns[:, i] for i in range(4)))

    @cached_property
    def totals(self) -> Totals:
        """Sums over the rows."""
        moments, share = self.moments, self.sample.mass * self.ratio
        pull = self.sample.mass * self.weights
        values = [
            share,
            pull * self.deviance,
            pull * (moments.deviance / moments.mass),
        ]
        return Totals(*self.sample.problem.products([], [], values)[2])

    @cached_property
    def products(self) -> Products:
        """Sums of which a step is made, in one pass over rows in blocks."""
        mass = self.sample.mass
        weights = mass * self.weights
        (bread, observed, gram), (pull,), (weight,) = self.sample.problem.products(
            [weights * self.spread, mass * self._observed, weights],
            [mass * self.scores],
            [weights],
        )
        return Products(bread, observed, gram, pull, weight)

    @cached_property
    def _scores(self) -> tuple[Array, Array, Array]:
        """Scores in the linear predictor, information, and the rest of the derivative."""
        first, expected, swing = self.sample.problem.score_parts(self.eta)
        phi = self.dispersion
        return first / phi, expected / phi, swing / phi

    @cached_property
    def _per_response(self) -> Array:
        """Change of a score with its response, shape (n,)."""
        problem = self.sample.problem
        slope = problem.mean.slopes(self.eta + problem.offset)[0]
        return self.size * slope / problem.family.variance(self.mu)

    @cached_property
    def center(self) -> Array:
        """Mean score of a row under the tilted distribution, shape (n,)."""
        return self._per_response * self.moments.first / self.moments.mass

    @cached_property
    def scores(self) -> Array:
        """Contributions of the rows to the estimating equation, in the linear predictor."""
        return self.weights * (self._scores[0] - self.center)

    @cached_property
    def spread(self) -> Array:
        """Variance of a row's score under the tilted distribution, shape (n,)."""
        second = self._per_response**2 * self.moments.second / self.moments.mass
        return np.maximum(second - self.center**2, 0.0)

    @property
    def _observed(self) -> Array:
        """Minus the derivative of each score in the linear predictor, shape (n,)."""
        u, expected, swing = self._scores
        c, w, mass = self.center, self.weights, self.moments.mass
        per_response = self._per_response
        second = per_response**2 * self.moments.second / mass
        off = self.sample.problem.endog - self.mu
        bend = swing / np.where(off == 0, 1.0, off)
        mean_swing = bend * self.moments.first / mass
        drift = self.order * second - expected + mean_swing - self.order * c**2
        return -w * ((self.order - 1.0) * u * (u - c) - expected + swing - drift)

    @cached_property
    def _relative_bread(self) -> tuple[Array, Array]:
        """Eigenvalues of the observed bread in units of the expected one, and the axes."""
        root = inverse_root(self.products.bread)
        values, vectors = np.linalg.eigh(root @ self.products.observed_bread @ root.T)
        return values, vectors.T @ root

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the observed bread, kept near the expected one, shape (k, k)."""
        values, axes = self._relative_bread
        return (axes.T / np.clip(values, *BREAD)) @ axes

    @cached_property
    def influence(self) -> Array:
        """Influence functions of theta, with HC3's factors, shape (n, k): it moves by the sum."""
        exog = self.sample.problem.exog
        moved = exog @ self.inverse
        reach = np.einsum("ni,ni->n", moved, exog)
        leverage = np.clip(reach * self.weights * self.spread, 0.0, LEVERAGE_MAX)
        return moved * (self.scores / (1.0 - leverage))[:, None]

    @cached_property
    def ratio(self) -> Array:
        """Weights over their expectations, shape (n,): mean one at good rows, zero at bad ones."""
        return self.weights / self.moments.mass

    @property
    def params_per_row(self) -> float:
        """Parameters per good row; of these there are as many as the budget leaves at least."""
        sample = self.sample
        good = np.clip(self.totals.ratio / sample.total, 1.0 - sample.setting.eps_bar, 1.0)
        return sample.problem.n_params / max(sample.total * float(good), 1.0)

    def bad_share(self) -> float:
        """Return the estimated share of bad rows, at most eps_bar."""
        sample = self.sample
        ratio, eps_bar = self.totals.ratio / sample.total, sample.setting.eps_bar
        return bad_share(ratio, sample.problem.n_params, sample.total, self.order, eps_bar)

    def share_error(self) -> float:
        """Return the standard error of the share of good rows."""
        change = self.ratio * ((self.order - 1.0) * self._scores[0] - self.order * self.center)
        exog, mass = self.sample.problem.exog, self.sample.mass
        return mean_and_error(self.ratio, change, self.influence, exog, mass)[1]

    def step(self) -> tuple[Array, float]:
        """Return a step towards the root of the equation, and its size in standard errors.

        Newton's in directions in which the derivative has the sign that is expected, else that of
        scoring.
        """
        values, axes = self._relative_bread
        scaled = axes @ self.products.pull / np.where(values > LEAST_SLOPE, values, 1.0)
        return axes.T @ scaled, float(np.sqrt(scaled @ scaled))

    def reach(self, step: Array) -> float:
        """Return how far a step moves linear predictors, in root mean square under weights."""
        square = float(step @ self.products.gram @ step)
        return (square / max(self.products.weight, TINY)) ** 0.5

    def log_growth(self, fitted: float) -> float:
        """Return the change of the log dispersion in one step of its fixed point.

        Parameters
        ----------
        fitted : float
            Order of the fit that left the residuals.
        """
        found, wanted = self.totals.deviance, self.totals.wanted
        factor = scale_factor(self.params_per_row, self.order, fitted)
        return float(np.log(factor * found / wanted))

    def least_share(self, fitted: float) -> float:
        """Return the least mean of `ratio` that the budget allows."""
        left = 1.0 - self.sample.setting.eps_bar
        factor = share_factor(self.params_per_row, self.order, fitted)
        return min(left * factor, 1.0)


def moment_columns(
    mu: Array, size: Array, family: Family, order: float, interpolates: bool
) -> Array:
    """Return the expectations of rows in memory as columns, shape (n, 4)."""
    if interpolates and isinstance(family, Counts):
        return np.column_stack(family.interpolated(mu, size, order))
    return np.column_stack(family.moments(mu, size, order))


def _union(parts: list[Array | None]) -> Array | None:
    found = [part for part in parts if part is not None]
    return np.unique(np.concatenate(found)) if found else None


def tilted_fit(
    sample: Sample, theta: Array, dispersion: float, order: float
) -> tuple[TiltedRows, bool]:
    """Return the rows at the consistent fit of an order, from a start, and whether it is one."""

    def step(rows: TiltedRows) -> tuple[Array, float]:
        step, size = rows.step()
        return step * min(1.0, LONGEST / max(rows.reach(step), TINY)), size

    def moved(rows: TiltedRows, step: Array) -> TiltedRows:
        return sample.at(rows.theta + step, dispersion, order)

    rows, size = damped_root(
        sample.at(theta, dispersion, order), step, moved, LEAST_STEP, MOST_STEPS
    )
    return rows, size < SETTLED


def grown(rows: TiltedRows, fitted: float) -> float:
    """Return the change of the log dispersion, which never ends below what the budget allows."""
    growth = rows.log_growth(fitted)
    if growth >= 0:
        return growth
    least, sample = rows.least_share(fitted), rows.sample
    after = sample.at(rows.theta, rows.dispersion * float(np.exp(growth)), rows.order)
    if after.totals.ratio / sample.total >= least:
        return growth
    found = budget_dispersion(sample, rows.theta, rows.order, least, rows.dispersion)
    return float(np.log(found / rows.dispersion))


def budget_dispersion(
    sample: Sample, theta: Array, order: float, good: float, start: float
) -> float:
    """Return the dispersion at which the weights leave exactly a share of good rows.

    The root of ``log(mean(w / E(w))) = log(good)`` in the log dispersion.
    """

    def gap(at: float) -> float:
        ratio = sample.at(theta, float(np.exp(at)), order).totals.ratio / sample.total
        return float(np.log(max(ratio, TINY) / good))

    at = float(np.log(start))
    below = gap(at) < 0
    for _ in range(MOST_STEPS):
        last, at = at, at + (FARTHEST_STEP if below else -FARTHEST_STEP)
        if (gap(at) < 0) != below:
            return float(np.exp(brentq(gap, last, at, xtol=ROOT_TOL)))
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
    tol = max(STEP_SIZE * sample.setting.tol, LEAST_STEP)
    for _ in range(sample.setting.maxiter):
        rows = sample.at(theta, dispersion, order)
        growth = grown(rows, 1.0 + dispersion / lambda_)
        last, change = change, abs(growth)
        length = order if change < min(NEAR, last) else 1.0
        dispersion *= float(np.exp(length * growth))
        if change < tol:
            break
    return dispersion, change < SETTLED


@dataclass(frozen=True, eq=False)
class LawSample:
    """Rows of a likelihood, with what a fit was asked for.

    Attributes
    ----------
    likelihood : Likelihood
        With a law.
    setting : Setting
    unit : ndarray, shape (k,)
        Units of the parameters, for differences.
    """

    likelihood: Likelihood
    setting: Setting
    unit: Array

    @cached_property
    def mass(self) -> Array:
        """How often each row counts, shape (n,)."""
        return np.array(self.setting.counts(self.likelihood.n_obs))

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.likelihood.n_obs)

    def at(self, theta: Array, order: Any, anchor: Array | None = None) -> LawRows:
        """Return the rows under weights of an order."""
        return LawRows(self, theta, order, anchor, self.nodes(theta))

    def weighed(self, raw: Array, rates: Array) -> LawRows:
        """Return the rows under weights of groups, which are frequency weights already.

        Parameters
        ----------
        raw : ndarray, shape (k,)
            Parameters of least risk, at which the rows had their losses.
        rates : ndarray, shape (n,)
            The weight of a row is proportional to ``exp(-rates * losses)``.
        """
        return LawRows(self, raw, 1.0 + rates, raw, self.nodes(raw), counted=True)

    def nodes(self, theta: Array) -> Nodes:
        """Return the responses over which expectations are sums at theta and near it."""
        law = self.likelihood.law
        assert law is not None
        with np.errstate(all="ignore"):
            y, log_count = law.nodes(theta)
            return Nodes(y, log_count, np.asarray(self.largest(y)) + 0.0 * y)

    @cached_property
    def observed_largest(self) -> Array | float:
        """Largest log-likelihoods of the rows."""
        return self.largest(self.likelihood.endog)

    def largest(self, y: Array) -> Array | float:
        """Return the largest log-likelihoods of responses, 0 where they are not known."""
        largest = self.likelihood.largest
        return 0.0 if largest is None else largest(y)


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

    def blocks(self, n: int) -> Iterator[Nodes]:
        """Yield parts of the responses whose arrays have about BLOCK entries."""
        size = max(1, BLOCK // n)
        for i in range(0, len(self.y), size):
            part = slice(i, i + size)
            yield Nodes(self.y[part], self.log_count[part], self.largest[part])


@dataclass(frozen=True, eq=False)
class LawRows:
    """Rows under weights of an order at some parameters.

    Attributes
    ----------
    sample : LawSample
    theta : ndarray, shape (k,)
    order : float, or ndarray, shape (n,)
    anchor : ndarray, shape (k,), or None
        Parameters at which the weights are taken; None means `theta`.
    nodes : Nodes
        Responses over which expectations are sums.
    counted : bool
        Whether the weights are frequency weights already.
    """

    sample: LawSample
    theta: Array
    order: Any
    anchor: Array | None
    nodes: Nodes
    counted: bool = False

    def shifted(self, step: Array) -> LawRows:
        """Return the rows a step away, at least at the lower bounds of the parameters."""
        theta, lower = self.theta + step, self.sample.likelihood.lower
        theta = theta if lower is None else np.maximum(theta, lower)
        near = float(np.abs(step / self.sample.unit).max()) < NEAR
        return replace(self, theta=theta, nodes=self.nodes if near else self.sample.nodes(theta))

    @property
    def _weighing(self) -> Array:
        return self.theta if self.anchor is None else self.anchor

    def _losses_at(self, theta: Array) -> Array:
        likelihood = self.sample.likelihood
        with np.errstate(all="ignore"):
            found = self.sample.observed_largest - likelihood.log_likelihood(theta)
        return np.where(np.isnan(found), np.inf, found)

    @cached_property
    def losses(self) -> Array:
        """Losses of the rows, shape (n,); +inf outside of the domain."""
        return self._losses_at(self.theta)

    @cached_property
    def weights(self) -> Array:
        """Weights of the rows, shape (n,)."""
        if self.counted:
            return np.ones(self.sample.likelihood.n_obs)
        return np.exp(-(self.order - 1.0) * self._losses_at(self._weighing))

    @cached_property
    def observed_scores(self) -> Array:
        """Scores of the rows, shape (n, k); zero where they are not defined."""
        likelihood = self.sample.likelihood
        with np.errstate(all="ignore"):
            found = (
                differences(likelihood.log_likelihood, self.theta, self.sample.unit).T
                if likelihood.scores is None
                else np.asarray(likelihood.scores(self.theta), dtype=float)
            )
        return np.where(np.isfinite(found), found, 0.0)

    @property
    def _law(self) -> Law:
        law = self.sample.likelihood.law
        assert law is not None
        return law

    def _tilted(self, some: Nodes) -> Array:
        """Return the probabilities of responses times their weights, shape (m, n)."""
        with np.errstate(all="ignore"):
            density = self._law.log_density(self.theta, some.y)
            weighing = (
                density if self.anchor is None else self._law.log_density(self.anchor, some.y)
            )
            found = np.exp(
                some.log_count + density - (self.order - 1.0) * (some.largest - weighing)
            )
        return np.where(np.isfinite(found), found, 0.0)

    @cached_property
    def moments(self) -> tuple[Array, Array, Array]:
        """E(w), shape (n,), E(w u), shape (n, k), and E(w u u'), shape (n, k, k)."""
        mass: Array | float = 0.0
        first: Array | float = 0.0
        second: Array | float = 0.0
        inner = None
        for some in self.nodes.blocks(self.sample.likelihood.n_obs):
            tilted = self._tilted(some)
            slopes, inner = self._law.slopes(self.theta, some.y, self.sample.unit)
            slopes = np.where((tilted > 0) & np.isfinite(slopes), slopes, 0.0)
            pulled = tilted * slopes
            mass = mass + tilted.sum(axis=0)
            first = first + pulled.sum(axis=1)
            second = second + np.array([[(p * s).sum(axis=0) for s in slopes] for p in pulled])
        mean, square = np.asarray(first), np.asarray(second)
        if inner is None:
            u, uu = mean.T, np.moveaxis(square, -1, 0)
        else:
            u = np.einsum("qn,qnk->nk", mean, inner)
            uu = np.einsum("qrn,qnk,rnl->nkl", square, inner, inner, optimize=True)
        return np.maximum(mass, np.finfo(float).tiny), u, uu

    @cached_property
    def center(self) -> Array:
        """Mean score of each row under the tilted distribution, shape (n, k)."""
        mass, first, _ = self.moments
        return first / mass[:, None]

    @cached_property
    def spread(self) -> Array:
        """Covariance of a row's score under the tilted distribution, shape (n, k, k)."""
        mass, _, second = self.moments
        return second / mass[:, None, None] - self.center[:, :, None] * self.center[:, None, :]

    @cached_property
    def scores(self) -> Array:
        """Contributions of the rows to the estimating equation, shape (n, k)."""
        return self.weights[:, None] * (self.observed_scores - self.center)

    @cached_property
    def pull(self) -> Array:
        """The estimating equation, shape (k,)."""
        return self.sample.mass @ self.scores

    @property
    def tilted_likelihood(self) -> float:
        """Weighted tilted log-likelihood; the root of an anchor maximizes it."""
        used = (self.weights > 0) & (self.sample.mass > 0)
        mass = (self.sample.mass * self.weights)[used]
        gain = -self.losses[used] - np.log(self.moments[0][used])
        return float(mass @ gain)

    @cached_property
    def flat(self) -> np.ndarray:
        """Which parameters the rows tell nothing about, shape (k,)."""
        unit = self.sample.unit
        values, axes = np.linalg.eigh(self.bread * np.outer(unit, unit))
        none = values < FLAT * self.sample.total
        return (axes[:, none] ** 2).sum(axis=1) > LOADING

    @cached_property
    def free(self) -> np.ndarray:
        """Which parameters are neither flat nor held at their bounds, shape (k,)."""
        lower = self.sample.likelihood.lower
        held = False if lower is None else (self.theta <= lower) & (self.pull <= 0)
        return ~(self.flat | held)

    @cached_property
    def bread(self) -> Array:
        """Minus the expected derivative of the equation at rows with weight, shape (k, k)."""
        return np.tensordot(self.sample.mass * self.weights, self.spread, 1)

    @cached_property
    def observed_bread(self) -> Array:
        """Minus the derivative of the equation, shape (k, k)."""
        at = inside(self.theta, self.sample.unit, self.sample.likelihood.lower)
        slope = -differences(lambda t: replace(self, theta=t).pull, at, self.sample.unit)
        return 0.5 * (slope + slope.T)

    @cached_property
    def _root(self) -> Array:
        """Root of the inverse of the bread of the free parameters, zero for others."""
        free = self.free
        root = np.zeros((len(free), len(free)))
        root[np.ix_(free, free)] = inverse_root(self.bread[np.ix_(free, free)])
        return root

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the observed bread, kept near the expected one, shape (k, k)."""
        root = self._root
        observed = np.nan_to_num(self.observed_bread)
        values, vectors = np.linalg.eigh(root @ observed @ root.T)
        axes = vectors.T @ root
        return (axes.T / np.clip(values, *BREAD)) @ axes

    def influence(self, raw: Array | None = None, log_lambda: Array | None = None) -> Array:
        """Return the influence functions of theta, with HC3's factors: it moves by the sum.

        Parameters
        ----------
        raw : ndarray, shape (n, k), optional
            Those of the anchor, which moves by their sum too.
        log_lambda : ndarray, shape (n,), optional
            Those of the logarithm of lambda, where the order is 1 + 1 / lambda.

        Returns
        -------
        ndarray, shape (n, k)
        """
        reach = np.einsum("ij,nij->n", self.inverse, self.spread) * self.weights
        leverage = np.clip(reach, 0.0, LEVERAGE_MAX)
        moved = self.scores / (1.0 - leverage)[:, None]
        if raw is not None and log_lambda is not None:
            by_anchor, by_lambda = self._anchor_slopes
            moved = moved + raw @ by_anchor + np.outer(log_lambda, by_lambda)
        return moved @ self.inverse

    @cached_property
    def _anchor_slopes(self) -> tuple[Array, Array]:
        """Derivatives of the equation in the anchor (k, k) and in ln(lambda) (k,)."""

        def pull(weighing: Array, log_lambda: float) -> Array:
            order = 1.0 + (self.order - 1.0) * float(np.exp(-log_lambda))
            return replace(self, order=order, anchor=weighing).pull

        by_anchor = differences(lambda at: pull(at, 0.0), self._weighing, self.sample.unit)
        by_lambda = differences(
            lambda at: pull(self._weighing, float(at[0])), np.zeros(1), np.ones(1)
        )[0]
        return np.nan_to_num(by_anchor), np.nan_to_num(by_lambda)

    def moves(self) -> tuple[Array, Array, Array]:
        """Return how theta moves with the rows (n, k), the anchor (k, k) and ln(lambda) (k,)."""
        inverse = self._root.T @ self._root
        used = (self.sample.mass > 0)[:, None]
        by_anchor, by_lambda = self._anchor_slopes
        by_row = self.sample.total * np.where(used, self.scores, 0.0)
        return by_row @ inverse, by_anchor @ inverse, by_lambda @ inverse

    def step(self) -> tuple[Array, float]:
        """Return a step of scoring, and its size in standard errors."""
        pull, bread, lower = self.pull, self.bread, self.sample.likelihood.lower
        if lower is not None:
            pull, bread = without_held(pull, bread, (self.theta <= lower) & (pull < 0))
        root = inverse_root(bread)
        scaled = root @ pull
        return root.T @ scaled, float(np.sqrt(scaled @ scaled))

    @cached_property
    def ratio(self) -> Array:
        """Weights over their expectations, shape (n,): mean one at good rows, zero at bad ones."""
        return self.weights / self.moments[0]

    def bad_share(self) -> float:
        """Return the estimated share of bad rows, at most eps_bar."""
        sample = self.sample
        ratio = float(sample.mass @ self.ratio) / sample.total
        eps_bar = sample.setting.eps_bar
        return bad_share(ratio, len(self.theta), sample.total, self.order, eps_bar)

    def share_error(self) -> float:
        """Return the standard error of the share of good rows."""
        mass, total = self.sample.mass, self.sample.total
        change = -self.center
        if self.anchor is None:
            change = (self.order - 1.0) * self.observed_scores - self.order * self.center
        slope = (mass * self.ratio) @ change / total
        mean = float(mass @ self.ratio) / total
        moved = (self.ratio - mean) / total + self.influence() @ slope
        return float(np.sqrt(mass @ moved**2))

    def tail(self) -> Array:
        """Return the probability of a loss at least as large as each row's, shape (n,)."""
        found = np.zeros(len(self.losses))
        least = self.losses - TIES * (1.0 + np.abs(self.losses))
        for some in self.nodes.blocks(len(found)):
            with np.errstate(all="ignore"):
                density = self._law.log_density(self.theta, some.y)
                far = ~(some.largest - density < least)
                chance = np.exp(some.log_count + density)
            found += np.where(far & np.isfinite(chance), chance, 0.0).sum(axis=0)
        return np.minimum(found, 1.0)


def law_fit(rows: LawRows) -> tuple[LawRows, bool]:
    """Return the rows at the consistent parameters of their order, and whether they are a root.

    Parameters
    ----------
    rows : LawRows
        The rows where to start.
    """
    unit = rows.sample.unit

    def moved(at: LawRows, step: Array) -> LawRows:
        return _within(at, np.clip(step, -LONGEST_UNITS * unit, LONGEST_UNITS * unit))

    tol = GROUPS_TOL if rows.counted else STEP_TOL
    rows, size = damped_root(rows, LawRows.step, moved, tol, MOST_LAW_STEPS)
    return rows, size < LAW_SETTLED


def _within(rows: LawRows, step: Array) -> LawRows:
    """Return the rows a step away, or part of it, where the rows with weight are defined."""
    used = rows.weights * rows.sample.mass > 0
    for _ in range(HALVINGS):
        moved = rows.shifted(step)
        if np.isfinite(moved.losses[used]).all() and np.isfinite(moved.bread).all():
            return moved
        step = 0.5 * step
    return rows
