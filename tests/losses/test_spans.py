"""How many dimensions rows span, in memory and in blocks."""

import numpy as np
import pytest

from rrmstats.core.block_array import leaf_arrays
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.losses.matrices import spanned


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
def test_rank(rank, offset):
    rng = np.random.default_rng(rank)
    x = rng.standard_normal((60, rank)) @ rng.standard_normal((rank, 5)) + offset
    for unit in (1.0, 10.0 ** np.array([-9, 0, 9, -200, 200])):
        data = x * unit
        blocks = leaf_arrays(ArrayBlocks([(data[:7],), (data[7:],)]))[0]
        for rows in (data, blocks):
            used = np.broadcast_to(1.0, (60,))
            assert spanned(rows, used, True, 5) == rank
            assert spanned(rows, used, False, 5) == min(rank + (offset != 0), 5)


def test_one_row_far_out_hides_nothing_and_one_that_differs_is_found():
    x = np.random.default_rng(0).standard_normal((1000, 3))
    x[17] = 1e40
    assert spanned(x, np.ones(1000), True, 3) == 3
    x[:, 2] = 0.0
    assert spanned(x, np.ones(1000), True, 3) == 2
    x[503, 2] = 1.0
    assert spanned(x, np.ones(1000), True, 3) == 3
    assert spanned(x, (np.arange(1000) != 503).astype(float), True, 3) == 2
