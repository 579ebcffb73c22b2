"""Estimates of linear regression: the scale of its noise, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rrmstats.core.consistency import (
    order_efficiency,
    second_moment_ratio,
    untilted_variance,
)
from rrmstats.core.design import Design, inverse_root, power_of_two
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.ladder import Ladder
from rrmstats.core.sandwich import Dependence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.regression_errors import Scores, step_scores
from rrmstats.losses.regression_ladder import SCALE_EFFICIENCY, joint_ladder, scale_ladder
from rrmstats.losses.residual_flags import residual_cutoffs, scale_freedom
from rrmstats.losses.residuals import FittedRows, NoiseRung, eps_hat_error, tilted
from rrmstats.losses.squares import SquaresProblem

# Parameters per row below which a fit to the noise is too slight to matter for the scale.
FEW_PARAMS = 0.002


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
        """Return the estimate of the first step, with the variance of the noise of good rows.

        The variance is that of the efficient rung of the ladder, whose residuals are less fitted
        to the noise; where many rows make that no matter, it is taken around the first step.
        """
        rows = self._rows(solution, setting)
        if rows is None:
            return self._estimate(solution, setting, self._known_rung(solution, setting))
        if rows.params_per_row(rows.least_good) < FEW_PARAMS:
            return self._estimate(solution, setting, scale_ladder(rows).best, rows)
        ladder = joint_ladder(rows, SCALE_EFFICIENCY)
        estimate = self._estimate(solution, setting, ladder.best, rows)
        return replace(estimate, noise_ladder=ladder)

    def second_step(self, first: Estimate, efficiency: float = 0.95) -> RegressionEstimate:
        """Return the most efficient fit up to a given one that agrees with more robust ones.

        Without noise, or where no row can be corrupted, it is the first step.
        """
        assert isinstance(first, RegressionEstimate)
        rows, ladder = self._rows(first.solution, first.setting), first.noise_ladder
        if rows is None:
            ladder = Ladder((first.rung,), 0)
        elif ladder is None or efficiency != SCALE_EFFICIENCY:
            ladder = joint_ladder(rows, efficiency)
        told = replace(ladder, rungs=tuple(self._in_units(rung) for rung in ladder.rungs))
        converged = first.solution.converged and ladder.best.converged
        if rows is None or ladder.chosen == 0:
            found = replace(first.solution, converged=converged)
            return replace(first, solution=found, first=first, ladder=told)
        rung, losses = ladder.best, self.losses(ladder.best.params)
        weights = rows.share * tilted(losses, rung.scale, rung.order)
        lambda_ = 2 * rung.scale / (rung.order - 1) if rung.order > 1 else np.inf
        found = first.solution.continued(
            rung.params, losses, weights / weights.sum(), lambda_, first.setting
        )
        found = replace(found, converged=converged)
        estimate = self._estimate(found, first.setting, rung, rows)
        return replace(estimate, first=first, ladder=told)

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, the variance of its noise consistent."""
        assert isinstance(estimate, RegressionEstimate)
        scale = untilted_variance(estimate.rung.scale, estimate.solution.weights, rates)
        found = replace(estimate, rung=replace(estimate.rung, scale=scale))
        return Untilted(found, found.influence())

    def _known_rung(self, solution: Solution, setting: Setting) -> NoiseRung:
        """Return the rung of data without noise, or without rows that can be corrupted."""
        total = setting.wnobs(self.n_obs)
        lost = float(setting.spread(self.n_obs) @ (solution.weights == 0))
        noise = solution.risk * overfit(self.n_params, total) if solution.risk > 0 else 0.0
        return NoiseRung(
            order=1.0,
            fitted=1.0,
            efficiency=1.0,
            params=solution.theta,
            scale=noise,
            eps_hat=lost,
        )

    def _rows(self, solution: Solution, setting: Setting) -> FittedRows | None:
        """Return the rows with their first step; None where there is no noise to tell apart."""
        tells = setting.eps_bar > 0 and solution.risk > 0 and 0 < solution.lambda_ < np.inf
        return FittedRows.of(self, solution, setting) if tells else None

    def _in_units(self, rung: NoiseRung) -> NoiseRung:
        """Return a rung in the units of the data."""
        params = self.to_params(rung.params)
        return replace(rung, params=params, scale=self.endog_unit**2 * rung.scale)

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        rung: NoiseRung,
        rows: FittedRows | None = None,
    ) -> RegressionEstimate:
        params, bad = self.to_params(solution.theta), rung.eps_hat
        error = float(np.sqrt(bad * (1 - bad) / setting.wnobs(self.n_obs)))
        return RegressionEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=params,
            raw_params=params,
            eps_hat=bad,
            eps_hat_se=error if rows is None else eps_hat_error(rows, rung),
            loss_unit=self.endog_unit**2,
            rung=rung,
        )


