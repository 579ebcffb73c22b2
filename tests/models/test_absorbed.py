"""Linear regression with absorbed effects: `feols` and `RRMOLS(absorb=)`."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rrmstats
from rrmstats import RRMOLS, feols

REFERENCE = Path(__file__).parents[1] / "reference"
sys.path.insert(0, str(REFERENCE))
sys.path.insert(0, str(REFERENCE.parents[1] / "benchmarks"))
from fixed_effects import panel  # noqa: E402
from pyfixest_feols import covariance, panels  # noqa: E402

PANELS = panels()
STORED = pd.read_csv(REFERENCE / "pyfixest_feols.csv")


def dirty_panel(seed=0, firms=200, years=8, leverage=0):
    """Return a panel with true slopes 1 and 0, a tenth of whose errors is ten times as large."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"firm": np.repeat(np.arange(firms), years)})
    frame["year"] = np.tile(np.arange(years), firms)
    n = len(frame)
    effect = rng.standard_normal(firms)[frame.firm] + 0.5 * frame.year
    frame["x"], frame["z"] = effect + rng.standard_normal(n), rng.standard_normal(n)
    frame["bad"] = rng.random(n) < 0.1
    error = rng.standard_normal(n) * np.where(frame.bad, 10, 1)
    frame["y"] = frame.x + effect + error
    if leverage:
        far = rng.random(n) < leverage
        frame["bad"] |= far
        frame.loc[far, "y"] = effect[far] + rng.standard_normal(far.sum())
        frame.loc[far, "x"] += 20
    return frame


@pytest.mark.parametrize(
    ("panel", "formula", "vcov"),
    STORED[["panel", "formula", "vcov"]].drop_duplicates().to_numpy().tolist(),
)
def test_least_squares_has_the_numbers_of_pyfixest(panel, formula, vcov):
    known = STORED[(STORED.panel == panel) & (STORED.formula == formula) & (STORED.vcov == vcov)]
    known = known.set_index("term")
    res = feols(formula, PANELS[panel], 0, vcov=covariance(vcov))
    assert_allclose(res.params[known.index], known.coef, rtol=1e-9)
    assert_allclose(res.bse[known.index], known.se, rtol=1e-9)


def test_effects_are_those_of_dummies():
    frame = PANELS["grunfeld"]
    res = feols("invest ~ value + capital | firm + year", frame, 0)
    formula = "invest ~ value + capital + C(firm) + C(year)"
    dummies = rrmstats.ols(formula, frame, 0).fit()
    assert_allclose(res.params, dummies.params[["value", "capital"]], rtol=1e-8)
    assert_allclose(res.scale, dummies.scale, rtol=1e-8)
    assert_allclose(res.fittedvalues, dummies.fittedvalues, rtol=1e-6)
    assert_allclose(res.rsquared, dummies.rsquared, rtol=1e-8)
    assert_allclose(res.llf, dummies.llf, rtol=1e-8)
    assert res.df_resid == dummies.df_resid
    effects = res.fixef()
    assert_allclose(np.diff(effects["year"])[0], dummies.params["C(year)[T.1936.0]"])
    some = frame.iloc[[3, 77]]
    assert_allclose(res.predict(some), dummies.predict(some), rtol=1e-6)
    assert_allclose(effects["firm"].iloc[0], dummies.params["Intercept"], rtol=1e-6)


def test_bad_rows_do_not_move_slopes():
    frame = dirty_panel()
    res = feols("y ~ x + z | firm + year", frame)
    good = feols("y ~ x + z | firm + year", frame[~frame.bad], 0)
    plain = feols("y ~ x + z | firm + year", frame, 0)
    assert (np.abs(res.params - good.params) < good.bse).all()
    assert (res.bse < 0.6 * plain.bse).all()
    assert abs(res.eps_hat - 0.1) < 0.03
    assert 0.9 < np.sqrt(res.scale) < 1.05


def test_leverage_rows_do_not_move_slopes():
    frame = dirty_panel(leverage=0.1)
    res = feols("y ~ x + z | firm + year", frame)
    good = feols("y ~ x + z | firm + year", frame[~frame.bad], 0)
    assert abs(feols("y ~ x + z | firm + year", frame, 0).params["x"] - 1) > 0.5
    assert (np.abs(res.params - good.params) < 1.5 * good.bse).all()


@pytest.mark.parametrize("seed", [3, 4])
def test_effects_of_their_own_tell_good_rows_from_far_ones(seed):
    """Less medians of firms and years, the rows far out explain the others as well."""
    frame = panel(np.random.default_rng(seed), units=200, leverage=0.1)
    res = feols("y ~ x | firm + year", frame, stability=False)
    good = feols("y ~ x | firm + year", frame[~frame.bad], 0, stability=False)
    assert abs(res.params["x"] - good.params["x"]) < good.bse["x"]


def test_firms_that_are_bad_as_a_whole():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"firm": np.repeat(np.arange(60), 10), "x": rng.standard_normal(600)})
    bad = (frame.firm < 6).to_numpy()
    frame["y"] = np.where(bad, -3, 1) * frame.x + rng.standard_normal(60)[frame.firm]
    frame["y"] += rng.standard_normal(600)
    res = feols("y ~ x | firm", frame, 0.3, groups="firm", stability=False)
    flagged = (res.prob_bad > 0.5).groupby(frame.firm).first()
    assert flagged[:6].sum() >= 5
    assert not flagged[6:].any()
    assert abs(res.params["x"] - 1) < 3 * res.bse["x"]


