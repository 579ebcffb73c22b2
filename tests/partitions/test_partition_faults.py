"""Partitions that are empty, all missing, lack a level, differ in size or are wholly corrupt."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from samples import regression_frame

import rrmstats

dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

FORMULA = "y ~ x1 + C(g)"
SLOPES = np.array([1.0, 2.0, -1.0, 0.5, 0.0])


def in_pieces(*pieces):
    """Return a frame whose partitions are given."""
    return dd.from_delayed(
        [dask.delayed(piece) for piece in pieces], meta=pieces[0].iloc[:0], verify_meta=False
    )


def assert_as_in_memory(pieces, formula=FORMULA):
    found = rrmstats.ols(formula, in_pieces(*pieces), 0.2).fit(steps=1)
    expected = rrmstats.ols(formula, pd.concat(pieces), 0.2).fit(steps=1)
    assert_allclose(found.params, expected.params, rtol=1e-8)
    assert_allclose(found.bse, expected.bse, rtol=1e-8)
    assert list(found.params.index) == list(expected.params.index)
    return found


@pytest.fixture(scope="module")
def frame():
    return regression_frame(900)


def test_an_empty_partition_and_sizes_far_apart(frame):
    found = assert_as_in_memory([frame[:0], frame[:3], frame[3:3], frame[3:]])
    assert [len(part) for part in found.weights.partitions] == [0, 3, 0, 895]


def test_a_partition_with_all_rows_missing(frame):
    gone = frame[:50].assign(x1=np.nan)
    assert_as_in_memory([gone, frame[50:400], frame[400:]])


def test_a_partition_that_lacks_a_level(frame):
    pieces = [frame[frame.g == level] for level in "abc"]
    assert_as_in_memory(pieces)
    categories = [piece.assign(g=piece.g.astype("category")) for piece in pieces]
    found = rrmstats.ols(FORMULA, in_pieces(*categories), 0.2).fit(steps=1)
    assert_allclose(
        found.params, rrmstats.ols(FORMULA, pd.concat(pieces), 0.2).fit(steps=1).params
    )


def test_numbers_as_levels(frame):
    year = frame.assign(year=np.repeat([2001, 2002, 2003], 300))
    assert_as_in_memory([year[:300], year[300:600], year[600:]], "y ~ x1 + C(year)")


def sampled_pieces(seed):
    """Return ten partitions, one of them with slopes far off the others'."""
    rng = np.random.default_rng(seed)
    pieces = []
    for i in range(10):
        x = rng.standard_normal((400, 5))
        y = 1 + x @ (SLOPES + 5 if i == 4 else SLOPES) + rng.standard_normal(400)
        pieces.append(pd.DataFrame({"y": y, **{f"x{j + 1}": x[:, j] for j in range(5)}}))
    return pieces


def test_one_partition_in_ten_is_corrupt():
    truth, errors = np.r_[1.0, SLOPES], []
    formula = "y ~ x1 + x2 + x3 + x4 + x5"
    for seed in range(6):
        pieces = sampled_pieces(seed)
        good = pd.concat([piece for i, piece in enumerate(pieces) if i != 4])
        classical = [rrmstats.ols(formula, data, 0.0).fit(steps=1).params for data in pieces]
        fits = (
            rrmstats.ols(formula, in_pieces(*pieces), 0.2).fit().params,
            rrmstats.ols(formula, good, 0.0).fit(steps=1).params,
            np.mean(classical, axis=0),
        )
        errors.append([np.linalg.norm(params - truth) for params in fits])
    found, clean, average = np.mean(errors, axis=0)
    assert found <= 1.2 * clean
    assert average > 5 * found


def test_errors_say_what_to_do(frame):
    parts = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="no rows are left"):
        rrmstats.ols("y ~ x1", in_pieces(frame[:9].assign(x1=np.nan)), 0.2)
    with pytest.raises(ValueError, match="filter the Dask frame"):
        rrmstats.ols(FORMULA, parts, 0.2, subset=[1, 2])
    with pytest.raises(TypeError, match="Dask Series"):
        rrmstats.ols(FORMULA, parts, 0.2, freq_weights=frame["w"])
    with pytest.raises(ValueError, match="infinite"):
        infinite = frame.assign(x1=np.inf)
        rrmstats.ols(FORMULA, dd.from_pandas(infinite, npartitions=2), 0.2)
    with pytest.raises(TypeError, match="endog must be a Dask collection"):
        rrmstats.RRMOLS(frame["y"], parts[["x1"]], 0.2)
    with pytest.raises(ValueError, match="0 and 1"):
        rrmstats.logit("y ~ x1", parts, 0.1)
