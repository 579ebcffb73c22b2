"""Results of a statsmodels model with a likelihood per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from statsmodels.base.model import LikelihoodModelResults
from statsmodels.discrete import discrete_model as discrete
from statsmodels.discrete.count_model import GenericZeroInflated
from statsmodels.discrete.discrete_margins import DiscreteMargins
from statsmodels.othermod.betareg import BetaModel

from rrmstats.core.entropy import Array
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood import LikelihoodEstimate
from rrmstats.results.base import RRMResults, refused
from rrmstats.results.explanations import BY_FAMILY, Wording
from rrmstats.results.labels import NewRows
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
    params : Series or ndarray, shape (k,)
        Parameters of the model in one vector, auxiliary ones such as alpha among them. They are
        consistent where `corrected`.
    raw_params : Series or ndarray, shape (k,)
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
    _meaningless: ClassVar[dict[str, str]] = refused(
        likelihood="llf llnull aic bic info_criteria prsquared llr",
        optimizer="mle_retvals mle_settings fit_history",
        no_influence="get_influence",
    )

    def __init__(self, model: Any, estimate: LikelihoodEstimate, *args: Any) -> None:
        super().__init__(model, estimate, *args)
        self.corrected, self.saturated = estimate.rows is not None, estimate.saturated
        self._known = estimate.known

    @property
    def _title(self) -> str:  # type: ignore[override]  # it names the model that was given
        return f"Robust Risk Minimization: {self.model.kind}"

    @property
    def fittedvalues(self) -> Array:
        """What the model predicts for the rows of the fit."""
        return np.asarray(self.model.predict(np.asarray(self.params)))

    def get_prediction(
        self, exog: NewRows = None, transform: bool = True, **kwargs: Any
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
            return np.asarray(self.model.predict(params, rows, **kwargs), dtype=float)

        params, cov = np.asarray(self.params), np.nan_to_num(self.cov_params_default)
        found = predict(params)
        if found.ndim != 1:
            raise NotImplementedError(
                f"{self.model.kind} predicts one probability per class, for which there are no "
                "intervals; see predict(), or fit(cov_type='bootstrap')"
            )
        link, inverse, slope = _scale(self.model.model, found)
        variances = np.diag(cov)
        unit = np.where(variances > 0, np.sqrt(variances), np.maximum(np.abs(params), 1.0))
        moved = differences(lambda at: link(predict(at)), params, unit)
        variance = np.einsum("in,ij,jn->n", moved, cov, moved)
        return MeanPrediction(link(found), np.sqrt(variance), inverse, slope, np.inf, labels)

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
        model, name = self.model.fitted_copy(), self.model.kind
        if not isinstance(model, discrete.DiscreteModel) or isinstance(model, GenericZeroInflated):
            raise NotImplementedError(
                f"statsmodels has no marginal effects for {name}; compare predict() at "
                "changed predictors"
            )
        if any(getattr(model, part, None) is not None for part in ("offset", "exposure")):
            raise NotImplementedError(
                "marginal effects with an offset or exposure are not available"
            )
        cov = np.nan_to_num(self.cov_params_default)
        fitted = FittedModel(model, self.model.shaped(self.params), cov, 1.0)
        return DiscreteMargins(fitted, (at, method), kwargs)

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
        notes += [] if self.saturated else [NO_SATURATED]
        price = self._price("data the variances are about those of")
        return notes + (price if self.corrected else [NOT_CORRECTED])


class FittedModel(LikelihoodModelResults):
    """Parameters of a statsmodels model with their covariance, as its margins read them."""

    _get_endog_name = discrete.MultinomialResults._get_endog_name
    _maybe_convert_ynames_int = staticmethod(discrete.MultinomialResults._maybe_convert_ynames_int)


def _scale(model: Any, found: Array) -> tuple[Callable[[Array], Array], ...]:
    """Return a function on whose scale intervals are symmetric, its inverse, and its slope."""
    if isinstance(model, discrete.CountModel) and (found > 0).all():
        return np.log, np.exp, np.exp
    shares = isinstance(model, (discrete.BinaryModel, BetaModel))
    if shares and ((found > 0) & (found < 1)).all():
        return model.link, model.link.inverse, model.link.inverse_deriv
    return np.positive, np.positive, np.ones_like
