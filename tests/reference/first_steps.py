"""Sixty fits of one step, the paper's estimate; running this script stores their numbers.

The numbers in first_steps.csv are what the method gave when they were made. The minimum of the
robust risk is defined by the paper, so no later change may move it.
"""

from __future__ import annotations

import csv
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray

import rrmstats
from replication import samples
from rrmstats import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson, datasets

STORED = Path(__file__).with_suffix(".csv")
FAMILIES = {
    "gaussian": sm.families.Gaussian(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "binomial": sm.families.Binomial(),
}
LINE = (1.0, 1.0, -0.5)
SPREAD = np.diag([9.0, 4.0, 1.0])


def line(rng: np.random.Generator, kind: str) -> samples.Regression:
    """Return 60 rows of a regression: clean, shifted up, or with leverage rows."""
    if kind == "leverage":
        return samples.leverage_shift(rng, 60, LINE, 0.2)
    share = 0.0 if kind == "clean" else 0.1
    return samples.one_sided_outliers(rng, 60, LINE, share=share, shift=6.0)


def labels(rng: np.random.Generator, kind: str) -> samples.Regression:
    """Return 200 labels, clean or wrong at the extremes."""
    if kind == "clean":
        return samples.logistic_labels(rng, 200, LINE)
    return samples.extreme_flips(rng, 200, LINE, 0.05)


def cloud(rng: np.random.Generator, kind: str) -> NDArray[np.float64]:
    """Return 80 points in three dimensions, clean or a tenth of them shifted."""
    share = 0.0 if kind == "clean" else 0.1
    return samples.shifted_cluster(rng, 80, SPREAD, share, 8.0)


def responses(rng: np.random.Generator, kind: str, family: Any) -> samples.Regression:
    """Return 120 responses of a family, clean or a tenth of them wrong."""
    return samples.dirty_responses(rng, family, kind, 120)


def shipped(name: str) -> samples.Regression:
    """Return the response and, with a constant, the predictors of a bundled data set."""
    data = getattr(datasets, name).load_pandas()
    exog = np.c_[np.ones(len(data.endog)), np.asarray(data.exog, float)]
    return np.asarray(data.endog, float), exog


def points(name: str) -> NDArray[np.float64]:
    """Return the predictors of hbk, or all variables of another bundled data set."""
    endog, exog = shipped(name)
    return exog[:, 1:] if name == "hbk" else np.c_[exog[:, 1:], endog]


Build = Callable[..., Any]
# How a model is made of a sample of its own kind, by name: the class and the sample.
MODELS: dict[str, tuple[Build, Build]] = {
    "ols": (RRMOLS, line),
    "gaussian": (partial(RRMGLM, family=FAMILIES["gaussian"]), line),
    "gamma": (partial(RRMGLM, family=FAMILIES["gamma"]), partial(responses, family="gamma")),
    "binomial": (
        partial(RRMGLM, family=FAMILIES["binomial"]),
        partial(responses, family="binomial"),
    ),
    "poisson": (RRMPoisson, partial(responses, family="poisson")),
    "logit": (RRMLogit, labels),
    "cov": (RRMCov, cloud),
    "pca": (partial(RRMPCA, n_components=2), cloud),
}
# Samples and eps_bar of each model; "weighted" and "grouped" have wrong rows as well.
SIMULATED: dict[str, dict[str, tuple[float, ...]]] = {
    "ols": {
        "clean": (0.05, 0.1, 0.2, 0.3, 0.4),
        "shifted": (0.1, 0.2, 0.4),
        "leverage": (0.25, 0.3, 0.4),
        "weighted": (0.2,),
        "grouped": (0.3,),
    },
    "gaussian": {"clean": (0.1,), "shifted": (0.2, 0.4)},
    "gamma": {"clean": (0.1,), "high": (0.2,), "low at the top": (0.3,), "weighted": (0.2,)},
    "binomial": {"clean": (0.1,), "high": (0.2,), "leverage": (0.3,), "grouped": (0.3,)},
    "poisson": {
        "clean": (0.05,),
        "high": (0.2,),
        "low at the top": (0.4,),
        "leverage": (0.2,),
        "weighted": (0.2,),
        "grouped": (0.3,),
    },
    "logit": {
        "clean": (0.05, 0.1),
        "flipped": (0.1, 0.2),
        "weighted": (0.1,),
        "grouped": (0.1,),
    },
    "cov": {
        "clean": (0.05, 0.2),
        "shifted": (0.2, 0.4),
        "weighted": (0.2,),
        "grouped": (0.3,),
    },
    "pca": {"clean": (0.1,), "shifted": (0.2, 0.4)},
}
SHIPPED: dict[str, dict[str, tuple[float, ...]]] = {
    "ols": {"hbk": (0.1, 0.2, 0.4), "stars_cyg": (0.05, 0.1, 0.2), "phones": (0.2, 0.4)},
    "gaussian": {"stars_cyg": (0.2,)},
    "logit": {"breast_cancer": (0.05, 0.1)},
    "cov": {"hbk": (0.25,), "stars_cyg": (0.2,)},
    "pca": {"hbk": (0.25,)},
}
# What is wrong with the rows of weighted and grouped samples.
WRONG = {"gamma": "high", "binomial": "high", "poisson": "high", "logit": "flipped"}
# Rows of a group.
GROUP = 4


def simulated(name: str, kind: str, eps_bar: float) -> Any:
    """Return a model of a seeded sample."""
    cls, draw = MODELS[name]
    options: dict[str, Any] = {}
    wrong = kind
    if kind in ("weighted", "grouped"):
        wrong = WRONG.get(name, "shifted")
    sample = draw(np.random.default_rng([5, len(name)]), wrong)
    data = sample if isinstance(sample, tuple) else (sample,)
    rows = np.arange(len(data[0]))
    if kind == "weighted":
        options["freq_weights"] = 1.0 + rows % 3
    if kind == "grouped":
        options["groups"] = rows // GROUP
    return cls(*data, eps_bar=eps_bar, **options)


def bundled(name: str, data: str, eps_bar: float) -> Any:
    """Return a model of a bundled data set."""
    cls, _ = MODELS[name]
    if name in ("cov", "pca"):
        return cls(points(data), eps_bar=eps_bar)
    return cls(*shipped(data), eps_bar=eps_bar)


def robustified() -> Any:
    """Return a negative binomial model of counts, some of them too high."""
    sample = responses(np.random.default_rng([5, 0]), "high", "poisson")
    return rrmstats.robustify(sm.NegativeBinomialP(*sample), 0.2)


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each fit and a function that makes its model."""
    for build, table in ((simulated, SIMULATED), (bundled, SHIPPED)):
        for name, kinds in table.items():
            for kind, bounds in kinds.items():
                for eps_bar in bounds:
                    yield f"{name}, {kind}, {eps_bar:g}", partial(build, name, kind, eps_bar)
    yield "robustify, high, 0.2", robustified


def one_step(model: Any) -> Any:
    """Fit by one step alone."""
    options = {"steps": 1} if "steps" in inspect.signature(model.fit).parameters else {}
    with warnings.catch_warnings():
        # some of these samples have an unstable eps_bar or an unidentified size, and are told
        warnings.simplefilter("ignore")
        return model.fit(**options)


def quantities(res: Any) -> dict[str, NDArray[np.float64]]:
    """Return the minimum: parameters, multiplier, risk, and sums that tell the weights."""
    weights = np.asarray(res.weights, float)
    rows = np.arange(len(weights))
    return {
        "raw_params": np.ravel(res.raw_params).astype(float),
        "params": np.ravel(res.params).astype(float),
        "lambda_": np.array([res.lambda_], float),
        "risk": np.array([res.risk], float),
        "n_eff": np.array([res.n_eff], float),
        "weights": np.array([weights @ weights, weights @ rows, weights @ np.sin(rows)]),
    }


def store(path: Path, fits: Iterable[tuple[str, dict[str, NDArray[np.float64]]]]) -> None:
    """Write the numbers of fits to a file, one in each line."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["fit", "quantity", "position", "value"])
        for name, found in fits:
            for quantity, values in found.items():
                table.writerows(
                    [name, quantity, i, f"{value:.17g}"] for i, value in enumerate(values)
                )


def main() -> None:
    store(STORED, ((name, quantities(one_step(build()))) for name, build in cases()))


if __name__ == "__main__":
    main()
