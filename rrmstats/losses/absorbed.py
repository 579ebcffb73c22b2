"""Linear regression with absorbed effects: one for each level of one factor or of several.

By the theorem of Frisch, Waugh and Lovell, weighted least squares with the effects is that of the
response on the predictors, both less what the effects explain of them. That depends on the
weights, so that a regression with effects is fitted on tangents; see `tangents`. The search for
the minimum takes the data less medians of the levels, which bad rows do not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.frames import CLIP, MAD_UNIT, typical_spread
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import Dependence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.tolerances import ROUNDING, SUM_ROUNDING
from rrmstats.losses.regression import (
    ExplainedRegression,
    RegressionEstimate,
    RegressionProblem,
    tells_noise,
)
from rrmstats.losses.tangents import (
    TANGENTS,
    FittedOnTangents,
    TangentProblem,
    alone,
    on_own_tangent,
)


class Factors:
    """The levels of the rows in one factor or in several.

    Parameters
    ----------
    codes : ndarray of int, shape (n, f)
        Levels, numbered from zero in each column.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.absorbed import Factors
    >>> factors = Factors(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    >>> y = np.array([[1.0], [2.0], [4.0], [6.0]])
    >>> factors.within(y, np.ones(4)).ravel().round(9), factors.n_effects
    (array([ 0.25, -0.25, -0.25,  0.25]), 3)
    """

    def __init__(self, codes: np.ndarray) -> None:
        self.codes = codes
        self.counts = codes.max(axis=0) + 1
        n, f = codes.shape
        self.starts = np.concatenate([[0], np.cumsum(self.counts)])
        places = np.arange(0, n * f + 1, f)
        # Which effects each row has: one of each factor.
        self.design = csr_matrix((np.ones(n * f), (codes + self.starts[:-1]).ravel(), places))

    @cached_property
    def n_effects(self) -> int:
        """Number of effects less their redundancies: of two factors one for each connected part.

        Of further factors one for each, of which there may be more.
        """
        if len(self.counts) == 1:
            return int(self.counts[0])
        first, second = self.codes[:, :2].T
        shape = (self.starts[2], self.starts[2])
        pairs = csr_matrix((np.ones(len(first)), (first, self.counts[0] + second)), shape=shape)
        parts = connected_components(pairs, directed=False)[0]
        return int(self.counts.sum() - parts - (len(self.counts) - 2))

    @property
    def drawn_together(self) -> np.ndarray | None:
        """Levels (n,) of which a sample has all rows or none: those of the largest factor.

        None where they have so many rows that medians of the levels serve as effects.
        """
        if len(self.codes) > 100 * self.counts.max():
            return None
        return np.asarray(self.codes[:, self.counts.argmax()])

    def effects(self, values: Array, weights: Array) -> Array:
        """Return the effects (l, m) that explain most of values (n, m) under weights (n,).

        Levels without weight have those of the rows that they have.
        """
        mass = np.maximum(weights / weights.max(), SUM_ROUNDING)
        center = mass @ values / mass.sum()
        right = self.design.T @ (mass[:, None] * (values - center))
        if len(self.counts) == 1:
            return right / np.bincount(self.codes[:, 0], mass)[:, None] + center
        design = self.design
        heavy = np.repeat(mass, len(self.counts))
        gram = design.T @ csr_matrix((heavy, design.indices, design.indptr), design.shape)
        unit = 1 / np.sqrt(gram.diagonal())[:, None]
        found = unit * solved(gram.multiply(unit).multiply(unit.T).tocsr(), unit * right)
        found[: self.counts[0]] += center
        return found

    def within(self, values: Array, weights: Array) -> Array:
        """Return values (n, m) less what the effects explain of them under weights (n,)."""
        return np.asarray(values - self.design @ self.effects(values, weights))

    def less_medians(self, values: Array) -> Array:
        """Return values (n, m) less the medians of their levels, one factor after the other."""
        values = values.copy()
        for _ in range(1 if len(self.counts) == 1 else 2):
            for codes in self.codes.T:
                for column in values.T:
                    column -= medians(column, codes)[codes]
        return values

    def reach(self, weights: Array) -> Array:
        """Return about what rows (n,) have of their effects: the leverage of one of weight one.

        Exact for one factor and for balanced ones.
        """
        mass = np.maximum(weights, SUM_ROUNDING)
        shares = [(1 / np.bincount(codes, mass))[codes] for codes in self.codes.T]
        return np.asarray(sum(shares) - (len(shares) - 1) / mass.sum())

    def lost(self, n_params: int, clusters: list[np.ndarray]) -> float:
        """Return how many parameters errors account for, as fixest counts them.

        Factors whose levels lie within clusters count for one.
        """
        nested = [
            any(len(np.unique(codes + count * each)) == count for each in clusters)
            for codes, count in zip(self.codes.T, self.counts, strict=True)
        ]
        return float(n_params + self.n_effects - self.counts[nested].sum() + sum(nested))


def solved(gram: csr_matrix, right: Array) -> Array:
    """Return the solutions (l, m) of equations of unit diagonal, by conjugate gradients."""
    found, left = np.zeros_like(right), right.copy()
    along, square = left.copy(), (left**2).sum(axis=0)
    most = SUM_ROUNDING**2 * square
    for _ in range(10 * len(right)):
        if (square <= most).all():
            break
        image = gram @ along
        step = square / np.maximum((along * image).sum(axis=0), np.finfo(float).tiny)
        found, left = found + step * along, left - step * image
        last, square = square, (left**2).sum(axis=0)
        along = left + square / np.maximum(last, np.finfo(float).tiny) * along
    return found


def medians(values: Array, codes: np.ndarray) -> Array:
    """Return the median of values (n,) of each level, shape (l,)."""
    order = np.argsort(values)
    ordered = values[order[np.argsort(codes[order], kind="stable")]]
    sizes = np.bincount(codes)
    first = np.cumsum(sizes) - sizes
    return np.asarray(0.5 * (ordered[first + (sizes - 1) // 2] + ordered[first + sizes // 2]))


def without_singletons(codes: np.ndarray) -> np.ndarray:
    """Tell which rows (n,) are not alone in a level, once such rows are dropped."""
    kept = np.ones(len(codes), bool)
    while True:
        alone = [np.bincount(each[kept], minlength=len(each))[each] == 1 for each in codes.T]
        single = kept & np.any(alone, axis=0)
        if not single.any():
            return kept
        kept &= ~single


class AbsorbedProblem(FittedOnTangents, RegressionProblem):
    """Squared residuals of a regression with absorbed effects.

    Losses are those of the data less medians; estimates are those of its tangents.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
    factors : Factors
    """

    def __init__(self, endog: Array, exog: Array, factors: Factors) -> None:
        self.data, self.factors = np.column_stack([endog, exog]), factors
        self.rough = factors.less_medians(self.data)
        super().__init__(self.rough[:, 0], self.rough[:, 1:])
        self.absorbed = factors.n_effects / len(endog)

    def sample(self, rows: np.ndarray) -> RegressionProblem:
        """Return the problem of some rows less medians of all.

        Levels that are drawn together have effects of their own besides.
        """
        endog, exog = self.rough[rows, 0], self.rough[rows, 1:]
        levels, found = self.factors.drawn_together, RegressionProblem(endog, exog)
        if levels is not None:
            own = np.unique(levels[rows], return_inverse=True)[1]
            found = AbsorbedProblem(endog, exog, Factors(own[:, None]))
        found.absorbed = self.absorbed
        return found

    def to_params(self, theta: Array) -> Array:
        """Return the parameters in the units of the data."""
        return RegressionProblem.to_params(self, theta)

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell that the second step of some of the rows is a start for all of them."""
        return True

    def tangent(self, params: Array, weights: Array) -> AbsorbedTangent:
        """Return the regression of the rows less what effects under weights (n,) explain."""
        return AbsorbedTangent(self, params, weights)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the best explanation of the rows, from the tangent of the first step."""
        if isinstance(first.problem, AbsorbedTangent):
            return first.problem.second_step(first)
        problem = self.tangent(first.params, first.solution.weights)
        there = alone(first.solution, problem.from_params(first.params))
        return problem.second_step(replace(first, problem=problem, solution=there))

    def near_fit(self, spread: Array) -> Array:
        """Return the least squares fit to the rows that no predictor has far out, shape (k,).

        Bad rows far out that have a fit of their own may leave the risk no other minimum.
        """
        exog = self.rough[:, 1:]
        reach = (np.abs(exog) * MAD_UNIT / typical_spread(exog)).max(axis=1)
        near = reach <= max(CLIP, np.median(reach))
        return self.to_params(self.weighted_fit(near * spread / (near @ spread)))

    def settled_tangents(self, starts: Sequence[Array], spread: Array) -> list[AbsorbedTangent]:
        """Return tangents at the different fits that parameters (k,) lead to.

        Each is made at narrow weights of residuals from the fit on the one before, which leave
        out bad rows near the others. Effects in these residuals are medians: weighted means that
        a few bad rows hold in a level would stay with them.
        """
        found: list[AbsorbedTangent] = []
        for params in starts:
            for _ in range(TANGENTS):
                resid = self.factors.less_medians(self.data @ np.r_[1.0, -params][:, None])
                scale = float(typical_spread(resid)[0]) or 1.0
                weights = spread * np.exp(-((resid[:, 0] / scale) ** 2))
                tangent = self.tangent(params, weights / weights.sum())
                params = tangent.to_params(tangent.weighted_fit(tangent.weights))
                if any(each.is_at(params) for each in (*found, tangent)):
                    break
            if not any(each.is_at(params) for each in found):
                found.append(tangent)
        return found


class AbsorbedTangent(TangentProblem):
    """The regression that is left when effects under given weights are taken out.

    Parameters
    ----------
    whole : AbsorbedProblem
    at : ndarray, shape (k,)
        Parameters of the fit that has these weights.
    weights : ndarray, shape (n,)
    """

    whole: AbsorbedProblem
    #: Two fits are one if they are less apart, in standard deviations of residuals.
    same = 0.03

    def __init__(self, whole: AbsorbedProblem, at: Array, weights: Array) -> None:
        self.within = whole.factors.within(whole.data, weights)
        super().__init__(whole, at, self.within[:, 0], self.within[:, 1:])
        self.absorbed, self.row_groups, self.weights = whole.absorbed, whole.row_groups, weights

    @property
    def searched(self) -> AbsorbedProblem:
        """The regression on the data less medians, in which minima are sought."""
        return self.whole

    def is_at(self, params: Array) -> bool:
        """Tell whether the fit under these weights is at parameters (k,)."""
        apart = self.predictor(self.from_params(params - self.at))
        resid = self.endog - self.predictor(self.from_params(self.at))
        return bool(self.weights @ apart**2 <= self.same**2 * (self.weights @ resid**2))

    def second_step(self, first: Estimate) -> Estimate:
        """Return the best explanation of the rows, on the tangent at its own weights.

        Weights of a first step fit effects of few rows to themselves. Explanations are therefore
        compared on tangents that minima of the risk lead to, or the fit to a sample of many rows.
        """
        assert isinstance(first, RegressionEstimate)
        if not tells_noise(first.solution, first.setting):
            return super().second_step(first)
        given = self._own_minima(first).solution
        found, spread = [], first.setting.spread(self.n_obs)
        if isinstance(first.decided, ExplainedRegression):
            starts = [first.decided.params]
        else:
            starts = [self.to_params(theta) for theta in given.minima()]
            starts.append(self.whole.near_fit(spread))
        for problem in self.whole.settled_tangents(starts, spread):
            there = alone(given, problem.from_params(problem.at))
            own = replace(first, problem=problem, solution=there, decided=None)
            explained = cast(ExplainedAbsorbed, RegressionProblem.second_step(problem, own))
            found.append(cast(ExplainedAbsorbed, on_own_tangent(explained)))
        return replace(min(found, key=lambda each: each.bic), first=first)

    def departs(self, params: Array, other: TangentProblem) -> float:
        """Return how far two tangents are apart at parameters (k,), in most rows."""
        assert isinstance(other, AbsorbedTangent)
        own, others = (
            each.endog - each.predictor(each.from_params(params)) for each in (self, other)
        )
        return self.endog_unit * float(np.sqrt(other.weights @ (own - others) ** 2))

    def consistent(self, solution: Solution, setting: Setting) -> AbsorbedEstimate:
        """Return the estimate of the first step."""
        return AbsorbedEstimate(**values_of(super().consistent(solution, setting)))

    def explained_in(self, *args: Any, **kwargs: Any) -> ExplainedAbsorbed:
        """Return the best explanation of the rows, whose only minimum is its own."""
        return ExplainedAbsorbed(**values_of(super().explained_in(*args, **kwargs)))


def values_of(estimate: Estimate) -> dict[str, Any]:
    """Return the fields of an estimate."""
    return {each.name: getattr(estimate, each.name) for each in fields(estimate)}


class AbsorbedEstimate(RegressionEstimate):
    """The estimate of the first step, with errors as fixest and pyfixest have them.

    Influence functions have the residuals as they are; covariances make up for what the fit took
    from these by factors such as ``n / (n - k)`` (HC1) and ``(n - 1) / (n - k)`` for clusters.
    """

    problem: AbsorbedTangent

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        return np.sqrt(self._factor(None)) * self.deletion_influence()

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k)."""
        found = self.covariance_of(self.deletion_influence(), dependence)
        return self._factor(dependence) * found

    def _factor(self, dependence: Dependence | None) -> float:
        """Return what a covariance is multiplied by."""
        groups = self.problem.row_groups
        clusters = [] if groups is None else [groups]
        if dependence is not None:
            clusters = dependence.clusters or clusters
        good = self._good
        lost = self.problem.whole.factors.lost(self.problem.n_params, clusters)
        return (good - bool(clusters)) / max(good - lost, 1.0)


class ExplainedAbsorbed(AbsorbedEstimate, ExplainedRegression):
    """The estimate of the second step of a regression with absorbed effects."""

    @property
    def bic(self) -> float:
        """Schwarz's criterion in the units of the data, which all tangents share."""
        assert self.explained is not None
        return self.explained.chosen.bic + self.rows.decided.rows.total * np.log(self.loss_unit)

    @property
    def curvature_pvalue(self) -> float:
        """NaN: squares of the predictors less their effects do not tell curves."""
        return np.nan

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level, (n,).

        A row that had a part in its effects is nearer to them than one that had none.
        """
        good, pull = self.rows.probabilities()
        reach = self.problem.whole.factors.reach(pull * self.setting.counts(len(pull)))
        factor = np.sqrt(np.maximum(1 + (1 - 2 * good) * reach, ROUNDING))
        return factor * super().residual_cutoffs(level)
