import numpy as np
import pytest

import rrmstats
from rrmstats import plotting
from rrmstats.plotting import plot_trace
from rrmstats.plotting.iterations import STEPS, value_limits

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
    paper = results.model.fit(n_starts=0, accelerate=False, steps=1)
    assert named(plotting.plot_trace(paper).axes[0], "Algorithm 1").get_marker() == "D"


def test_trace_without_robustness_has_no_lambda():
    results = rrmstats.RRMCov(np.random.default_rng(0).standard_normal((40, 2)), 0.0).fit(steps=1)
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
    res = MODELS[name].fit()
    assert set(res.trace["step"]) <= set(STEPS)
    line, *marked = [line for line in plot_trace(res).axes[0].lines if line.get_linestyle() != ":"]
    assert sum(len(part.get_xdata()) for part in marked) == len(line.get_xdata())


def second_step_marks(ax):
    """Return where dotted vertical lines are, and what is written beside them."""
    places = [line.get_xdata()[0] for line in ax.lines if list(line.get_ydata()) == [0, 1]]
    return places, [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", ["ols", "cov", "pca"])
def test_the_second_step_is_marked_in_both_panels(name):
    results = MODELS[name].fit()
    begin = int(np.flatnonzero(results.trace["step"] == "second step")[0])
    assert begin == len(results.first_step.trace)
    upper, lower = plot_trace(results).axes
    assert second_step_marks(upper) == ([begin - 0.5], ["second step begins"])
    assert second_step_marks(lower) == ([begin - 0.5], [])
    for ax in plot_trace(results.first_step).axes:
        assert second_step_marks(ax) == ([], [])


def test_a_second_step_that_kept_the_first_is_marked_at_the_end(monkeypatch):
    # Where half of the rows are in a plane, its zero variance ends the fit with the first step,
    # unless another bound is better, which fits to many rows do not ask.
    monkeypatch.setattr("rrmstats.core.steps.MOST_ROWS", 10)
    x = np.random.default_rng(5).standard_normal((40, 3))
    x[:30, 2] = 0.0
    results = rrmstats.RRMCov(x, 0.4).fit(stability=False)
    assert results.steps == 2
    np.testing.assert_array_equal(results.params, results.first_step.params)
    axes = plot_trace(results).axes
    for ax in axes:
        places, _ = second_step_marks(ax)
        assert places == [len(results.trace) - 0.5]
        assert ax.get_xlim()[0] < places[0] < ax.get_xlim()[1]
    assert second_step_marks(axes[0])[1] == ["the second step kept the first"]


def test_a_fit_without_iterations_has_whole_numbers_and_says_why_lambda_is_missing():
    fig = plot_trace(rrmstats.ols("y ~ x1", HBK, 0.0).fit(steps=1))
    fig.draw_without_rendering()
    lower = fig.axes[1]
    low, high = lower.get_xlim()
    assert [tick for tick in lower.get_xticks() if low <= tick <= high] == [0]
    assert [text.get_text() for text in lower.texts] == ["infinite: all rows have equal weights"]


def test_small_changes_are_not_enlarged_until_ticks_look_equal():
    low, high = value_limits(np.array([2.0, np.nan, 2.0 + 1e-9]))
    assert low < 2 < high and 0.001 < high - low < 0.01
    assert value_limits(np.array([1.0, 3.0])) == pytest.approx((0.7, 3.3))
    low, high = value_limits(np.zeros(2))
    assert low < 0 < high
