import re

import numpy as np
import pandas as pd
import pytest
import statsmodels
import statsmodels.api as sm

import rrmstats
from rrmstats.report import data_hash
from rrmstats.report.page import page_text

from .html_outline import Outline

MODELS = ["stars", "hbk", "cov", "pca", "logit"]


@pytest.mark.parametrize("name", MODELS)
def test_the_call_the_versions_and_the_hash(name, fits, pages):
    results, words = fits[name], Outline(pages[name]).words
    for word in (
        type(results.model).__name__,
        f"{results.eps_bar:g}",
        str(results.steps),
        data_hash(results.model),
        rrmstats.__version__,
        np.__version__,
        pd.__version__,
        statsmodels.__version__,
    ):
        assert word in words
    assert ("log_light ~ log_te" in words) == (name == "stars")


def test_options_of_the_model_are_told(fits, pages):
    words = Outline(pages["pca"]).words
    assert words[words.index("n_components") + 1] == "2"
    assert words[words.index("standardize") + 1] == "False"
    data = fits["cov"].model.endog
    weighted = rrmstats.RRMCov(data, 0.1, freq_weights=np.ones(75)).fit(
        cov_type="bootstrap", cov_kwds={"n_boot": 10}, stability=False, steps=1
    )
    words = Outline(page_text(weighted)).words
    assert words[words.index("Frequency weights") + 1] == "given"
    errors = words[words.index("Standard errors") + 1]
    assert errors == "pairs bootstrap, 10 samples, BCa intervals"


def test_the_hash_is_that_of_the_rows():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, 30), rng.standard_normal(30)
    design = sm.add_constant(x)
    first = data_hash(rrmstats.RRMOLS(y, design, 0.1))
    assert re.fullmatch("[0-9a-f]{64}", first)
    frame = pd.DataFrame({"x": x, "y": y})
    same = [
        rrmstats.RRMOLS(y, design, 0.4),
        rrmstats.RRMOLS(y, np.asfortranarray(design, dtype=float), 0.1),
        rrmstats.ols("y ~ x", frame, eps_bar=0.1),
    ]
    assert {data_hash(model) for model in same} == {first}
    changed = design.copy()
    changed[3, 1] += 1
    others = [
        rrmstats.RRMOLS(y, changed, 0.1),
        rrmstats.RRMOLS(y[::-1], design, 0.1),
        rrmstats.RRMOLS(y, design, 0.1, freq_weights=np.arange(1, 31)),
        rrmstats.RRMOLS(y[:29], design[:29], 0.1),
    ]
    assert len({data_hash(model) for model in others} | {first}) == 5
