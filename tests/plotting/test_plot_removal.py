"""Picture of how few rows decide a term."""

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import rrmstats


def test_refits_end_beyond_zero_beside_what_influence_tells():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.standard_normal(60)})
    data["y"] = 0.3 * data.x + rng.standard_normal(60)
    found = rrmstats.few_rows(smf.ols("y ~ x", data).fit(), "x")
    (ax,) = found.plot().axes
    _, told, refits = ax.lines
    assert told.get_ydata()[0] == refits.get_ydata()[0] == found.before.estimate
    assert refits.get_ydata()[list(refits.get_xdata()).index(found.n_rows)] < 0
    first = np.abs(np.diff(told.get_ydata()))
    assert (np.diff(first) <= 1e-12).all()  # the most influential rows come first
