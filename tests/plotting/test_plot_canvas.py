"""What pictures share: rows, names, legends and captions."""

import copy

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, datasets, plotting
from rrmstats.plotting.canvas import large_weights_note, short_names, write_names

from .axes_content import named, overlap, written_boxes


def test_flagged_rows_differ_in_shape_fill_and_color(fits):
    ax = plotting.plot_weights(fits["hbk"]).axes[0]
    kept, marked = named(ax, "row"), named(ax, "flagged")
    assert kept.get_marker() != marked.get_marker()
    assert kept.get_markerfacecolor() == "none" != marked.get_markerfacecolor()
    assert to_rgb(kept.get_color()) != to_rgb(marked.get_color())


def test_many_rows_are_drawn_as_an_image():
    x = np.random.default_rng(0).standard_normal((6000, 2))
    few, many = (rrmstats.RRMCov(x[:n], 0.0).fit(steps=1) for n in (100, 6000))
    for results, image in ((few, False), (many, True)):
        ax = plotting.plot_distances(results).axes[0]
        assert named(ax, "row").get_rasterized() == image
        assert named(ax, "flagged").get_rasterized() == image
        assert (named(ax, "row").get_zorder() < named(ax, "cutoffs").get_zorder()) == image


def test_lines_on_many_rows_have_white_edges():
    x = np.random.default_rng(0).standard_normal((6000, 2))
    for count, edges in ((100, 0), (6000, 1)):
        ax = plotting.plot_ellipse(rrmstats.RRMCov(x[:count], 0.0).fit(steps=1)).axes[0]
        for name in ("robust", "classical"):
            assert len(named(ax, name).get_path_effects()) == edges


@pytest.mark.parametrize(
    ("picture", "fit"),
    [
        ("plot_diagnostics", "hbk"),
        ("plot_diagnostics", "stars"),
        ("plot_fit", "stars"),
        ("plot_ellipse", "cov"),
    ],
)
def test_names_do_not_cover_each_other(picture, fit, fits):
    fig = getattr(plotting, picture)(fits[fit])
    for ax in fig.axes:
        found = [(box.x0, box.y0, box.x1, box.y1) for box in written_boxes(ax)]
        for i, box in enumerate(found):
            assert not any(overlap(box, other) for other in found[:i])


def test_names_stand_by_their_own_points(fits):
    """Of four giants one over the other, each has its name nearest, or tied to it by a line."""
    fig = plotting.plot_fit(fits["stars"])
    ax = fig.axes[0]
    bad = ax.transData.transform(ax.collections[1].get_offsets())
    for text, box in zip(ax.texts, written_boxes(ax), strict=True):
        middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
        own = ax.transData.transform(text.xy)
        nearest = np.linalg.norm(bad - middle, axis=1).min()
        assert text.arrow_patch is not None or np.linalg.norm(own - middle) <= nearest + 2


@pytest.fixture
def square():
    """Return axes with no legend, whose points are a hundred to each side."""
    ax = Figure((4, 4)).subplots()
    ax.set(xlim=(0, 100), ylim=(0, 100))
    return ax


def place_of(ax, point, **kwargs):
    """Return the offset at which the name of a point is written."""
    point = np.array([point])
    write_names(ax, point, ["name"], point, **kwargs)
    return ax.texts[-1].get_position()


def test_names_are_near_inside_and_where_no_row_is(square):
    assert place_of(square, [50.0, 50.0]) == (5, 4)
    assert place_of(square, [99.0, 99.0]) == (-5, -4)
    right = np.array([[54.0, 53.0], [54.0, 47.0]])
    assert place_of(square, [50.0, 20.0], others=right - [0, 30]) == (-5, 4)


def test_names_of_a_crowd_are_all_written_and_apart(square):
    point = np.full((8, 2), 50.0)
    write_names(square, point, [f"name {i}" for i in range(8)], point)
    found = [tuple(box.extents) for box in written_boxes(square)]
    assert not any(overlap(a, b) for i, a in enumerate(found) for b in found[:i])


def test_long_names_leave_the_panel_its_size():
    stars = datasets.stars_cyg.load_pandas().data
    widths = []
    for name in ("{}", "star number {} of the cluster CYG OB1 in the direction of Cygnus"):
        named = stars.set_axis([name.format(i) for i in range(len(stars))])
        fig = plotting.plot_fit(rrmstats.ols("log_light ~ log_te", named, 0.2).fit(steps=1))
        fig.draw_without_rendering()
        widths.append(fig.axes[0].bbox.width)
        frame = fig.axes[0].get_window_extent()
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in written_boxes(fig.axes[0]))
    assert widths[1] == pytest.approx(widths[0], rel=0.01)


