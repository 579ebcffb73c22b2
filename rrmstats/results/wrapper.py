"""Wrappers that attach the labels of the data to results, generated from what results name."""

from __future__ import annotations

from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

from statsmodels.base.model import LikelihoodResultsWrapper
from statsmodels.base.wrapper import populate_wrapper

from rrmstats.core.block_array import blocked
from rrmstats.results.refusals import HIDDEN, NEEDS_DATA, DataRemoved, Meaningless

if TYPE_CHECKING:
    from rrmstats.results.base import RRMResults


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
        if blocked(found):
            return self._results.model.data.row_labels.labeled(found)
        return found

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
