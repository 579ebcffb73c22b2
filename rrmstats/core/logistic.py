"""Logistic regression: its losses, and fits that stay finite where classes are separated."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit

from rrmstats.core.entropy import Array
from rrmstats.core.linear import Design, LinearProblem, solve_gram
from rrmstats.core.problem import SmoothProblem

# Newton steps of a weighted fit, those that improve a start, and the decrease at which it stops.
FIT_STEPS = 50
IMPROVING_STEPS = 2
FIT_TOL = 1e-20
# What rounding may add to a risk, relative to it: at the end steps change it by less.
RISK_NOISE = 1e-14
# Part of its share in the data that a class keeps at least under the weights.
KEPT_SHARE = 0.1
# Newton's decrement, squared, at which Firth's fit stops.
FIRTH_TOL = 1e-16
# Probability below which the second step leaves a label out.
IMPROBABLE = 3e-3
# Linear predictors are kept below this in the middle of the data: probabilities past it are 0
# or 1 to rounding, and without a penalty separated data have no finite fit.
MIDDLE_MAX = 40.0
# The ridge takes predictors for no further out than this many typical distances.
CLIP = 5.0


class LogitProblem(LinearProblem):
    """Cross-entropy losses, bounded by a small term in the linear predictor.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Labels, 0 or 1.
    exog : ndarray, shape (n, k)
    alpha : float
        The loss of an observation has ``alpha / 4 * (x' theta) ** 4`` added to it.
    ridge : ndarray, shape (k, k), optional
        Every loss has ``theta' ridge theta / 2`` added to it.
    """

    default_starts: ClassVar[int] = 200

    def __init__(
        self, endog: Array, exog: Array, alpha: float = 0.0, ridge: Array | None = None
    ) -> None:
        super().__init__(endog, exog)
        self.alpha = alpha
        k = exog.shape[1]
        self.ridge = np.zeros((k, k)) if ridge is None else ridge
        self.bounded = alpha > 0 or bool(self.ridge.any())
        self.signs = 2.0 * endog - 1.0

    def link_losses(self, eta: Array) -> Array:
        """Return the losses at linear predictors, shape (..., n)."""
        losses = np.logaddexp(0.0, -self.signs * eta)
        return losses + 0.25 * self.alpha * (eta * eta) ** 2 if self.alpha else losses

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the losses in the linear predictor."""
        p = expit(eta)
        square = eta * eta
        return (
            p - self.endog + self.alpha * eta * square,
            p * (1.0 - p) + 3.0 * self.alpha * square,
        )

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        common = 0.5 * np.einsum("...i,ij,...j->...", theta, self.ridge, theta)
        return super().losses(theta) + common[..., None]

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss, shape (n, k)."""
        return super().gradients(theta) + self.ridge @ theta

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        return super().hessian(theta, weights) + self.ridge

    def concentrated(
        self, theta: Array, losses: Array, weights: Array, lambda_: Array
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of the concentrated risk."""
        gradient, hessian, drift = super().concentrated(theta, losses, weights, lambda_)
        return gradient + theta @ self.ridge, hessian + self.ridge, drift

    def tempered(self, theta: Array, tilt: Array, lambda_: float) -> tuple[Array, Array]:
        """Return the derivatives of the risk at a fixed lambda."""
        if not self.ridge.any():
            return super().tempered(theta, tilt, lambda_)
        return SmoothProblem.tempered(self, theta, tilt, lambda_)

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted maximum likelihood fit by damped Newton steps, shape (..., k)."""
        batch = weights.reshape(-1, self.n_obs)
        start = np.zeros((len(batch), self.n_params))
        if theta is not None:
            start = np.broadcast_to(theta, (*weights.shape[:-1], self.n_params))
            start = start.reshape(-1, self.n_params).copy()
        return self._newton(batch, start, FIT_STEPS).reshape(*weights.shape[:-1], -1)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters two Newton steps towards the weighted fit, shape (b, k)."""
        return self._newton(weights, theta, IMPROVING_STEPS)

    def _newton(self, weights: Array, theta: Array, steps: int) -> Array:
        risk = np.einsum("bn,bn->b", weights, self.losses(theta))
        for _ in range(steps):
            first, second = self.link_slopes(self.predictor(theta))
            gram, moments = self.gram(weights * second, (weights * first)[:, None, :])
            gram += self.ridge
            gradient = moments[:, 0, :] + theta @ self.ridge
            step = -solve_gram(gram, gradient)[0]
            step[~np.isfinite(step).all(axis=-1)] = 0.0
            decrease = -np.einsum("bk,bk->b", gradient, step)
            if (decrease <= FIT_TOL * np.maximum(risk, 1e-300)).all():
                break
            fraction = 1.0
            for _ in range(10):
                trial = self.retract(theta, fraction * step)
                new = np.einsum("bn,bn->b", weights, self.losses(trial))
                lower = new <= risk * (1.0 + RISK_NOISE)
                theta = np.where(lower[:, None], trial, theta)
                risk = np.where(lower, new, risk)
                step[lower] = 0.0
                if lower.all():
                    break
                fraction *= 0.5
        return theta

    def retract(self, theta: Array, step: Array) -> Array:
        """Return ``theta + step``, drawn in where separated data would let it grow for ever."""
        moved = theta + step
        if self.bounded:
            return moved
        middle = np.median(np.abs(self.predictor(moved)), axis=-1)
        shrink = np.minimum(1.0, MIDDLE_MAX / np.maximum(middle, MIDDLE_MAX))
        return moved * shrink[..., None]

    def separated(self, theta: Array) -> bool:
        """Tell whether only the bound of `retract` keeps `theta` finite."""
        middle = np.median(np.abs(self.predictor(theta)))
        return not self.bounded and bool(middle > 0.99 * MIDDLE_MAX)

    def admissible(self, weights: Array) -> np.ndarray:
        """Tell which weights keep both classes.

        Where a class is rarer than eps_bar the least risk of all leaves it out, and predicts the
        other for every row.
        """
        ones, share = weights @ self.endog, self.endog.mean()
        return (ones >= KEPT_SHARE * share) & (1 - ones >= KEPT_SHARE * (1 - share))

    @property
    def subset_size(self) -> int:
        """Rows that determine a start."""
        return self.n_params + 1

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return directions fitted to the labels of subsets of rows by least squares."""
        exog, signs = self.exog[subsets], self.signs[subsets]
        right = np.einsum("mij,mi->mj", exog, signs)
        theta, sound = solve_gram(np.swapaxes(exog, -1, -2) @ exog, right)
        mixed = np.abs(signs.sum(axis=-1)) < subsets.shape[-1]
        return np.where((sound & mixed)[:, None], 3.0 * theta, np.nan)

    def take(self, rows: np.ndarray) -> LogitProblem:
        """Return the problem restricted to some rows."""
        return LogitProblem(self.endog[rows], self.exog[rows], self.alpha, self.ridge)


class DesignLogitProblem(LogitProblem):
    """Cross-entropy losses on a design of any rank and scale."""

    def __init__(self, endog: Array, exog: Array, alpha: float, ridge: Array | None) -> None:
        self.design = Design(exog)
        if ridge is not None and self.design.back is not None:
            ridge = self.design.back.T @ ridge @ self.design.back
        super().__init__(endog, self.design.exog, alpha, ridge)


def consistent_theta(
    problem: LogitProblem, theta: Array, weights: Array, lambda_: float
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
        plain = LogitProblem(problem.endog, problem.exog)
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


def firth_fit(problem: LogitProblem, weights: Array, total: float) -> Array:
    """Return the weighted maximum likelihood fit with Firth's penalty, shape (k,).

    The penalty, half the log-determinant of the information, keeps it finite on separated data
    and removes its bias of first order.

    Parameters
    ----------
    problem : LogitProblem
        Labels and design.
    weights : ndarray, shape (n,)
        Weights of the observations; they sum to at most one.
    total : float
        Number of observations that a sum of one stands for.
    """
    exog, endog = problem.exog, problem.endog
    mass = weights * total
    plain = LogitProblem(endog, exog)

    def penalised(theta: Array) -> tuple[float, Array]:
        information = plain.hessian(theta, mass)
        sign, log_det = np.linalg.slogdet(information)
        value = float(mass @ plain.losses(theta)) - 0.5 * float(log_det)
        return (value if sign > 0 else np.inf), information

    theta = np.zeros(problem.n_params)
    value, information = penalised(theta)
    for _ in range(FIT_STEPS):
        p = expit(exog @ theta)
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = mass * p * (1 - p) * np.einsum("ni,ni->n", exog @ inverse, exog)
        step = inverse @ ((mass * (endog - p) + leverage * (0.5 - p)) @ exog)
        if step @ information @ step <= FIRTH_TOL:
            break
        for halving in range(20):
            trial = theta + 0.5**halving * step
            new, new_information = penalised(trial)
            if new <= value:
                break
        else:
            break
        theta, value, information = trial, new, new_information
    return theta


def clipped_spread(exog: Array) -> Array:
    """Return a standard deviation of each column that bad rows cannot inflate, shape (k,).

    That of the values clipped at CLIP typical distances from the median, typical being the
    median of those that are not zero: a column that is mostly constant keeps its spread.
    """
    middle = np.median(exog, axis=0)
    distance = np.abs(exog - middle)
    varies = distance.any(axis=0)
    typical = np.zeros(exog.shape[1])
    positive = np.where(distance > 0, distance, np.nan)
    typical[varies] = np.nanmedian(positive[:, varies], axis=0)
    return np.clip(exog, middle - CLIP * typical, middle + CLIP * typical).std(axis=0)
