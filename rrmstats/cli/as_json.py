"""The numbers of a fit as JSON."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import rrmstats


def fit_record(fit: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Return a fit as values that JSON knows; what is not a finite number is None.

    Parameters
    ----------
    fit : results of any model
    args : argparse.Namespace
        With `formula`, `model`, and the `warnings` so far.

    Returns
    -------
    dict
        The page on the command line says what each key means.
    """
    stability = fit.stability
    flags = fit.outliers()
    record = {
        "rrmstats": rrmstats.__version__,
        "model": args.model,
        "formula": args.formula,
        "nobs": int(fit.nobs),
        "n_dropped": len(fit.model.data.frame) - int(fit.nobs),
        "eps_bar": fit.eps_bar,
        "eps_bar_chosen": fit.choice is not None,
        "eps_hat": fit.eps_hat,
        "eps_hat_se": fit.eps_hat_se,
        "steps": fit.steps,
        "explanation": fit.explanation,
        "params": fit.params,
        "bse": fit.bse,
        "pvalues": fit.pvalues,
        "conf_int": dict(zip(fit.params.index, fit.conf_int().to_numpy(), strict=True)),
        "cov_type": fit.cov_type,
        "scale": getattr(fit, "scale", None),
        "risk": fit.risk,
        "lambda": fit.lambda_,
        "n_eff": fit.n_eff,
        "n_kish": fit.n_kish,
        "outliers": flags.index[flags].to_numpy(),
        "stable": None if stability.largest is None else stability.stable,
        "compared_eps_bar": stability.largest,
        "converged": fit.converged,
        "warnings": args.warnings,
    }
    if args.model == "pca":
        record["loadings"] = {name: fit.loadings[name] for name in fit.loadings}
    return plain(record)


def plain(value: Any) -> Any:
    """Return a value as JSON knows it, in place of numpy's and pandas' own.

    Parameters
    ----------
    value : object
        A number, text or None, or a mapping, list, array or Series of such.

    Returns
    -------
    object

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.cli.as_json import plain
    >>> plain({"a": np.array([1.5, np.inf]), "b": np.bool_(True)})
    {'a': [1.5, None], 'b': True}
    """
    if isinstance(value, pd.Series):
        value = dict(zip(value.index.map(str), value, strict=True))
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
