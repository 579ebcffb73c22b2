import pytest

import rrmstats
from rrmstats import datasets
from rrmstats.report.page import page_text
from rrmstats.report.paths import path_page


@pytest.fixture(scope="session")
def fits():
    """Return one fit of each model; tests must not change them."""
    stars = datasets.stars_cyg.load_pandas().data
    hbk = datasets.hbk.load_pandas().data
    cancer = datasets.breast_cancer.load_pandas().data
    formula = "malignant ~ clump_thickness + bland_chromatin"
    return {
        "stars": rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(steps=1),
        "hbk": rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit(),
        "cov": rrmstats.RRMCov(hbk, eps_bar=0.2).fit(steps=1),
        "pca": rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit(steps=1),
        "logit": rrmstats.logit(formula, cancer, eps_bar=0.03).fit(steps=1),
    }


@pytest.fixture(scope="session")
def pages(fits):
    return {name: page_text(results) for name, results in fits.items()}


@pytest.fixture(scope="session")
def paths(fits):
    """Return paths of some models; tests must not change them."""
    return {
        "hbk": fits["hbk"].model.path([0, 0.1, 0.16, 0.18, 0.2, 0.3], steps=1),
        "cov": fits["cov"].model.path([0, 0.1, 0.2], steps=1),
        "logit": fits["logit"].model.path([0, 0.01, 0.03], steps=1),
    }


@pytest.fixture(scope="session")
def path_pages(paths):
    return {name: path_page(path) for name, path in paths.items()}
