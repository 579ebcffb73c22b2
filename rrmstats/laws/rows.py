"""Rows with a few predictors, each linear in a part of the parameters: sums and maps over them.

Parameters beyond those of the designs are predictors too, the same for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        mass, *rest = taken(places, *self._arrays)
        return PredictorRows(mass, float(mass.sum()), *_split(len(self.designs), rest))

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
        return _predictors(params, self.designs, self.offsets)

    def map(
        self, kernel: Callable[..., Array], params: Array, tail: tuple[int, ...] = ()
    ) -> Array:
        """Return a function of each row's responses, predictors and designs, (n, *tail)."""
        made, arrays = partial(_mapped, kernel, params, len(self.designs)), self._arrays[1:]
        if self.in_blocks or self.groups is not None:
            found: Array = row_map(made, *arrays, tail=tail)
            return found
        return np.concatenate([made(*part) for part in portions(arrays)])

    def sums(self, kernel: Callable[..., Any], params: Array) -> Any:
        """Return sums over rows: those of a kernel of mass, responses, predictors, designs."""
        made = partial(_summed, kernel, params, len(self.designs))
        return row_sums(made, *self._arrays) if self.groups is None else made(*self._arrays)


def _predictors(
    params: Array, designs: tuple[Array, ...], offsets: tuple[Array, ...]
) -> list[Array]:
    """Return the predictors, and parameters beyond those of the designs, shape (1,) each."""
    *parts, others = parameter_parts(params, designs)
    found = [
        design @ part + offset
        for design, part, offset in zip(designs, parts, offsets, strict=True)
    ]
    return [*found, *others[:, None]]


def _split(q: int, arrays: Sequence[Array]) -> tuple[Responses, Any, Any]:
    """Return the responses, designs and offsets that arrays of rows have in this order."""
    first = len(Responses._fields)
    end = first + q
    return Responses(*arrays[:first]), tuple(arrays[first:end]), tuple(arrays[end:])


def _mapped(kernel: Callable[..., Array], params: Array, q: int, *arrays: Array) -> Array:
    seen, designs, offsets = _split(q, arrays)
    predictors = _predictors(params, designs, offsets)
    ones = np.ones((len(seen.endog), 1))
    return kernel(seen, predictors, (*designs, *(ones,) * (len(predictors) - q)))


def _summed(kernel: Callable[..., Any], params: Array, q: int, mass: Array, *arrays: Array) -> Any:
    return _mapped(partial(kernel, mass), params, q, *arrays)


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
