"""Run robustbase and rrcov on samples of ours, by second_step.R."""

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_name("second_step.R")


def peer_estimates(
    kind: str, tables: Iterable[np.ndarray], components: int = 1
) -> dict[str, list[np.ndarray]]:
    """Return the estimates of each method, one per table; a NaN where it failed.

    `kind` is "regression" or "labels" (tables of endog and exog with its constant), "covariance"
    or "plane" (tables of points; planes have so many `components`).
    """
    with tempfile.TemporaryDirectory() as folder:
        for i, table in enumerate(tables):
            np.savetxt(f"{folder}/{i:05}.csv", table, delimiter=",", fmt="%.17g")
        command = ["Rscript", str(SCRIPT), kind, folder, str(components)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, list[np.ndarray]] = {}
    for line in done.stdout.splitlines():
        name, *numbers = line.split(",")
        found.setdefault(name, []).append(np.array([float(number) for number in numbers]))
    return found
