"""The experiments of the paper, run again: ``python -m rrmstats replicate``.

Each experiment draws its data, fits the rivals and RRM, and writes a table of what came out
(CSV), a picture (PNG) and a row of the summary, which has what the paper says and what we get.
Errors are averages over the runs. Every run has a random generator of its own, so that results
depend neither on the number of processes nor on what else is run.
"""

from __future__ import annotations

import io
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.multivariate.pca import PCA
from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

from rrmstats.core.entropy import Array
from rrmstats.cov import RRMCov
from rrmstats.datasets import ShippedData, breast_cancer
from rrmstats.logit import RRMLogit
from rrmstats.ols import RRMOLS
from rrmstats.pca import RRMPCA
from rrmstats.rivals import SeverCov, SeverLogit, SeverOLS, SeverPCA, huber, moments

__all__ = ["EXPERIMENTS", "Experiment", "replicate", "simulate"]

RUNS = 100
SEED = 0
EFFICIENCY = 0.95
# The paper's algorithm step for step.
ALGORITHM_1: dict[str, Any] = {"n_starts": 0, "accelerate": False}

ERM, HUBER, SEVER = "ERM", "Huber", "SEVER"
PAPER, GLOBAL, TWO_STEPS = "RRM (Algorithm 1)", "RRM (global)", "RRM (two steps)"
RIDGE = "RRM (global, l2)"
METHODS = (ERM, HUBER, SEVER, PAPER, GLOBAL, TWO_STEPS, RIDGE)
COLOURS = dict(
    zip(
        METHODS,
        ("#a52a2a", "#7f7f7f", "#ff9f1c", "#2ca02c", "#1f77b4", "#6a3d9a", "#17becf"),
        strict=True,
    )
)

Estimates = dict[str, Array]
Rows = list[dict[str, Any]]


# Data, each drawn by a numpy Generator


def linear_data(
    rng: np.random.Generator, share: float = 0.2, df: float = 1.5, n: int = 40, k: int = 10
) -> tuple[Array, Array]:
    """Return endog and exog of a regression on ones, a share of whose noise has heavy tails."""
    exog = np.c_[np.ones(n), rng.uniform(-5, 5, (n, k - 1))]
    noise = 0.25 * rng.standard_normal(n)
    heavy = rng.standard_t(df, n)
    return exog.sum(axis=1) + np.where(rng.random(n) < share, heavy, noise), exog


def leverage_data(rng: np.random.Generator, distance: float, n: int = 100) -> tuple[Array, Array]:
    """Return endog and exog (n, 1) of slope one, a fifth of whose rows are at one point."""
    x = rng.standard_normal(n)
    y = LEVERAGE.slope * x + LEVERAGE.sigma * rng.standard_normal(n)
    bad = slice(n - int(LEVERAGE.share * n), n)
    x[bad], y[bad] = distance * np.cos(LEVERAGE.angle), distance * np.sin(LEVERAGE.angle)
    return y, x[:, None]


def line_data(rng: np.random.Generator, n: int = 40, bad: int = 8) -> tuple[Array, Array]:
    """Return endog and exog of a line with intercept 1 and slope 1; the last rows are wrong."""
    x = np.sort(rng.uniform(-5, 5, n))
    y = 1 + x + 0.5 * rng.standard_normal(n)
    y[-bad:] = -6 + rng.standard_normal(bad)
    return y, np.c_[np.ones(n), x]


def strip_data(
    rng: np.random.Generator, share: float = 0.05, n: int = 100, rho: float = 0.99
) -> tuple[Array, Array]:
    """Return labels that the line x1 + x2 = 1 separates, and exog; the last rows are wrong."""
    bad = round(share * n)
    spread = 0.25 * np.array([[1, -rho], [-rho, 1]])
    good = rng.multivariate_normal([0.5, 0.5], spread, n - bad)
    wrong = 0.1 * rng.standard_normal((bad, 2)) + [0.5, 1.25]
    labels = np.r_[(good.sum(axis=1) >= 1).astype(float), np.zeros(bad)]
    return labels, np.c_[np.ones(n), np.vstack([good, wrong])]


