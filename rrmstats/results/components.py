"""Results of a principal component analysis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm
from statsmodels.iolib.summary import Summary

from rrmstats import plotting
from rrmstats.core.block_array import row_map
from rrmstats.core.consistency import gaussian_efficiency
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad
from rrmstats.losses.components import (
    ComponentsEstimate,
    ExplainedComponents,
    flat_rows,
    plane_densities,
    plane_distances,
)
from rrmstats.losses.covariance import ExplainedCovariance, scatter_densities
from rrmstats.losses.matrices import MAD_UNIT, lengths, weighted_median
from rrmstats.results.base import SECOND_STEP, drawn, wrapper_of
from rrmstats.results.explanations import ExplainedDistances
from rrmstats.results.inference import Inference
from rrmstats.results.labels import Labeled, LabeledTable, labeled
from rrmstats.results.multivariate import MultivariateResults
from rrmstats.results.summary import number_table


class RRMPCAResults(MultivariateResults):
    """Results of a principal component analysis; see `RRMResults` for what all models share.

    The subspace is that of least risk. Within it, the location, the axes and the eigenvalues
    come from a robust covariance of the scores: rows far out in the subspace lose no weight in
    the search for it, and would otherwise inflate the eigenvalues.

    Attributes
    ----------
    params : ndarray, shape (q,)
        The eigenvalues.
    raw_eigenvals : ndarray, shape (q,)
        The paper's: those of the weighted second moment.
    column_unit : ndarray, shape (d,)
        What each variable is divided by.

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.pca("~ x1 + x2 + x3", hbk, eps_bar=0.25, n_components=1).fit()
    >>> res.loadings.shape, res.eigenvals.index.tolist()
    ((3, 1), ['comp_1'])
    """

    _estimate: ComponentsEstimate
    first_step: RRMPCAResults | None
    _title = "Robust Risk Minimization: Principal Components"

    def __init__(
        self,
        model: Any,
        estimate: ComponentsEstimate,
        inference: Inference,
        first_step: RRMPCAResults | None = None,
    ) -> None:
        super().__init__(model, estimate, inference, first_step)
        self._n_within = getattr(estimate, "n_within", 0)
        self._eigenvals, self.raw_eigenvals = estimate.params, estimate.raw_params
        self._loadings, self._mean, self._rest = estimate.loadings, estimate.mean, estimate.rest
        self.column_unit = model.column_unit()

    plot_scree = drawn(plotting.plot_scree)
    plot_biplot = drawn(plotting.plot_biplot)
    plot_outlier_map = drawn(plotting.plot_outlier_map)

    @property
    def loadings_bse(self) -> LabeledTable:
        """Standard errors of the loadings, shape (d, q): of the angles to the axes, in radians."""
        flat = flat_rows(self._estimate.loadings_influence())
        variance = np.diag(self._inference.of_influence(self._estimate, flat))
        errors = np.sqrt(variance).reshape(self._loadings.shape)
        return self._variable_table(errors, self._components)

    @property
    def _components(self) -> list[str]:
        return component_names(len(self._eigenvals))

    @property
    def term_names(self) -> list[str]:
        """Names of the eigenvalues and of the loadings, those of one variable together."""
        pairs = [(name, comp) for name in self.model.variables for comp in self._components]
        return self._components + [f"loading[{name}, {comp}]" for name, comp in pairs]

    @property
    def mean(self) -> Labeled:
        """Center of the components, shape (d,)."""
        return self._by_variable(self._mean)

    @property
    def loadings(self) -> LabeledTable:
        """Orthonormal components as columns, shape (d, q)."""
        return self._variable_table(self._loadings, self._components)

    @property
    def eigenvals(self) -> Labeled:
        """Variances along the components, shape (q,)."""
        names = None if self.model.data.row_labels is None else self._components
        return labeled(self._eigenvals, names)

    @property
    def explained_variance_ratio(self) -> Labeled:
        """Fraction of the variance along each component, shape (q,)."""
        return self.eigenvals / (self._eigenvals.sum() + self._rest)

    @property
    def unexplained_variance(self) -> float:
        """Variance off the subspace, in all its directions together."""
        return self._rest

    def transform(self, new: pd.DataFrame | ArrayLike) -> LabeledTable:
        """Return the scores of new observations, shape (m, q).

        Parameters
        ----------
        new : DataFrame or array_like, shape (m, d)

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit()
        >>> np.allclose(res.transform(hbk), res.scores)
        True
        """
        values, index = self.model.new_rows(new)
        return self._row_table(self._scores(values), index, self._components)

    @property
    def scores(self) -> LabeledTable:
        """Scores of the observations, shape (n, q)."""
        index = self.model.data.row_labels
        return self._row_table(self._scores(self.model.endog), index, self._components)

    def _scores(self, values: Array) -> Array:
        return ((values - self._mean) / self.column_unit) @ self._loadings

    def reconstruct(self) -> LabeledTable:
        """Return the observations projected on the subspace, shape (n, d).

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit().reconstruct().shape
        (75, 4)
        """
        values = self._projected(self.model.endog)
        return self._row_table(values, self.model.data.row_labels, self.model.variables)

    def _projected(self, values: Array) -> Array:
        return self._mean + self.column_unit * (self._scores(values) @ self._loadings.T)

    @property
    def score_distance(self) -> Labeled:
        """Distances from the center within the subspace, in standard deviations, shape (n,)."""
        return self._by_row(self._score_lengths())

    def _score_lengths(self) -> Array:
        return lengths(self._scores(self.model.endog) / np.sqrt(self._eigenvals))

    @property
    def orthogonal_distance(self) -> Labeled:
        """Distances from the subspace, shape (n,)."""
        return self._by_row(self._orthogonal())

    def _orthogonal(self) -> Array:
        rest = (self.model.endog - self._projected(self.model.endog)) / self.column_unit
        return lengths(rest)

    def score_cutoff(self, level: float = 0.975) -> float:
        """Return the quantile of the score distances of clean Gaussian rows.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.pca("~ x1 + x2 + x3", hbk, eps_bar=0.25, n_components=1).fit()
        >>> bool(0 < res.score_cutoff(0.9) < res.score_cutoff(0.99))
        True
        """
        return float(np.sqrt(self._estimate.score_cutoff(level)))

    def orthogonal_cutoff(self, level: float = 0.975) -> float:
        """Return the quantile of the orthogonal distances of clean rows.

        Their squares are close to a multiple of a chi-square variable (Box). With `eps_bar=0`, or
        an exact fit, their power 2/3 is taken to be normal (Wilson and Hilferty), with the median
        and median absolute deviation of the data.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.pca("~ x1 + x2 + x3", hbk, eps_bar=0.25, n_components=1).fit()
        >>> bool(0 < res.orthogonal_cutoff(0.9) < res.orthogonal_cutoff(0.99))
        True
        """
        known = self._estimate.orthogonal_cutoff(level)
        if known is not None:
            return float(np.sqrt(known))
        power = self._orthogonal() ** (2 / 3)
        counts = np.broadcast_to(1.0, (len(power),)) if self._base is None else self._base
        middle = weighted_median(power, counts)
        spread = MAD_UNIT * weighted_median(np.abs(power - middle), counts)
        return float((middle + norm.ppf(level) * spread) ** 1.5)

    def _distances(self) -> Array:
        """Return the larger of the two distances of each row, in units of its cut-off."""
        off = row_map(ratios, self._orthogonal(), self.orthogonal_cutoff(), tail=())
        return np.maximum(self._score_lengths() / self.score_cutoff(), off)

    def explained_distances(self) -> ExplainedDistances:
        """Return distances off the subspace, as `plot_explanation` shows them; see `RRMResults`.

        Where bad rows lie within the subspace alone they are the distances within it.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.pca("~ x1 + x2 + x3", hbk, n_components=1).fit()
        >>> res.explained_distances().name
        'distance off the subspace, standardized'
        """
        estimate = self._estimate
        if not isinstance(estimate, ExplainedComponents):
            return super().explained_distances()
        plane, inner = estimate.off, estimate.inner
        off = plane.told.chosen.bad is not Bad.NONE
        if not off and isinstance(inner, ExplainedCovariance):
            densities = partial(scatter_densities, inner.rows)
            return ExplainedDistances(self._score_lengths(), "score distance", densities)
        if len(plane.rows.data) != self.nobs:  # a sample of the rows
            return ExplainedDistances(self._orthogonal(), "orthogonal distance")
        name = "distance off the subspace, standardized"
        return ExplainedDistances(plane_distances(plane), name, partial(plane_densities, plane))

    def _flags(self, level: float) -> np.ndarray:
        each = np.sqrt(level)  # a clean row must pass both
        far = self._score_lengths() > self.score_cutoff(each)
        return far | (self._orthogonal() > self.orthogonal_cutoff(each))

    def _add_params(
        self, table: Summary, yname: str | None, xname: Sequence[str] | None, alpha: float
    ) -> None:
        names = self.model.variables if xname is None else list(xname)
        ratio = np.asarray(self.explained_variance_ratio)
        values = np.vstack([self._eigenvals, self.bse, ratio, self._loadings])
        rows = ["eigenvalue", "std err", "variance explained", *names]
        table.tables.append(number_table(values, rows, self._components))

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.steps == 1 and self.eps_bar > 0:
            codim = len(self.model.variables) - len(self._eigenvals)
            known = gaussian_efficiency(self.eps_bar, codim * self._rows_per_group)
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean Gaussian data the subspace is "
                f"as well known as from {known:.0%} of the rows. {SECOND_STEP}"
            )
        if self._n_within:
            notes.append(
                f"Of the bad rows {self._n_within} lie near the subspace, but far out within it. "
                "They count in the fit of the subspace, but not in that of the eigenvalues."
            )
        return notes


def ratios(distance: Array, cutoff: float) -> Array:
    """Return distances in units of a cut-off, zero over zero being zero, shape (n,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(distance / cutoff, nan=0.0)


def component_names(q: int) -> list[str]:
    """Return the names of q components."""
    return [f"comp_{i + 1}" for i in range(q)]


RRMPCAResultsWrapper = wrapper_of(RRMPCAResults)