@pytest.mark.parametrize("form", ["{} of a very long name", "a name {} long", "a long name {}"])
def test_short_names_still_differ(form):
    names = [form.format(f"{'so' * 5} {i} {'on' * 5}") for i in range(20)]
    short = short_names(names, 20)
    assert len(set(short)) == 20 and max(map(len, short)) <= 20
    assert short_names(names, 60) == names


def test_names_with_dollars_are_no_formulas():
    rng = np.random.default_rng(0)
    names = ["cost $", "price $_$ per kg", "$_$"]
    data = pd.DataFrame(rng.standard_normal((40, 3)), columns=names)
    data.index = [f"$_$ {i}" for i in range(40)]
    data.iloc[:4] += [9.0, -9.0, 9.0]
    ols = RRMOLS(data[names[0]], data[names[1:2]], 0.2)
    figures = [ols.fit(steps=1).plot_fit(), RRMCov(data, 0.2).fit(steps=1).plot_ellipse((1, 2))]
    figures += [
        RRMPCA(data, 2, 0.2).fit(steps=1).plot_biplot(),
        ols.path([0.0, 0.2], steps=1).plot(),
    ]
    for figure in figures:
        figure.canvas.draw()  # which raises an error where "$_$" is a formula
    assert figures[0].axes[0].get_ylabel() == r"cost \$"


def crowd(label="{}"):
    """Return a regression whose rows fill the picture, with outliers in every corner."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, (150, 2)), columns=["x", "y"])
    data.iloc[:8] = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]] * 2) * [1, 1.5]
    data["y"] *= np.where(np.arange(150) < 8, 2, 0.7)
    data.index = [label.format(i) for i in range(150)]
    return data


def long_names(data):
    return data.set_axis([f"observation number {i}" for i in range(len(data))])


def covered(ax):
    """Return what a legend covers: texts, and points of rows."""
    found = written_boxes(ax)  # lays out the figure
    legend = ax.get_legend().get_window_extent()
    texts = [
        text.get_text()
        for text, box in zip(ax.texts, found, strict=True)
        if overlap(box.extents, legend.extents)
    ]
    drawn = [line.get_xydata() for line in ax.lines if line.get_marker() not in ("None", None)]
    drawn += [part.get_offsets() for part in ax.collections if isinstance(part, PathCollection)]
    points = ax.transData.transform(np.vstack(drawn))
    return texts, sum(legend.contains(*point) for point in points)


HBK = datasets.hbk.load_pandas().data
CASES = {
    "fit": lambda: plotting.plot_fit(rrmstats.ols("y ~ x", crowd(), 0.1).fit(steps=1)),
    "fit, long": lambda: plotting.plot_fit(
        rrmstats.ols("y ~ x", crowd("row of the table number {}"), 0.1).fit(steps=1), label=8
    ),
    "losses, long": lambda: plotting.plot_weights(
        rrmstats.ols("y ~ x1 + x2 + x3", long_names(HBK), 0.2).fit(steps=1),
        against="losses",
        label=10,
    ),
    "distances, long": lambda: plotting.plot_distances(
        rrmstats.RRMCov(long_names(HBK), 0.2).fit(steps=1), label=14
    ),
    "ellipse": lambda: plotting.plot_ellipse(rrmstats.RRMCov(crowd(), 0.1).fit(steps=1), label=8),
    "biplot": lambda: plotting.plot_biplot(
        rrmstats.RRMPCA(crowd().assign(z=crowd()["x"] ** 2), 2, 0.1).fit(steps=1), label=8
    ),
    "outlier map": lambda: plotting.plot_outlier_map(
        rrmstats.RRMPCA(long_names(HBK), 2, 0.2).fit(steps=1), label=15
    ),
    "scree": lambda: plotting.plot_scree(
        rrmstats.RRMPCA(np.random.default_rng(0).standard_normal((80, 9)), 8, 0.1).fit(steps=1)
    ),
    "trace": lambda: plotting.plot_trace(rrmstats.RRMCov(HBK, 0.2).fit()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_legend_covers_nothing(name):
    with_legend = [ax for ax in CASES[name]().axes if ax.get_legend() is not None]
    assert with_legend
    for ax in with_legend:
        assert covered(ax) == ([], 0)


def test_many_rows_have_their_legend_above():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, (6000, 2)), columns=["x", "y"])
    ax = plotting.plot_fit(rrmstats.ols("y ~ x", data, 0.0).fit(steps=1)).axes[0]
    assert covered(ax) == ([], 0)


def test_a_legend_is_not_wider_than_its_panel(fits):
    fig = Figure((4.0, 3.0), layout="constrained")
    ax = fig.subplots()
    plotting.plot_weights(fits["hbk"], ax=ax)
    fig.draw_without_rendering()
    assert ax.get_legend().get_window_extent().width <= ax.bbox.width
    assert covered(ax) == ([], 0)


@pytest.fixture(scope="module")
def doubtful():
    """Return a fit where some rows between the good and the bad may be either."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.standard_normal(300)})
    data["y"] = data["x"] + rng.standard_normal(300)
    data.loc[:59, "y"] += 4
    return rrmstats.ols("y ~ x", data, 0.3).fit()


