"""Logistic regression at a fixed temperature: fits, influence functions, contamination.

A fit has an exponent ``gamma = 1 / (lambda - 1)``, at least 0. Its weights, the probabilities of
the labels under ``theta = (1 + gamma) beta`` to the power ``gamma / (1 + gamma)``, tilt clean
labels from the law of beta to that of theta. Labels have no unknown scale, so that gamma alone
says how robust a fit is, on any data. At 0 it is maximum likelihood with Firth's penalty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.logistic import MIDDLE_ROWS, LogisticProblem
from rrmstats.losses.row_means import mean_and_error

# Size of the last step in standard errors, in units of the tolerance, and its square to which
# rounding limits it.
STEP_SIZE = 100.0
ROUNDING = 1e-14
# What rounding adds to a criterion, relative to it.
VALUE_NOISE = 1e-15
# Squared decrement past which a fit that rounding keeps from rising has not converged.
STALLED = 1e-7
# Ratio of squared decrements below which steps that the criterion does not show go on, until the
# next one is likely to be no larger than this.
SHRINKS, EXACT = 0.25, 1e-20
# Smallest eigenvalue of a Hessian of unit diagonal that counts as positive.
CONCAVE = 1e-8
# Multiples of a direction at which a fit may start, in units of its median linear predictor.
SCALES = np.exp2(np.arange(-8.0, 8.5, 0.5))
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.99


@dataclass(frozen=True, slots=True, eq=False)
class LabelState:
    """The criterion of a fit and its parts at some theta.

    Attributes
    ----------
    value : float
        The criterion; minus infinity where the information is singular.
    weights, p : ndarray, shape (n,)
        Weights in [0, 1], and probabilities of a label of 1.
    information : ndarray, shape (k, k)
    """

    value: float
    weights: Array
    p: Array
    information: Array


@dataclass(frozen=True, slots=True, eq=False)
class LabelFit:
    """A fit at a fixed gamma.

    Attributes
    ----------
    gamma : float
    beta : ndarray, shape (k,)
        Consistent coefficients, in the coordinates of the problem.
    weights : ndarray, shape (n,)
        Weights of the rows, in [0, 1].
    shift : ndarray, shape (k,)
        How far the penalty moved beta, to first order.
    influence : ndarray, shape (n, k)
        Influence functions of beta: it moves by their sum over the rows.
    converged : bool
    """

    gamma: float
    beta: Array
    weights: Array
    shift: Array
    influence: Array
    converged: bool


def label_state(problem: LogisticProblem, gamma: float, theta: Array, mass: Array) -> LabelState:
    """Return criterion, weights, probabilities and information at theta."""
    p, gain, weights = _label_rows(problem, gamma, theta)
    (information,), _, (total,) = problem.products([mass * p * (1.0 - p)], [], [mass * gain])
    return LabelState(_criterion(total, information), weights, p, information)


def _label_rows(problem: LogisticProblem, gamma: float, theta: Array) -> tuple[Array, ...]:
    """Return probabilities of a label of 1, terms of the criterion and weights, shape (n,)."""
    eta = problem.predictor(theta)
    losses = np.logaddexp(0.0, -problem.signs * eta)
    power = gamma / (1.0 + gamma)
    gain = np.expm1(-power * losses) / power if power > 0 else -losses
    return expit(eta), gain, 1.0 + power * gain


def _criterion(total: float, information: Array) -> float:
    sign, log_det = np.linalg.slogdet(information)
    return float(total) + 0.5 * float(log_det) if sign > 0 else -np.inf


def label_fit(
    problem: LogisticProblem, gamma: float, start: Array, setting: Setting, mass: Array
) -> LabelFit:
    r"""Return the fit at a fixed gamma with Jeffreys' prior.

    It climbs from `start` to a maximum in :math:`\theta = (1 + \gamma) \beta` of

    .. math:: \lambda \sum_i p_{y_i}(\theta)^{1 / \lambda} + \tfrac12 \ln \det I(\theta),
              \quad \lambda = 1 + 1 / \gamma.

    Parameters
    ----------
    problem : LogisticProblem
        Labels and design; its penalties play no part.
    gamma : float
        Exponent of the weights; 0 is maximum likelihood with Firth's penalty.
    start : ndarray, shape (k,)
        Consistent coefficients to start from.
    setting : Setting
        Tolerance and number of steps.
    mass : ndarray, shape (n,)
        How often each row counts.

    Returns
    -------
    LabelFit
    """
    theta = (1.0 + gamma) * start
    state = label_state(problem, gamma, theta, mass)
    end = max((STEP_SIZE * setting.tol) ** 2, ROUNDING)
    converged, last = False, np.inf
    for _ in range(setting.maxiter):
        gradient, step = _newton_step(problem, gamma, state, mass)
        decrement = float(gradient @ step)
        shrinks = decrement < SHRINKS * last
        tiny = converged or decrement <= max(end, VALUE_NOISE * abs(state.value))
        tiny |= shrinks and decrement <= STALLED
        trial = None if tiny else _higher(problem, gamma, theta, step, mass, state.value)
        if trial is None:  # too small a step to see in the criterion
            converged = tiny or decrement <= STALLED
            if not (converged and shrinks):
                break
            theta = theta + step
            trial = theta, label_state(problem, gamma, theta, mass)
        (theta, state), ahead, last = trial, decrement**2 / last, decrement
        if converged and ahead <= EXACT:
            break
    bread, shift = _bread_and_shift(problem, state, mass)
    influence = _influence(problem, state, bread)
    return LabelFit(gamma, theta / (1.0 + gamma), state.weights, shift, influence, converged)


def penalty_shift(problem: LogisticProblem, gamma: float, beta: Array, mass: Array) -> Array:
    """Return how far the penalty would move coefficients, to first order, shape (k,)."""
    state = label_state(problem, gamma, (1.0 + gamma) * beta, mass)
    return _bread_and_shift(problem, state, mass)[1]


def _bread_and_shift(
    problem: LogisticProblem, state: LabelState, mass: Array
) -> tuple[Array, Array]:
    penalty = _penalty_pull(problem, state, mass)[0]
    spread = mass * state.weights * state.p * (1.0 - state.p)
    (gram,), (score,), _ = problem.products([spread], [penalty], [])
    bread = _inverse(gram)
    return bread, bread @ score


def _inverse(matrix: Array) -> Array:
    if not np.isfinite(matrix).all():
        return np.zeros_like(matrix)
    return np.linalg.pinv(matrix, hermitian=True)


def _penalty_pull(problem: LogisticProblem, state: LabelState, mass: Array) -> tuple[Array, Array]:
    """Return the pull of half the log-determinant of the information, and hat values, (n,)."""
    moved = problem.exog @ _inverse(state.information)
    hat = mass * state.p * (1.0 - state.p) * np.einsum("ni,ni->n", moved, problem.exog)
    return hat * (0.5 - state.p), hat


def _newton_step(
    problem: LogisticProblem, gamma: float, state: LabelState, mass: Array
) -> tuple[Array, Array]:
    """Return the gradient, and Newton's step where the criterion is concave.

    Elsewhere the step is that at fixed weights. The curvature of the penalty is that at fixed hat
    values.
    """
    residual = problem.endog - state.p
    pull = mass * state.weights
    penalty, hat = _penalty_pull(problem, state, mass)
    curvature = (pull + hat) * state.p * (1.0 - state.p)
    drift = gamma / (1.0 + gamma) * pull * residual**2
    (hessian,), (gradient,), _ = problem.products(
        [curvature - drift], [pull * residual + penalty], []
    )
    step = _concave_step(hessian, gradient)
    if step is None:
        (hessian,), _, _ = problem.products([curvature], [], [])
        step = _concave_step(hessian, gradient)
    return gradient, _inverse(hessian) @ gradient if step is None else step


def _concave_step(hessian: Array, gradient: Array) -> Array | None:
    """Return Newton's step; None where the matrix is not positive definite."""
    scale = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    if not (scale > 0).all():
        return None
    values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
    if not values[0] > CONCAVE:
        return None
    return np.asarray(vectors @ (vectors.T @ (gradient / scale) / values) / scale)


