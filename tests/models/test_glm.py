"""Generalized linear models: statsmodels' fit without contamination, data of every kind."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.tools.sm_exceptions import DomainWarning, ModelWarning, PerfectSeparationWarning

import rrmstats
from replication.samples import dirty_responses, extreme_flips
from rrmstats import RRMGLM, RRMOLS, RRMLogit, RRMPoisson

F, L = sm.families, sm.families.links
N = 150
# Families and links, and parameters that keep the means in their domain.
LINKS = {
    "gaussian": (F.Gaussian, [L.Identity, L.Log, L.InversePower], (1.0, 0.5, 0.3)),
    "poisson": (F.Poisson, [L.Log, L.Identity, L.Sqrt], (1.0, 0.5, 0.3)),
    "gamma": (F.Gamma, [L.InversePower, L.Log, L.Identity], (1.0, 0.5, 0.3)),
    "inverse gaussian": (
        F.InverseGaussian,
        [L.InverseSquared, L.InversePower, L.Identity, L.Log],
        (1.0, 0.5, 0.3),
    ),
    "binomial": (
        F.Binomial,
        [L.Logit, L.Probit, L.Cauchy, L.CLogLog, L.LogLog],
        (-0.5, 1.0, -0.5),
    ),
    "small binomial": (F.Binomial, [L.Log, L.LogC], (-1.5, 0.5, -0.3)),
    "shares": (F.Binomial, [L.Identity], (0.3, 0.2, 0.1)),
    "negative binomial": (
        lambda link: F.NegativeBinomial(link, alpha=0.5),
        [L.Log, L.Identity, L.Sqrt],
        (1.0, 0.5, 0.3),
    ),
    "tweedie": (lambda link: F.Tweedie(link, var_power=1.5), [L.Log, L.Sqrt], (1.0, 0.5, 0.3)),
    "tweedie 1": (lambda link: F.Tweedie(link, var_power=1.0), [L.Log], (1.0, 0.5, 0.3)),
    "tweedie 2": (lambda link: F.Tweedie(link, var_power=2.0), [L.Log], (1.0, 0.5, 0.3)),
}
CASES = [(name, link) for name, (_, links, _) in LINKS.items() for link in links]


def draw(name, link, rng):
    """Return family, endog and exog."""
    make, _, params = LINKS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DomainWarning)
        family = make(link())
    exog = np.c_[np.ones(N), rng.uniform(0, 1, (N, 2))]
    mu = family.link.inverse(exog @ params)
    if isinstance(family, F.Binomial):
        success = rng.binomial(12, mu)
        return family, np.c_[success, 12 - success].astype(float), exog
    if isinstance(family, F.Poisson | F.NegativeBinomial):
        return family, rng.poisson(mu * rng.gamma(5, 0.2, N)).astype(float), exog
    if isinstance(family, F.Gaussian):
        return family, mu + 0.1 * rng.standard_normal(N), exog
    jumps = rng.poisson(mu)
    if isinstance(family, F.Tweedie) and family.var_power == 1.5:
        return family, rng.gamma(np.maximum(2 * jumps, 1), 0.5) * (jumps > 0), exog
    return family, rng.gamma(4, mu / 4), exog


def close(model, reference):
    res = model.fit(steps=1)
    assert res.converged
    unit = np.asarray(reference.bse)
    assert_allclose(res.params / unit, reference.params / unit, atol=1e-6)
    assert_allclose(res.scale, reference.scale, rtol=1e-6)
    return res


def reference(endog, exog, **kwargs):
    return sm.GLM(endog, exog, **kwargs).fit(tol=1e-13, tol_criterion="params", maxiter=500)


@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")
@pytest.mark.parametrize(("name", "link"), CASES)
def test_without_contamination_it_is_statsmodels_fit(name, link):
    family, endog, exog = draw(name, link, np.random.default_rng(0))
    res = close(RRMGLM(endog, exog, 0, family=family), reference(endog, exog, family=family))
    assert res.eps_hat == 0
    two = RRMGLM(endog, exog, 0, family=family).fit()
    assert_allclose(two.params, res.params)
    assert two.steps_pvalue == 1
    assert two._estimate.explained.chosen.name == "none"


@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")
@pytest.mark.parametrize(("name", "link"), CASES)
def test_gross_errors_do_not_move_it_far(name, link):
    rng = np.random.default_rng(1)
    family, endog, exog = draw(name, link, rng)
    clean = reference(endog[10:], exog[10:], family=family)
    if endog.ndim > 1:
        endog[:10] = [12.0, 0.0] if name != "binomial" else [0.0, 12.0]
        exog[:10, 1] = 0.0 if name != "binomial" else 1.0
    else:
        endog[:10] = 60.0
    res = RRMGLM(endog, exog, 0.15, family=family).fit(steps=1)
    assert (np.abs(res.params - clean.params) < 3.5 * clean.bse).all()
    assert res.relative_weights[:10].max() < 0.2


def test_weights_and_offsets_are_statsmodels():
    rng = np.random.default_rng(2)
    exog = np.c_[np.ones(N), rng.standard_normal((N, 2))]
    exposure, offset = rng.uniform(1, 5, N), 0.3 * rng.standard_normal(N)
    freq, var = 1.0 + rng.integers(0, 3, N), rng.uniform(0.5, 3, N)
    mu = exposure * np.exp(offset + exog @ [0.5, 0.4, -0.2])
    given = {"exposure": exposure, "offset": offset, "freq_weights": freq}
    for family, endog in (
        (F.Poisson(), rng.poisson(mu).astype(float)),
        (F.Gamma(L.Log()), rng.gamma(3, mu / 3)),
    ):
        expected = reference(endog, exog, family=family, **given)
        res = close(RRMGLM(endog, exog, 0, family=family, **given), expected)
        assert_allclose(res.fittedvalues, expected.fittedvalues, rtol=1e-7)
        rows = exog[:3]
        new = {"exposure": [2.0, 1.0, 1.0], "offset": [0.0, 0.5, 0.0]}
        assert_allclose(res.predict(rows, **new), expected.predict(rows, **new), rtol=1e-7)
        varied = given | {"var_weights": var}
        close(
            RRMGLM(endog, exog, 0, family=family, **varied),
            reference(endog, exog, family=family, **varied),
        )


def test_binomial_responses_in_three_forms_are_one():
    rng = np.random.default_rng(3)
    endog, exog = dirty_responses(rng, "binomial", "high", 120)
    data = pd.DataFrame({"s": endog[:, 0], "f": endog[:, 1], "x": exog[:, 1]})
    trials = endog.sum(axis=1)
    design = exog[:, :2]
    columns = RRMGLM(endog, design, 0.2, family=F.Binomial()).fit()
    shares = RRMGLM(
        endog[:, 0] / trials, design, 0.2, family=F.Binomial(), var_weights=trials
    ).fit()
    formula = rrmstats.glm("s + f ~ x", data, 0.2, family=F.Binomial()).fit()
    for other in (shares, formula):
        assert_allclose(other.params, columns.params, rtol=1e-8)
        assert_allclose(other.bse, columns.bse, rtol=1e-7)
        assert_allclose(other.weights, columns.weights, rtol=1e-7)


def test_the_short_form_for_counts_is_the_long_one():
    endog, exog = dirty_responses(np.random.default_rng(4), "poisson", "high", 150)
    data = pd.DataFrame({"count": endog, "x": exog[:, 1], "time": 1.0 + np.arange(150) % 4})
    short = rrmstats.poisson("count ~ x", data, 0.2, exposure=data["time"]).fit(steps=1)
    long = rrmstats.glm(
        "count ~ x", data, 0.2, family=F.Poisson(), offset=np.log(data["time"])
    ).fit(steps=1)
    assert isinstance(short.model, RRMPoisson)
    assert_allclose(short.params, long.params, rtol=1e-8)
    with pytest.raises(TypeError, match="no family"):
        RRMPoisson(endog, exog, 0.2, family=F.Poisson())


def test_gaussian_is_linear_regression():
    rng = np.random.default_rng(5)
    exog = np.c_[np.ones(200), rng.standard_normal((200, 2))]
    endog = exog @ [1.0, 2.0, -1.0] + rng.standard_normal(200)
    endog[:20] += 12
    ours, ols = RRMGLM(endog, exog, 0.2).fit(steps=1), RRMOLS(endog, exog, 0.2).fit(steps=1)
    assert_allclose(ours.params, ols.params, rtol=1e-6)
    assert_allclose(ours.weights, ols.weights, rtol=1e-5, atol=1e-9)
    assert_allclose(ours.scale, ols.scale, rtol=0.1)
    assert_allclose(ours.eps_hat, ols.eps_hat, atol=0.03)


def test_a_change_of_units_and_columns_changes_nothing_else():
    endog, exog = dirty_responses(np.random.default_rng(6), "gamma", "high", 150)
    family = F.Gamma(L.Log())
    res = RRMGLM(endog, exog, 0.2, family=family).fit()
    scaled = RRMGLM(1e6 * endog, exog * [1, 1e-5, 1, 1e4], 0.2, family=family).fit()
    assert_allclose(scaled.params[1:] * [1e-5, 1, 1e4], res.params[1:], rtol=1e-5, atol=1e-7)
    assert_allclose(scaled.params[0] - np.log(1e6), res.params[0], rtol=1e-6)
    assert_allclose(scaled.scale, res.scale, rtol=1e-6)
    assert_allclose(scaled.weights, res.weights, rtol=1e-5, atol=1e-10)
    twice = RRMGLM(endog, np.c_[exog, exog[:, 1]], 0.2, family=family).fit()
    assert twice.rank == 4
    assert_allclose(twice.params[1] + twice.params[4], res.params[1], rtol=1e-6)
    assert_allclose(twice.fittedvalues, res.fittedvalues, rtol=1e-6)


def test_an_exact_fit():
    rng = np.random.default_rng(7)
    exog = np.c_[np.ones(60), rng.standard_normal(60)]
    endog = np.exp(exog @ [1.0, 0.5])
    endog[:6] *= [10, 0.1, 20, 0.5, 3, 4]
    res = RRMGLM(endog, exog, 0.2, family=F.Gamma(L.Log())).fit()
    assert_allclose(res.params, [1.0, 0.5], atol=1e-5)
    assert np.flatnonzero(res.outliers()).tolist() == list(range(6))
    assert_allclose(res.eps_hat, 0.1, atol=0.02)
    assert (res.bse < 1e-4).all()


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_units_of_the_response_move_only_the_intercept(unit):
    endog, exog = dirty_responses(np.random.default_rng(8), "gamma", "high", 100)
    family = F.Gamma(L.Log())
    plain, moved = (
        RRMGLM(y, exog, 0.2, family=family).fit(steps=1) for y in (endog, unit * endog)
    )
    assert_allclose(moved.params - plain.params, [np.log(unit), 0, 0, 0], atol=1e-6)
    assert_allclose(moved.bse, plain.bse, rtol=1e-5)
    assert moved.converged


def test_separated_successes_are_told():
    x = np.linspace(-1, 1, 60)
    endog = (x > 0).astype(float)
    model = RRMGLM(endog, sm.add_constant(x), 0.0, family=F.Binomial())
    with pytest.warns(PerfectSeparationWarning, match="logit bounds them"):
        res = model.fit(steps=1)
    assert not res.converged
    assert np.isfinite(res.params).all()


def refused(match, kind=ValueError, endog=None, **kwargs):
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(30), rng.standard_normal(30)]
    endog = rng.poisson(3.0, 30).astype(float) if endog is None else endog
    with pytest.raises(kind, match=match):
        RRMGLM(endog, exog, 0.1, **kwargs)


def test_data_that_a_family_cannot_have_are_refused():
    counts = np.arange(30.0)
    refused(
        r"must be positive for the Gamma .* 1 such rows", endog=counts, family=F.Gamma(L.Log())
    )
    refused("must be positive for the InverseGaussian", endog=counts, family=F.InverseGaussian())
    refused("must not be negative for the Poisson", endog=counts - 3, family=F.Poisson())
    refused("Tweedie", endog=counts - 3, family=F.Tweedie(var_power=1.5))
    refused("all zeros", endog=np.zeros(30), family=F.Poisson())
    refused(r"shares in \[0, 1\]", endog=counts, family=F.Binomial())
    refused("one outcome only", endog=np.ones(30), family=F.Binomial())
    refused("one column", endog=np.ones((30, 2)), family=F.Poisson())
    refused("more successes than trials", endog=np.c_[counts, 20 - counts], family=F.Binomial())
    refused("1 rows without", endog=np.c_[counts, counts], family=F.Binomial())
    refused("successes and failures, got 3", endog=np.ones((30, 3)), family=F.Binomial())


def test_links_that_do_not_fit_the_responses_are_refused():
    refused(
        "Log link is not defined for means near 30", endog=-np.ones(30), family=F.Gaussian(L.Log())
    )


def test_truth_values_are_labels_in_arrays_and_refused_in_formulas():
    rng = np.random.default_rng(12)
    data = pd.DataFrame({"x": rng.standard_normal(60)})
    data["yes"] = data["x"] + rng.standard_normal(60) > 0
    exog = sm.add_constant(data["x"])
    res = RRMGLM(data["yes"], exog, 0.1, family=F.Binomial()).fit(steps=1)
    numbers = RRMGLM(data["yes"].astype(int), exog, 0.1, family=F.Binomial()).fit(steps=1)
    assert_allclose(res.params, numbers.params)
    with pytest.raises(ValueError, match=r"yes is not numeric: .* yes\[False\] and yes\[True\]"):
        rrmstats.glm("yes ~ x", data, 0.1, family=F.Binomial())
    assert_allclose(
        rrmstats.glm("I((yes == True) * 1) ~ x", data, 0.1, family=F.Binomial())
        .fit(steps=1)
        .params,
        numbers.params,
    )


def test_families_that_are_not_offered_are_refused():
    refused("such as sm.families.Poisson", TypeError, family=F.Poisson)
    refused("Gaussian, Binomial, Poisson", TypeError, family="poisson")
    refused("var_power from 1 to 2", family=F.Tweedie(var_power=2.5))
    refused("alpha > 0", family=F.NegativeBinomial(alpha=0.0))


@pytest.mark.parametrize("name", ["offset", "exposure", "var_weights"])
def test_numbers_of_the_rows_are_checked(name):
    refused(rf"{name} must have one number per row", family=F.Poisson(), **{name: np.ones(3)})
    refused(r"data\['t'\]", TypeError, family=F.Poisson(), **{name: "t"})
    if name != "offset":
        refused("must be positive", family=F.Poisson(), **{name: np.zeros(30)})
    for wrong in (np.nan, np.inf):
        values = np.r_[wrong, np.ones(29)]
        refused(f"{name} contains 1 NaN or inf", family=F.Poisson(), **{name: values})


@pytest.mark.parametrize("name", ["offset", "exposure", "var_weights", "freq_weights"])
def test_numbers_of_the_rows_go_with_their_rows(name):
    rng = np.random.default_rng(11)
    data = pd.DataFrame({"x": rng.standard_normal(60), "t": 1.0 + np.arange(60) % 4})
    data["y"] = rng.poisson(3.0, 60).astype(float)
    data.loc[[3, 7], "x"], data.loc[9, "t"] = np.nan, np.nan
    left = data.dropna()

    def params(rows):
        return rrmstats.poisson("y ~ x", rows, 0.1, **{name: rows["t"]}).fit(steps=1).params

    assert_allclose(params(data), params(left), rtol=1e-12)
    exog = sm.add_constant(data[["x"]])
    arrays = RRMPoisson(data["y"], exog, 0.1, missing="drop", **{name: data["t"]})
    assert_allclose(arrays.fit(steps=1).params, params(left), rtol=1e-12)
    for rows in (data, left):  # with and without rows to drop
        moved = {name: rows["t"].sample(frac=1, random_state=0)}
        with pytest.raises(ValueError, match=f"{name} has the labels of the data in another"):
            rrmstats.poisson("y ~ x", rows, 0.1, **moved)


@pytest.mark.parametrize(
    ("family", "endog", "var_weights", "advice"),
    [
        (F.Poisson(), np.arange(30) / 4, None, "quasi-Poisson"),
        (F.NegativeBinomial(alpha=1.0), np.arange(30) / 4, None, "exposure="),
        (F.Binomial(), np.arange(30) / 30, None, "numbers of trials"),
        (F.Binomial(), np.arange(30) / 30, np.full(30, 20.0), "numbers of trials"),
    ],
)
def test_responses_that_are_not_counts_are_told(family, endog, var_weights, advice):
    exog = np.c_[np.ones(30), np.arange(30.0)]
    given = {"family": family, "var_weights": var_weights}
    with pytest.warns(ModelWarning, match=rf"not whole numbers.*{advice}") as told:
        RRMGLM(endog, exog, 0.1, **given)
    assert told[0].filename == __file__
    RRMGLM(endog, exog, 0.0, **given)  # where nothing takes them for counts


def test_rates_and_shares_of_whole_numbers_are_counts():
    size = np.tile([3.0, 7.0, 11.0], 10)
    exog = np.c_[np.ones(30), np.arange(30.0)]
    for family in (F.Poisson(), F.Binomial()):
        RRMGLM(np.arange(30) % 3 / size, exog, 0.1, family=family, var_weights=size)
    RRMGLM(np.arange(30) / 4, exog, 0.1, family=F.Tweedie(var_power=1.0))


def test_the_family_of_the_user_stays_as_it_is():
    family = F.Binomial()
    endog, exog = dirty_responses(np.random.default_rng(0), "binomial", "clean", 60)
    RRMGLM(endog, exog, 0.1, family=family).fit(steps=1)
    assert family.n == 1


def test_a_clone_of_counts_keeps_their_trials():
    endog, exog = dirty_responses(np.random.default_rng(9), "binomial", "high", 80)
    model = RRMGLM(endog, exog, 0.2, family=F.Binomial())
    again = RRMGLM(model.endog, model.exog, **model._get_init_kwds())
    assert_allclose(again.fit(steps=1).params, model.fit(steps=1).params, rtol=1e-9)
    assert_allclose(again.row_sizes, 20)


def test_fits_that_would_ignore_eps_bar_are_refused():
    model = RRMPoisson(*dirty_responses(np.random.default_rng(0), "poisson", "clean", 40), 0.1)
    with pytest.raises(NotImplementedError, match="ignore eps_bar"):
        model.fit_constrained()


def test_counts_that_vary_more_than_the_family_says_are_told():
    rng = np.random.default_rng(10)
    exog = np.c_[np.ones(200), rng.standard_normal(200)]
    endog = rng.poisson(20 * np.exp(0.3 * exog[:, 1]) * rng.gamma(2, 0.5, 200)).astype(float)
    said = "all that eps_bar allows"
    assert said in str(RRMPoisson(endog, exog, 0.1).fit(stability=False, steps=1).summary())
    family = F.NegativeBinomial(alpha=0.5)
    assert said not in str(
        RRMGLM(endog, exog, 0.1, family=family).fit(stability=False, steps=1).summary()
    )


def wrong_labels(n=400, seed=4):
    return extreme_flips(np.random.default_rng(seed), n, (0.0, 1.0, -0.5), 0.05)


def test_labels_flipped_at_the_extremes_are_found_and_left_out():
    error = []
    for seed in range(5):
        endog, exog = wrong_labels(seed=[78, seed])
        res = RRMGLM(endog, exog, 0.1, family=F.Binomial()).fit()
        classical = sm.GLM(endog, exog, family=F.Binomial()).fit()
        error.append([np.mean((fit.params - (0, 1, -0.5)) ** 2) for fit in (classical, res)])
        assert res.explanation == "unlikely labels"
        assert abs(res.eps_hat - 0.05) < 0.02
    classical, two = np.mean(error, axis=0)
    assert two < 0.2 * classical


def test_an_offset_of_labels_moves_the_constant():
    endog, exog = wrong_labels()
    plain = RRMGLM(endog, exog, 0.1, family=F.Binomial()).fit()
    moved = RRMGLM(endog, exog, 0.1, family=F.Binomial(), offset=np.full(400, 0.7)).fit()
    assert_allclose(moved.params, plain.params - [0.7, 0, 0], rtol=1e-6)
    for name in ("bse", "eps_hat", "prob_bad"):
        assert_allclose(getattr(moved, name), getattr(plain, name), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("link", [L.Probit(), L.CLogLog()])
def test_labels_with_other_links_are_not_compared_with_flips(link):
    endog, exog = wrong_labels()
    res = RRMGLM(endog, exog, 0.1, family=F.Binomial(link)).fit()
    assert set(res.explanations.explanation) == {"none", "wide"}
    with pytest.raises(NotImplementedError, match="the logit link has a second step for labels"):
        RRMGLM(endog, exog, "auto", family=F.Binomial(link)).fit()


def test_counts_of_some_rows_are_not_labels():
    endog, exog = wrong_labels()
    trials = np.where(np.arange(400) == 0, 2.0, 1.0)
    res = RRMGLM(endog, exog, 0.1, family=F.Binomial(), var_weights=trials).fit()
    assert "unlikely labels" not in set(res.explanations.explanation)


def test_labels_have_an_automatic_bound():
    endog, exog = wrong_labels()
    general, plain = (
        model(endog, exog, "auto", **options).fit()
        for model, options in ((RRMGLM, {"family": F.Binomial()}), (RRMLogit, {}))
    )
    assert 0.05 < general.eps_bar < 0.2
    assert_allclose(general.eps_bar, plain.eps_bar, rtol=1e-6)
    assert_allclose(general.params, plain.params, rtol=1e-6)


def test_separated_labels_have_a_direction_and_no_errors():
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(80), rng.standard_normal((80, 2))]
    endog = (exog[:, 1] + exog[:, 2] > 0).astype(float)
    general = RRMGLM(endog, exog, 0.2, family=F.Binomial()).fit()
    plain = RRMLogit(endog, exog, 0.2).fit()
    assert_allclose(general.params, plain.params, rtol=1e-6)
    assert np.isnan(general.bse).all()
    assert general.converged
    assert "only the direction" in " ".join(general.summary().as_text().split())


def three_off(kind, seed):
    """Return forty responses and their design; three rows are far up at small predictors."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(40)
    if kind == "counts":
        y = rng.poisson(np.exp(1.2 + 0.15 * x)).astype(float)
        y[:3] = 12
    elif kind == "positive":
        y = rng.gamma(8, np.exp(0.5 + 0.1 * x) / 8)
        y[:3] *= 3
    else:
        y = 0.4 * x + rng.standard_normal(40)
        y[:3] += 4
    x[:3] = -1.5
    return y, sm.add_constant(x)


