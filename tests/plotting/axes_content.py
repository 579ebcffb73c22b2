"""What is drawn on axes, for tests to compare with the results."""

import numpy as np
from matplotlib.text import Text


def named(ax, prefix):
    """Return the one line of axes whose label begins with a prefix."""
    (line,) = [line for line in ax.lines if line.get_label().startswith(prefix)]
    return line


def texts(ax):
    return [text.get_text() for text in ax.texts]


def flagged(results):
    return np.asarray(results.outliers())


def level_lines(ax):
    """Return the heights of horizontal lines across axes and the places of vertical ones."""
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    rows = [line.get_ydata()[0] for line in dotted if list(line.get_xdata()) == [0, 1]]
    columns = [line.get_xdata()[0] for line in dotted if list(line.get_ydata()) == [0, 1]]
    return sorted(rows), sorted(columns)


def written_boxes(ax):
    """Return the boxes of all texts on axes."""
    ax.figure.draw_without_rendering()
    # That of an annotation would include its line.
    return [Text.get_window_extent(text) for text in ax.texts]


def overlap(a, b):
    """Return whether two boxes, of left, lower, right and upper limits, overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
