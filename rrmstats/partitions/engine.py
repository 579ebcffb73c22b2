"""Blocks that are partitions of a Dask collection."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from rrmstats.core.blocks import Blocks, Task
from rrmstats.optional import require

T = TypeVar("T")

# Results of partitions that are combined at a time.
FAN_IN = 16
# Part of the memory that data may take to be kept there between passes.
KEPT_SHARE = 0.4


class DaskBlocks(Blocks):
    """Blocks whose leaves Dask computes, wherever its scheduler runs.

    Parameters
    ----------
    parts : sequence of dask Delayed
        Each gives the leaves of a block, a tuple of arrays.
    lengths : sequence of int
        Rows of each block.
    """

    def __init__(self, parts: Sequence[Any], lengths: Sequence[int]) -> None:
        self.parts, self.lengths = list(parts), list(lengths)

    def collect(self, tasks: Mapping[int, Task[T]]) -> list[T]:
        """Return what tasks give, each for the block at its place."""
        self.passes += 1
        return list(computed([delayed_task(task, self.parts[i]) for i, task in tasks.items()]))

    def combined(self, task: Task[T], combine: Callable[[list[T]], T]) -> T:
        """Return what a task gives for the blocks, combined where the blocks are."""
        self.passes += 1
        delayed = require("dask", "dask").delayed
        used = [part for part, length in zip(self.parts, self.lengths, strict=True) if length]
        found = [delayed_task(task, part) for part in used]
        while len(found) > 1:
            groups = [found[i : i + FAN_IN] for i in range(0, len(found), FAN_IN)]
            found = [delayed(combine, pure=False)(group) for group in groups]
        return computed(found)[0]

    def keep(self, n_bytes: float) -> None:
        """Compute the leaves once for all passes, where their size leaves room for it."""
        if n_bytes <= KEPT_SHARE * workers_memory():
            self.keep_there()

    def keep_there(self) -> None:
        """Compute the leaves once for all passes, and keep them in the memory of the workers."""
        self.parts = list(require("dask", "dask").persist(*self.parts))


def delayed_task(task: Task[T], part: Any) -> Any:
    """Return what a task gives for a partition, yet to be computed."""
    # As a method, whose object Dask does not search for collections.
    call: Any = task.__call__  # type: ignore[operator]  # an object that is called
    return require("dask", "dask").delayed(call, pure=False)(part)


def computed(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return delayed values, computed by the scheduler that is active."""
    return require("dask", "dask").compute(*values)


def workers_memory() -> float:
    """Return the bytes that the workers of the active scheduler have together."""
    try:
        distributed: Any = import_module("distributed")
        workers = distributed.default_client().scheduler_info(n_workers=-1)["workers"].values()
        return float(sum(worker["memory_limit"] or np.inf for worker in workers))
    except (ImportError, ValueError):
        return process_memory()


def process_memory() -> float:
    """Return the bytes that this process may take: those of the machine, or of its limits.

    Zero where the system does not tell; partitions are then read again in each pass.
    """
    try:
        import resource
    except ImportError:
        return 0.0
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return float(min([machine, *(limit for limit in limits if limit > 0)]))
