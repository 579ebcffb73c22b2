"""The page on adding a loss, run as a reader would: its code works, and is as short as it says."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

from rrmstats.core import minimize

PAGE = Path(__file__).parents[2] / "docs" / "adding_a_loss.md"
MOST_LINES = 40


def blocks():
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def is_session(block):
    return block.startswith(">>>")


@pytest.fixture(scope="module")
def page():
    """Return the names that the definitions of the page make."""
    names = {"__name__": "page"}
    for block in blocks():
        if not is_session(block):
            exec(compile(block, str(PAGE), "exec"), names)
    return names


def counts(seed, n=300):
    rng = np.random.default_rng(seed)
    exog = sm.add_constant(rng.standard_normal((n, 2)))
    return rng.poisson(np.exp(exog @ [1.0, 0.5, -0.5])).astype(float), exog


def test_loss_and_model_have_at_most_40_lines():
    loss, model, density = (block for block in blocks() if not is_session(block))
    assert "LinearProblem" in loss and "RRMModel" in model
    assert len(loss.splitlines()) <= MOST_LINES
    code = [line for line in (loss + model).splitlines() if line.strip()]
    assert len(code) <= MOST_LINES
    assert len(density.splitlines()) <= MOST_LINES


def test_the_sessions_print_what_the_page_says(page):
    session = "".join(block for block in blocks() if is_session(block))
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(session, dict(page), PAGE.name, str(PAGE), 0)
    assert test.examples
    report = []
    failed = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append).failed
    assert not failed, "".join(report)


def test_without_corruption_it_is_statsmodels_glm(page):
    endog, exog = counts(0)
    glm = sm.GLM(endog, exog, family=sm.families.Poisson()).fit(tol=1e-14)
    found = minimize(page["PoissonProblem"](endog, exog), eps_bar=0)
    np.testing.assert_allclose(found.theta, glm.params, rtol=0, atol=1e-6)
    np.testing.assert_allclose(2 * len(endog) * found.risk, glm.deviance, rtol=1e-10)
    robust = sm.GLM(endog, exog, family=sm.families.Poisson()).fit(tol=1e-14, cov_type="HC0")
    res = page["RRMPoisson"](endog, exog, 0).fit()
    np.testing.assert_allclose(res.params, glm.params, rtol=0, atol=1e-6)
    np.testing.assert_allclose(res.bse, robust.bse, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("height", [100.0, 1e8])
def test_gross_outliers_have_no_weight(page, seed, height):
    endog, exog = counts(seed)
    endog[:10] = height
    exog[:5, 1] = 50.0
    found = minimize(page["PoissonProblem"](endog, exog), eps_bar=0.2)
    assert found.converged
    assert found.weights[:10].sum() < 1e-10
    np.testing.assert_allclose(found.theta, [1.0, 0.5, -0.5], rtol=0, atol=0.25)


def test_slopes_are_derivatives_of_the_losses(page):
    endog, exog = counts(1)
    problem, eta, step = page["PoissonProblem"](endog, exog), exog @ [0.5, 1.0, 0.0], 1e-6
    first, second = problem.link_slopes(eta)
    above, below = eta + step, eta - step
    numeric = (problem.link_losses(above) - problem.link_losses(below)) / (2 * step)
    np.testing.assert_allclose(first, numeric, atol=1e-6)
    numeric = (problem.link_slopes(above)[0] - problem.link_slopes(below)[0]) / (2 * step)
    np.testing.assert_allclose(second, numeric, atol=1e-6)


def test_a_row_of_weight_two_is_the_row_twice(page):
    endog, exog = counts(2)
    endog[:10] = 1000.0
    often = np.repeat([2, 1], [150, 150])
    weighted = page["RRMPoisson"](endog, exog, 0.2, freq_weights=often).fit()
    repeated = page["RRMPoisson"](np.repeat(endog, often), np.repeat(exog, often, axis=0), 0.2)
    np.testing.assert_allclose(weighted.params, repeated.fit().params, atol=1e-8)
    np.testing.assert_allclose(weighted.bse, repeated.fit().bse, rtol=1e-6)


def test_there_is_one_step(page):
    assert page["RRMPoisson"](*counts(3), 0.2).fit().steps == 1