def overfit(rank: int, wnobs: float) -> float:
    """Return by how much squared residuals fall short because they were fitted."""
    return wnobs / (wnobs - rank) if wnobs > rank else np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionEstimate(Estimate):
    """The estimate of a linear regression.

    Attributes
    ----------
    rung : NoiseRung
        Consistent variance of the noise, and the fit and the order that it is of, in the units
        of the problem.
    noise_ladder : Ladder or None
        The ladder of that rung, in the same units; None where it was around the first step.
    """

    problem: RegressionProblem
    rung: NoiseRung
    noise_ladder: Ladder[NoiseRung] | None = None

    @property
    def scale(self) -> float:
        """Consistent variance of the noise."""
        return self.loss_unit * self.rung.scale

    @property
    def order(self) -> float:
        """Order of the weights of the reported step, at the scale."""
        if not self._is_first:
            return self.rung.order
        lambda_ = self.solution.lambda_
        return 1.0 + 2.0 * self.rung.scale / lambda_ if lambda_ > 0 else 1.0

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests.

        The good rows from which least squares would be as precise, less the parameters.
        """
        precise = self.wnobs * (1 - self.eps_hat) * order_efficiency(self.order)
        return max(precise - self.problem.n_params, 1.0)

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level.

        Shape (n,), zero at an exact fit; see `residual_cutoffs`.
        """
        if self.rung.scale == 0:
            return 0.0 * self.solution.weights
        found = residual_cutoffs(self._rows, self._fitted_rung, level)
        return self.problem.endog_unit * found

    def scale_freedom(self) -> float:
        """Return the degrees of freedom of `scale`; infinite at an exact fit."""
        return np.inf if self.rung.scale == 0 else scale_freedom(self._rows, self._fitted_rung)

    @property
    def _is_first(self) -> bool:
        return self.first is None or self.solution.theta is self.first.solution.theta

    @property
    def _rows(self) -> FittedRows:
        return FittedRows.of(self.problem, (self.first or self).solution, self.setting)

    @property
    def _fitted_rung(self) -> NoiseRung:
        """The rung with the order that clean data would give to the fit."""
        if not self._is_first:
            return self.rung
        return replace(self.rung, fitted=1 / second_moment_ratio(self.setting.eps_bar))

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
        rows, rung = self._rows, self.rung
        if rung.scale == 0:
            return np.zeros((len(self.params), len(self.params)))
        mass = rows.share * tilted(self.problem.losses(rung.params), rung.scale, rung.order)
        root = inverse_root(rows.gram(mass / mass.sum()))
        precise = rows.total * (1 - self.eps_hat) * order_efficiency(self.order)
        return self._back(self._back(root.T @ root * (rung.scale / precise)).T)

    def _back(self, values: Array) -> Array:
        """Return rows of parameters in the units of the data."""
        back = self.problem.design.back
        return self.problem.endog_unit * (values if back is None else values @ back.T)

    @cached_property
    def _scores(self) -> Scores:
        if self.rung.scale == 0:
            zeros, k = 0.0 * self.solution.weights, self.problem.n_params
            return Scores(zeros, zeros, np.zeros((k, k)))
        return step_scores(self._rows, self.solution.theta, self.order, self.rung)
