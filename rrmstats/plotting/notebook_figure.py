"""Figures that a notebook shows once; imported when the first picture is drawn."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure of pyplot that a notebook shows once, also if it is the value of a cell.

    At the end of a cell the inline backend shows all figures that pyplot has open. A figure that
    was shown before, as the value of the cell, is no longer among them.
    """

    def _ipython_display_(self) -> None:
        if "inline" in matplotlib.get_backend():
            plt.close(self)
        raise NotImplementedError  # IPython then shows it like any figure
