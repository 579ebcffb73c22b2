"""Gaussian rows, some of them bad: densities, EM, equations, and the explanation chosen."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, multivariate_t

from rrmstats.core.explanations import Bad, Good
from rrmstats.laws.gaussian import (
    CONTAMINATED,
    HEAVY,
    KINDS,
    NUMBER,
    OTHER_LINE,
    PLAIN,
    Kind,
    Mixtures,
    Rows,
    em_step,
    seen,
    started,
)
from rrmstats.laws.gaussian_choice import best_explanation
from rrmstats.laws.gaussian_equations import Equations, polished
from rrmstats.losses.gaussian_rows import ExplainedRows

EPS_BAR = 0.4
TWO_CLUSTERS = Kind(Good.PLAIN, Bad.TWO_CLUSTERS)


def regression(n=120, share=0.2, shift=6.0, seed=0, k=3):
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(n), rng.standard_normal((n, k - 1))]
    endog = exog @ np.ones(k) + rng.standard_normal(n)
    endog[: int(share * n)] += shift
    return Rows(endog[:, None], exog, np.ones(n))


def wide_regression():
    """Return a regression with wide rows beside its cluster."""
    rows = regression()
    rows.data[-12:, 0] += np.linspace(-60, 60, 12)
    return rows


def points(n=200, dim=3, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((n, dim)) @ np.triu(np.ones((dim, dim)))
    data[: int(share * n)] = 9 + 0.5 * rng.standard_normal((int(share * n), dim))
    return Rows(data, np.ones((n, 1)), np.ones(n))


def points_on_both_sides():
    rows = points()
    rows.data[:15] -= 20
    return rows


def truth(rows, share=0.2):
    kept = slice(int(share * len(rows.data)), None)
    return Rows(rows.data[kept], rows.exog[kept], rows.counts[kept]).classical


def one(rows, kind):
    mixture = started(rows, [truth(rows)], [kind], EPS_BAR)
    if kind.good is Good.HEAVY_TAILS:
        mixture = replace(mixture, df=np.array([4.0]))
    for _ in range(5):
        mixture = em_step(rows, mixture, EPS_BAR)
    return mixture


def log_density(rows, mixture):
    return seen(rows, mixture).log_density[0]


def test_the_density_is_that_of_a_mixture_of_known_distributions():
    rows = points()
    mixture = one(rows, Kind(Good.PLAIN, Bad.WIDE_AND_CLUSTER))
    mean, scatter = mixture.coef[0, 0], mixture.scatter[0]
    (wide, apart), (spread, size) = mixture.share[0, :, 0], mixture.size[0]
    expected = (
        (1 - wide - apart) * multivariate_normal(mean, scatter).pdf(rows.data)
        + wide * multivariate_t(mean, spread * scatter, df=1).pdf(rows.data)
        + apart * multivariate_normal(mean + mixture.center[0, 1], size * scatter).pdf(rows.data)
    )
    assert_allclose(log_density(rows, mixture), np.log(expected), rtol=1e-10)


def test_two_clusters_are_two_normal_distributions():
    rows = points_on_both_sides()
    mixture = one(rows, TWO_CLUSTERS)
    mean, scatter = mixture.coef[0, 0], mixture.scatter[0]
    shares = mixture.share[0, :, 0]
    assert_allclose(mixture.size[0, 0], mixture.size[0, 1])
    expected = (1 - sum(shares)) * multivariate_normal(mean, scatter).pdf(rows.data)
    for share, center in zip(shares, mixture.center[0], strict=True):
        cluster = multivariate_normal(mean + center, mixture.size[0, 0] * scatter)
        expected += share * cluster.pdf(rows.data)
    assert_allclose(log_density(rows, mixture), np.log(expected), rtol=1e-10)
    assert_allclose(sorted(shares), [15 / 200, 25 / 200], atol=1e-3)


def test_heavy_tails_are_those_of_students_distribution():
    rows = points(share=0.0)
    mixture = one(rows, HEAVY)
    law = multivariate_t(mixture.coef[0, 0], mixture.scatter[0], df=mixture.df[0])
    assert_allclose(log_density(rows, mixture), law.logpdf(rows.data), rtol=1e-10)


def test_noise_that_grows_has_its_own_size_at_each_row():
    rows = regression(share=0.0)
    mixture = one(rows, Kind(Good.GROWING_NOISE, Bad.NONE))
    fitted = rows.fitted(mixture.coef)[0, :, 0]
    feature = (fitted - mixture.unit[0, 0]) / mixture.unit[0, 1]
    size = np.sqrt(mixture.scatter[0, 0, 0]) * np.exp(mixture.growth[0, 0] * feature)
    z = (rows.data[:, 0] - fitted) / size
    expected = -0.5 * z**2 - np.log(size) - 0.5 * np.log(2 * np.pi)
    inside = np.abs(feature) < 4
    assert_allclose(log_density(rows, mixture)[inside], expected[inside], rtol=1e-10)


@pytest.mark.parametrize("kind", CONTAMINATED, ids=lambda kind: kind.bad.value)
def test_em_does_not_lower_the_likelihood(kind):
    """Bad rows do not count in the fit, so that steps may lose what rounding does not explain."""
    rows = regression()
    mixture = started(rows, [truth(rows)], [kind], EPS_BAR)
    last = -np.inf
    for _ in range(30):
        mixture = em_step(rows, mixture, EPS_BAR)
        assert mixture.log_likelihood[0] > last - 0.05
        last = mixture.log_likelihood[0]


@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if kind.good is not Good.SHORT_TAILS],
    ids=lambda kind: f"{kind.good.value}-{kind.bad.value}",
)
def test_a_polished_mixture_stands_still_under_em(kind):
    rows = regression()
    if kind.bad is Bad.TWO_CLUSTERS:  # of one cluster they would be two halves
        rows.data[:10] -= 14
    if kind == (Good.CHANGING_NOISE, Bad.WIDE_AND_CLUSTER):
        rows = wide_regression()
    mixture, sound = polished(rows, one(rows, kind), EPS_BAR)
    after = em_step(rows, mixture, EPS_BAR, by_noise=True)
    assert sound
    assert_allclose(after.coef, mixture.coef, atol=1e-5)
    assert_allclose(after.scatter, mixture.scatter, rtol=1e-4)
    assert_allclose(after.share, mixture.share, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (regression(), PLAIN),
        (regression(), Kind(Good.PLAIN, Bad.CLUSTER)),
        (regression(), OTHER_LINE),
        (regression(), HEAVY),
        (wide_regression(), Kind(Good.CHANGING_NOISE, Bad.WIDE_AND_CLUSTER)),
        (points(), Kind(Good.PLAIN, Bad.WIDE_AND_CLUSTER)),
        (points(), HEAVY),
        (points_on_both_sides(), TWO_CLUSTERS),
    ],
    ids=lambda value: f"{value.dim}" if isinstance(value, Rows) else str(value),
)
def test_influence_is_what_more_weight_of_a_row_does(rows, kind):
    mixture, sound = polished(rows, one(rows, kind), EPS_BAR)
    equations = Equations(rows, mixture, EPS_BAR)
    influence = equations.solved(equations.scores(), equations.jacobian)
    assert sound
    for i, by in ((70, 1e-3), (100, 1e-3)):
        counts = rows.counts + by * (np.arange(len(rows.data)) == i)
        frame = rows.whole._replace(total=counts.sum())
        heavier = replace(rows, counts=counts, frame=frame)
        moved, _ = polished(heavier, mixture, EPS_BAR)
        step = by * influence[i] / rows.total
        expected = equations.moved(step[None])
        for name in ("coef", "scatter", "share", "center", "line", "size", "df", "growth"):
            before, told, after = (getattr(m, name)[0] for m in (mixture, expected, moved))
            change = np.abs(step).max() * (1 + np.abs(before).max(initial=0.0))
            # Degrees of freedom of the scatter are taken from all rows alike: k / n of them.
            assert_allclose(told, after, atol=0.03 * change, err_msg=name)


def test_a_row_of_weight_two_is_the_row_twice():
    rows = regression(n=60)
    twice = np.repeat(np.arange(60), 1 + np.arange(60) % 2)
    repeated = Rows(rows.data[twice], rows.exog[twice], np.ones(len(twice)))
    weighted = replace_counts(rows, 1.0 + np.arange(60) % 2)
    found = [best_explanation(each, [truth(rows)], EPS_BAR)[1] for each in (weighted, repeated)]
    assert_allclose(found[0].coef, found[1].coef, rtol=1e-6)
    assert_allclose(found[0].scatter, found[1].scatter, rtol=1e-6)
    assert_allclose(found[0].good[0][twice], found[1].good[0], atol=1e-6)


def replace_counts(rows, counts):
    return Rows(rows.data, rows.exog, counts)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_shifted_rows_are_a_cluster(share):
    rows = regression(n=200, share=share, seed=1)
    explained, _, sound = best_explanation(rows, [truth(rows, share)], EPS_BAR)
    bad = int(share * 200)
    assert sound
    assert explained.chosen.bad is Bad.CLUSTER
    assert explained.chosen.prob_bad[:bad].min() > 0.5
    assert explained.chosen.prob_bad[bad:].mean() < 0.02


@pytest.mark.parametrize(
    ("noise", "name"),
    [
        (lambda rng, x: rng.uniform(-1.7, 1.7, len(x)), "short tails"),
        (lambda rng, x: rng.standard_t(2, len(x)), "heavy tails"),
        (lambda rng, x: rng.standard_normal(len(x)) * np.exp(x[:, 1] / 2), "growing noise"),
        (lambda rng, x: rng.standard_normal(len(x)) * (0.2 + abs(x[:, 2])), "changing noise"),
        (lambda rng, x: rng.standard_normal(len(x)), "none"),
    ],
    ids=["short", "heavy", "growing", "changing", "none"],
)
def test_clean_noise_of_any_kind_has_no_bad_rows(noise, name):
    rng = np.random.default_rng(4)
    exog = np.c_[np.ones(400), rng.standard_normal((400, 2))]
    endog = exog @ [1.0, 2.0, 0.0] + noise(rng, exog)
    rows = Rows(endog[:, None], exog, np.ones(400))
    explained = best_explanation(rows, [rows.classical], EPS_BAR)[0]
    assert explained.chosen.name == name
    assert explained.chosen.eps < 0.02


def test_rows_of_another_regression_are_told():
    rows = regression(n=200, share=0.0)
    rows.data[:50] = -(rows.exog[:50] @ np.ones((3, 1))) + rows.data[:50] * 0.1
    explained = best_explanation(rows, [truth(rows, 0.25)], EPS_BAR)[0]
    assert explained.chosen.bad is Bad.OTHER_LINE
    assert 0.2 < explained.chosen.eps < 0.35


def test_leverage_points_have_a_share_of_their_own():
    rows = regression(n=100, share=0.0)
    rows.exog[:30, 1:] += 10
    rows.data[:30] = -20 + 0.1 * rows.data[:30]
    rows = Rows(rows.data, rows.exog, rows.counts)
    explained, mixture, _ = best_explanation(rows, [truth(rows, 0.3)], EPS_BAR)
    assert mixture.far[0, :30].all()
    assert_allclose(explained.chosen.prob_bad[:30], 1, atol=1e-3)
    assert explained.chosen.prob_bad[30:].max() < 0.5


def test_many_rows_give_the_solution_of_all_of_them_from_that_of_some():
    rows = regression(n=3000)
    some = Rows(rows.data[::3], rows.exog[::3], rows.counts[::3])
    explained, mixture, _ = best_explanation(some, [truth(rows)], EPS_BAR)
    decided = Equations(some, mixture, EPS_BAR)
    start = ExplainedRows(
        *(rows.data, rows.exog, np.eye(rows.n_coef), rows.counts, None, None),
        *(mixture, decided, 3000.0, explained, False),
    )
    found = start.polished()
    before, after = (each.summed(lambda some: some.value) for each in (start, found))
    assert found.converged
    assert np.abs(before).max() > 1
    assert np.abs(after).max() < 1e-5
    assert_allclose(found.mixture.coef[0], truth(rows)[0], atol=0.05)


def test_parts_of_a_batch_do_not_see_each_other():
    rows = regression()
    alone = [one(rows, kind) for kind in CONTAMINATED]
    together = em_step(rows, Mixtures.join(alone), EPS_BAR)
    for i, mixture in enumerate(alone):
        after = em_step(rows, mixture, EPS_BAR)
        assert together.kind[i] == NUMBER[CONTAMINATED[i]]
        assert_allclose(together.coef[i], after.coef[0], rtol=1e-12)
        assert_allclose(together.log_likelihood[i], after.log_likelihood[0], rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_fits_of_wide_designs_by_conjugate_gradients(scale, monkeypatch):
    rng = np.random.default_rng(4)
    exog = np.c_[np.ones(300), rng.standard_normal((300, 59))]
    exog[:, 1] += scale * exog[:, 0]
    endog, weights = rng.standard_normal((300, 1)), rng.random((3, 300))
    weights[2, :100] = 0.0
    weights[1, 61:] = 1e-8  # too ill-conditioned for few steps: solved directly
    rows = Rows(endog, exog, np.ones(300))
    found = rows.coefficients(weights, endog)
    monkeypatch.setattr("rrmstats.laws.gaussian.WIDE", 100)
    exact = Rows(endog, exog, np.ones(300)).coefficients(weights, endog)
    assert_allclose(rows.fitted(found), rows.fitted(exact), rtol=0, atol=1e-6)
