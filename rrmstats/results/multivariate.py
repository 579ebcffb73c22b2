"""Results of a mean and covariance, and of principal components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm
from statsmodels.iolib.summary import Summary

from rrmstats import plotting
from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad
from rrmstats.core.frames import MAD_UNIT
from rrmstats.losses import covariance
from rrmstats.losses.components import ComponentsEstimate, plane_densities, plane_distances
from rrmstats.losses.matrices import lengths, weighted_median
from rrmstats.results.base import RRMResults, drawn
from rrmstats.results.explanations import VARIABLES, ExplainedDistances, Wording
from rrmstats.results.labels import Labeled, LabeledTable, labeled, labeled_table
from rrmstats.results.summary import number_table

WALD = "use wald_test() with restrictions on the parameters"


class MultivariateResults(RRMResults):
    """Results whose parameters are about variables rather than predictors."""

    _meaningless: ClassVar[dict[str, str]] = {
        **RRMResults._meaningless,
        "wald_test_terms": f"there are no predictors to test; {WALD}",
        "t_test_pairwise": f"there are no terms to compare; {WALD}",
        "compare": f"models of several variables are not nested; {WALD}",
    }

    def predict(self, *args: object, **kwargs: object) -> Any:
        """Refuse, as the model does: there is no response to predict."""
        return self.model.predict()

    @property
    def _wording(self) -> Wording:
        return VARIABLES

    def _by_variable(self, values: Array) -> Labeled:
        return labeled(values, self.model.variable_index)

    def _variable_table(self, values: Array, columns: list[str] | None = None) -> LabeledTable:
        names = self.model.variables if columns is None else columns
        return labeled_table(values, self.model.variable_index, names)

    def _by_row(self, values: Array, columns: list[str]) -> LabeledTable:
        return labeled_table(values, self.model.data.row_labels, columns)

    def _summary_subject(self) -> tuple[str, list[str] | None]:
        return ("Variables:", [str(len(self.model.variables))])

    def _add_params(
        self, table: Summary, yname: str | None, xname: Sequence[str] | None, alpha: float
    ) -> None:
        names = self.model.variables if xname is None else list(xname)
        table.tables.append(number_table(*self._shown(names)))

    def _shown(self, names: list[str]) -> tuple[Array, list[str], list[str]]:
        """Return the table of the summary, with the names of its rows and columns."""
        raise NotImplementedError


class RRMCovResults(MultivariateResults):
    """Results of a covariance fit; see `RRMResults` for what all models share.

    The covariance is consistent whatever the share of bad rows, up to `eps_bar`, as long as they
    have no weight. The second step explains the rows; see `explanations`.

    Attributes
    ----------
    params : Series or ndarray, shape (d + d * (d + 1) / 2,)
        The mean, then the upper triangle of the covariance row by row.
    mean : ndarray or Series, shape (d,)
        Location.
    cov : ndarray or DataFrame, shape (d, d)
        Consistent covariance.
    raw_cov : ndarray or DataFrame, shape (d, d)
        The paper's estimate, the weighted covariance.
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

    _estimate: covariance.CovarianceEstimate
    _title = "Robust Risk Minimization: Mean and Covariance"

    def __init__(self, model: Any, estimate: covariance.CovarianceEstimate, *args: Any) -> None:
        super().__init__(model, estimate, *args)
        self.mean, self._dimension = self._by_variable(estimate.mean), len(estimate.mean)
        self.cov = self._variable_table(estimate.cov)
        self.raw_cov = self._variable_table(estimate.cov / estimate.order)
        self._tied = estimate.tied
        self.hyperplane: covariance.Hyperplane | None = estimate.plane
        if self.hyperplane is not None:
            normal = self._by_variable(self.hyperplane.normal)
            self.hyperplane = replace(self.hyperplane, normal=normal)
        self.singular = self.hyperplane is not None

    plot_distances = drawn(plotting.plot_distances)
    plot_ellipse = drawn(plotting.plot_ellipse)

    @property
    def corr(self) -> LabeledTable:
        """Correlations, shape (d, d)."""
        root = np.sqrt(np.diag(self.cov))
        return self.cov / np.outer(root, root)

    @property
    def precision(self) -> LabeledTable:
        """Inverse of the covariance, shape (d, d)."""
        if self.hyperplane is not None:
            raise ValueError(
                "the covariance is singular, so it has no inverse: the observations with weight "
                "lie on a hyperplane; see hyperplane"
            )
        return self._variable_table(np.linalg.inv(self.cov))

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
        mean, cov = np.asarray(self.mean), np.asarray(self.cov)
        unit = np.sqrt(np.diag(cov))
        unit = np.where(unit > 0, unit, 1.0)
        frame = covariance.ScatterProblem((values - mean) / unit)
        distance = np.sqrt(frame.distances(frame.join(0 * mean, cov / np.outer(unit, unit))))
        if self.hyperplane is not None:
            normal = np.asarray(self.hyperplane.normal)
            off = np.abs(values @ normal - self.hyperplane.offset)
            distance = np.where(off > self.hyperplane.width, np.inf, distance)
        return distance

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
        rows = self._estimate.rows
        if rows is None or self._unit != "row":
            return super().explained_distances()
        frame, location = covariance.ScatterProblem(rows.data), rows.mixture.coef[0].sum(axis=0)
        scatter = rows.mixture.scatter[0] * covariance.consistent_size(rows)
        distances = np.sqrt(frame.distances(frame.join(location, scatter)))
        return ExplainedDistances(
            distances, "robust distance", partial(covariance.scatter_densities, rows)
        )

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

    def _shown(self, names: list[str]) -> tuple[Array, list[str], list[str]]:
        if self.hyperplane is not None:
            return np.c_[self.mean, self.cov], names, ["mean", *names]
        values = np.c_[self.mean, self.bse[: len(names)], self.cov]
        return values, names, ["mean", "std err", *names]

    def _notes(self) -> list[str]:
        known = "Gaussian data the variances of the mean are those of"
        notes = [*super()._notes(), *self._price(known, len(self.mean))]
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