def heavy_tails(rng: np.random.Generator, n: int, df: float = 1.5) -> Array:
    """Return n points of a t distribution in the plane, around the origin."""
    return rng.standard_normal((n, 2)) / np.sqrt(rng.chisquare(df, n) / df)[:, None]


def subspace_data(rng: np.random.Generator, n: int = 40, share: float = 0.2) -> Array:
    """Return points near the line along (1, 2), a share of them noise with heavy tails."""
    along = rng.standard_normal(n)
    good = np.c_[along, 2 * along + 0.25 * rng.standard_normal(n)]
    wrong = heavy_tails(rng, n)
    return np.where(rng.random(n)[:, None] < share, wrong, good)


def ellipse_data(rng: np.random.Generator, n: int = 50, share: float = 0.2) -> Array:
    """Return points of correlation 0.8, Gaussian but for a share with heavy tails."""
    good, wrong = rng.standard_normal((n, 2)), heavy_tails(rng, n)
    root = np.linalg.cholesky(TRUE_COV)
    return np.where(rng.random(n)[:, None] < share, wrong, good) @ root.T


# Methods: all estimates from one sample, by name


def linear_fits(data: tuple[Array, Array], eps_bar: float = 0.4) -> Estimates:
    """Return the coefficients by each method."""
    model = RRMOLS(*data, eps_bar=eps_bar)
    second = model.fit(efficiency=EFFICIENCY)
    return {
        ERM: sm.OLS(*data).fit().params,
        HUBER: huber(*data).fit().params,
        SEVER: SeverOLS(*data, eps_bar=eps_bar).fit().params,
        PAPER: model.fit(**ALGORITHM_1).params,
        GLOBAL: second.first_step.params,
        TWO_STEPS: second.params,
    }


def logit_fits(data: tuple[Array, Array], eps_bar: float = 0.3) -> Estimates:
    """Return the coefficients by each method."""
    model = RRMLogit(*data, eps_bar=eps_bar)
    second = model.fit(efficiency=EFFICIENCY)
    return {
        ERM: sm.Logit(*data).fit(disp=0).params,
        SEVER: SeverLogit(*data, eps_bar=eps_bar).fit().params,
        PAPER: model.fit(**ALGORITHM_1).raw_params,
        GLOBAL: second.first_step.params,
        TWO_STEPS: second.params,
    }


def pca_fits(data: Array, eps_bar: float = 0.4) -> Estimates:
    """Return the first axis through the origin by each method."""
    model = RRMPCA(data, 1, eps_bar=eps_bar, demean=False)
    second = model.fit(efficiency=EFFICIENCY)
    axes = {
        ERM: PCA(data, ncomp=1, standardize=False, demean=False, normalize=False).loadings,
        SEVER: SeverPCA(data, 1, eps_bar=eps_bar, demean=False).fit().loadings,
        PAPER: model.fit(**ALGORITHM_1).loadings,
        GLOBAL: second.first_step.loadings,
        TWO_STEPS: second.loadings,
    }
    return {name: np.ravel(axis) for name, axis in axes.items()}


def cov_fits(data: Array, eps_bar: float = 0.3) -> Estimates:
    """Return the covariance by each method."""
    model = RRMCov(data, eps_bar=eps_bar)
    second = model.fit(efficiency=EFFICIENCY)
    return {
        ERM: moments(data)[1],
        SEVER: SeverCov(data, eps_bar=eps_bar).fit().cov,
        PAPER: model.fit(**ALGORITHM_1).raw_cov,
        GLOBAL: second.first_step.cov,
        TWO_STEPS: second.cov,
    }


# Errors


TRUE_COV = np.array([[1.0, 0.8], [0.8, 1.0]])
TRUE_PLANE = np.array([-1.0, 1.0, 1.0])
TRUE_AXIS = np.array([1.0, 2.0]) / np.sqrt(5)


def relative_error(estimate: Array, truth: Array) -> float:
    """Return the norm of the error over that of the truth; the Frobenius norm for matrices."""
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))


def cosine(estimate: Array, truth: Array) -> float:
    """Return the cosine of the angle between two vectors."""
    norms = np.linalg.norm(estimate) * np.linalg.norm(truth)
    return float(np.clip(estimate @ truth / norms, -1, 1))


