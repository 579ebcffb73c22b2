"""Estimates of linear regression: the noise of its good rows, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import t

from rrmstats.core.consistency import (
    order_efficiency,
    second_moment_ratio,
    untilted_variance,
)
from rrmstats.core.design import (
    CONDITION_ROWS,
    Design,
    inverse_root,
    power_of_two,
    standardizing,
)
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.explanations import Explanation, of_groups, without_comparison
from rrmstats.core.points import evaluate
from rrmstats.core.sandwich import Dependence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian_choice import GaussianExplanation
from rrmstats.laws.gaussian_equations import Equations
from rrmstats.losses.gaussian_rows import ExplainedRows, continued, explained_gaussian
from rrmstats.losses.residuals import (
    FittedRows,
    Noise,
    Scores,
    eps_hat_error,
    first_noise,
    first_scores,
    reset_pvalue,
    residual_cutoffs,
    scale_freedom,
    tilted,
)
from rrmstats.losses.squares import SquaresProblem


class RegressionProblem(SquaresProblem):
    """Squared residuals of data of any scale and any rank, and their estimates.

    Losses of the data are ``endog_unit ** 2`` times those of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import RegressionProblem
    >>> x = 1e9 * np.arange(10.0)
    >>> problem = RegressionProblem(2 * x + np.sin(x), np.c_[x, x])
    >>> problem.to_params(minimize(problem, eps_bar=0.2).theta).round(6)
    array([1., 1.])
    """

    seeks_minima = True

    def __init__(self, endog: Array, exog: Array) -> None:
        self.design = Design(exog)
        self.endog_unit = float(power_of_two(endog))
        if not 1e-152 < self.endog_unit < 1e152:
            raise ValueError(
                f"endog reaches {np.abs(endog).max():.3g}, whose square is too large or too small "
                "for a floating-point number; measure endog in other units or drop such rows"
            )
        scaled = endog if self.endog_unit == 1 else endog / self.endog_unit
        super().__init__(scaled, self.design.exog)
        if self.design.back is not None:
            self.columns = exog / power_of_two(exog, axis=0)

    def to_params(self, theta: Array) -> Array:
        """Return the parameters in the units of the data."""
        return self.endog_unit * self.design.to_params(theta)

    def from_params(self, params: Array) -> Array:
        """Return the parameters in the coordinates of the problem."""
        return self.design.from_params(params / self.endog_unit)

    def consistent(self, solution: Solution, setting: Setting) -> RegressionEstimate:
        """Return the estimate of the first step, with the variance of the noise of good rows."""
        rows = self._rows(solution, setting)
        noise = self._known_noise(solution, setting) if rows is None else first_noise(rows)
        error = float(np.sqrt(noise.eps_hat * (1 - noise.eps_hat) / setting.wnobs(self.n_obs)))
        return RegressionEstimate(
            **self._fields(solution, setting, noise),
            eps_hat_se=error if rows is None else eps_hat_error(rows, noise),
        )

    def _fields(self, solution: Solution, setting: Setting, noise: Noise) -> dict[str, Any]:
        """Return what estimates of both steps hold."""
        params = self.to_params(solution.theta)
        return dict(
            problem=self,
            setting=setting,
            solution=solution,
            params=params,
            raw_params=params,
            eps_hat=noise.eps_hat,
            loss_unit=self.endog_unit**2,
            noise=noise,
        )

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows.

        Without noise, or where no row can be bad, it is the first step.
        """
        assert isinstance(first, RegressionEstimate)
        found, setting = first.solution, first.setting
        if self._rows(found, setting) is None:
            bad = of_groups(1.0 * (found.weights == 0), setting.groups)
            told = without_comparison(bad, first.eps_hat)
            return replace(first, first=first, explained=told)
        basis = standardizing(self.thinned(CONDITION_ROWS).exog)
        rows = explained_gaussian(
            self,
            setting,
            self.endog[:, None],
            self.exog @ basis,
            [(np.linalg.solve(basis, coef), s) for coef, s in self._candidates(first)],
        )
        mixture = rows.fitted.mixture
        theta, scale = basis @ mixture.coef[0, :, 0], float(mixture.scatter[0, 0, 0])
        share, error = rows.share()
        found = continued(self, first, theta, rows.probabilities()[1], rows.converged)
        return ExplainedRegression(
            **self._fields(found, setting, Noise(theta, 1.0, scale, share)),
            first=first,
            explained=rows.explained,
            eps_hat_se=error,
            rows=rows,
            basis=basis,
        )

    def _candidates(self, first: RegressionEstimate) -> list[tuple[Array, Array]]:
        """Return coefficients (k, 1) and variances (1, 1) to start from, the lowest first.

        They are the minima that the search met, there and at other bounds.
        """
        found, setting, candidates = first.solution, first.setting, []
        if self.blocks is not None:
            return [(found.theta[:, None], np.array([[first.noise.scale]]))]
        ends = np.vstack([found.theta[None], found.other_minima()])
        points = evaluate(self, ends, setting.budget(self.n_obs))
        told = (points.risk > 0) & (points.lambda_ > 0) & np.isfinite(points.lambda_)
        for i in np.flatnonzero(told):
            end = replace(
                found, theta=points.theta[i], losses=points.losses[i],
                risk=float(points.risk[i]), lambda_=float(points.lambda_[i]),
            )  # fmt: skip
            noise = first_noise(FittedRows.of(self, end, setting))
            candidates.append((noise.params[:, None], np.array([[noise.scale]])))
        return candidates

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, the variance of its noise consistent."""
        assert isinstance(estimate, RegressionEstimate)
        scale = untilted_variance(estimate.noise.scale, estimate.solution.weights, rates)
        found = replace(estimate, noise=estimate.noise._replace(scale=scale))
        return Untilted(found, found.influence())

    def _known_noise(self, solution: Solution, setting: Setting) -> Noise:
        """Return the noise of data that have none, or no rows that can be bad."""
        total = setting.wnobs(self.n_obs)
        lost = float(setting.spread(self.n_obs) @ (solution.weights == 0))
        scale = solution.risk * overfit(self.n_params, total) if solution.risk > 0 else 0.0
        return Noise(solution.theta, 1.0, scale, lost)

    def _rows(self, solution: Solution, setting: Setting) -> FittedRows | None:
        """Return the rows with their first step; None where there is no noise to tell apart."""
        tells = setting.eps_bar > 0 and solution.risk > 0 and 0 < solution.lambda_ < np.inf
        return FittedRows.of(self, solution, setting) if tells else None


def overfit(rank: int, wnobs: float) -> float:
    """Return by how much squared residuals fall short because they were fitted."""
    return wnobs / (wnobs - rank) if wnobs > rank else np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionEstimate(Estimate):
    """The estimate of the first step of a linear regression.

    Attributes
    ----------
    noise : Noise
        The noise of the good rows, in the units of the problem.
    """

    problem: RegressionProblem
    noise: Noise

    @property
    def scale(self) -> float:
        """Consistent variance of the noise."""
        return self.loss_unit * self.noise.scale

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests.

        The good rows from which least squares would be as precise, less the parameters.
        """
        precise = self.wnobs * (1 - self.eps_hat) * order_efficiency(self.noise.order)
        return max(precise - self.problem.n_params, 1.0)

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level.

        Shape (n,), zero at an exact fit; see `residual_cutoffs`.
        """
        if self.noise.scale == 0:
            return 0.0 * self.solution.weights
        order = 1 / second_moment_ratio(self.setting.eps_bar)
        found = residual_cutoffs(self._rows, self.noise, order, level)
        return self.problem.endog_unit * found

    def scale_freedom(self) -> float:
        """Return the degrees of freedom of `scale`; infinite at an exact fit."""
        return np.inf if self.noise.scale == 0 else scale_freedom(self._rows, self.noise)

    @property
    def _rows(self) -> FittedRows:
        return FittedRows.of(self.problem, self.solution, self.setting)

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        found = self._scores
        return self._back((found.slopes[:, None] * self.problem.exog) @ found.inverse)

    def deletion_influence(self) -> Array:
        """Return the influence functions with the residuals as they are, shape (n, k).

        Those of `influence`, as in HC3, have the residuals of fits without the row.
        """
        found = self._scores
        slopes = found.slopes * (1 - found.leverage)
        return self._back((slopes[:, None] * self.problem.exog) @ found.inverse)

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k), in one pass over the rows."""
        if dependence is not None and not dependence.none:
            return super().covariance(dependence)
        found, rows = self._scores, self._rows
        meat = rows.gram(rows.share * found.slopes**2) / rows.total
        return self._back(self._back(found.inverse @ meat @ found.inverse).T)

    def nonrobust_covariance(self) -> Array:
        """Return the covariance of the parameters if the noise is constant, shape (k, k)."""
        rows, noise = self._rows, self.noise
        if noise.scale == 0:
            return np.zeros((len(self.params), len(self.params)))
        mass = rows.share * tilted(self.problem.losses(noise.params), noise.scale, noise.order)
        root = inverse_root(rows.gram(mass / mass.sum()))
        precise = rows.total * (1 - self.eps_hat) * order_efficiency(noise.order)
        return self._back(self._back(root.T @ root * (noise.scale / precise)).T)

    def _back(self, values: Array) -> Array:
        """Return rows of parameters in the units of the data."""
        back = self.problem.design.back
        return self.problem.endog_unit * (values if back is None else values @ back.T)

    @cached_property
    def _scores(self) -> Scores:
        if self.noise.scale == 0:
            zeros, k = 0.0 * self.solution.weights, self.problem.n_params
            return Scores(zeros, zeros, np.zeros((k, k)))
        return first_scores(self._rows, self.noise)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedRegression(RegressionEstimate):
    """The estimate of the second step of a linear regression.

    Attributes
    ----------
    rows : ExplainedRows
        The rows and their explanation, predictors in units of their spread.
    basis : ndarray, shape (k, k)
        Takes the coefficients of these predictors to those of the problem.
    """

    rows: ExplainedRows
    basis: Array

    @cached_property
    def curvature_pvalue(self) -> float:
        """P-value of the test that good rows do not bend away from the fit; see `reset_pvalue`."""
        decided = self.rows.fitted.decided
        some, weights = decided.rows, decided.good / decided.size**2 * decided.rows.counts
        resid = (some.data - some.fitted(decided.mixture.coef)[0])[:, 0]
        free = float(some.counts @ decided.good) - some.n_coef
        return reset_pvalue(resid, some.exog, weights, free)

    def params_of(self, explanation: Explanation) -> Array | None:
        """Return the parameters under an explanation that was compared."""
        assert isinstance(explanation, GaussianExplanation)
        return self.problem.to_params(self.basis @ explanation.mixture.coef[0, :, 0])

    def errors_of(self, explanation: Explanation, dependence: Dependence) -> Array | None:
        """Return the standard errors of the parameters under an explanation, shape (k,)."""
        assert isinstance(explanation, GaussianExplanation)
        mixture, fitted = explanation.mixture, self.rows.fitted
        decided = Equations(fitted.decided.rows, mixture, self.setting.eps_bar)
        rows = replace(self.rows, fitted=replace(fitted, mixture=mixture, decided=decided))
        noise = self.noise._replace(scale=float(mixture.scatter[0, 0, 0]))
        return np.sqrt(np.diag(replace(self, rows=rows, noise=noise).covariance(dependence)))

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests: the good rows less the parameters."""
        return max(self.scale_freedom(), 1.0)

    def scale_freedom(self) -> float:
        """Return the degrees of freedom of `scale`: the good rows less the parameters."""
        return self.wnobs * (1 - self.eps_hat) - self.problem.n_params

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level.

        Shape (n,). A row that had a part in the fit is nearer to it than one that had none.
        """
        out = float(t.ppf((1 + level) / 2, self.inference_freedom))
        return self.rows.cutoffs() * (out * float(np.sqrt(self.scale)))

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        return self._in_units(self.rows.influence())

    def deletion_influence(self) -> Array:
        """Return the influence functions with the residuals as they are, shape (n, k)."""
        return self._in_units(self.rows.influence(corrected=False))

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k); see `influence_covariance`."""
        return self.covariance_of(self.influence(), dependence)

    def nonrobust_covariance(self) -> Array:
        """Return the covariance of the parameters if the noise is constant, shape (k, k)."""
        inverse = self.basis @ self.rows.fitted.inverse_gram @ self.basis.T
        return self._back(self._back(inverse * self.noise.scale).T)

    def _in_units(self, influence: Array) -> Array:
        """Return the influence functions of the coefficients in the units of the data."""
        moves = influence[:, self.rows.fitted.decided.place("coef")]
        return self._back(moves @ self.basis.T * float(np.sqrt(self.noise.scale)))
