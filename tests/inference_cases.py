"""Small samples of each model, for tests of standard errors."""

from functools import partial

import numpy as np
import statsmodels.api as sm

from replication.samples import (
    dirty_responses,
    logistic_labels,
    one_sided_outliers,
    shifted_cluster,
)
from rrmstats import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

# A row's weight is moved by this much; the derivative of an estimate is known to its square.
NUDGE = 1e-2


def regression(rng, n=60):
    return one_sided_outliers(rng, n, share=0.1, shift=6.0)


def cloud(rng, n=60):
    return shifted_cluster(rng, n, np.diag([9.0, 4.0, 1.0]))


def nudged(n, row, by):
    prior = np.ones(n)
    prior[row] += by
    return prior


# Models on data of any size, by weights; the rows are those of one sample.
WEIGHTED = {
    "ols": lambda rng: (partial(RRMOLS, eps_bar=0.2), regression(rng)),
    "logit": lambda rng: (
        partial(RRMLogit, eps_bar=0.1),
        logistic_labels(rng, 200, (0.2, 1.0, -0.5)),
    ),
    "poisson": lambda rng: (
        partial(RRMPoisson, eps_bar=0.2),
        dirty_responses(rng, "poisson", "high", 100),
    ),
    "gamma": lambda rng: (
        partial(RRMGLM, eps_bar=0.2, family=sm.families.Gamma(sm.families.links.Log())),
        dirty_responses(rng, "gamma", "high", 100),
    ),
    "cov": lambda rng: (partial(RRMCov, eps_bar=0.2), (cloud(rng),)),
    "pca": lambda rng: (partial(RRMPCA, n_components=2, eps_bar=0.2), (cloud(rng),)),
}


def bootstrapped(model, **cov_kwds):
    return model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 50, **cov_kwds}, steps=1)
