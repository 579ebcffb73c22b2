"""Models made of a formula, a file and options."""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from contextlib import suppress
from typing import Any

import pandas as pd
import patsy
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from statsmodels.discrete.discrete_model import NegativeBinomial
from statsmodels.genmod import families

import rrmstats
from rrmstats import formula as constructors
from rrmstats.cli.errors import CommandError, UsageError, short
from rrmstats.cli.formulas import Formula, check_column, is_name, reason_of

MODELS = ("ols", "logit", "glm", "poisson", "negative-binomial", "pca", "cov")
ONE_SIDED = ("pca", "cov")
FAMILIES = {
    "gaussian": families.Gaussian,
    "binomial": families.Binomial,
    "poisson": families.Poisson,
    "gamma": families.Gamma,
    "inverse-gaussian": families.InverseGaussian,
}
LINKS = {
    "identity": families.links.Identity,
    "log": families.links.Log,
    "logit": families.links.Logit,
    "probit": families.links.Probit,
    "cloglog": families.links.CLogLog,
    "inverse": families.links.InversePower,
    "sqrt": families.links.Sqrt,
}
# Options that only some models take.
OPTIONS = {
    "family": ("glm",),
    "link": ("glm",),
    "exposure": ("glm", "poisson", "negative-binomial"),
    "n_components": ("pca",),
    "level": ("logit",),
}
# What kinds of standard errors need besides.
COV_OPTIONS = {"cluster": "cluster", "HAC": "maxlags"}


def check_options(args: argparse.Namespace) -> None:
    """Raise where an option is given that the model or the errors do not take."""
    for option, models in OPTIONS.items():
        if getattr(args, option) is not None and args.model not in models:
            name = option.replace("_", "-")
            known = " and ".join(filter(None, (", ".join(models[:-1]), models[-1])))
            raise UsageError(f"--{name} is for --model {known}, not {args.model}")
    for kind, option in COV_OPTIONS.items():
        if (args.cov_type == kind) != (getattr(args, option) is not None):
            raise UsageError(f"--cov-type {kind} and --{option} go together; give both or none")


def make_model(args: argparse.Namespace, frame: pd.DataFrame, eps_bar: float | str) -> Any:
    """Return the model that the options ask for.

    Parameters
    ----------
    args : argparse.Namespace
        Formula and options of the model.
    frame : DataFrame
        The data.
    eps_bar : float or "auto"

    Returns
    -------
    RRMModel
    """
    formula = Formula(args.formula, frame, args.model not in ONE_SIDED, args.safe)
    given = [column for column in (args.exposure, args.groups) if column is not None]
    for column in given:
        check_column(column, frame.columns)
    used = list(dict.fromkeys([*given, *formula.columns()]))
    check_rows(frame, used)
    warn_of_groups(frame, formula)
    check_response(args, formula, frame)
    options = model_options(args, formula, frame)
    make = getattr(constructors, args.model, None) or negative_binomial
    data = frame.dropna(subset=used) if make is negative_binomial else frame
    try:
        model = make(args.formula, data, eps_bar, eval_env=formula.environment, **options)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("patsy", "formulaic"):
            raise
        reason = reason_of(error)
        raise CommandError(f"cannot evaluate {short(args.formula)}: {reason}") from None
    except SystemExit:
        raise CommandError(f"cannot evaluate {short(args.formula)}: it ends Python") from None
    note_left_out(frame[used], len(model.endog))
    return model


def negative_binomial(
    formula: str,
    frame: pd.DataFrame,
    eps_bar: float | str,
    eval_env: patsy.EvalEnvironment,
    groups: str | None = None,
    exposure: pd.Series | None = None,
) -> Any:
    """Return a model of overdispersed counts; no row that it uses may lack a value."""
    exposed = {} if exposure is None else {"exposure": exposure.loc[frame.index]}
    counts = NegativeBinomial.from_formula(formula, frame, eval_env=eval_env, **exposed)
    labels = None if groups is None else frame.loc[counts.data.row_labels, groups]
    return rrmstats.robustify(counts, eps_bar, groups=labels)


def check_rows(frame: pd.DataFrame, used: list[str]) -> None:
    """Raise where each row lacks a value of what the model uses."""
    if frame[used].isna().any(axis=1).all():
        raise CommandError(
            f"no rows are left: each of the {len(frame)} rows has a missing value in "
            f"{', '.join(used)}"
        )


def note_left_out(used: pd.DataFrame, nobs: int) -> None:
    """Print how many of the rows that the model uses are not among its `nobs`, and why."""
    left_out = len(used) - nobs
    if not left_out:
        return
    missing = int(used.isna().any(axis=1).sum())
    reasons = ["missing values"] * (missing > 0)
    reasons += ["values that a function of the formula cannot take"] * (missing < left_out)
    rows = f"{left_out} of {len(used)} rows were left out"
    print(f"rrmstats: note: {rows}: {' or '.join(reasons)}", file=sys.stderr)


