"""Standard errors, tests and intervals: against derivatives, other programs and simulations."""

import pickle
from functools import partial
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, optional
from rrmstats.core import minimize
from rrmstats.core.resample import draw_counts
from rrmstats.core.sandwich import influence_covariance, minimum_influence, tempered_influence
from rrmstats.core.setting import Setting
from rrmstats.core.tempered import tempered_fit
from rrmstats.experiments.samples import (
    correlated_points,
    logistic_labels,
    one_sided_outliers,
    shifted_cluster,
)

# A row's weight is moved by this much; the derivative of an estimate is known to its square.
NUDGE = 1e-2


def regression(rng, n=60):
    return one_sided_outliers(rng, n, share=0.1, shift=6.0)


def cloud(rng, n=60):
    return shifted_cluster(rng, n, np.diag([9.0, 4.0, 1.0]))


def vector(problem, theta):
    return theta


def scatter(problem, theta):
    return theta


def subspace(problem, theta):
    """Return what does not depend on the choice of a basis, nor of the point."""
    point, basis = problem.split(theta)
    projection = basis @ basis.T
    return np.r_[projection.ravel(), point - projection @ point]


# Problems, and what of their parameters is determined.
PROBLEMS = {
    "ols": (lambda rng: RRMOLS(*regression(rng), 0.2), vector),
    "logit": (lambda rng: RRMLogit(*logistic_labels(rng, 150, (0.2, 1.0, -0.5)), 0.1), vector),
    "ridge": (
        lambda rng: RRMLogit(
            *logistic_labels(rng, 150, (0.2, 1.0)), 0.1, penalty="l2", alpha=0.01
        ),
        vector,
    ),
    "scatter": (lambda rng: RRMCov(cloud(rng), 0.2), scatter),
    "subspace": (lambda rng: RRMPCA(cloud(rng), 2, 0.2), subspace),
    "origin": (lambda rng: RRMPCA(cloud(rng), 1, 0.2, demean=False), subspace),
}


def nudged(n, row, by):
    prior = np.ones(n)
    prior[row] += by
    return prior


