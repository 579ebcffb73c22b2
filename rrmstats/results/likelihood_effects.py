"""Predictions and marginal effects of a statsmodels model at robust parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
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

from rrmstats.core.entropy import Array
from rrmstats.losses.finite_differences import differences
from rrmstats.results.means import MeanPrediction


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
    return _same, _same, np.ones_like


def _same(values: Array) -> Array:
    return values


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
