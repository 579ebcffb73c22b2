"""Nonlinear regression by robust risk minimization, and scipy's `curve_fit` with bad rows."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.base.data import handle_data

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.interchange import as_pandas, as_values
from rrmstats.losses.curves import CurveProblem, CurveTangent, starts_within
from rrmstats.models.base import DesignedModel, RRMModel
from rrmstats.models.checks import EPS_BAR_MAX, check_finite, names_of_caller, per_row
from rrmstats.results.curves import RRMNLSResults
from rrmstats.results.inference import Inference

if TYPE_CHECKING:
    from typing_extensions import Self

#: Parameters by name, or one after the other.
Params = ArrayLike | Mapping[str, Any]


class RRMNLS(DesignedModel[CurveProblem, RRMNLSResults]):
    """Nonlinear regression when some of the rows may be bad.

    Parameters
    ----------
    function : callable or str
        ``function(x, *params)`` returns the predictions of all rows; or its right side as text, an
        expression in the columns of `x`, the parameters and numpy's functions.
    x : array_like, DataFrame or mapping
        What the function depends on; passed on to it as it is.
    endog : array_like, shape (n,)
        Responses.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default chosen from the data. 0 is
        least squares.
    p0 : array_like, shape (k,), or dict, optional
        Parameters to start from; a dictionary names them. By default all are one, and the
        signature of the function has their names.
    bounds : tuple of array_like, or dict, optional
        Least and largest values, each a number or one per parameter; or a pair for some parameters
        by name. Either end may be None.
    sigma : array_like, shape (n,), optional
        Standard deviations of the noise of the rows, up to a common factor.
    jac : callable, optional
        ``jac(x, *params)`` returns the derivatives of the predictions, shape (n, k); by default
        differences.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats import RRMNLS
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 4, 60)
    >>> y = 3 * np.exp(-x) + 0.05 * rng.standard_normal(60)
    >>> y[::6] += 2
    >>> res = RRMNLS(lambda x, a, b: a * np.exp(-b * x), x, y).fit()
    >>> res.params.round(1).to_dict(), int(res.outliers().sum())
    ({'a': 3.0, 'b': 1.0}, 10)
    """

    exog: Any = None
    formula: str
    #: What statsmodels' code asks of a design: a curve has no constant.
    k_constant = 0
    _cov_types = ("sandwich", "nonrobust", "cluster", "HAC", "bootstrap")
    _results_class = RRMNLSResults
    _row_arrays = (*RRMModel._row_arrays, "sigma")
    _refusals: ClassVar[dict[str, str]] = {
        "from_formula": "use rrmstats.nls('y ~ a * exp(-b * x)', data, p0={...})"
    }

    def __init__(
        self,
        function: Callable[..., ArrayLike] | str,
        x: Any,
        endog: ArrayLike,
        eps_bar: float | str = "auto",
        *,
        p0: Params | None = None,
        bounds: tuple[Any, Any] | Mapping[str, Any] | None = None,
        sigma: ArrayLike | None = None,
        jac: Callable[..., ArrayLike] | None = None,
        eps_bar_max: float = EPS_BAR_MAX,
        freq_weights: ArrayLike | None = None,
    ) -> None:
        self.x, endog = as_pandas(x), as_pandas(endog)
        labels = endog.index if isinstance(endog, pd.Series) else None
        self.endog = np.asarray(endog, dtype=float)
        if self.endog.ndim != 1:
            raise ValueError(f"endog must be one number per row, got shape {self.endog.shape}")
        check_finite("endog", self.endog)
        names = param_names(function, p0)
        self.bounds = checked_bounds(bounds, names)
        self.p0 = checked_start(p0, names, self.bounds)
        self.function = expression(function, names) if isinstance(function, str) else function
        self.jac, self.sigma = jac, checked_sigma(sigma, len(self.endog))
        check_predictions(self.predict(self.p0), len(self.endog), self.p0)
        counts = per_row("freq_weights", as_values(freq_weights), len(self.endog))
        self.freq_weights = counts
        name = getattr(endog, "name", None)
        rows = pd.Series(self.endog, index=labels, name="y" if name is None else str(name))
        self.data = handle_data(rows, None)
        self.data.param_names = list(names)
        self._init_keys, self._data_attr = [], ["endog", "x", "sigma"]
        self._set_options(eps_bar, eps_bar_max, freq_weights=counts)

    @property
    def endog_names(self) -> str:
        """Name of the response."""
        return str(self.data.ynames)

    def problem(self) -> CurveProblem:
        """Return the squared residuals of the curve, in units of `sigma`."""
        unit = np.ones(1) if self.sigma is None else self.sigma
        batch = batched(self.predict, self.p0, len(self.endog))
        return CurveProblem(
            self.endog / unit,
            lambda params: batch(params) / unit,
            starts_within(self.p0, self.bounds),
            self.bounds,
            None if self.jac is None else lambda params: self.slopes(params) / unit[:, None],
        )

    @property
    def axis(self) -> tuple[str, Array] | None:
        """Name and values (n,) of the variable of the curve; None where there are several."""
        if isinstance(self.x, pd.DataFrame):
            if self.x.shape[1] != 1:
                return None
            return str(self.x.columns[0]), np.asarray(self.x.iloc[:, 0], dtype=float)
        values = np.asarray(self.x)
        if values.shape != self.endog.shape or values.dtype.kind not in "fiu":
            return None
        return str(getattr(self.x, "name", None) or "x"), values.astype(float)

    def at_axis(self, grid: Array) -> Any:
        """Return values (m,) of the variable of the curve as its function takes them.

        Examples
        --------
        >>> import numpy as np
        >>> from rrmstats import RRMNLS
        >>> model = RRMNLS(lambda x, a: a * x**2, np.arange(4.0), np.arange(4.0), 0.2)
        >>> model.at_axis(np.array([0.5]))
        array([0.5])
        """
        if isinstance(self.x, pd.DataFrame):
            return pd.DataFrame({self.x.columns[0]: grid})
        return grid

    def predict(self, params: ArrayLike, x: Any = None) -> Array:
        """Return predictions at parameters (k,), for the rows of the data or for others.

        Examples
        --------
        >>> import numpy as np
        >>> from rrmstats import RRMNLS
        >>> model = RRMNLS(lambda x, a: a * x**2, np.arange(4.0), np.arange(4.0), 0.2)
        >>> model.predict([2.0])
        array([ 0.,  2.,  8., 18.])
        """
        at = self.x if x is None else x
        return np.asarray(self.function(at, *np.asarray(params, dtype=float)), dtype=float)

    def slopes(self, params: Array, x: Any = None) -> Array:
        """Return the derivatives of the predictions with respect to parameters, shape (m, k).

        Examples
        --------
        >>> import numpy as np
        >>> from rrmstats import RRMNLS
        >>> model = RRMNLS(lambda x, a: a * x**2, np.arange(4.0), np.arange(4.0), 0.2)
        >>> model.slopes(np.array([2.0])).round(6).ravel()
        array([0., 1., 4., 9.])
        """
        n = len(self.endog) if x is None else len(self.predict(params, x))
        if self.jac is None:
            batch = batched(lambda at: self.predict(at, x), params, n)
            return CurveProblem(np.zeros(n), batch, params[None], self.bounds).jacobian(params)
        found = np.asarray(self.jac(self.x if x is None else x, *params), dtype=float)
        if found.shape != (n, len(params)):
            raise ValueError(
                f"jac must return shape {(n, len(params))}, one row per row of the data, got "
                f"{found.shape}"
            )
        return found

    def _part(self, rows: np.ndarray) -> Self:
        """Return the model of some rows."""
        part = super()._part(rows)
        part.x = rows_of(self.x, rows, len(self.endog))
        whole = np.broadcast_to(self.predict(self.p0), self.endog.shape)
        found = np.broadcast_to(part.predict(self.p0), rows.shape)
        if not np.allclose(found, whole[rows], equal_nan=True):
            raise NotImplementedError(
                "the function predicts otherwise where it is given some of the rows, which "
                "few_rows and fits to many rows need; it must predict each row by itself"
            )
        return part

    def _start_theta(self, problem: CurveProblem, start_params: ArrayLike) -> Array:
        return RRMModel._start_theta(self, problem, start_params)  # the curve has no design

    def _wrapped(
        self, estimate: Estimate, inference: Inference, first_step: RRMNLSResults | None
    ) -> RRMNLSResults:
        """Return results of a model whose design is the tangent of the curve at its end."""
        assert isinstance(estimate.problem, CurveTangent)
        model = copy(self)
        model.exog = estimate.problem.slopes
        return RRMModel._wrapped(model, estimate, inference, first_step)


def nls(
    formula: str | Callable[..., ArrayLike],
    data: Any,
    eps_bar: float | str = "auto",
    *,
    p0: Params | None = None,
    endog: str | ArrayLike | None = None,
    bounds: tuple[Any, Any] | Mapping[str, Any] | None = None,
    sigma: str | ArrayLike | None = None,
    jac: Callable[..., ArrayLike] | None = None,
    **kwargs: Any,
) -> RRMNLS:
    """Return a nonlinear regression of the columns of a frame; call its `fit`.

    Parameters
    ----------
    formula : str or callable
        Such as ``"y ~ a * exp(-b * x)"``: the response, and an expression in columns, parameters,
        numpy's functions and names of the caller. Or a function ``f(data, *params)``.
    data : DataFrame or mapping
        The variables. Rows with missing values in a formula's columns are dropped.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default chosen from the data.
    p0 : dict or array_like
        Parameters to start from, by name; those of a formula must be named.
    endog : str or array_like, optional
        The response, where `formula` is a function: a column, or its values.
    bounds, jac
        See `RRMNLS`.
    sigma : str or array_like, optional
        Standard deviations of the noise, up to a common factor: a column, or its values.
    **kwargs
        What `RRMNLS` takes besides: `eps_bar_max`, `freq_weights`.

    Returns
    -------
    RRMNLS

    Examples
    --------
    >>> import numpy as np, pandas as pd, rrmstats
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"dose": np.linspace(0.1, 10, 60)})
    >>> frame["rate"] = 8 * frame.dose / (2 + frame.dose) + 0.1 * rng.standard_normal(60)
    >>> frame.loc[::8, "rate"] = 30.0
    >>> model = rrmstats.nls("rate ~ top * dose / (half + dose)", frame, p0={"top": 5, "half": 1})
    >>> model.fit().params.round(1).to_dict()
    {'top': 8.1, 'half': 2.1}
    """
    frame = pd.DataFrame(as_pandas(data))
    sigma = frame[sigma] if isinstance(sigma, str) else sigma
    if isinstance(formula, str):
        left, right = formula_sides(formula)
        if not isinstance(p0, Mapping):
            raise ValueError(
                f"p0 must name the parameters of the formula {formula!r}, such as "
                f"p0={{'a': 1, 'b': 2}}, got {p0!r}"
            )
        names = names_of_caller(0, 1)
        function: Any = expression(right, list(p0), names)
        kept = frame[[name for name in frame if mentions(formula, name)]].notna().all(axis=1)
        values = expression(left, [], names)(frame.loc[kept])
        sigma = None if sigma is None else np.asarray(as_values(sigma))[kept]
        frame = frame.loc[kept, [name for name in frame if mentions(right, name)]]
        given = pd.Series(np.asarray(values, float), index=frame.index, name=left)
    elif endog is None:
        raise ValueError("endog must name the response where the formula is a function")
    else:
        function = formula
        given = frame[endog] if isinstance(endog, str) else pd.Series(np.asarray(endog))
    options: Any = {"p0": p0, "bounds": bounds, "sigma": sigma, "jac": jac, **kwargs}
    model = RRMNLS(function, frame, given, eps_bar, **options)
    if isinstance(formula, str):
        model.formula = formula
    return model


def curve_fit(
    f: Callable[..., ArrayLike],
    xdata: Any,
    ydata: ArrayLike,
    p0: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    absolute_sigma: bool = False,
    check_finite: bool = True,
    bounds: tuple[Any, Any] = (-np.inf, np.inf),
    method: str | None = None,
    jac: Callable[..., ArrayLike] | str | None = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    eps_bar: float | str = "auto",
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Fit a curve as `scipy.optimize.curve_fit` does, when some of the points may be bad.

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` returns the predictions of all points.
    xdata : array_like
        Passed on to `f`.
    ydata : array_like, shape (n,)
    p0, sigma, absolute_sigma, bounds, jac
        As in scipy; `sigma` has one standard deviation per point.
    check_finite : bool, optional
        Accepted as in scipy; points that are not finite are refused in any case, unless
        `nan_policy` is "omit".
    method : str, optional
        Accepted as in scipy, and of no effect.
    full_output : bool, optional
        Whether to return what scipy does then; ``infodict["results"]`` has the results.
    nan_policy : {"raise", "omit"}, optional
        What to do with points that are NaN.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad points, in [0, 1); by default chosen from the data. 0 is
        scipy's fit.
    **kwargs
        Accepted as in scipy, and of no effect: options of its methods.

    Returns
    -------
    popt : ndarray, shape (k,)
    pcov : ndarray, shape (k, k)
    infodict, mesg, ier
        Only with `full_output`.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats import curve_fit
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 4, 60)
    >>> y = 3 * np.exp(-x) + 0.05 * rng.standard_normal(60)
    >>> y[::6] += 2
    >>> popt, pcov = curve_fit(lambda x, a, b: a * np.exp(-b * x), x, y)
    >>> popt.round(1), pcov.shape
    (array([3., 1.]), (2, 2))
    """
    if nan_policy not in (None, "raise", "omit"):
        raise ValueError(f"nan_policy must be 'raise', 'omit' or None, got {nan_policy!r}")
    xdata = xdata if callable(getattr(xdata, "keys", None)) else np.asarray(xdata)
    values = np.asarray(ydata, dtype=float)
    if nan_policy == "omit":
        kept = ~np.isnan(values) & ~np.isnan(xdata).any(axis=tuple(range(np.ndim(xdata) - 1)))
        xdata, values = xdata[..., kept], values[kept]
        sigma = None if sigma is None else np.asarray(sigma)[kept]
    slopes = jac if callable(jac) else None
    model = RRMNLS(f, xdata, values, eps_bar, p0=p0, bounds=bounds, sigma=sigma, jac=slopes)
    res = model.fit(cov_type="nonrobust" if absolute_sigma else None)
    popt, pcov = np.asarray(res.params), np.asarray(res.cov_params())
    if absolute_sigma and sigma is not None:
        pcov = pcov / res.scale
    if not full_output:
        return popt, pcov
    infodict = {"fvec": np.asarray(res.resid), "nfev": res.n_iter, "results": res}
    mesg = "The fit converged." if res.converged else "The fit did not converge."
    return popt, pcov, infodict, mesg, 1 if res.converged else 5


