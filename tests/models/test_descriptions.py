"""A model, its results and its path say in one line what they are."""

import dask
import dask.dataframe as dd
import numpy as np
import pytest
import statsmodels.api as sm
from model_table import MODELS, frame

import rrmstats

DATA = frame()

LINES = {
    "ols": "<RRMOLS: y ~ x + z, 80 observations, 3 parameters, eps_bar=0.3>",
    "logit": "<RRMLogit: label ~ x + z, 80 observations, 3 parameters, eps_bar=0.3>",
    "poisson": (
        "<RRMPoisson: count ~ x + z, 80 observations, Poisson family, Log link, 3 parameters, "
        "eps_bar=0.3>"
    ),
    "glm": (
        "<RRMGLM: amount ~ x + z, 80 observations, Gamma family, Log link, 3 parameters, "
        "eps_bar=0.3>"
    ),
    "pca": "<RRMPCA: ~ x + z + y, 80 observations, 3 variables, 2 components, eps_bar=0.3>",
    "cov": "<RRMCov: ~ x + z + y, 80 observations, 3 variables, eps_bar=0.3>",
}


@pytest.mark.parametrize("name", LINES)
def test_models(name):
    assert repr(MODELS[name].formula(DATA, eps_bar=0.3)) == LINES[name]


def test_models_without_a_formula():
    model = rrmstats.RRMOLS(DATA["y"], DATA[["x"]], "auto", groups=np.arange(80) // 8)
    assert repr(model) == "<RRMOLS: 80 observations, 10 groups, 1 parameter, eps_bar='auto'>"
    model = rrmstats.custom(lambda theta: (DATA["y"] - theta[0]) ** 2, [0.0], 0.1)
    assert repr(model) == "<RRMCustom: 80 observations, 1 parameter, eps_bar=0.1>"
    model = rrmstats.robustify(sm.Poisson.from_formula("count ~ x", DATA), 0.1)
    expected = "count ~ x, 80 observations, model Poisson, 2 parameters, eps_bar=0.1"
    assert repr(model) == f"<RRMLikelihood: {expected}>"


def test_results_say_what_to_call():
    res = rrmstats.ols("y ~ x", DATA, 0.3).fit()
    assert repr(res) == (
        "<RRMOLSResults: y ~ x, 80 observations, eps_bar=0.3, steps=2, converged; call summary()>"
    )
    res.remove_data()
    assert "80 observations" in repr(res) and "80 observations" in repr(res.model)


def test_rows_in_partitions_are_not_computed():
    model = rrmstats.ols("y ~ x + z", dd.from_pandas(DATA, npartitions=3), 0.3)

    def compute(*args, **kwargs):
        raise AssertionError("a description computes nothing")

    with dask.config.set(scheduler=compute):
        assert repr(model) == LINES["ols"]
