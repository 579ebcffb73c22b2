"""The models and a data frame whose first rows are wrong: one table for tests of all models."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import statsmodels.api as sm

import rrmstats
from rrmstats import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

N = 80

LABELS = [f"row {i}" for i in range(N)]

BAD = LABELS[:8]

VARIABLES = ["x", "z", "y"]

RESPONSES = ["y", "label", "count", "amount"]


def frame():
    """Return a frame with labelled rows, whose first eight are wrong in every response."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame(rng.standard_normal((N, 2)), index=LABELS, columns=["x", "z"])
    data["y"] = 1 + 2 * data.x - data.z + 0.3 * rng.standard_normal(N)
    data["label"] = (rng.random(N) < 1 / (1 + np.exp(-2 * data.x))).astype(float)
    data.loc[BAD, ["x", "y", "label"]] = np.c_[3 + rng.random(8), -9 + rng.random(8), np.zeros(8)]
    mean = np.exp(1 + 0.7 * data.x - 0.3 * data.z)
    data["count"] = rng.poisson(mean).astype(float)
    data["amount"] = rng.gamma(4.0, mean / 4.0)
    data.loc[BAD, ["count", "amount"]] = [0.0, 0.01]
    return data


def regression(cls, response, data, **kwargs):
    exog = sm.add_constant(data[["x", "z"]], has_constant="add")
    return cls(data[response], exog, **kwargs)


def multivariate(cls, data, **kwargs):
    return cls(data[VARIABLES], **kwargs)


def clone(model):
    arrays = [values for values in (model.endog, model.exog) if values is not None]
    return type(model)(*arrays, **model._get_init_kwds())


def eigen(data):
    values, vectors = np.linalg.eigh(np.cov(data[VARIABLES].T, bias=True))
    return values[::-1][:2], vectors[:, ::-1][:, :2]


def logit_reference(data):
    exog = sm.add_constant(data[["x", "z"]])
    return sm.Logit(data.label, exog).fit(disp=0, method="newton", tol=1e-14).params


GAMMA = sm.families.Gamma(sm.families.links.Log())


def glm_reference(response, family, data):
    model = sm.GLM(data[response], sm.add_constant(data[["x", "z"]]), family=family)
    return model.fit(tol=1e-14, tol_criterion="params", steps=1).params


MODELS = {
    "ols": SimpleNamespace(
        array=partial(regression, RRMOLS, "y"),
        formula=partial(rrmstats.ols, "y ~ x + z"),
        classical=lambda data: sm.OLS(data.y, sm.add_constant(data[["x", "z"]])).fit().params,
        rows=["weights", "losses", "fittedvalues", "resid"],
        columns={"params": ["x", "z"]},
        options=[{}],
    ),
    "logit": SimpleNamespace(
        array=partial(regression, RRMLogit, "label"),
        formula=partial(rrmstats.logit, "label ~ x + z"),
        classical=logit_reference,
        rows=["weights", "losses", "fittedvalues"],
        columns={"params": ["x", "z"], "raw_params": ["x", "z"]},
        options=[{"alpha": 0.02}, {"alpha": 0.0}, {"penalty": "l2"}],
    ),
    "poisson": SimpleNamespace(
        array=partial(regression, RRMPoisson, "count"),
        formula=partial(rrmstats.poisson, "count ~ x + z"),
        classical=partial(glm_reference, "count", sm.families.Poisson()),
        rows=["weights", "losses", "fittedvalues", "resid_pearson", "resid_deviance"],
        columns={"params": ["x", "z"], "raw_params": ["x", "z"]},
        options=[{}],
    ),
    "glm": SimpleNamespace(
        array=partial(regression, RRMGLM, "amount", family=GAMMA),
        formula=partial(rrmstats.glm, "amount ~ x + z", family=GAMMA),
        classical=partial(glm_reference, "amount", GAMMA),
        rows=["weights", "losses", "fittedvalues", "resid_response", "resid_anscombe"],
        columns={"params": ["x", "z"], "raw_params": ["x", "z"]},
        options=[{}, {"var_weights": 1.0 + np.arange(N) % 3}],
    ),
    "pca": SimpleNamespace(
        array=partial(multivariate, RRMPCA, n_components=2),
        formula=partial(rrmstats.pca, "~ x + z + y", n_components=2),
        classical=lambda data: eigen(data)[0],
        rows=["weights", "losses", "scores", "score_distance", "orthogonal_distance"],
        columns={"mean": VARIABLES, "loadings": VARIABLES, "params": ["comp_1", "comp_2"]},
        options=[{"demean": False}, {"standardize": True}, {"n_components": 1}],
    ),
    "cov": SimpleNamespace(
        array=partial(multivariate, RRMCov),
        formula=partial(rrmstats.cov, "~ x + z + y"),
        classical=lambda data: np.r_[
            data[VARIABLES].mean(),
            np.cov(data[VARIABLES].T, bias=True)[np.triu_indices(3)],
        ],
        rows=["weights", "losses"],
        columns={name: VARIABLES for name in ("mean", "cov", "corr", "raw_cov", "precision")},
        options=[{}],
    ),
}
