"""One run of an experiment, as rows of its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import statsmodels.api as sm

from replication.methods import ERM, RIDGE, Estimates, logit_fits
from replication.samples import TRUE_PLANE, count_bad, separated_strip, wrong_end
from rrmstats import RRMOLS, RRMLogit
from rrmstats.core.entropy import Array
from rrmstats.datasets import breast_cancer

#: Rows of a table, each with its cells by column.
Rows = list[dict[str, Any]]

Data = TypeVar("Data")


def monte_carlo(
    rng: np.random.Generator,
    sample: Callable[..., Data],
    fits: Callable[[Data], Estimates],
    error: Callable[[Array], float],
    levels: Mapping[str, Sequence[float]] | None = None,
) -> Rows:
    """Return the error of each method on new samples.

    Parameters
    ----------
    rng : numpy.random.Generator
    sample : callable
        Takes the generator, and returns a sample.
    fits : callable
        Takes the sample, and returns the estimate of each method.
    error : callable
        Takes an estimate, and returns its error.
    levels : mapping, optional
        Arguments of `sample`, each with the levels it takes in turn.

    Returns
    -------
    list of dict
        One row for each level and method.
    """
    settings: list[dict[str, float]] = [
        {name: value} for name, values in (levels or {}).items() for value in values
    ]
    return [
        {**setting, "method": name, "error": error(np.asarray(estimate))}
        for setting in settings or [{}]
        for name, estimate in fits(sample(rng, **setting)).items()
    ]


def line_picture(rng: np.random.Generator) -> Rows:
    """Return points with their weights, and the line of each method at them."""
    n, bad = 40, 8
    endog, exog = wrong_end(rng, n, bad)
    fits = {eps_bar: RRMOLS(endog, exog, eps_bar=eps_bar).fit() for eps_bar in (0.25, 0.4)}
    table: dict[str, np.ndarray] = {
        "x": exog[:, 1],
        "y": endog,
        "bad": np.arange(n) >= n - bad,
    }
    table |= {f"weight, eps_bar = {e}": fit.weights * n for e, fit in fits.items()}
    table |= {"target": 1 + exog[:, 1], ERM: sm.OLS(endog, exog).fit().fittedvalues}
    table |= {f"RRM, eps_bar = {e}": fit.fittedvalues for e, fit in fits.items()}
    return records(table)


def plane_picture(
    rng: np.random.Generator, methods: Sequence[str], share: float = 0.05, rho: float = 0.99
) -> Rows:
    """Return labeled points, and the separating lines of some methods at their x1."""
    labels, exog = separated_strip(rng, share, rho=rho)
    fits: Estimates = {"target": TRUE_PLANE}
    if methods:
        found = logit_fits((labels, exog))
        fits |= {name: found[name] for name in methods}
    n = len(labels)
    bad = np.arange(n) >= n - count_bad(n, share)
    x1, x2 = exog[:, 1:].T
    table: dict[str, np.ndarray] = {"x1": x1, "x2": x2, "y": labels, "bad": bad}
    table |= {name: -(exog[:, :2] @ theta[:2]) / theta[2] for name, theta in fits.items()}
    return records(table)


def records(table: Mapping[str, np.ndarray]) -> Rows:
    """Return columns as rows."""
    # The stubs of pandas know keys as Hashable only; these are names of columns.
    return pd.DataFrame(dict(table)).to_dict("records")  # type: ignore[return-value]


def cancer_run(rng: np.random.Generator, eps_bar: float = 0.15, flips: int = 40) -> Rows:
    """Return confusion matrices on test rows, after labels of training rows were flipped."""
    data = breast_cancer.load_pandas()
    endog = data.endog.to_numpy(float)
    exog = sm.add_constant(data.exog.to_numpy(float))
    train, test = np.split(rng.permutation(len(endog)), [int(0.6 * len(endog))])
    y, x = flip_surest(endog[train], exog[train], flips), exog[train]
    estimates = logit_fits((y, x), eps_bar)
    estimates[RIDGE] = RRMLogit(y, x, eps_bar=eps_bar, penalty="l2").fit().params
    return [
        {"method": name} | confusion(endog[test] == 1, exog[test] @ estimate > 0)
        for name, estimate in estimates.items()
    ]


def flip_surest(endog: Array, exog: Array, flips: int) -> Array:
    """Return labels where the ones that maximum likelihood is surest of are made zeros."""
    scores = exog @ sm.Logit(endog, exog).fit(disp=0).params
    flipped = endog.copy()
    flipped[np.argsort(np.where(endog == 1, -scores, np.inf))[:flips]] = 0
    return flipped


def confusion(actual: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the accuracy and the four counts of a confusion matrix."""
    counts = {
        f"actual {i}, predicted {j}": int(((actual == i) & (predicted == j)).sum())
        for i in (1, 0)
        for j in (1, 0)
    }
    return {"accuracy": float((actual == predicted).mean())} | counts
