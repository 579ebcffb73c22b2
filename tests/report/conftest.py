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
        "stars": rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(),
        "hbk": rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit(efficiency=0.95),
        "cov": rrmstats.RRMCov(hbk, eps_bar=0.2).fit(),
        "pca": rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit(),
        "logit": rrmstats.logit(formula, cancer, eps_bar=0.03).fit(),
    }


@pytest.fixture(scope="session")
def pages(fits):
    return {name: page_text(results) for name, results in fits.items()}


@pytest.fixture(scope="session")
def paths(fits):
    """Return paths of some models; tests must not change them."""
    return {
        "hbk": fits["hbk"].model.path([0, 0.1, 0.16, 0.18, 0.2, 0.3]),
        "cov": fits["cov"].model.path([0, 0.1, 0.2]),
        "logit": fits["logit"].model.path([0, 0.01, 0.03]),
    }


@pytest.fixture(scope="session")
def path_pages(paths):
    return {name: path_page(path) for name, path in paths.items()}