def linear_error(estimate: Array) -> float:
    """Return the relative error of coefficients that are all one."""
    return relative_error(estimate, np.ones_like(estimate))


def angle_error(estimate: Array) -> float:
    """Return the angle to the true plane, in degrees."""
    return float(np.degrees(np.arccos(cosine(estimate, TRUE_PLANE))))


def axis_error(estimate: Array) -> float:
    """Return the misalignment with the true axis, 1 - |cos|."""
    return 1.0 - abs(cosine(estimate, TRUE_AXIS))


def cov_error(estimate: Array) -> float:
    """Return the relative error of a covariance."""
    return relative_error(estimate, TRUE_COV)


# One run of an experiment, as rows of its table


def monte_carlo(
    rng: np.random.Generator,
    sample: Callable[..., Any],
    fits: Callable[[Any], Estimates],
    error: Callable[[Array], float],
    levels: Mapping[str, Sequence[float]] | None = None,
) -> Rows:
    """Return the error of each method, for each level of an argument of `sample`."""
    settings: list[dict[str, float]] = [
        {name: value} for name, values in (levels or {}).items() for value in values
    ]
    return [
        {**setting, "method": name, "error": error(np.asarray(estimate))}
        for setting in settings or [{}]
        for name, estimate in fits(sample(rng, **setting)).items()
    ]


def line_picture(rng: np.random.Generator) -> Rows:
    """Return points with their weights, and the lines of each method there."""
    endog, exog = line_data(rng)
    fits = {eps_bar: RRMOLS(endog, exog, eps_bar=eps_bar).fit() for eps_bar in (0.25, 0.4)}
    table = {"x": exog[:, 1], "y": endog, "corrupted": np.arange(len(endog)) >= 32}
    table |= {f"weight, eps_bar = {e}": fit.weights * len(endog) for e, fit in fits.items()}
    table |= {"target": 1 + exog[:, 1], ERM: sm.OLS(endog, exog).fit().fittedvalues}
    table |= {f"RRM, eps_bar = {e}": fit.fittedvalues for e, fit in fits.items()}
    return pd.DataFrame(table).to_dict("records")  # type: ignore[return-value]


def plane_picture(
    rng: np.random.Generator, methods: Sequence[str], share: float = 0.05, rho: float = 0.99
) -> Rows:
    """Return labelled points, and the separating lines of some methods at their x1."""
    labels, exog = strip_data(rng, share, rho=rho)
    fits = {"target": TRUE_PLANE}
    if methods:
        found = logit_fits((labels, exog))
        fits |= {name: found[name] for name in methods}
    bad = np.arange(len(labels)) >= len(labels) - round(share * len(labels))
    table = {"x1": exog[:, 1], "x2": exog[:, 2], "y": labels, "corrupted": bad}
    table |= {name: -(exog[:, :2] @ theta[:2]) / theta[2] for name, theta in fits.items()}
    return pd.DataFrame(table).to_dict("records")  # type: ignore[return-value]


@dataclass(frozen=True)
class Leverage:
    """Figure 2: a Gaussian law, and a point mass at a distance from the origin."""

    share: float = 0.2
    slope: float = 1.0
    contrast: float = 0.0
    sigma: float = 0.25
    angle: float = -np.pi / 18
    distances: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)

    def risk(self, slope: float, distance: Any, share: float) -> Any:
        """Return the expected squared error of a slope under the mixture."""
        clean = (slope - self.slope) ** 2 + self.sigma**2
        point = (distance * (np.sin(self.angle) - slope * np.cos(self.angle))) ** 2
        return (1 - share) * clean + share * point


LEVERAGE = Leverage()


def leverage_run(rng: np.random.Generator) -> Rows:
    """Return the errors of the slope at each distance, with the risks of two models there."""
    rows = monte_carlo(
        rng,
        leverage_data,
        partial(linear_fits, eps_bar=0.3),
        linear_error,
        {"distance": LEVERAGE.distances},
    )
    for row in rows:
        for name, slope in (("target", LEVERAGE.slope), ("contrast", LEVERAGE.contrast)):
            row[f"risk of {name}"] = LEVERAGE.risk(slope, row["distance"], LEVERAGE.share)
        row["clean risk of target"] = LEVERAGE.risk(LEVERAGE.slope, 0.0, 0.0)
    return rows


