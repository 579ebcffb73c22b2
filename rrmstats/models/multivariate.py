"""Mean and covariance, and principal components, by robust risk minimization."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.base.model import LikelihoodModel

from rrmstats.core.entropy import Array
from rrmstats.core.frames import MAD_UNIT
from rrmstats.interchange import as_pandas, is_dask, is_dask_frame
from rrmstats.losses.components import ComponentsProblem
from rrmstats.losses.covariance import CovarianceProblem
from rrmstats.losses.matrices import spanned, weighted_median
from rrmstats.models import checks
from rrmstats.models.base import ProblemT, ResultsT, RRMModel, counted, same_signature
from rrmstats.partitions.formulas import FormulaDesign, used_names
from rrmstats.partitions.rows import PartitionedRows
from rrmstats.results.inference import label_array
from rrmstats.results.multivariate import RRMCovResults, RRMPCAResults, component_names

if TYPE_CHECKING:
    from typing_extensions import Self


class RRMMultivariate(RRMModel[ProblemT, ResultsT], LikelihoodModel):
    """A model of the joint distribution of several variables; `endog` holds them as columns."""

    formula: str

    @same_signature(RRMModel._checked, "given")
    def __init__(self, data: ArrayLike, eps_bar: float | str = "auto", **options: Any) -> None:
        held, rows, passed, kept = self._checked(eps_bar, {"endog": data}, **options)
        values: Any = checks.check_numbers("data", rows.pop("endog"))
        if np.ndim(values) == 1:
            series = isinstance(values, pd.Series)
            values = values.to_frame() if series else np.asarray(values)[:, None]
        rows = {name: counts for name, counts in rows.items() if counts is not None}
        with checks.readable_errors():
            super().__init__(values, None, **rows, **passed)
        if self.endog.ndim == 1:
            self.endog = self.endog[:, None]
        self._set_options(**kept, **rows)
        checks.check_finite("data", self.endog)
        self.nobs = float(len(self.endog))
        self._hold(held)
        self.data.param_names = self._param_names()

    def _param_names(self) -> list[str] | None:
        """Return the names of the parameters, where they are known before a fit."""
        return None

    def _held_arrays(self, held: PartitionedRows) -> dict[str, Any]:
        arrays, data = super()._held_arrays(held), held.arrays["endog"]
        return {**arrays, "endog": data[:, None] if data.ndim == 1 else data}

    @classmethod
    def _from_design(
        cls, formula: str, data: Any, subset: Any, drop_cols: Any, **kwargs: Any
    ) -> Self:
        if formula.split("~")[0].strip() or "~" not in formula:
            raise ValueError(f"formula must be one-sided, such as '~ a + b', got {formula!r}")
        missing = kwargs.pop("missing", "drop")
        frame = pd.DataFrame(data if subset is None else data.loc[subset])
        names = used_names(formula, kwargs.pop("eval_env"), list(frame.columns))
        design = FormulaDesign(formula, frame, names, list(drop_cols or []), missing)
        (values,), kept = design.matrices(frame)
        table = pd.DataFrame(values, columns=design.column_names[0], index=frame.index[kept])
        if kwargs.get("freq_weights") is not None:
            freq_weights = checks.per_row("freq_weights", kwargs["freq_weights"], len(frame))
            kwargs["freq_weights"] = np.asarray(freq_weights)[kept]
        if kwargs.get("groups") is not None:
            kwargs["groups"] = label_array(kwargs["groups"], len(frame))[kept]
        model = cls(table, **kwargs)
        model.formula, model.data.frame = formula, frame
        model._formula_design = design
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the names of the formula: modules such as numpy have no pickles."""
        design = self._formula_design
        if design is None:
            return dict(vars(self))
        bare = FormulaDesign(design.formula, design.rows, {}, design.drop_cols, design.missing)
        return {**vars(self), "_formula_design": bare}

    def _traits(self) -> list[str]:
        return [counted(len(self.variables), "variable")]

    @property
    def variables(self) -> list[str]:
        """Names of the variables."""
        names = self.data.ynames
        return [names] if isinstance(names, str) else list(names)

    @property
    def variable_index(self) -> list[str] | None:
        """Names of the variables, or None where the data had no labels."""
        return None if self.data.row_labels is None else self.variables

    def new_rows(self, new: pd.DataFrame | ArrayLike) -> tuple[Array, pd.Index | None]:
        """Return new observations as an array (m, d), and their index or None.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.cov("~ x1 + x2 + x3", hbk, eps_bar=0.25).fit()
        >>> values, labels = res.model.new_rows(hbk.head(2))
        >>> values.shape, labels.tolist()
        ((2, 3), [0, 1])
        """
        if is_dask(new):
            rows: Any = new
            if is_dask_frame(rows) and self._formula_design is None:
                rows = rows[self.variables]
            held: Any = self.design_in_partitions(rows)
            return held.arrays["exog"], held
        new = as_pandas(new)
        if isinstance(new, pd.DataFrame):
            if self._formula_design is not None:
                (values,), kept = self._formula_design.matrices(new)
                return values, new.index[kept]
            missing = [name for name in self.variables if name not in new.columns]
            if missing:
                raise ValueError(f"new data lack the variables {', '.join(missing)}")
            return new[self.variables].to_numpy(float), new.index
        array = np.atleast_2d(np.asarray(new, dtype=float))
        if array.shape[-1] != len(self.variables):
            raise ValueError(
                f"new data must have {len(self.variables)} columns, got shape {array.shape}"
            )
        return array, None


