"""A model in one line, and signatures that show what a method passes on."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

from rrmstats.models.bounds import AUTO

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def describe(model: Any) -> str:
    """Return what a model is, in one line, without computing anything."""
    formula = getattr(model, "formula", None)
    rows = model.nobs if hasattr(model, "nobs") else len(model.endog)
    parts = [] if formula is None else [str(formula)]
    parts.append(f"{rows:.0f} observations")
    if model.group_labels is not None:
        parts.append(f"{len(model.group_labels)} groups")
    parts += model._traits()
    bound = repr(AUTO) if model.eps_bar == AUTO else f"{model.eps_bar:g}"
    return f"<{type(model).__name__}: {', '.join(parts)}, eps_bar={bound}>"


def counted(number: int, thing: str) -> str:
    """Return a number with its thing, such as "1 parameter" or "2 parameters"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def same_signature(method: Callable[..., Any]) -> Callable[[MethodT], MethodT]:
    """Let `help` show the arguments of the method that another passes its own on to."""

    def shown(other: MethodT) -> MethodT:
        other.__signature__ = signature(method)  # type: ignore[attr-defined]  # what help reads
        return other

    return shown