@pytest.mark.parametrize("name", PROBLEMS)
def test_influence_is_the_derivative_in_the_weight_of_a_row(name):
    make, determined = PROBLEMS[name]
    model = make(np.random.default_rng(0))
    problem = model.problem()
    n, at = problem.n_obs, minimize(problem, model.eps_bar)
    found = minimum_influence(problem, at.theta, at.losses, at.weights, at.lambda_)

    def refit(row, by):
        prior = nudged(n, row, by)
        return minimize(
            problem, model.eps_bar, n_starts=0, start_theta=at.theta, freq_weights=prior
        )

    for row in (0, 20, 41):
        ends = [refit(row, by) for by in (NUDGE, -NUDGE)]
        assert all(end.converged for end in ends)
        change = np.subtract(*(determined(problem, end.theta) for end in ends))
        step = found.theta[row] * NUDGE / n
        steps = np.array([step, -step])
        there = problem.retract(np.array([at.theta, at.theta]), steps)
        expected = np.subtract(*(determined(problem, theta) for theta in there))
        assert_allclose(change, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
        log_lambda = np.log(ends[0].lambda_ / ends[1].lambda_) * n / (2 * NUDGE)
        assert_allclose(log_lambda, found.log_lambda[row], rtol=2e-3)


@pytest.mark.parametrize("name", ["ols", "logit", "scatter"])
def test_influence_at_a_fixed_lambda_is_the_derivative(name):
    model = PROBLEMS[name][0](np.random.default_rng(1))
    problem = model.problem()
    n, first = problem.n_obs, minimize(problem, model.eps_bar)
    lambda_ = 2 * first.lambda_
    at = tempered_fit(problem, first, lambda_, Setting(model.eps_bar))
    found = tempered_influence(problem, at.theta, at.weights, lambda_, None)
    for row in (0, 20, 41):
        ends = []
        for by in (NUDGE, -NUDGE):
            prior = nudged(n, row, by)
            ends.append(tempered_fit(problem, at, lambda_, Setting(model.eps_bar, prior)).theta)
        step = found[row] * NUDGE / n
        there = problem.retract(np.array([at.theta, at.theta]), np.array([step, -step]))
        expected = there[0] - there[1]
        tolerance = 2e-3 * np.abs(expected).max() + 1e-10
        assert_allclose(ends[0] - ends[1], expected, rtol=2e-3, atol=tolerance)


# Models whose standard errors are those of exact influence functions, and how to refit them.
EXACT = {
    "logit": (RRMLogit, lambda rng: logistic_labels(rng, 150, (0.2, 1.0)), {"eps_bar": 0.1}, {}),
    "bounded logit": (
        RRMLogit,
        lambda rng: logistic_labels(rng, 150, (0.2, 1.0)),
        {"eps_bar": 0.1, "alpha": 1e-3},
        {},
    ),
    "cov": (RRMCov, lambda rng: (cloud(rng),), {"eps_bar": 0.2}, {}),
    "cov, two steps": (
        RRMCov,
        lambda rng: (cloud(rng),),
        {"eps_bar": 0.2},
        {"efficiency": 0.95},
    ),
    "pca": (RRMPCA, lambda rng: (cloud(rng),), {"eps_bar": 0.0, "n_components": 2}, {}),
}


@pytest.mark.parametrize("name", EXACT)
def test_standard_errors_are_the_infinitesimal_jackknife(name):
    """The variance is the mean of the squared derivatives in the rows' weights, over n."""
    cls, draw, kwargs, fit_kwargs = EXACT[name]
    data = draw(np.random.default_rng(0))
    n = len(data[0])
    moved = []
    for row in range(n):
        ends = [
            cls(*data, freq_weights=nudged(n, row, by), **kwargs).fit(n_starts=0, **fit_kwargs)
            for by in (NUDGE, -NUDGE)
        ]
        moved.append(np.subtract(*(np.asarray(end.params) for end in ends)) / (2 * NUDGE))
    res = cls(*data, **kwargs).fit(n_starts=0, **fit_kwargs)
    assert_allclose(np.sqrt((np.array(moved) ** 2).sum(axis=0)), res.bse, rtol=2e-3)


@pytest.mark.parametrize("name", ["ols", "logit"])
def test_the_covariance_is_that_of_the_stacked_equations(name):
    """Of theta, lambda and W = mean(w), with w = exp(-loss / lambda)."""
    model = PROBLEMS[name][0](np.random.default_rng(2))
    problem, eps_bar = model.problem(), model.eps_bar
    at = minimize(problem, eps_bar)
    k = problem.n_params

    def equations(point):
        theta, lambda_, mass = point[:k], point[k], point[k + 1]
        losses = problem.losses(theta)
        w = np.exp(-losses / lambda_)
        entropy = w * losses / (lambda_ * mass) + np.log(mass) - np.log1p(-eps_bar)
        return np.c_[w[:, None] * problem.gradients(theta), entropy, w - mass]

    point = np.r_[at.theta, at.lambda_, np.exp(-at.losses / at.lambda_).mean()]
    assert_allclose(equations(point).mean(axis=0), 0, atol=1e-7)
    h = 1e-5
    bread = np.array(
        [
            (equations(point + h * e).mean(axis=0) - equations(point - h * e).mean(axis=0)) / 2 / h
            for e in np.eye(k + 2)
        ]
    ).T
    g = equations(point)
    inverse = np.linalg.inv(bread)
    stacked = inverse @ (g.T @ g / len(g)) @ inverse.T / len(g)
    found = minimum_influence(problem, at.theta, at.losses, at.weights, at.lambda_)
    joint = np.c_[found.theta, found.log_lambda * at.lambda_]
    assert_allclose(influence_covariance(joint, None, len(g)), stacked[: k + 1, : k + 1], rtol=1e-4)


def test_least_squares_has_the_errors_of_hc1():
    endog, exog = regression(np.random.default_rng(0))
    res, reference = RRMOLS(endog, exog, 0.0).fit(), sm.OLS(endog, exog).fit(cov_type="HC1")
    assert_allclose(res.cov_params(), reference.cov_params(), rtol=1e-9)


def test_maximum_likelihood_has_the_errors_of_hc0():
    endog, exog = logistic_labels(np.random.default_rng(0), 200, (0.2, 1.0, -0.5))
    res = RRMLogit(endog, exog, 0.0).fit()
    reference = sm.Logit(endog, exog).fit(disp=0, cov_type="HC0")
    assert_allclose(res.cov_params(), reference.cov_params(), rtol=1e-6)


def test_moments_have_the_errors_of_moments():
    data = cloud(np.random.default_rng(0))
    n = len(data)
    centred = data - data.mean(axis=0)
    i, j = np.triu_indices(3)
    terms = np.c_[centred, centred[:, i] * centred[:, j] - (centred.T @ centred / n)[i, j]]
    assert_allclose(RRMCov(data, 0.0).fit().cov_params(), terms.T @ terms / n**2, rtol=1e-8)
    res = RRMPCA(data, 2, 0.0).fit()
    terms = res.scores**2 - res.eigenvals
    assert_allclose(res.cov_params(), terms.T @ terms / n**2, rtol=1e-8)


# Models on data of any size, by weights; the rows are those of one sample.
WEIGHTED = {
    "ols": lambda rng: (partial(RRMOLS, eps_bar=0.2), regression(rng)),
    "logit": lambda rng: (
        partial(RRMLogit, eps_bar=0.1),
        logistic_labels(rng, 200, (0.2, 1.0, -0.5)),
    ),
    "cov": lambda rng: (partial(RRMCov, eps_bar=0.2), (cloud(rng),)),
    "pca": lambda rng: (partial(RRMPCA, n_components=2, eps_bar=0.2), (cloud(rng),)),
}


@pytest.fixture(params=WEIGHTED)
def weighted(request):
    model, data = WEIGHTED[request.param](np.random.default_rng(0))
    return SimpleNamespace(name=request.param, model=model, data=data, n=len(data[0]))


@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_a_row_of_weight_two_is_the_row_twice(weighted, efficiency):
    counts = 1 + np.arange(weighted.n) % 3
    by_weight = weighted.model(*weighted.data, freq_weights=counts).fit(efficiency=efficiency)
    rows = np.repeat(np.arange(weighted.n), counts)
    by_rows = weighted.model(*(part[rows] for part in weighted.data)).fit(efficiency=efficiency)
    assert_allclose(by_weight.params, by_rows.params, rtol=1e-6)
    assert_allclose(by_weight.cov_params(), by_rows.cov_params(), rtol=1e-5, atol=1e-12)
    assert_allclose(by_weight.conf_int(), by_rows.conf_int(), rtol=1e-5)


@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_clusters_of_one_row(weighted, efficiency):
    fit = partial(weighted.model(*weighted.data).fit, efficiency=efficiency)
    res = fit(cov_type="cluster", cov_kwds={"groups": np.arange(weighted.n)})
    n = weighted.n
    assert_allclose(res.cov_params(), fit().cov_params() * n / (n - 1), rtol=1e-9)


@pytest.mark.parametrize("name", ["logit", "cov", "pca"])
def test_copies_in_one_cluster_add_nothing(name):
    model, data = WEIGHTED[name](np.random.default_rng(1))
    n = len(data[0])
    single = model(*data).fit()
    twice = model(*(np.concatenate([part, part]) for part in data)).fit(
        cov_type="cluster", cov_kwds={"groups": pd.Series(np.tile(np.arange(n), 2))}
    )
    assert_allclose(twice.cov_params(), single.cov_params() * n / (n - 1), rtol=1e-6, atol=1e-12)


def test_clusters_widen_the_errors_of_what_they_share():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), 8)
    exog = np.c_[np.ones(400), rng.standard_normal(50)[groups], rng.standard_normal(400)]
    endog = exog.sum(axis=1) + 2 * rng.standard_normal(50)[groups] + rng.standard_normal(400)
    model = RRMOLS(endog, exog, 0.1)
    cluster = model.fit(cov_type="cluster", cov_kwds={"groups": groups.astype(str)})
    ratio = cluster.bse / model.fit().bse
    assert (ratio[:2] > 1.8).all()
    assert 0.7 < ratio[2] < 1.3