def param_names(function: Any, p0: Params | None) -> list[str]:
    """Return the names of the parameters: keys of `p0`, or arguments of the function."""
    if isinstance(p0, Mapping):
        return [str(name) for name in p0]
    names = argument_names(function)
    if p0 is None and not names:
        raise ValueError("p0 is needed: the function does not tell how many parameters it has")
    size = len(names) if p0 is None else np.size(as_values(p0))
    return names if len(names) == size else [f"p{i}" for i in range(size)]


def checked_start(p0: Params | None, names: Sequence[str], bounds: tuple[Array, Array]) -> Array:
    """Return the parameters to start from, shape (k,); by default as scipy chooses them."""
    lower, upper = bounds
    if p0 is None:
        low, high = np.isfinite(lower), np.isfinite(upper)
        with np.errstate(invalid="ignore"):
            choices = [0.5 * (lower + upper), lower + 1, upper - 1]
        return np.select([low & high, low, high], choices, 1.0)
    found = np.asarray(list(p0.values()) if isinstance(p0, Mapping) else as_values(p0), float)
    found = np.atleast_1d(found)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise ValueError(f"p0 must be finite numbers, one per parameter, got {p0!r}")
    outside = (found < lower) | (found > upper)
    if outside.any():
        place = int(np.flatnonzero(outside)[0])
        raise ValueError(
            f"p0 of {names[place]} is {found[place]:g}, outside of its bounds {lower[place]:g} "
            f"and {upper[place]:g}; start within them"
        )
    return found


