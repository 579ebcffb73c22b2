"""What the functions of a formula pass on."""

from __future__ import annotations

from typing import Any

#: A DataFrame of pandas, polars or Dask, a Table of pyarrow, or a mapping of columns.
Frame = Any


def caller(eval_env: Any) -> Any:
    """Return where to look functions up, counted from the caller of a function of a formula."""
    return eval_env + 1 if isinstance(eval_env, int) and eval_env != -1 else eval_env


def only_given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None: statsmodels keeps all that it is passed."""
    return {name: value for name, value in options.items() if value is not None}