def bootstrapped(model, **cov_kwds):
    return model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 50, **cov_kwds})


def test_the_bootstrap_repeats():
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    default, one = bootstrapped(model), bootstrapped(model, rng=1)
    assert_array_equal(bootstrapped(model).bootstrap.replicates, default.bootstrap.replicates)
    assert_array_equal(bootstrapped(model, rng=1).conf_int(), one.conf_int())
    assert (default.bse != one.bse).all()


def test_the_bootstrap_in_two_processes_and_batches(monkeypatch, capsys):
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    whole = bootstrapped(model)
    monkeypatch.setattr("rrmstats.models.bootstrap.BATCH_SIZE", 15 * 60)
    in_parts = bootstrapped(model, progress=True)
    assert_allclose(in_parts.bootstrap.replicates, whole.bootstrap.replicates, rtol=1e-6)
    assert "4/4" in capsys.readouterr().err
    parallel = bootstrapped(model, n_jobs=2)
    assert_allclose(
        parallel.bootstrap.replicates, in_parts.bootstrap.replicates, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("module", "kwds"), [("tqdm", {"progress": True}), ("joblib", {"n_jobs": 2})]
)
def test_what_an_extra_lacks_is_named(monkeypatch, module, kwds):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(optional, "import_module", absent)
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    with pytest.raises(ImportError, match=rf"{module} .* pip install 'rrmstats\[parallel\]'"):
        bootstrapped(model, **kwds)


