import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats.plotting.path_arrays import (
    leaving_groups,
    merged_places,
    most_changing_terms,
    most_suspicious,
    residual_kind,
    row_values,
    rows_text,
    some_lines,
)

NAMES = [str(i) for i in range(50)]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "none"),
        ([7], "7"),
        ([3, 4], "3, 4"),
        ([3, 4, 5], "3-5"),
        ([3, 5, 7, 18], "3, 5, 7, 18"),
        ([0, 2, 4, 6, 8, 9, 10], "0, 2, 4 and 4 more"),
    ],
)
def test_names_of_rows_in_a_few_words(rows, text):
    assert rows_text(rows, NAMES) == text


def test_long_names_give_way_to_a_number():
    long = [f"a row with a long name {i}" for i in range(5)]
    assert rows_text([0, 2], long) == "2 rows"
    assert rows_text([0], long) == long[0]


def test_merged_places_are_apart_and_complete():
    values = np.random.default_rng(0).standard_normal(60)
    groups = merged_places(values, 0.3)
    means = np.array([values[group].mean() for group in groups])
    assert np.diff(means).min() >= 0.3
    assert sorted(np.concatenate(groups)) == list(range(60))
    assert [list(group) for group in merged_places(values, 0.0)] == [
        [i] for i in np.argsort(values)
    ]
    assert merged_places(np.array([]), 1.0) == []


def test_rows_that_leave_together_are_one_group(paths):
    first, *others = leaving_groups(paths["hbk"])
    # Row 3 loses some of its weight before the jump and the rest with the nine others.
    assert list(first.rows) == list(range(10))
    assert paths["hbk"].eps_bars[first.at] == pytest.approx(0.18)
    every = np.concatenate([first.rows, *(group.rows for group in others)])
    assert len(every) == len(set(every))


def test_weights_are_relative_to_frequencies():
    rng = np.random.default_rng(0)
    data, counts = rng.standard_normal((40, 2)), rng.integers(1, 4, 40).astype(float)
    model = rrmstats.RRMCov(data, 0.1, freq_weights=counts)
    path = model.path([0, 0.1], steps=1)
    np.testing.assert_allclose(row_values(path).values[:, 0], 1.0)
    np.testing.assert_allclose(row_values(path).values[:, 1], model.fit(steps=1).relative_weights)


def test_terms_that_change_most_in_standard_errors():
    frame = pd.DataFrame(
        {
            "term": ["a", "b", "c"] * 2,
            "estimate": [0.0, 0.0, 0.0, 5.0, 1.0, 3.0],
            "std_err": [10.0, 0.1, 1.0] * 2,
        }
    )
    assert most_changing_terms(frame, 2) == ["b", "c"]
    assert most_changing_terms(frame, 5) == ["a", "b", "c"]


def test_flagged_rows_come_first(paths):
    path = paths["hbk"]
    flagged = np.flatnonzero(path.flags.any(axis=1))
    rows = most_suspicious(path, len(flagged))
    assert set(rows) == set(flagged)


def test_cutoffs_are_those_of_the_flags(paths):
    """A row is outside the band if and only if it is flagged, where the two use one quantile."""
    for name in ("logit", "cov"):
        path = paths[name]
        _, cutoff = residual_kind(path, 0.975)
        outside = np.abs(path.residuals.to_numpy()) > cutoff
        np.testing.assert_array_equal(outside, path.flags.to_numpy())
    assert np.ptp(residual_kind(paths["cov"], 0.975)[1]) > 0


@pytest.mark.parametrize(
    ("name", "kind", "cutoff"),
    [
        ("hbk", "standardized residual", 2.2414),
        ("logit", "deviance residual", 2.7162),
        ("pca", "larger distance / its cutoff", 1.0),
    ],
)
def test_kinds_of_residuals(name, kind, cutoff, paths):
    found, values = residual_kind(paths[name], 0.975)
    assert found == kind
    np.testing.assert_allclose(values, cutoff, rtol=1e-4)


def test_very_many_places_are_merged_as_few_are():
    """Twenty thousand, which one by one would take minutes."""
    values = np.random.default_rng(0).uniform(0, 100, 20_000)
    groups = merged_places(values, 5.0)
    assert sorted(np.concatenate(groups)) == list(range(20_000))
    means = [values[group].mean() for group in groups]
    assert (np.diff(means) >= 5).all() and len(groups) > 8


def test_some_lines_are_spread_over_their_ends():
    values = np.random.default_rng(0).permutation(1000)[:, None] * [1.0, 2.0]
    np.testing.assert_array_equal(some_lines(values, 1000), values)
    found = some_lines(values, 10)[:, 1]
    np.testing.assert_allclose(found, np.linspace(0, 1998, 10), atol=2)
