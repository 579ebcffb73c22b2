"""Principal components by robust risk minimisation."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.base.wrapper as wrap
from scipy.stats import chi2, norm

from rrmstats import plotting
from rrmstats.core import Problem, Solution, minimise
from rrmstats.core.consistency import efficient_ratio, gaussian_efficiency, second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.resample import refits
from rrmstats.core.sandwich import covariance, influence, tempered_influence
from rrmstats.core.scatter import (
    ScatterProblem,
    unit_spread,
    weighted_scatter,
)
from rrmstats.core.subspace import ReducedSubspaceProblem, second_subspace, untilted
from rrmstats.core.tempered import kept_by_distance, tempered_fit
from rrmstats.multivariate import RRMMultivariate, labelled, new_rows, number_table
from rrmstats.results import RRMResults, RRMResultsWrapper

# A normal distribution's standard deviation, in units of its median absolute deviation.
MAD_UNIT = 1.4826022185056018


class RRMPCA(RRMMultivariate):
    """Principal components when some of the rows may be wrong.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    n_components : int or float
        Number of components, less than d; or, in (0, 1), the fraction of the variance that they
        are to explain.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is the classical analysis.
    demean : bool, optional
        False for components around the origin, the paper's case.
    standardize : bool, optional
        Divide each variable by a robust scale first.
    weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 is the row twice.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' interfaces pass on.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats import RRMPCA
    >>> rng = np.random.default_rng(0)
    >>> t = rng.standard_normal(100)
    >>> z = np.c_[t, 2 * t] + 0.1 * rng.standard_normal((100, 2))
    >>> z[:20] = [10, -10] + rng.standard_normal((20, 2))
    >>> RRMPCA(z, 1, eps_bar=0.3).fit().loadings.round(1).ravel()
    array([0.4, 0.9])
    """

    def __init__(
        self,
        data: Any,
        n_components: float = 1,
        eps_bar: float | None = None,
        *,
        demean: bool = True,
        standardize: bool = False,
        weights: Any = None,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(data, eps_bar, weights=weights, missing=missing, **kwargs)
        d = self.endog.shape[1]
        whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
        if not (1 <= n_components < d if whole else 0 < n_components < 1):
            raise ValueError(
                f"n_components must be a whole number from 1 to {d - 1}, fewer than the {d} "
                f"variables, or a fraction of the variance in (0, 1), got {n_components!r}"
            )
        self.n_components, self.demean, self.standardize = n_components, demean, standardize
        self._init_keys.extend(["n_components", "demean", "standardize"])
        if whole:
            self.data.param_names = component_names(int(n_components))

    def _column_unit(self) -> Array:
        """Return what each variable is divided by, shape (d,)."""
        if not self.standardize:
            return np.ones(self.endog.shape[1])
        centre = np.median(self.endog, axis=0)
        unit = MAD_UNIT * np.median(np.abs(self.endog - centre), axis=0)
        if not (unit > 0).all():
            names = [name for name, u in zip(self.variables, unit, strict=True) if not u > 0]
            raise ValueError(
                f"standardize=True needs variables that vary, but most values are the same in "
                f"{', '.join(names)}: drop them or use standardize=False"
            )
        return unit

    def problem(self, q: int | None = None) -> ReducedSubspaceProblem:
        """Return the squared distances to a subspace of q dimensions."""
        q = int(self.n_components) if q is None else q
        return ReducedSubspaceProblem(self.endog, q, self.demean, self._column_unit())

    def fit(self, **kwargs: Any) -> Any:
        """Minimise the robust risk; see `RRMModel.fit` for the arguments.

        Where `n_components` is a fraction, components are added until they explain it.
        """
        if self.n_components >= 1:
            return super().fit(**kwargs)
        most = min(self.endog.shape[1], len(self.endog)) - 1
        for q in range(1, most + 1):
            model = self._with_components(q)
            results = model.fit(**kwargs)
            if results.explained_variance_ratio.sum() >= self.n_components:
                break
        return results

    def _with_components(self, q: int) -> RRMPCA:
        model = copy(self)
        model.data, model.n_components = copy(self.data), q
        model.data.param_names = component_names(q)
        return model

    def _start_theta(self, problem: Problem, start_params: npt.ArrayLike) -> Array:
        raise ValueError("RRMPCA takes no start_params: use n_starts and rng")

    def _results(self, problem: Problem, solution: Solution) -> Any:
        assert isinstance(problem, ReducedSubspaceProblem)
        return RRMPCAResultsWrapper(RRMPCAResults(self, problem, solution))

    def _second_step(self, first: Any, efficiency: float) -> Any:
        problem, solution = first._problem, first._solution
        if solution.lambda_ > 0:
            solution = second_subspace(problem, solution, efficiency, first._share)
        results = RRMPCAResults(self, problem, solution, efficiency)
        results.first_step = first
        return RRMPCAResultsWrapper(results)


class RRMPCAResults(RRMResults):
    """Results of a principal component analysis; see `RRMResults` for what all models share.

    The subspace is that of least risk. Within it, the location, the axes and the eigenvalues
    come from a second minimisation, that of the covariance of the scores: rows far out in the
    subspace lose nothing to it, and would else inflate the eigenvalues.

    Attributes
    ----------
    params : ndarray, shape (q,)
        The eigenvalues.
    raw_eigenvals : ndarray, shape (q,)
        The paper's: those of the weighted second moment.
    """

    def __init__(
        self,
        model: RRMPCA,
        problem: ReducedSubspaceProblem,
        solution: Solution,
        efficiency: float | None = None,
    ) -> None:
        self.efficiency = efficiency
        self._column_unit = model._column_unit()
        unit = problem.unit
        point, basis = problem.split(solution.theta)
        off = np.linalg.qr(basis, mode="complete")[0][:, problem.q :]
        self._inner = InnerScatter(problem, basis, model.eps_bar, model._prior, efficiency)
        location = self._inner.location
        values, vectors = np.linalg.eigh(self._inner.scatter)
        axes = basis @ vectors[:, ::-1]
        largest = np.abs(problem.span @ axes).argmax(axis=0)
        signs = np.sign((problem.span @ axes)[largest, np.arange(problem.q)])
        self._vectors = vectors[:, ::-1] * signs
        self._loadings = problem.span @ (basis @ self._vectors)
        self._eigenvals = values[::-1] * unit**2
        centre = basis @ location + off @ (off.T @ point)
        self._mean = problem.centre + self._column_unit * unit * (problem.span @ centre)
        moment = weighted_scatter(problem.data, solution.weights, point)
        self.raw_eigenvals = np.linalg.eigvalsh(moment)[::-1][: problem.q] * unit**2
        left = np.linalg.eigvalsh(off.T @ moment @ off) * unit**2
        self._rest = float(untilted(left, solution.lambda_ * unit**2).sum())
        super().__init__(model, self._eigenvals, problem, solution, unit=unit**2)

    def _influence(self) -> Array:
        """Return the influence functions of the eigenvalues, shape (n, q)."""
        assert isinstance(self._problem, ReducedSubspaceProblem)
        moved = np.einsum("ij,nik,kj->nj", self._vectors, self._inner.moved(), self._vectors)
        return moved * self._problem.unit**2

    @property
    def loadings_bse(self) -> Any:
        """Standard errors of the loadings, shape (d, q): of the angles to the axes, in radians."""
        problem, found = self._problem, self._solution
        assert isinstance(problem, ReducedSubspaceProblem)
        if self.efficiency is None:
            moved = influence(
                problem, found.theta, found.losses, found.weights, found.lambda_, self._share
            ).theta
        else:
            moved = tempered_influence(
                problem, found.theta, found.weights, found.lambda_, self._share
            )
        _, basis = problem.split(found.theta)
        off = np.linalg.qr(basis, mode="complete")[0][:, problem.q :]
        codim = problem.dim - problem.q
        turned = moved[:, : codim * problem.q].reshape(-1, codim, problem.q) @ self._vectors
        within = self._vectors.T @ self._inner.moved() @ self._vectors
        values = self._eigenvals / problem.unit**2
        gap = np.broadcast_to(values[None, :] - values[:, None], within.shape)
        rotation = np.divide(within, gap, out=np.zeros_like(within), where=gap != 0)
        change = problem.span @ (off @ turned + basis @ self._vectors @ rotation)
        flat = change.reshape(len(change), -1)
        variance = np.diag(covariance(flat, self._share, self._total, self._groups))
        errors = np.sqrt(variance).reshape(self._loadings.shape)
        return labelled(self.model, errors, self._components)

    def _refits(self, counts: Array) -> Array:
        problem, first = self._problem, self._solution
        assert isinstance(problem, ReducedSubspaceProblem)
        if self.efficiency is not None:
            first = self.first_step._solution
        points = refits(problem, self.eps_bar, counts, first.theta)
        eigenvalues = []
        for theta, count in zip(points.theta, counts, strict=True):
            basis = problem.split(theta)[1]
            inner = InnerScatter(problem, basis, self.eps_bar, count, self.efficiency, 0)
            eigenvalues.append(np.linalg.eigvalsh(inner.scatter)[::-1])
        return np.array(eigenvalues) * problem.unit**2

    @property
    def _components(self) -> list[str]:
        return component_names(len(self._eigenvals))

    plot_scree = plotting.plot_scree
    plot_biplot = plotting.plot_biplot
    plot_outlier_map = plotting.plot_outlier_map

    @property
    def mean(self) -> Any:
        """Centre of the components, shape (d,)."""
        return labelled(self.model, self._mean)

    @property
    def loadings(self) -> Any:
        """Orthonormal components as columns, shape (d, q)."""
        return labelled(self.model, self._loadings, self._components)

    @property
    def eigenvals(self) -> Any:
        """Variances along the components, shape (q,)."""
        if self.model.data.row_labels is None:
            return self._eigenvals
        return pd.Series(self._eigenvals, index=self._components)

    @property
    def explained_variance_ratio(self) -> Any:
        """Share of each component in the variance, shape (q,)."""
        return self.eigenvals / (self._eigenvals.sum() + self._rest)

    def transform(self, new: Any) -> Any:
        """Return the scores of new observations, shape (m, q)."""
        values, index = new_rows(self.model, new)
        return self._labelled_rows(self._scores(values), index)

    @property
    def scores(self) -> Any:
        """Scores of the observations, shape (n, q)."""
        return self._labelled_rows(self._scores(self.model.endog), self.model.data.row_labels)

    def _scores(self, values: Array) -> Array:
        return ((values - self._mean) / self._column_unit) @ self._loadings

    def _labelled_rows(self, values: Array, index: Any) -> Any:
        if index is None:
            return values
        return pd.DataFrame(values, index=index, columns=self._components)

    def reconstruct(self) -> Any:
        """Return the observations projected on the subspace, shape (n, d)."""
        values = self._projected(self.model.endog)
        index = self.model.data.row_labels
        if index is None:
            return values
        return pd.DataFrame(values, index=index, columns=self.model.variables)

    def _projected(self, values: Array) -> Array:
        return self._mean + self._column_unit * (self._scores(values) @ self._loadings.T)

    @property
    def score_distance(self) -> Any:
        """Distances from the centre within the subspace, in standard deviations, shape (n,)."""
        scaled = self._scores(self.model.endog) / np.sqrt(self._eigenvals)
        return self._labelled_row_vector(np.linalg.norm(scaled, axis=1))

    @property
    def orthogonal_distance(self) -> Any:
        """Distances from the subspace, shape (n,)."""
        return self._labelled_row_vector(self._orthogonal())

    def _orthogonal(self) -> Array:
        rest = (self.model.endog - self._projected(self.model.endog)) / self._column_unit
        return np.linalg.norm(rest, axis=1)

    def _labelled_row_vector(self, values: np.ndarray) -> Any:
        index = self.model.data.row_labels
        return values if index is None else pd.Series(values, index=index)

    def score_cutoff(self, level: float = 0.975) -> float:
        """Return the quantile of the score distances of clean Gaussian data."""
        return float(np.sqrt(chi2.ppf(level, len(self._eigenvals))))

    def orthogonal_cutoff(self, level: float = 0.975) -> float:
        """Return the quantile of the orthogonal distances of clean data.

        Their power 2/3 is close to normal (Wilson and Hilferty); its median and median absolute
        deviation are those of the data.
        """
        power = self._orthogonal() ** (2 / 3)
        middle = np.median(power)
        spread = MAD_UNIT * np.median(np.abs(power - middle))
        return float((middle + norm.ppf(level) * spread) ** 1.5)

    def _distances(self) -> Array:
        """Return the larger of the two distances of each row, in units of its cut-off."""
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.nan_to_num(self._orthogonal() / self.orthogonal_cutoff(), nan=0.0)
        return np.maximum(np.asarray(self.score_distance) / self.score_cutoff(), off)

    def _flags(self, level: float) -> np.ndarray:
        each = np.sqrt(level)  # a clean row must pass both
        far = np.asarray(self.score_distance) > self.score_cutoff(each)
        return far | (self._orthogonal() > self.orthogonal_cutoff(each))

    def _summary_subject(self) -> tuple[str, Any]:
        return ("Variables:", [str(len(self.model.variables))])

    def _summary_title(self) -> str:
        return "Robust Risk Minimization: Principal Components"

    def _efficiency_text(self) -> str:
        codim = len(self.model.variables) - len(self._eigenvals)
        return f"{self.efficiency or gaussian_efficiency(self.eps_bar, codim):.2f}"

    def _add_params(self, table: Any, yname: str | None, alpha: float) -> None:
        names = self.model.variables
        ratio = np.asarray(self.explained_variance_ratio)
        values = np.vstack([self._eigenvals, self.bse, ratio, self._loadings])
        rows = ["eigenvalue", "std err", "variance explained", *names]
        table.tables.append(number_table("Components", values, rows, self._components))

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.efficiency is None and self.eps_bar > 0:
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean Gaussian data the subspace is "
                f"as well known as from {self._efficiency_text()} of the rows. "
                "fit(efficiency=0.95) makes it 0.95."
            )
        return notes


class RRMPCAResultsWrapper(RRMResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]] = {**RRMResultsWrapper._wrap_attrs}


wrap.populate_wrapper(RRMPCAResultsWrapper, RRMPCAResults)


def component_names(q: int) -> list[str]:
    """Return the names of q components."""
    return [f"comp_{i + 1}" for i in range(q)]


class InnerScatter:
    """Robust location and scatter of the scores within a subspace.

    Attributes
    ----------
    location : ndarray, shape (q,)
    scatter : ndarray, shape (q, q)
        Consistent scatter.
    """

    def __init__(
        self,
        problem: ReducedSubspaceProblem,
        basis: Array,
        eps_bar: float,
        prior: Array | None,
        efficiency: float | None,
        n_starts: int | None = None,
    ) -> None:
        values = problem.data @ basis
        centre, self.unit = unit_spread(values)
        if not problem.demean:
            centre = np.zeros_like(centre)
        self.share = None if prior is None else prior / prior.sum()
        self.problem = ScatterProblem((values - centre) / self.unit, problem.demean)
        self.found = minimise(self.problem, eps_bar, prior=prior, n_starts=n_starts)
        self.ratio = second_moment_ratio(eps_bar, problem.q)
        self.efficient = efficiency is not None
        if efficiency is not None:
            distances = self.problem.distances(self.found.theta) * self.ratio
            kept = kept_by_distance(distances, problem.q, efficiency)
            self.ratio = efficient_ratio(efficiency, problem.q)
            self.found = tempered_fit(
                self.problem, self.found, 2 / (1 - self.ratio), self.share, kept=kept
            )
        location, scatter = self.problem.split(self.found.theta)
        self.location = centre + self.unit * location
        self.scatter = self._in_units(scatter)

    def _in_units(self, scatter: Array) -> Array:
        return scatter * np.outer(self.unit, self.unit) / self.ratio

    def moved(self) -> Array:
        """Return the influence functions of the scatter, shape (n, q, q)."""
        found = self.found
        if self.efficient:
            steps = tempered_influence(
                self.problem, found.theta, found.weights, found.lambda_, self.share
            )
        else:
            steps = influence(
                self.problem, found.theta, found.losses, found.weights, found.lambda_, self.share
            ).theta
        return self._in_units(self.problem.directions(found.theta, steps)[1])
