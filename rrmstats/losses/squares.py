"""Squared residuals: linear regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.consistency import (
    efficient_ratio,
    gaussian_efficiency,
    second_moment_ratio,
)
from rrmstats.core.design import Design, exact_fit, power_of_two
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.frames import independent_rows
from rrmstats.core.linear import CHUNK, LinearProblem
from rrmstats.core.sandwich import relative_weights, risk_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.tempered import kept_by_distance, tempered_fit


class SquaresProblem(LinearProblem):
    """Squared residuals; the weighted fit is weighted least squares.

    Residuals that rounding alone could produce count as zero, so that exact fits are seen.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
        Design of full column rank and moderate condition.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> x = np.arange(10.0)
    >>> y = 2 * x + 0.1 * np.sin(x)
    >>> y[0] = 50
    >>> minimize(SquaresProblem(y, x[:, None]), eps_bar=0.2).theta.round(1)
    array([2.])
    """

    def __init__(self, endog: Array, exog: Array) -> None:
        super().__init__(endog, exog)
        some = slice(None, None, max(1, len(exog) // 1000))
        unit = 4 * (exog.shape[1] + 4) * np.finfo(float).eps
        self._column_noise = (unit * np.median(np.abs(exog[some]), axis=0)) ** 2
        self._row_noise = (unit * endog) ** 2

    def link_losses(self, eta: Array) -> Array:
        """Return the squared residuals, shape (..., n)."""
        residual = self.endog - eta
        return residual * residual

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the squared residuals in the linear predictor."""
        return 2.0 * (eta - self.endog), np.full(eta.shape, 2.0)

    def losses(self, theta: Array) -> Array:
        """Return the squared residuals, zero where they are within rounding of it."""
        losses = super().losses(theta)
        # An infinite loss is not within rounding, however large the parameters are.
        by_theta = np.minimum(theta * theta @ self._column_noise, np.finfo(float).max / 2)
        noise = self._row_noise + by_theta[..., None]
        losses[losses <= noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted least squares fit, shape (..., k)."""
        return self.weighted_least_squares(weights, self.endog)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return the weighted least squares fit, shape (b, k)."""
        return self.weighted_fit(weights)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return exact fits to subsets of rows, shape (m, k); NaN where rows are dependent."""
        return self.subset_solutions(subsets, self.endog)

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return the exact fit to the first independent rows of a random order, shape (k,)."""
        rows = drawn[independent_rows(self.exog[drawn])]
        return exact_fit(self.exog[rows], self.endog[rows])

    def take(self, rows: np.ndarray) -> SquaresProblem:
        """Return the problem restricted to some rows."""
        return self._with_columns(SquaresProblem(self.endog[rows], self.exog[rows]), rows)


class RegressionProblem(SquaresProblem):
    """Squared residuals of data of any scale and any rank, and their estimates.

    Losses of the data are ``endog_unit ** 2`` times those of the problem.
    """

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
        """Return the estimate of the first step, with the consistent variance of the noise."""
        return self._estimate(solution, setting, self._scale(solution.risk, setting))

    def efficient(self, first: Estimate, efficiency: float) -> RegressionEstimate:
        """Return the fit with weights of a given efficiency, at the scale of the first step."""
        found, scale = first.solution, self._scale(first.solution.risk, first.setting)
        if scale > 0:
            a = 1 / efficient_ratio(efficiency)
            kept = kept_by_distance(found.losses / scale, 1, efficiency)
            found = tempered_fit(self, found, 2 * scale / (a - 1), first.setting, kept)
        return self._estimate(found, first.setting, scale, efficiency, first)

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        scale: float,
        efficiency: float | None = None,
        first: Estimate | None = None,
    ) -> RegressionEstimate:
        params, unit = self.to_params(solution.theta), self.endog_unit**2
        return RegressionEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=params,
            raw_params=params,
            efficiency=efficiency,
            first=first,
            loss_unit=unit,
            scale=unit * scale,
        )

    def _scale(self, risk: float, setting: Setting) -> float:
        """Return the consistent variance of the noise, in the units of the problem."""
        if risk == 0:
            return 0.0
        efficiency = gaussian_efficiency(setting.eps_bar)
        inflation = overfit(self.n_params, setting.wnobs(self.n_obs), efficiency)
        return risk / second_moment_ratio(setting.eps_bar) * inflation


