"""The path of a model: its grid, its options and its warnings."""

import numpy as np
import pytest
from inference_cases import regression
from model_table import MODELS, VARIABLES, frame
from numpy.testing import assert_allclose, assert_array_equal
from statsmodels.tools.sm_exceptions import ConvergenceWarning

import rrmstats
from rrmstats import RRMOLS, RRMPCA
from rrmstats.models.base import check_grid, default_grid


def small(n=40):
    return RRMOLS(*(part[:n] for part in regression(np.random.default_rng(0))), 0.2)


def test_the_default_grid():
    assert_allclose(default_grid(0.49), np.arange(25) / 50, atol=1e-15)
    assert_allclose(default_grid(0.12), np.arange(7) / 50, atol=1e-15)
    assert_array_equal(default_grid(0.0), [0.0])


def test_the_default_grid_ends_at_the_largest_bound():
    data = frame().iloc[8:14]
    path = rrmstats.ols("y ~ x + z + x:z", data, eps_bar=0.1).path(steps=1)
    assert_allclose(path.eps_bars[-1], 0.16)  # the last before (6 - 4) / (2 * 6)


def test_a_given_grid_that_leaves_too_few_observations_is_refused():
    data = frame().iloc[8:14]
    model = rrmstats.ols("y ~ x + z + x:z", data, eps_bar=0.1)
    with pytest.raises(ValueError, match=r"eps_bar=0\.5 leaves .* for 4 parameters"):
        model.path([0.1, 0.5], steps=1)


def test_grids_are_sorted_and_have_no_value_twice():
    assert_array_equal(check_grid([0.3, 0.1, 0.3]), [0.1, 0.3])
    assert_array_equal(check_grid(0.2), [0.2])


@pytest.mark.parametrize(
    ("grid", "message"),
    [([], "must be a list"), ([[0.1, 0.2]], "must be a list"), ([0.1, 1.0], "got 1")],
)
def test_grids_that_are_none(grid, message):
    with pytest.raises(ValueError, match=message):
        small().path(grid, steps=1)


def test_a_grid_of_words():
    with pytest.raises(TypeError, match="must be a number"):
        small().path("auto", steps=1)


def test_steps_must_be_one_or_two():
    with pytest.raises(ValueError, match=r"steps must be 2, the default, or 1, .* got 3"):
        small().path([0.1], steps=3)


def test_the_classical_fit_of_labels_has_no_penalty():
    model = MODELS["logit"].array(frame(), eps_bar=0.2)
    path = model.path([0.0, 0.1], steps=1)
    assert_allclose(path.at(0.0).params, MODELS["logit"].classical(frame()), rtol=1e-8)
    assert path.at(0.0).model.alpha == 0
    assert path.at(0.1).model.alpha == 1e-5


def test_a_fraction_of_the_variance_is_one_number_of_components():
    model = RRMPCA(frame()[VARIABLES], 0.9, eps_bar=0.2)
    expected = len(model.fit(steps=1).params)
    path = model.path([0.0, 0.2, 0.4], steps=1)
    assert [len(each.params) for each in path.results] == [expected] * 3
    assert_allclose(path.at(0.2).params, model.fit(steps=1).params, rtol=1e-7)
    assert model.n_components == 0.9


def test_kinds_of_standard_errors_reach_the_results():
    groups = np.arange(40) // 4
    path = small().path(
        [0.1, 0.2], cov_type="cluster", cov_kwds={"groups": groups}, use_t=False, steps=1
    )
    fit = small().fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=False, steps=1)
    assert_allclose(path.at(0.2).bse, fit.bse, rtol=1e-6)
    assert_allclose(path.at(0.2).conf_int(), fit.conf_int(), rtol=1e-6)
    with pytest.raises(ValueError, match="cov_type must be one of"):
        small().path([0.1], cov_type="HC4", steps=1)


def test_the_bootstrap_runs_at_each_bound():
    path = small().path([0.1, 0.2], cov_type="bootstrap", cov_kwds={"n_boot": 20}, steps=1)
    fit = small().fit(cov_type="bootstrap", cov_kwds={"n_boot": 20}, steps=1)
    assert_allclose(path.at(0.2).bse, fit.bse, rtol=1e-5)
    assert len(path.jumps) <= 1


def test_warnings_are_given_once_with_the_bounds():
    with pytest.warns(ConvergenceWarning) as caught:
        small().path([0.0, 0.1, 0.2], maxiter=0, steps=1)
    assert len(caught) == 1
    assert str(caught[0].message).startswith("at eps_bar = 0.1, 0.2: the first step did not")
    assert caught[0].filename == __file__


def test_a_progress_bar_appears_only_where_it_takes_long(monkeypatch, capsys):
    small().path([0.1, 0.2], progress=True, steps=1)
    assert "path" not in capsys.readouterr().err
    monkeypatch.setattr("rrmstats.optional.BAR_DELAY", 0.0)
    small().path([0.1, 0.2], progress=True, steps=1)
    assert "path: 100%" in capsys.readouterr().err