class RRMCov(RRMMultivariate[CovarianceProblem, RRMCovResults]):
    """Mean and covariance when some of the rows may be bad.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is the classical estimate. By
        default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : array_like, shape (n,), optional
        Labels of clusters that may be bad as a whole: each group has one weight. In a formula
        also the name of a column.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

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

    _results_class = RRMCovResults
    _refusals: ClassVar[dict[str, str]] = {
        "predict": (
            "there is no response to predict; results have mahalanobis(new) for distances of new "
            "rows, mean and cov"
        )
    }

    def _param_names(self) -> list[str]:
        """Return the names of the means and of the upper triangle of the covariance."""
        names = self.variables
        pairs = zip(*np.triu_indices(len(names)), strict=True)
        means = [f"mean[{name}]" for name in names]
        return means + [f"cov[{names[i]}, {names[j]}]" for i, j in pairs]

    def problem(self) -> CovarianceProblem:
        """Return the Gaussian losses, in units of the spread of the data."""
        return CovarianceProblem(self.endog)

    def _start_theta(self, problem: CovarianceProblem, start_params: ArrayLike) -> Array:
        params = np.asarray(start_params, dtype=float)
        return problem.from_params(params, self._bound, self.row_counts)


class RRMPCA(RRMMultivariate[ComponentsProblem, RRMPCAResults]):
    """Principal components when some of the rows may be bad.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    n_components : int or float
        Number of components, less than d; or, in (0, 1), the fraction of the variance that they
        are to explain.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is the classical analysis. By
        default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    demean : bool, optional
        False for components around the origin, the paper's case.
    standardize : bool, optional
        Divide each variable by a robust scale first.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : array_like, shape (n,), optional
        Labels of clusters that may be bad as a whole: each group has one weight. In a formula
        also the name of a column.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

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

    _results_class = RRMPCAResults
    _refusals: ClassVar[dict[str, str]] = {
        "predict": (
            "there is no response to predict; results have transform(new) for scores of new rows, "
            "and reconstruct()"
        )
    }

    @same_signature(RRMMultivariate.__init__)
    def __init__(
        self,
        data: ArrayLike,
        n_components: float = 1,
        eps_bar: float | str = "auto",
        *,
        demean: bool = True,
        standardize: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(data, eps_bar, **kwargs)
        d = self.endog.shape[1]
        if d < 2:
            raise ValueError("principal components need two or more variables, got one")
        whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
        number = isinstance(n_components, int | float | np.number)
        if not (number and (1 <= n_components < d if whole else 0 < n_components < 1)):
            raise ValueError(
                f"n_components must be a whole number from 1 to {d - 1}, fewer than the {d} "
                f"variables, or a fraction of the variance in (0, 1), got {n_components!r}"
            )
        self.n_components, self.demean, self.standardize = n_components, demean, standardize
        self._init_keys.extend(["n_components", "demean", "standardize"])
        if whole:
            self.data.param_names = component_names(int(n_components))

    def _traits(self) -> list[str]:
        asked = f"components for {self.n_components:.0%} of the variance"
        if self.n_components >= 1:
            asked = counted(int(self.n_components), "component")
        return [*super()._traits(), asked]

    def column_unit(self) -> Array:
        """Return what each variable is divided by, shape (d,)."""
        if not self.standardize:
            return np.ones(self.endog.shape[1])
        center = weighted_median(self.endog, self.row_counts)
        unit = MAD_UNIT * weighted_median(np.abs(self.endog - center), self.row_counts)
        if not (unit > 0).all():
            names = [name for name, u in zip(self.variables, unit, strict=True) if not u > 0]
            raise ValueError(
                f"standardize=True needs variables that vary, but most values are the same in "
                f"{', '.join(names)}; drop them or use standardize=False"
            )
        return unit

    def problem(self) -> ComponentsProblem:
        """Return the squared distances to a subspace."""
        self._check_span()
        return ComponentsProblem(
            self.endog, int(self.n_components), self.demean, self.column_unit()
        )

    def _check_span(self) -> None:
        """Raise where the rows that count span fewer dimensions than there are components."""
        used, q = self.row_counts, int(self.n_components)
        if self.freq_weights is not None:  # one number for all rows stays one in blocks
            used = np.sign(used)
        few = used.sum() < q + self.demean  # which is told where rows are counted
        found = q if few else spanned(self.endog, used, self.demean, q)
        if found >= q:
            return
        rows = "the rows" if self.freq_weights is None else "the rows of positive frequency weight"
        if found == 0:
            raise ValueError(f"{rows} are all the same, and have no components; add other rows")
        raise ValueError(
            f"n_components={q} is too large: {rows} span {counted(found, 'dimension')}; use "
            f"n_components={found} or fewer"
        )

    @same_signature(RRMModel.fit)
    def fit(self, **kwargs: Any) -> RRMPCAResults:
        """Minimize the robust risk over the subspace and the weights together.

        Where `n_components` is a fraction, components are added until they explain it.

        Parameters
        ----------
        steps, n_starts, rng, tol, maxiter, accelerate : optional
            As `RRMOLS.fit` takes them; `start_params` is refused.
        cov_type, cov_kwds, use_t, stability : optional
            As `RRMOLS.fit` takes them.

        Returns
        -------
        RRMPCAResults

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> len(rrmstats.RRMPCA(hbk, 0.6, eps_bar=0.2).fit().eigenvals)
        2
        """
        if self.n_components >= 1:
            return super().fit(**kwargs)
        most = min(self.endog.shape[1], len(self.endog)) - 1
        for q in range(1, most + 1):
            results = self._with_components(q).fit(**kwargs)
            if results.explained_variance_ratio.sum() >= self.n_components:
                break
        return results

    def _path_model(self) -> RRMPCA:
        """Return the model with the number of components that it has at its own `eps_bar`."""
        if self.n_components >= 1:
            return self
        return self._with_components(len(self.fit().eigenvals))

    def _with_components(self, q: int) -> RRMPCA:
        model = copy(self)
        model.data, model.n_components = copy(self.data), q
        model.data.param_names = component_names(q)
        return model

    def _start_theta(self, problem: ComponentsProblem, start_params: ArrayLike) -> NoReturn:
        raise ValueError("RRMPCA takes no start_params; use n_starts and rng")
