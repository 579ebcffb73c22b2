"""The paper's estimate is where it was; see reference/first_steps.py, which stored the numbers."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from reference import first_steps

# Of the largest number of a quantity; fits are converged to less.
CLOSE = 1e-9
CASES = dict(first_steps.cases())


@cache
def stored():
    table = pd.read_csv(first_steps.STORED)
    return {key: part.value.to_numpy() for key, part in table.groupby(["fit", "quantity"])}


def test_table_has_all_fits():
    assert {fit for fit, _ in stored()} == set(CASES)
    assert len(CASES) == 60


@pytest.mark.parametrize("name", CASES)
def test_first_step(name):
    found = first_steps.quantities(first_steps.one_step(CASES[name]()))
    assert {quantity for fit, quantity in stored() if fit == name} == set(found)
    for quantity, values in found.items():
        reference = stored()[name, quantity]
        scale = np.nanmax(np.abs(reference), initial=0.0)
        np.testing.assert_allclose(
            values, reference, rtol=0, atol=CLOSE * scale, err_msg=f"{name}: {quantity}"
        )
