"""Covariances of dirty samples reach what is asked: a part of benchmarks/second_step.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import second_step

RUNS, SEED = 5, 4100


def cases():
    for cell in second_step.covariance_cells():
        few = " 100 5 " in cell.name or " 100 20 " in cell.name
        yield pytest.param(cell, id=cell.name, marks=() if few else pytest.mark.slow)


@pytest.mark.parametrize("cell", [*cases()])
def test_covariances_are_near_those_of_the_good_rows(cell):
    """By Kullback-Leibler divergences over those of the good rows, and flags."""
    found = [second_step.fit(cell, SEED, run) for run in range(RUNS)]
    made = second_step.summarized(cell, found, SEED, peers=False)
    assert not made.missed, made
    # Cells without a bound of their own: better than one step, and near the good rows.
    assert made.means["ratio"] <= min(1.5, made.means["first"])


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=cell.name)
        for cell in second_step.lab_cells()
        if cell.name == "lab cov seed 1"
    ],
)
def test_heavy_tails_of_some_rows(cell):
    """50 rows in two dimensions: 0.24 by CovMMest, 0.33 by one step over 600 samples."""
    found = [second_step.fit(cell, SEED, run) for run in range(30)]
    assert np.mean([each["two"] for each in found]) < 0.27
