"""Families and links of statsmodels as the losses know them, and checks of their data."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from statsmodels.genmod import families
from statsmodels.genmod.families import links

from rrmstats.core.entropy import Array
from rrmstats.laws.families import (
    Binomial,
    Counts,
    DispersedPoisson,
    Family,
    Gamma,
    Gaussian,
    InverseGaussian,
    Link,
    MeanFunction,
    NegativeBinomial,
    Poisson,
    Tweedie,
)
from rrmstats.models.checks import warn


def _tweedie(family: Any) -> Family:
    power = float(family.var_power)
    whole: dict[float, Family] = {
        0.0: Gaussian(),
        1.0: DispersedPoisson(),
        2.0: Gamma(),
        3.0: InverseGaussian(),
    }
    if power in whole:
        return whole[power]
    if not 1 < power < 2:
        raise ValueError(
            f"Tweedie needs var_power from 1 to 2, or 0 or 3, got {power:g}: no other has a "
            "distribution that expectations can be taken over"
        )
    return Tweedie(power)


def _negative_binomial(family: Any) -> Family:
    alpha = float(family.alpha)
    if not alpha > 0:
        raise ValueError(f"NegativeBinomial needs alpha > 0, got {alpha:g}; 0 is Poisson")
    return NegativeBinomial(alpha)


#: The families offered, by those of statsmodels.
FAMILIES: dict[type, Callable[[Any], Family]] = {
    families.Gaussian: lambda _: Gaussian(),
    families.Binomial: lambda _: Binomial(),
    families.Poisson: lambda _: Poisson(),
    families.Gamma: lambda _: Gamma(),
    families.InverseGaussian: lambda _: InverseGaussian(),
    families.NegativeBinomial: _negative_binomial,
    families.Tweedie: _tweedie,
}


def check_family(family: Any) -> Any:
    """Return a copy of a family of statsmodels, Gaussian where none is given.

    A copy, because statsmodels keeps the numbers of trials on it.
    """
    if family is None:
        return families.Gaussian()
    offered = ", ".join(kind.__name__ for kind in FAMILIES)
    if isinstance(family, type):
        raise TypeError(
            f"family must be an instance, such as sm.families.Poisson(), got the class "
            f"{family.__name__}"
        )
    if type(family) not in FAMILIES:
        raise TypeError(f"family must be one of statsmodels' {offered}, got {family!r}")
    return copy.copy(family)


def loss_family(family: Any) -> Family:
    """Return the deviance and distribution of a family of statsmodels."""
    return FAMILIES[type(family)](family)


def mean_function(link: Any, family: Family, endog: Array) -> MeanFunction:
    """Return the inverse of a link of statsmodels within the domain of a family."""
    functions = Link(link.__call__, link.inverse, link.inverse_deriv, link.inverse_deriv2)
    if isinstance(link, links.Power) and link.power == 1:
        functions = Link.identity()
        if not family.positive:
            return MeanFunction(functions)
    elif isinstance(link, links.Log):
        functions = Link.log()
    elif type(link) is links.Logit:  # other links of probabilities inherit from it
        functions = Link.logit()
    return MeanFunction.between(functions, *family.mean_bounds(endog))


def check_responses(name: str, family: Family, endog: Array) -> None:
    """Raise where a deviance is not defined for some responses."""
    if not family.positive:
        return
    if isinstance(family, Binomial):
        _check_shares(endog)
        return
    least = endog.min()
    if least > 0 or (family.zeros and least == 0):
        if not endog.max() > 0:
            raise ValueError(f"endog is all zeros; {name} needs some positive responses")
        return
    bad = endog < 0 if family.zeros else endog <= 0
    what, advice = (
        ("must not be negative", "fix or drop these rows")
        if family.zeros
        else (
            "must be positive",
            "fix or drop these rows, or use a Tweedie family, which has zeros",
        )
    )
    raise ValueError(
        f"endog {what} for the {name} family, got {int(bad.sum())} such rows, the smallest "
        f"{least:g}; {advice}"
    )


def check_columns(endog: Any) -> None:
    """Raise where counts of successes and failures are not counts."""
    if np.ndim(endog) < 2 or np.shape(endog)[1] == 1:
        return
    names = [str(name) for name in getattr(endog, "columns", ())]
    if all(name.endswith("]") for name in names) and len(names) == 2:
        label = names[0].partition("[")[0]
        raise ValueError(
            f"{label} is not numeric: the formula makes the columns {' and '.join(names)}, and "
            f"the first would be the successes; give 0 and 1, such as I(({label} == ...) * 1)"
        )
    values = np.asarray(endog, dtype=float)
    if values.shape[1] != 2:
        raise ValueError(
            f"endog must have one column, or two with successes and failures, got "
            f"{values.shape[1]}"
        )
    bad = (values < 0).any(axis=1)
    if bad.any():
        raise ValueError(
            f"endog has negative counts in {int(bad.sum())} rows, such as {values[bad][0]}; the "
            "columns are successes and failures, trials less successes, and no row can have more "
            "successes than trials"
        )
    empty = values.sum(axis=1) == 0
    if empty.any():
        raise ValueError(
            f"endog has {int(empty.sum())} rows without successes and failures; drop them"
        )


def warn_of_fractions(name: str, family: Family, endog: Array, sizes: Array) -> None:
    """Warn where responses are not counts, whose distribution corrects the parameters."""
    if not isinstance(family, Counts) or family.dispersed:
        return
    counts = endog * sizes
    broken = np.abs(counts - np.round(counts)) > 1e-6 * np.maximum(counts, 1.0)  # by rounding
    if not broken.any():
        return
    advice = (
        "give shares with their numbers of trials as var_weights="
        if isinstance(family, Binomial)
        else "give counts with exposure= in place of rates, or use Tweedie(var_power=1), which is "
        "quasi-Poisson and has a dispersion"
    )
    warn(
        f"{int(broken.sum())} responses are not whole numbers, such as {counts[broken][0]:g}; the "
        f"correction and the flags take them for {name} counts, and may be off; {advice}"
    )


def check_link(link: Any, family: Family, endog: Array, sizes: Array) -> None:
    """Raise where a link has no value at means near the responses."""
    with np.errstate(all="ignore"):
        forward = mean_function(link, family, endog).link.forward
        bad = ~np.isfinite(forward(family.near_means(endog, sizes)))
    if bad.any():
        raise ValueError(
            f"the {type(link).__name__} link is not defined for means near {int(bad.sum())} of "
            f"the responses, such as {endog[bad][0]:g}; use another link"
        )


def _check_shares(endog: Array) -> None:
    """Raise where binomial responses are not shares of successes."""
    bad = (endog < 0) | (endog > 1)
    if bad.any():
        raise ValueError(
            f"endog must be 0 and 1 or shares in [0, 1] for the Binomial family, got "
            f"{int(bad.sum())} rows outside, from {endog.min():g} to {endog.max():g}; give counts "
            "as two columns, successes and failures"
        )
    if endog.min() == endog.max() and endog.min() in (0.0, 1.0):
        raise ValueError(
            f"endog has one outcome only, all {endog.min():g}: a binomial model needs both"
        )
