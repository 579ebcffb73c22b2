import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from lazy import Lazy

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


STARS = datasets.stars_cyg.load_pandas().data
HBK = datasets.hbk.load_pandas().data
CANCER = datasets.breast_cancer.load_pandas().data
LABELS = "malignant ~ clump_thickness + bland_chromatin"


@pytest.fixture(scope="session")
def fits():
    """Return one fit of each model; tests must not change them."""
    return Lazy(
        {
            "stars": lambda: rrmstats.ols("log_light ~ log_te", STARS, 0.2).fit(steps=1),
            "hbk": lambda: rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.2).fit(steps=1),
            "cov": lambda: rrmstats.RRMCov(HBK, 0.2).fit(steps=1),
            "pca": lambda: rrmstats.RRMPCA(HBK, 2, 0.2).fit(steps=1),
            "logit": lambda: rrmstats.logit(LABELS, CANCER, 0.03).fit(steps=1),
            "counts": lambda: rrmstats.poisson("count ~ x", counts(), 0.2).fit(),
            "path": lambda: rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.2).path(steps=1),
        }
    )


@pytest.fixture(scope="session")
def paths(fits):
    """Return one path of each model; tests must not change them."""
    grid = [0, 0.05, 0.1, 0.15, 0.2, 0.25]
    of_labels = [0, 0.01, 0.02, 0.03, 0.05]
    return Lazy(
        {
            "stars": lambda: fits["stars"].model.path(grid, steps=1),
            "cov": lambda: fits["cov"].model.path(grid, steps=1),
            "pca": lambda: fits["pca"].model.path(grid, steps=1),
            "hbk": lambda: fits["path"],
            "logit": lambda: fits["logit"].model.path(of_labels, steps=1),
        }
    )
