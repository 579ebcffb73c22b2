"""Modules that only some features need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


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
