"""Any statsmodels model with a likelihood per row, made robust."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rrmstats
from rrmstats import RRMLogit
from rrmstats.losses.likelihood_laws import GeneralizedPoissonKernel, NegativeBinomialKernel
from rrmstats.losses.numerical import bounded_fits
from rrmstats.models.likelihood import highest

from .likelihood_models import BAD, LABELS, MODELS, WITHOUT_LAW, NormalModel, sample


def own_fit(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(disp=0, maxiter=2000).params).ravel(order="F")


def model_of(name, spoil=False, seed=0):
    """Return a model of clean rows, or with BAD rows spoiled."""
    make, response, wrong = MODELS[name]
    exog, data = sample(seed)
    endog = np.array(data[response])
    if spoil and wrong is not None:
        endog[BAD] = wrong
    elif spoil:
        endog[np.argsort(-exog[:, 1])[:10]] = endog.min()
    return make(endog, exog)


@pytest.mark.parametrize("name", MODELS)
def test_without_corruption_it_is_statsmodels_fit(name):
    res = rrmstats.robustify(model_of(name), eps_bar=0.0).fit(steps=1)
    own = own_fit(model_of(name))
    assert_allclose(res.params, own, rtol=1e-3, atol=2e-4)
    # Ours is at least as high.
    losses = [-np.sum(model_likelihood(name, at)) for at in (res.params, own)]
    assert losses[0] <= losses[1] + 1e-8
    assert res.converged


def model_likelihood(name, params):
    found = rrmstats.robustify(model_of(name), eps_bar=0.0).problem().likelihood
    return found.rows.log_likelihood(params)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in LABELS])
def test_gross_errors_lose_their_weight(name):
    res = rrmstats.robustify(model_of(name, spoil=True), eps_bar=0.15).fit(
        n_starts=5, stability=False, steps=1
    )
    clean, spoiled = own_fit(model_of(name)), own_fit(model_of(name, spoil=True))
    assert res.relative_weights[BAD].max() < 0.05
    assert res.outliers()[BAD].all()
    assert res.corrected == (name not in WITHOUT_LAW)
    if res.corrected:
        rough = np.linalg.norm(spoiled - clean)
        assert np.linalg.norm(res.params - clean) < max(0.5 * rough, 0.3)
        assert np.isfinite(res.bse).all() and (np.asarray(res.bse) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", LABELS)
def test_flipped_labels_bias_less_than_maximum_likelihood(name):
    errors = []
    for seed in range(3):
        clean, spoiled = (own_fit(model_of(name, spoil, seed)) for spoil in (False, True))
        robust = rrmstats.robustify(model_of(name, True, seed), eps_bar=0.15)
        found = robust.fit(n_starts=5, stability=False, steps=1).params
        errors.append([np.linalg.norm(at - clean) for at in (found, spoiled)])
    ours, theirs = np.mean(errors, axis=0)
    assert ours < theirs


def test_labels_are_corrected_as_in_logistic_regression():
    model = model_of("logit", spoil=True)
    res = rrmstats.robustify(model, eps_bar=0.1).fit(stability=False, steps=1)
    known = RRMLogit(model.endog, model.exog, 0.1, alpha=0.0).fit(stability=False, steps=1)
    assert_allclose(res.raw_params, known.raw_params, rtol=1e-5)
    assert_allclose(res.params, known.params, rtol=1e-4, atol=1e-6)
    assert_allclose(res.bse, known.bse, rtol=0.15)


def test_a_label_far_out_has_all_its_loss():
    # statsmodels takes no probability below 2e-16, and has no curvature there
    rng = np.random.default_rng(2)
    exog = sm.add_constant(rng.standard_normal((2000, 2)))
    label = (exog[:, 1:] @ [1.0, -0.6] + rng.standard_normal(2000) > 0).astype(float)
    exog[0, 1], label[0] = 50.0, 0.0
    res = rrmstats.robustify(sm.Probit(label, exog), eps_bar=0.1).fit(stability=False, steps=1)
    assert res.converged
    assert res.weights[0] == 0
    assert np.all(np.abs(res.params - [0, 1, -0.6]) < 4 * res.bse)


def test_counts_are_corrected_as_in_poisson_regression():
    model = model_of("poisson", spoil=True)
    res = rrmstats.robustify(model, eps_bar=0.1).fit(stability=False)
    known = rrmstats.RRMPoisson(model.endog, model.exog, 0.1).fit(stability=False)
    assert_allclose(res.first_step.raw_params, known.first_step.raw_params, rtol=1e-5)
    assert_allclose(res.params, known.params, atol=0.2 * np.min(known.bse))
    assert_allclose(res.bse, known.bse, rtol=0.15)


@pytest.mark.slow
def test_the_correction_finds_the_scale_of_a_normal_distribution():
    clean = rrmstats.robustify(model_of("own with a law"), eps_bar=0.2).fit(
        stability=False, steps=1
    )
    assert_allclose(clean.params[-1], own_fit(model_of("own"))[-1], atol=0.15)
    assert clean.raw_params[-1] < clean.params[-1] - 0.3


@pytest.mark.slow
def test_the_overdispersion_is_that_of_the_good_rows():
    res = rrmstats.robustify(model_of("negative binomial", spoil=True), 0.15).fit(
        stability=False, steps=1
    )
    assert own_fit(model_of("negative binomial", spoil=True))[-1] > 2
    assert 0.2 < res.params[-1] < 0.8
    assert list(res.model.data.param_names)[-1] == "alpha"


def frame():
    exog, data = sample()
    found = pd.DataFrame({"x": exog[:, 1], "count": data["count"]})
    found.index = [f"row {i}" for i in range(len(found))]
    found.loc[found.index[:12], "count"] = 60
    return found


def test_results_keep_names_labels_and_predictions():
    data = frame()
    model = smf.poisson("count ~ x", data)
    res = rrmstats.robustify(model, eps_bar=0.1).fit(steps=1)
    assert list(res.params.index) == ["Intercept", "x"]
    assert list(res.weights.index) == list(data.index)
    assert set(res.weight_table(12).index) == set(data.index[:12])
    wanted = np.exp(res.params["Intercept"] + res.params["x"] * data.x)
    assert_allclose(res.predict(), wanted)
    assert_allclose(res.predict(data.head(3)), wanted[:3])
    assert res.model.model is model
    text = " ".join(str(res.summary()).split())
    assert "Poisson" in text and "Smallest weights" in text
    again = pickle.loads(pickle.dumps(res))
    pd.testing.assert_series_equal(again.params, res.params)


def test_classes_are_predicted():
    res = rrmstats.robustify(model_of("mnlogit"), eps_bar=0.05).fit(stability=False, steps=1)
    assert res.predict().shape == (250, 3)
    assert_allclose(res.predict().sum(axis=1), 1.0)
    assert len(res.model.data.param_names) == 6


@pytest.mark.slow
def test_every_kind_of_standard_error_and_frequency_weights():
    data = frame()
    robust = rrmstats.robustify(smf.poisson("count ~ x", data), eps_bar=0.1)
    plain = robust.fit(steps=1)
    drawn = robust.fit(cov_type="bootstrap", cov_kwds={"n_boot": 60}, steps=1)
    assert_allclose(drawn.bse, plain.bse, rtol=0.5)
    own = robust.fit(cov_type="cluster", cov_kwds={"groups": np.arange(len(data))}, steps=1)
    assert_allclose(own.bse, plain.bse, rtol=0.01)
    counts = 1 + np.arange(len(data)) % 2
    twice = data.iloc[np.repeat(np.arange(len(data)), counts)]
    weighted = rrmstats.robustify(smf.poisson("count ~ x", data), 0.1, freq_weights=counts).fit(
        steps=1
    )
    repeated = rrmstats.robustify(smf.poisson("count ~ x", twice), 0.1).fit(steps=1)
    assert_allclose(weighted.params, repeated.params, rtol=1e-5)
    assert_allclose(weighted.bse, repeated.bse, rtol=0.02)


@pytest.mark.slow
def test_eps_bar_can_be_chosen_and_checked():
    robust = rrmstats.robustify(smf.poisson("count ~ x", frame()), eps_bar="auto")
    res = robust.fit(steps=1)
    assert 0.04 < res.eps_bar < 0.15
    assert res.stability.stable


@pytest.mark.slow
def test_what_costs_is_said():
    res = rrmstats.robustify(model_of("own"), eps_bar=0.1).fit(
        n_starts=3, stability=False, steps=1
    )
    text = " ".join(str(res.summary()).split())
    assert "largest value that it could have is not known" in text
    assert "not corrected" in text
    robust = rrmstats.robustify(model_of("own"), 0.1, saturated=np.zeros(250))
    given = robust.fit(n_starts=3, stability=False, steps=1)
    assert_allclose(given.params, res.params, rtol=1e-6)
    assert "largest value that it could" not in " ".join(str(given.summary()).split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own", "probit"])
def test_likelihoods_without_a_second_step_have_one(name):
    res = rrmstats.robustify(model_of(name), eps_bar=0.1).fit(n_starts=1, stability=False)
    assert res.steps == 1 and res.first_step is None
    assert "steps=2" not in str(res.summary())


@pytest.mark.slow
def test_what_cannot_work_says_so():
    own = rrmstats.robustify(model_of("own"), eps_bar=0.1)
    with pytest.raises(NotImplementedError, match="auto"):
        rrmstats.robustify(model_of("own"), eps_bar="auto").fit(steps=1)
    with pytest.raises(AttributeError, match="compare"):
        _ = own.fit(n_starts=1, stability=False, steps=1).aic
    with pytest.raises(NotImplementedError, match="from_formula"):
        rrmstats.RRMLikelihood.from_formula("y ~ x", frame(), 0.1)


def poisson_sample(spoil):
    """Return a design, and counts with neither overdispersion nor added zeros."""
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal((300, 2)))
    count = rng.poisson(np.exp(exog @ [0.8, 0.5, -0.3]))
    if spoil:
        count[:15] = 60
    return exog, count


@pytest.mark.parametrize(
    "kind, unknown, spoil",
    [
        (sm.NegativeBinomial, ["alpha"], True),
        (sm.ZeroInflatedPoisson, ["inflate_const"], True),
        (sm.ZeroInflatedNegativeBinomialP, ["inflate_const", "alpha"], False),
    ],
)
def test_a_parameter_at_the_end_of_its_range_spoils_no_other(kind, unknown, spoil):
    exog, count = poisson_sample(spoil)
    res = rrmstats.robustify(kind(count, exog), 0.1).fit(stability=False, steps=1)
    plain = rrmstats.robustify(sm.Poisson(count, exog), 0.1).fit(stability=False, steps=1)
    assert res.converged and res.unknown == unknown
    known = np.isfinite(res.bse)
    assert known.sum() == 3 and np.isfinite(res.params).all()
    assert_allclose(np.asarray(res.params)[known], plain.params, atol=1e-3)
    assert_allclose(np.asarray(res.bse)[known], plain.bse, rtol=0.02)
    text = " ".join(str(res.summary()).split())
    assert f"No standard error for {', '.join(unknown)}" in text and "inf " not in text


@pytest.mark.parametrize("name", ["poisson", "negative binomial", "probit", "beta"])
def test_predictions_have_the_intervals_of_statsmodels(name):
    res = rrmstats.robustify(model_of(name), 0.0).fit(stability=False, steps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = model_of(name).fit(disp=0, maxiter=2000, cov_type="HC0")
        wanted = own.get_prediction().summary_frame()
    found = res.get_prediction().summary_frame()
    assert_allclose(found, wanted.iloc[:, :4], rtol=0.02)
    exog = np.asarray(res.model.exog)
    assert_allclose(res.get_prediction(exog[:3]).summary_frame(), found[:3])


@pytest.mark.parametrize("name", ["poisson", "negative binomial", "probit", "mnlogit"])
def test_marginal_effects_are_those_of_statsmodels(name):
    res = rrmstats.robustify(model_of(name), 0.0).fit(stability=False, steps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = model_of(name).fit(disp=0, maxiter=2000, cov_type="HC0")
        wanted = own.get_margeff().summary_frame()
    found = res.get_margeff().summary_frame()
    assert list(found.index) == list(wanted.index)
    assert_allclose(found.iloc[:, :2], wanted.iloc[:, :2], rtol=0.02, atol=1e-4)


def test_what_has_no_intervals_or_effects_says_so():
    res = rrmstats.robustify(model_of("mnlogit"), 0.0).fit(stability=False, steps=1)
    with pytest.raises(NotImplementedError, match="one probability per class"):
        res.get_prediction()
    res = rrmstats.robustify(model_of("beta"), 0.0).fit(stability=False, steps=1)
    with pytest.raises(NotImplementedError, match="no marginal effects for BetaModel"):
        res.get_margeff()


class WrongLength(NormalModel):
    def loglikeobs(self, params):
        return super().loglikeobs(params)[1:]


class Undefined(NormalModel):
    def loglikeobs(self, params):
        return np.where(np.arange(250) == 3, np.nan, super().loglikeobs(params))


def test_models_without_a_likelihood_per_row_are_refused():
    exog, data = sample()
    with pytest.raises(TypeError, match="instance of a model, got the class Poisson"):
        rrmstats.robustify(sm.Poisson, 0.1)
    with pytest.raises(TypeError, match=r"give their \.model"):
        rrmstats.robustify(sm.Poisson(data["count"], exog).fit(disp=0), 0.1)
    with pytest.raises(TypeError, match="not a sum over rows"):
        rrmstats.robustify(sm.PHReg(data["count"] + 1.0, exog[:, 1:]), 0.1)
    with pytest.raises(TypeError, match="use RRMOLS"):
        rrmstats.robustify(sm.OLS(data["number"], exog), 0.1)
    with pytest.raises(TypeError, match="use RRMGLM"):
        rrmstats.robustify(sm.GLM(data["number"], exog), 0.1)
    with pytest.raises(TypeError, match="RLM has none"):
        rrmstats.robustify(sm.RLM(data["number"], exog), 0.1)
    with pytest.raises(TypeError, match="earlier rows"):
        rrmstats.robustify(sm.tsa.SARIMAX(data["number"]), 0.1)
    with pytest.raises(TypeError, match="robust already"):
        rrmstats.robustify(rrmstats.RRMOLS(data["number"], exog, 0.1), 0.1)
    with pytest.raises(TypeError, match=r"eps_bar must be a number in .* got None"):
        rrmstats.robustify(sm.Poisson(data["count"], exog), None)


@pytest.mark.parametrize("kind, message", [(WrongLength, "250 rows"), (Undefined, "NaN .* row 3")])
def test_likelihoods_that_are_no_numbers_are_refused(kind, message):
    exog, data = sample()
    with pytest.raises(ValueError, match=message):
        rrmstats.robustify(kind(data["number"], exog), 0.1)


@pytest.mark.parametrize("kernel", [NegativeBinomialKernel(1.0), GeneralizedPoissonKernel(1.0)])
def test_highest_finds_each_peak(kernel):
    counts, alpha = np.array([1.0, 7.0, 400.0]), np.array(0.8)
    found = highest(kernel, counts, np.log(counts), alpha)
    means = np.linspace(-2.0, 8.0, 20_001)[:, None]
    assert_allclose(found, kernel.log_density(counts, means, alpha).max(axis=0), atol=1e-4)
    assert (found >= kernel.log_density(counts, means, alpha)).all()


@pytest.mark.parametrize("seed", [915, 936])
def test_a_dispersion_at_its_boundary_is_held_there(seed):
    """Poisson counts whose negative binomial fit starts without dispersion, at the bound."""
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(200), rng.standard_normal((200, 2))]
    endog = rng.poisson(np.exp(exog @ [1.0, 0.5, -0.3]))
    res = rrmstats.robustify(sm.NegativeBinomial(endog, exog), eps_bar=0.1).fit()
    assert res.converged
    assert res.first_step.converged
    assert 0 <= res.params[-1] < 0.05


def test_groups_know_what_rows_know():
    exog, count = poisson_sample(spoil=True)
    groups = np.arange(300) // 5
    res = rrmstats.robustify(sm.Poisson(count, exog), 0.1, groups=groups).fit(n_starts=2)
    assert res.corrected and res.saturated and not res.unknown
    assert res.first_step.corrected and np.isfinite(res.first_step.bse).all()


@pytest.mark.parametrize("name", ["poisson", "beta", "truncated poisson"])
def test_a_part_has_the_losses_and_gradients_of_its_rows(name):
    rows, model = np.arange(3, 250, 7), model_of(name)
    for saturated in (None, np.linspace(0.0, 1.0, 250)):
        problem = rrmstats.robustify(model, 0.1, saturated=saturated).problem()
        part = problem.take(rows)
        theta = problem.start + 0.01
        assert_allclose(part.losses(theta), problem.losses(theta)[rows], rtol=1e-7)
        assert_allclose(
            part.gradients(theta), problem.gradients(theta)[rows], rtol=1e-4, atol=1e-4
        )
    again = part.take(np.array([2, 0]))
    assert_allclose(again.losses(theta), problem.losses(theta)[rows[[2, 0]]], rtol=1e-7)


def test_rows_without_weight_may_have_any_loss():
    def losses(theta, places):
        return np.hstack([(theta - 1.0) ** 2, (theta - 3.0) ** 2, np.full_like(theta, -np.inf)])

    def slopes(theta, places):
        return 2.0 * (theta - 2.0), np.full((1, 1, 1), 2.0)

    weights = np.array([[0.5, 0.5, 0.0]])
    found = bounded_fits(losses, slopes, weights, np.zeros((1, 1)), np.full(1, -np.inf), 20)
    assert_allclose(found, [[2.0]])
