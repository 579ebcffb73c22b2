"""Fits that benchmarks/speed.py times, ours and those of others, and the clock.

A method is named and takes the data of its family: endog and exog, or points. Those of R are timed
inside R, by `peers.R`. Python counts the time of the process, R that of user and system, so that
what else the machine does counts little.
"""

import functools
import importlib.util
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import statsmodels.api as sm

from replication.samples import one_sided_outliers, random_flips, shifted_cluster
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

Data = tuple[np.ndarray, ...]
Fit = Callable[..., Any]
SCRIPT = Path(__file__).with_name("peers.R")
# R is stopped after so many seconds and counts as not measured.
PATIENCE = 90


def regression(n: int, k: int) -> Data:
    return one_sided_outliers(np.random.default_rng(0), n, np.ones(k), share=0.1, shift=10.0)


def labels(n: int, k: int) -> Data:
    return random_flips(np.random.default_rng(0), n, np.full(k, 1 / np.sqrt(k)), share=0.05)


def points(n: int, d: int) -> Data:
    """Return a cloud with two components, a tenth of it far away."""
    rng = np.random.default_rng(0)
    spread = np.r_[10.0, 5.0, np.ones(d)][:d]
    shift = 50 * rng.standard_normal(d)
    return (shifted_cluster(rng, n, np.diag(spread**2), share=0.1, shift=shift),)


def counts(n: int, k: int) -> Data:
    """Return Poisson counts, a tenth of them far too large."""
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal((n, k - 1)))
    endog = rng.poisson(np.exp(exog @ np.r_[1.0, np.full(k - 1, 0.2)])).astype(float)
    bad = rng.random(n) < 0.1
    endog[bad] = 5 * endog[bad] + 30
    return endog, exog


def wide_regression(share: float, rng: np.random.Generator) -> tuple[Data, np.ndarray, Data]:
    """Return data with the shape and the bad responses of TERM's, which are bad, and test data.

    3,268 rows of 409 columns, whose singular values fall as j^-0.75; bad responses are N(5, 5^2)
    (Li, Beirami, Sanjabi and Smith, 2021).
    """
    n, k, n_test = 3268, 409, 800
    turn = np.linalg.qr(rng.standard_normal((k - 1, k - 1)))[0]
    exog = rng.standard_normal((n + n_test, k - 1)) * np.arange(1, k) ** -0.75 @ turn
    exog = sm.add_constant(exog / exog.std(axis=0))
    mean = exog @ np.r_[1.0, rng.standard_normal(k - 1) / np.sqrt(k)]
    endog = mean / mean.std() + 0.7 * rng.standard_normal(n + n_test)
    bad = rng.random(n) < share
    dirty = np.where(bad, rng.normal(5.0, 5.0, n), endog[:n])
    return (dirty, exog[:n]), bad, (endog[n:], exog[n:])


def py_lmrob(endog: np.ndarray, exog: np.ndarray) -> Any:
    from pylmrob import LmRob

    return LmRob().fit(exog[:, 1:], endog)  # it adds the constant, and has standard errors


def robustat(endog: np.ndarray, exog: np.ndarray) -> Any:
    from robustat_py import MMEstimator

    return MMEstimator(seed=1).fit(exog, endog)


def det_smm(endog: np.ndarray, exog: np.ndarray) -> Any:
    from statsmodels.robust.resistant_linear_model import RLMDetSMM

    return RLMDetSMM(endog, exog).fit()


def huber(endog: np.ndarray, exog: np.ndarray) -> Any:
    from sklearn.linear_model import HuberRegressor

    return HuberRegressor(alpha=0.0, fit_intercept=False, max_iter=1000).fit(exog, endog)


def min_cov_det(data: np.ndarray) -> Any:
    from sklearn.covariance import MinCovDet

    return MinCovDet(random_state=0).fit(data)


