"""How residuals or distances of good and bad rows are distributed, in the units of results."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.laws.densities import Densities, distance_densities, residual_densities
from rrmstats.laws.gaussian import seen
from rrmstats.losses.covariance import consistent_scatter
from rrmstats.losses.gaussian_rows import ExplainedRows
from rrmstats.losses.plane_choice import ExplainedPlane


def regression_densities(rows: ExplainedRows, at: Array) -> Densities:
    """Return the densities of residuals in standard deviations of the noise, at each of (m,)."""
    fitted = rows.fitted
    unit = float(np.sqrt(fitted.mixture.scatter[0, 0, 0]))
    return residual_densities(fitted.decided.rows, fitted.mixture, at * unit).per(unit)


def scatter_densities(rows: ExplainedRows, at: Array) -> Densities:
    """Return the densities of distances in the metric of `consistent_scatter`, at each of (m,)."""
    fitted = rows.fitted
    larger = consistent_scatter(rows)[0, 0] / fitted.mixture.scatter[0, 0, 0]
    unit = float(np.sqrt(larger))
    return distance_densities(fitted.decided.rows, fitted.mixture, at * unit).per(unit)


def plane_distances(plane: ExplainedPlane) -> Array:
    """Return the distances of the rows off a subspace in standard deviations, shape (n,)."""
    return np.sqrt(seen(plane.rows, plane.mixture).square[0])


def plane_densities(plane: ExplainedPlane, at: Array) -> Densities:
    """Return the densities of `plane_distances`, at each of (m,)."""
    return distance_densities(plane.rows, plane.mixture, at)
