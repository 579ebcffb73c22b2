"""The bootstrap: its samples, its processes and its standard errors."""

from functools import partial
from inspect import signature

import numpy as np
import pytest
from inference_cases import WEIGHTED, bootstrapped, regression
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from replication.samples import logistic_labels
from rrmstats import RRMNLS, RRMOLS, RRMPCA, RRMLogit, optional
from rrmstats.models.bootstrap import draw_counts, refitted_params, separate_params


@pytest.mark.slow
def test_the_bootstrap_repeats():
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    default, one = bootstrapped(model), bootstrapped(model, rng=1)
    assert_array_equal(bootstrapped(model).bootstrap.replicates, default.bootstrap.replicates)
    assert_array_equal(bootstrapped(model, rng=1).conf_int(), one.conf_int())
    assert (default.bse != one.bse).all()


@pytest.mark.slow
def test_the_bootstrap_in_two_processes_and_batches(monkeypatch, capsys):
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    whole = bootstrapped(model)
    monkeypatch.setattr("rrmstats.models.bootstrap.BLOCK_ENTRIES", 15 * 60)
    monkeypatch.setattr("rrmstats.optional.BAR_DELAY", 0.0)
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


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2])
def test_the_bootstrap_agrees_with_the_sandwich(weighted, steps):
    model, data = WEIGHTED[weighted.name](np.random.default_rng(5))
    if weighted.name == "logit":  # whose errors settle at larger samples
        data = logistic_labels(np.random.default_rng(5), 1000, (0.2, 1.0, -0.5))
    fit = partial(model(*data).fit, steps=steps)
    # of two steps the bootstrap sees the choice of the explanation as well
    tolerance = 0.25 if weighted.name == "logit" and steps == 1 else 0.6
    n_boot = 200 if tolerance < 0.5 else 40
    boot = fit(cov_type="bootstrap", cov_kwds={"n_boot": n_boot}).bse
    assert_allclose(np.log(boot / fit().bse), 0, atol=tolerance)


@pytest.mark.filterwarnings("ignore:The fit changes with eps_bar")
@pytest.mark.parametrize("steps", [1, 2])
def test_replicates_are_fits_to_the_samples(weighted, steps):
    """Each is what the model finds on rows counted as often as they were drawn."""
    kind, start = weighted.model, {}
    if weighted.name == "pca":  # takes no start, so that other samples have other minima
        kind = partial(RRMPCA, n_components=2, eps_bar=0.0)
    model, n = kind(*weighted.data), weighted.n
    res = model.fit(steps=steps, cov_type="bootstrap", cov_kwds={"n_boot": 6, "rng": 3})
    found = res.bootstrap.replicates
    counts = draw_counts(n, 6, np.random.default_rng(3))
    first = res if steps == 1 else res.first_step
    if weighted.name != "pca":
        start = {"start_params": start_of(first)}
    for count, params in zip(counts, found, strict=True):
        refit = kind(*weighted.data, freq_weights=count)
        again = refit.fit(n_starts=0, steps=steps, **start)
        assert_allclose(params, again.params, rtol=1e-4, atol=1e-4 * np.abs(found).max())
    assert_allclose(res.bse, found.std(axis=0, ddof=1), rtol=1e-10)
    assert_allclose(res.cov_params(), np.cov(found.T), rtol=1e-10)


@pytest.mark.slow
def test_samples_fitted_together_have_the_errors_of_samples_fitted_alone():
    """Those of a cluster of bad rows, whose explanation some samples change."""
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    estimate = model.fit()._estimate
    assert estimate.resamples
    counts = draw_counts(60, 80, np.random.default_rng(0))
    together, alone = refitted_params(estimate, counts), separate_params(estimate, counts)
    error = alone.std(axis=0)
    assert np.median(np.abs(together - alone) / error) < 0.01
    assert_allclose(together.std(axis=0), error, rtol=0.1)


def test_samples_of_a_curve_are_fitted_alone():
    """Each has a tangent of its own."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 2.0, 40)
    y = np.exp(-x) + 0.02 * rng.standard_normal(40)
    y[:4] += 1
    res = RRMNLS(lambda x, a, b: a * np.exp(-b * x), x, y, p0=(1.0, 1.0), eps_bar=0.2).fit()
    assert not res._estimate.resamples


def start_of(first):
    """Return what a descent that starts at a fit is to be given."""
    return first.raw_params if isinstance(first.model, RRMLogit) else first.params
