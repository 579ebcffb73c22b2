"""Labels of two classes, as zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array

BINOMIAL = "use rrmstats.glm(..., family=sm.families.Binomial())"


def as_labels(endog: Any, level: Any) -> Any:
    """Return labels as zeros and ones, keeping missing values and the index."""
    check_no_counts(endog)
    if isinstance(endog, pd.DataFrame) and (endog.shape[1] > 1 or _is_dummy(endog, level)):
        return _dummy_column(endog, level)
    if isinstance(endog, pd.DataFrame):
        endog = endog.iloc[:, 0]
    series = endog if isinstance(endog, pd.Series) else pd.Series(np.asarray(endog).squeeze())
    if series.empty:
        raise ValueError("endog is empty: no rows, or none without missing values")
    if pd.api.types.is_numeric_dtype(series.dtype) and level is None:
        values = series.astype(float)
        check_binary(values.dropna().to_numpy())
    else:
        levels = pd.unique(series.dropna()).tolist()
        if len(levels) > 2:
            raise ValueError(f"endog must have two levels, got {len(levels)}: {levels[:5]}")
        _check_level(level, levels)
        values = (series == level).astype(float).where(series.notna())
    return values if isinstance(endog, pd.Series) else values.to_numpy()


def check_no_counts(endog: Any) -> None:
    """Raise where a response has two columns of counts, not dummies of the levels of a label."""
    names = [str(name) for name in getattr(endog, "columns", ())]
    if np.ndim(endog) < 2 or np.shape(endog)[1] < 2 or any(name.endswith("]") for name in names):
        return
    shown = f" ({', '.join(names)})" if names else ""
    raise ValueError(
        f"endog must be one column of labels, got {np.shape(endog)[1]}{shown}; for counts of "
        f"successes and failures {BINOMIAL}"
    )


def _is_dummy(endog: pd.DataFrame, level: Any) -> bool:
    """Tell whether one column is a formula's dummy of the only level that there is."""
    return level is not None and str(endog.columns[0]).endswith("]")


def _dummy_column(endog: pd.DataFrame, level: Any) -> pd.Series:
    """Return the column of the level that counts as 1, out of a formula's dummy columns."""
    levels = [str(name).rsplit("[", 1)[-1].removesuffix("]") for name in endog.columns]
    if level is None and sorted(levels) == ["False", "True"]:
        level = "True"
    if len(levels) > 2:
        raise ValueError(f"endog must have two levels, got {len(levels)}: {levels[:5]}")
    _check_level(None if level is None else str(level), levels)
    return endog.iloc[:, levels.index(str(level))]


def _check_level(level: Any, levels: list[Any]) -> None:
    if level is None:
        raise ValueError(
            f"endog has the levels {levels}; name the one that counts as 1, for example "
            f"level={levels[-1]!r}"
        )
    if level not in levels:
        raise ValueError(f"level={level!r} is not among the levels of endog: {levels}")


def check_binary(labels: Array) -> None:
    """Raise where labels are not zeros and ones."""
    if np.isin(labels, (0.0, 1.0)).all():
        return
    found = np.unique(labels)
    if len(found) > 2 and found[0] >= 0:
        kind = "shares of successes" if found[-1] <= 1 else "counts"
        raise ValueError(f"endog must be 0 and 1, got {found[:5]}; for {kind} {BINOMIAL}")
    raise ValueError(
        f"endog must be 0 and 1, got {found[:5]}; for two other levels name the one that counts "
        "as 1 with level="
    )


def check_classes(labels: Array, freq_weights: Array | None) -> None:
    """Raise where labels are all the same."""
    counted = labels if freq_weights is None else labels[freq_weights > 0]
    if len(np.unique(counted)) == 1:
        raise ValueError(
            f"endog has one class only, all {counted[0]:g}: a logistic regression needs both"
        )
