"""Statsmodels' models with a likelihood per row, on samples: a table for tests of all of them."""

import numpy as np
import statsmodels.api as sm
from scipy.stats import norm
from statsmodels.base.model import GenericLikelihoodModel
from statsmodels.discrete.count_model import (
    ZeroInflatedGeneralizedPoisson,
    ZeroInflatedNegativeBinomialP,
    ZeroInflatedPoisson,
)
from statsmodels.discrete.discrete_model import (
    GeneralizedPoisson,
    Logit,
    MNLogit,
    NegativeBinomial,
    NegativeBinomialP,
    Poisson,
    Probit,
)
from statsmodels.discrete.truncated_model import TruncatedLFPoisson
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel

N = 250
BAD = np.arange(12)


class NormalModel(GenericLikelihoodModel):
    """A user's own: a regression with the logarithm of its standard deviation."""

    def __init__(self, endog, exog, **kwargs):
        super().__init__(endog, exog, extra_params_names=["lnsigma"], **kwargs)
        self.start_params = np.zeros(exog.shape[1] + 1)

    def loglikeobs(self, params):
        return norm.logpdf(self.endog, self.exog @ params[:-1], np.exp(params[-1]))

    def predict(self, params, exog=None):
        return (self.exog if exog is None else exog) @ params[: self.exog.shape[1]]


class NormalLawModel(NormalModel):
    """The same, with the distribution of its responses."""

    def get_distribution(self, params):
        return norm(self.exog @ params[:-1], np.exp(params[-1]))


def sample(seed=0):
    """Return a design and responses of each kind, none of them wrong."""
    rng = np.random.default_rng(seed)
    exog = sm.add_constant(rng.standard_normal((N, 2)))
    eta = exog @ [0.8, 0.5, -0.3]
    mean = np.exp(eta)
    count = rng.poisson(mean)
    over = rng.poisson(rng.gamma(2.0, mean / 2.0))
    zero = rng.random(N) < 0.25
    p = 1 / (1 + np.exp(1 - eta))
    choice = np.column_stack([np.zeros(N), exog[:, 1] + 0.2, -exog[:, 2]])
    return exog, {
        "count": count,
        "over": over,
        "inflated": np.where(zero, 0, count),
        "inflated_over": np.where(zero, 0, over),
        "label": (exog[:, 1] + rng.logistic(size=N) > 0).astype(float),
        "class": (choice + rng.gumbel(size=(N, 3))).argmax(axis=1),
        "level": np.digitize(exog[:, 1] - exog[:, 2] + rng.logistic(size=N), [-1, 1]),
        "share": rng.beta(10 * p, 10 * (1 - p)),
        "positive": np.maximum(count, 1),
        "number": eta + 0.3 * rng.standard_normal(N),
    }


def nb1(endog, exog):
    return NegativeBinomial(endog, exog, loglike_method="nb1")


def geometric(endog, exog):
    return NegativeBinomial(endog, exog, loglike_method="geometric")


def ordered(endog, exog):
    return OrderedModel(endog, exog[:, 1:], distr="logit")


# The model, its response, and the value of bad rows; None for labels, which are flipped.
MODELS = {
    "poisson": (Poisson, "count", 60),
    "negative binomial": (NegativeBinomial, "over", 300),
    "nb1": (nb1, "over", 300),
    "geometric": (geometric, "over", 300),
    "nbp": (NegativeBinomialP, "over", 300),
    "generalized poisson": (GeneralizedPoisson, "over", 300),
    "logit": (Logit, "label", None),
    "probit": (Probit, "label", None),
    "mnlogit": (MNLogit, "class", None),
    "ordered": (ordered, "level", None),
    "beta": (BetaModel, "share", 0.001),
    "zero-inflated poisson": (ZeroInflatedPoisson, "inflated", 60),
    "zero-inflated generalized poisson": (ZeroInflatedGeneralizedPoisson, "inflated_over", 300),
    "zero-inflated negative binomial": (ZeroInflatedNegativeBinomialP, "inflated_over", 300),
    "truncated poisson": (TruncatedLFPoisson, "positive", 60),
    "own": (NormalModel, "number", 30.0),
    "own with a law": (NormalLawModel, "number", 30.0),
}
LABELS = ("logit", "probit", "mnlogit", "ordered")
WITHOUT_LAW = ("truncated poisson", "own")
