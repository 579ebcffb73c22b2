"""Responses of generalized linear models, clean or with bad ones first."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.special import expit

from replication.samples.parts import Regression, count_bad, normal_design
from rrmstats.core.entropy import Array

FamilyName = Literal["poisson", "gamma", "binomial"]
FAMILY_NAMES: tuple[FamilyName, ...] = get_args(FamilyName)
Dirt = Literal["clean", "low at the top", "high", "leverage"]
DIRT: tuple[Dirt, ...] = get_args(Dirt)
#: True parameters of each family.
RESPONSE_PARAMS: dict[FamilyName, tuple[float, ...]] = {
    "poisson": (1.0, 0.5, -0.25, 0.0),
    "gamma": (1.0, 0.5, -0.25, 0.0),
    "binomial": (0.0, 0.8, -0.4, 0.0),
}
# Shape of gamma responses, and trials of binomial ones.
SHAPE, TRIALS = 4.0, 20
# Predictors of leverage rows, and their spread.
PLACE, SPREAD = (3.0, -3.0, 0.0), 0.3
# Factors of gamma responses that are too low and too high.
LOW, HIGH = 0.01, 20.0


def dirty_responses(
    rng: np.random.Generator,
    family: FamilyName = "poisson",
    kind: Dirt = "high",
    n: int = 300,
    share: float = 0.1,
) -> Regression:
    """Return responses with normal predictors whose first rows are bad.

    Parameters
    ----------
    rng : numpy.random.Generator
    family : {"poisson", "gamma", "binomial"}
        With log, log and logit link, and `RESPONSE_PARAMS` as parameters; gamma responses have
        shape 4, binomial ones 20 trials.
    kind : {"clean", "low at the top", "high", "leverage"}
        Wrong rows are those of the largest means, with counts of zero (gamma: a hundredth of
        what they were); or any rows with counts five times as large plus 30 (gamma: 20 times as
        large; binomial: all successes); or rows with predictors far out and low responses.
    n : int, optional
        Number of rows.
    share : float, optional
        Share of bad rows.

    Returns
    -------
    endog : ndarray, shape (n,); of the binomial family (n, 2), successes and failures
    exog : ndarray, shape (n, 4)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import dirty_responses
    >>> endog, exog = dirty_responses(np.random.default_rng(0), "poisson", "high", 100)
    >>> bool(endog[:10].min() >= 30)
    True
    """
    params = np.array(RESPONSE_PARAMS[family])
    bad = 0 if kind == "clean" else count_bad(n, share)
    exog = normal_design(rng, n, len(params))
    if kind == "leverage":
        exog[:bad, 1:] = PLACE + SPREAD * rng.standard_normal((bad, len(params) - 1))
    if kind == "low at the top":
        exog = exog[np.argsort(-exog @ params, kind="stable")]
    eta = exog @ params
    wrong = slice(bad)
    if family == "binomial":
        success = rng.binomial(TRIALS, expit(eta)).astype(float)
        success[wrong] = TRIALS if kind == "high" else 0.0
        return np.c_[success, TRIALS - success], exog
    endog = _positive(rng, family, np.exp(eta))
    if family == "poisson":
        endog[wrong] = 5 * endog[wrong] + 30 if kind == "high" else 0.0
    else:
        endog[wrong] *= HIGH if kind == "high" else LOW
    return endog, exog


def _positive(rng: np.random.Generator, family: FamilyName, mean: Array) -> Array:
    """Return counts or gamma responses."""
    if family == "poisson":
        return rng.poisson(mean).astype(float)
    return rng.gamma(SHAPE, mean / SHAPE)