def argument_names(function: Any) -> list[str]:
    """Return the names of the arguments after the first; none where they are not known."""
    try:
        kinds = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in kinds):
        return []
    return [each.name for each in kinds][1:]


def checked_bounds(bounds: Any, names: Sequence[str]) -> tuple[Array, Array]:
    """Return the least and the largest values of the parameters, shapes (k,)."""
    if isinstance(bounds, Mapping):
        unknown = [name for name in bounds if name not in names]
        if unknown:
            raise ValueError(f"bounds has {unknown[0]!r}, but the parameters are {list(names)}")
        bounds = zip(*(bounds.get(name, (None, None)) for name in names), strict=True)
    elif hasattr(bounds, "lb"):  # scipy's Bounds
        bounds = bounds.lb, bounds.ub
    given = [np.array(end, float) for end in ((None, None) if bounds is None else bounds)]
    lower, upper = (  # None is NaN by now
        np.broadcast_to(np.where(np.isnan(end), default, end), (len(names),))
        for end, default in zip(given, (-np.inf, np.inf), strict=True)
    )
    if not (lower < upper).all():
        place = int(np.flatnonzero(~(lower < upper))[0])
        raise ValueError(
            f"the bounds of {names[place]} are {lower[place]:g} and {upper[place]:g}; the first "
            "must be smaller"
        )
    return lower, upper


