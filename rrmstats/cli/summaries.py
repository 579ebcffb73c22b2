"""The summary of a fit as text, LaTeX, HTML and JSON, and what it tells of each row."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import pandas as pd

import rrmstats
from rrmstats.report.page import document, numbered_notes, section, summary_texts

# Characters that LaTeX would obey, as it prints them.
SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
    }
)

# Of the JSON, in their order; most are attributes of the fit.
KEYS = (
    *("rrmstats", "model", "formula", "nobs", "n_dropped", "eps_bar", "eps_bar_chosen"),
    *("eps_hat", "eps_hat_se", "steps", "explanation", "explanations", "params", "bse", "pvalues"),
    *("conf_int", "cov_type", "scale", "risk", "lambda", "n_eff", "n_kish", "outliers"),
    *("prob_bad", "stable", "compared_eps_bar", "converged", "warnings"),
)


def text_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return statsmodels' tables and the notes as text."""
    return f"{fit.summary().as_text()}\n"


def html_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return the tables and the notes as an HTML document."""
    summary = fit.summary()
    shown = section(args.formula, *summary_texts(fit, summary))
    return document(summary.tables[0].title, [shown])


def latex_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return statsmodels' tables and the notes as a fragment of LaTeX, for ``booktabs``."""
    blocks = [table.as_latex_tabular() for table in fit.summary().tables]
    blocks += [f"\\noindent {note.translate(SPECIAL)}" for note in numbered_notes(fit)]
    return "\n\n".join(blocks) + "\n"


def json_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return the numbers of a fit as one JSON object; the page on the command explains its keys.

    Parameters
    ----------
    fit : results of any model
    args : argparse.Namespace
        With `formula`, `model`, the number of `rows`, and the `warnings` so far.

    Returns
    -------
    str
    """
    stability, flags, explanations = fit.stability, fit.outliers(), fit.explanations
    prob_bad = getattr(fit, "prob_bad", None)
    told = {
        "rrmstats": rrmstats.__version__,
        "model": args.model,
        "formula": args.formula,
        "nobs": int(fit.nobs),
        "n_dropped": args.rows - int(fit.nobs),
        "eps_bar_chosen": fit.choice is not None,
        "explanations": None if explanations is None else explanations.to_dict("records"),
        "conf_int": dict(zip(fit.params.index, fit.conf_int().to_numpy(), strict=True)),
        "lambda": fit.lambda_,
        "outliers": flags.index[flags].to_numpy(),
        "prob_bad": None if prob_bad is None else prob_bad.reindex(range(args.rows)).to_numpy(),
        "stable": None if stability.largest is None else stability.stable,
        "compared_eps_bar": stability.largest,
        "warnings": args.warnings,
    }
    record = {key: told[key] if key in told else getattr(fit, key, None) for key in KEYS}
    if args.model == "pca":
        record["loadings"] = {name: fit.loadings[name] for name in fit.loadings}
    return json.dumps(plain(record), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


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
    >>> from rrmstats.cli.summaries import plain
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


#: What ``--format`` names.
SUMMARIES = {
    "text": text_summary,
    "latex": latex_summary,
    "html": html_summary,
    "json": json_summary,
}


def beside_rows(frame: pd.DataFrame, fit: Any) -> pd.DataFrame:
    """Return the data with the weight, the flag and the residual of each row beside it.

    Parameters
    ----------
    frame : DataFrame
        All rows, in their order.
    fit : results of any model
        Rows that were dropped for missing values get empty cells.

    Returns
    -------
    DataFrame
        Columns weight, prob_bad (in two steps), outlier, residual (of regressions, in units of
        the response) and distance (standardized). Where the data have a column of one of these
        names, all of them begin with ``rrm_``.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.cli.summaries import beside_rows
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> fit = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> beside_rows(stars, fit).columns.tolist()
    ['log_te', 'log_light', 'weight', 'prob_bad', 'outlier', 'residual', 'distance']
    """
    columns = pd.DataFrame({"weight": fit.weights})
    if hasattr(fit, "prob_bad"):
        columns["prob_bad"] = fit.prob_bad
    columns["outlier"] = fit.outliers().astype("boolean")
    residuals = getattr(fit, "resid_response", getattr(fit, "resid", None))
    if residuals is not None:
        columns["residual"] = np.asarray(residuals)
    columns["distance"] = fit.weight_table(None)["distance"]
    while not set(columns).isdisjoint(frame.columns):
        columns = columns.add_prefix("rrm_")
    return frame.join(columns)
