"""Rows with a few predictors, each linear in a part of the parameters: sums and maps over them.

Parameters beyond those of the designs are predictors too, the same for all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from rrmstats.core.block_array import blocked, portions, row_map, row_sums, taken
from rrmstats.core.entropy import Array
from rrmstats.laws.together import Together


class Responses(NamedTuple):
    """What rows have beside their predictors, each of shape (n,).

    Attributes
    ----------
    endog : ndarray
    size : ndarray
        Variance weights; of binomial counts the numbers of trials.
    far : ndarray
        Whether they are far from the others in X.
    """

    endog: Array
    size: Array
    far: Array

    @property
    def counts(self) -> Array:
        """Responses as counts; those of binomial models are given as shares."""
        return self.size * self.endog

    @property
    def trials(self) -> Array:
        """Numbers of trials."""
        return np.maximum(np.round(self.size), 1.0)


@dataclass(frozen=True, eq=False)
class PredictorRows:
    """Responses and designs of rows, in memory or in blocks.

    Attributes
    ----------
    mass : ndarray, shape (n,)
        How often each row counts.
    total : float
        The sum of `mass`.
    seen : Responses
    designs : tuple of ndarray, shape (n, k_j) each
        Designs of the predictors; parameters come in their order.
    offsets : tuple of ndarray, shape (n,)
        Added to the predictors.
    groups : ndarray of int, shape (n,), or None
        Number of the group of each row, whose rows are good or bad together; only of rows in
        memory.
    """

    mass: Array
    total: float
    seen: Responses
    designs: tuple[Array, ...]
    offsets: tuple[Array, ...]
    groups: np.ndarray | None = None

    @classmethod
    def plain(
        cls,
        mass: Array,
        total: float,
        endog: Array,
        designs: tuple[Array, ...],
        offset: Array | None = None,
        groups: np.ndarray | None = None,
    ) -> PredictorRows:
        """Return rows of size one, none of them far; an offset is that of the first predictor."""
        zero = 0.0 * endog
        offsets = (zero if offset is None else offset, *(zero,) * (len(designs) - 1))
        return cls(mass, total, Responses(endog, zero + 1.0, zero), designs, offsets, groups)

    @cached_property
    def together(self) -> Together:
        """Which rows are good or bad together."""
        return Together(self.mass, self.groups)

    @property
    def n_params(self) -> int:
        """Number of parameters of the designs."""
        return sum(design.shape[1] for design in self.designs)

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return (self.mass, *self.seen, *self.designs, *self.offsets)

    def part(self, places: np.ndarray) -> PredictorRows:
        """Return some of the rows, in memory and each by itself."""
        return _rows(len(self.designs), *taken(places, *self._arrays))

    def take(self, places: np.ndarray) -> PredictorRows:
        """Return some of the rows, in memory and each by itself, which stand for all."""
        part = self.part(places)
        return replace(part, mass=part.mass * (self.total / part.total), total=self.total)

    @property
    def in_blocks(self) -> bool:
        """Whether the rows lie in blocks."""
        return blocked(self.seen.endog)

    def predictors(self, params: Array) -> list[Array]:
        """Return the predictors of rows in memory, shape (n,) each, and other parameters, (1,)."""
        *parts, others = parameter_parts(params, self.designs)
        three = zip(self.designs, parts, self.offsets, strict=True)
        return [*(design @ part + offset for design, part, offset in three), *others[:, None]]

    def map(
        self, kernel: Callable[..., Array], params: Array, tail: tuple[int, ...] = ()
    ) -> Array:
        """Return what a kernel gives for each row, shape (n, *tail).

        It takes rows in memory, or a part of them, and parameters.
        """
        made = partial(_on_rows, kernel, params, len(self.designs))
        if self.in_blocks or self.groups is not None:
            found: Array = row_map(made, *self._arrays, tail=tail)
            return found
        return np.concatenate([made(*part) for part in portions(self._arrays)])

    def sums(self, kernel: Callable[..., Any], params: Array) -> Any:
        """Return the sums of what a kernel gives for parts of the rows."""
        made = partial(_on_rows, kernel, params, len(self.designs))
        return row_sums(made, *self._arrays) if self.groups is None else made(*self._arrays)


def _rows(q: int, mass: Array, *arrays: Array) -> PredictorRows:
    """Return rows of so many designs from the arrays that `PredictorRows` has, in its order."""
    first = len(Responses._fields)
    seen, designs = Responses(*arrays[:first]), arrays[first : first + q]
    return PredictorRows(mass, float(mass.sum()), seen, designs, arrays[first + q :])


def _on_rows(kernel: Callable[..., Any], params: Array, q: int, *arrays: Array) -> Any:
    return kernel(_rows(q, *arrays), params)


def parameter_parts(params: Array, designs: tuple[Array, ...]) -> list[Array]:
    """Return the parameters (k, ...) of each design, and then the others."""
    ends = [*accumulate((design.shape[1] for design in designs), initial=0), None]
    return [params[start:end] for start, end in pairwise(ends)]


def design_sums(designs: tuple[Array, ...], values: Array) -> Array:
    """Return the sums of the designs' rows times values (q, n), shape (k,)."""
    return np.concatenate([one @ design for one, design in zip(values, designs, strict=True)])


def design_gram(designs: tuple[Array, ...], weights: Array) -> Array:
    """Return the Gram matrix of the designs under weights (q, q, n), shape (k, k)."""
    return np.block(
        [
            [left.T @ (weights[i, j][:, None] * right) for j, right in enumerate(designs)]
            for i, left in enumerate(designs)
        ]
    )


def design_rows(designs: tuple[Array, ...], values: Array) -> Array:
    """Return the designs' rows times values (q, n), shape (n, k)."""
    parts = [one[:, None] * design for one, design in zip(values, designs, strict=True)]
    return np.concatenate(parts, axis=1)


def design_leverage(designs: tuple[Array, ...], inverse: Array, weights: Any) -> Array:
    """Return the traces of each row's part of a Gram matrix times a matrix (k, k), shape (n,).

    `weights` are those of `design_gram`; rows may lie in blocks.
    """
    found: Any = 0.0
    for left, row, strip in zip(designs, weights, parameter_parts(inverse, designs), strict=False):
        parts = parameter_parts(strip.T, designs)
        for right, weight, part in zip(designs, row, parts, strict=False):
            found = found + weight * np.einsum("ni,ni->n", left @ part.T, right)
    return found
