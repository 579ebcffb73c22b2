"""The figures and tables of the paper: what is drawn, fitted and measured for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replication.drawing import (
    draw_boxes,
    draw_confusion,
    draw_curves,
    draw_line,
    draw_plane,
)
from replication.errors import angle_error, axis_error, cov_error, linear_error
from replication.figure2 import draw_leverage, leverage_run
from replication.methods import (
    ERM,
    GLOBAL,
    PAPER,
    SEVER,
    cov_fits,
    linear_fits,
    logit_fits,
    pca_fits,
)
from replication.runs import Rows, cancer_run, line_picture, monte_carlo, plane_picture
from replication.samples import (
    correlated_points,
    heavy_tailed_noise,
    noisy_line,
    separated_strip,
)
from replication.summaries import line_distances, mean_errors
from rrmstats.datasets import ShippedData, breast_cancer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper.

    Parameters
    ----------
    title : str
        Title of its picture.
    measure : str
        What the numbers of its summary are.
    paper : str
        What the paper says.
    run : callable
        Takes a generator and returns the rows of one run.
    draw : callable
        Takes the table, the title and the measure, and returns a matplotlib figure.
    scores : callable, optional
        Takes the table and returns a number for each method.
    share : float, optional
        Runs as a share of those asked for, but at least one.
    needs : ShippedData, optional
        Data set that it reads.

    Examples
    --------
    >>> from replication import EXPERIMENTS
    >>> EXPERIMENTS["figure2"].n_runs(100)
    25
    """

    title: str
    measure: str
    paper: str
    run: Callable[[np.random.Generator], Rows]
    draw: Callable[[pd.DataFrame, str, str], Figure]
    scores: Callable[[pd.DataFrame], dict[str, float]] = mean_errors
    share: float = 1.0
    needs: ShippedData | None = None

    def n_runs(self, runs: int) -> int:
        """Return the number of runs when `runs` are asked for."""
        return max(1, round(self.share * runs))


LINES = "mean distance of the line from the target, one sample"

EXPERIMENTS: dict[str, Experiment] = {
    "figure1a": Experiment(
        "Regression: least squares and RRM, the target dotted",
        LINES,
        "least squares is drawn to the outliers; RRM with either bound is near the target",
        line_picture,
        draw_line,
        line_distances,
        share=0,
    ),
    "figure1b": Experiment(
        "Classification: maximum likelihood and RRM, the target dotted",
        LINES,
        "maximum likelihood is drawn to the outliers; RRM is near the target",
        partial(plane_picture, methods=(ERM, GLOBAL), share=0.15, rho=0.8),
        draw_plane,
        line_distances,
        share=0,
    ),
    "figure2": Experiment(
        "Risk under the distribution with bad rows",
        "relative error, point mass at distance 10",
        "past some distance a wrong model has the lower risk, and ERM takes it",
        leverage_run,
        draw_leverage,
        share=0.25,
    ),
    "figure3a": Experiment(
        "Linear regression, 20 % bad rows, nu = 1.5",
        "relative error",
        "RRM and SEVER are alike and have almost half the error of ERM",
        partial(monte_carlo, sample=heavy_tailed_noise, fits=linear_fits, error=linear_error),
        draw_boxes,
    ),
    "figure3b": Experiment(
        "Linear regression, nu = 2.5, eps_bar = 0.4",
        "relative error, 40 % bad rows",
        "the robust methods are alike and much better than ERM",
        partial(
            monte_carlo,
            sample=partial(heavy_tailed_noise, df=2.5),
            fits=linear_fits,
            error=linear_error,
            levels={"share": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)},
        ),
        draw_curves,
    ),
    "figure4a": Experiment(
        "Logistic regression: the target distribution",
        LINES,
        "the classes are separable",
        partial(plane_picture, methods=(), share=0.0),
        draw_plane,
        line_distances,
        share=0,
    ),
    "figure4b": Experiment(
        "Logistic regression: 5 % bad rows (stars)",
        LINES,
        "ERM and SEVER are shifted toward the outliers, RRM hardly is",
        partial(plane_picture, methods=(ERM, SEVER, PAPER, GLOBAL)),
        draw_plane,
        line_distances,
        share=0,
    ),
    "figure4c": Experiment(
        "Logistic regression, 5 % bad rows, eps_bar = 0.3",
        "angle to the true plane, degrees",
        "RRM outperforms ERM and SEVER",
        partial(monte_carlo, sample=separated_strip, fits=logit_fits, error=angle_error),
        draw_boxes,
    ),
    "figure5": Experiment(
        "Principal components, 20 % bad rows, eps_bar = 0.4",
        "misalignment, 1 - |cos|",
        "RRM outperforms ERM and SEVER",
        partial(monte_carlo, sample=noisy_line, fits=pca_fits, error=axis_error),
        draw_boxes,
    ),
    "figure6": Experiment(
        "Covariance, 20 % bad rows, eps_bar = 0.3",
        "relative error",
        "SEVER's mean is off the plot; RRM is stable",
        partial(monte_carlo, sample=correlated_points, fits=cov_fits, error=cov_error),
        draw_boxes,
    ),
    "tables": Experiment(
        "Tables 1-3: breast cancer, 274 test rows, 40 training labels flipped; means over splits",
        "accuracy on test rows",
        "one split: ERM 0.8942, SEVER 0.8942, RRM 0.9124",
        cancer_run,
        draw_confusion,
        share=0.5,
        needs=breast_cancer,
    ),
}