def warn_of_groups(frame: pd.DataFrame, formula: Formula) -> None:
    """Warn of each column that is taken for groups, but looks like numbers or dates.

    Parameters
    ----------
    frame : DataFrame
    formula : Formula
        Columns in ``C()`` are meant to be groups.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from rrmstats.cli.formulas import Formula
    >>> from rrmstats.cli.model import warn_of_groups
    >>> frame = pd.DataFrame({"y": range(6), "x": ["1", "2", "3", "4", "5", "none"]})
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_of_groups(frame, Formula("y ~ x", frame))
    >>> print(seen[0].message)  # doctest: +ELLIPSIS
    'x' is taken for groups, not numbers: 'none' in row 5, counted from 0, is no number; ...
    """
    predictors = formula.bare(formula.predictors)
    for column in formula.columns(as_numbers=True):
        if is_numeric_dtype(frame[column]):
            continue
        name = column if is_name(column) else f'Q("{column}")'
        reason = _no_groups(frame[column], f"write C({name}) for groups", column in predictors)
        if reason is not None:
            text = f"{short(column)} is taken for groups, not numbers: {reason}"
            warnings.warn(text, UserWarning, stacklevel=2)


def _no_groups(column: pd.Series, otherwise: str, predictor: bool) -> str | None:
    """Return why the values of a column are hardly groups, and what to do."""
    values = column.dropna().astype(str)
    words = values[_not_numbers(values)]
    if len(words):
        first = f"{short(words.iloc[0])} in row {words.index[0]}, counted from 0, is no number"
        if not _not_numbers(values.str.replace(",", ".")).any():
            return f"{first}; give --decimal , if its comma begins decimals"
        if len(words) <= len(values) / 5:  # the words look like mistakes
            return f"{first}; fix it, or {otherwise}"
    if predictor and values.nunique() > len(column) / 2:
        found = f"it has {values.nunique()} different values in {len(column)} rows"
        return f"{found}; use numbers, or {otherwise}"
    return None


def _not_numbers(values: pd.Series) -> pd.Series:
    return pd.to_numeric(values, errors="coerce").isna()


def check_response(args: argparse.Namespace, formula: Formula, frame: pd.DataFrame) -> None:
    """Raise where the response has words or several columns, and the model cannot take them."""
    terms = [":".join(term) for term in formula.response]
    if len(terms) > 1 and args.family != "binomial":
        advice = "write I(a + b) for the sum of a and b"
        if args.model == "logit":
            advice = "for counts of successes and failures use --model glm --family binomial"
        raise UsageError(
            f"the response of --model {args.model} is one column, got {', '.join(terms)}; {advice}"
        )
    columns = formula.bare(formula.response)
    if args.model == "logit" or not columns:
        return
    values = frame[columns[0]]
    if not is_numeric_dtype(values) or is_bool_dtype(values):
        words = values.dropna().astype(str).unique()
        advice = f"; use --model logit --level {shlex.quote(words[0])}" if len(words) == 2 else ""
        raise CommandError(_not_numeric("response", columns[0], words[0]) + advice)


def _not_numeric(role: str, column: str, value: object) -> str:
    values = short(str(value))
    return f"the {role} {short(column)} must be numeric, but has values such as {values}"


def model_options(
    args: argparse.Namespace, formula: Formula, frame: pd.DataFrame
) -> dict[str, Any]:
    """Return the keywords of the model that the options stand for."""
    options = {"groups": args.groups, "n_components": args.n_components, "level": args.level}
    options = {name: value for name, value in options.items() if value is not None}
    if args.model == "glm":
        options["family"] = family_of(args.family or "gaussian", args.link)
    if args.exposure is not None:
        options["exposure"] = exposure_of(frame[args.exposure], options.get("family"))
    response = formula.bare(formula.response)
    if args.level is not None and len(response) == 1 and is_numeric_dtype(frame[response[0]]):
        with suppress(ValueError):  # the model says that there is no such level
            options["level"] = float(args.level)
    return options


def exposure_of(values: pd.Series, family: families.Family | None) -> pd.Series:
    """Return the exposure, or raise where it is no number or the link of a family is not log."""
    if family is not None and not isinstance(family.link, families.links.Log):
        raise UsageError("--exposure needs the log link; add --link log")
    if not is_numeric_dtype(values):
        raise CommandError(_not_numeric("exposure", str(values.name), values.dropna().iloc[0]))
    return values


def family_of(name: str, link: str | None) -> families.Family:
    """Return a family with its own link, or with another that it takes."""
    family = FAMILIES[name]
    if link is None:
        return family()
    known = [each for each, cls in LINKS.items() if issubclass(cls, tuple(family.links))]
    if link not in known:
        raise UsageError(
            f"--family {name} does not take --link {link}; choose from {', '.join(known)}"
        )
    return family(LINKS[link]())