def cancer_run(rng: np.random.Generator, eps_bar: float = 0.15, flips: int = 40) -> Rows:
    """Return confusion matrices on test rows, after the labels of training rows were flipped."""
    data = breast_cancer.load_pandas()
    endog = data.endog.to_numpy(float)
    exog = sm.add_constant(data.exog.to_numpy(float))
    order = rng.permutation(len(endog))
    size = int(0.6 * len(endog))
    x, y = exog[order[:size]], endog[order[:size]]
    scores = x @ sm.Logit(y, x).fit(disp=0).params
    y[np.argsort(np.where(y == 1, -scores, np.inf))[:flips]] = 0
    estimates = logit_fits((y, x), eps_bar)
    estimates[RIDGE] = RRMLogit(y, x, eps_bar=eps_bar, penalty="l2").fit().params
    actual, test = endog[order[size:]] == 1, exog[order[size:]]
    rows = []
    for name, estimate in estimates.items():
        predicted = test @ estimate > 0
        counts = {
            f"actual {i}, predicted {j}": int(((actual == i) & (predicted == j)).sum())
            for i in (1, 0)
            for j in (1, 0)
        }
        rows.append({"method": name, "accuracy": float((actual == predicted).mean())} | counts)
    return rows


# Pictures


def draw_boxes(table: pd.DataFrame, title: str, measure: str) -> Any:
    """Return boxes of the errors; whiskers reach to the extremes, red dots are means."""
    names = list(table["method"].unique())
    groups = [table.loc[table["method"] == name, "error"] for name in names]
    figure, (axes,) = new_figure(1, (1.2 + 1.1 * len(names), 4))
    axes.boxplot(groups, whis=(0, 100), medianprops={"color": "black"})
    places = np.arange(1, len(names) + 1)
    axes.scatter(places, [group.mean() for group in groups], color="red", zorder=3, label="mean")
    axes.set_xticks(places, [name.replace(" (", "\n(") for name in names])
    axes.set_yscale("log")
    axes.set(ylabel=measure, title=title)
    axes.legend()
    return figure


def draw_curves(table: pd.DataFrame, title: str, measure: str, level: str = "share") -> Any:
    """Return the mean errors against a level, a curve for each method."""
    figure, (axes,) = new_figure(1, (6, 4))
    add_curves(axes, table, level)
    axes.set(xlabel="share of corrupted rows", ylabel=mean_of(measure), title=title)
    axes.set_ylim(bottom=0)
    return figure


def mean_of(measure: str) -> str:
    """Return the label of an axis of means over all levels, for a measure at one of them."""
    return f"mean {measure.partition(',')[0]}"


def add_curves(axes: Any, table: pd.DataFrame, level: str) -> None:
    """Draw the mean error of each method against a level."""
    for name, group in table.groupby("method", sort=False):
        means = group.groupby(level)["error"].mean()
        axes.plot(means.index, means, "o-", ms=3, color=COLOURS[str(name)], label=name)
    axes.legend(fontsize=8)


def draw_leverage(table: pd.DataFrame, title: str, measure: str) -> Any:
    """Return figure 2: the two models, their risks by distance, and what is fitted."""
    figure, (points, risks, errors) = new_figure(3, (13, 4))
    distance = 6.0
    y, x = leverage_data(np.random.default_rng(SEED), distance)
    bad = x[:, 0] == x[-1, 0]
    points.scatter(x[~bad, 0], y[~bad], s=8, color="black", label="target law")
    points.scatter(x[bad, 0], y[bad], s=60, marker="*", color="red", label="point mass")
    ends = np.array([-3.0, 6.5])
    points.plot(ends, LEVERAGE.slope * ends, ":", color="black", label="target model")
    points.plot(ends, LEVERAGE.contrast * ends, "-", color="#a52a2a", label="contrasting model")
    points.set(xlabel="x", ylabel="y", ylim=(-4, 4), title=f"distance {distance:g}")
    points.legend(fontsize=8)
    grid = np.linspace(0, max(LEVERAGE.distances), 200)
    for name, slope, colour in (
        ("target", LEVERAGE.slope, "black"),
        ("contrasting", LEVERAGE.contrast, "#a52a2a"),
    ):
        curve = LEVERAGE.risk(slope, grid, LEVERAGE.share)
        risks.plot(grid, curve, color=colour, label=f"{name} model")
    clean = LEVERAGE.risk(LEVERAGE.slope, 0.0, 0.0)
    risks.axhline(clean, ls=":", color="black", label="target model, clean data")
    risks.set(xlabel="distance of the point mass", ylabel="risk", ylim=(0, 4), title=title)
    risks.legend(fontsize=8)
    add_curves(errors, table, "distance")
    errors.set(xlabel="distance of the point mass", ylabel=mean_of(measure))
    return figure


