"""The bound eps_bar of a model: its check, its automatic choice, whether it is large enough."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from statsmodels.tools.sm_exceptions import ModelWarning

from rrmstats.core.choice import STEP
from rrmstats.core.comparison import compare
from rrmstats.core.entropy import check_eps_bar
from rrmstats.core.estimate import Estimate
from rrmstats.core.problem import Problem
from rrmstats.core.search import DEFAULT_SEED
from rrmstats.core.setting import Setting
from rrmstats.core.steps import (
    MOST_ROWS,
    differing_bound,
    largest_bound,
    robust_estimate,
    take_steps,
)
from rrmstats.results.bound import caller_level
from rrmstats.results.inference import Inference
from rrmstats.results.stability import Stability

AUTO = "auto"
# The largest value of an automatic choice.
EPS_BAR_MAX = 0.5
# Rows per parameter, of those that eps_bar leaves, below which a fit warns.
FEW_ROWS = 3.0


def checked_bound(eps_bar: Any) -> float | str:
    """Return `eps_bar` as a number in [0, 1), or "auto"."""
    if isinstance(eps_bar, str):
        if eps_bar != AUTO:
            raise TypeError(f"eps_bar must be a number in [0, 1) or 'auto', got {eps_bar!r}")
        return AUTO
    return check_eps_bar(eps_bar)


def checked_most(eps_bar_max: Any) -> float:
    """Return the largest value of an automatic choice."""
    number = isinstance(eps_bar_max, int | float | np.number)
    if isinstance(eps_bar_max, bool) or not (number and 0 < eps_bar_max < 1):
        raise ValueError(f"eps_bar_max must be a number in (0, 1), got {eps_bar_max!r}")
    return float(eps_bar_max)


def warn_of_bound(problem: Problem, setting: Setting, automatic: bool) -> None:
    """Warn where a bound gives up a majority, or leaves few rows for the parameters."""
    eps_bar, k = setting.eps_bar, min(problem.n_params, problem.subset_size)
    left = (1 - eps_bar) * setting.wnobs(problem.n_obs) / k
    if eps_bar > 0.5:
        warnings.warn(
            f"eps_bar={eps_bar:g} lets the fit give up a majority of the rows: it may describe a "
            "minority that agrees by chance. Use eps_bar <= 0.5",
            ModelWarning,
            stacklevel=caller_level(),
        )
    elif eps_bar > 0 and left < FEW_ROWS:
        warnings.warn(
            f"eps_bar={eps_bar:g}{', chosen automatically,' if automatic else ''} leaves "
            f"(1 - eps_bar) * nobs / k = {left:.1f} rows per parameter (k = {k}), fewer than "
            f"{FEW_ROWS:g}: the fit follows the noise. "
            f"{'Drop' if automatic else 'Lower eps_bar, drop'} predictors or add data",
            ModelWarning,
            stacklevel=caller_level(),
        )


def sampled(model: Any) -> tuple[Any, np.ndarray]:
    """Return a model of about MOST_ROWS random rows, and these; itself where it has fewer.

    Groups are drawn as a whole.
    """
    n = len(model.endog)
    if n <= MOST_ROWS:
        rows = np.arange(n)
        return model if model._held is None else model._part(rows), rows
    rng = np.random.default_rng(DEFAULT_SEED)
    rows = model._sampled_groups(MOST_ROWS, rng)
    if rows is None:
        rows = np.sort(rng.choice(n, MOST_ROWS, replace=False))
    return model._part(rows), rows


def robust_fit(model: Any, setting: Setting) -> Estimate:
    """Return the second step at the largest bound, on a sample of many rows.

    Parameters
    ----------
    model : RRMModel
    setting : Setting
        Options of the search; its own bound plays no part.
    """
    part = sampled(model)[0]._with_eps_bar(EPS_BAR_MAX)
    problem = part._search_problem()
    asked = replace(setting, freq_weights=part._search_counts)
    bound = largest_bound(problem, asked.wnobs(problem.n_obs))
    return robust_estimate(problem, replace(asked, eps_bar=bound))


def checked_stability(model: Any, estimate: Estimate) -> Stability:
    """Tell whether a larger eps_bar changes a fit; many rows are fitted again on a sample.

    Parameters
    ----------
    model : RRMModel
        The model of the fit.
    estimate : Estimate
        What the fit found.
    """
    eps_bar, why = estimate.setting.eps_bar, _not_compared(model, estimate)
    if why:
        return Stability(eps_bar=eps_bar, why=why)
    own, (part, rows) = estimate, (model, np.arange(len(model.endog)))
    if np.isnan(own.largest):
        part, rows = sampled(model)
        setting = replace(estimate.setting, freq_weights=part._search_counts)
        own = take_steps(part._search_problem(), setting)
    if own.largest < eps_bar + STEP:
        return Stability(eps_bar=eps_bar, why="the data have too few rows for a larger eps_bar")
    found = None if own.robust is None else compare(own, own.robust)
    if own.robust is None or found is None or found.agrees:
        return Stability(eps_bar=eps_bar, largest=own.largest)
    plain = Inference("sandwich", {}, None)
    other = part._with_eps_bar(own.largest)
    before, after = part._results(own, plain), other._results(own.robust, plain)
    flags, robust_flags = before._unit_flags(), after._unit_flags()
    labels = row_labels(model, rows) if not part._weighs_groups else part.group_labels
    return Stability(
        eps_bar=eps_bar,
        largest=own.largest,
        differs_at=differing_bound(own, lambda other: compare(own, other).agrees),
        pvalue=found.pvalue,
        terms=tuple(after.term_names[i] for i in found.moved),
        gained=tuple(labels[i] for i in np.flatnonzero(robust_flags & ~flags)),
        lost=tuple(labels[i] for i in np.flatnonzero(flags & ~robust_flags)),
        unit="groups" if part._weighs_groups else "rows",
    )


def _not_compared(model: Any, estimate: Estimate) -> str:
    """Return why larger bounds were not compared; empty where they can be."""
    if model._incomparable:
        return str(model._incomparable)
    if not estimate.setting.stability:
        return "stability=False"
    if estimate.setting.eps_bar == 0:
        return "no row may be bad, since eps_bar is 0"
    if estimate.first is None:
        return "the fit has one step, and second steps are compared"
    return "" if estimate.solution.converged else "the fit did not converge"


def row_labels(model: Any, rows: np.ndarray) -> list[Any]:
    """Return the labels of some rows, or their positions where they have none."""
    labels = model._held.labels_at(rows) if model._held else model.data.row_labels
    if labels is None:
        return list(rows.tolist())
    return list(labels if model._held else labels[rows])