def test_strata_keep_their_counts():
    strata = np.repeat([0, 1, 2], [10, 20, 30])
    counts = draw_counts(60, 40, np.random.default_rng(0), strata=strata)
    for stratum, size in enumerate((10, 20, 30)):
        assert_array_equal(counts[:, strata == stratum].sum(axis=1), size)
    assert (counts.max(axis=0) > 1).all()
    # Where rows of a stratum are alike, so are all samples.
    model = RRMOLS(strata.astype(float), np.ones(60), 0.0)
    assert_allclose(bootstrapped(model, strata=strata.astype(str)).bse, 0, atol=1e-12)
    assert bootstrapped(model).bse[0] > 0.05


def test_samples_of_weighted_rows_are_as_large_as_the_data():
    prior = np.array([1.0, 2.0, 3.0, 0.0])
    counts = draw_counts(4, 2000, np.random.default_rng(0), prior)
    assert_array_equal(counts.sum(axis=1), 6)
    assert_allclose(counts.mean(axis=0), prior, atol=0.15)


@pytest.mark.parametrize(("interval", "method"), [("percentile", "percentile"), ("bca", "BCa")])
def test_intervals_of_a_mean_are_those_of_scipy(interval, method):
    sample = np.random.default_rng(3).exponential(size=30)
    res = bootstrapped(RRMOLS(sample, np.ones(30), 0.0), n_boot=20_000, interval=interval)
    # the name of the argument that takes a generator has changed
    name = "rng" if "rng" in signature(stats.bootstrap).parameters else "random_state"
    resampled = partial(stats.bootstrap, (sample,), np.mean, n_resamples=20_000, method=method)
    reference = resampled(**{name: np.random.default_rng(4)})
    error = sample.std() / np.sqrt(30)
    assert_allclose(res.bse, error, rtol=0.02)
    assert_allclose(res.conf_int()[0], reference.confidence_interval, atol=0.06 * error)
    narrow = resampled(confidence_level=0.5, **{name: np.random.default_rng(4)})
    assert_allclose(res.conf_int(0.5)[0], narrow.confidence_interval, atol=0.06 * error)


