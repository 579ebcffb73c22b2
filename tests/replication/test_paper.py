"""What the paper finds."""

import numpy as np
import pytest

from replication import simulate
from replication.methods import ERM, GLOBAL, METHODS, PAPER, SEVER, TWO_STEPS


@pytest.mark.slow
def test_methods_and_findings_of_figure_3():
    table = simulate("figure3a", 12)
    assert table["method"].unique().tolist() == list(METHODS[:6])
    errors = table.groupby("method")["error"].mean()
    assert errors[TWO_STEPS] < errors[PAPER] < errors[ERM]


@pytest.mark.slow
def test_confusion_matrices_count_the_test_rows():
    table = simulate("tables", 1)
    assert set(table["method"]) == set(METHODS) - {"Huber"}
    cells = table[[f"actual {i}, predicted {j}" for i in (1, 0) for j in (1, 0)]]
    assert (cells.sum(axis=1) == 274).all()
    right = table["actual 1, predicted 1"] + table["actual 0, predicted 0"]
    np.testing.assert_allclose(right / 274, table["accuracy"])
    accuracy = table.groupby("method")["accuracy"].mean()
    assert accuracy[ERM] < accuracy[GLOBAL] - 0.03


@pytest.mark.slow
def test_findings_of_figure_4():
    errors = simulate("figure4c", 3).groupby("method")["error"].mean()
    assert errors[TWO_STEPS] < errors[SEVER] < errors[ERM]
