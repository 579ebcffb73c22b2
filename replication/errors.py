"""How far an estimate is from the truth of its sample."""

from __future__ import annotations

import numpy as np

from replication.samples import TRUE_AXIS, TRUE_COV, TRUE_PLANE
from rrmstats.core.entropy import Array


def relative_error(estimate: Array, truth: Array) -> float:
    """Return the norm of the error over that of the truth; the Frobenius norm for matrices."""
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))


def cosine(estimate: Array, truth: Array) -> float:
    """Return the cosine of the angle between two vectors."""
    norms = np.linalg.norm(estimate) * np.linalg.norm(truth)
    return float(np.clip(estimate @ truth / norms, -1, 1))


def linear_error(estimate: Array) -> float:
    """Return the relative error of coefficients that are all one."""
    return relative_error(estimate, np.ones_like(estimate))


def angle_error(estimate: Array) -> float:
    """Return the angle to the true plane, in degrees."""
    return float(np.degrees(np.arccos(cosine(estimate, TRUE_PLANE))))


def axis_error(estimate: Array) -> float:
    """Return the misalignment with the true axis, 1 - |cos|."""
    return 1.0 - abs(cosine(estimate, TRUE_AXIS))


def cov_error(estimate: Array) -> float:
    """Return the relative error of a covariance."""
    return relative_error(estimate, TRUE_COV)
