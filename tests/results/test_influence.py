"""Leverage and influence of the rows of a regression: statsmodels' numbers, and deletions."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.stats.outliers_influence import OLSInfluence

import rrmstats
from replication.samples import one_sided_outliers
from rrmstats import RRMOLS

from .fits import DATA, DIRTY, FITS, N

FORMULA = "y ~ x1 + x2"
MEASURES = [
    *("resid_studentized", "resid_studentized_internal", "resid_studentized_external"),
    *("cooks_distance", "dffits", "dffits_internal", "dfbetas", "dfbeta"),
    *("hat_matrix_diag", "cov_ratio", "resid_press", "sigma2_not_obsi"),
]
COUNTS = 1 + np.arange(N) % 3
ROWS = np.repeat(np.arange(N), COUNTS)


@pytest.fixture
def least_squares():
    """Return statsmodels' measures and ours of the same least squares fit."""
    theirs = sm.OLS.from_formula(FORMULA, DATA).fit().get_influence()
    return theirs, rrmstats.ols(FORMULA, DATA, 0).fit(steps=1).get_influence()


@pytest.fixture
def repeated():
    """Return statsmodels' measures of rows that are repeated, and ours of rows with counts."""
    theirs = sm.OLS.from_formula(FORMULA, DATA.iloc[ROWS]).fit().get_influence()
    return theirs, rrmstats.ols(FORMULA, DATA, 0, freq_weights=COUNTS).fit(steps=1).get_influence()


@pytest.mark.parametrize("name", MEASURES)
def test_at_eps_bar_0_the_measures_are_those_of_statsmodels(least_squares, name):
    theirs, ours = (getattr(influence, name) for influence in least_squares)
    if isinstance(theirs, tuple):
        assert_allclose(ours[1], theirs[1], rtol=1e-8, atol=1e-12)
        theirs, ours = theirs[0], ours[0]
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", MEASURES)
def test_a_row_of_weight_two_has_the_measures_of_each_of_two_rows(repeated, name):
    theirs, ours = (getattr(influence, name) for influence in repeated)
    if isinstance(theirs, tuple):
        theirs, ours = theirs[0], ours[0]
    assert_allclose(np.asarray(ours)[ROWS], theirs, rtol=1e-8, atol=1e-10)


def test_summary_frame_has_the_columns_and_labels_of_statsmodels(least_squares):
    theirs, ours = (influence.summary_frame() for influence in least_squares)
    pd.testing.assert_frame_equal(ours[theirs.columns], theirs, rtol=1e-8, atol=1e-10)
    assert_allclose(ours.weight, 1 / N)


def test_rows_without_weight_have_no_leverage():
    res = FITS["ols"]()
    influence = res.get_influence()
    assert_allclose(influence.hat_matrix_diag.sum(), res.rank)
    assert (influence.hat_matrix_diag[:10] < 1e-8).all()
    assert (influence.cooks_distance[0][:10] < 1e-8).all()
    assert_allclose(influence.resid_studentized[:10], res.resid_pearson[:10], rtol=1e-6)
    assert np.isfinite(influence.summary_frame()).all(axis=None)


@pytest.mark.parametrize(("eps_bar", "steps"), [(0.1, 1), (0.2, 1), (0.2, 2)])
def test_deleting_a_row_moves_the_fit_by_dfbeta(eps_bar, steps):
    """To first order, with the curvature of Gaussian noise in place of that of the sample."""
    endog, exog = one_sided_outliers(np.random.default_rng(0), 400, np.ones(3), share=0.05)
    res = RRMOLS(endog, exog, eps_bar).fit(steps=steps)
    start = (res if steps == 1 else res.first_step).params
    found, rows = res.get_influence().dfbeta, np.arange(0, 400, 8 * steps**2)
    moved = []
    for row in rows:
        left = np.delete(np.arange(400), row)
        model = RRMOLS(endog[left], exog[left], eps_bar)
        again = model.fit(steps=steps, n_starts=0, start_params=start)
        moved.append(res.params - again.params)
    for expected, change in zip(found[rows].T, np.array(moved).T, strict=True):
        assert np.corrcoef(expected, change)[0, 1] > 0.97
        assert_allclose(expected @ change / (expected @ expected), 1, atol=0.15)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_row_moves_the_fit_and_the_weight_of_its_group(steps):
    rng = np.random.default_rng(0)
    group, exog = np.repeat(np.arange(40), 5), sm.add_constant(rng.standard_normal((200, 2)))
    endog = exog.sum(axis=1) + rng.standard_normal(200)
    endog[:15] -= 4 * exog[:15, 1]

    def fitted(counts):
        model = RRMOLS(endog, exog, 0.2, groups=group, freq_weights=counts)
        return model.fit(steps=steps, tol=1e-11)

    res = fitted(np.ones(200))
    for row in (0, 20, 57, 130):
        step = np.where(np.arange(200) == row, 1e-3, 0.0)
        moved = (fitted(1 + step).params - fitted(1 - step).params) / 2e-3
        assert_allclose(res.deletion_influence()[row] / 200, moved, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("eps_bar", [0, 0.2])
def test_influence_plot_of_statsmodels(eps_bar):
    res = rrmstats.ols(FORMULA, DIRTY, eps_bar).fit(steps=1)
    (points,) = sm.graphics.influence_plot(res).axes[0].collections
    influence = res.get_influence()
    assert_allclose(points.get_offsets()[:, 0], influence.hat_matrix_diag)
    assert_allclose(points.get_offsets()[:, 1], influence.resid_studentized_external)
    plt.close("all")


@pytest.mark.parametrize("eps_bar", [0, 0.2])
def test_leverage_plot_of_statsmodels(eps_bar):
    res = rrmstats.ols(FORMULA, DIRTY, eps_bar).fit(steps=1)
    (points,) = sm.graphics.plot_leverage_resid2(res).axes[0].lines
    assert_allclose(points.get_ydata(), res.get_influence().hat_matrix_diag)
    plt.close("all")


@pytest.mark.parametrize("eps_bar", [0, 0.2])
def test_statsmodels_own_class_works_on_the_results(eps_bar):
    """What it finds without refits: those that it makes choose their own eps_bar."""
    res = rrmstats.ols(FORMULA, DIRTY, eps_bar).fit(steps=1)
    theirs = OLSInfluence(res)
    reference = OLSInfluence(sm.OLS.from_formula(FORMULA, DIRTY).fit())
    assert_allclose(theirs.hat_matrix_diag, reference.hat_matrix_diag)
    for name in ("resid_studentized_internal", "resid_press", "cooks_distance", "dffits_internal"):
        found, expected = (np.hstack(getattr(of, name)) for of in (theirs, reference))
        if eps_bar == 0:
            assert_allclose(found, expected, rtol=1e-8, atol=1e-10, err_msg=name)
        assert np.isfinite(found).all(), name
