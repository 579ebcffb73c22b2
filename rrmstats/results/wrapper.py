"""What users see of results: labels of the data, and refusals of what would mislead."""

from __future__ import annotations

from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

from statsmodels.base.model import LikelihoodResultsWrapper
from statsmodels.base.wrapper import populate_wrapper

if TYPE_CHECKING:
    from rrmstats.results.base import RRMResults


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
        "a sum of squares counts bad rows like others; see scale and rsquared, and test "
        "terms with compare() or wald_test_terms() in place of anova_lm"
    ),
    "known_weights": (
        "it takes the weights as known; bse is robust already, see fit(cov_type=...)"
    ),
    "empirical": "empirical likelihood counts bad rows like others; use conf_int()",
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


class RRMResultsWrapper(LikelihoodResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]] = {**LikelihoodResultsWrapper._wrap_attrs}

    def __repr__(self) -> str:
        return repr(self._results)

    def save(self, fname: Any, remove_data: bool = False) -> None:
        """Save a pickle of the results, as statsmodels does; rows in partitions cannot be."""
        self._results.model._refuse_partitions(
            "save", "write res.params, res.cov_params() and res.weights.to_frame().to_parquet()"
        )
        super().save(fname, remove_data)

    def __getattribute__(self, name: str) -> Any:
        if name in HIDDEN:
            raise Meaningless(f"{name} has no meaning here: {HIDDEN[name]}")
        if not name.startswith("_") and self._results._without_data:
            return self._read_without_data(name)
        found = super().__getattribute__(name)
        held = None if name.startswith("_") else self._results.model._held
        if held is None:
            return found
        handed = _handing if isinstance(found, MethodType) else type(held).in_partitions
        return handed(held, found)

    def _read_without_data(self, name: str) -> Any:
        """Return what needs no data; raise where something does."""
        try:
            found = super().__getattribute__(name)
        except Meaningless:
            raise
        except Exception:
            if name in self._results._data_attr or hasattr(type(self._results), name):
                raise DataRemoved(f"{name} {NEEDS_DATA}") from None
            raise
        if found is None and name in self._results._data_attr:
            raise DataRemoved(f"{name} {NEEDS_DATA}")
        return _guarded(found) if isinstance(found, MethodType) else found


def _handing(held: Any, method: Any) -> Any:
    """Return a method whose values of all rows are Dask collections, as the data were."""

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return held.in_partitions(method(*args, **kwargs))

    return call


def _guarded(method: Any) -> Any:
    """Return a method whose errors name the data that it misses."""

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except NotImplementedError:
            raise
        except Exception as error:
            if "remove_data" in str(error):
                raise
            raise DataRemoved(f"{method.__name__}() {NEEDS_DATA}") from error

    return call


def wrapper_of(kind: type[RRMResults]) -> type[RRMResultsWrapper]:
    """Return the wrapper class of a class of results.

    The attributes that it labels are those that the class and its bases name in `_row_attrs`
    and `_column_attrs`.
    """
    labels = {
        **dict.fromkeys(kind._row_attrs, "rows"),
        **dict.fromkeys(kind._column_attrs, "columns"),
    }
    members = {
        "__doc__": RRMResultsWrapper.__doc__,
        "__module__": kind.__module__,  # pickles look the class up there
        "_wrap_attrs": {**RRMResultsWrapper._wrap_attrs, **labels},
    }
    wrapper = type(f"{kind.__name__}Wrapper", (RRMResultsWrapper,), members)
    populate_wrapper(wrapper, kind)
    return wrapper