@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_the_bootstrap_agrees_with_the_sandwich(weighted, efficiency):
    model, data = WEIGHTED[weighted.name](np.random.default_rng(5))
    if weighted.name != "logit":  # whose errors settle at larger samples
        fit = partial(model(*data).fit, efficiency=efficiency)
        boot = fit(cov_type="bootstrap", cov_kwds={"n_boot": 200}).bse
        assert_allclose(np.log(boot / fit().bse), 0, atol=0.6)


@pytest.mark.parametrize(
    ("cov_type", "kwds", "error", "message"),
    [
        ("HC1", {}, ValueError, "one of sandwich, cluster, bootstrap, got 'HC1'"),
        ("nonrobust", {}, ValueError, "not offered"),
        ("sandwich", {"groups": [1]}, TypeError, "takes no cov_kwds"),
        ("cluster", {}, TypeError, "groups"),
        ("cluster", {"groups": np.arange(60), "df": 1}, TypeError, "df"),
        ("cluster", {"groups": np.arange(5)}, ValueError, "each of the 60 rows, got 5"),
        ("cluster", {"groups": [None, *range(59)]}, ValueError, "missing"),
        ("cluster", {"groups": np.zeros(60)}, ValueError, "at least two"),
        ("bootstrap", {"n_boot": 1}, ValueError, "2 or more, got 1"),
        ("bootstrap", {"n_boot": 99.5}, ValueError, "got 99.5"),
        ("bootstrap", {"interval": "basic"}, ValueError, "'bca' or 'percentile', got 'basic'"),
        ("bootstrap", {"strata": [1, 2]}, ValueError, "each of the 60 rows"),
        ("bootstrap", {"seed": 1}, TypeError, "seed"),
    ],
)
@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_errors_say_what_is_wrong(cov_type, kwds, error, message, efficiency):
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    with pytest.raises(error, match=message):
        model.fit(efficiency=efficiency, cov_type=cov_type, cov_kwds=kwds)