def cov_det_mcd(data: np.ndarray) -> Any:
    from statsmodels.robust.covariance import CovDetMCD

    return CovDetMCD(data).fit(h=(sum(data.shape) + 1) // 2)


def two_steps(endog: np.ndarray, exog: np.ndarray) -> np.ndarray:
    return RRMOLS(endog, exog, 0.2).fit().bse


PYTHON: dict[str, Fit] = {
    "RRMOLS": lambda endog, exog: RRMOLS(endog, exog, 0.2).fit(steps=1),
    "RRMOLS, two steps": two_steps,
    "RRMOLS, auto": lambda endog, exog: RRMOLS(endog, exog).fit().bse,
    "OLS": lambda endog, exog: sm.OLS(endog, exog).fit().bse,
    "RLM": lambda endog, exog: sm.RLM(endog, exog).fit().bse,
    "pylmrob": py_lmrob,
    "robustat-py": robustat,
    "RLMDetSMM": det_smm,
    "HuberRegressor": huber,
    "RRMLogit": lambda endog, exog: RRMLogit(endog, exog, 0.1).fit(steps=1),
    "RRMLogit, two steps": lambda endog, exog: RRMLogit(endog, exog, 0.1).fit().bse,
    "Logit": lambda endog, exog: sm.Logit(endog, exog).fit(disp=0).bse,
    "RRMPoisson, two steps": lambda endog, exog: RRMPoisson(endog, exog, 0.2).fit().bse,
    "Poisson": lambda endog, exog: sm.Poisson(endog, exog).fit(disp=0).bse,
    "RRMCov": lambda data: RRMCov(data, 0.2).fit(steps=1),
    "MinCovDet": min_cov_det,
    "CovDetMCD": cov_det_mcd,
    "RRMPCA": lambda data: RRMPCA(data, 2, 0.2).fit(steps=1),
    "RRMPCA, two steps": lambda data: RRMPCA(data, 2, 0.2).fit(),
    "eigh(cov)": lambda data: np.linalg.eigh(np.cov(data.T)),
}
R = ("lmrob", "ltsReg", "glmrob", "covMcd", "CovMMest", "PcaHubert")
# Modules without which a method is left out.
NEEDS = {
    "HuberRegressor": "sklearn",
    "pylmrob": "pylmrob",
    "robustat-py": "robustat_py",
    "MinCovDet": "sklearn",
    "RLMDetSMM": "statsmodels.robust.resistant_linear_model",
    "CovDetMCD": "statsmodels.robust.resistant_linear_model",
}
# What makes the data of a family, and its methods; ours come first.
FAMILIES: dict[str, tuple[Callable[[int, int], Data], tuple[str, ...]]] = {
    "regression": (
        regression,
        (
            *("RRMOLS", "RRMOLS, two steps", "OLS", "RLM", "RLMDetSMM", "HuberRegressor"),
            *("pylmrob", "robustat-py", "lmrob", "ltsReg"),
        ),
    ),
    "classification": (labels, ("RRMLogit", "Logit", "glmrob")),
    "covariance": (points, ("RRMCov", "MinCovDet", "CovDetMCD", "covMcd", "CovMMest")),
    "components": (points, ("RRMPCA", "eigh(cov)", "PcaHubert")),
}


def is_ours(method: str) -> bool:
    return method.startswith("RRM")


@functools.cache
def is_available(method: str) -> bool:
    if method in R:
        return has_r_packages()
    needed = NEEDS.get(method)
    return needed is None or importlib.util.find_spec(needed) is not None


@functools.cache
def has_r_packages() -> bool:
    if shutil.which("Rscript") is None:
        return False
    call = ["Rscript", "-e", "library(robustbase); library(rrcov)"]
    return subprocess.run(call, capture_output=True).returncode == 0


def r_blas() -> str:
    """Return the name of the BLAS library that R uses."""
    call = ["Rscript", "-e", "cat(basename(extSoftVersion()[['BLAS']]))"]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


def missing() -> list[str]:
    """Return the methods that cannot be timed here."""
    return [name for name in (*PYTHON, *R) if not is_available(name)]


def seconds(method: str, data: Data) -> float:
    """Return the time of one fit; NaN where it fails."""
    return r_seconds(method, data) if method in R else python_seconds(PYTHON[method], data)


def python_seconds(fit: Fit, data: Data) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        fit(*data)
        return time.process_time() - start


def r_seconds(method: str, data: Data) -> float:
    table = np.column_stack(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        table.ravel(order="F").tofile(path)
        call = ["Rscript", SCRIPT, method, path, *map(str, table.shape)]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return float("nan")
    return float(done.stdout) if done.returncode == 0 else float("nan")


def least_seconds(
    methods: Iterable[str], data: Data, repeats: int, long: float = np.inf
) -> dict[str, float]:
    """Return the least time of each method's repeats, which are taken in turn.

    A method that takes longer than `long` is not repeated; nor is R, which repeats by itself.
    """
    least = {name: seconds(name, data) for name in methods}
    for _ in range(repeats - 1):
        for name in least:
            if name not in R and least[name] < long:
                least[name] = min(least[name], seconds(name, data))
    return least
