"""What mypy and editors know of the public interface; mypy checks it, nothing runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import rrmstats
from rrmstats.core import Solution, minimize
from rrmstats.losses import RegressionProblem, SquaresProblem
from rrmstats.results import (
    MeanPrediction,
    RRMCovResults,
    RRMGLMResults,
    RRMInfluence,
    RRMLogitResults,
    RRMOLSResults,
    RRMPCAResults,
)

if TYPE_CHECKING:
    from typing_extensions import assert_type


def models(endog: np.ndarray, exog: np.ndarray) -> None:
    ols = rrmstats.RRMOLS(endog, exog, eps_bar=0.1)
    assert_type(ols.problem(), RegressionProblem)
    assert_type(ols.fit(), RRMOLSResults)
    assert_type(rrmstats.RRMLogit(endog, exog, 0.1).fit(), RRMLogitResults)
    assert_type(rrmstats.RRMGLM(endog, exog, 0.1).fit(), RRMGLMResults)
    assert_type(rrmstats.RRMPoisson(endog, exog, 0.1).fit(), RRMGLMResults)
    assert_type(rrmstats.RRMPCA(exog, 2, 0.1).fit(), RRMPCAResults)
    assert_type(rrmstats.RRMCov(exog, 0.1).fit(n_starts=10), RRMCovResults)


def formulas(frame: pd.DataFrame) -> None:
    assert_type(rrmstats.ols("y ~ x", frame, 0.1), rrmstats.RRMOLS)
    assert_type(rrmstats.ols("y ~ x", frame, 0.1).fit(), RRMOLSResults)
    assert_type(rrmstats.logit("y ~ x", frame, 0.1).fit(), RRMLogitResults)
    assert_type(rrmstats.glm("y ~ x", frame, 0.1), rrmstats.RRMGLM)
    assert_type(rrmstats.poisson("y ~ x", frame, 0.1), rrmstats.RRMPoisson)
    assert_type(rrmstats.pca("~ x + y", frame, 0.1).fit(), RRMPCAResults)
    assert_type(rrmstats.cov("~ x + y", frame, 0.1).fit(), RRMCovResults)
    assert_type(rrmstats.RRMOLS.from_formula("y ~ x", frame, 0.1), rrmstats.RRMOLS)


def results(ols: RRMOLSResults, logit: RRMLogitResults, cov: RRMCovResults) -> None:
    assert_type(ols.get_influence(), RRMInfluence)
    assert_type(logit.get_prediction(), MeanPrediction)
    assert_type(logit.first_step, RRMLogitResults | None)
    assert_type(ols.trace, pd.DataFrame)
    assert_type(ols.outliers(), np.ndarray | pd.Series)
    assert_type(cov.cov, np.ndarray | pd.DataFrame)
    assert_type(ols.rsquared, float)


def core(endog: np.ndarray, exog: np.ndarray) -> None:
    assert_type(minimize(SquaresProblem(endog, exog), 0.1), Solution)