@pytest.mark.parametrize(
    ("kind", "seed", "chosen", "rival"),
    [
        ("counts", 8, "cluster", "overdispersed"),
        ("positive", 0, "cluster", "none"),
        ("normal", 9, "cluster", "changing noise"),
    ],
)
def test_an_explanation_as_good_that_changes_a_slope_is_named(kind, seed, chosen, rival):
    endog, exog = three_off(kind, seed)
    if kind == "counts":
        both = RRMPoisson(endog, exog, 0.2), rrmstats.robustify(sm.Poisson(endog, exog), 0.2)
    elif kind == "positive":
        both = (RRMGLM(endog, exog, 0.2, family=F.Gamma(L.Log())),)
    else:
        both = RRMGLM(endog, exog, 0.2), RRMOLS(endog, exog, 0.2)
    slopes = []
    for model in both:
        with pytest.warns(UserWarning, match="another story of x1"):
            res = model.fit()
        assert (res.explanation, res.rival.name) == (chosen, rival)
        slopes.append((res.params[1], res._results._estimate.params_of(res.rival)[1]))
    (own, other), error = slopes[0], res.bse[1]
    assert (abs(own) > 1.96 * error) != (abs(other) > 1.96 * error)
    assert_allclose(slopes[-1], slopes[0], atol=0.01 * error)