def checked_sigma(sigma: ArrayLike | None, n: int) -> Array | None:
    """Return the standard deviations of the noise, shape (n,)."""
    if sigma is None:
        return None
    found = np.asarray(as_values(sigma), dtype=float)
    if found.shape == (n, n):
        raise NotImplementedError(
            "sigma as a covariance matrix mixes the rows, so that none is bad by itself; give "
            "standard deviations, shape (n,)"
        )
    found = np.broadcast_to(found, (n,))
    if not (np.isfinite(found) & (found > 0)).all():
        raise ValueError("sigma must be positive and finite in every row")
    return found


def check_predictions(found: Array, n: int, p0: Array) -> None:
    """Raise where predictions at p0 are not one finite number per row."""
    if found.shape != (n,):
        raise ValueError(
            f"the function must return one prediction per row, shape ({n},), got {found.shape}"
        )
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise ValueError(
            f"the function is {found[row]} in row {row} at p0 = {p0.tolist()}; start from "
            "parameters where it is finite, and fix or drop such rows"
        )


def batched(function: Callable[[Array], Array], p0: Array, n: int) -> Callable[[Array], Array]:
    """Return a function of a batch of parameters (b, k), with predictions (b, n).

    Most curves broadcast over parameters of shape (b, 1); others are called one by one.
    """

    def one_by_one(params: Array) -> Array:
        return np.stack([function(each) for each in params])

    def at_once(params: Array) -> Array:
        found = function(params.T[:, :, None])
        return np.broadcast_to(found, (len(params), n))

    trial = np.stack([p0, 1.01 * p0 + 0.01])
    try:
        with np.errstate(all="ignore"):
            same = np.allclose(at_once(trial), one_by_one(trial), rtol=1e-10, equal_nan=True)
    except Exception:  # whatever a function does not expect of an array
        same = False
    return at_once if same else one_by_one


