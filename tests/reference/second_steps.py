"""The sixty fits of first_steps.py in two steps; running this script stores their numbers.

The numbers in second_steps.csv guard changes that should move nothing. A change that is meant to
move them stores them again, and the changelog says what moved.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference.first_steps import cases, store

STORED = Path(__file__).with_suffix(".csv")


def two_steps(model: Any) -> Any:
    """Fit by two steps."""
    with warnings.catch_warnings():
        # some of these samples have an unstable eps_bar or an unidentified size, and are told
        warnings.simplefilter("ignore")
        return model.fit()


def quantities(res: Any) -> dict[str, NDArray[np.float64]]:
    """Return parameters, errors and share, and sums that tell probabilities and flags."""
    bad, flags = np.asarray(res.prob_bad, float), np.asarray(res.outliers(), float)
    rows = np.arange(len(bad))
    return {
        "params": np.ravel(res.params).astype(float),
        "bse": np.ravel(res.bse).astype(float),
        "eps_hat": np.array([res.eps_hat, res.eps_hat_se], float),
        "prob_bad": np.array([bad.sum(), bad @ bad, bad @ np.sin(rows)]),
        "flags": np.array([flags.sum(), flags @ np.arange(len(flags))]),
    }


def main() -> None:
    store(STORED, ((name, quantities(two_steps(build()))) for name, build in cases()))


if __name__ == "__main__":
    main()