def overfit(rank: int, wnobs: float, efficiency: float) -> float:
    """Return by how much squared residuals fall short because they were fitted.

    To first order the risk is short by ``rank / (wnobs * efficiency)`` of itself. At efficiency
    one this is the usual correction for degrees of freedom.
    """
    return float((1 - rank / wnobs) ** (-1 / efficiency)) if wnobs > rank else np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionEstimate(Estimate):
    """The estimate of a linear regression.

    Attributes
    ----------
    scale : float
        Consistent variance of the noise, from the first step.
    """

    problem: RegressionProblem
    scale: float

    @property
    def gaussian_efficiency(self) -> float:
        """Efficiency of the reported step on clean Gaussian data."""
        return self.efficiency or gaussian_efficiency(self.setting.eps_bar)

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        row, common, along = self._scores()
        scores = row[:, None] * self.problem.exog + np.outer(common, along)
        return scores @ self._inverse_bread()

    def covariance(self, groups: np.ndarray | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k), in one pass over the rows."""
        if groups is not None:
            return super().covariance(groups)
        row, common, along = self._scores()
        base, exog = self.base, self.problem.exog
        meat = np.zeros((exog.shape[1], exog.shape[1]))
        for i in range(0, len(row), CHUNK):
            part = slice(i, i + CHUNK)
            scores = row[part, None] * exog[part] + np.outer(common[part], along)
            meat += scores.T @ (scores if base is None else base[part, None] * scores)
        meat /= len(row) ** 2 if base is None else self.wnobs
        inverse = self._inverse_bread()
        return inverse.T @ meat @ inverse

    def _inverse_bread(self) -> Array:
        """Return what takes scores to influence functions of the parameters, shape (r, k).

        The least risk is fitted to the noise, so that its Hessian overstates the curvature and
        its residuals understate the noise. The curvature is therefore that of the weighted
        squares times the factor by which it falls on Gaussian residuals, in which the residuals
        are corrected; it is never below that of clean data.
        """
        problem, found = self.problem, self.solution
        if not (found.lambda_ > 0 and found.risk > 0):
            return np.zeros((problem.n_params, len(self.params)))
        inflation = overfit(problem.n_params, self.wnobs, self.gaussian_efficiency)
        least = second_moment_ratio(self.setting.eps_bar)
        if self.efficiency is not None:
            least = efficient_ratio(self.efficiency)
        curvature = max(1 - 2 * inflation * found.risk / found.lambda_, least)
        bread = curvature * problem.hessian(found.theta, found.weights)
        inverse = -np.linalg.pinv(bread, hermitian=True) * np.sqrt(inflation)
        back = problem.design.back
        return problem.endog_unit * (inverse if back is None else inverse @ back.T)

    def _scores(self) -> tuple[Array, Array, Array]:
        """Return the scores ``row * x + common * along`` of the reported step, by their parts.

        `row` and `common` have shape (n,), `along` (k,); the last two are how the second step
        depends on the scale of the first. The covariance of losses and gradients, by which
        lambda would enter the first step, is zero for symmetric noise; rows far out that have
        hardly any weight would make it large.
        """
        problem, found = self.problem, self.solution
        row, _ = problem.link_slopes(problem.predictor(found.theta))
        by_loss = row * found.weights
        row *= relative_weights(found.weights, self.base)
        if self.first is None or not (found.lambda_ > 0 and found.risk > 0):
            return row, np.zeros_like(row), np.zeros(problem.n_params)
        by_loss *= found.losses / found.lambda_
        first = self.first.solution
        relative = relative_weights(first.weights, self.base)
        return row, risk_influence(first.lambda_, relative) / first.risk, by_loss @ problem.exog
