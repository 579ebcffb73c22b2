"""Standard errors of linear regression where the noise may change with the predictors.

What decides them is the curvature of the weighted squares, the bread of the sandwich. Observed at
the fit it is noisy and too large, because the fit seeks out places where residuals crowd. It is
therefore computed from the variance of the noise at each row, a smooth function fitted under wide
weights that see nearly all good rows; its overall size is then moved toward the observed one as
far as that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.consistency import efficient_order
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.linear import CHUNK, weighted_gram
from rrmstats.losses.noise import scale_factor
from rrmstats.losses.residuals import FittedRows, Noise, tilted

# Order of the weights under which the variances of the noise are fitted: that of the last rung.
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


def step_scores(rows: FittedRows, theta: Array, order: float, at: Noise) -> Scores:
    """Return scores and bread of a step.

    The scale moves the parameters only where the noise is skewed; its part is left out. At order
    one the influence functions are those of least squares, with the residuals of HC3.

    Parameters
    ----------
    rows : FittedRows
    theta : ndarray, shape (k,)
        Parameters of the step.
    order : float
        Order of its weights.
    at : Noise
        The noise of the good rows.
    """
    problem = rows.problem
    resid = problem.endog - problem.predictor(theta)
    tilt = tilted(resid * resid, at.scale, order)
    root = inverse_root(rows.gram(rows.share * tilt))
    reach = problem.exog @ root.T
    leverage = tilt / rows.total * np.einsum("ni,ni->n", reach, reach)
    leverage = np.minimum(leverage, MOST_LEVERAGE)
    inverse = np.linalg.pinv(step_bread(rows, order, at), hermitian=True)
    return Scores(tilt * resid / (1 - leverage), leverage, inverse)


def step_bread(rows: FittedRows, order: float, at: Noise) -> Array:
    """Return the curvature of the weighted squares at an order, shape (k, k).

    The observed one is worth its mean ratio to the computed one over all directions; in single
    directions it is too noisy. Their mean has the weights of a prior and of sampling.
    """
    problem, squares = rows.problem, rows.problem.losses(at.params) / at.scale
    wide = min(WIDE_ORDER, at.order)
    noise = variance_function(rows, squares, wide, at)
    computed = row_map(row_curvatures, problem.exog, squares, noise, wide, order, tail=())
    bread = rows.gram(rows.share * computed)
    some = problem.thinned(VARIANCE_ROWS)
    squares = (some.endog - some.exog @ at.params) ** 2 / at.scale
    reach = some.exog @ inverse_root(bread).T
    factor = scale_factor(rows.params_per_row(1 - at.eps_hat), order, at.order)
    observed = tilted(squares, 1.0, order) * (1 - factor * (order - 1) * squares)
    expected = row_curvatures(some.exog, squares, noise, wide, order)
    gaps = (observed - expected) * np.einsum("ni,ni->n", reach, reach) / problem.n_params
    share = some.share(rows.share)
    weight = PRIOR_SHAPE**2 / (PRIOR_SHAPE**2 + float(share @ gaps**2) / rows.total)
    return bread * max(1 + weight * float(share @ gaps), LEAST_SHAPE)


def two_grams(rows: FittedRows, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the Gram matrices of the design under two sets of weights (n,), in one pass."""
    if rows.problem.blocks is None:
        return rows.gram(first), rows.gram(second)
    return row_sums(_two_grams, rows.problem.exog, first, second)


def _two_grams(exog: Array, first: Array, second: Array) -> tuple[Array, Array]:
    return weighted_gram(exog, first), weighted_gram(exog, second)


def row_curvatures(
    exog: Array, squares: Array, noise: VarianceFunction, wide: float, order: float
) -> Array:
    """Return what each row is expected to add to the curvature at an order, shape (n,).

    The weight of a row with noise of variance v has the expectation ``(1 + (b - 1) v)^-0.5`` at
    order b, its curvature ``(1 + (a - 1) v)^-1.5`` at order a. A corrupted row has no weight at
    either.
    """
    found = tilted(squares, 1.0, wide)
    for i in range(0, len(exog), CHUNK):
        part = slice(i, i + CHUNK)
        variances = noise.at(exog[part])
        found[part] *= np.sqrt(1 + (wide - 1) * variances)
        found[part] *= (1 + (order - 1) * variances) ** -1.5
    return found


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
    gram, spread = two_grams(rows, mass, mass * squares)
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
