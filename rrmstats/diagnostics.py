"""Diagnostics of robust fits: functions of arrays, and the tables made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import f, norm
from statsmodels.iolib.table import SimpleTable
from statsmodels.stats.multitest import multipletests

from rrmstats.core.consistency import efficient_ratio
from rrmstats.core.entropy import Array

# Efficiency of the weights under which the noise is measured a second time.
NOISE_EFFICIENCY = 0.95
LATEX_ROWS = 30


class Table(pd.DataFrame):
    """A data frame that notebooks can also show in LaTeX, cut to LATEX_ROWS rows."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def _repr_latex_(self) -> str:
        shown = self.head(LATEX_ROWS)
        cells = [[_cell(value) for value in row] for row in shown.itertuples(index=False)]
        stubs = [str(label) for label in shown.index]
        if len(self) > LATEX_ROWS:
            cells.append(["..."] * self.shape[1])
            stubs.append(f"(+{len(self) - LATEX_ROWS} more)")
        table = SimpleTable(cells, [str(name) for name in self.columns], stubs)
        return str(table.as_latex_tabular())


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Meaningless(AttributeError, NotImplementedError):
    """An attribute of statsmodels' results that has no meaning for a robust fit."""


def hat_values(exog: Array, weights: Array) -> Array:
    """Return the diagonal of the weighted hat matrix, shape (n,).

    Parameters
    ----------
    exog : ndarray, shape (n, k)
    weights : ndarray, shape (n,)
        Weights of the rows.
    """
    root = np.sqrt(weights)[:, None] * exog
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    rank = singular > singular[0] * max(root.shape) * np.finfo(float).eps
    return np.einsum("ni,ni->n", left[:, rank], left[:, rank])


def refined_variance(resid: Array, scale: float, share: Array | None, inflation: float) -> float:
    """Return the variance of the noise of the rows that are not far out.

    The scale of the first step counts outliers as part of the noise in so far as eps_bar exceeds
    their share. Under efficient weights far outliers have none, and what the weights take from
    the Gaussian noise is known: they add 2 / lambda to its precision.

    Parameters
    ----------
    resid : ndarray, shape (n,)
    scale : float
        Robust variance of the residuals.
    share : ndarray, shape (n,), or None
        Prior weights that sum to one; None where they are equal.
    inflation : float
        By how much fitted residuals fall short.
    """
    if scale == 0:
        return 0.0
    lambda_ = 2 * scale / (1 / efficient_ratio(NOISE_EFFICIENCY) - 1)
    weights = np.exp(-(resid**2) / lambda_)
    if share is not None:
        weights = weights * share
    variance = inflation * float(weights @ resid**2 / weights.sum())
    return variance / max(1 - 2 * variance / lambda_, np.finfo(float).eps)


class RRMInfluence:
    """Leverage and influence of the rows of a linear regression.

    Parameters
    ----------
    results : RRMOLSResults

    Attributes
    ----------
    hat_matrix_diag : ndarray, shape (n,)
        Weighted hat values.
    resid_studentized : ndarray, shape (n,)
        Residuals in units of their standard deviation.
    dfbeta : ndarray, shape (n, k)
        What a row does to the parameters: its influence function over the number of rows.
    """

    def __init__(self, results: Any) -> None:
        self.results = results
        self.hat_matrix_diag = hat_values(results.model.exog, np.asarray(results.weights))
        self.dfbeta = results._influence() / results._total
        self.resid_studentized = studentised(np.asarray(results.resid), results.scale)

    @property
    def cooks_distance(self) -> tuple[Array, Array]:
        """Cook's distance and its p-value under F, shapes (n,)."""
        inverse = np.linalg.pinv(self.results.cov_params_default, hermitian=True)
        distance = np.einsum("ni,ij,nj->n", self.dfbeta, inverse, self.dfbeta)
        distance /= self.results.rank
        free = (self.results.rank, self.results.df_resid_inference)
        return distance, np.asarray(f.sf(distance, *free))

    def summary_frame(self) -> pd.DataFrame:
        """Return hat values, residuals, Cook's distance and effects on the parameters."""
        frame = pd.DataFrame(
            self.dfbeta,
            index=self.results.model.data.row_labels,
            columns=[f"dfb_{name}" for name in self.results.model.exog_names],
        )
        frame["cooks_d"] = self.cooks_distance[0]
        frame["standard_resid"] = self.resid_studentized
        frame["hat_diag"] = self.hat_matrix_diag
        frame["weight"] = np.asarray(self.results.weights)
        return frame


def studentised(resid: Array, variance: float) -> Array:
    """Return residuals in standard deviations; at an exact fit zero or infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(resid == 0, 0.0, resid / np.sqrt(variance)))


def outlier_frame(standardised: Array, method: str, alpha: float, index: Any) -> pd.DataFrame:
    """Return a test of every standardised residual, with p-values corrected for their number."""
    p = 2 * norm.sf(np.abs(standardised))
    corrected = multipletests(p, alpha=alpha, method=method)[1]
    return pd.DataFrame(
        {"student_resid": standardised, "unadj_p": p, f"{method}(p)": corrected}, index=index
    )


class ProbabilityPrediction:
    """Predicted probabilities with intervals, by the delta method on the linear predictor.

    Attributes
    ----------
    predicted : ndarray, shape (m,)
        Probabilities.
    se : ndarray, shape (m,)
        Their standard errors.
    """

    def __init__(self, exog: Array, params: Array, cov_params: Array, index: Any) -> None:
        self._linear = exog @ params
        self._linear_se = np.sqrt(np.einsum("ni,ij,nj->n", exog, cov_params, exog))
        self._index = index
        self.predicted = expit(self._linear)
        self.se = self.predicted * (1 - self.predicted) * self._linear_se

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals within (0, 1), shape (m, 2)."""
        reach = norm.ppf(1 - alpha / 2) * self._linear_se
        return np.asarray(expit(np.c_[self._linear - reach, self._linear + reach]))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return predictions, standard errors and intervals as a data frame."""
        low, high = self.conf_int(alpha).T
        return pd.DataFrame(
            {"predicted": self.predicted, "se": self.se, "ci_lower": low, "ci_upper": high},
            index=self._index,
        )
