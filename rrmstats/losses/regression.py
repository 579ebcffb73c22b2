"""Estimates of linear regression: the scale of its noise, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rrmstats.core.consistency import gaussian_efficiency, second_moment_ratio
from rrmstats.core.design import Design, power_of_two
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.ladder import Ladder
from rrmstats.core.sandwich import relative_weights
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.regression_ladder import joint_ladder, scale_ladder
from rrmstats.losses.residual_flags import residual_cutoffs, scale_freedom
from rrmstats.losses.residuals import FittedRows, NoiseRung, eps_hat_error, tilted
from rrmstats.losses.squares import SquaresProblem


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
        """Return the estimate of the first step, with the variance of the noise of good rows."""
        rows = self._rows(solution, setting)
        if rows is not None:
            rung = scale_ladder(rows).best
            return self._estimate(solution, setting, rung, eps_hat_error(rows, rung))
        total = setting.wnobs(self.n_obs)
        good = min(float(setting.spread(self.n_obs) @ (solution.weights > 0)), 1.0)
        noise = solution.risk * overfit(self.n_params, total) if solution.risk > 0 else 0.0
        rung = NoiseRung(
            order=1.0,
            fitted=1.0,
            efficiency=1.0,
            params=solution.theta,
            scale=noise,
            eps_hat=1 - good,
        )
        return self._estimate(solution, setting, rung, float(np.sqrt(good * (1 - good) / total)))

    def efficient(self, first: Estimate, efficiency: float) -> RegressionEstimate:
        """Return the most efficient fit up to a given one that agrees with more robust ones.

        Without noise, or where no row can be corrupted, it is the first step.
        """
        rows = self._rows(first.solution, first.setting)
        assert isinstance(first, RegressionEstimate)
        if rows is None:
            ladder = Ladder((first.rung,), 0)
        else:
            ladder = joint_ladder(rows, efficiency)
        told = Ladder(tuple(self._in_units(rung) for rung in ladder.rungs), ladder.chosen)
        if rows is None or ladder.chosen == 0:
            return replace(first, first=first, efficiency=efficiency, ladder=told)
        rung, losses = ladder.best, self.losses(ladder.best.params)
        weights = rows.share * tilted(losses, rung.scale, rung.order)
        lambda_ = 2 * rung.scale / (rung.order - 1) if rung.order > 1 else np.inf
        found = first.solution.continued(
            rung.params, losses, weights / weights.sum(), lambda_, first.setting
        )
        found = replace(found, converged=found.converged and rung.converged)
        estimate = self._estimate(found, first.setting, rung, eps_hat_error(rows, rung))
        return replace(estimate, first=first, efficiency=efficiency, ladder=told)

    def _rows(self, solution: Solution, setting: Setting) -> FittedRows | None:
        """Return the rows with their first step; None where there is no noise to tell apart."""
        tells = setting.eps_bar > 0 and solution.risk > 0 and 0 < solution.lambda_ < np.inf
        return FittedRows.of(self, solution, setting) if tells else None

    def _in_units(self, rung: NoiseRung) -> NoiseRung:
        """Return a rung in the units of the data."""
        params = self.to_params(rung.params)
        return replace(rung, params=params, scale=self.endog_unit**2 * rung.scale)

    def _estimate(
        self, solution: Solution, setting: Setting, rung: NoiseRung, eps_hat_se: float
    ) -> RegressionEstimate:
        params = self.to_params(solution.theta)
        return RegressionEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=params,
            raw_params=params,
            eps_hat=rung.eps_hat,
            eps_hat_se=eps_hat_se,
            loss_unit=self.endog_unit**2,
            rung=rung,
        )


def overfit(rank: int, wnobs: float, efficiency: float = 1.0) -> float:
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
    rung : NoiseRung
        Consistent variance of the noise and the orders of scale and fit, in the units of the
        problem.
    """

    problem: RegressionProblem
    rung: NoiseRung

    @property
    def scale(self) -> float:
        """Consistent variance of the noise."""
        return self.loss_unit * self.rung.scale

    @property
    def gaussian_efficiency(self) -> float:
        """Efficiency of the reported step on clean Gaussian data."""
        reached = self.efficiency_reached
        return gaussian_efficiency(self.setting.eps_bar) if reached is None else reached

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level.

        Shape (n,), zero at an exact fit; see `residual_cutoffs`.
        """
        if self.rung.scale == 0:
            return np.zeros(self.problem.n_obs)
        rows, rung = self._fitted()
        return self.problem.endog_unit * residual_cutoffs(rows, rung, level)

    def scale_freedom(self) -> float:
        """Return the degrees of freedom of `scale`; infinite at an exact fit."""
        return np.inf if self.rung.scale == 0 else scale_freedom(*self._fitted())

    def _fitted(self) -> tuple[FittedRows, NoiseRung]:
        """Return the rows, and the rung with the order that clean data would give its fit."""
        first, rung = self.first or self, self.rung
        if self.solution is first.solution:
            order = 1 / second_moment_ratio(self.setting.eps_bar)
            rung = replace(rung, fitted=max(rung.fitted, order))
        return FittedRows.of(self.problem, first.solution, self.setting), rung

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        return (self._slopes()[:, None] * self.problem.exog) @ self._inverse_bread()

    def covariance(self, groups: np.ndarray | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k), in one pass over the rows."""
        if groups is not None:
            return super().covariance(groups)
        slopes = self._slopes()
        squares = slopes * slopes / (len(slopes) if self.base is None else 1.0)
        meat, _ = self.problem.gram(
            squares if self.base is None else self.base * squares, np.empty((0, len(slopes)))
        )
        inverse = self._inverse_bread()
        return inverse.T @ meat @ inverse / self.wnobs

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
        if self.first is not None:
            least = 1 / self.rung.fitted
        curvature = max(1 - 2 * inflation * found.risk / found.lambda_, least)
        bread = curvature * problem.hessian(found.theta, found.weights)
        inverse = -np.linalg.pinv(bread, hermitian=True) * np.sqrt(inflation)
        back = problem.design.back
        return problem.endog_unit * (inverse if back is None else inverse @ back.T)

    def _slopes(self) -> Array:
        """Return what the scores of the rows are times their predictors, shape (n,)."""
        problem, found = self.problem, self.solution
        slopes, _ = problem.link_slopes(problem.predictor(found.theta))
        return slopes * relative_weights(found.weights, self.base)
