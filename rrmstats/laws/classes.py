"""Labels of several classes some of which are wrong, given probabilities of the right ones.

A label whose right class is j is seen as k with probability T[j, k]. Probabilities from elsewhere
may be too sure or not sure enough, so that they are raised to a power first, which is fitted too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import MAX_STEPS, TINY


class WrongLabels(NamedTuple):
    """Which labels are wrong.

    Attributes
    ----------
    prob_bad : ndarray, shape (n,)
        Probability of each label to be wrong.
    eps : float
        Share of wrong labels, at most the bound.
    noise : ndarray, shape (c, c)
        Probabilities T of labels (columns) of rows of each right class (rows).
    log_likelihood : float
    n_params : int
        Parameters besides the power.
    """

    prob_bad: Array
    eps: float
    noise: Array
    log_likelihood: float
    n_params: int


def wrong_labels(probabilities: Array, codes: np.ndarray, eps_bar: float) -> WrongLabels:
    """Return which labels are wrong, under the explanation that BIC prefers.

    No label is wrong; wrong ones are as frequent in each class, and spread over the others; or
    each pair of classes has a rate of its own.

    Parameters
    ----------
    probabilities : ndarray, shape (n, c)
        Probabilities of the classes from fits without the row.
    codes : ndarray of int, shape (n,)
        Numbers of the labels.
    eps_bar : float
        Largest share of wrong labels.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.classes import wrong_labels
    >>> right = np.arange(300) % 3
    >>> labels = np.where(np.arange(300) < 30, (right + 1) % 3, right)
    >>> found = wrong_labels(0.05 + 0.85 * np.eye(3)[right], labels, 0.4)
    >>> int((found.prob_bad > 0.5).sum()), round(found.eps, 1)
    (30, 0.1)
    """
    n, c = probabilities.shape
    log_p = np.log(np.maximum(probabilities, TINY))
    fits = [_fitted(log_p, codes, np.eye(c), 0, eps_bar)]
    if eps_bar > 0 and c > 1:
        start = np.full((c, c), 0.5 * eps_bar / (c - 1))
        np.fill_diagonal(start, 1 - 0.5 * eps_bar)
        fits += [_fitted(log_p, codes, start, each, eps_bar) for each in (1, c * (c - 1))]
    return max(fits, key=lambda fit: fit.log_likelihood - 0.5 * fit.n_params * np.log(n))


def _fitted(
    log_p: Array, codes: np.ndarray, noise: Array, n_params: int, eps_bar: float
) -> WrongLabels:
    """Return the fit by EM of noise with so many parameters."""
    power, last, rows = 1.0, -np.inf, np.arange(len(codes))
    seen = np.eye(len(noise))[codes]
    for _ in range(MAX_STEPS):
        power, value = _power(log_p, codes, noise)
        right = _tempered(log_p, power) * noise[:, codes].T
        right /= right.sum(axis=1, keepdims=True)
        if value - last < 1e-6 or not n_params:
            break
        last = value
        noise = _bounded(right.T @ seen, n_params, eps_bar)
    prob_bad = 1 - right[rows, codes]
    return WrongLabels(prob_bad, min(float(prob_bad.mean()), eps_bar), noise, value, n_params)


def _tempered(log_p: Array, power: float) -> Array:
    """Return probabilities raised to a power, which sum to one, shape (n, c)."""
    found = np.exp(power * (log_p - log_p.max(axis=1, keepdims=True)))
    return found / found.sum(axis=1, keepdims=True)


def _power(log_p: Array, codes: np.ndarray, noise: Array) -> tuple[float, float]:
    """Return the power of largest likelihood, and the logarithm of that."""

    def loss(log_power: float) -> float:
        chance = _tempered(log_p, float(np.exp(log_power))) * noise[:, codes].T
        return -float(np.log(np.maximum(chance.sum(axis=1), TINY)).sum())

    # From a quarter as sure as given to 16 times.
    ends = -2.0 * float(np.log(2.0)), 4.0 * float(np.log(2.0))
    found = minimize_scalar(loss, bounds=ends, method="bounded")
    return float(np.exp(found.x)), -float(found.fun)


def _bounded(counts: Array, n_params: int, eps_bar: float) -> Array:
    """Return rates of labels from expected counts (c, c), with at most eps_bar wrong in all."""
    total, c = counts.sum(), len(counts)
    wrong = counts * (1 - np.eye(c))
    if n_params == 1:
        wrong = counts.sum(axis=1)[:, None] * (1 - np.eye(c)) * wrong.sum() / (total * (c - 1))
    wrong *= min(1.0, eps_bar * total / max(wrong.sum(), TINY))
    rates = wrong / np.maximum(counts.sum(axis=1), TINY)[:, None]
    return rates + np.diag(1 - rates.sum(axis=1))
