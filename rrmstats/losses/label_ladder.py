"""The ladder of logistic regression: from the first step to Firth's maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import chi2, norm

from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, Rung, climb
from rrmstats.core.setting import Setting
from rrmstats.losses.label_fits import LabelFit, contamination, label_fit, penalty_shift, ray_start
from rrmstats.losses.logistic import LogisticProblem

# The rungs, from robust to efficient: a label with odds of o against it has a weight near
# o ** -gamma. Steps are wide, so that a bias stands out against the noise between two rungs.
GAMMAS = (2.5, 1.5, 1.0, 0.5, 0.25, 0.0)
# Largest ratio of the second gamma to the first.
STEP = 0.75
# Least gamma at which contamination is measured: at 0 all weights are equal.
LEAST_GAMMA = GAMMAS[-2]
# Gamma past which the first step is too noisy to compare with.
MOST_GAMMA = 4.0
# P-value below which two rungs disagree: one-sided tests of one number, the size.
LEVEL = 3e-3
# Part of the level that the test of all coefficients has.
TURNED = 1 / 30
# A rung is compared where the penalty moved it by less than half a standard error: mean square
# per coefficient.
PENALTY_SHARE = 0.25
# Standard errors by which the contamination of a rung that is compared may exceed eps_bar.
EXCESS_ERRORS = 2.0
# Eigenvalues of a covariance of differences, relative to maximum likelihood's, that count as 0.
SAME = 1e-6


def score_weights(eta: Array, gamma: float) -> Array:
    r"""Return the weights a of the rows in the expected scores of a fit, shape (n,).

    Under the model at linear predictors `eta`, the score of a fit has derivative
    :math:`-\sum a_i x_i x_i'` in beta, and those of two fits have covariance
    :math:`\sum a_i b_i x_i x_i' / (p_i (1 - p_i))`, where

    .. math:: a = (p (1 - p))^{1 + \gamma} S^{1 / (1 + \gamma) - 2},
              \quad S = p^{1 + \gamma} + (1 - p)^{1 + \gamma}.
    """
    power, size = 1.0 + gamma, np.abs(eta)
    tilted = np.exp(-power * size)
    return tilted * (1.0 + tilted) ** (1.0 / power - 2.0) / (1.0 + np.exp(-size))


class LabelLaw:
    """The model at some coefficients, and how fits vary under it.

    Variances are those of the model, which rows that are wrong do not inflate.

    Parameters
    ----------
    problem : LogisticProblem
        The design; labels play no part.
    beta : ndarray, shape (k,)
        Coefficients of the law.
    gamma : float
        Exponent of the fit that they are of.
    mass : ndarray, shape (n,)
        How often each row counts.
    """

    def __init__(self, problem: LogisticProblem, beta: Array, gamma: float, mass: Array) -> None:
        self.beta, self.gamma = beta, gamma
        self._problem, self._mass = problem, mass
        self._eta = problem.predictor(beta)
        self._spread = np.maximum(score_weights(self._eta, 0.0), np.finfo(float).tiny)
        self._breads: dict[float, Array] = {}
        self._meats: dict[tuple[float, float], Array] = {}
        self._covariances: dict[tuple[float, float], Array] = {}

    def _add(self, *gammas: float) -> None:
        """Compute what fits of new gammas need, together with those known, in one pass."""
        new = [gamma for gamma in dict.fromkeys(gammas) if gamma not in self._breads]
        if not new:
            return
        weights = {gamma: score_weights(self._eta, gamma) for gamma in (*self._breads, *new)}
        pairs = [(a, b) for a in weights for b in weights if a <= b and (a in new or b in new)]
        grams, _, _ = self._problem.products(
            [
                *(self._mass * weights[gamma] for gamma in new),
                *(self._mass * weights[a] * weights[b] / self._spread for a, b in pairs),
            ],
            [],
            [],
        )
        self._breads.update(zip(new, grams, strict=False))
        self._meats.update(zip(pairs, grams[len(new) :], strict=True))

    @cached_property
    def _root(self) -> Array:
        """A root of the information, shape (k, k): it takes coefficients to standard errors."""
        self._add(0.0)
        values, vectors = np.linalg.eigh(self._breads[0.0])
        return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T

    def covariance(self, one: float, other: float) -> Array:
        """Return the covariance of the fits of two gammas, shape (k, k)."""
        if one > other:
            return self.covariance(other, one).T
        if (one, other) not in self._covariances:
            self._add(one, other)
            left, right = (
                np.linalg.pinv(self._breads[gamma], hermitian=True) for gamma in (one, other)
            )
            self._covariances[one, other] = left @ self._meats[one, other] @ right
        return self._covariances[one, other]

    def difference(self, one: float, other: float) -> Array:
        """Return the covariance of the difference of two fits, shape (k, k)."""
        cross = self.covariance(one, other)
        return self.covariance(one, one) + self.covariance(other, other) - cross - cross.T

    def efficiency(self, gamma: float) -> float:
        """Return the efficiency of a fit, by generalized variances."""
        if gamma == 0:
            return 1.0
        self._add(gamma, 0.0)
        log_dets = [np.linalg.slogdet(self.covariance(g, g))[1] for g in (gamma, 0.0)]
        return float(np.exp((log_dets[1] - log_dets[0]) / len(self.beta)))

    def size_pvalue(self, difference: Array, covariance: Array) -> float:
        """Return the one-sided p-value that the linear predictor has not become smaller.

        Wrong labels diminish it; a test in this direction alone has the power of one degree of
        freedom.
        """
        size = self._root.T @ (self._root @ self.beta)
        spread = float(np.sqrt(max(float(size @ covariance @ size), 0.0)))
        return float(norm.cdf(difference @ size / spread)) if spread > 0 else 1.0

    def equal_pvalue(self, difference: Array, covariance: Array) -> float:
        """Return the p-value that a difference of two fits is chance."""
        scaled = self._root @ difference
        values, vectors = np.linalg.eigh(self._root @ covariance @ self._root.T)
        used = values > SAME
        statistic = np.sum((vectors[:, used].T @ scaled) ** 2 / values[used])
        return float(chi2.sf(statistic, used.sum())) if used.any() else 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelRung(Rung):
    """One rung of the ladder; its order is gamma.

    Attributes
    ----------
    beta : ndarray, shape (k,)
        `params` in the coordinates of the problem.
    eps_hat_se : float
        Standard error of `eps_hat`.
    shift : ndarray, shape (k,)
        How far the penalty moved the coefficients; those of the first step it would move.
    fit : LabelFit or None
        None for the first step.
    law : LabelLaw or None
        The model at the first rung that later ones are compared with; None before it.
    penalty_share : float
        Squared shift by the penalty over the variance, per coefficient, where it decides whether
        a rung is compared with; 0 elsewhere.
    """

    beta: Array
    eps_hat_se: float
    shift: Array
    fit: LabelFit | None = None
    law: LabelLaw | None = None
    penalty_share: float = 0.0


class LabelClimb:
    """The climb from a first step to maximum likelihood with Firth's penalty.

    Parameters
    ----------
    problem : LogisticProblem
    design : Design
        Takes coefficients to the units of the data.
    setting : Setting
        The budget, tolerance and number of steps of the fits.
    direction : ndarray, shape (k,)
        Parameters of least risk, whose direction the first fit starts from where the first step
        does not tell the size.
    mass : ndarray, shape (n,)
        How often each row counts.
    """

    def __init__(
        self,
        problem: LogisticProblem,
        design: Design,
        setting: Setting,
        direction: Array,
        mass: Array,
    ) -> None:
        self._problem, self._design, self._setting = problem, design, setting
        self._direction, self._mass = direction, mass

    def run(self, first: LabelRung) -> Ladder[LabelRung]:
        """Return the ladder above the first step."""
        own = first.order
        gammas = [gamma for gamma in GAMMAS if gamma <= STEP * own and gamma < own]
        return climb(first, gammas, self.fit, agreement, LEVEL)

    def first_rung(
        self, beta: Array, gamma: float, eps_hat: float, eps_hat_se: float, converged: bool
    ) -> LabelRung:
        """Return the first step as a rung; its gamma is infinite where it tells no size."""
        law = None
        shift: Array = np.zeros_like(beta)
        if gamma <= MOST_GAMMA:
            law = LabelLaw(self._problem, beta, gamma, self._mass)
            shift = penalty_shift(self._problem, gamma, beta, self._mass)
        return LabelRung(
            order=gamma,
            efficiency=np.nan if law is None else law.efficiency(gamma),
            params=self._design.to_params(beta),
            scale=np.nan,
            eps_hat=eps_hat,
            converged=converged,
            beta=beta,
            eps_hat_se=eps_hat_se,
            shift=shift,
            law=law,
        )

    def fit(self, gamma: float, last: LabelRung) -> LabelRung:
        """Return the rung of a gamma, started from the last one."""
        problem, mass, start = self._problem, self._mass, last.beta
        if last.fit is None and last.law is None:
            start = ray_start(problem, gamma, self._direction, mass)
        fit = label_fit(problem, gamma, start, self._setting, mass)
        measured = max(gamma if last.law is None else last.law.gamma, LEAST_GAMMA)
        eps_hat, error = contamination(problem, measured, fit.beta, fit.influence, mass)
        law = last.law
        within = eps_hat - EXCESS_ERRORS * error <= self._setting.eps_bar
        share = penalty_share(fit, mass) if law is None else 0.0
        if law is None and within and share <= PENALTY_SHARE:
            law = LabelLaw(problem, fit.beta, gamma, mass)
        here = law or LabelLaw(problem, fit.beta, gamma, mass)
        return LabelRung(
            order=gamma,
            efficiency=here.efficiency(gamma),
            params=self._design.to_params(fit.beta),
            scale=np.nan,
            eps_hat=eps_hat,
            converged=fit.converged,
            beta=fit.beta,
            eps_hat_se=error,
            shift=fit.shift,
            fit=fit,
            law=law,
            penalty_share=share,
        )


def agreement(rung: LabelRung, earlier: LabelRung) -> float:
    """Return the p-value that a rung and an earlier one estimate the same.

    The size is tested, one-sided, and at a part of the level all coefficients. What the penalty
    moved is no evidence, and rungs that it moved far are not compared with. The first step has no
    penalty, and a bias between none and what the penalty would remove; only its size is tested,
    since its coefficients vary more in small samples than the model says.
    """
    law = earlier.law
    if law is None:
        return 1.0
    bias = 0.5 * earlier.shift if earlier.fit is None else np.zeros_like(rung.shift)
    difference = rung.beta - earlier.beta - bias
    shift = bias if earlier.fit is None else rung.shift - earlier.shift
    covariance = law.difference(rung.order, earlier.order) + np.outer(shift, shift)
    pvalue = law.size_pvalue(difference, covariance)
    if earlier.fit is None:
        return pvalue
    return min(pvalue, law.equal_pvalue(difference, covariance) / TURNED)


def penalty_share(fit: LabelFit, mass: Array) -> float:
    """Return the squared shift by the penalty over the variance, per coefficient."""
    covariance = fit.influence.T @ (mass[:, None] * fit.influence)
    inverse = np.linalg.pinv(covariance, hermitian=True)
    return float(fit.shift @ inverse @ fit.shift) / len(fit.shift)
