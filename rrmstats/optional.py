"""Modules that only some features need."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from importlib import import_module
from types import ModuleType
from typing import TypeVar

# Seconds before a progress bar appears.
BAR_DELAY = 2.0

Value = TypeVar("Value")


def require(module: str, extra: str) -> ModuleType:
    """Import a module that an extra installs, or say how to install it.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : str
        The extra of rrmstats that installs it.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If the module is not installed.

    Examples
    --------
    >>> from rrmstats.optional import require
    >>> require("joblib", "parallel").__name__
    'joblib'
    """
    found = installed(module)
    if found is None:
        raise ImportError(
            f"{module} is not installed; install it with: pip install 'rrmstats[{extra}]'"
        )
    return found


def installed(module: str) -> ModuleType | None:
    """Return a module, or None where it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None


def with_progress(
    values: Collection[Value], progress: bool | None, name: str, unit: str
) -> Iterable[Value]:
    """Return values, with a progress bar once it takes more than two seconds to go through them.

    Parameters
    ----------
    values : collection
    progress : bool or None
        None shows it on terminals and in notebooks, where tqdm is installed.
    name, unit : str
        What is going on, and what the values are.
    """
    if progress is False or (progress is None and installed("tqdm") is None):
        return values
    tqdm = require("tqdm", "parallel").tqdm
    # None shows it on terminals alone.
    quiet = None if progress is None and "ipykernel" not in sys.modules else False
    bar: Iterable[Value] = tqdm(values, desc=name, unit=f" {unit}", delay=BAR_DELAY, disable=quiet)
    return bar
