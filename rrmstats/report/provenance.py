"""How a fit came about: the call, the data and the versions."""

from __future__ import annotations

import hashlib
import inspect
import platform
from datetime import datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from rrmstats.plotting.catalog import Results

PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
# Arguments of the constructors that are data or are shown under a name of their own.
NOT_OPTIONS = {"self", "data", "endog", "exog", "eps_bar", "freq_weights"}


def call_pairs(results: Results) -> list[tuple[str, str]]:
    """Return how the fit was made, by name and value."""
    model = results.model
    formula = getattr(model, "formula", None)
    bootstrap = results.bootstrap
    return [
        ("Model", type(model).__name__),
        ("Formula", "none: arrays were given" if formula is None else str(formula)),
        ("eps_bar", f"{model.eps_bar:g}"),
        ("Rows", f"{results.nobs:.0f}"),
        ("Frequency weights", "equal" if model.freq_weights is None else "given"),
        *model_options(model),
        ("steps", str(results.steps)),
        ("Starts", str(len(results.starts))),
        ("Standard errors", results.cov_type if bootstrap is None else bootstrap.describe()),
        ("use_t", str(results.use_t)),
    ]


def model_options(model: Any) -> list[tuple[str, str]]:
    """Return the arguments of a model's constructor other than its data, by name and value."""
    names = inspect.signature(type(model)).parameters
    given = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return [(name, option_text(given[name])) for name in given if name not in NOT_OPTIONS]


def option_text(value: Any) -> str:
    """Return an argument in a few letters: that an array was given, the class of an object."""
    if np.ndim(value):
        return "given"
    return type(value).__name__ if " object at 0x" in repr(value) else repr(value)


def provenance_pairs(model: Any) -> list[tuple[str, str]]:
    """Return the date, the hash of the data and the versions of the packages used."""
    now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return [
        ("Date", now),
        ("SHA-256 of the data", hash_text(model)),
        ("rrmstats", import_module("rrmstats").__version__),
        ("Python", platform.python_version()),
        *((name, installed_version(name)) for name in PACKAGES),
    ]


def hash_text(model: Any) -> str:
    """Return the hash of the data, or why there is none."""
    endog: object = model.endog
    if not isinstance(endog, np.ndarray | None):
        return "none: the rows are in partitions"
    return data_hash(model) or "none: remove_data dropped the data"


def installed_version(name: str) -> str:
    """Return the version of a package, or a note that it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def data_hash(model: Any) -> str | None:
    r"""Return the SHA-256 of the data of a model.

    The hash covers `endog`, `exog` and the frequency weights, if present. Each enters by its name
    and shape, as in ``"endog (47,)\n"``, followed by its values as little-endian doubles, row by
    row. The name of the frequency weights is ``weights``.

    Parameters
    ----------
    model : model

    Returns
    -------
    str or None
        None after `remove_data`.

    Examples
    --------
    >>> import hashlib, numpy as np, rrmstats
    >>> from rrmstats.report import data_hash
    >>> data = np.arange(8.0).reshape(4, 2) ** 2
    >>> expected = hashlib.sha256(b"endog (4, 2)\n" + data.tobytes()).hexdigest()
    >>> data_hash(rrmstats.RRMCov(data, eps_bar=0.1)) == expected
    True
    """
    arrays = {
        "endog": getattr(model, "endog", None),
        "exog": getattr(model, "exog", None),
        "weights": model.freq_weights,
    }
    if arrays["endog"] is None:
        return None
    digest = hashlib.sha256()
    for name, values in arrays.items():
        if values is not None:
            array = np.ascontiguousarray(values, dtype="<f8")
            digest.update(f"{name} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
