import pytest

import rrmstats
from rrmstats import datasets
from rrmstats.report.page import page_text


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
