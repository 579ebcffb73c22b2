"""Rows that are good or bad by whole groups: densities, equations and influence functions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_t, norm, poisson

from rrmstats import RRMOLS, RRMCov, RRMLogit, RRMPoisson
from rrmstats.core.explanations import Bad, Good
from rrmstats.laws.explain import fits_of, rooted
from rrmstats.laws.families import Binomial, Link, MeanFunction, Poisson
from rrmstats.laws.gaussian import KINDS, Kind, Rows, em_step, seen, started
from rrmstats.laws.gaussian_choice import converged
from rrmstats.laws.gaussian_equations import Equations, polished
from rrmstats.laws.responses import OftenFlipped, WideCounts, laws_of_family
from rrmstats.laws.rows import PredictorRows, Responses
from rrmstats.laws.together import Together

EPS_BAR = 0.3
GROUP = np.random.default_rng(0).permutation(np.repeat(np.arange(24), [3, 9] * 12))
BAD = GROUP < 4


def regression(shift=1.2):
    rng = np.random.default_rng(1)
    exog = np.c_[np.ones(len(GROUP)), rng.standard_normal((len(GROUP), 2))]
    endog = exog.sum(axis=1) + rng.standard_normal(len(GROUP))
    endog[BAD] += shift - 1.5 * exog[BAD, 1]
    return endog, exog


def gaussian_rows():
    endog, exog = regression()
    counts = np.random.default_rng(2).integers(1, 3, len(GROUP)).astype(float)
    return Rows(endog[:, None], exog, counts, groups=GROUP)


def mixture(rows, kind):
    start = started(rows, [(np.ones((3, 1)), np.eye(1))], [kind], EPS_BAR)
    if kind.good is Good.HEAVY_TAILS:
        start = replace(start, df=np.full(1, 5.0))
    return em_step(rows, start, EPS_BAR)


def test_sums_over_groups_count_rows_as_often_as_they_count():
    together = Together(np.array([1.0, 2.0, 0.0, 3.0]), np.array([0, 0, 1, 2]))
    assert_allclose(together.sums(np.array([1.0, 2.0, np.inf, 4.0])), [5, 5, 0, 12])
    assert_allclose(together.sizes, [3, 3, 1, 3])
    assert_allclose(together.decisions, [1 / 3, 2 / 3, 0, 1])
    alone = Together(np.array([1.0, 2.0]), None)
    assert_allclose(alone.sums(np.array([3.0, 4.0])), [3, 4])
    assert alone.share_variance(0.5) == pytest.approx(0.25 * 3 / 9)


@pytest.mark.parametrize("bad", [Bad.CLUSTER, Bad.WIDE])
def test_the_density_of_a_group_is_that_of_all_its_rows(bad):
    rows = gaussian_rows()
    mixed = mixture(rows, Kind(Good.PLAIN, bad))
    view = seen(rows, mixed)
    (good, *parts), log_density = view.probabilities, view.log_density
    resid = (rows.data - rows.fitted(mixed.coef)[0])[:, 0]
    sd = np.sqrt(mixed.scatter[0, 0, 0])
    share, part = mixed.share[0, :, 0].sum(), 0 if bad is Bad.WIDE else 1
    for g in (0, 5, 11):
        some = np.repeat(resid[GROUP == g], rows.counts[GROUP == g].astype(int))
        density = np.exp(norm.logpdf(some, 0, sd).sum()) * (1 - share)
        if bad is Bad.CLUSTER:
            center, size = mixed.center[0, part, 0], mixed.size[0, part]
            other = np.exp(norm.logpdf(some, center, sd * np.sqrt(size)).sum()) * share
        else:
            shape = mixed.size[0, part] * sd**2 * np.eye(len(some))
            other = multivariate_t.pdf(some, np.zeros(len(some)), shape, df=1) * share
        assert_allclose(log_density[0, GROUP == g], np.log(density + other))
        assert_allclose(good[0, GROUP == g], density / (density + other))
        assert_allclose((parts[0] + parts[1])[0, GROUP == g], other / (density + other), rtol=1e-6)
    assert_allclose(
        em_step(rows, mixed, EPS_BAR).log_likelihood, log_density @ rows.together.decisions
    )


# What noise grows with moves with the fit, of which its equations take no account.
STILL = [
    kind for kind in KINDS if kind.bad is not Bad.NONE and kind.good is not Good.GROWING_NOISE
]


@pytest.mark.parametrize("kind", STILL, ids=lambda kind: f"{kind.good.value}-{kind.bad.value}")
def test_derivatives_of_the_equations_are_those_of_their_values(kind):
    rows = gaussian_rows()
    mixed, _ = polished(rows, converged(rows, mixture(rows, kind), EPS_BAR), EPS_BAR)
    equations = Equations(rows, mixed, EPS_BAR)
    assert np.abs(equations.value).max() < 1e-4
    assert (np.minimum(equations.good, 1 - equations.good) > 1e-3).any()
    h, found = 1e-5, equations.jacobian
    for j in range(len(equations.value)):
        step = h * np.eye(len(equations.value))[j]
        up, down = (
            Equations(rows, equations.moved(sign * step[None]), EPS_BAR, equations).value
            for sign in (1, -1)
        )
        size = np.abs(found).max()
        assert_allclose((up - down) / (2 * h), found[:, j], rtol=2e-3, atol=1e-4 * size)


def test_em_raises_the_likelihood_of_groups():
    rows = gaussian_rows()
    for kind in (Kind(Good.PLAIN, Bad.WIDE), Kind(Good.PLAIN, Bad.OTHER_LINE)):
        mixed, values = mixture(rows, kind), []
        for _ in range(12):
            mixed = em_step(rows, mixed, EPS_BAR)
            values.append(float(mixed.log_likelihood[0]))
        # The scatter divides by degrees of freedom, which is not quite its likeliest value.
        assert np.diff(values).min() > -1e-2
        assert values[-1] > values[0]


def count_rows(labels=False):
    rng = np.random.default_rng(3)
    exog = np.c_[np.ones(len(GROUP)), rng.standard_normal(len(GROUP))]
    eta = exog @ [0.7, 0.6] * (3.0 if labels else 1.0)
    y = rng.random(len(GROUP)) < 1 / (1 + np.exp(-eta)) if labels else rng.poisson(np.exp(eta))
    y = np.where(BAD, 1 - y if labels else rng.poisson(6.0, len(GROUP)), y).astype(float)
    ones, zeros = np.ones(len(y)), np.zeros(len(y))
    seen = Responses(y, ones, zeros)
    return PredictorRows(ones, float(len(y)), seen, (exog,), (zeros,), GROUP)


def predictor_fit(labels):
    rows, family = count_rows(labels), Binomial() if labels else Poisson()
    link = Link.logit() if labels else Link.log()
    mean = MeanFunction.between(link, *family.mean_bounds(rows.seen.endog))
    laws = laws_of_family(family, mean, rows)
    bad = laws.bad[0]
    assert isinstance(bad.laws[0], OftenFlipped if labels else WideCounts)
    return rows, fits_of(rows, laws.mixture(rows, EPS_BAR, bad), [np.zeros(2)])[0]


@pytest.mark.parametrize("labels", [False, True], ids=["counts", "labels"])
def test_the_stack_of_groups_has_the_derivatives_of_its_equations(labels):
    _, fit = predictor_fit(labels)
    found, h = fit.stack.slopes, 1e-5
    inside = np.flatnonzero(fit.params < fit.bounds[1])
    assert len(inside) >= 3
    for j in inside:
        step = h * np.eye(len(fit.params))[j]
        up, down = (fit.moved(sign * step).stack.sums for sign in (1, -1))
        size = np.abs(found).max()
        assert_allclose((up - down) / (2 * h), found[:, j], rtol=1e-3, atol=1e-5 * size)


def test_the_likelihood_of_counts_is_that_of_whole_groups():
    rows, fit = predictor_fit(False)
    mu = np.exp(rows.designs[0] @ fit.theta)
    scale, share = fit.others[1], 1 / (1 + np.exp(-fit.others[0]))
    total = 0.0
    for g in range(24):
        y, m = rows.seen.endog[GROUP == g], mu[GROUP == g]
        wide = np.prod(scale / ((y + scale) * (y + scale + 1)))
        total += np.log((1 - share) * np.prod(poisson.pmf(y, m)) + share * wide)
    assert fit.log_likelihood == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("labels", [False, True], ids=["counts", "labels"])
def test_roots_of_the_equations_of_groups_are_found(labels):
    root, done = rooted(predictor_fit(labels)[1])
    assert done
    now = root.stack
    assert np.abs(now.sums[:-1][now.free]).max() < 1e-6
    assert root.found.good[BAD].mean() < 0.3 < 0.9 < root.found.good[~BAD].mean()


def fitted(name, counts):
    endog, exog = regression(4.0)
    options = {"eps_bar": EPS_BAR, "groups": GROUP, "freq_weights": counts}
    if name == "regression":
        return RRMOLS(endog, exog, **options).fit(tol=1e-12)
    if name == "covariance":
        return RRMCov(np.c_[endog, exog[:, 1]], **options).fit(tol=1e-12)
    rows = count_rows(name == "labels")
    model = RRMLogit if name == "labels" else RRMPoisson
    return model(rows.seen.endog, rows.designs[0], **options).fit(tol=1e-12)


@pytest.mark.parametrize("name", ["regression", "covariance", "counts", "labels"])
def test_influence_functions_are_those_of_a_refit(name):
    """All rows of a group count a little more, or less.

    Where a group is unsure, that also changes its probability, as a second such group would not:
    then it is what single rows do that is compared.
    """
    n = len(GROUP)
    res = fitted(name, np.ones(n))
    assert res._design_effect == 1
    rows = res._estimate.row_estimate
    influence = rows.deletion_influence() if name == "regression" else rows.influence()
    unsure = np.minimum(res.prob_bad, 1 - res.prob_bad)
    scale = np.abs(influence).max(axis=0)
    groups = [int(GROUP[np.argmax(unsure)])] if name == "regression" else []
    groups += [int(g) for g in np.unique(GROUP[unsure < 1e-6])[[0, -1]]]
    for g in groups:
        step = np.where(g == GROUP, 1e-3, 0.0)
        ends = [fitted(name, 1 + sign * step).params for sign in (1, -1)]
        moved = n * (np.asarray(ends[0]) - np.asarray(ends[1])) / 2e-3
        told = influence[g == GROUP].sum(axis=0)
        # Those of counts and labels are corrected for leverage, as in HC3, and covariances have
        # degrees of freedom.
        bound = {"regression": 0.01, "covariance": 0.05}.get(name, 0.15)
        assert_allclose(told / scale, moved / scale, atol=bound)
