"""Explanations of rows: chosen rightly, solved to the last digit, with the right errors."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import rrmstats
from replication.samples import RESPONSE_PARAMS, dirty_responses
from rrmstats import RRMGLM
from rrmstats.laws.explain import explained_rows, moves, rooted

FAMILIES = {
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "binomial": sm.families.Binomial(),
}
WANTED = {
    ("poisson", "clean"): "none",
    ("poisson", "low at the top"): "false zeros",
    ("poisson", "high"): "cluster",
    ("gamma", "clean"): "none",
    ("gamma", "high"): "cluster",
    ("binomial", "clean"): "none",
    ("binomial", "high"): "wide",
}


def sample(family, kind, share=0.1, n=300, seed=1):
    return dirty_responses(np.random.default_rng(seed), family, kind, n, share)


def fitted(family, kind, eps_bar=0.2, **options):
    endog, exog = sample(family, kind, **options)
    return RRMGLM(endog, exog, eps_bar, family=FAMILIES[family]).fit()


def explained(res):
    """Return the explanation of a fit with its equations."""
    first = res.first_step._estimate
    problem = first.problem
    rows = problem.law_rows(first)
    return explained_rows(
        rows, problem.laws(rows), problem.candidates(first), first.setting.eps_bar
    )


@pytest.mark.parametrize(("family", "kind"), WANTED)
def test_bad_rows_are_told_and_left_out(family, kind):
    res = fitted(family, kind)
    endog, exog = sample(family, kind)
    bad = 0 if kind == "clean" else 30
    good = sm.GLM(endog[bad:], exog[bad:], family=FAMILIES[family]).fit()
    told = res._estimate.explained.chosen
    assert told.name == WANTED[family, kind]
    assert res.converged
    assert (told.prob_bad[:bad] > 0.5).mean() >= 0.95 if bad else not told.prob_bad.any()
    assert abs(res.eps_hat - bad / 300) < 0.01
    assert np.abs((res.params - good.params) / good.bse).max() < 0.6
    assert 0.8 < np.min(res.bse / good.bse) < np.max(res.bse / good.bse) < 1.5


def test_most_large_counts_may_be_false_zeros():
    truth = np.array(RESPONSE_PARAMS["poisson"])
    for seed in range(3):
        res = fitted("poisson", "low at the top", 0.4, share=0.3, seed=seed)
        assert res._estimate.explained.chosen.name == "false zeros"
        assert np.linalg.norm(res.params - truth) < 0.3
        assert np.linalg.norm(res.first_step.params - truth) > 1.0


def test_overdispersion_is_not_taken_for_bad_rows():
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(300), rng.standard_normal((300, 2))]
    mean = np.exp(exog @ [1.0, 0.5, -0.25])
    endog = rng.poisson(rng.gamma(2.0, mean / 2.0))
    res = rrmstats.RRMPoisson(endog, exog, 0.2).fit()
    assert res._estimate.explained.chosen.name == "overdispersed"
    assert res.eps_hat == 0
    own = sm.NegativeBinomial(endog, exog).fit(disp=0)
    assert_allclose(res.params, own.params[:-1], rtol=1e-4)


@pytest.mark.parametrize(("family", "kind"), WANTED)
def test_equations_are_solved_and_their_derivatives_right(family, kind):
    fit = explained(fitted(family, kind)).fit
    now = fit.stack
    errors = np.sqrt(np.abs(np.diag(now.inverse)))
    assert np.abs(np.where(now.free, now.sums[:-1], 0.0) * errors).max() < 1e-6
    for j in np.flatnonzero(now.free):
        step = np.zeros(len(fit.params))
        step[j] = 1e-6 * max(1.0, abs(fit.params[j]))
        high, low = fit.moved(step).stack, fit.moved(-step).stack
        slope = (high.sums - low.sums) / (2 * step[j])
        size = np.abs(now.slopes[:-1, j]).max()
        assert_allclose(now.slopes[:-1, j], slope[:-1], atol=1e-4 * size)
        assert_allclose(now.slopes[-1, j], slope[-1], atol=1e-3)


@pytest.mark.parametrize(("family", "kind"), [("poisson", "low at the top"), ("gamma", "high")])
def test_influence_functions_are_derivatives_in_the_rows_weights(family, kind):
    endog, exog = sample(family, kind)
    options = {"family": FAMILIES[family]}
    res = RRMGLM(endog, exog, 0.2, **options).fit()
    found = explained(res)
    for row in (0, 100, 250):
        weights = np.ones(300)
        weights[row] += 1e-3
        two = RRMGLM(endog, exog, 0.2, freq_weights=weights, **options).fit()
        change = (two.params - res.params) / 1e-3 * 300
        # HC3's factors raise influence a little.
        assert_allclose(change, found.moves[row], atol=0.1, rtol=0.1)
        assert_allclose((two.eps_hat - res.eps_hat) / 1e-3 * 300, found.eps_moves[row], atol=0.1)


@pytest.mark.parametrize("eps_bar", [0.1, 0.2, 0.4, "auto"])
def test_stars_far_from_the_others_are_left_out(eps_bar):
    """A line through the four giants fits all rows, but bad rows are where they are: far in X."""
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    res = rrmstats.glm("log_light ~ log_te", stars, eps_bar, family=FAMILIES["gamma"]).fit()
    assert res.explanation.name == "cluster"
    assert res.explanations["bic"][0] < -6
    assert set(np.flatnonzero(res.outliers())) == {6, 10, 19, 29, 33}  # as those of RRMOLS
    assert 0.4 < res.params["log_te"] < 0.7


@pytest.mark.parametrize("seed", range(4))
def test_leverage_rows_that_a_line_would_fit_are_left_out(seed):
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(100), rng.standard_normal((100, 2))]
    exog[:10, 1] = 5 + 0.3 * rng.standard_normal(10)
    endog = rng.gamma(4.0, np.exp(exog @ [1.0, 0.6, -0.4]) / 4.0)
    endog[:10] = rng.gamma(4.0, 2.7 / 4.0, 10)
    res = RRMGLM(endog, exog, 0.2, family=FAMILIES["gamma"]).fit()
    own = sm.GLM(endog[10:], exog[10:], family=FAMILIES["gamma"]).fit()
    assert np.abs((res.params - own.params) / own.bse).max() < 1


def test_rows_that_are_far_in_x_may_be_good():
    rng = np.random.default_rng(5)
    exog = np.c_[np.ones(200), rng.standard_t(3, (200, 2))]
    endog = rng.gamma(4.0, np.exp(exog @ [1.0, 0.3, -0.2]) / 4.0)
    res = RRMGLM(endog, exog, 0.2, family=FAMILIES["gamma"]).fit()
    problem = res._estimate.problem
    assert problem.far(res.first_step._estimate.solution.weights).any()
    assert res.explanation.name == "none"


@pytest.mark.parametrize("factor", [20.0, 0.02])
def test_clusters_are_found_above_and_below_skewed_responses(factor):
    rng = np.random.default_rng(3)
    exog = np.c_[np.ones(600), 0.5 * rng.standard_normal((600, 2))]
    mean = np.exp(exog @ [1.0, 0.6, -0.4])
    endog = rng.gamma(2.0, mean / 2.0)
    bad = np.argsort(-exog[:, 1])[:40]
    endog[bad] = factor * np.median(mean)
    res = RRMGLM(endog, exog, 0.2, family=FAMILIES["gamma"]).fit()
    assert res.explanation.name == "cluster"
    assert res.outliers()[bad].mean() > 0.9
    good = np.delete(np.arange(600), bad)
    own = sm.GLM(endog[good], exog[good], family=FAMILIES["gamma"]).fit()
    assert np.abs((res.params - own.params) / own.bse).max() < 1.5


def test_a_row_of_weight_two_is_the_row_twice():
    endog, exog = sample("poisson", "high")
    weights = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(300), weights.astype(int))
    model = rrmstats.RRMPoisson
    one = model(endog, exog, 0.2, freq_weights=weights).fit()
    two = model(endog[twice], exog[twice], 0.2).fit()
    assert_allclose(one.params, two.params, rtol=1e-6)
    assert_allclose(one.bse, two.bse, rtol=1e-5)
    assert_allclose([one.eps_hat, one.eps_hat_se], [two.eps_hat, two.eps_hat_se], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "share", "eps_bar"),
    [
        ("clean", 0.1, 0.2),
        ("low at the top", 0.1, 0.2),
        ("low at the top", 0.3, 0.4),
        ("high", 0.1, 0.2),
        ("leverage", 0.1, 0.2),
    ],
)
def test_poisson_regression_is_one_model(kind, share, eps_bar):
    endog, exog = sample("poisson", kind, share)
    glm = rrmstats.RRMPoisson(endog, exog, eps_bar).fit()
    own = rrmstats.robustify(sm.Poisson(endog, exog), eps_bar).fit()
    assert (glm.outliers() == own.outliers()).all()
    assert_allclose(own.params, glm.params, rtol=1e-6, atol=1e-9)
    assert_allclose(own.bse, glm.bse, rtol=1e-6)
    assert_allclose([own.eps_hat, own.eps_hat_se], [glm.eps_hat, glm.eps_hat_se], atol=1e-6)
    one, other = (res._estimate.explained.chosen for res in (glm, own))
    assert_allclose(one.prob_bad, other.prob_bad, atol=1e-6)


def test_the_share_of_bad_rows_stays_within_its_bound():
    res = fitted("poisson", "high", 0.06)
    assert res.eps_hat <= 0.06 * (1 + 1e-9)
    assert res._estimate.explained.chosen.eps == res.eps_hat


def test_newton_steps_end_where_em_does():
    found = explained(fitted("poisson", "high"))
    again, root = rooted(found.fit)
    assert root
    assert_allclose(again.theta, found.fit.theta, rtol=1e-9)
    assert moves(again).known.all()
