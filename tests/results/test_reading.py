"""Results are views of an estimate: reading them never searches or fits."""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pytest

import rrmstats
from rrmstats.core.descent import Descent
from rrmstats.core.linear import LinearProblem
from rrmstats.models.base import DesignedModel
from rrmstats.results.base import Meaningless

from .fits import DATA, DIRTY

# statsmodels 0.14 says of its own wald_test_terms that it will change.
pytestmark = pytest.mark.filterwarnings("ignore:The behavior of wald_test:FutureWarning")

MODELS = {
    "ols": lambda: rrmstats.ols("y ~ x1", DIRTY, 0.2),
    "logit": lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0.05),
    "cov": lambda: rrmstats.cov("~ x1 + x2 + y", DIRTY, 0.2),
    "pca": lambda: rrmstats.pca("~ x1 + x2 + y", DIRTY, 0.2, n_components=2),
}
SEARCHES = [
    *(
        f"rrmstats.core.{module}.{name}"
        for module in ("search", "steps")
        for name in ("global_minimum", "global_minima")
    ),
    "rrmstats.losses.regression.explained_gaussian",
    "rrmstats.losses.covariance.explained_gaussian",
    "rrmstats.losses.components.explained_plane",
    "rrmstats.losses.explained.explained_labels",
    "rrmstats.losses.explained.explained_rows",
    "rrmstats.core.search.minimize",
]
# They write, remove, rebuild or fit at other bounds, and read nothing.
CHANGING = {"remove_data", "save", "load", "initialize", "path", "plot_path"}
# statsmodels defines them for all its results.
OF_ONE_PREDICTOR = {"plot_added_variable", "plot_partial_residuals"}
OF_GROUPS = {"group_weights", "group_table", "outlier_groups"}
OF_PREDICTORS = {"predict", "wald_test_terms", "compare", "t_test_pairwise"}


class Searched(BaseException):
    """Raised by a search; nothing that catches errors catches it."""


def refuse(*args, **kwargs):
    raise Searched


@pytest.fixture
def fitted():
    return MODELS["ols"]().fit(steps=1)


@pytest.fixture
def without_searches(monkeypatch, fitted):
    for name in SEARCHES:
        monkeypatch.setattr(name, refuse)
    monkeypatch.setattr(Descent, "run", refuse)
    monkeypatch.setattr(LinearProblem, "weighted_fit", refuse)
    # a search and a fit of the model's own, which pictures ask it for
    monkeypatch.setattr(DesignedModel, "design_distances", lambda self: None)
    monkeypatch.setattr(DesignedModel, "classical_params", lambda self: np.zeros(2))


def argument_free(member):
    if not callable(member) or inspect.isclass(member):
        return False
    return all(
        parameter.default is not inspect.Parameter.empty
        or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        for parameter in inspect.signature(member).parameters.values()
    )


def read(res):
    """Read every public attribute, call what takes no argument; return the names of both."""
    attributes, methods = set(), set()
    for name in dir(res._results):
        if name.startswith("_") or name in CHANGING:
            continue
        if name in OF_PREDICTORS and res.model.exog is None:
            continue
        if name in OF_GROUPS and res.model.groups is None:
            continue
        if name == "plot_explanation" and res.explanation is None:
            continue
        if name in OF_ONE_PREDICTOR and np.shape(res.model.exog)[-1] > 2:
            continue  # they ask which
        try:
            member = getattr(res, name)
        except (Meaningless, NotImplementedError):
            continue
        attributes.add(name)
        if argument_free(member):
            methods.add(name)
            member()
            plt.close("all")
    return attributes, methods


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "cov_type"), [(1, "bootstrap"), (2, "sandwich")])
@pytest.mark.parametrize("name", MODELS)
def test_results_never_search_or_fit(name, steps, cov_type, request):
    kwds = {"cov_kwds": {"n_boot": 20}} if cov_type == "bootstrap" else {}
    model = MODELS[name]()
    res = model.fit(steps=steps, cov_type=cov_type, **kwds)
    request.getfixturevalue("without_searches")
    for step in (res, res.first_step):
        if step is None:
            continue
        attributes, methods = read(step)
        assert {"params", "bse", "weights", "trace", "starts", "n_kish"} <= attributes
        assert {"summary", "summary2", "conf_int", "outliers", "weight_table"} <= methods
        assert {"plot_weights", "plot_trace"} <= methods


def test_the_guard_sees_a_search(without_searches):
    with pytest.raises(Searched):
        MODELS["ols"]().fit(steps=1)


@pytest.mark.parametrize("name", MODELS)
def test_reading_twice_gives_the_same(name):
    res = MODELS[name]().fit()
    first = np.asarray(res.cov_params()).copy()
    read(res)
    np.testing.assert_array_equal(res.cov_params(), first)
    assert res.cov_type == "sandwich"