def formula_sides(formula: str) -> tuple[str, str]:
    """Return the left and the right side of a formula."""
    left, _, right = (side.strip() for side in formula.partition("~"))
    if not left or not right or "~" in right:
        raise ValueError(f"the formula must be such as 'y ~ a * exp(-b * x)', got {formula!r}")
    return left, right


def mentions(formula: str, name: Any) -> bool:
    """Tell whether a formula has the name of a column."""
    return str(name) in compile(formula.replace("~", ","), "<formula>", "eval").co_names


def expression(text: str, params: list[str], names: Any = None) -> Callable[..., Any]:
    """Return a function of a frame and parameters from the text of an expression."""
    try:
        code = compile(text.strip(), "<formula>", "eval")
    except SyntaxError as error:
        raise ValueError(
            f"{text!r} is not an expression: {error.msg}; write it as in Python, such as "
            "'a * exp(-b * x)'"
        ) from None

    def function(x: Any, *values: Any) -> Any:
        columns = {name: np.asarray(x[name]) for name in code.co_names if name in x}
        around = {} if names is None else names.namespace
        known = ChainMap(dict(zip(params, values, strict=True)), columns, around, vars(np))
        try:
            return eval(code, {"np": np}, known)
        except NameError as error:
            raise ValueError(
                f"{text!r}: {error.args[0]}; it is neither a parameter in p0 ({params}) nor a "
                "column of the data"
            ) from None

    return function


def rows_of(x: Any, rows: np.ndarray, n: int) -> Any:
    """Return what a function takes, for some of its n rows: frames, arrays or several of them.

    Arrays have the rows along their last axis, as scipy's, or along their first.
    """
    if isinstance(x, pd.DataFrame | pd.Series):
        return x.iloc[rows]
    if isinstance(x, Mapping):
        return {name: rows_of(values, rows, n) for name, values in x.items()}
    if isinstance(x, tuple | list) and len(x) != n:
        return type(x)(rows_of(values, rows, n) for values in x)
    values = np.asarray(x)
    if values.ndim > 0 and values.shape[-1] == n:
        return values[..., rows]
    return values[rows] if values.ndim > 0 and len(values) == n else x
