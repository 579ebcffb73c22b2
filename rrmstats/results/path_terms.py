"""Estimates of the terms of a model along a path, and sentences about how they change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from rrmstats.core.changes import steady_runs
from rrmstats.core.entropy import Array


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Estimates with their names, standard errors and 95 % intervals.

    Attributes
    ----------
    names : list of str, length k
    estimates, errors : ndarray, shape (k,)
    bounds : ndarray, shape (k, 2)
    axes : ndarray, shape (d, q), or None
        Loadings, which are the last d * q of the estimates; their signs are arbitrary.
    """

    names: list[str]
    estimates: Array
    errors: Array
    bounds: Array
    axes: Array | None = None

    def aligned(self, before: Terms) -> Terms:
        """Return the terms with the signs of their loadings as near as can be to earlier ones."""
        if self.axes is None or before.axes is None:
            return self
        signs = np.where((self.axes * before.axes).sum(axis=0) < 0, -1.0, 1.0)
        flips = np.ones(len(self.estimates))
        flips[-self.axes.size :] = np.tile(signs, len(self.axes))
        bounds = np.where(flips[:, None] < 0, -self.bounds[:, ::-1], self.bounds)
        return replace(
            self, estimates=flips * self.estimates, bounds=bounds, axes=signs * self.axes
        )


def terms_of(results: Any) -> Terms:
    """Return the parameters of results, and the loadings where they have these."""
    names, params = list(results.model.data.param_names), np.asarray(results.params, dtype=float)
    if getattr(results, "singular", False):  # a covariance without standard errors
        nothing = np.full((len(names), 3), np.nan)
        return Terms(names, params, nothing[:, 0], nothing[:, 1:])
    terms = Terms(
        names,
        params,
        np.asarray(results.bse, dtype=float),
        np.asarray(results.conf_int(0.05), dtype=float),
    )
    if not hasattr(results, "loadings_bse"):
        return terms
    axes = np.asarray(results.loadings, dtype=float)
    estimates, errors = axes.ravel(), np.asarray(results.loadings_bse, dtype=float).ravel()
    margin = norm.ppf(0.975) * errors
    return Terms(
        [
            *terms.names,
            *(f"loading[{v}, {c}]" for v in results.model.variables for c in terms.names),
        ],
        np.r_[terms.estimates, estimates],
        np.r_[terms.errors, errors],
        np.vstack([terms.bounds, np.c_[estimates - margin, estimates + margin]]),
        axes,
    )


def aligned_terms(results: list[Any]) -> list[Terms]:
    """Return the terms of results along a path, the signs of loadings aligned."""
    found: list[Terms] = []
    for each in results:
        terms = terms_of(each)
        found.append(terms.aligned(found[-1]) if found else terms)
    return found


def change_sentences(frame: pd.DataFrame) -> list[str]:
    """Return where terms lose or gain significance, or change their sign.

    Parameters
    ----------
    frame : DataFrame
        With columns eps_bar, term, estimate, lower and upper, in the order of eps_bar.
    """
    sentences: list[str] = []
    for term, table in frame.groupby("term", sort=False):
        known = table[np.isfinite(table["lower"]) & np.isfinite(table["upper"])]
        if len(known) > 1:
            sentences += _significance(str(term), known) + _sign_changes(str(term), known)
    return sentences


def _significant(table: pd.DataFrame) -> np.ndarray:
    """Tell where the 95 % interval leaves out zero."""
    return np.asarray((table["lower"] > 0) | (table["upper"] < 0))


def _significance(term: str, table: pd.DataFrame) -> list[str]:
    states, grid = _significant(table), table["eps_bar"].to_numpy()
    runs = steady_runs(states)
    return [
        f"{term} {'becomes significant' if _most(states, run) else 'loses significance'} "
        f"from eps_bar = {grid[run[0]]:g} on"
        for run in runs[1:]
    ]


def _sign_changes(term: str, table: pd.DataFrame) -> list[str]:
    positive, grid = table["estimate"].to_numpy() > 0, table["eps_bar"].to_numpy()
    significant = _significant(table)
    runs = steady_runs(positive)
    words = {True: "positive", False: "negative"}
    return [
        f"{term} changes sign from eps_bar = {grid[run[0]]:g} on: "
        f"{words[_most(positive, last)]} before, {words[_most(positive, run)]} after"
        for last, run in pairwise(runs)
        if significant[last[0] : run[1]].any()
    ]


def _most(states: np.ndarray, run: tuple[int, int]) -> bool:
    """Return the state that a run has; single ones may differ from it."""
    return bool(np.mean(states[run[0] : run[1]]) > 0.5)
