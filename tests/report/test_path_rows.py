import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import rrmstats
from rrmstats.report.paths import (
    hover_text,
    log_outside,
    log_ticks,
    numbers,
    row_data,
    shown_rows,
)


@pytest.fixture(scope="module")
def stars():
    return rrmstats.datasets.stars_cyg.load_pandas().data


def test_rows_have_all_variables_of_their_frame(stars):
    frame = stars.assign(name=[f"star {i}" for i in range(47)])
    path = rrmstats.ols("log_light ~ log_te", frame, eps_bar=0.2).path([0, 0.2], steps=1)
    row = shown_rows(path)[33]
    assert dict(row.values) == {
        "log_te": f"{frame['log_te'].iloc[33]:.4g}",
        "log_light": f"{frame['log_light'].iloc[33]:.4g}",
        "name": "star 33",
    }
    assert row.leaves == 0.2


def test_dropped_rows_do_not_shift_the_data(stars):
    frame = stars.assign(number=range(47))
    frame.loc[[3, 8], "log_te"] = np.nan
    path = rrmstats.ols("log_light ~ log_te", frame, eps_bar=0.2).path([0, 0.2], steps=1)
    rows = shown_rows(path)
    assert len(rows) == 45
    assert all(dict(row.values)["number"] == row.name for row in rows)


def test_arrays_have_the_names_of_the_model(stars):
    x, y = stars["log_te"].to_numpy(), stars["log_light"].to_numpy()
    model = rrmstats.RRMOLS(y, sm.add_constant(x), 0.2)
    data = row_data(model, 47)
    assert list(data) == ["y", "x1"]
    np.testing.assert_array_equal(data, np.c_[y, x])
    both = rrmstats.RRMCov(np.c_[x, y], 0.2)
    data = row_data(both, 47)
    assert list(data) == both.variables
    np.testing.assert_array_equal(data, np.c_[x, y])


def test_hovering_shows_a_limited_number_of_variables():
    data = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 20))).add_prefix("v")
    data["text"] = "long " * 50
    path = rrmstats.ols("v0 ~ v1", data, eps_bar=0.1).path([0, 0.1], steps=1)
    row = shown_rows(path)[0]
    assert len(row.values) == 21 and len(row.values[-1][1]) == 60
    lines = hover_text(row).split("<br>")
    assert len(lines) == 17 and lines[-1] == "and 6 more variables"


def test_the_rows_of_smallest_weight_are_kept_in_order(stars):
    path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2], steps=1)
    rows = shown_rows(path, 10)
    positions = [row.position for row in rows]
    assert positions == sorted(positions) and len(rows) == 10
    assert {10, 19, 29, 33} < set(positions)


def test_numbers_that_json_does_not_know_are_left_out():
    assert numbers([1.0, np.nan, -np.inf, 1 / 3]) == [1.0, None, None, 0.333333]


def test_the_axis_is_linear_within_the_band_and_logarithmic_outside():
    values = np.array([-200.0, -20.0, -2.0, 0.0, 1.0, 2.0, 20.0, 200.0])
    np.testing.assert_allclose(log_outside(values, 2.0), [-6, -4, -2, 0, 1, 2, 4, 6])
    ticks = log_ticks(values, 2.0)
    assert ticks["ticktext"] == ["-100", "-10", "-2", "0", "2", "10", "100"]
    assert ticks["tickvals"] == sorted(ticks["tickvals"])
