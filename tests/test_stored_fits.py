"""Fits are where they were: reference/first_steps.py and second_steps.py stored the numbers."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from reference import first_steps, second_steps

# Of the largest number of a quantity; fits are converged to less.
CLOSE, SECOND_CLOSE = 1e-9, 1e-8
CASES = dict(first_steps.cases())


@cache
def stored(path):
    table = pd.read_csv(path)
    return {key: part.value.to_numpy() for key, part in table.groupby(["fit", "quantity"])}


def compare(name, found, path, close):
    reference = stored(path)
    assert {quantity for fit, quantity in reference if fit == name} == set(found)
    for quantity, values in found.items():
        scale = np.nanmax(np.abs(reference[name, quantity]), initial=0.0)
        np.testing.assert_allclose(
            values, reference[name, quantity], rtol=0, atol=close * scale,
            err_msg=f"{name}: {quantity}",
        )  # fmt: skip


@pytest.mark.parametrize("module", [first_steps, second_steps])
def test_table_has_all_fits(module):
    assert {fit for fit, _ in stored(module.STORED)} == set(CASES)
    assert len(CASES) == 60


@pytest.mark.parametrize("name", CASES)
def test_first_step(name):
    found = first_steps.quantities(first_steps.one_step(CASES[name]()))
    compare(name, found, first_steps.STORED, CLOSE)


@pytest.mark.parametrize("name", CASES)
def test_second_step(name):
    found = second_steps.quantities(second_steps.two_steps(CASES[name]()))
    compare(name, found, second_steps.STORED, SECOND_CLOSE)
