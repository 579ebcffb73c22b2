import numpy as np
import pytest
from matplotlib.text import Text

from rrmstats import plotting
from rrmstats.plotting.names import free_places, overlap


def boxes(ax):
    ax.figure.draw_without_rendering()
    # That of an annotation would include its line.
    return [Text.get_window_extent(text) for text in ax.texts]


@pytest.mark.slow
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
        found = [(box.x0, box.y0, box.x1, box.y1) for box in boxes(ax)]
        for i, box in enumerate(found):
            assert not any(overlap(box, other) for other in found[:i])


def test_names_stand_by_their_own_points(fits):
    """Of four giants one over the other, each has its name nearest, or tied to it by a line."""
    fig = plotting.plot_fit(fits["stars"])
    ax = fig.axes[0]
    bad = ax.transData.transform(ax.collections[1].get_offsets())
    for text, box in zip(ax.texts, boxes(ax), strict=True):
        middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
        own = ax.transData.transform(text.xy)
        nearest = np.linalg.norm(bad - middle, axis=1).min()
        assert text.arrow_patch is not None or np.linalg.norm(own - middle) <= nearest + 2


def test_free_places():
    frame = np.array([0.0, 0.0, 100.0, 100.0])
    alone = np.array([[50.0, 50.0]])
    assert free_places(alone, [(10, 10)], alone, frame) == [(5, 4)]
    corner = np.array([[98.0, 98.0]])
    assert free_places(corner, [(10, 10)], corner, frame) == [(-5, -4)]
    crowd = np.repeat(alone, 30, axis=0)
    assert len(free_places(crowd, [(10, 10)] * 30, crowd, frame)) == 30
