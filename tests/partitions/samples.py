"""Samples for tests of data in partitions."""

import numpy as np
import pandas as pd


def regression_frame(n=2_000, share=0.15, seed=0):
    """Return rows of a regression with a category, some of them corrupted and some missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x1": rng.standard_normal(n),
            "x2": rng.standard_normal(n),
            "g": rng.choice(list("abc"), n),
            "w": rng.integers(1, 4, n).astype(float),
        }
    )
    frame["y"] = 1 + 2 * frame.x1 - frame.x2 + (frame.g == "b") + rng.standard_normal(n)
    frame.loc[rng.random(n) < share, "y"] -= 15
    frame["label"] = (rng.random(n) < 1 / (1 + np.exp(-frame.x1))).astype(float)
    frame["count"] = rng.poisson(np.exp(1 + 0.3 * frame.x1)).astype(float)
    frame.loc[rng.random(n) < 0.05, "count"] = 60
    frame.loc[[5, 700], "x1"] = np.nan
    frame.index = np.arange(100, 100 + n)
    return frame
