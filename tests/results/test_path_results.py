"""What a path tells: jumps, rows that leave, terms that change, and its summary."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from model_table import BAD, LABELS, MODELS, frame
from numpy.testing import assert_allclose

import rrmstats
from rrmstats.core.setting import Setting
from rrmstats.results.path_results import change_sentences


@pytest.fixture(scope="module")
def stars():
    data = rrmstats.datasets.stars_cyg.load_pandas().data
    return rrmstats.ols("log_light ~ log_te", data, eps_bar=0.2).path(steps=1)


@pytest.fixture(scope="module")
def components():
    return (
        MODELS["pca"].array(frame(), eps_bar=0.2).path([0.0, 0.04, 0.08, 0.1, 0.2, 0.4], steps=1)
    )


def clean():
    rng = np.random.default_rng(11)
    data = pd.DataFrame(rng.standard_normal((100, 2)), columns=["x", "z"])
    data["y"] = data.x + 0.5 * data.z + rng.standard_normal(100)
    return rrmstats.ols("y ~ x + z", data, eps_bar=0.2)


def table(estimates, errors, term="x"):
    estimates, errors = np.array(estimates, float), np.array(errors, float)
    return pd.DataFrame(
        {
            "eps_bar": np.arange(len(estimates)) / 10,
            "term": term,
            "estimate": estimates,
            "lower": estimates - 2 * errors,
            "upper": estimates + 2 * errors,
        }
    )


def test_bad_leverage_points_make_the_jump():
    data = rrmstats.datasets.hbk.load_pandas().data
    path = rrmstats.ols("y ~ x1 + x2 + x3", data).path([0, 0.04, 0.2, 0.3])
    jump = path.jumps.iloc[-1]
    assert (jump.eps_bar_from, jump.eps_bar_to) == (0.04, 0.2)
    assert "x3" in jump.terms and jump.pvalue < 0.001
    assert jump.rows == tuple(range(10)) and jump.rows_back == (10, 11, 12, 13)
    assert "0.04 to 0.2" in str(path.summary()) and "0.04 to 0.2" in path._repr_html_()


def test_rows_off_the_line_jump_in_the_second_step():
    path = MODELS["ols"].array(frame(), eps_bar=0.2).path(steps=1)
    assert_allclose(path.jumps[["eps_bar_from", "eps_bar_to"]], [[0.0, 0.02]])
    assert path.jumps.pvalue[0] < 1e-3
    assert "x" in path.jumps.terms[0]


def test_a_jump_names_the_rows_that_leave_and_those_that_come_back():
    path = MODELS["ols"].array(frame(), eps_bar=0.2).path([0.0, 0.2], steps=1)
    jump = path.jumps.iloc[0]
    before, after = path.weights[0.0] * 80, path.weights[0.2] * 80
    assert set(jump.rows) == set(path.weights.index[(before > 0.5) & (after < 0.1)])
    assert set(BAD) <= set(jump.rows)
    assert jump.rows_back == ()


def test_clean_data_do_not_jump():
    path = clean().path(steps=1)
    assert len(path.jumps) == 0
    assert list(path.jumps.columns)[:3] == ["eps_bar_from", "eps_bar_to", "pvalue"]
    assert "No jump" in str(path.summary())


def test_jumps_of_two_steps_are_those_of_one_and_where_first_steps_switch(stars):
    two, flags = stars.model.path().jumps, ["rows", "rows_back"]
    first = ~stars.jumps["eps_bar_to"].isin(two["eps_bar_to"])
    pd.testing.assert_frame_equal(
        two.drop(columns=flags),
        stars.jumps[~first].drop(columns=flags).reset_index(drop=True),
        rtol=1e-4,
    )
    assert stars.jumps["switched"][first].all()


def test_a_value_off_the_grid_is_refused_with_its_neighbors(stars):
    with pytest.raises(ValueError, match=r"eps_bar=0\.247 is not on .* 0\.22, 0\.24, 0\.26$"):
        stars.at(0.247)
    assert stars.at(0.1 + 0.2) is stars.at(0.3)


def test_signs_of_the_stars(stars):
    changes = "log_te changes sign from eps_bar = 0.06 on: negative before, positive after"
    assert changes in stars.signs
    assert any(s.startswith("log_te becomes significant from eps_bar = 0.1") for s in stars.signs)


def test_terms_lose_and_regain_significance():
    found = change_sentences(table([3, 3, 1, 1, 3, 3], np.ones(6)))
    assert found == [
        "x loses significance from eps_bar = 0.2 on",
        "x becomes significant from eps_bar = 0.4 on",
    ]


def test_flutter_makes_no_sentence():
    assert change_sentences(table([3, 3, 1, 3, 3, 3], np.ones(6))) == []


def test_a_term_that_is_never_significant_has_no_sign():
    assert change_sentences(table([-1, -1, 1, 1], np.full(4, 5.0))) == []
    assert change_sentences(table([-9, -9, 9, 9], np.ones(4))) == [
        "x changes sign from eps_bar = 0.2 on: negative before, positive after"
    ]


def test_terms_without_errors_are_passed_over():
    assert change_sentences(table([3, 3, 3, 3], [1, 1, np.nan, np.nan])) == []


def test_loadings_are_terms_with_aligned_signs(components):
    loadings = components.frame[components.frame.term.str.startswith("loading")]
    assert "loading[x, comp_1]" in set(loadings.term)
    by_value = [part.estimate.to_numpy().reshape(3, 2) for _, part in loadings.groupby("eps_bar")]
    for before, after in pairwise(by_value):
        assert ((before * after).sum(axis=0) >= 0).all()
    for eps_bar, found in zip(components.eps_bars, by_value, strict=True):
        res = components.at(eps_bar)
        assert_allclose(np.abs(found), np.abs(res.loadings))
        part = loadings[loadings.eps_bar == eps_bar]
        assert_allclose(part.std_err, np.ravel(res.loadings_bse))
        assert (part.lower <= part.estimate).all()
        assert (part.estimate <= part.upper).all()


def test_scale_is_that_of_regressions_alone(stars, components):
    assert_allclose(stars.frame.scale.iloc[-1], stars.results[-1].scale)
    assert components.frame.scale.isna().all()


def test_summary_and_displays(stars):
    text = str(stars.summary())
    for part in ("24 values, 0 to 0.46", f"{stars.results[-1].risk:.4g}"):
        assert part in text
    assert all(sentence in text for sentence in stars.signs)
    assert "24 values, 0 to 0.46" in stars._repr_html_()
    assert repr(stars) == (
        "<RRMPath of RRMOLS: log_light ~ log_te, 24 values of eps_bar from 0 to 0.46, steps=1; "
        "call summary()>"
    )
    assert len(stars) == 24


def test_a_choice_is_told():
    model = clean()
    path = model.path([0.0, 0.1], steps=1)
    chosen = model.with_eps_bar(0.3).chosen(Setting(eps_bar=0.0))
    assert path.choice == chosen
    text = " ".join(str(path.summary()).split())
    assert path.choice.reason in text
    assert f"Chosen eps_bar: {chosen.eps_bar:g}" in text


def test_results_are_made_once(stars):
    assert stars.results[3] is stars.at(stars.eps_bars[3])
    assert len(stars.results) == 24


def test_labels_of_the_table_of_leaving(stars):
    assert list(stars.leaves.columns) == ["below_half", "below_1pct"]
    relative = stars.weights * len(stars.weights)
    for label in stars.leaves.index:
        at = stars.leaves.below_half[label]
        late = relative.loc[label, relative.columns >= at] if at == at else relative.loc[label, []]
        assert (late < 0.5).all()
        earlier = relative.loc[label, relative.columns < at] if at == at else relative.loc[label]
        assert not len(earlier) or earlier.iloc[-1] >= 0.5
    assert LABELS[0] not in stars.leaves.index


def test_a_covariance_that_becomes_singular_has_estimates_without_intervals():
    data = np.random.default_rng(0).standard_normal((60, 3))
    data[12:, 2] = data[12:, 0] - data[12:, 1]
    path = rrmstats.RRMCov(data, 0.2).path([0.0, 0.1, 0.3], steps=1)
    assert path.at(0.3).singular
    table = path.frame.set_index("eps_bar")
    assert np.isfinite(table["estimate"]).all()
    assert np.isfinite(table.loc[0.1, "lower"]).all() and table.loc[0.3, "lower"].isna().all()
    assert "No jump" in path.summary().as_text()


@pytest.fixture(scope="module")
def two_steps():
    data = rrmstats.datasets.hbk.load_pandas().data
    fit = rrmstats.ols("y ~ x1 + x2 + x3", data).fit(
        cov_type="nonrobust", n_starts=50, use_t=False
    )
    return fit, fit.path([0.0, 0.05, 0.1, 0.2, 0.3])


def test_the_path_of_a_fit_has_its_steps_and_options(two_steps, stars):
    fit, path = two_steps
    assert path.steps == 2 and path.choice is fit.choice
    at = fit.model.with_eps_bar(0.2).fit(cov_type="nonrobust", n_starts=50, use_t=False)
    assert_allclose(path.at(0.2).params, at.params, rtol=1e-6)
    assert_allclose(path.at(0.2).bse, at.bse, rtol=1e-6)
    for found in path.results:
        assert (found.cov_type, found.use_t) == ("nonrobust", False)
        assert found._estimate.setting.n_starts == 50
    one = stars.at(0.2).path([0.1, 0.2])
    assert one.steps == 1
    assert_allclose(one.at(0.2).params, stars.at(0.2).params, rtol=1e-6)


def test_a_fit_without_data_has_no_path():
    results = clean().fit()
    results.remove_data()
    with pytest.raises(AttributeError, match="remove_data"):
        results.path([0.1])


def test_probabilities_to_be_bad_are_those_of_the_fits(two_steps, stars):
    path = two_steps[1]
    assert path.prob_bad.shape == (75, 5)
    for eps_bar in path.eps_bars:
        assert_allclose(path.prob_bad[eps_bar], path.at(eps_bar).prob_bad)
    assert path.flags.equals(path.prob_bad > 0.5)
    with pytest.raises(AttributeError, match="prob_bad needs a second step"):
        _ = stars.prob_bad


def test_explanations_along_the_path(two_steps, stars):
    path = two_steps[1]
    by_value = path.frame.drop_duplicates("eps_bar").set_index("eps_bar")
    assert by_value["explanation"].to_dict() == {
        eps_bar: path.at(eps_bar).explanation.name for eps_bar in path.eps_bars
    }
    assert by_value["explanation"][0.0] == "none" and by_value["explanation"][0.3] == "cluster"
    table = path.summary().tables[1]
    cells = [[cell.data for cell in row] for row in table]
    assert cells[0][1:] == ["explanation", "eps_hat", "n_kish", "flagged"]
    at = {row[0]: row[1:] for row in cells[1:]}
    assert at["0.3"] == ["cluster", "0.133", "65.0", "10"]
    assert stars.frame["explanation"].isna().all()
    assert [cell.data for cell in stars.summary().tables[1][0]][1] == "risk"


def test_the_summary_shows_every_change_of_explanation(two_steps):
    path = two_steps[0].model.path()
    names = path.frame.drop_duplicates("eps_bar").set_index("eps_bar")["explanation"]
    starts = names.index[(names != names.shift()).to_numpy()]
    shown = {row[0].data for row in path.summary().tables[1][1:]}
    assert {f"{eps_bar:g}" for eps_bar in starts} <= shown and len(starts) > 1


@pytest.mark.parametrize("name", ["cov", "pca", "logit", "poisson"])
def test_paths_of_other_models_have_probabilities(name):
    path = MODELS[name].array(frame(), eps_bar=0.2).path([0.0, 0.1, 0.2])
    assert_allclose(path.prob_bad[0.2], np.asarray(path.at(0.2).prob_bad))
    assert (path.prob_bad[0.0] == 0).all()
    assert path.flags.equals(path.prob_bad > 0.5)
    assert path.frame["explanation"].notna().all()
