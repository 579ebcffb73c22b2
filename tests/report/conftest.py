import pytest
from lazy import Lazy

import rrmstats
from rrmstats import datasets
from rrmstats.report.page import page_text
from rrmstats.report.paths import path_page

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
            "hbk": lambda: rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.2).fit(),
            "cov": lambda: rrmstats.RRMCov(HBK, 0.2).fit(steps=1),
            "pca": lambda: rrmstats.RRMPCA(HBK, 2, 0.2).fit(steps=1),
            "logit": lambda: rrmstats.logit(LABELS, CANCER, 0.03).fit(steps=1),
        }
    )


@pytest.fixture(scope="session")
def pages(fits):
    return Lazy({name: lambda name=name: page_text(fits[name]) for name in fits.makers})


@pytest.fixture(scope="session")
def paths(fits):
    """Return paths of some models; tests must not change them."""
    grids = {"hbk": [0, 0.1, 0.16, 0.18, 0.2, 0.3], "cov": [0, 0.1, 0.2], "logit": [0, 0.01, 0.03]}
    return Lazy(
        {
            name: lambda name=name: fits[name].model.path(grids[name], steps=1)
            for name in ("hbk", "cov", "logit")
        }
    )


@pytest.fixture(scope="session")
def path_pages(paths):
    return Lazy({name: lambda name=name: path_page(paths[name]) for name in paths.makers})