def frame(n=120):
    rng = np.random.default_rng(7)
    data = pd.DataFrame(
        {"x": rng.standard_normal(n), "z": rng.standard_normal(n), "g": list("abc") * (n // 3)}
    )
    linear = 0.5 + data.x - 0.3 * data.z + data.g.map({"a": 0.0, "b": 0.4, "c": -0.4})
    data["y"] = linear + rng.standard_normal(n)
    data["label"] = (rng.random(n) < 1 / (1 + np.exp(-linear))).astype(float)
    data.loc[:5, "y"] += 15
    return data


FORMULAS = {
    "ols": partial(rrmstats.ols, "y ~ x + z + C(g)", eps_bar=0.1),
    "logit": partial(rrmstats.logit, "label ~ x + z + C(g)", eps_bar=0.05),
}


@pytest.fixture(params=FORMULAS)
def formula(request):
    return FORMULAS[request.param]


@pytest.mark.parametrize("use_t", [None, True, False])
@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_tests_and_intervals_follow_from_the_covariance(formula, efficiency, use_t):
    res = formula(frame()).fit(efficiency=efficiency, use_t=use_t)
    assert res.use_t is (isinstance(res.model, RRMOLS) if use_t is None else use_t)
    law = stats.norm
    if res.use_t:
        law = stats.t(getattr(res, "df_resid_inference", 115))
    errors = np.sqrt(np.diag(res.cov_params()))
    assert_allclose(res.bse, errors)
    assert_allclose(res.tvalues, res.params / errors)
    assert_allclose(res.pvalues, 2 * law.sf(np.abs(res.tvalues)), rtol=1e-8)
    for alpha in (0.05, 0.2):
        half = law.ppf(1 - alpha / 2) * errors
        expected = np.c_[res.params - half, res.params + half]
        assert_allclose(res.conf_int(alpha), expected)
    assert list(res.conf_int().index) == list(res.params.index)
    test = res.t_test("x - z = 1")
    contrast = np.array([name == "x" for name in res.params.index], float) - [
        name == "z" for name in res.params.index
    ]
    error = np.sqrt(contrast @ res.cov_params() @ contrast)
    assert_allclose(test.effect, contrast @ res.params)
    assert_allclose(test.sd.squeeze(), error)
    assert_allclose(test.statistic.squeeze(), (contrast @ res.params - 1) / error)


def test_degrees_of_freedom_are_those_that_the_estimate_is_worth():
    endog, exog = one_sided_outliers(np.random.default_rng(0), 100, share=0.0)
    res = RRMOLS(endog, exog, 0.2).fit()
    worth = 0.4036  # (2 a - 1) ** 1.5 / a ** 3 at eps_bar = 0.2
    assert_allclose(res.df_resid_inference, 100 * worth - 3, atol=0.02)
    assert_allclose(RRMOLS(endog, exog, 0.2).fit(efficiency=0.9).df_resid_inference, 87)
    assert_allclose(RRMOLS(endog, exog, 0.0).fit().df_resid_inference, 97)


def test_wald_tests(formula):
    res = formula(frame()).fit()
    names = list(res.params.index)
    levels = [name for name in names if name.startswith("C(g)")]
    picked = np.eye(len(names))[[names.index(name) for name in levels]]
    effect = picked @ res.params
    statistic = effect @ np.linalg.solve(picked @ res.cov_params() @ picked.T, effect)
    chi2 = res.wald_test(picked, use_f=False, scalar=True)
    assert_allclose(chi2.statistic, statistic)
    assert_allclose(chi2.pvalue, stats.chi2.sf(statistic, 2))
    assert_allclose(res.f_test(picked).statistic, statistic / 2)
    terms = res.wald_test_terms(scalar=True).table
    assert_allclose(terms.loc["C(g)", "statistic"], statistic / (2 if res.use_t else 1))
    assert set(terms.index) >= {"x", "z", "C(g)"}


def test_compare_is_the_wald_test_of_what_the_smaller_model_lacks():
    data = frame()
    large, small = (rrmstats.ols(f, data, 0.1).fit() for f in ("y ~ x + z + C(g)", "y ~ x + C(g)"))
    found = large.compare(small)
    assert_allclose(found.statistic, large.tvalues["z"] ** 2)
    assert_allclose(found.pvalue, large.pvalues["z"])
    other = rrmstats.ols("y ~ I(x**2)", data, 0.1).fit()
    for wrong in (other, large):
        with pytest.raises(ValueError, match="smaller, nested model"):
            large.compare(wrong)
    with pytest.raises(ValueError, match="smaller, nested model"):
        small.compare(large)
    with pytest.raises(ValueError, match="120 and 60 rows"):
        large.compare(rrmstats.ols("y ~ x", data.iloc[:60], 0.1).fit())


@pytest.mark.slow
def test_compare_has_its_level():
    """At a nominal 10 %, and more often where the models differ."""
    rejected = []
    for seed in range(150):
        endog, exog = one_sided_outliers(np.random.default_rng(seed), 150, np.ones(4), share=0.1)
        endog -= exog[:, 3]
        exog = pd.DataFrame(exog, columns=["const", "a", "b", "c"])
        large = RRMOLS(endog, exog, 0.2).fit()
        for names in (["const", "a", "b"], ["const", "a", "c"]):
            small = RRMOLS(endog, exog[names], 0.2).fit(n_starts=20)
            rejected.append(float(large.compare(small).pvalue) < 0.1)
    null, alternative = np.reshape(rejected, (-1, 2)).mean(axis=0)
    assert 0.04 < null < 0.17
    assert alternative > 0.95


@pytest.mark.parametrize("cov_type", ["sandwich", "cluster", "bootstrap"])
@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_pickles_keep_the_inference(formula, efficiency, cov_type):
    kwds = {
        "sandwich": {},
        "cluster": {"groups": np.arange(120) // 4},
        "bootstrap": {"n_boot": 20},
    }[cov_type]
    res = formula(frame()).fit(efficiency=efficiency, cov_type=cov_type, cov_kwds=kwds)
    again = pickle.loads(pickle.dumps(res))
    assert_array_equal(again.bse, res.bse)
    assert_array_equal(again.conf_int(), res.conf_int())
    assert_array_equal(again.pvalues, res.pvalues)


@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_removed_data_leave_the_inference(weighted, efficiency):
    def labels(part):
        columns = [f"v{i}" for i in range(part.shape[1])] if part.ndim == 2 else None
        return pd.Series(part, name="y") if columns is None else pd.DataFrame(part, None, columns)

    counts = 1 + np.arange(weighted.n) % 3
    res = weighted.model(*map(labels, weighted.data), freq_weights=counts).fit(efficiency=efficiency)
    bse, interval = res.bse.copy(), res.conf_int()
    size = len(pickle.dumps(res))
    res.remove_data()
    assert len(pickle.dumps(res)) < size
    assert_array_equal(res.bse, bse)
    assert_array_equal(res.conf_int(), interval)
    text = str(res.summary())
    assert "v0" in text
    assert "Smallest weights" not in text
    assert res._results.weights is None


def test_summaries_name_the_standard_errors():
    model = FORMULAS["ols"](frame())
    groups = {"groups": np.arange(120) // 4}
    for kwargs, text in (
        ({}, "Standard errors: sandwich; the weights are estimated"),
        ({"cov_type": "cluster", "cov_kwds": groups}, "clustered by groups"),
        (
            {"cov_type": "bootstrap", "cov_kwds": {"n_boot": 20}},
            "pairs bootstrap, 20 samples, BCa intervals",
        ),
        (
            {
                "cov_type": "bootstrap",
                "cov_kwds": {"n_boot": 20, "strata": frame().g, "interval": "percentile"},
            },
            "stratified bootstrap, 20 samples, percentile intervals",
        ),
    ):
        res = model.fit(**kwargs)
        summary = str(res.summary())
        assert text in summary
        line = next(line for line in summary.splitlines() if line.startswith("x "))
        assert f"{res.params['x']:.4f}" in line
        for value in (res.bse["x"], *res.conf_int().loc["x"]):
            assert f"{value:.3f}" in line


def covered(low, high, truth):
    return (low <= truth) & (truth <= high)


@pytest.mark.parametrize(
    ("eps_bar", "share", "efficiency"),
    [(0.1, 0.0, None), (0.2, 0.1, None), (0.2, 0.1, 0.95), (0.4, 0.2, 0.95)],
)
def test_intervals_cover_and_those_of_fixed_weights_do_not(eps_bar, share, efficiency):
    found, naive = [], []
    for seed in range(150):
        endog, exog = one_sided_outliers(
            np.random.default_rng(seed), 200, np.ones(4), share=share, shift=10.0
        )
        res = RRMOLS(endog, exog, eps_bar).fit(efficiency=efficiency)
        found.append(covered(*res.conf_int()[1:].T, 1.0))
        fixed = sm.WLS(endog, exog, weights=res.weights).fit()
        naive.append(covered(*fixed.conf_int()[1:].T, 1.0))
    # 450 intervals: 0.95 is known to 0.01.
    assert 0.92 <= np.mean(found) <= 0.98
    if efficiency is None:
        assert np.mean(naive) < 0.8


def test_intervals_of_the_logit_cover():
    found = []
    for seed in range(100):
        endog, exog = logistic_labels(np.random.default_rng(seed), 500, (0.0, 1.0, -0.5))
        res = RRMLogit(endog, exog, 0.1).fit()
        found.append(covered(*res.conf_int()[1:].T, [1.0, -0.5]))
    assert 0.91 <= np.mean(found) <= 0.99


def test_intervals_of_mean_and_covariance_cover():
    found = []
    for seed in range(100):
        data = correlated_points(np.random.default_rng(seed), 300, share=0.0)
        res = RRMCov(data, 0.2).fit()
        found.append(covered(*res.conf_int().T, [0, 0, 1, 0.8, 1]))
    assert 0.91 <= np.mean(found) <= 0.98