class RRMPCAResults(MultivariateResults):
    """Results of a principal component analysis; see `RRMResults` for what all models share.

    The subspace is that of least risk. Within it, the location, the axes and the eigenvalues
    come from a robust covariance of the scores: rows far out in the subspace lose no weight in
    the search for it, and would otherwise inflate the eigenvalues.

    Attributes
    ----------
    params : Series or ndarray, shape (q,)
        The eigenvalues.
    eigenvals : ndarray or Series, shape (q,)
        Variances along the components.
    loadings : ndarray or DataFrame, shape (d, q)
        Orthonormal components as columns.
    mean : ndarray or Series, shape (d,)
        Center of the components.
    explained_variance_ratio : ndarray or Series, shape (q,)
        Fraction of the variance along each component.
    unexplained_variance : float
        Variance off the subspace, in all its directions together.
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
    _title = "Robust Risk Minimization: Principal Components"
    _row_attrs = (*RRMResults._row_attrs, "score_distance", "orthogonal_distance")

    def __init__(self, model: Any, estimate: ComponentsEstimate, *args: Any) -> None:
        super().__init__(model, estimate, *args)
        self._n_within, self._components = estimate.n_within, component_names(len(estimate.params))
        self.raw_eigenvals, self.unexplained_variance = estimate.raw_params, estimate.rest
        names = None if model.data.row_labels is None else self._components
        self.eigenvals = labeled(estimate.params, names)
        self.explained_variance_ratio = self.eigenvals / (estimate.params.sum() + estimate.rest)
        self.loadings = self._variable_table(estimate.loadings, self._components)
        self.mean = self._by_variable(estimate.mean)
        self.column_unit = model.column_unit()

    plot_scree = drawn(plotting.plot_scree)
    plot_biplot = drawn(plotting.plot_biplot)
    plot_outlier_map = drawn(plotting.plot_outlier_map)

    @property
    def loadings_bse(self) -> LabeledTable:
        """Standard errors of the loadings, shape (d, q): of the angles to the axes, in radians."""
        influence = self._estimate.loadings_influence()
        variance = np.diag(self._inference.of_influence(self._estimate, influence))
        errors = np.sqrt(variance).reshape(self.loadings.shape)
        return self._variable_table(errors, self._components)

    @property
    def term_names(self) -> list[str]:
        """Names of the eigenvalues and of the loadings, those of one variable together."""
        pairs = [(name, comp) for name in self.model.variables for comp in self._components]
        return self._components + [f"loading[{name}, {comp}]" for name, comp in pairs]

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
        return labeled_table(self._scores(values), index, self._components)

    @property
    def scores(self) -> LabeledTable:
        """Scores of the observations, shape (n, q)."""
        return self._by_row(self._scores(self.model.endog), self._components)

    def _scores(self, values: Array) -> Array:
        return ((values - np.asarray(self.mean)) / self.column_unit) @ np.asarray(self.loadings)

    def reconstruct(self) -> LabeledTable:
        """Return the observations projected on the subspace, shape (n, d).

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit().reconstruct().shape
        (75, 4)
        """
        return self._by_row(self._projected(), self.model.variables)

    def _projected(self) -> Array:
        scores, loadings = self._scores(self.model.endog), np.asarray(self.loadings)
        return np.asarray(self.mean) + self.column_unit * (scores @ loadings.T)

    @property
    def score_distance(self) -> Array:
        """Distances from the center within the subspace, in standard deviations, shape (n,)."""
        return lengths(self._scores(self.model.endog) / np.sqrt(self.params))

    @property
    def orthogonal_distance(self) -> Array:
        """Distances from the subspace, shape (n,)."""
        return lengths((self.model.endog - self._projected()) / self.column_unit)

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
        power = self.orthogonal_distance ** (2 / 3)
        counts = self.model.row_counts
        middle = weighted_median(power, counts)
        spread = MAD_UNIT * weighted_median(np.abs(power - middle), counts)
        return float((middle + norm.ppf(level) * spread) ** 1.5)

    def _distances(self) -> Array:
        """Return the larger of the two distances of each row, in units of its cut-off."""
        off = row_map(ratios, self.orthogonal_distance, self.orthogonal_cutoff(), tail=())
        return np.maximum(self.score_distance / self.score_cutoff(), off)

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
        plane, inner = self._estimate.off, self._estimate.inner
        if plane is None:
            return super().explained_distances()
        off = plane.told.chosen.bad is not Bad.NONE
        if not off and inner.rows is not None:
            densities = partial(covariance.scatter_densities, inner.rows)
            return ExplainedDistances(self.score_distance, "score distance", densities)
        if len(plane.rows.data) != self.nobs:  # a sample of the rows
            return ExplainedDistances(self.orthogonal_distance, "orthogonal distance")
        name = "distance off the subspace, standardized"
        return ExplainedDistances(plane_distances(plane), name, partial(plane_densities, plane))

    def _flags(self, level: float) -> np.ndarray:
        each = np.sqrt(level)  # a clean row must pass both
        far = self.score_distance > self.score_cutoff(each)
        return far | (self.orthogonal_distance > self.orthogonal_cutoff(each))

    def _shown(self, names: list[str]) -> tuple[Array, list[str], list[str]]:
        values = np.vstack([self.params, self.bse, self.explained_variance_ratio, self.loadings])
        return values, ["eigenvalue", "std err", "variance explained", *names], self._components

    def _notes(self) -> list[str]:
        codim, known = len(self.loadings) - len(self.params), "Gaussian data the subspace is as "
        notes = [*super()._notes(), *self._price(f"{known}well known as from", codim)]
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
