"""What a command says of the data besides the fit."""

import json

import pandas as pd
import pytest

import rrmstats
from rrmstats.cli.formulas import Formula
from rrmstats.cli.model import warn_of_groups

MISSING, REFUSED = "missing values", "values that a function of the formula cannot take"


@pytest.mark.parametrize(
    ("formula", "left_out", "reason"),
    [
        ("y ~ x", lambda d: d["x"].isna(), MISSING),
        ("y ~ log(x)", lambda d: ~(d["x"] > 0), f"{MISSING} or {REFUSED}"),
        ("y ~ log(Q('a b'))", lambda d: ~(d["a b"] > 0), REFUSED),
    ],
)
def test_rows_that_are_left_out(formula, left_out, reason, rows, run):
    done = run("fit", formula, "rows.csv", "--eps-bar", "0.1")
    expected = f"{left_out(rows).sum()} of 60 rows were left out: {reason}"
    assert done.status == 0
    assert done.err.splitlines()[-1] == f"rrmstats: note: {expected}"


def test_a_missing_exposure_is_a_missing_value(rows, run):
    rows.loc[20:22, "time"] = None
    rows.to_csv("rows.csv", index=False)
    argv = ("count ~ y", "rows.csv", "--eps-bar", "0.1", "--model", "poisson")
    done = run("fit", *argv, "--exposure", "time")
    assert done.err == f"rrmstats: note: 3 of 60 rows were left out: {MISSING}\n"


@pytest.mark.slow
def test_a_path_says_which_rows_are_left_out(rows, run):
    done = run("path", "y ~ x", "rows.csv")
    assert f"rrmstats: note: 2 of 60 rows were left out: {MISSING}\n" in done.err


def spoiled(rows, bad):
    """Write rows whose first numbers of `time` are words, and return their name."""
    values = rows["time"].round(1).astype(str)
    values[:bad] = ["n/a?", *["none"] * (bad - 1)]
    rows.assign(time=values).to_csv("bad.csv", index=False)
    return "bad.csv"


@pytest.mark.parametrize("bad", [1, 12])
def test_numbers_with_a_few_words_among_them(bad, rows, run):
    argv = ("fit", "y ~ time", spoiled(rows, bad), "--eps-bar", "0.1", "--format", "json")
    done = run(*argv)
    line = (
        "'time' is taken for groups, not numbers: 'n/a?' in row 0, counted from 0, is no number; "
        "fix it, or write C(time) for groups"
    )
    assert f"rrmstats: warning: {line}\n" in done.err
    assert line in json.loads(done.out)["warnings"]


@pytest.mark.parametrize(("formula", "bad"), [("y ~ C(time)", 1), ("y ~ time", 13)])
def test_groups_are_not_warned_of(formula, bad, rows, run):
    assert "groups" not in run("fit", formula, spoiled(rows, bad), "--eps-bar", "0.1").err


def test_missing_cells_are_no_words(recwarn):
    frame = pd.DataFrame({"x": ["a", "b", None, None], "z": [1.0, None, 2.0, 3.0]})
    warn_of_groups(frame, Formula("z ~ x", frame))
    assert not recwarn


@pytest.mark.parametrize(
    ("formula", "warned"), [("y ~ day", True), ("y ~ C(day)", False), ("y ~ day.dt.day", False)]
)
def test_dates_are_taken_for_groups(formula, warned, rows, run):
    rows.assign(day=pd.date_range("2024-01-01", periods=len(rows))).to_parquet("days.parquet")
    done = run("fit", formula, "days.parquet", "--eps-bar", "0")
    line = (
        "'day' is taken for groups, not numbers: it has 60 different values in 60 rows; use "
        "numbers, or write C(day) for groups"
    )
    assert (f"rrmstats: warning: {line}\n" in done.err) is warned


def test_a_column_is_warned_of_once(rows, run):
    values = rows["time"].astype(str)
    values[0] = "none"
    rows.assign(time=values).to_csv("bad.csv", index=False)
    done = run("fit", "y ~ time", "bad.csv", "--eps-bar", "0")
    assert done.err.count("is taken for groups") == 1


def test_few_groups_are_not_warned_of(recwarn):
    frame = pd.DataFrame({"x": ["a", "a", "b", "b"], "z": [1, 2, 3, 4]})
    warn_of_groups(frame, Formula("z ~ x", frame))
    assert not recwarn


def test_decimal_commas():
    frame = pd.DataFrame({"x": ["1", "0,5", "2,5"], "z": [1, 2, 3]})
    with pytest.warns(UserWarning, match="'0,5' in row 1, .* give --decimal ,"):
        warn_of_groups(frame, Formula("z ~ x", frame))


def test_separator_and_decimals(stars, folder, run):
    stars.to_csv("semi.csv", sep=";", decimal=",", index=False)
    argv = ("fit", "log_light ~ log_te", "semi.csv", "--eps-bar", "0.2", "--format", "json")
    done = run(*argv, "--sep", ";", "--decimal", ",", "--weights", "rows.csv")
    fit = rrmstats.ols("log_light ~ log_te", stars, 0.2).fit()
    assert json.loads(done.out)["params"] == pytest.approx(fit.params.to_dict(), rel=1e-8)
    written = pd.read_csv(folder / "rows.csv", sep=";", decimal=",")
    pd.testing.assert_frame_equal(written[stars.columns], stars)
    assert written["weight"].tolist() == pytest.approx(fit.weights.tolist(), rel=1e-6, abs=1e-12)


def test_notes_name_the_steps(stars, run):
    text = run("fit", "log_light ~ log_te", "stars.csv", "--eps-bar", "0.2", "--steps", "1").out
    assert "A second step (steps=2) wins them back" in text
    assert "fit(" not in text
