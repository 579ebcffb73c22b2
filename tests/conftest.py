from types import SimpleNamespace

import numpy as np
import pytest
import statsmodels.formula
from hypothesis import settings
from inference_cases import WEIGHTED
from model_table import MODELS

# The same examples in every run; their time depends on the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("repeatable")


@pytest.fixture(params=MODELS, scope="module")
def entry(request):
    return MODELS[request.param]


@pytest.fixture(params=["array", "formula"], scope="module")
def build(entry, request):
    """Return a function of a frame and keywords that makes the model by one interface."""
    return getattr(entry, request.param)


@pytest.fixture(params=WEIGHTED)
def weighted(request):
    """Return a model without its data, a sample for it and the number of rows."""
    model, data = WEIGHTED[request.param](np.random.default_rng(0))
    return SimpleNamespace(name=request.param, model=model, data=data, n=len(data[0]))


@pytest.fixture(params=["patsy", "formulaic"])
def engine(request, monkeypatch):
    """Choose one of statsmodels' formula engines."""
    pytest.importorskip("formulaic")
    if not hasattr(statsmodels.formula, "options"):
        pytest.skip("statsmodels 0.14 has patsy alone")
    monkeypatch.setattr(statsmodels.formula.options, "_formula_engine", request.param)
    return request.param
