"""Pictures of fits to rows in partitions: they draw a sample, and say so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PlotT = TypeVar("PlotT", bound=Callable[..., Any])


def drawn(plot: PlotT) -> PlotT:
    """Return a picture as a method of results; of those with rows in partitions, of a sample."""

    @wraps(plot)
    def method(results: Any, *args: Any, **kwargs: Any) -> Figure:
        seen = results.seen_rows
        figure: Figure = plot(seen, *args, **kwargs)
        if seen.nobs < results.nobs:
            caption = figure.get_supxlabel()
            said = f"{caption}\n{sample_text(results)}" if caption else sample_text(results)
            figure.supxlabel(said, x=0.99, ha="right", fontsize=8)
        return figure

    return method  # type: ignore[return-value]  # the same signature


def sample_text(results: Any) -> str:
    """Return what a picture of a sample says of it."""
    return f"a random sample of {results.seen_rows.nobs:,.0f} of {results.nobs:,.0f} rows"
