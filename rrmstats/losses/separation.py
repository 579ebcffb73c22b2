"""Labels that a hyperplane separates, but for a few: which rows it explains."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.special import betainc, expit

from rrmstats.core.block_array import row_sums, smallest
from rrmstats.core.entropy import Array
from rrmstats.core.frames import clipped_spread
from rrmstats.core.search import global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.label_fits import label_fit
from rrmstats.losses.logistic import LogisticProblem

# Ridges on standardized predictors, from the simplest direction to none.
RIDGES = 10.0 ** -np.arange(8)
# P-value below which a direction misclassifies more rows than the first step's.
WORSE = 0.05
# Objective of the linear program, relative to its unit, that counts as zero.
ZERO = 1e-7
# Rows of a linear program where all lie in blocks, and those added to it that it leaves on the
# wrong side.
PROGRAM_ROWS, ADDED_ROWS = 10_000, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class SeparatedFit:
    """Firth's fit to the rows that a direction explains.

    Attributes
    ----------
    theta : ndarray, shape (k,)
    kept : ndarray, shape (n,)
        What is left of each row, in [0, 1].
    identified : bool
        Whether the rows kept overlap, so that the size of the coefficients is identified.
    influence : ndarray, shape (n, k)
        Influence functions of theta, whose sum it moves by.
    converged : bool
    """

    theta: Array
    kept: Array
    identified: bool
    influence: Array
    converged: bool


def misclassified(problem: LogisticProblem, theta: Array) -> np.ndarray:
    """Tell which rows lie on the wrong side of a hyperplane, or on it; shape (n,)."""
    return problem.signs * problem.predictor(theta) <= 0


def separated_fit(
    problem: LogisticProblem, theta: Array, setting: Setting, mass: Array
) -> SeparatedFit | None:
    """Return Firth's fit to the rows that the simplest direction explains.

    Rows on its right side are kept; of the others those that the fit to these finds likely
    enough to occur among n rows: what is left of a label of probability p is min(1, n p). Judging
    again would let wrong labels back in one by one. None where no direction within the budget
    separates the other rows.

    Parameters
    ----------
    problem : LogisticProblem
    theta : ndarray, shape (k,)
        Parameters of least risk.
    setting : Setting
        The budget, and the options of the searches.
    mass : ndarray, shape (n,)
        How often each row counts.
    """
    reference, enough = needed_budget(problem, theta, setting, mass)
    direction, sure = simplest_direction(problem, reference, enough, mass)
    if direction is None:
        return None
    right = ~misclassified(problem, direction)
    origin, total = np.zeros_like(theta), setting.wnobs(problem.n_obs)
    strict = label_fit(problem, 0.0, origin, setting, mass * right).beta
    likely = total * expit(problem.signs * problem.predictor(strict))
    kept = np.where(right, 1.0, np.minimum(1.0, likely))
    fit = label_fit(problem, 0.0, origin, setting, mass * kept)
    overlap = not separable(problem, mass * kept >= 0.5)
    influence = kept[:, None] * fit.influence
    return SeparatedFit(fit.beta, kept, overlap, influence, fit.converged and sure)


def needed_budget(
    problem: LogisticProblem, theta: Array, setting: Setting, mass: Array
) -> tuple[Array, Setting]:
    """Return the direction to compare others with, and the setting with the budget they need.

    A budget far above the share of wrong labels lets a fit give up rows that a hyperplane
    explains, and nearly any direction is then no worse. The budget is halved as long as the fit
    with half of it misclassifies significantly fewer rows, and no more than that half allows.
    """
    while True:
        half = replace(setting, eps_bar=setting.eps_bar / 2, theta_step=None)
        found = global_minimum(problem, half).theta
        fewer = misclassified(problem, found)
        fits = mass @ fewer <= half.eps_bar * half.wnobs(problem.n_obs)
        if not (fits and significantly_worse(misclassified(problem, theta), fewer, mass)):
            return theta, setting
        theta, setting = found, half


def simplest_direction(
    problem: LogisticProblem, theta: Array, setting: Setting, mass: Array
) -> tuple[Array | None, bool]:
    """Return the direction under the strongest ridge that the budget and the labels allow.

    It may misclassify a share of at most `eps_bar`, and not significantly more than `theta`
    (McNemar's test). Of all such directions the data prefer none. The second value tells whether
    the search for it converged.
    """
    unit = np.diag(clipped_spread(problem.exog, mass) ** 2)
    wrong_first = misclassified(problem, theta)
    budget = setting.eps_bar * setting.wnobs(problem.n_obs)
    for ridge in RIDGES:
        penalized = LogisticProblem(problem.endog, problem.exog, 0.0, ridge * unit)
        found = global_minimum(penalized, replace(setting, theta_step=None))
        wrong = misclassified(problem, found.theta)
        if mass @ wrong <= budget and not significantly_worse(wrong, wrong_first, mass):
            return found.theta, found.converged
    return (theta, True) if mass @ wrong_first <= budget else (None, True)


def significantly_worse(wrong: np.ndarray, wrong_first: np.ndarray, mass: Array) -> bool:
    """Tell whether more rows are misclassified than by the first step.

    McNemar's exact test, one-sided: the tail of a binomial distribution, as an incomplete beta
    function.
    """
    more, fewer = row_sums(_disagreements, wrong, wrong_first, mass)
    return bool(more > fewer and betainc(more, fewer + 1.0, 0.5) < WORSE)


def _disagreements(wrong: np.ndarray, wrong_first: np.ndarray, mass: Array) -> tuple[Array, Array]:
    return mass @ (wrong & ~wrong_first), mass @ (wrong_first & ~wrong)


def separable(problem: LogisticProblem, rows: np.ndarray) -> bool:
    """Tell whether a hyperplane separates the labels of some rows, touching them at most.

    A linear program: a direction b with s x'b >= 0 for all rows and > 0 for some exists exactly
    then, and maximum likelihood has no finite value. Of rows in blocks it takes a few, and then
    those that its solution has on the wrong side, until it separates no longer or there are none.

    Parameters
    ----------
    problem : LogisticProblem
    rows : ndarray of bool, shape (n,)
        The rows in question.
    """
    signed = problem.signs[:, None] * problem.exog
    if problem.blocks is None:
        signed = signed[rows]
        return _direction(signed, np.abs(signed).max(axis=0), signed.mean(axis=0)) is not None
    signed = np.where(rows[:, None], signed, 0.0)
    unit, total = np.abs(signed).max(axis=0), signed.mean(axis=0)
    used = signed[:: max(1, problem.n_obs // PROGRAM_ROWS)]
    while True:
        found = _direction(used, unit, total)
        if found is None:
            return False
        worst = signed[smallest(ADDED_ROWS, signed @ found)]
        beyond = worst[worst @ found < -ZERO]
        if not len(beyond):
            return True
        used = np.vstack([used, beyond])


def _direction(signed: Array, unit: Array, total: Array) -> Array | None:
    """Return a direction b with s x'b >= 0 for some rows s x and > 0 for their total, or None."""
    unit = np.maximum(unit, np.finfo(float).tiny)
    scaled, goal = signed / unit, total / unit
    found = linprog(-goal, A_ub=-scaled, b_ub=np.zeros(len(scaled)), bounds=(-1.0, 1.0))
    if found.status != 0 or found.x is None:
        return np.zeros_like(unit)
    return found.x / unit if float(goal @ found.x) > ZERO else None
