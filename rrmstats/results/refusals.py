"""Attributes of statsmodels' results that would mislead after a robust fit."""

from __future__ import annotations


class Meaningless(AttributeError, NotImplementedError):
    """An attribute of statsmodels' results that has no meaning for a robust fit."""


class DataRemoved(AttributeError, ValueError):
    """Something needs the data, which `remove_data` dropped."""


NEEDS_DATA = "needs the data, which remove_data() dropped; fit again"


def refused(**reasons: tuple[str, ...]) -> dict[str, str]:
    """Return the reason for each refused name, from the names by reason."""
    found = {name: REASONS[reason] for reason, names in reasons.items() for name in names}
    return {**found, **HIDDEN}


REASONS = {
    "likelihood": (
        "the risk is not a likelihood of all rows; compare models with compare() or wald_test()"
    ),
    "f_test": (
        "sums of squares do not follow an F distribution under estimated weights; use compare(), "
        "which is Wald's test"
    ),
    "squares": (
        "a sum of squares counts corrupted rows like others; see scale and rsquared, and test "
        "terms with compare() or wald_test_terms() in place of anova_lm"
    ),
    "known_weights": (
        "it takes the weights as known; bse is robust already, see fit(cov_type=...)"
    ),
    "empirical": "empirical likelihood counts corrupted rows like others; use conf_int()",
    "elsewhere": "see condition_number, wald_test, trace and the arguments of fit",
    "pseudo": (
        "llf is a pseudo-likelihood, without the distribution of a likelihood ratio; use "
        "compare() and wald_test()"
    ),
    "optimizer": "the fit is not statsmodels'; see trace, converged and n_iter",
    "variables": "variables have no response; use wald_test() for tests of the parameters",
    "no_influence": "see weight_table() for the weights and distances of the rows",
}
#: Attributes that statsmodels' code reads itself, so that only users are refused them.
HIDDEN = {
    "normalized_cov_params": "it takes the weights as known and the scale as one; use cov_params()"
}
