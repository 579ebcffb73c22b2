"""Samples on which second_step.py measures: regressions and points whose bad rows come first."""

from typing import NamedTuple

import numpy as np


class Regression(NamedTuple):
    """Responses, predictors, the number of bad rows, and the true coefficients."""

    endog: np.ndarray
    exog: np.ndarray
    bad: int
    truth: np.ndarray


class Points(NamedTuple):
    """Points, the number of bad ones, and the true covariance."""

    data: np.ndarray
    bad: int
    cov: np.ndarray


def regression(rng: np.random.Generator, n: int, k: int, share: float, kind: str) -> Regression:
    """Return a regression whose coefficients are all 1; `kind` tells noise or bad rows."""
    exog = np.c_[np.ones(n), rng.normal(size=(n, k - 1))]
    noise = odd_noise(rng, kind, exog, rng.normal(size=n))
    bad = round(share * n)
    truth = np.ones(k)
    endog = exog @ truth + noise
    spoil(rng, kind, endog, exog, bad)
    return Regression(endog, exog, bad, truth)


def odd_noise(
    rng: np.random.Generator, kind: str, exog: np.ndarray, normal: np.ndarray
) -> np.ndarray:
    """Return noise of one kind; standard normal where the kind is one of bad rows."""
    n, k = exog.shape
    if kind == "t3":
        return rng.standard_t(3, size=n)
    if kind == "uniform":
        return rng.uniform(-1.7, 1.7, size=n)
    if kind == "beta":
        return (rng.beta(2, 2, size=n) - 0.5) * np.sqrt(20)
    if kind == "laplace":
        return rng.laplace(size=n) / np.sqrt(2)
    if kind == "growing":
        return normal * (0.3 + abs(exog[:, 1]))
    if kind == "growing with the mean":
        return normal * np.exp(0.5 * exog @ np.ones(k))
    if kind == "lognormal":
        return np.exp(normal) - np.exp(0.5)
    return normal


def spoil(
    rng: np.random.Generator, kind: str, endog: np.ndarray, exog: np.ndarray, bad: int
) -> None:
    """Make the first rows bad, in place."""
    rows = slice(bad)
    if kind in ("10", "5", "3.5"):
        endog[rows] += float(kind)
    if kind in ("leverage", "near"):
        exog[rows, 1:] += 10
        endog[rows] = (-100 if kind == "leverage" else -20) + rng.normal(size=bad)
    if kind == "wide":
        endog[rows] += rng.normal(size=bad) * 8
    if kind == "two":
        endog[: bad // 2] += 8
        endog[bad // 2 : bad] -= 5
    if kind == "sign":
        endog[rows] = -exog[rows] @ np.ones(exog.shape[1]) + rng.normal(size=bad)


def without_intercept(rng: np.random.Generator, n: int, k: int) -> Regression:
    """Return a random design of Koller and Stahel: all normal, no constant, coefficients 0."""
    exog = rng.normal(size=(n, k))
    return Regression(rng.normal(size=n), exog, 0, np.zeros(k))


def parabola(rng: np.random.Generator, n: int) -> Regression:
    """Return y = x^2 with a little noise, and the line that least squares tends to."""
    x = rng.normal(size=n)
    exog = np.c_[np.ones(n), x]
    return Regression(x**2 + 0.5 * rng.normal(size=n), exog, 0, np.array([1.0, 0.0]))


def cluster(
    rng: np.random.Generator, n: int, d: int, share: float, distance: float, spread: float
) -> Points:
    """Return spherical points; the bad ones are a cluster so far away and of this spread."""
    data = rng.normal(size=(n, d))
    bad = round(share * n)
    data[:bad] = spread * data[:bad] + distance / np.sqrt(d)
    return Points(data, bad, np.eye(d))


def two_clusters(rng: np.random.Generator, n: int, d: int, share: float) -> Points:
    """Return spherical points; the bad ones are 8 away on one side or 5 on the other."""
    data = rng.normal(size=(n, d))
    bad = round(share * n)
    data[: bad // 2] += 8 / np.sqrt(d)
    data[bad // 2 : bad] -= 5 / np.sqrt(d)
    return Points(data, bad, np.eye(d))


def radial(rng: np.random.Generator, n: int, d: int, share: float, factor: float) -> Points:
    """Return spherical points; the bad ones have so many times their variance."""
    data = rng.normal(size=(n, d))
    bad = round(share * n)
    data[:bad] *= np.sqrt(factor)
    return Points(data, bad, np.eye(d))


def correlated(
    rng: np.random.Generator, n: int, d: int, share: float, shape: str, kind: str
) -> Points:
    """Return points with a covariance that is hard, A09 or ALYZ, and one kind of bad points.

    Point and cluster lie along the axis of the smallest variance, where they can do most harm:
    at 5 sqrt(d) standard deviations and with a spread of 0.01, or at 5 d^(1/4) and as wide as the
    good ones. Radial bad points have five times the variance of the good ones.
    """
    cov = alternating(d) if shape == "A09" else random_correlation(rng, d)
    values, axes = np.linalg.eigh(cov)
    root = axes * np.sqrt(values) @ axes.T
    standard = rng.normal(size=(n, d))
    bad = round(share * n)
    if kind == "radial":
        standard[:bad] *= np.sqrt(5)
    elif kind == "point":
        standard[:bad] = 0.01 * standard[:bad] + 5 * np.sqrt(d) * axes[:, 0]
    else:
        standard[:bad] += 5 * d**0.25 * axes[:, 0]
    return Points(standard @ root, bad, cov)


def alternating(d: int) -> np.ndarray:
    """Return the correlations (-0.9)^|i - j|."""
    steps = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return (-0.9) ** steps


def random_correlation(rng: np.random.Generator, d: int, condition: float = 100.0) -> np.ndarray:
    """Return random correlations with a given condition number.

    As Agostinelli, Leung, Yohai and Zamar (2015): random axes, then the largest eigenvalue is set
    again and again until the matrix with a diagonal of 1 has that condition number.
    """
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    values = np.r_[1.0, np.sort(rng.uniform(1, condition, d - 2)), condition]
    for _ in range(100):
        cov = axes * values @ axes.T
        spread = np.sqrt(np.diag(cov))
        corr = cov / np.outer(spread, spread)
        values, axes = np.linalg.eigh(corr)
        if abs(values[-1] / values[0] / condition - 1) < 1e-6:
            break
        values[-1] = condition * values[0]
    return corr
