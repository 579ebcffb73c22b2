"""Counts and labels under weights that their groups were given: consistent parameters.

The weight of a row is proportional to ``exp(-rate * loss)``, with the loss at the parameters of
least risk. That tilts the law of a good row at the true parameters, and the mean of the tilted law
is what its response has on average. The parameters at which it does are consistent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.families import Counts

# Steps of a fit, the size of the last in the linear predictor, and the longest.
MOST_STEPS, LAST_STEP, LONGEST = 200, 1e-11, 1.0
# Size of a last step that has converged for all purposes.
SETTLED = 1e-6


class TiltedMoments(NamedTuple):
    """Expectations under the tilted law, each of shape (n,).

    Attributes
    ----------
    mean, variance : ndarray
        Of the responses.
    with_deviance : ndarray
        Covariance of the responses and half their unit deviances.
    """

    mean: Array
    variance: Array
    with_deviance: Array


class TiltedCounts:
    """Rows of a family of counts under weights that their groups were given.

    Parameters
    ----------
    problem : DevianceProblem
        Its family is one of counts.
    theta : ndarray, shape (k,)
        Parameters of least risk, at which the rows had their losses.
    rates : ndarray, shape (n,)
    weights : ndarray, shape (n,)
        Weights, summing to one.
    dispersion : float
    """

    def __init__(
        self,
        problem: DevianceProblem,
        theta: Array,
        rates: Array,
        weights: Array,
        dispersion: float,
    ) -> None:
        assert isinstance(problem.family, Counts)
        self.problem, self.family = problem, problem.family
        self.theta, self.weights = theta, weights
        self.size, self.decay = problem.var_weights / dispersion, rates * problem.var_weights
        self.raw_mu, raw_slope = self._means(theta)
        self._raw_pull = self.decay * raw_slope / self.family.variance(self.raw_mu)

    def _means(self, theta: Array) -> tuple[Array, Array]:
        """Return the means of the rows and their slopes in the linear predictor."""
        eta = self.problem.predictor(theta) + self.problem.offset
        return self.problem.mean.mean(eta), self.problem.mean.slopes(eta)[0]

    def moments(self, mu: Array) -> TiltedMoments:
        """Return expectations under the tilted laws of rows with means `mu`."""
        parts = []
        for rows, y, mass, _, _ in self.family.laws(mu, self.size):
            deviance = 0.5 * self.family.deviance(y, self.raw_mu[rows, None])
            tilted = mass * np.exp(-self.decay[rows, None] * deviance)
            tilted /= tilted.sum(axis=1, keepdims=True)
            mean = np.einsum("nm,nm->n", tilted, y)
            off = tilted * (y - mean[:, None])
            parts.append(
                (mean, np.einsum("nm,nm->n", off, y), np.einsum("nm,nm->n", off, deviance))
            )
        return TiltedMoments(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _equation(self, theta: Array) -> tuple[Array, Array, TiltedMoments]:
        """Return change of a score with its response, scores and moments at parameters."""
        mu, slope = self._means(theta)
        per_response = self.size * slope / self.family.variance(mu)
        told = self.moments(mu)
        return per_response, per_response * (self.problem.endog - told.mean), told

    def coefficients(self) -> tuple[Array, bool]:
        """Return the parameters that solve the weighted equation, and whether they do."""
        theta, length, size = self.theta, 1.0, np.inf
        for _ in range(MOST_STEPS):
            per_response, scores, told = self._equation(theta)
            pull = (self.weights * scores) @ self.problem.exog
            step = self._inverse(per_response, told) @ pull
            last, size = size, float(np.sqrt(self.weights @ self.problem.predictor(step) ** 2))
            length = max(0.5 * length, 0.05) if size > 0.9 * last else min(1.0, 1.5 * length)
            theta = theta + length * min(1.0, LONGEST / max(size, LAST_STEP)) * step
            if not size > LAST_STEP:
                break
        return theta, size < SETTLED

    def _gram(self, weights: Array) -> Array:
        return self.problem.gram(self.weights * weights, np.empty((0, len(weights))))[0]

    def _inverse(self, per_response: Array, told: TiltedMoments) -> Array:
        """Return the inverse of the expected derivative of the equation, shape (k, k)."""
        return np.linalg.pinv(self._gram(per_response**2 * told.variance), hermitian=True)

    def moves(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return how parameters move with the rows (n, k), theta (k, k) and ln(lambda) (k,)."""
        per_response, scores, told = self._equation(theta)
        inverse = self._inverse(per_response, told)
        exog = self.problem.exog
        by_theta = -self._gram(per_response * told.variance * self._raw_pull) @ inverse
        by_log_lambda = -(self.weights * per_response * self.decay * told.with_deviance) @ exog
        return scores[:, None] * (exog @ inverse), by_theta, by_log_lambda @ inverse
