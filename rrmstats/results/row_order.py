"""The check that what comes with the rows has their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd


def check_order(
    name: str, values: Any, labels: pd.Index | None, dropped: Sequence[int] | None = None
) -> None:
    """Raise where a Series has the labels of the rows, but in another order.

    `labels` are those of the rows that are left; `dropped` the positions of those that are not.
    """
    if not isinstance(values, pd.Series) or labels is None:
        return
    gone = np.asarray([] if dropped is None else dropped, dtype=int)
    if len(values) != len(labels) + len(gone):
        return
    left = values.index.delete(gone)
    if not left.equals(labels) and labels.isin(values.index).all():
        raise ValueError(
            f"{name} has the labels of the data in another order; reindex it like the data"
        )
