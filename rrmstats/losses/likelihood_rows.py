"""Rows of a likelihood under weights of an order, and what their law expects of them.

Weights ``w = exp(-(a - 1) l)`` of order a, with l the loss, tilt the law of good rows. The mean
score under the tilted law, c = E(w u) / E(w), is found from the law of each row, so that
``sum w (u - c) = 0`` is solved by the true parameters (Fisher consistency). Rows without weight
play no part in it. See `rrmstats.losses.tilted_rows` for the same with closed forms.

The weights of a first step are those at its raw parameters, the anchor, and stay so while the
equation is solved: what they are a function of does not matter for consistency, and other
parameters would give weights that resist less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rrmstats.core.consistency import bad_share
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_root
from rrmstats.core.setting import Setting
from rrmstats.losses.finite_differences import differences, inside
from rrmstats.losses.likelihood_laws import Law, Likelihood
from rrmstats.losses.numerical import without_held

# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
BREAD = (0.5, 2.0)
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9
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
LONGEST = 2.0
# Size of the last step in standard errors, also under weights of groups, and one that has
# converged for all purposes.
STEP_TOL, GROUPS_TOL, SETTLED = 1e-7, 1e-8, 1e-3
MOST_STEPS = 60
HALVINGS = 12


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
        """Mean score of each row under the tilted law, shape (n, k)."""
        mass, first, _ = self.moments
        return first / mass[:, None]

    @cached_property
    def spread(self) -> Array:
        """Covariance of a row's score under the tilted law, shape (n, k, k)."""
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
        """Weighted log-likelihood of the tilted law; the root of an anchor maximizes it."""
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
        return _within(at, np.clip(step, -LONGEST * unit, LONGEST * unit))

    tol = GROUPS_TOL if rows.counted else STEP_TOL
    rows, size = damped_root(rows, LawRows.step, moved, tol, MOST_STEPS)
    return rows, size < SETTLED


def _within(rows: LawRows, step: Array) -> LawRows:
    """Return the rows a step away, or part of it, where the rows with weight are defined."""
    used = rows.weights * rows.sample.mass > 0
    for _ in range(HALVINGS):
        moved = rows.shifted(step)
        if np.isfinite(moved.losses[used]).all() and np.isfinite(moved.bread).all():
            return moved
        step = 0.5 * step
    return rows