def caption(fig):
    return " ".join(fig.axes[0].get_title(loc="left").split())


@pytest.mark.parametrize("draw", ["plot_weights", "plot_biplot", "plot_outlier_map"])
def test_score_outliers_are_explained(draw, fits):
    results = fits["pca"]
    large = np.asarray(results.outliers()) & (np.asarray(results.relative_weights) > 0.5)
    assert large.sum() == 10
    assert caption(getattr(plotting, draw)(results)) == (
        "10 flagged rows have a large weight (score outliers): far from the center, but in the "
        "subspace, and weights depend only on the distance from it."
    )


def test_rows_that_are_hardly_more_likely_bad_than_good_are_explained(fits, doubtful):
    """The second step flags the rows that are more likely bad than good."""
    large = np.asarray(doubtful.outliers()) & (np.asarray(doubtful.relative_weights) > 0.5)
    text = (
        f"{large.sum()} flagged rows have a large weight: more likely bad than good, but not "
        "surely bad."
    )
    assert large.sum() > 1
    assert caption(plotting.plot_weights(doubtful)) == text
    assert caption(plotting.plot_fit(doubtful)) == ""  # it shows probabilities, not weights
    for draw in (plotting.plot_weights, plotting.plot_fit):
        assert caption(draw(fits["stars"])) == ""  # no flagged row has much weight there


def test_unusual_rows_that_the_second_step_keeps_are_explained(fits):
    results = fits["stars"].model.fit()
    large = np.asarray(results.outliers(0.9)) & (np.asarray(results.relative_weights) > 0.5)
    assert large.sum() > 1
    assert large_weights_note(results, 0.9) == (
        f"{large.sum()} flagged rows have a large weight: unusual at the level 90.0%, but not so "
        "far out that the fit gives up on them."
    )


def test_rows_of_good_groups_are_explained():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.standard_normal(200), "unit": np.repeat(np.arange(20), 10)})
    data["y"] = data["x"] + rng.standard_normal(200)
    data.loc[3, "y"] += 4
    results = rrmstats.ols("y ~ x", data, 0.1, groups="unit").fit(steps=1)
    assert "have a large weight: rows share the weight of their group." in caption(
        plotting.plot_fit(results)
    )


def test_equal_weights_are_explained_as_such(fits):
    for name in ("pca", "stars"):
        model = copy.copy(fits[name].model)
        model.eps_bar = 0.0
        results = model.fit(steps=1)
        total = np.asarray(results.outliers(0.9)).sum()
        note = large_weights_note(results, 0.9)
        assert total > 1 and note == (
            f"{total} flagged rows have a large weight: all rows have equal weights here."
        )


def test_rows_off_the_subspace_are_not_explained_as_score_outliers():
    data = np.random.default_rng(0).standard_normal((100, 3)) * [5, 3, 1]
    results = rrmstats.RRMPCA(data, 2, 0.05).fit(steps=1)
    off = np.asarray(results.orthogonal_distance) > results.orthogonal_cutoff(0.5**0.5)
    large = np.asarray(results.outliers(0.5)) & (np.asarray(results.relative_weights) > 0.5)
    inside, others = (large & ~off).sum(), (large & off).sum()
    note = large_weights_note(results, 0.5)
    assert inside > 1 and others > 1
    assert note.startswith(f"{inside} flagged rows have a large weight (score outliers)")
    assert f"{others} flagged rows have a large weight: unusual at the level 50.0%" in note


def test_diagnostics_are_explained_below(fits, doubtful):
    assert plotting.plot_diagnostics(doubtful).get_supxlabel() == doubtful.explanation.sentence
    assert plotting.plot_diagnostics(fits["stars"]).get_supxlabel() == ""
    first = fits["stars"].model.fit(steps=1)
    assert large_weights_note(first, 0.5) != ""
    fig = plotting.plot_diagnostics(first, level=0.5)
    assert fig.get_supxlabel() == large_weights_note(first, 0.5)
