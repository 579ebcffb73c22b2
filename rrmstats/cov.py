"""Location and covariance by robust risk minimisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.base.wrapper as wrap
from scipy.stats import chi2

from rrmstats import plotting
from rrmstats.core import Problem, Solution
from rrmstats.core.consistency import (
    efficient_ratio,
    gaussian_efficiency,
    kish_fraction,
    second_moment_ratio,
)
from rrmstats.core.entropy import Array
from rrmstats.core.resample import refits
from rrmstats.core.sandwich import influence, tempered_influence
from rrmstats.core.scatter import FLAT, ScatterProblem, check_range, unit_spread
from rrmstats.core.tempered import kept_by_distance, tempered_fit
from rrmstats.multivariate import RRMMultivariate, labelled, new_rows, number_table
from rrmstats.results import RRMResults, RRMResultsWrapper


@dataclass(frozen=True, slots=True, eq=False)
class Hyperplane:
    """The hyperplane ``normal @ z = offset`` on which an exact fit lies.

    Attributes
    ----------
    normal : ndarray or Series, shape (d,)
        Unit vector orthogonal to the hyperplane.
    offset : float
    count : int
        Observations on it.
    """

    normal: Any
    offset: float
    count: int


class UnitScatterProblem(ScatterProblem):
    """The covariance problem on data of any scale, in units of their spread."""

    def __init__(self, data: Array) -> None:
        self.centre, self.unit = unit_spread(data)
        scaled = (data - self.centre) / self.unit
        check_range(scaled)
        super().__init__(scaled)

    def to_units(self, theta: Array) -> tuple[Array, Array]:
        """Return location and scatter in the units of the data."""
        location, scatter = self.split(theta)
        return self.centre + location * self.unit, scatter * np.outer(self.unit, self.unit)

    def params_of(self, theta: Array, ratio: float) -> Array:
        """Return the mean and the upper triangle of the consistent covariance."""
        mean, scatter = self.to_units(theta)
        return np.r_[mean, scatter[np.triu_indices(self.dim)] / ratio]


class RRMCov(RRMMultivariate):
    """Mean and covariance when some of the rows may be wrong.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is the classical estimate.
    weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 is the row twice.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' interfaces pass on.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats import RRMCov
    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((200, 2)) @ [[1, 0.8], [0, 0.6]]
    >>> z[:30] += 20
    >>> res = RRMCov(z, eps_bar=0.2).fit()
    >>> bool(abs(res.corr[0, 1] - 0.8) < 0.1), int(res.outliers()[:30].sum())
    (True, 30)
    """

    def __init__(
        self,
        data: Any,
        eps_bar: float | None = None,
        *,
        weights: Any = None,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(data, eps_bar, weights=weights, missing=missing, **kwargs)
        names = self.variables
        rows, columns = np.triu_indices(len(names))
        self.data.param_names = [f"mean[{name}]" for name in names] + [
            f"cov[{names[i]}, {names[j]}]" for i, j in zip(rows, columns, strict=True)
        ]

    def problem(self) -> UnitScatterProblem:
        """Return the Gaussian losses, in units of the spread of the data."""
        return UnitScatterProblem(self.endog)

    def _start_theta(self, problem: Problem, start_params: npt.ArrayLike) -> Array:
        assert isinstance(problem, UnitScatterProblem)
        given = np.asarray(start_params, dtype=float)
        d = problem.dim
        scatter = np.zeros((d, d))
        scatter[np.triu_indices(d)] = given[d:]
        scatter = scatter + np.triu(scatter, 1).T
        scatter = scatter * second_moment_ratio(self.eps_bar, d)
        return problem.join(
            (given[:d] - problem.centre) / problem.unit,
            scatter / np.outer(problem.unit, problem.unit),
        )

    def _results(self, problem: Problem, solution: Solution) -> Any:
        assert isinstance(problem, UnitScatterProblem)
        ratio = second_moment_ratio(self.eps_bar, problem.dim)
        return RRMCovResultsWrapper(RRMCovResults(self, problem, solution, ratio))

    def _second_step(self, first: Any, efficiency: float) -> Any:
        problem, solution, ratio = first._problem, first._solution, first._ratio
        if first.hyperplane is None:
            solution = second_step(problem, solution, ratio, efficiency, first._share)
            ratio *= relative_size(problem, solution.theta, first._solution.theta)
        results = RRMCovResults(self, problem, solution, ratio)
        results.efficiency, results.first_step = efficiency, first
        return RRMCovResultsWrapper(results)


def second_step(
    problem: UnitScatterProblem,
    first: Solution,
    ratio: float,
    efficiency: float,
    share: Array | None,
) -> Solution:
    """Return the location and shape of a given efficiency."""
    lambda_ = 2 / (1 - efficient_ratio(efficiency, problem.dim))
    kept = kept_by_distance(problem.distances(first.theta) * ratio, problem.dim, efficiency)
    return tempered_fit(problem, first, lambda_, share, kept=kept)


def relative_size(problem: ScatterProblem, theta: Array, other: Array) -> float:
    """Return the size of a scatter, the root of its determinant, relative to another's."""
    sizes = [np.linalg.slogdet(problem.split(t)[1])[1] / problem.dim for t in (theta, other)]
    return float(np.exp(sizes[0] - sizes[1]))


