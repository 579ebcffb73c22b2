"""Figure 2: Gaussian data and a point mass, and which of two models has the lower risk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replication.drawing import add_curves, mean_of, new_figure
from replication.errors import linear_error
from replication.methods import linear_fits
from replication.runs import Rows, monte_carlo
from replication.samples import Regression, point_mass
from rrmstats.core.entropy import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONTRAST_COLOR = "#a52a2a"


@dataclass(frozen=True)
class Leverage:
    """A line through the origin with a point mass off it, and a model that follows the mass.

    Parameters
    ----------
    share : float, optional
        Share of the point mass.
    sigma : float, optional
        Standard deviation of the noise around the line.
    angle : float, optional
        Direction of the point, in radians from the x axis.
    slope, contrast : float, optional
        Slopes of the true model and of the other one.
    distances : tuple of float, optional
        Distances of the point from the origin.
    """

    share: float = 0.2
    sigma: float = 0.25
    angle: float = -np.pi / 18
    slope: float = 1.0
    contrast: float = 0.0
    distances: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)

    def sample(self, rng: np.random.Generator, distance: float, n: int = 100) -> Regression:
        """Return endog (n,) and exog (n, 1)."""
        return point_mass(rng, distance, n, self.share, self.sigma, self.angle)

    def risk(self, slope: float, distance: float | Array, share: float) -> Array:
        """Return the expected squared error of a slope under the mixture, for each distance."""
        clean = (slope - self.slope) ** 2 + self.sigma**2
        point = (distance * (np.sin(self.angle) - slope * np.cos(self.angle))) ** 2
        return np.asarray((1 - share) * clean + share * point)


LEVERAGE = Leverage()


def leverage_run(rng: np.random.Generator) -> Rows:
    """Return the errors of the slope at each distance, with the risks of two models there."""
    rows = monte_carlo(
        rng,
        LEVERAGE.sample,
        partial(linear_fits, eps_bar=0.3),
        linear_error,
        {"distance": LEVERAGE.distances},
    )
    for row in rows:
        for name, slope in (("target", LEVERAGE.slope), ("contrast", LEVERAGE.contrast)):
            row[f"risk of {name}"] = float(LEVERAGE.risk(slope, row["distance"], LEVERAGE.share))
        row["clean risk of target"] = float(LEVERAGE.risk(LEVERAGE.slope, 0.0, 0.0))
    return rows


def draw_leverage(table: pd.DataFrame, title: str, measure: str) -> Figure:
    """Return the two models, their risks by distance, and the errors of the methods."""
    figure, (points, risks, errors) = new_figure(3, (13, 4))
    _draw_points(points, distance=6.0)
    _draw_risks(risks)
    risks.set(xlabel="distance of the point mass", ylabel="risk", ylim=(0, 4), title=title)
    add_curves(errors, table, "distance")
    errors.set(xlabel="distance of the point mass", ylabel=mean_of(measure))
    return figure


def _draw_points(axes: Axes, distance: float) -> None:
    """Draw a sample and the two models."""
    y, x = LEVERAGE.sample(np.random.default_rng(0), distance)
    bad = x[:, 0] == x[-1, 0]
    axes.scatter(x[~bad, 0], y[~bad], s=8, color="black", label="target distribution")
    axes.scatter(x[bad, 0], y[bad], s=60, marker="*", color="red", label="point mass")
    ends = np.array([-3.0, 6.5])
    axes.plot(ends, LEVERAGE.slope * ends, ":", color="black", label="target model")
    axes.plot(ends, LEVERAGE.contrast * ends, "-", color=CONTRAST_COLOR, label="contrasting model")
    axes.set(xlabel="x", ylabel="y", ylim=(-4, 4), title=f"distance {distance:g}")
    axes.legend(fontsize=8)


def _draw_risks(axes: Axes) -> None:
    """Draw the risks of the two models against the distance."""
    grid = np.linspace(0, max(LEVERAGE.distances), 200)
    for name, slope, color in (
        ("target", LEVERAGE.slope, "black"),
        ("contrasting", LEVERAGE.contrast, CONTRAST_COLOR),
    ):
        curve = LEVERAGE.risk(slope, grid, LEVERAGE.share)
        axes.plot(grid, curve, color=color, label=f"{name} model")
    clean = float(LEVERAGE.risk(LEVERAGE.slope, 0.0, 0.0))
    axes.axhline(clean, ls=":", color="black", label="target model, clean data")
    axes.legend(fontsize=8)
