"""Results of a linear regression with absorbed effects."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.regression._prediction import PredictionResults

from rrmstats.core.entropy import Array
from rrmstats.losses.absorbed import AbsorbedTangent
from rrmstats.results.labels import labeled
from rrmstats.results.linear import RRMOLSResults


class RRMAbsorbedResults(RRMOLSResults):
    """Results of a linear regression with absorbed effects; see `RRMResults` for what all share.

    `model.endog` and `model.exog` are less the effects, under the weights of the fit. Leverages
    are those of the predictors that are left; the scale, t tests and errors account for the
    effects too.

    Attributes
    ----------
    n_effects : int
        Number of effects, less those that the others determine.
    rsquared_within : float
        Share of the variance that the predictors explain once the effects are taken out.

    Examples
    --------
    >>> import numpy as np, pandas as pd, rrmstats
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"firm": np.repeat(np.arange(20), 10), "x": rng.normal(size=200)})
    >>> frame["y"] = 2 * frame.x + frame.firm + 0.1 * rng.normal(size=200)
    >>> frame.loc[::15, "y"] += 20
    >>> res = rrmstats.feols("y ~ x | firm", frame)
    >>> res.params.round(1).to_dict(), int(res.outliers().sum()), res.n_effects
    ({'x': 2.0}, 14, 20)
    """

    _title = "Robust Risk Minimization: Linear Regression with Fixed Effects"

    @cached_property
    def n_effects(self) -> int:
        """Number of effects, less those that the others determine."""
        return int(self.model.factors.n_effects)

    @property
    def resid(self) -> Array:
        """Residuals of all rows, shape (n,)."""
        return self.model.endog - self.model.exog @ np.asarray(self.params)

    @property
    def fittedvalues(self) -> Array:
        """Fitted values of all rows with their effects, shape (n,)."""
        return self._raw[:, 0] - np.asarray(self.resid)

    @property
    def _raw(self) -> Array:
        """Response and predictors with the effects, shape (n, k + 1)."""
        found: Array = self.model.absorbed_problem.data
        return found

    @property
    def rsquared(self) -> float:
        """Share of the variance of the good responses that predictors and effects explain."""
        return self._explained_share(self._raw[:, 0])

    @cached_property
    def rsquared_within(self) -> float:
        """Share of the variance within levels that the predictors explain."""
        return self._explained_share(self.model.endog)

    @property
    def df_resid(self) -> float:
        """Number of observations less those of the parameters and of the effects."""
        return self.nobs - self.rank - self.n_effects

    @property
    def df_resid_inference(self) -> float:
        """Degrees of freedom of t tests: clusters less one, or good rows less what is fitted."""
        clusters = self._inference.dependence.clusters
        counts = [float(each.max()) for each in clusters]
        return min([self.inference_freedom, *counts])

    def fixef(self) -> dict[str, pd.Series]:
        """Return the effects by level, a Series for each factor.

        The first levels of the second factor and of those after it have the effect zero. Levels
        that no chain of rows connects have no common origin.

        Examples
        --------
        >>> import numpy as np, pandas as pd, rrmstats
        >>> frame = pd.DataFrame({"firm": list("aaabbbccc"), "x": [1.0, 2, 4] * 3})
        >>> frame["y"] = 2 * frame.x + frame.firm.map({"a": 1, "b": 3, "c": 4})
        >>> rrmstats.feols("y ~ x | firm", frame, eps_bar=0).fixef()["firm"].round(6).tolist()
        [1.0, 3.0, 4.0]
        """
        factors, raw = self.model.factors, self._raw
        left = raw[:, 0] - raw[:, 1:] @ np.asarray(self.params)
        effects = factors.effects(left[:, None], self._tangent_weights)[:, 0]
        parts = np.split(effects, factors.starts[1:-1])
        for part in parts[1:]:
            parts[0] += part[0]
            part -= part[0]
        absorbed = self.model.absorbed
        return {
            name: pd.Series(part, index=levels, name=name)
            for name, levels, part in zip(absorbed.names, absorbed.levels, parts, strict=True)
        }

    @property
    def _tangent_weights(self) -> Array:
        """Weights under which the effects were taken out, shape (n,)."""
        problem = getattr(self._estimate, "row_estimate", self._estimate).problem
        assert isinstance(problem, AbsorbedTangent)
        return problem.weights

    def predict(self, exog: Any = None, transform: bool = True) -> Any:
        """Return predictions with the effects of the levels, for other rows or those of the fit.

        Parameters
        ----------
        exog : DataFrame, optional
            Predictors, and the absorbed factors by name; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.

        Returns
        -------
        Series
            NaN for levels that the fit has not.

        Examples
        --------
        >>> import numpy as np, pandas as pd, rrmstats
        >>> frame = pd.DataFrame({"firm": list("aaabbbccc"), "x": [1.0, 2, 4] * 3})
        >>> frame["y"] = 2 * frame.x + frame.firm.map({"a": 1, "b": 3, "c": 4})
        >>> res = rrmstats.feols("y ~ x | firm", frame, eps_bar=0)
        >>> res.predict(pd.DataFrame({"firm": ["c", "z"], "x": [1.0, 1.0]})).round(6).tolist()
        [6.0, nan]
        """
        if exog is None:
            return labeled(self.fittedvalues, self.model.data.row_labels)
        missing = [name for name in self.model.absorbed.names if name not in exog]
        if missing:
            raise ValueError(
                f"predict needs the absorbed factors as columns, not found: {', '.join(missing)}"
            )
        rows, labels = self._rows_to_predict(exog.drop(columns=[]), transform)
        found = pd.Series(rows @ np.asarray(self.params), index=labels)
        for name, effects in self.fixef().items():
            found = found + exog.loc[found.index, name].map(effects)
        return found

    def get_prediction(
        self, exog: Any = None, transform: bool = True, **kwargs: Any
    ) -> PredictionResults:
        """Refuse: effects of levels with few rows have no errors that hold."""
        raise NotImplementedError(
            "absorbed effects have no standard errors; predict() has the predictions, and "
            "C(factor) in the formula of rrmstats.ols intervals where levels have many rows"
        )

    def _more_entries(self) -> tuple[list[Any], list[Any]]:
        absorbed = self.model.absorbed
        told = [
            f"{name} ({len(levels):,})"
            for name, levels in zip(absorbed.names, absorbed.levels, strict=True)
        ]
        return (
            [("Fixed effects:", [", ".join(told)])],
            [("Within R-squared:", [f"{self.rsquared_within:.4f}"])],
        )

    def _notes(self) -> list[str]:
        told = (
            f"{self.n_effects:,} effects are absorbed; the scale and the errors account for them."
        )
        dropped = self.model.absorbed.n_dropped
        if dropped:
            told += f" {dropped:,} rows alone in a level were dropped."
        return [*super()._notes(), told]
