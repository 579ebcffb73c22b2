"""The picture of the iterations has a marker for every kind of step."""

import numpy as np
import pytest

import rrmstats
from rrmstats.plotting import plot_trace
from rrmstats.plotting.iterations import STEPS

HBK = rrmstats.datasets.hbk.load_pandas().data
MODELS = {
    "ols": rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.25),
    "cov": rrmstats.cov("~ x1 + x2 + x3", HBK, 0.25),
    "pca": rrmstats.pca("~ x1 + x2 + x3", HBK, 0.25, n_components=1),
    "wide pca": rrmstats.RRMPCA(np.random.default_rng(0).standard_normal((30, 60)), 2, 0.2),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_iteration_is_marked(name):
    res = MODELS[name].fit(efficiency=0.95)
    assert set(res.trace["step"]) <= set(STEPS)
    line, *marked = plot_trace(res).axes[0].lines
    assert sum(len(part.get_xdata()) for part in marked) == len(line.get_xdata())
