"""Results of a mean and covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.iolib.summary import Summary

from rrmstats import plotting
from rrmstats.core.consistency import gaussian_efficiency, kish_fraction
from rrmstats.core.entropy import Array
from rrmstats.losses.covariance import (
    CovarianceEstimate,
    ExplainedCovariance,
    Hyperplane,
    ScatterProblem,
    consistent_scatter,
    scatter_densities,
)
from rrmstats.losses.matrices import lengths, mahalanobis
from rrmstats.results.base import SECOND_STEP, RRMResults, drawn, wrapper_of
from rrmstats.results.explanations import ExplainedDistances
from rrmstats.results.inference import Inference
from rrmstats.results.labels import Labeled, LabeledTable, labeled
from rrmstats.results.multivariate import MultivariateResults
from rrmstats.results.summary import number_table


class RRMCovResults(MultivariateResults):
    """Results of a covariance fit; see `RRMResults` for what all models share.

    The covariance is consistent whatever the share of bad rows, up to `eps_bar`, as long as they
    have no weight. The second step explains the rows; see `explanations`.

    Attributes
    ----------
    params : ndarray, shape (d + d * (d + 1) / 2,)
        The mean, then the upper triangle of the covariance row by row.
    singular : bool
        Whether the observations with weight lie on a hyperplane.
    hyperplane : Hyperplane or None
        That hyperplane.

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.cov("~ x1 + x2 + x3", hbk, eps_bar=0.25).fit()
    >>> res.cov.shape, res.mean.index.tolist()
    ((3, 3), ['x1', 'x2', 'x3'])
    """

    _estimate: CovarianceEstimate
    first_step: RRMCovResults | None
    _title = "Robust Risk Minimization: Mean and Covariance"
    _column_attrs = RRMResults._column_attrs

    def __init__(
        self,
        model: Any,
        estimate: CovarianceEstimate,
        inference: Inference,
        first_step: RRMCovResults | None = None,
    ) -> None:
        super().__init__(model, estimate, inference, first_step)
        self._mean, self._cov, self._raw_cov = estimate.mean, estimate.cov, estimate.raw_cov
        self._tied = estimate.tied
        self.hyperplane: Hyperplane | None = estimate.plane
        if self.hyperplane is not None:
            normal = self._by_variable(self.hyperplane.normal)
            self.hyperplane = replace(self.hyperplane, normal=normal)
        self.singular = self.hyperplane is not None

    plot_distances = drawn(plotting.plot_distances)
    plot_ellipse = drawn(plotting.plot_ellipse)

    @property
    def mean(self) -> Labeled:
        """Location, shape (d,)."""
        return self._by_variable(self._mean)

    @property
    def cov(self) -> LabeledTable:
        """Consistent covariance, shape (d, d)."""
        return self._variable_table(self._cov)

    @property
    def raw_cov(self) -> LabeledTable:
        """The paper's estimate, the weighted covariance, shape (d, d)."""
        return self._variable_table(self._raw_cov)

    @property
    def corr(self) -> LabeledTable:
        """Correlations, shape (d, d)."""
        root = np.sqrt(np.diag(self._cov))
        return self._variable_table(self._cov / np.outer(root, root))

    @property
    def precision(self) -> LabeledTable:
        """Inverse of the covariance, shape (d, d)."""
        if self.hyperplane is not None:
            raise ValueError(
                "the covariance is singular, so it has no inverse: the observations with weight "
                "lie on a hyperplane; see hyperplane"
            )
        return self._variable_table(np.linalg.inv(self._cov))

    def mahalanobis(self, new: pd.DataFrame | ArrayLike | None = None) -> Labeled:
        """Return distances from the mean in the metric of the covariance.

        Parameters
        ----------
        new : DataFrame or array_like, shape (m, d), optional
            Observations; by default those of the fit.

        Returns
        -------
        ndarray or Series, shape (m,)
            Distances, not their squares. Where the covariance is singular they are those in
            the hyperplane, and infinite off it.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> res = rrmstats.RRMCov(hbk.exog, eps_bar=0.25).fit()
        >>> bool((res.mahalanobis()[:14] > 10).all())
        True
        """
        values, index = self.model.endog, self.model.data.row_labels
        if new is not None:
            values, index = self.model.new_rows(new)
        return labeled(self._distances_of(values), index)

    def _distances_of(self, values: Array) -> Array:
        center, unit = self._units
        frame = ScatterProblem((values - center) / unit)
        u, _ = frame.whitened(
            frame.join((self._mean - center) / unit, self._cov / np.outer(unit, unit))
        )
        distance = lengths(u)
        if self.hyperplane is not None:
            normal = np.asarray(self.hyperplane.normal)
            off = np.abs(values @ normal - self.hyperplane.offset)
            distance = np.where(off > self.hyperplane.width, np.inf, distance)
        return distance

    @property
    def _units(self) -> tuple[Array, Array]:
        root = np.sqrt(np.diag(self._cov))
        return self._mean, np.where(root > 0, root, 1.0)

    def _distances(self) -> Array:
        return self._distances_of(self.model.endog)

    def explained_distances(self) -> ExplainedDistances:
        """Return the distances of the rows, as `plot_explanation` shows them; see `RRMResults`.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> rrmstats.cov("~ x1 + x2 + x3", hbk).fit().explained_distances().name
        'robust distance'
        """
        estimate = self._estimate
        if not isinstance(estimate, ExplainedCovariance):
            return super().explained_distances()
        rows, location = estimate.rows, estimate.rows.fitted.mixture.coef[0].sum(axis=0)
        distances = mahalanobis(rows.data, location, consistent_scatter(rows))
        return ExplainedDistances(distances, "robust distance", partial(scatter_densities, rows))

    def _flags(self, level: float) -> np.ndarray:
        return self._distances() > self.cutoff(level)

    def cutoff(self, level: float = 0.975) -> float:
        """Return the quantile of the distances of clean Gaussian rows.

        It is larger than that of the chi-square distribution where mean and covariance come from
        few rows.

        Parameters
        ----------
        level : float, optional
            Fraction of clean rows below, in (0, 1).

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.cov("~ x1 + x2 + x3", hbk, eps_bar=0.25).fit()
        >>> bool((res.mahalanobis()[res.outliers()] > res.cutoff()).all())
        True
        """
        return float(np.sqrt(self._estimate.cutoff(level)))

    @property
    def n_kish_clean(self) -> float:
        """Kish's effective sample size that clean Gaussian data would have in the first step."""
        return self.wnobs * kish_fraction(self.eps_bar, len(self._mean) * self._rows_per_group)

    def _add_params(
        self, table: Summary, yname: str | None, xname: Sequence[str] | None, alpha: float
    ) -> None:
        names = self.model.variables if xname is None else list(xname)
        columns, values = ["mean", *names], np.c_[self._mean, self._cov]
        if self.hyperplane is None:
            columns = ["mean", "std err", *names]
            values = np.c_[self._mean, self.bse[: len(names)], self._cov]
        table.tables.append(number_table(values, names, columns))

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.steps == 1 and self.eps_bar > 0:
            dim = len(self._mean) * self._rows_per_group
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean Gaussian data the variances of "
                f"the mean are those of {gaussian_efficiency(self.eps_bar, dim):.0%} of the "
                f"rows. {SECOND_STEP}"
            )
        if self._tied is not None:
            names = np.array(self.model.variables)[self._tied]
            notes.append(
                f"More than half of the values of {' and of '.join(names)} are the same. Such "
                "variables have no density: the others tell bad rows from good ones."
            )
        if self.hyperplane is not None:
            normal = np.asarray(self.hyperplane.normal)
            terms = " ".join(
                f"{value:+.4g} * {name}"
                for name, value in zip(self.model.variables, normal, strict=True)
                if abs(value) > 1e-10
            )
            notes.append(
                f"The covariance is singular: {self.hyperplane.count} observations lie on the "
                f"hyperplane {terms} = {self.hyperplane.offset:.6g}."
            )
        return notes


RRMCovResultsWrapper = wrapper_of(RRMCovResults)
