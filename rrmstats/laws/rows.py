"""Rows with a few predictors, each linear in a part of the parameters: sums and maps over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import blocked, row_map, row_sums, taken
from rrmstats.core.entropy import Array

#: Function of responses (n,), sizes (n,) and predictors (q, n).
RowFunction = Callable[[Array, Array, Array], Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Responses and designs of rows, in memory or in blocks.

    Attributes
    ----------
    mass : ndarray, shape (n,)
        How often each row counts.
    total : float
        The sum of `mass`.
    endog : ndarray, shape (n,)
    size : ndarray, shape (n,)
        Variance weights; of binomial counts the numbers of trials.
    designs : tuple of ndarray, shape (n, k_j) each
        Designs of the predictors; parameters come in their order.
    offsets : tuple of ndarray, shape (n,)
        Added to the predictors.
    """

    mass: Array
    total: float
    endog: Array
    size: Array
    designs: tuple[Array, ...]
    offsets: tuple[Array, ...]

    @property
    def n_params(self) -> int:
        """Number of parameters."""
        return sum(design.shape[1] for design in self.designs)

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return (self.mass, self.endog, self.size, *self.designs, *self.offsets)

    def take(self, places: np.ndarray) -> Rows:
        """Return some of the rows, in memory, which stand for as many as all."""
        mass, endog, size, *rest = taken(places, *self._arrays)
        mass = mass * (self.total / mass.sum())
        q = len(self.designs)
        return Rows(mass, self.total, endog, size, tuple(rest[:q]), tuple(rest[q:]))

    @property
    def in_blocks(self) -> bool:
        """Whether the rows lie in blocks."""
        return blocked(self.endog)

    def predictors(self, theta: Array) -> Array:
        """Return the predictors of rows in memory, shape (q, n)."""
        return _predictors(theta, self.designs, self.offsets)

    def changes(self, step: Array) -> Array:
        """Return how far a step of theta moves the predictors of rows in memory, (q, n)."""
        return _predictors(step, self.designs, (0.0,) * len(self.designs))

    def map(self, function: RowFunction, theta: Array, tail: tuple[int, ...] = ()) -> Array:
        """Return a function of each row, shape (n, *tail)."""
        kernel = partial(_mapped, function, theta, len(self.designs))
        found: Array = row_map(kernel, *self._arrays[1:], tail=tail)
        return found

    def map_designs(
        self, kernel: Callable[..., Array], theta: Array, tail: tuple[int, ...]
    ) -> Array:
        """Return a function of each row, of endog, size, predictors and designs, (n, *tail)."""
        made = partial(_mapped_designs, kernel, theta, len(self.designs))
        found: Array = row_map(made, *self._arrays[1:], tail=tail)
        return found

    def sums(self, kernel: Callable[..., Any], theta: Array) -> Any:
        """Return sums over rows: those of a kernel of mass, endog, size, predictors, designs."""
        return row_sums(partial(_summed, kernel, theta, len(self.designs)), *self._arrays)


def _predictors(
    theta: Array, designs: tuple[Array, ...], offsets: tuple[Array | float, ...]
) -> Array:
    found, end = np.empty((len(designs), len(designs[0]))), 0
    for j, (design, offset) in enumerate(zip(designs, offsets, strict=True)):
        start, end = end, end + design.shape[1]
        found[j] = design @ theta[start:end] + offset
    return found


def _mapped(function: RowFunction, theta: Array, q: int, *arrays: Array) -> Any:
    endog, size, *rest = arrays
    return function(endog, size, _predictors(theta, tuple(rest[:q]), tuple(rest[q:])))


def _mapped_designs(kernel: Callable[..., Array], theta: Array, q: int, *arrays: Array) -> Array:
    endog, size, *rest = arrays
    designs = tuple(rest[:q])
    return kernel(endog, size, _predictors(theta, designs, tuple(rest[q:])), designs)


def _summed(kernel: Callable[..., Any], theta: Array, q: int, *arrays: Array) -> Any:
    mass, endog, size, *rest = arrays
    designs = tuple(rest[:q])
    return kernel(mass, endog, size, _predictors(theta, designs, tuple(rest[q:])), designs)


def design_sums(designs: tuple[Array, ...], values: Array) -> Array:
    """Return the sums of the designs' rows times values (..., q, n), shape (..., k)."""
    if len(designs) == 1:
        return values[..., 0, :] @ designs[0]
    parts = [values[..., j, :] @ design for j, design in enumerate(designs)]
    return np.concatenate(parts, axis=-1)


def design_gram(designs: tuple[Array, ...], weights: Array) -> Array:
    """Return the Gram matrix of the designs under weights (q, q, n), shape (k, k)."""
    if len(designs) == 1:
        return designs[0].T @ (weights[0, 0][:, None] * designs[0])
    return np.block(
        [
            [left.T @ (weights[i, j][:, None] * right) for j, right in enumerate(designs)]
            for i, left in enumerate(designs)
        ]
    )


def design_rows(designs: tuple[Array, ...], values: Array) -> Array:
    """Return the designs' rows times values (q, n), shape (n, k)."""
    parts = [values[j][:, None] * design for j, design in enumerate(designs)]
    return np.concatenate(parts, axis=1)