def draw_line(table: pd.DataFrame, title: str, measure: str) -> Any:
    """Return points coloured by weight, and the fitted lines."""
    figure, (axes,) = new_figure(1, (7, 4.5))
    weight = [column for column in table.columns if column.startswith("weight")][-1]
    dots = axes.scatter(
        table["x"], table["y"], c=table[weight], cmap="cividis", edgecolors="black", zorder=3
    )
    figure.colorbar(dots, label=f"weight * n{weight.removeprefix('weight')}")
    add_lines(axes, table, "x", [c for c in table.columns if c in (ERM, "target") or "RRM" in c])
    axes.set(xlabel="x", ylabel="y", title=title)
    axes.legend(fontsize=8)
    return figure


def draw_plane(table: pd.DataFrame, title: str, measure: str) -> Any:
    """Return labelled points, the corrupted ones as stars, and separating lines."""
    figure, (axes,) = new_figure(1, (6, 4.5))
    for label, colour in ((0, "tab:blue"), (1, "tab:green")):
        for corrupted, marker, size in ((False, "o", 12), (True, "*", 70)):
            some = table[(table["y"] == label) & (table["corrupted"] == corrupted)]
            axes.scatter(some["x1"], some["x2"], s=size, marker=marker, color=colour)
    add_lines(axes, table, "x1", [c for c in table.columns if c == "target" or c in METHODS])
    low, high = table["x2"].min(), table["x2"].max()
    axes.set(xlabel="x1", ylabel="x2", ylim=(low - 0.3, high + 0.3), title=title)
    axes.legend(fontsize=8)
    return figure


def add_lines(axes: Any, table: pd.DataFrame, across: str, names: Sequence[str]) -> None:
    """Draw straight lines given at the points of the table."""
    ends = table.sort_values(across).iloc[[0, -1]]
    robust = iter(("#1f77b4", "#6a3d9a"))
    for name in names:
        style = ":" if name == "target" else "-"
        colour = "black" if name == "target" else COLOURS.get(name) or next(robust)
        axes.plot(ends[across], ends[name], style, color=colour, label=name)


def draw_confusion(table: pd.DataFrame, title: str, measure: str) -> Any:
    """Return the mean confusion matrix of each method."""
    names = list(table["method"].unique())
    figure, panels = new_figure(len(names), (2.2 * len(names), 3.4))
    for axes, name in zip(panels, names, strict=True):
        mean = table[table["method"] == name].mean(numeric_only=True)
        cells = mean[[f"actual {i}, predicted {j}" for i in (1, 0) for j in (1, 0)]]
        matrix = cells.to_numpy().reshape(2, 2)
        axes.imshow(matrix / matrix.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1.5)
        for (i, j), value in np.ndenumerate(matrix):
            axes.text(j, i, f"{value:.1f}", ha="center", va="center")
        axes.set_xticks([0, 1], ["1", "0"])
        axes.set_yticks([0, 1], ["1", "0"])
        axes.set(xlabel="predicted", title=f"{name}\naccuracy {mean['accuracy']:.4f}")
        axes.title.set_fontsize(9)
    panels[0].set_ylabel("actual")
    figure.suptitle(title, fontsize=10)
    return figure


