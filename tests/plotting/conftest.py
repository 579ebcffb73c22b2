import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats import datasets


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Fail if a picture is shown, and close what a test leaves open."""
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("a picture was shown"))
    plt.close("all")
    yield
    plt.close("all")


def counts():
    """Return counts on one predictor, the first ten far too large."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, 100), "time": rng.uniform(1, 3, 100)})
    data["count"] = rng.poisson(np.exp(1 + data["x"]))
    data.loc[:9, "count"] += 30
    return data


@pytest.fixture(scope="session")
def fits():
    """Return one fit of each model; tests must not change them."""
    stars = datasets.stars_cyg.load_pandas().data
    hbk = datasets.hbk.load_pandas().data
    cancer = datasets.breast_cancer.load_pandas().data
    formula = "malignant ~ clump_thickness + bland_chromatin"
    return {
        "stars": rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(steps=1),
        "hbk": rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit(steps=1),
        "cov": rrmstats.RRMCov(hbk, eps_bar=0.2).fit(steps=1),
        "pca": rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit(steps=1),
        "logit": rrmstats.logit(formula, cancer, eps_bar=0.03).fit(steps=1),
        "counts": rrmstats.poisson("count ~ x", counts(), eps_bar=0.2).fit(),
        "path": rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).path(steps=1),
    }


@pytest.fixture(scope="session")
def paths(fits):
    """Return one path of each model; tests must not change them."""
    grid = [0, 0.05, 0.1, 0.15, 0.2, 0.25]
    of_models = {name: fits[name].model.path(grid, steps=1) for name in ("stars", "cov", "pca")}
    return {
        **of_models,
        "hbk": fits["path"],
        "logit": fits["logit"].model.path([0, 0.01, 0.02, 0.03, 0.05], steps=1),
    }