class RRMCovResults(RRMResults):
    """Results of a covariance fit; see `RRMResults` for what all models share.

    The second step improves the location and the shape of the covariance; its size, the root of
    its determinant, stays that of the first.

    Attributes
    ----------
    params : ndarray, shape (d + d * (d + 1) / 2,)
        The mean, then the upper triangle of the covariance row by row.
    singular : bool
        Whether the observations with weight lie on a hyperplane.
    hyperplane : Hyperplane or None
        That hyperplane.
    """

    def __init__(
        self, model: RRMCov, problem: UnitScatterProblem, solution: Solution, ratio: float
    ) -> None:
        self._ratio = ratio
        self._mean, self._raw_cov = problem.to_units(solution.theta)
        self._cov = self._raw_cov / ratio
        # The losses of the data differ from those in units of their spread by a constant.
        shift = 2.0 * float(np.log(problem.unit).sum())
        params = problem.params_of(solution.theta, ratio)
        super().__init__(model, params, problem, solution, shift=shift)
        self.hyperplane = self._find_hyperplane(problem, solution)
        self.singular = self.hyperplane is not None

    def _influence(self) -> Array:
        problem, found = self._problem, self._solution
        assert isinstance(problem, UnitScatterProblem)
        if self.hyperplane is not None:
            raise ValueError(
                "the covariance is singular, so that it has no standard errors: the observations "
                "with weight lie on a hyperplane; see hyperplane"
            )
        first = found if self.first_step is None else self.first_step._solution
        moved = influence(
            problem, first.theta, first.losses, first.weights, first.lambda_, self._share
        ).theta
        mean, scatter = problem.directions(first.theta, moved)
        if self.first_step is not None:
            size = _trace(problem.split(first.theta)[1], scatter)
            moved = tempered_influence(
                problem, found.theta, found.weights, found.lambda_, self._share
            )
            mean, scatter = problem.directions(found.theta, moved)
            own = problem.split(found.theta)[1]
            size -= _trace(own, scatter)
            scatter += size[:, None, None] * own / problem.dim
        rows, columns = np.triu_indices(problem.dim)
        unit = problem.unit
        return np.hstack(
            [mean * unit, scatter[:, rows, columns] * unit[rows] * unit[columns] / self._ratio]
        )

    def _refits(self, counts: Array) -> Array:
        problem, first = self._problem, self._solution
        assert isinstance(problem, UnitScatterProblem)
        if self.efficiency is None:
            points = refits(problem, self.eps_bar, counts, first.theta)
            return np.array([problem.params_of(theta, self._ratio) for theta in points.theta])
        first, ratio = self.first_step._solution, self.first_step._ratio
        points = refits(problem, self.eps_bar, counts, first.theta)
        params = []
        for theta, losses, count in zip(points.theta, points.losses, counts, strict=True):
            start = replace(first, theta=theta, losses=losses)
            second = second_step(problem, start, ratio, self.efficiency, count / count.sum()).theta
            size = relative_size(problem, second, theta)
            params.append(problem.params_of(second, ratio * size))
        return np.array(params)

    def _find_hyperplane(
        self, problem: UnitScatterProblem, solution: Solution
    ) -> Hyperplane | None:
        location, scatter = problem.split(solution.theta)
        direction = np.linalg.eigh(scatter)[1][:, 0]
        distance = np.abs((problem.data - location) @ direction)
        used = solution.weights > 0
        # Not the eigenvalue, which rounding keeps far from zero.
        if solution.weights[used] @ distance[used] ** 2 > 4 * FLAT:
            return None
        normal = direction / problem.unit
        normal = normal / np.linalg.norm(normal)
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
        count = int((distance <= 100 * np.sqrt(FLAT)).sum())
        return Hyperplane(labelled(self.model, normal), float(normal @ self._mean), count)

    plot_distances = plotting.plot_distances
    plot_ellipse = plotting.plot_ellipse

    @property
    def mean(self) -> Any:
        """Location, shape (d,)."""
        return labelled(self.model, self._mean)

    @property
    def cov(self) -> Any:
        """Consistent covariance, shape (d, d)."""
        return labelled(self.model, self._cov)

    @property
    def raw_cov(self) -> Any:
        """The paper's estimate, the weighted covariance, shape (d, d)."""
        return labelled(self.model, self._raw_cov)

    @property
    def corr(self) -> Any:
        """Correlations, shape (d, d)."""
        root = np.sqrt(np.diag(self._cov))
        return labelled(self.model, self._cov / np.outer(root, root))

    @property
    def precision(self) -> Any:
        """Inverse of the covariance, shape (d, d)."""
        if self.hyperplane is not None:
            raise ValueError(
                "the covariance is singular, so that it has no inverse: the observations with "
                "weight lie on a hyperplane; see hyperplane"
            )
        return labelled(self.model, np.linalg.inv(self._cov))

    def mahalanobis(self, new: Any = None) -> Any:
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
        """
        values, index = self.model.endog, self.model.data.row_labels
        if new is not None:
            values, index = new_rows(self.model, new)
        centre, unit = self._units
        frame = ScatterProblem((values - centre) / unit)
        u, _ = frame.whitened(
            frame.join((self._mean - centre) / unit, self._cov / np.outer(unit, unit))
        )
        distance = np.sqrt(np.einsum("nd,nd->n", u, u))
        if self.hyperplane is not None:
            normal = np.asarray(self.hyperplane.normal)
            off = np.abs(values @ normal - self.hyperplane.offset)
            distance = np.where(off > 1e-8 * np.abs(values) @ np.abs(normal), np.inf, distance)
        return distance if index is None else pd.Series(distance, index=index)

    @property
    def _units(self) -> tuple[Array, Array]:
        root = np.sqrt(np.diag(self._cov))
        return self._mean, np.where(root > 0, root, 1.0)

    def _distances(self) -> Array:
        return np.asarray(self.mahalanobis())

    def _flags(self, level: float) -> np.ndarray:
        return self._distances() > np.sqrt(chi2.ppf(level, len(self._mean)))

    @property
    def n_kish_clean(self) -> float:
        """Kish's effective sample size that clean Gaussian data would have in the first step."""
        return self._total * kish_fraction(self.eps_bar, len(self._mean))

    def _summary_subject(self) -> tuple[str, Any]:
        return ("Variables:", [str(len(self.model.variables))])

    def _summary_title(self) -> str:
        return "Robust Risk Minimization: Mean and Covariance"

    def _efficiency_text(self) -> str:
        return f"{self.efficiency or gaussian_efficiency(self.eps_bar, len(self._mean)):.2f}"

    def _add_params(self, table: Any, yname: str | None, alpha: float) -> None:
        names = self.model.variables
        columns, values = ["mean", *names], np.c_[self._mean, self._cov]
        if self.hyperplane is None:
            columns = ["mean", "std err", *names]
            values = np.c_[self._mean, self.bse[: len(names)], self._cov]
        table.tables.append(number_table("Mean and covariance", values, names, columns))

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.efficiency is None and self.eps_bar > 0:
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean Gaussian data the variances of "
                f"the mean are those of {self._efficiency_text()} of the rows. "
                "fit(efficiency=0.95) makes it 0.95."
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


def _trace(scatter: Array, changes: Array) -> Array:
    """Return the trace of the inverse of a scatter times each change, shape (n,)."""
    return np.einsum("ij,nji->n", np.linalg.inv(scatter), changes)


class RRMCovResultsWrapper(RRMResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]] = {**RRMResultsWrapper._wrap_attrs}


wrap.populate_wrapper(RRMCovResultsWrapper, RRMCovResults)