def _higher(
    problem: LogisticProblem, gamma: float, theta: Array, step: Array, mass: Array, value: float
) -> tuple[Array, LabelState] | None:
    """Return the end of the longest of ever shorter steps that raises the criterion."""
    for halving in range(30):
        trial = theta + 0.5**halving * step
        state = label_state(problem, gamma, trial, mass)
        if state.value > value:
            return trial, state
    return None


def _influence(problem: LogisticProblem, state: LabelState, bread: Array) -> Array:
    """Return influence functions with HC3's factors, shape (n, k).

    The derivative of the score in beta is, under the model, minus the Gram matrix at the weights:
    the factor 1 - 1 / lambda of theta's cancels against that of beta.
    """
    moved = problem.exog @ bread
    spread = state.weights * state.p * (1.0 - state.p)
    leverage = np.minimum(spread * np.einsum("ni,ni->n", moved, problem.exog), LEVERAGE_MAX)
    return moved * (state.weights * (problem.endog - state.p) / (1.0 - leverage))[:, None]


def ray_start(problem: LogisticProblem, gamma: float, direction: Array, mass: Array) -> Array:
    """Return the multiple of a direction where the criterion of a fit is highest, shape (k,)."""
    some = problem.thinned(MIDDLE_ROWS)
    size = _median(np.abs(some.exog @ direction), mass[some.places])
    if not size > 0:
        return np.zeros_like(direction)
    rays = (SCALES / size)[:, None] * direction
    return rays[int(np.argmax(_criteria(problem, gamma, rays, mass)))] / (1.0 + gamma)


