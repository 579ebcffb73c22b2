import numpy as np
import pytest

import rrmstats
from rrmstats import plotting
from rrmstats.plotting import plot_trace
from rrmstats.plotting.iterations import STEPS

from .axes_content import named


def test_trace(fits):
    results = fits["hbk"]
    fig = plotting.plot_trace(results)
    for ax, column in zip(fig.axes, ["risk", "lambda_"], strict=True):
        x, y = ax.lines[0].get_data()
        np.testing.assert_array_equal(x, results.trace.index)
        np.testing.assert_array_equal(y, results.trace[column])
    counts = {line.get_label(): len(line.get_xdata()) for line in fig.axes[0].lines[1:]}
    assert counts == {"start": 1, "Newton step": len(results.trace) - 1}
    paper = results.model.fit(n_starts=0, accelerate=False)
    assert named(plotting.plot_trace(paper).axes[0], "Algorithm 1").get_marker() == "D"


def test_trace_without_robustness_has_no_lambda():
    results = rrmstats.RRMCov(np.random.default_rng(0).standard_normal((40, 2)), 0.0).fit()
    fig = plotting.plot_trace(results)
    fig.draw_without_rendering()
    assert np.isnan(fig.axes[1].lines[0].get_ydata()).all()


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
