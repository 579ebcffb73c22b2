"""Likelihoods whose rows depend on the parameters through few predictors, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.special import betaincinv, expit

from rrmstats.core.entropy import Array
from rrmstats.losses.kernels import CountKernel, Kernel
from rrmstats.losses.likelihood_laws import count_cells, probability_nodes

# Logarithm of a probability that is not worth a term, and how often sums are lengthened for it.
FAINT, LENGTHENED = -30.0, 8
# Change of a linear predictor or dispersion that is large for any of them.
LARGE_CHANGE = 10.0


@dataclass(frozen=True, eq=False)
class PredictorLikelihood:
    """Log-likelihoods of rows, given predictors that are linear in parts of the parameters.

    Attributes
    ----------
    kernel : Kernel
    endog : ndarray, shape (n,)
    designs : tuple of ndarray, shape (n, k_j) each
        Designs of the predictors; parameters come in their order.
    offsets : tuple of ndarray, shape (n,), or 0 each

    All may have a batch of subsets of rows in front, with one theta for each.
    """

    kernel: Kernel
    endog: Array
    designs: tuple[Array, ...]
    offsets: tuple[Any, ...]

    @cached_property
    def _ends(self) -> list[int]:
        return np.cumsum([0, *(design.shape[-1] for design in self.designs)]).tolist()

    def predictors(self, theta: Array) -> tuple[Array, ...]:
        """Return the predictors of the rows at theta (..., k), shape (..., n) each."""
        found = []
        for j, design in enumerate(self.designs):
            own = theta[..., self._ends[j] : self._ends[j + 1]]
            linear = own @ design.T if design.ndim == 2 else (design @ own[..., None])[..., 0]
            found.append(linear + self.offsets[j])
        return tuple(found)

    def subsets(self, rows: np.ndarray) -> PredictorLikelihood:
        """Return the likelihood of a batch of subsets of rows, shape (b, r)."""
        return PredictorLikelihood(
            self.kernel,
            self.endog[rows],
            tuple(design[rows] for design in self.designs),
            tuple(off[rows] if np.ndim(off) else off for off in self.offsets),
        )

    @property
    def longest_units(self) -> Array:
        """Changes of the parameters that change a predictor by much whatever it is, shape (k,)."""
        size = np.sqrt(np.concatenate([(z**2).mean(axis=0) for z in self.designs]))
        return LARGE_CHANGE / np.where(size > 0, size, 1.0)

    @cached_property
    def jacobian(self) -> Array:
        """Derivatives of the predictors in the parameters, shape (q, n, k)."""
        found = np.zeros((len(self.designs), len(self.endog), self._ends[-1]))
        for j, design in enumerate(self.designs):
            found[j, :, self._ends[j] : self._ends[j + 1]] = design
        return found

    def log_likelihood(self, theta: Array) -> Array:
        """Return the log-likelihoods of the rows, shape (..., n)."""
        return self.log_density(theta, self.endog)

    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-likelihoods of responses that broadcast with the rows."""
        with np.errstate(all="ignore"):
            return np.asarray(self.kernel.log_density(y, *self.predictors(theta)))

    def scores(self, theta: Array) -> Array:
        """Return the scores of the rows, shape (..., n, k)."""
        with np.errstate(all="ignore"):
            slopes = self.kernel.slopes(self.endog, *self.predictors(theta))
        parts = [s[..., None] * z for s, z in zip(slopes, self.designs, strict=True)]
        return np.concatenate(parts, axis=-1)

    def slopes(self, theta: Array, y: Array, unit: Array) -> tuple[Array, Array]:
        """Return the slopes in the predictors (q, m, n), and the derivatives of these."""
        with np.errstate(all="ignore"):
            return self.kernel.slopes(y, *self.predictors(theta)), self.jacobian


class CountLaw(PredictorLikelihood):
    """The law of counts, whose kernel is a `CountKernel`."""

    kernel: CountKernel

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return counts that stand for all, and the logarithms of for how many each."""
        with np.errstate(all="ignore"):
            predictors = self.predictors(theta)
            mean, variance = np.broadcast_arrays(*self.kernel.moments(*predictors))
            spread = np.where(np.isfinite(variance), np.sqrt(variance), 1.0 + mean)
            for _ in range(LENGTHENED):
                y, width = count_cells(mean, spread)
                if not (self.kernel.log_density(y[-1], *predictors) > FAINT).any():
                    break
                spread = 2.0 * spread
        return y, np.log(width)


class ShareLaw(PredictorLikelihood):
    """The law of shares, whose kernel is a `BetaKernel`."""

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return shares, and the logarithms of what their densities count."""
        at, weight = probability_nodes()
        with np.errstate(all="ignore"):
            logit_mean, log_precision = self.predictors(theta)
            precision = np.exp(log_precision)
            a, b = expit(logit_mean) * precision, expit(-logit_mean) * precision
            y = np.asarray(betaincinv(a, b, at[:, None]))
            return y, np.log(weight)[:, None] - self.log_density(theta, y)


class LabelLaw(PredictorLikelihood):
    """The law of labels 0 and 1."""

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return both labels, shape (2, 1), each of which counts once."""
        labels = np.array([[0.0], [1.0]])
        return labels, np.zeros_like(labels)


#: Laws whose likelihood has a closed form.
ClosedLaw: TypeAlias = CountLaw | ShareLaw | LabelLaw