def _criteria(problem: LogisticProblem, gamma: float, thetas: Array, mass: Array) -> list[float]:
    """Return the criterion at several theta, shape (m, k); in one pass over rows in blocks."""
    if problem.blocks is None:
        return [label_state(problem, gamma, theta, mass).value for theta in thetas]
    rows = [_label_rows(problem, gamma, theta) for theta in thetas]
    information, _, totals = problem.products(
        [mass * p * (1.0 - p) for p, _, _ in rows], [], [mass * gain for _, gain, _ in rows]
    )
    return [_criterion(*both) for both in zip(totals, information, strict=True)]


def _median(values: Array, mass: Array) -> float:
    order = np.argsort(values)
    count = np.cumsum(mass[order])
    return float(values[order[np.searchsorted(count, 0.5 * count[-1])]])


def contamination(
    problem: LogisticProblem, gamma: float, beta: Array, influence: Array, mass: Array
) -> tuple[float, float]:
    r"""Return the share of wrong labels that the weights show, and its standard error.

    A right label has, at any x, a weight of mean :math:`c = S^{1 / (1 + \gamma)}`, where
    :math:`S = p^{1 + \gamma} + (1 - p)^{1 + \gamma}`; one that is wrong where the model is sure
    has weight near zero. So one minus the mean of w / c is the share of the latter, wherever they
    are. Labels that are wrong where the model is in doubt count in part.

    Parameters
    ----------
    problem : LogisticProblem
    gamma : float
        Exponent of the weights, above 0.
    beta : ndarray, shape (k,)
        Consistent coefficients.
    influence : ndarray, shape (n, k)
        Their influence functions: they move by the sum.
    mass : ndarray, shape (n,)
        How often each row counts.
    """
    eta, power = problem.predictor(beta), 1.0 + gamma
    log_sum = np.logaddexp(0.0, -power * np.abs(eta)) - power * np.logaddexp(0.0, -np.abs(eta))
    ratio = np.exp(-gamma * np.logaddexp(0.0, -problem.signs * eta) - log_sum)
    p = expit(power * eta)
    change = ratio * (gamma * (problem.endog - p) - (p - expit(eta)))
    mean, error = mean_and_error(ratio, change, influence, problem.exog, mass)
    return max(0.0, 1.0 - mean), error
