"""The noise of a first step: what its weights tell of the good rows, and standard errors.

Weights exp(-r^2 / lambda) narrow Gaussian noise of variance s to 1 / (1 / s + 2 / lambda),
whatever else is in the data, as long as bad rows have no weight. The weighted mean of squares is
therefore enough to know s, and the weights tell how many rows are good.

What decides the standard errors, where the noise may change with the predictors, is the curvature
of the weighted squares, the bread of the sandwich. Observed at the fit it is noisy and too large,
because the fit seeks out places where residuals crowd. It is therefore computed from the variance
of the noise at each row, a smooth function fitted under wide weights that see nearly all good
rows; its overall size is then moved toward the observed one as far as that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import f as f_distribution
from scipy.stats import t

from rrmstats.core.block_array import row_map
from rrmstats.core.consistency import (
    efficient_order,
    order_efficiency,
    residual_factor,
    scale_factor,
    scale_variance,
    second_moment_ratio,
    share_factor,
)
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.squares import SquaresProblem

# Order of the weights under which the variances of the noise are fitted: 95 % efficient.
WIDE_ORDER = efficient_order(0.95)
# Rows' worth of evidence for a constant variance that is added to the data.
PRIOR_ROWS = 1.0
# Standard deviation, before the data are seen, of the observed bread relative to the computed one
# (noise that is not Gaussian), and the least that their ratio may be.
PRIOR_SHAPE, LEAST_SHAPE = 0.2, 0.3
# Fit of the variances: largest change of a log variance at convergence and in a step, largest log
# variance relative to the scale, steps.
TOL, FARTHEST_STEP, FARTHEST, MAXITER = 1e-3, 2.0, 10.0, 20
# Spread of a feature below which it is constant.
CONSTANT = 1e-3
# Rows that the variances are fitted to at most, and the ratio of the two breads is taken over.
VARIANCE_ROWS = 20_000
# Largest weighted hat value that the correction for leverage is made for.
MOST_LEVERAGE = 0.9
# Part of a square that must lie outside of what the other columns span, relative to its length.
OUTSIDE = 1e-6


class Noise(NamedTuple):
    """The noise of good rows, in the units of the problem.

    Attributes
    ----------
    params : ndarray, shape (k,)
        The fit whose residuals it is.
    order : float
        Variance of the noise over that of the weighted rows.
    scale : float
        Variance of the noise.
    eps_hat : float
        Share of bad rows.
    """

    params: Array
    order: float
    scale: float
    eps_hat: float


@dataclass(frozen=True, slots=True, eq=False)
class FittedRows:
    """Rows of a regression with their first step.

    Attributes
    ----------
    problem : SquaresProblem
    setting : Setting
    first : Solution
        The first step, of positive risk.
    share : ndarray, shape (n,)
        Weight of each row in the data; they sum to one.
    total : float
        Number of observations that they stand for.
    """

    problem: SquaresProblem
    setting: Setting
    first: Solution
    share: Array
    total: float

    @classmethod
    def of(cls, problem: SquaresProblem, first: Solution, setting: Setting) -> FittedRows:
        """Return the rows of a problem."""
        n = problem.n_obs
        return cls(problem, setting, first, setting.spread(n), setting.wnobs(n))

    @property
    def least_good(self) -> float:
        """Least share of good rows."""
        return 1 - self.setting.eps_bar

    def params_per_row(self, good: float) -> float:
        """Return parameters per good row, given their share."""
        return self.problem.n_params / (self.total * good)

    def good(self, found: Solution, order: float) -> float:
        """Return the share of good rows, given the order of the weights of a solution."""
        relative = float(self.share @ np.exp(-found.losses / found.lambda_))
        return float(np.clip(np.sqrt(order) * relative, self.least_good, 1.0))

    def gram(self, weights: Array) -> Array:
        """Return the Gram matrix of the design under weights (n,), shape (k, k)."""
        return self.problem.gram(weights, np.empty((0, len(weights))))[0]


def tilted(squares: Array | float, scale: float, order: float) -> Array:
    """Return the weights of an order, at most one, shape (n,)."""
    return np.exp(-0.5 * (order - 1) / scale * squares)


def first_noise(rows: FittedRows) -> Noise:
    """Return the noise that a first step tells; its variance is at most that of clean data."""
    first = rows.first
    clean = 1 / second_moment_ratio(rows.setting.eps_bar)
    left = 1 - 2 * first.risk / first.lambda_
    order = min(1 / left, clean) if left > 0 else clean
    taken = rows.params_per_row(rows.good(first, order))
    scale = residual_factor(taken, order) * order * first.risk
    total = float(rows.share @ tilted(first.losses, scale, order))
    good = float(np.sqrt(order)) * total / share_factor(taken, order, order)
    return Noise(first.theta, order, scale, 1 - float(np.clip(good, rows.least_good, 1.0)))


def eps_hat_error(rows: FittedRows, noise: Noise) -> float:
    """Return the standard error of the share of bad rows that a first step tells.

    From the influence function of ``sqrt(a) * mean(w)``, the scale estimated with it. Which rows
    are bad counts as random too.
    """
    order, good = noise.order, 1 - noise.eps_hat
    square = rows.first.losses / noise.scale
    tilt = tilted(square, 1.0, order)
    log_scale = tilt * (order * square - 1) / (good * order**-1.5)
    moves = np.sqrt(order) * tilt - good + good * (order - 1) / (2 * order) * log_scale
    return float(np.sqrt(rows.share @ moves**2 / rows.total))


def residual_cutoffs(rows: FittedRows, noise: Noise, order: float, level: float) -> Array:
    """Return the size of a residual that a good row exceeds with probability 1 - level, (n,).

    To first order in parameters per good row: the fit to the other rows misses by its own
    standard error, the row draws fit and scale to itself by its influence function, and the scale
    has the degrees of freedom of its variance.

    Parameters
    ----------
    rows : FittedRows
    noise : Noise
    order : float
        Order of the fit on clean data.
    level : float
    """
    good = rows.total * (1 - noise.eps_hat)
    leverage = design_leverage(rows) / good
    out = float(t.ppf((1 + level) / 2, scale_freedom(rows, noise)))
    drawn = leverage * order**1.5 * tilted(out**2, 1.0, order)
    own = noise.order
    grown = own**1.5 * tilted(out**2, 1.0, own) * (own * out**2 - 1) / good
    variance = 1 + leverage / crowded_efficiency(order, rows.params_per_row(good / rows.total))
    return np.sqrt(noise.scale * variance) * out * np.exp(-drawn - 0.5 * grown)


def scale_freedom(rows: FittedRows, noise: Noise) -> float:
    """Return the degrees of freedom of the scale: those of a variance as precise as it is."""
    good = rows.total * (1 - noise.eps_hat)
    return max(2 * good / scale_variance(noise.order), 1.0)


def crowded_efficiency(order: float, params_per_row: float) -> float:
    """Return the efficiency of a fit of an order; all fits are one where rows are exhausted."""
    asymptotic = order_efficiency(order)
    return asymptotic + (1 - asymptotic) * min(params_per_row, 1.0)


def design_leverage(rows: FittedRows) -> Array:
    """Return squared lengths of predictors in the metric of all rows, shape (n,).

    Their mean is the number of parameters. Bad rows count as well: were they left out, the fit
    would be taken to know nothing where only they are, and none of them be flagged.
    """
    reach = rows.problem.exog @ inverse_root(rows.gram(rows.share)).T
    return np.einsum("ni,ni->n", reach, reach)


class Scores(NamedTuple):
    """Scores and bread of a fit: its influence functions are ``slopes * exog @ inverse``.

    Attributes
    ----------
    slopes : ndarray, shape (n,)
        Residuals of fits without the row, times its weight.
    leverage : ndarray, shape (n,)
        Weighted hat values of one observation of each row.
    inverse : ndarray, shape (k, k)
        Inverse of the mean curvature of the weighted squares.
    """

    slopes: Array
    leverage: Array
    inverse: Array


@dataclass(frozen=True, slots=True, eq=False)
class VarianceFunction:
    """Variance of the noise relative to the scale, log-linear in features of the predictors.

    The features are a constant, and ``log(1 + z^2)`` for the coordinates z of the rows in the
    directions of most and least noise. They do not depend on the coordinates of the predictors.

    Attributes
    ----------
    axes : ndarray, shape (k, k)
        Take predictors to coordinates.
    center, unit : ndarray, shape (k,)
        Mean and spread of the features.
    coef : ndarray, shape (k + 1,)
    """

    axes: Array
    center: Array
    unit: Array
    coef: Array

    def features(self, exog: Array) -> Array:
        """Return the features of rows, shape (n, k + 1)."""
        found = (np.log1p((exog @ self.axes) ** 2) - self.center) / self.unit
        return np.column_stack([np.ones(len(exog)), found])

    def at(self, exog: Array) -> Array:
        """Return the variances at rows, shape (n,)."""
        return _bounded_exp(self.features(exog) @ self.coef)


def _bounded_exp(values: Array) -> Array:
    return np.exp(np.clip(values, -FARTHEST, FARTHEST))


def first_scores(rows: FittedRows, at: Noise) -> Scores:
    """Return scores and bread of a first step.

    The scale moves the parameters only where the noise is skewed; its part is left out. At order
    one the influence functions are those of least squares, with the residuals of HC3.

    Parameters
    ----------
    rows : FittedRows
    at : Noise
        The noise of the good rows.
    """
    problem = rows.problem
    resid = problem.endog - problem.predictor(at.params)
    tilt = tilted(resid * resid, at.scale, at.order)
    root = inverse_root(rows.gram(rows.share * tilt))
    reach = problem.exog @ root.T
    leverage = tilt / rows.total * np.einsum("ni,ni->n", reach, reach)
    leverage = np.minimum(leverage, MOST_LEVERAGE)
    inverse = np.linalg.pinv(expected_bread(rows, at), hermitian=True)
    return Scores(tilt * resid / (1 - leverage), leverage, inverse)


def expected_bread(rows: FittedRows, at: Noise) -> Array:
    """Return the curvature of the weighted squares of a first step, shape (k, k).

    The observed one is worth its mean ratio to the computed one over all directions; in single
    directions it is too noisy. Their mean has the weights of a prior and of sampling.
    """
    problem, order = rows.problem, at.order
    squares, wide = problem.losses(at.params) / at.scale, min(WIDE_ORDER, order)
    noise = variance_function(rows, squares, wide, at)
    computed = row_map(row_curvatures, problem.exog, squares, noise, wide, order, tail=())
    bread = rows.gram(rows.share * computed)
    some = problem.thinned(VARIANCE_ROWS)
    squares = (some.endog - some.exog @ at.params) ** 2 / at.scale
    reach = some.exog @ inverse_root(bread).T
    factor = scale_factor(rows.params_per_row(1 - at.eps_hat), order, order)
    observed = tilted(squares, 1.0, order) * (1 - factor * (order - 1) * squares)
    expected = row_curvatures(some.exog, squares, noise, wide, order)
    gaps = (observed - expected) * np.einsum("ni,ni->n", reach, reach) / problem.n_params
    share = some.share(rows.share)
    weight = PRIOR_SHAPE**2 / (PRIOR_SHAPE**2 + float(share @ gaps**2) / rows.total)
    return bread * max(1 + weight * float(share @ gaps), LEAST_SHAPE)


def row_curvatures(
    exog: Array, squares: Array, noise: VarianceFunction, wide: float, order: float
) -> Array:
    """Return what each row is expected to add to the curvature at an order, shape (n,).

    The weight of a row with noise of variance v has the expectation ``(1 + (b - 1) v)^-0.5`` at
    order b, its curvature ``(1 + (a - 1) v)^-1.5`` at order a. A corrupted row has no weight at
    either.
    """
    variances = noise.at(exog)
    good = tilted(squares, 1.0, wide) * np.sqrt(1 + (wide - 1) * variances)
    return good * (1 + (order - 1) * variances) ** -1.5


def variance_function(
    rows: FittedRows, squares: Array, wide: float, at: Noise
) -> VarianceFunction:
    """Return the variance of the noise as a function of the predictors.

    Under weights of order b, noise of variance v has the mean square ``v / (1 + (b - 1) v)``. Log
    variances linear in the features are fitted to it by Fisher's scoring.

    Parameters
    ----------
    rows : FittedRows
    squares : ndarray, shape (n,)
        Squared residuals relative to the scale of the noise.
    wide : float
        Order b.
    at : Noise
    """
    mass = rows.share * tilted(squares, 1.0, wide)
    (gram, spread), _, _ = rows.problem.products([mass, mass * squares], [], [])
    root = inverse_root(gram)
    axes = root.T @ np.linalg.eigh(root @ spread @ root.T)[1]
    some = rows.problem.thinned(VARIANCE_ROWS)
    exog, squares = some.exog, (some.endog - some.exog @ at.params) ** 2 / at.scale
    mass = rows.total * some.share(rows.share) * tilted(squares, 1.0, wide)
    logs = np.log1p((exog @ axes) ** 2)
    center = mass @ logs / mass.sum()
    unit = np.sqrt(mass @ (logs - center) ** 2 / mass.sum())
    k = rows.problem.n_params
    plain = VarianceFunction(axes, center, np.maximum(unit, CONSTANT), np.zeros(k + 1))
    factor = scale_factor(rows.params_per_row(1 - at.eps_hat), wide, at.order)
    coef = fitted_variances(plain.features(exog), mass, factor * squares, wide)
    return VarianceFunction(plain.axes, plain.center, plain.unit, coef)


def fitted_variances(features: Array, mass: Array, squares: Array, order: float) -> Array:
    """Return the coefficients of log variances, shape (p,); see `variance_function`.

    Parameters
    ----------
    features : ndarray, shape (n, p)
        The first is constant.
    mass : ndarray, shape (n,)
        Weights of the rows, in units of one observation.
    squares : ndarray, shape (n,)
        Squared residuals, made up for the fit, relative to the scale.
    order : float
        Order of the weights.
    """
    coef = np.zeros(features.shape[1])
    ridge = np.full(len(coef), PRIOR_ROWS)
    ridge[0] = 0.0
    for _ in range(MAXITER):
        variances = _bounded_exp(features @ coef)
        left = 1 / (1 + (order - 1) * variances)
        score = features.T @ (mass * (squares / (variances * left) - 1)) - ridge * coef
        information = features.T @ ((mass * left)[:, None] * features) + np.diag(ridge)
        step = np.linalg.solve(information, score)
        change = float(np.abs(features @ step).max())
        coef += step * min(1.0, FARTHEST_STEP / max(change, TOL))
        if change < TOL:
            break
    return coef


def reset_pvalue(resid: Array, exog: Array, weights: Array, free: float) -> float:
    """Return the p-value of Ramsey's RESET test with the squares of the predictors.

    An F test that the squares explain nothing of the residuals, each row with its weight. One
    where there is no square that the predictors do not span.

    Parameters
    ----------
    resid : ndarray, shape (n,)
        Residuals of the fit under the weights.
    exog : ndarray, shape (n, k)
    weights : ndarray, shape (n,)
    free : float
        Degrees of freedom of the residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.residuals import reset_pvalue
    >>> x = np.linspace(-1, 1, 40)
    >>> exog = np.c_[np.ones(40), x]
    >>> resid = x**2 - np.mean(x**2) + 0.1 * np.sin(50 * x)
    >>> reset_pvalue(resid, exog, np.ones(40), 38.0) < 1e-6
    True
    """
    root = np.sqrt(weights)[:, None]
    basis = np.linalg.qr(root * exog)[0]
    spread = exog.std(axis=0)
    varying = exog[:, spread > 0] / spread[spread > 0]
    squares = root * (varying - varying.mean(axis=0)) ** 2
    left = squares - basis @ (basis.T @ squares)
    used = np.linalg.norm(left, axis=0) > OUTSIDE * np.linalg.norm(squares, axis=0)
    if not used.any():
        return 1.0
    unit = left[:, used] / np.linalg.norm(left[:, used], axis=0)
    axes, values, _ = np.linalg.svd(unit, full_matrices=False)
    axes = axes[:, values > OUTSIDE]
    target = root[:, 0] * resid
    explained, count = float(((axes.T @ target) ** 2).sum()), axes.shape[1]
    rest, freedom = float(target @ target) - explained, free - count
    if freedom < 1 or rest <= 0:
        return 1.0
    return float(f_distribution.sf(explained / count / (rest / freedom), count, freedom))
