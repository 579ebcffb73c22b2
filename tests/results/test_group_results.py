"""What results tell of groups."""

import pickle

import numpy as np
import pandas as pd
import pytest

import rrmstats


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"firm": np.repeat(list("abcdefghijklmnop"), 15)})
    frame["x"] = rng.standard_normal(len(frame))
    frame["y"] = 1 + 2 * frame.x + rng.standard_normal(len(frame))
    bad = frame.firm.isin(["c", "k"])
    frame.loc[bad, "y"] -= 5 * frame.x[bad]
    return frame.sample(frac=1, random_state=1)


@pytest.fixture(scope="module")
def res(data):
    return rrmstats.ols("y ~ x", data, eps_bar=0.25, groups="firm").fit(steps=1)


def test_group_table_has_the_smallest_weights_first(res, data):
    table = res.group_table(4)
    assert set(table.index[:2]) == {"c", "k"}
    assert table["relative_weight"].is_monotonic_increasing
    assert len(res.group_table(None)) == 16
    means = (res.resid**2).groupby(data.firm).mean()
    np.testing.assert_allclose(table["loss"], means[table.index])
    assert (table["rows"] == 15).all()
    assert list(table["outlier"][:2]) == [True, True]


def test_flags_of_groups_and_their_share(res):
    flags = res.outlier_groups(0.999)
    assert sorted(flags.index[flags]) == ["c", "k"]
    assert res.eps_hat == pytest.approx(2 / 16)
    with pytest.raises(ValueError, match="level"):
        res.outlier_groups(1.0)


def test_scale_is_that_of_good_rows(res):
    assert res.scale == pytest.approx(1, abs=0.2)
    assert res.raw_scale < 0.95 * res.scale


def test_summary_names_groups(res):
    text = str(res.summary())
    assert "Groups of smallest weight" in text
    assert "Each of 16 groups has one weight" in text
    assert "Far out: c, k." in text.replace("k, c", "c, k")
    assert "clustered by groups" in text
    rows = text.split("Groups of smallest weight")[1].splitlines()[2:4]
    assert {row.split()[0] for row in rows} == {"c", "k"}


def test_results_without_groups_say_so(data):
    plain = rrmstats.ols("y ~ x", data, eps_bar=0.25).fit(steps=1)
    for read in (lambda: plain.group_weights, plain.group_table, plain.outlier_groups):
        with pytest.raises(ValueError, match="the model has no groups"):
            read()


def test_pickles_keep_groups(res):
    again = pickle.loads(pickle.dumps(res))
    pd.testing.assert_frame_equal(again.group_table(), res.group_table())
    np.testing.assert_allclose(again.bse, res.bse)


def test_summary_after_remove_data(data):
    res = rrmstats.ols("y ~ x", data, eps_bar=0.25, groups="firm").fit(stability=False, steps=1)
    bse = np.asarray(res.bse)
    res.remove_data()
    assert "Each of 16 groups" in str(res.summary())
    np.testing.assert_allclose(res.bse, bse)


def test_plot_shows_groups(res):
    fig = res.plot_weights()
    ax = fig.axes[0]
    assert ax.get_xlabel() == "group"
    assert {text.get_text() for text in ax.texts} >= {"c", "k"}
    drawn = np.concatenate([line.get_ydata() for line in ax.lines[1:]])
    np.testing.assert_allclose(np.sort(drawn), np.sort(res.group_weights), rtol=1e-12)


def test_report_shows_groups(res, tmp_path):
    path = tmp_path / "report.html"
    res.report(path)
    assert "Groups of smallest weight" in path.read_text()


def test_loadings_have_errors_by_group():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(40), 10)
    errors = []
    for _ in range(2):
        z = rng.standard_normal((400, 3)) * [3, 1, 1]
        pca = rrmstats.RRMPCA(z, 1, eps_bar=0.1, groups=unit).fit(steps=1)
        errors.append(np.asarray(pca.loadings_bse).ravel())
    # sd of an angle: sqrt(l1 l2) / (l1 - l2) / sqrt(n)
    np.testing.assert_allclose(np.mean(errors, axis=0)[1:], 3 / 8 / 20, rtol=0.5)
