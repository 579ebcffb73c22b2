"""Results of a statsmodels model with a likelihood per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.base.model import LikelihoodModelResults
from statsmodels.discrete.count_model import GenericZeroInflated
from statsmodels.discrete.discrete_margins import DiscreteMargins
from statsmodels.discrete.discrete_model import (
    BinaryModel,
    CountModel,
    DiscreteModel,
    MultinomialResults,
)
from statsmodels.othermod.betareg import BetaModel

from rrmstats.core.consistency import gaussian_efficiency
from rrmstats.core.entropy import Array
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood import LikelihoodEstimate
from rrmstats.results.base import SECOND_STEP, RRMResults, refused, wrapper_of
from rrmstats.results.explanations import BY_FAMILY, Wording
from rrmstats.results.inference import Inference
from rrmstats.results.means import MeanPrediction
from rrmstats.results.own_loss import loss_cutoff, loss_distances

NO_SATURATED = (
    "The loss is minus the log-likelihood, because the largest value that it could have is not "
    "known: rows whose response has a wide distribution lose weight whatever it is. "
    "robustify(saturated=) takes the largest values."
)
NOT_CORRECTED = (
    "The parameters are those of least risk, not corrected: the model has no get_distribution "
    "that gives one distribution per row. On clean data the weights prefer rows near the fit, so "
    "that parameters of scale come out too small."
)
NOT_KNOWN = (
    "No standard error for {}: at the end of its range, or the rows with weight tell nothing of "
    "it (no overdispersion, no added zeros). The other standard errors take it as known; a "
    "simpler model would do."
)


class RRMLikelihoodResults(RRMResults):
    """Results of a statsmodels model; see `RRMResults` for what all models share.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Parameters of the model in one vector, auxiliary ones such as alpha among them. They are
        consistent where `corrected`.
    raw_params : ndarray, shape (k,)
        The paper's, the minimizer of the risk.
    corrected : bool
        Whether the distribution of the responses is known, so that `params` are consistent.
    saturated : bool
        Whether losses are above the largest log-likelihood that a row could have.

    Examples
    --------
    >>> import numpy as np, rrmstats, statsmodels.api as sm
    >>> rng = np.random.default_rng(0)
    >>> exog = sm.add_constant(rng.standard_normal(100))
    >>> count = rng.poisson(np.exp(exog @ [1.0, 0.5]))
    >>> model = rrmstats.robustify(sm.Poisson(count, exog), eps_bar=0.1)
    >>> res = model.fit()
    >>> res.corrected, res.saturated, res.unknown
    (True, True, [])
    """

    _estimate: LikelihoodEstimate
    first_step: RRMLikelihoodResults | None
    _meaningless: ClassVar[dict[str, str]] = refused(
        likelihood=("llf", "llnull", "aic", "bic", "info_criteria", "prsquared", "llr"),
        optimizer=("mle_retvals", "mle_settings", "fit_history"),
        no_influence=("get_influence",),
    )

    def __init__(
        self,
        model: Any,
        estimate: LikelihoodEstimate,
        inference: Inference,
        first_step: RRMLikelihoodResults | None = None,
    ) -> None:
        super().__init__(model, estimate, inference, first_step)
        self.corrected = estimate.corrected
        self.saturated = estimate.saturated
        self._known = estimate.known

    @property
    def _title(self) -> str:  # type: ignore[override]  # it names the model that was given
        return f"Robust Risk Minimization: {self.model.kind}"

    @property
    def fittedvalues(self) -> Array:
        """What the model predicts for the rows of the fit."""
        return np.asarray(self.model.predict(np.asarray(self.params)))

    def get_prediction(
        self,
        exog: pd.DataFrame | ArrayLike | None = None,
        transform: bool = True,
        **kwargs: Any,
    ) -> MeanPrediction:
        """Predict with confidence intervals, by the delta method.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        **kwargs
            What the model's `predict` takes, such as `which`, `offset` or `exog_infl`.

        Returns
        -------
        MeanPrediction

        Examples
        --------
        >>> import numpy as np, rrmstats, statsmodels.api as sm
        >>> rng = np.random.default_rng(0)
        >>> exog = sm.add_constant(rng.standard_normal(100))
        >>> count = rng.poisson(np.exp(exog @ [1.0, 0.5]))
        >>> res = rrmstats.robustify(sm.Poisson(count, exog), eps_bar=0.1).fit()
        >>> res.get_prediction(exog[:2]).summary_frame().columns.tolist()
        ['mean', 'mean_se', 'mean_ci_lower', 'mean_ci_upper']
        """
        labels, rows = self.model.data.row_labels, None
        if exog is not None:
            rows, labels = self._rows_to_predict(exog, transform)

        def predict(params: Array) -> Array:
            return np.asarray(self.model.predict(params, rows, **kwargs))

        return predicted_means(
            self.model.model, predict, np.asarray(self.params), self.cov_params_default, labels
        )

    def get_margeff(
        self, at: str = "overall", method: str = "dydx", **kwargs: Any
    ) -> DiscreteMargins:
        """Return marginal effects; see statsmodels' `DiscreteResults.get_margeff`.

        Parameters
        ----------
        at : str, optional
            Where the effects are taken.
        method : str, optional
            Kind of effect.
        **kwargs
            `atexog`, `dummy` and `count` of statsmodels.

        Returns
        -------
        statsmodels DiscreteMargins

        Examples
        --------
        >>> import numpy as np, rrmstats, statsmodels.api as sm
        >>> rng = np.random.default_rng(0)
        >>> exog = sm.add_constant(rng.standard_normal(100))
        >>> count = rng.poisson(np.exp(exog @ [1.0, 0.5]))
        >>> model = rrmstats.robustify(sm.Poisson(count, exog), eps_bar=0.1)
        >>> bool(model.fit().get_margeff().margeff[0] > 0)
        True
        """
        params, model = self.model.shaped(self.params), self.model.fitted_copy()
        return marginal_effects(model, params, self.cov_params_default, at, method, kwargs)

    @property
    def _reported_losses(self) -> Array:
        """Losses at `params`; those of least risk where they are not corrected."""
        rows = self._estimate.rows
        return np.asarray(self.losses) if rows is None else rows.losses

    def _distances(self) -> Array:
        losses = self._reported_losses
        if self.saturated:
            return np.sqrt(2.0 * np.maximum(losses, 0.0))
        return loss_distances(losses, self._base)

    def _flags(self, level: float) -> np.ndarray:
        tail = self._estimate.tail()
        if tail is not None:
            return tail < 1 - level
        return self._reported_losses > loss_cutoff(self._reported_losses, level, self._base)

    @property
    def _wording(self) -> Wording:
        return BY_FAMILY.get(self.model.kind, {})

    @property
    def _first_efficiency(self) -> float:
        """Efficiency of the first step on clean data; rows of a group are its dimensions."""
        return gaussian_efficiency(self.eps_bar, self._rows_per_group)

    @property
    def unknown(self) -> list[str]:
        """Names of the parameters without standard errors: at a bound, or not identified."""
        names = zip(self.model.exog_names, self._known, strict=True)
        return [name for name, known in names if not known]

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.unknown and self.bootstrap is None:
            notes.append(NOT_KNOWN.format(", ".join(self.unknown)))
        if self.eps_bar == 0:
            return notes
        if not self.saturated:
            notes.append(NO_SATURATED)
        if not self.corrected:
            notes.append(NOT_CORRECTED)
        elif self.steps == 1 and not self.model.incomparable:
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean data the variances are about "
                f"those of {self._first_efficiency:.0%} of the rows. {SECOND_STEP}"
            )
        return notes


class FittedModel(LikelihoodModelResults):
    """Parameters of a statsmodels model with their covariance, as its margins read them."""

    _get_endog_name = MultinomialResults._get_endog_name
    _maybe_convert_ynames_int = staticmethod(MultinomialResults._maybe_convert_ynames_int)


def predicted_means(
    model: Any,
    predict: Callable[[Array], Array],
    params: Array,
    cov_params: Array,
    index: pd.Index | None,
) -> MeanPrediction:
    """Return predictions with intervals by the delta method.

    The intervals are those of the logarithm of counts and of the link of shares, mapped.

    Parameters
    ----------
    model : statsmodels model
    predict : callable
        Takes parameters (k,) and returns predictions (m,).
    params : ndarray, shape (k,)
    cov_params : ndarray, shape (k, k)
        NaN for parameters that are taken as known.
    index : Index or None
        Labels of the rows.
    """
    found = np.asarray(predict(params), dtype=float)
    if found.ndim != 1:
        raise NotImplementedError(
            f"{type(model).__name__} predicts one probability per class, for which there are no "
            "intervals; see predict(), or fit(cov_type='bootstrap')"
        )
    link, inverse, slope = _scale(model, found)
    cov = np.nan_to_num(cov_params)
    unit = np.where(np.diag(cov) > 0, np.sqrt(np.diag(cov)), np.maximum(np.abs(params), 1.0))
    moved = differences(lambda at: link(np.asarray(predict(at), dtype=float)), params, unit)
    variance = np.einsum("in,ij,jn->n", moved, cov, moved)
    return MeanPrediction(link(found), np.sqrt(variance), inverse, slope, np.inf, index)


def _scale(model: Any, found: Array) -> tuple[Callable[[Array], Array], ...]:
    """Return a function on whose scale intervals are symmetric, its inverse, and its slope."""
    if isinstance(model, CountModel) and (found > 0).all():
        return np.log, np.exp, np.exp
    shares = isinstance(model, (BinaryModel, BetaModel))
    if shares and ((found > 0) & (found < 1)).all():
        return model.link, model.link.inverse, model.link.inverse_deriv
    return np.positive, np.positive, np.ones_like


def marginal_effects(
    model: Any, params: Array, cov_params: Array, at: str, method: str, options: dict[str, Any]
) -> DiscreteMargins:
    """Return statsmodels' marginal effects at robust parameters.

    Parameters
    ----------
    model : statsmodels model
        A copy that may be written on.
    params : ndarray
        In the shape that the model takes.
    cov_params : ndarray, shape (k, k)
        NaN for parameters that are taken as known.
    at, method : str
        See statsmodels' `DiscreteResults.get_margeff`.
    options : dict
        Its `atexog`, `dummy` and `count`.
    """
    name = type(model).__name__
    if not isinstance(model, DiscreteModel) or isinstance(model, GenericZeroInflated):
        raise NotImplementedError(
            f"statsmodels has no marginal effects for {name}; compare predict() at "
            "changed predictors"
        )
    if any(getattr(model, part, None) is not None for part in ("offset", "exposure")):
        raise NotImplementedError("marginal effects with an offset or exposure are not available")
    return DiscreteMargins(
        FittedModel(model, params, np.nan_to_num(cov_params), 1.0), (at, method), options
    )


RRMLikelihoodResultsWrapper = wrapper_of(RRMLikelihoodResults)