def test_arrays_have_the_same_fit_as_formulas():
    frame = dirty_panel(firms=60)
    res = feols("y ~ x + z | firm + year", frame, 0.3, vcov="hetero")
    model = RRMOLS(frame.y, frame[["x", "z"]], 0.3, absorb=frame[["firm", "year"]])
    assert_allclose(model.fit().params, res.params, rtol=1e-10)
    again = res.model.fit(stability=False)  # of the rows less their effects
    assert_allclose(again.params, res.params, rtol=1e-6)


def test_scale_and_place_of_the_data_play_no_part():
    frame = dirty_panel(firms=60)
    moved = frame.assign(y=1e3 * frame.y + 1e4 * frame.firm, x=frame.x / 10)
    one, other = (feols("y ~ x + z | firm", each, 0.3, stability=False) for each in (frame, moved))
    assert_allclose(other.params["x"], 1e4 * one.params["x"], rtol=1e-6)
    assert_allclose(other.bse["z"], 1e3 * one.bse["z"], rtol=1e-6)


def test_rows_alone_in_a_level_are_dropped_and_told():
    frame = dirty_panel(firms=40)
    lone = frame.iloc[:2].assign(firm=[1000, 1001])
    res = feols("y ~ x | firm", pd.concat([frame, lone], ignore_index=True), 0.2)
    assert res.nobs == len(frame)
    assert "2 rows alone in a level were dropped" in " ".join(str(res.summary()).split())
    assert_allclose(res.params, feols("y ~ x | firm", frame, 0.2).params)


def test_interacted_factors():
    frame = dirty_panel(firms=40)
    frame["half"] = frame.year // 4
    pairs = frame.assign(pair=frame.firm * 10 + frame.half)
    one = feols("y ~ x | firm^half", frame, 0, vcov="hetero")
    assert_allclose(one.params, feols("y ~ x | pair", pairs, 0).params)
    assert one.n_effects == 80


def test_summary_names_factors_and_the_share_explained_within():
    res = feols("y ~ x | firm + year", dirty_panel(firms=40), 0.2)
    text = str(res.summary())
    assert "firm (40), year (8)" in text
    assert f"{res.rsquared_within:.4f}" in text
    assert res.df_resid_inference == 39


def test_clusters_of_two_kinds_serve_all_models():
    frame = PANELS["grunfeld"]
    model = rrmstats.ols("invest ~ value", frame, 0)
    one, other, both, joint = (
        model.fit(cov_type="cluster", cov_kwds={"groups": groups}).cov_params().to_numpy()
        for groups in ("firm", "year", ["firm", "year"], np.arange(len(frame)))
    )
    factors = [len(frame.firm.unique()), len(frame.year.unique()), len(frame)]
    plain = [each * (g - 1) / g for each, g in zip((one, other, joint), factors, strict=True)]
    expected = (plain[0] + plain[1] - plain[2]) * factors[0] / (factors[0] - 1)
    assert_allclose(both, expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("formula", "change", "message"),
    [
        ("y ~ x | firm + nosuch", {}, "did you mean"),
        ("y ~ x | firm + one", {"one": 1}, "one has one level"),
        (
            "y ~ x | row + other",
            {"row": np.arange(320) // 2, "other": (np.arange(320) + 1) // 2 % 160},
            "leaves no degrees of freedom",
        ),
        ("y ~ x | row", {"row": np.arange(320)}, "each row is alone"),
        (
            "y ~ x + same | firm",
            {"same": np.repeat(np.arange(40), 8)},
            "same does not vary within",
        ),
        ("y ~ x", {}, "with one bar"),
        ("y ~ x | firm | z ~ w", {}, "with one bar"),
        ("y ~ x | firm", {"y": np.nan}, "no rows are left"),
    ],
)
def test_what_cannot_be_absorbed(formula, change, message):
    with pytest.raises(ValueError, match=message):
        feols(formula, dirty_panel(firms=40).assign(**change))


def test_what_is_refused():
    frame = dirty_panel(firms=40)
    with pytest.raises(ValueError, match="vcov must be"):
        feols("y ~ x | firm", frame, vcov="HC3")
    model = RRMOLS(frame.y, frame[["x"]], 0.2, absorb=frame.firm)
    with pytest.raises(ValueError, match="cov_type must be one of"):
        model.fit(cov_type="bootstrap")
    with pytest.raises(ValueError, match="missing labels"):
        RRMOLS(frame.y, frame[["x"]], 0.2, absorb=frame.firm.where(frame.firm > 2))
    with pytest.raises(NotImplementedError, match="predict"):
        model.fit(stability=False).get_prediction()
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(NotImplementedError, match="all rows in memory"):
        feols("y ~ x | firm", dask.from_pandas(frame, npartitions=2))


def test_rows_far_out_may_be_bad_where_none_of_a_sample_is():
    """Explanations of many rows are chosen on 5,000 of them."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, bad = rng.standard_normal(12_000), rng.random(12_000) < 0.1
        x[:12] *= 4 / np.abs(x[:12])
        y = x + rng.standard_normal(12_000) * np.where(bad, 10, 1)
        y[:3] = -30 * np.sign(x[:3])
        res = RRMOLS(y, x[:, None], 0.3).fit(stability=False)
        assert res.prob_bad[:3].min() > 0.99


def test_summaries_survive_without_data():
    res, again = (feols("y ~ x | firm", panel(np.random.default_rng(4), 30, 6)) for _ in range(2))
    res.remove_data()
    assert f"{again.rsquared_within:.4f}" in res.summary().as_text()
