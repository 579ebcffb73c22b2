"""A path of a model with groups tells of groups what others tell of rows."""

import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats.plotting.paths import leaving_groups, path_residuals, row_names

BAD = ["c", "k"]
GRID = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"firm": np.repeat(list("abcdefghijklmnop"), 15)})
    frame["x"] = rng.standard_normal(len(frame))
    frame["y"] = 1 + 2 * frame.x + rng.standard_normal(len(frame))
    bad = frame.firm.isin(BAD)
    frame.loc[bad, "y"] -= 5 * frame.x[bad]
    return frame.sample(frac=1, random_state=1)


@pytest.fixture(scope="module")
def path(data):
    return rrmstats.ols("y ~ x", data, eps_bar=0.25, groups="firm").path(GRID, steps=1)


def test_tables_are_of_groups(path):
    at = path.results[-1]
    for table, known in (
        (path.relative_weights, at.group_weights),
        (path.flags, at.outlier_groups()),
        (path.residuals, at.group_table(None)["distance"]),
    ):
        assert table.shape == (16, len(GRID))
        np.testing.assert_allclose(table.iloc[:, -1].astype(float), known[table.index], rtol=1e-12)
    np.testing.assert_allclose(path.weights.sum(), 1)
    assert (path.frame["n_flagged"] <= 16).all()
    assert path.frame["n_flagged"].iloc[-1] == path.flags.iloc[:, -1].sum() >= 2


def test_bad_groups_leave(path):
    leaves = path.leaves
    assert (leaves.loc[BAD, "below_1pct"] <= 0.2).all()
    assert leaves.drop(index=BAD)["below_1pct"].isna().all()
    gone = {label for labels in path.jumps["groups"] for label in labels}
    assert gone <= set(BAD)
    assert "groups that leave" in " ".join(str(path.summary()).split()) or not len(path.jumps)
    assert "No. Groups" in str(path.summary())


def test_pictures_name_groups(path):
    assert sorted(row_names(path)) == sorted("abcdefghijklmnop")
    named = [name for group in leaving_groups(path) for name in path.weights.index[group]]
    assert set(named) >= set(BAD)
    fig = path.plot()
    assert fig.axes[-1].get_title() == "Weights of the groups"
    heat = path.plot_weights().axes[0]
    assert {text.get_text() for text in heat.get_yticklabels()[:2]} == set(BAD)
    assert heat.get_ylabel().startswith("groups")
    residuals = path.plot_residuals().axes[0]
    assert residuals.get_ylabel() == path_residuals(path, 0.975).name
    shown = " ".join(text.get_text() for text in residuals.texts)
    assert all(name in shown for name in BAD)


def test_page_shows_groups(path, tmp_path):
    pytest.importorskip("plotly")
    text = path.report(tmp_path / "path.html").read_text()
    body = text[: text.index("<script")]
    assert "Weights and distances" in body
    assert "All 16 groups are drawn" in body
    assert "Highlight the group" in body
    assert "mean x" in body  # data of groups are means
    assert '"unit": "group"' in text


def test_groups_of_one_row_are_rows(data):
    some = data[::8]
    path = rrmstats.ols("y ~ x", some, eps_bar=0.1, groups=np.arange(len(some))).path(
        [0, 0.1], steps=1
    )
    assert path.unit == "row"
    assert list(path.weights.index) == list(some.index)
