import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def frame():
    """Return a line with slope 1 whose last row is wrong, with labeled rows."""
    return pd.DataFrame(
        {"x": [0.0, 1, 2, 3, 4, 5, 6, 7], "y": [0.1, 0.9, 2.1, 2.9, 4.1, 4.9, 6.1, 27.0]},
        index=list("abcdefgh"),
    )