def new_figure(panels: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a matplotlib figure that no window shows, and its panels in a row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


# What the summary says of a table


def mean_errors(table: pd.DataFrame) -> dict[str, float]:
    """Return the mean error of each method, at the last level where there are several."""
    for level in ("share", "distance"):
        if level in table:
            table = table[table[level] == table[level].max()]
    measure = "accuracy" if "accuracy" in table else "error"
    return table.groupby("method", sort=False)[measure].mean().to_dict()  # type: ignore[return-value]


def line_distances(table: pd.DataFrame) -> dict[str, float]:
    """Return the mean distance of each method's line from the target's."""
    names = {ERM: ERM, SEVER: SEVER, PAPER: PAPER, GLOBAL: GLOBAL, "RRM, eps_bar = 0.4": GLOBAL}
    return {
        method: float((table[column] - table["target"]).abs().mean())
        for column, method in names.items()
        if column in table
    }


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
        Runs as a share of those asked for, one at least.
    needs : ShippedData, optional
        Data set that it reads.
    """

    title: str
    measure: str
    paper: str
    run: Callable[[np.random.Generator], Rows]
    draw: Callable[[pd.DataFrame, str, str], Any]
    scores: Callable[[pd.DataFrame], dict[str, float]] = mean_errors
    share: float = 1.0
    needs: ShippedData | None = None

    def n_runs(self, runs: int) -> int:
        """Return the number of runs where `runs` are asked for."""
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
        "Risk under the corrupted law",
        "relative error, point mass at distance 10",
        "past some distance a wrong model has the lower risk, and ERM takes it",
        leverage_run,
        draw_leverage,
        share=0.25,
    ),
    "figure3a": Experiment(
        "Linear regression, 20 % corrupted, nu = 1.5",
        "relative error",
        "RRM and SEVER are alike and have almost half the error of ERM",
        partial(monte_carlo, sample=linear_data, fits=linear_fits, error=linear_error),
        draw_boxes,
    ),
    "figure3b": Experiment(
        "Linear regression, nu = 2.5, eps_bar = 0.4",
        "relative error, 40 % corrupted",
        "the robust methods are alike and much better than ERM",
        partial(
            monte_carlo,
            sample=partial(linear_data, df=2.5),
            fits=linear_fits,
            error=linear_error,
            levels={"share": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)},
        ),
        draw_curves,
    ),
    "figure4a": Experiment(
        "Logistic regression: the target law",
        LINES,
        "the classes are separable",
        partial(plane_picture, methods=(), share=0.0),
        draw_plane,
        line_distances,
        share=0,
    ),
    "figure4b": Experiment(
        "Logistic regression: 5 % corrupted (stars)",
        LINES,
        "ERM and SEVER are shifted towards the outliers, RRM hardly is",
        partial(plane_picture, methods=(ERM, SEVER, PAPER, GLOBAL)),
        draw_plane,
        line_distances,
        share=0,
    ),
    "figure4c": Experiment(
        "Logistic regression, 5 % corrupted, eps_bar = 0.3",
        "angle to the true plane, degrees",
        "RRM outperforms ERM and SEVER",
        partial(monte_carlo, sample=strip_data, fits=logit_fits, error=angle_error),
        draw_boxes,
    ),
    "figure5": Experiment(
        "Principal components, 20 % corrupted, eps_bar = 0.4",
        "misalignment, 1 - |cos|",
        "RRM outperforms ERM and SEVER",
        partial(monte_carlo, sample=subspace_data, fits=pca_fits, error=axis_error),
        draw_boxes,
    ),
    "figure6": Experiment(
        "Covariance, 20 % corrupted, eps_bar = 0.3",
        "relative error",
        "SEVER's mean is off the plot; RRM is stable",
        partial(monte_carlo, sample=ellipse_data, fits=cov_fits, error=cov_error),
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


# The driver


def one_run(name: str, run: int) -> Rows:
    """Return the rows of one run of an experiment."""
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), run])
    with warnings.catch_warnings():
        # Among many samples some are separated, or have not settled; their errors say so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        return [{"run": run} | row for row in EXPERIMENTS[name].run(rng)]


def simulate(name: str, runs: int = RUNS, jobs: int = 1, progress: bool = False) -> pd.DataFrame:
    """Run an experiment.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    runs : int, optional
        Number of runs; some experiments take fewer.
    jobs : int, optional
        Processes to run in, where joblib is installed.
    progress : bool, optional
        Show a progress bar, where tqdm is installed.

    Returns
    -------
    DataFrame
        One row for each run and method, or for each point of a picture.

    Examples
    --------
    >>> from rrmstats.replicate import simulate
    >>> table = simulate("figure6", runs=2)
    >>> table.columns.tolist(), len(table)
    (['run', 'method', 'error'], 10)
    """
    experiment = find(name)
    numbers = range(experiment.n_runs(runs))
    joblib, tqdm = installed("joblib"), installed("tqdm")
    results: Iterable[Rows] = (one_run(name, run) for run in numbers)
    if jobs > 1 and len(numbers) > 1 and joblib is not None:
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator")
        results = pool(joblib.delayed(one_run)(name, run) for run in numbers)
    if progress and tqdm is not None:
        results = tqdm.tqdm(results, desc=name, total=len(numbers), unit="run")
    return pd.DataFrame([row for rows in results for row in rows])


def replicate(
    names: Sequence[str] | None = None,
    *,
    out: Path | str,
    runs: int = RUNS,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Run experiments of the paper, and write their tables and pictures.

    Parameters
    ----------
    names : sequence of str, optional
        Some of `EXPERIMENTS`; all by default.
    out : path
        Folder to write to; it is made if need be.
    runs, jobs, progress
        See `simulate`.

    Returns
    -------
    DataFrame
        The summary, a row for each experiment: what the paper says, and what we get by each
        method. It is written as ``summary.csv``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If the folder cannot be written to, or data that ship are missing or changed; nothing has
        been run then.

    Examples
    --------
    >>> import tempfile
    >>> from rrmstats.replicate import replicate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = replicate(["figure4a"], out=folder, runs=1)
    >>> summary.loc["figure4a", "paper says"]
    'the classes are separable'
    """
    chosen = list(EXPERIMENTS) if names is None else list(names)
    for name in chosen:
        check_data(find(name))
    folder = writable(Path(out))
    drawing = installed("matplotlib") is not None
    summary = {}
    for name in chosen:
        experiment = EXPERIMENTS[name]
        table = simulate(name, runs, jobs, progress)
        write_whole(folder / f"{name}.csv", table.to_csv(index=False).encode())
        if drawing:
            figure = experiment.draw(table, experiment.title, experiment.measure)
            write_whole(folder / f"{name}.png", rendered(figure))
        summary[name] = {
            "paper says": experiment.paper,
            "we get": experiment.measure,
            "runs": experiment.n_runs(runs),
        } | experiment.scores(table)
    result = pd.DataFrame.from_dict(summary, orient="index").rename_axis("experiment")
    present = [name for name in METHODS if name in result]
    result = result[["paper says", "we get", "runs", *present]]
    write_whole(folder / "summary.csv", result.to_csv(float_format="%.4g").encode())
    return result


def find(name: str) -> Experiment:
    """Return an experiment, or say which there are."""
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def check_data(experiment: Experiment) -> None:
    """Raise OSError where the data of an experiment are missing or changed."""
    try:
        if experiment.needs is not None:
            experiment.needs.load_pandas()
    except ValueError as error:
        raise OSError(str(error)) from error


def installed(module: str) -> Any:
    """Return a module that is not required, or None."""
    try:
        return import_module(module)
    except ImportError:
        return None


def writable(folder: Path) -> Path:
    """Return a folder, made if need be, that takes files; else raise OSError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except FileExistsError:
        raise NotADirectoryError(f"cannot write to {folder}: it is a file, not a folder") from None
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}") from error
    return folder


def rendered(figure: Any, form: str = "png", dpi: int = 100) -> bytes:
    """Return a matplotlib figure as the content of a file."""
    content = io.BytesIO()
    figure.savefig(content, format=form, dpi=dpi)
    return content.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or raise OSError and leave nothing behind."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if part.is_file():
            part.unlink()


def lines_of(summary: pd.DataFrame) -> Iterator[str]:
    """Return the summary as lines to print."""
    numbers = [name for name in METHODS if name in summary]
    for name, row in summary.iterrows():
        yield f"{name}, runs: {row['runs']}"
        yield f"  paper says: {row['paper says']}"
        found = ", ".join(f"{m} {row[m]:.4g}" for m in numbers if pd.notna(row[m]))
        yield f"  we get, {row['we get']}: {found or 'no fit'}"
