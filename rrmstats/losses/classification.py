"""Estimates of logistic regression: consistent coefficients, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.frames import clipped_spread
from rrmstats.core.sandwich import minimum_influence, relative_weights
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.firth import firth_fit
from rrmstats.losses.logistic import LogisticProblem

# Probability below which the second step leaves a label out.
IMPROBABLE = 3e-3
# Weight of the ridge on standardized predictors under which separated data are judged: strong
# enough for the simplest direction, too weak to rule any out.
EVIDENCE_RIDGE = 1e-4
# Risk near the simpler direction, relative to the least, up to which it is preferred: samples
# where it serves have ratios below 1.2, others above 3.
RIVAL_RISK = 2.0


class ClassificationProblem(LogisticProblem):
    """Cross-entropy losses on a design of any rank and scale, and their estimates."""

    def __init__(
        self, endog: Array, exog: Array, alpha: float = 0.0, ridge: Array | None = None
    ) -> None:
        self.design = Design(exog)
        if ridge is not None and self.design.back is not None:
            ridge = self.design.back.T @ ridge @ self.design.back
        super().__init__(endog, self.design.exog, alpha, ridge)
        self.columns = exog
        self.plain = LogisticProblem(endog, self.exog)

    def consistent(self, solution: Solution, setting: Setting) -> ClassificationEstimate:
        """Return the estimate of the first step, its coefficients corrected."""
        separated = self.separated(solution.theta)
        theta, fitted, identified = consistent_theta(
            self, solution.theta, solution.weights, solution.lambda_
        )
        return ClassificationEstimate(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=solution.converged and not separated),
            params=self.design.to_params(theta),
            raw_params=self.design.to_params(solution.theta),
            theta=theta,
            fitted=fitted,
            identified=identified,
            separated=separated,
        )

    def efficient(self, first: Estimate, efficiency: float) -> ClassificationEstimate:
        """Return maximum likelihood with Firth's penalty, without the rows the first step exposes.

        It has the efficiency of maximum likelihood whatever `efficiency` is given.
        """
        kept, sure = self._kept(first)
        spread = first.setting.spread(self.n_obs)
        theta, converged = firth_fit(self, kept * spread, first.setting)
        weights = kept * spread / (kept @ spread)
        used = weights > 0
        divergence = float(weights[used] @ np.log(weights[used] / spread[used]))
        losses = self.plain.losses(theta)
        solution = replace(
            first.solution,
            theta=theta,
            losses=losses,
            weights=weights,
            divergence=divergence,
            n_eff=first.wnobs * float(np.exp(-divergence)),
            risk=float(weights @ losses),
            converged=first.solution.converged and converged and sure,
        )
        params = self.design.to_params(theta)
        return ClassificationEstimate(
            problem=self,
            setting=first.setting,
            solution=solution,
            params=params,
            raw_params=params,
            efficiency=efficiency,
            first=first,
            theta=theta,
            fitted=theta,
        )

    def _kept(self, first: Estimate) -> tuple[Array, bool]:
        """Return what the first step leaves of each row for the second, in [0, 1], shape (n,).

        Where it tells the size of the coefficients, rows whose label it finds improbable fade
        out. Where it does not, rows are judged by the fit to those that it classifies right; its
        direction is then the simpler one under a faint ridge, unless the risk there is far from
        the least. Judging again by fits that include the readmitted rows would let the corrupted
        ones back in one by one. The second value tells whether the searches converged.
        """
        setting, found = first.setting, first.solution
        theta, _, identified = consistent_theta(self, found.theta, found.weights, found.lambda_)
        if identified:
            return smooth_step(expit(self.signs * self.predictor(theta))), True
        right, sure = self.signs * self.predictor(found.theta) > 0, True
        if not self.ridge.any():
            ridge = np.diag(EVIDENCE_RIDGE * clipped_spread(self.exog) ** 2)
            evidence = LogisticProblem(self.endog, self.exog, 0.0, ridge)
            simple = global_minimum(evidence, replace(setting, theta_step=None))
            near = global_minimum(self, replace(setting, n_starts=0), simple.theta)
            if near.risk <= RIVAL_RISK * found.risk:
                right = self.signs * self.predictor(simple.theta) > 0
                sure = simple.converged
        fit, converged = firth_fit(self, right * setting.spread(self.n_obs), setting)
        probable = smooth_step(expit(self.signs * self.predictor(fit)))
        return np.where(right, 1.0, probable), sure and converged


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationEstimate(Estimate):
    """The estimate of a logistic regression.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        `params` in the coordinates of the problem.
    fitted : ndarray, shape (k,)
        The weighted maximum likelihood fit that they rest on.
    identified : bool
        Whether the size of the coefficients is identified, and not only their direction.
    separated : bool
        Whether the fit was stopped because a hyperplane separates the rows with weight.
    """

    problem: ClassificationProblem
    theta: Array
    fitted: Array
    identified: bool = True
    separated: bool = False

    def influence(self) -> Array:
        """Return the influence functions of the coefficients, shape (n, k)."""
        influence = self._first_step() if self.first is None else self._second_step()
        back = self.problem.design.back
        return influence if back is None else influence @ back.T

    def _second_step(self) -> Array:
        plain, found = self.problem.plain, self.solution
        scores = plain.gradients(found.theta) * relative_weights(found.weights, self.base)[:, None]
        inverse = np.linalg.pinv(plain.hessian(found.theta, found.weights), hermitian=True)
        return -scores @ inverse * np.sqrt(self.wnobs / (self.wnobs - self.problem.n_params))

    def _first_step(self) -> Array:
        """Return the influence functions of the first step.

        The consistent coefficients are the weighted maximum likelihood fit less theta / lambda;
        the fit moves with the data, and with theta and lambda through the weights.
        """
        found = self.solution
        of_theta, of_log_lambda = minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )
        beta = 1.0 / found.lambda_ if found.lambda_ > 0 else np.inf
        if not self.identified or beta == 0:
            return of_theta
        of_fit = of_theta
        if self.problem.alpha > 0:
            of_fit = self._influence_of_fit(of_theta, of_log_lambda)
        return of_fit - beta * (of_theta - np.outer(of_log_lambda, found.theta))

    def _influence_of_fit(self, of_theta: Array, of_log_lambda: Array) -> Array:
        """Return the influence functions of the weighted fit without the penalty."""
        found, plain = self.solution, self.problem.plain
        weights, beta = found.weights, 1.0 / found.lambda_
        gradients, own = plain.gradients(self.fitted), self.problem.gradients(found.theta)
        with_theta = gradients.T @ (weights[:, None] * own)
        with_theta -= np.outer(weights @ gradients, weights @ own)
        with_loss = (weights * (found.losses - weights @ found.losses)) @ gradients
        score = gradients * relative_weights(weights, self.base)[:, None]
        score += beta * (np.outer(of_log_lambda, with_loss) - of_theta @ with_theta.T)
        return -score @ np.linalg.pinv(plain.hessian(self.fitted, weights), hermitian=True)


def consistent_theta(
    problem: LogisticProblem, theta: Array, weights: Array, lambda_: float
) -> tuple[Array, Array, bool]:
    """Return consistent coefficients, the weighted fit they rest on, and whether they exist.

    Under the weights the log-odds of clean labels at x are ``x' (true + theta / lambda)``. Their
    weighted maximum likelihood fit, without the penalty, less ``theta / lambda`` is therefore
    consistent. Where the weighted data are separated, the direction of theta is all there is;
    and a ridge is a choice of the user's, kept as it is.
    """
    if lambda_ == np.inf:
        return theta, theta, True
    fitted = theta
    if problem.alpha > 0:
        plain = LogisticProblem(problem.endog, problem.exog)
        fitted = plain.weighted_fit(weights, theta)
        if plain.separated(fitted):
            return theta, theta, False
    elif lambda_ <= 1 or problem.separated(theta):
        return theta, theta, False
    consistent = fitted - theta / lambda_
    if problem.predictor(consistent) @ (weights * problem.predictor(theta)) <= 0:
        return theta, theta, False
    return consistent, fitted, True


def smooth_step(probability: Array) -> Array:
    """Return 0 for labels less probable than IMPROBABLE, 1 past tenfold that, smooth between."""
    with np.errstate(divide="ignore"):
        place = np.clip(np.log10(probability / IMPROBABLE), 0.0, 1.0)
    return place * place * (3.0 - 2.0 * place)
