"""Models made of a formula, a file and options."""

from __future__ import annotations

import argparse
import shlex
import warnings
from typing import Any

import pandas as pd
import patsy
import statsmodels.formula
from statsmodels.genmod import families

from rrmstats import formula as constructors
from rrmstats.cli.errors import CommandError, UsageError, short
from rrmstats.cli.formulas import (
    bare_columns,
    check_column,
    check_constant,
    check_names,
    check_sides,
    number_columns,
    open_environment,
    parsed_formula,
    used_columns,
)
from rrmstats.cli.notices import note_left_out, warn_of_many_groups, warn_of_words
from rrmstats.cli.safe_formulas import check_safe, safe_environment

MODELS = ("ols", "logit", "glm", "poisson", "pca", "cov")
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
    "exposure": ("glm", "poisson"),
    "n_components": ("pca",),
    "level": ("logit",),
}


def check_options(args: argparse.Namespace) -> None:
    """Raise where an option is given that the model does not take."""
    for option, models in OPTIONS.items():
        if getattr(args, option) is not None and args.model not in models:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} is for --model {' and '.join(models)}, not {args.model}")


def asked_steps(args: argparse.Namespace) -> int:
    """Return the number of steps, also where the former --efficiency asks for them."""
    if args.efficiency is None:
        return int(args.steps)
    warnings.warn(
        "--efficiency will be removed: two steps are the default, without an efficiency to "
        f"choose. Use --steps 2 in place of --efficiency {args.efficiency:g}",
        UserWarning,
        stacklevel=2,
    )
    return 2


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
    desc = checked_formula(args, frame)
    used = [*_given_columns(args), *used_columns(desc, frame.columns)]
    check_rows(frame, used)
    warned = warn_of_words(frame, number_columns(desc, frame.columns))
    check_response(args, desc, frame)
    predictors = bare_columns(desc.rhs_termlist, frame.columns)
    warn_of_many_groups(frame, [name for name in predictors if name not in warned])
    options = model_options(args, desc, frame)
    env = safe_environment(frame) if args.safe else open_environment()
    try:
        model = getattr(constructors, args.model)(
            args.formula, frame, eps_bar, eval_env=env, **options
        )
    except patsy.PatsyError as error:
        raise CommandError(f"cannot evaluate {short(args.formula)}: {error.message}") from None
    except SystemExit:
        raise CommandError(f"cannot evaluate {short(args.formula)}: it ends Python") from None
    note_left_out(frame, used, len(model.endog))
    return model


def checked_formula(args: argparse.Namespace, frame: pd.DataFrame) -> patsy.ModelDesc:
    """Return the terms of the formula, after it has been checked against the data."""
    engines = getattr(statsmodels.formula, "options", None)  # statsmodels 0.15 has two
    if engines is not None:
        engines.formula_engine = "patsy"
    if args.safe:
        check_safe(args.formula, frame)
    desc = parsed_formula(args.formula)
    check_sides(desc, args.formula, args.model not in ONE_SIDED)
    check_constant(desc)
    check_names(desc, args.formula, frame.columns)
    for column in _given_columns(args):
        check_column(column, frame.columns)
    return desc


def _given_columns(args: argparse.Namespace) -> list[str]:
    return [column for column in (args.exposure, args.groups) if column is not None]


def check_response(args: argparse.Namespace, desc: patsy.ModelDesc, frame: pd.DataFrame) -> None:
    """Raise where the response has words or several columns, and the model cannot take them."""
    if args.model in (*ONE_SIDED, "logit"):
        return
    terms = [term.name() for term in desc.lhs_termlist]
    if len(terms) > 1 and args.family != "binomial":
        raise UsageError(
            f"the response of --model {args.model} is one column, got {', '.join(terms)}; write "
            "I(a + b) for the sum of a and b"
        )
    columns = bare_columns(desc.lhs_termlist, frame.columns)
    if not columns:
        return
    values = frame[columns[0]]
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        words = values.dropna().astype(str).unique()
        advice = f"; use --model logit --level {shlex.quote(words[0])}" if len(words) == 2 else ""
        raise CommandError(
            f"the response {short(columns[0])} must be numeric, but has values such as "
            f"{short(words[0])}{advice}"
        )


def check_rows(frame: pd.DataFrame, columns: list[str]) -> None:
    """Raise where each row lacks a value of what the model uses."""
    used = list(dict.fromkeys(columns))
    if frame[used].isna().any(axis=1).all():
        raise CommandError(
            f"no rows are left: each of the {len(frame)} rows has a missing value in "
            f"{', '.join(used)}"
        )


def model_options(
    args: argparse.Namespace, desc: patsy.ModelDesc, frame: pd.DataFrame
) -> dict[str, Any]:
    """Return the keywords of the model that the options stand for."""
    options: dict[str, Any] = {}
    if args.model == "glm":
        options["family"] = family_of(args.family or "gaussian", args.link)
    if args.exposure is not None:
        options["exposure"] = exposure_of(args.exposure, frame, options.get("family"))
    if args.groups is not None:
        options["groups"] = args.groups
    if args.n_components is not None:
        options["n_components"] = args.n_components
    if args.level is not None:
        response = frame[bare_columns(desc.lhs_termlist, frame.columns)]
        options["level"] = level_of(args.level, response)
    return options


def exposure_of(column: str, frame: pd.DataFrame, family: families.Family | None) -> pd.Series:
    """Return the exposure, or raise where it is no number or the link of a family is not log."""
    if family is not None and not isinstance(family.link, families.links.Log):
        raise UsageError("--exposure needs the log link; add --link log")
    values = frame[column]
    if not pd.api.types.is_numeric_dtype(values):
        raise CommandError(
            f"the exposure {short(column)} must be numeric, but has values such as "
            f"{short(str(values.dropna().iloc[0]))}"
        )
    return values


def level_of(level: str, response: pd.DataFrame) -> str | float:
    """Return the value of the response that counts as 1, a number where it has numbers."""
    if response.shape[1] == 1 and pd.api.types.is_numeric_dtype(response.iloc[:, 0]):
        try:
            return float(level)
        except ValueError:
            return level
    return level


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
