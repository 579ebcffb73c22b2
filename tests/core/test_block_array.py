"""Arrays in blocks give what numpy gives on the same rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats.core.block_array import (
    aligned,
    blocked,
    leaf_arrays,
    row_map,
    row_sums,
    smallest,
    taken,
)
from rrmstats.core.blocks import CHUNK, ArrayBlocks
from rrmstats.core.design import thin_svd, triangle


def in_parts(*arrays, cuts=(30, 30, 37)):
    """Return arrays in blocks, one of them empty."""
    parts = zip(*(np.split(array, cuts) for array in arrays), strict=True)
    return leaf_arrays(ArrayBlocks(list(parts)))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal(100), rng.standard_normal((100, 3))


EXPRESSIONS = {
    "arithmetic": lambda y, x: 2 * y - x[:, 1] / 3 + y**2,
    "ufunc of two": lambda y, x: np.minimum(np.exp(-(y**2)), np.abs(x[:, 0])),
    "comparison": lambda y, x: (y > 0) & (x[:, 0] <= 0.5) | ~(y < 1),
    "where": lambda y, x: np.where(y > 0, y, 0.0),
    "clip": lambda y, x: np.clip(y, -1, 1),
    "product with a vector": lambda y, x: x @ np.arange(3.0),
    "product with a matrix": lambda y, x: x @ np.arange(6.0).reshape(3, 2),
    "vector times the transposed": lambda y, x: np.arange(3.0) @ x.T,
    "columns": lambda y, x: x[:, [2, 0]] * y[:, None],
    "small array across": lambda y, x: x - np.arange(3.0),
    "squared lengths": lambda y, x: np.einsum("ni,ni->n", x, x),
    "sum along a row": lambda y, x: x.sum(axis=1) + x.max(axis=-1),
    "equal weights": lambda y, x: np.broadcast_to(0.01, (100,)) * y,
    "type": lambda y, x: (y > 0).astype(float),
}
REDUCTIONS = {
    "sum": lambda y, x: y.sum(),
    "sums of columns": lambda y, x: x.sum(axis=0),
    "numpy's sum": lambda y, x: np.sum(x),
    "mean": lambda y, x: x.mean(axis=0),
    "extremes": lambda y, x: np.array([y.min(), x.max(), *x.min(axis=0)]),
    "any, all": lambda y, x: np.array([(y > 2).any(), (y < 9).all(), (y < 0).all()]),
    "inner product": lambda y, x: y @ (y + 1),
    "weights times rows": lambda y, x: y @ x,
    "Gram matrix": lambda y, x: x.T @ (y[:, None] * x),
    "equal weights": lambda y, x: np.broadcast_to(0.01, (100,)) @ y,
    "every third row": lambda y, x: x[::3],
    "chosen rows": lambda y, x: x[np.array([99, 0, 36, 30])],
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_wait_and_agree(rows, name):
    y, x = in_parts(*rows)
    found, expected = EXPRESSIONS[name](y, x), EXPRESSIONS[name](*rows)
    assert blocked(found)
    assert y.blocks.passes == 1  # that found the shapes
    assert found.shape == expected.shape
    assert_allclose(found[np.arange(100)], expected, rtol=1e-14)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_agree(rows, name):
    found, expected = REDUCTIONS[name](*in_parts(*rows)), REDUCTIONS[name](*rows)
    assert not blocked(found)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def both(y, x):
    return y.sum(), x.T @ x


def test_several_sums_take_one_pass_and_chunks_add_up():
    rng = np.random.default_rng(1)
    n = 2 * CHUNK + 17
    y, x = rng.standard_normal(n), rng.standard_normal((n, 2))
    by, bx = in_parts(y, x, cuts=[n - 5])
    before = by.blocks.passes
    total, gram = row_sums(both, by * 2, bx)
    assert by.blocks.passes == before + 1
    assert_allclose(total, 2 * y.sum())
    assert_allclose(gram, x.T @ x)


def test_smallest_rows_with_ties(rows):
    y, _ = rows
    rounded = np.round(y)
    by, _ = in_parts(*rows)
    expected = np.lexsort((np.arange(100), -y, rounded))[:20]
    assert_array_equal(smallest(20, np.round(by), -by), expected)
    assert_array_equal(smallest(20, rounded, -y), expected)


def test_rows_of_several_arrays_take_one_pass(rows):
    y, x = in_parts(*rows)
    before = y.blocks.passes
    places = np.array([50, 2, 50, 99])
    found = taken(places, y, x * 2)
    assert y.blocks.passes == before + 1
    assert_array_equal(found[0], rows[0][places])
    assert_array_equal(found[1], 2 * rows[1][places])


def test_all_rows_never_come_to_memory_by_accident(rows):
    y, x = in_parts(*rows)
    for attempt in (
        lambda: np.asarray(y),
        lambda: np.sort(y),
        lambda: np.median(x, axis=0),
        lambda: y + rows[0],
        lambda: np.linalg.svd(x),
    ):
        with pytest.raises(TypeError, match="memory"):
            attempt()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(y > 0)


def test_a_function_of_rows_waits(rows):
    y, x = in_parts(*rows)
    found = row_map(np.hypot, y, x[:, 0])
    assert_allclose(found.sum(), np.hypot(rows[0], rows[1][:, 0]).sum())
    assert row_map(np.hypot, 3.0, 4.0) == 5.0


def test_constant_rows_are_aligned(rows):
    y, _ = in_parts(*rows)
    ones = aligned(np.broadcast_to(1.0, (100,)), y.blocks)
    assert ones.shape == (100,) and ones.sum() == 100


def test_factorizations_of_blocks(rows):
    y, x = in_parts(*rows)
    factor = triangle(x, np.abs(y), y)
    whole = np.abs(rows[0])[:, None] * np.column_stack([rows[1], rows[0]])
    assert_allclose(factor.T @ factor, whole.T @ whole)
    left, singular, right = thin_svd(x)
    assert_allclose(singular, np.linalg.svd(rows[1], compute_uv=False))
    assert_allclose((left * singular @ right)[np.arange(100)], rows[1], atol=1e-12)
