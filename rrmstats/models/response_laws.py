"""The laws of the responses of statsmodels' models: `get_distribution`, or predicted classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from statsmodels.discrete.discrete_model import BinaryModel, CountModel, MNLogit
from statsmodels.miscmodels.ordinal_model import OrderedModel

from rrmstats.core.entropy import Array
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood_laws import Law, counts_worth_a_term, probability_nodes

if TYPE_CHECKING:
    from rrmstats.models.likelihood_parts import ModelFunctions

# Models whose predictions are the probabilities of classes, numbered from zero.
CLASSES = (MNLogit, OrderedModel)
# Classes, and counts above zero, are kinds that a fit must keep some of, up to so many.
MOST_KINDS = 20


class ClassLaw:
    """Classes with the probabilities that a model predicts."""

    def __init__(self, functions: ModelFunctions) -> None:
        self._functions = functions

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return the classes, shape (m, 1), each of which counts once."""
        classes = np.arange(float(self._functions.predict(theta).shape[1]))[:, None]
        return classes, np.zeros_like(classes)

    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-probabilities of classes, shape (m, n)."""
        chances = self._functions.predict(theta)
        rows = np.arange(len(chances))
        return np.log(chances[rows, np.asarray(y, dtype=int)])

    def slopes(self, theta: Array, y: Array, unit: Array) -> tuple[Array, None]:
        """Return the derivatives of the log-probabilities, shape (k, m, n)."""
        return differences(lambda at: self.log_density(at, y), theta, unit), None


class FrozenLaw:
    """The frozen distribution of scipy that a model returns."""

    def __init__(self, functions: ModelFunctions) -> None:
        self._functions = functions

    def frozen(self, theta: Array) -> Any:
        """Return the distributions of all rows in one object."""
        return self._functions.model.get_distribution(self._functions.shaped(theta))

    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-densities or log-probabilities of responses, shape (m, n)."""
        with np.errstate(all="ignore"):
            law = self.frozen(theta)
            return np.asarray(law.logpmf(y) if is_discrete(law) else law.logpdf(y), dtype=float)

    def slopes(self, theta: Array, y: Array, unit: Array) -> tuple[Array, None]:
        """Return the derivatives of the log-densities, shape (k, m, n)."""
        return differences(lambda at: self.log_density(at, y), theta, unit), None

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return responses, and logarithms of what their densities count."""
        with np.errstate(all="ignore"):
            law, n = self.frozen(theta), len(self._functions.model.endog)
            if not is_discrete(law):
                at, weight = probability_nodes()
                y = np.asarray(law.ppf(np.broadcast_to(at[:, None], (len(at), n))), dtype=float)
                return y, np.log(weight)[:, None] - law.logpdf(y)
            mean, variance = (
                np.broadcast_to(np.asarray(each, dtype=float), (n,))
                for each in (law.mean(), law.var())
            )
            return counts_worth_a_term(mean, variance, law.logpmf)


def is_discrete(law: Any) -> bool:
    """Tell whether a frozen distribution is one of whole numbers."""
    return hasattr(law, "logpmf") and not hasattr(getattr(law, "dist", law), "logpdf")


def law_of(model: Any, functions: ModelFunctions, theta: Array) -> Law | None:
    """Return the law of the responses, where the model has one for each row.

    It must give the responses of the data the likelihood that the model gives them.
    """
    if isinstance(model, CLASSES):
        return ClassLaw(functions)
    if not hasattr(model, "get_distribution"):
        return None
    law = FrozenLaw(functions)
    endog = np.asarray(model.endog, dtype=float)
    try:
        found = law.log_density(theta, endog[None])
    except (NotImplementedError, AttributeError, TypeError, ValueError, IndexError):
        return None
    if found.shape != (1, len(endog)):
        return None
    same = np.allclose(found[0], functions.log_likelihood(theta), rtol=1e-6, atol=1e-6)
    return law if same else None


def kinds_of(model: Any, endog: Array) -> tuple[np.ndarray, ...]:
    """Return the kinds of rows of which a fit must keep some: classes, and counts above zero."""
    if isinstance(model, CountModel):
        return (endog > 0,) if (endog > 0).any() else ()
    if isinstance(model, (*CLASSES, BinaryModel)):
        levels = np.unique(endog)
        return tuple(endog == level for level in levels) if len(levels) <= MOST_KINDS else ()
    return ()