def test_weights_have_the_labels_of_the_rows():
    calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
    res = rrmstats.poisson("calls ~ hour", calls.set_index(calls.hour + 7), eps_bar=0.2).fit()
    assert res.weights.idxmin() == res.relative_weights.idxmin() == 13


def test_groups_of_equal_responses_have_no_infinite_likelihood():
    rng = np.random.default_rng(4)
    exog = sm.add_constant(rng.uniform(size=(150, 2)))
    endog = rng.gamma(4, np.exp(exog @ [1.0, 0.5, 0.3]) / 4)
    endog[:10] = 60.0
    groups = np.arange(150) // 5
    res = RRMGLM(endog, exog, 0.2, family=F.Gamma(L.Log()), groups=groups).fit(stability=False)
    good = reference(endog[10:], exog[10:], family=F.Gamma(L.Log()))
    assert res.explanation == "other line" and res.explanations.log_likelihood.max() < 0
    assert_allclose(res.bse, good.bse, rtol=0.3)


@pytest.mark.filterwarnings("ignore")  # eight rows are few for four columns
def test_steep_odds_of_few_rows_stay_within_the_bound():
    data = np.array(
        [[-0.57, -1.06, 100], [1.06, -1.13, 0], [-1.78, 0.65, 0], [0.84, -0.95, 1],
         [-0.57, 2.78, 0], [-1.02, -0.51, 0], [1.18, 0.75, 2], [1.61, 0.82, 9]]
    )  # fmt: skip
    exog = np.c_[np.ones(8), data[:, [0, 1, 0]]]
    res = RRMPoisson(data[:, 2], exog, 0.1).fit()
    assert res.eps_hat <= 0.1
    assert res.prob_bad[0] > 0.5


def test_constant_columns_cause_no_warnings_of_numpy():
    rng = np.random.default_rng(0)
    counts = np.r_[rng.poisson(3.0, 18), 0, 0]
    exog = np.c_[np.ones(20), np.zeros(20), rng.standard_normal(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        RRMPoisson(counts, exog, 0.3).fit().summary()
