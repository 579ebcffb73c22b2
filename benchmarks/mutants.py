"""Whether named tests notice wrong formulas: single-line mutants of core, laws and losses.

    python benchmarks/mutants.py

Each mutant changes one sign, factor or comparison in a copy of the package and runs the tests that
are named beside it. It is killed if they fail; the script ends with status 1 where one survives,
or where the tests fail without a change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A change of one line, and the test that must fail under it.

    Attributes
    ----------
    file : str
        File of the package.
    old, new : str
        The text that is replaced where it first occurs, and what replaces it.
    test : str
        Identifier of the test, as pytest takes it.
    """

    file: str
    old: str
    new: str
    test: str


MUTANTS = (
    Mutant(
        "laws/labels.py",
        "moved[:, -1] += at.value[1:].sum(axis=0)",
        "moved[:, -1] -= at.value[1:].sum(axis=0)",
        "laws/test_labels.py::test_influence_functions_tell_how_a_fit_moves",
    ),
    Mutant(
        "core/entropy.py",
        "return scaled / scaled.sum()",
        "return scaled / len(scaled)",
        "core/test_entropy.py::test_prior_weight_two_is_the_row_twice",
    ),
    Mutant(
        "core/consistency.py",
        "(dim / 2 + 1) * np.log(2 * order - 1)",
        "(dim / 2 - 1) * np.log(2 * order - 1)",
        "core/test_consistency.py::test_closed_forms_match_integration",
    ),
    Mutant(
        "core/spectral.py",
        "np.where(kept > 0, -score, np.inf)",
        "np.where(kept > 0, score, np.inf)",
        "core/test_spectral.py::test_rows_are_dropped_by_their_weight",
    ),
    Mutant(
        "core/descent.py",
        "lower = trial.risk <= here.risk + slack",
        "lower = trial.risk >= here.risk + slack",
        "core/test_descent.py::test_the_risk_never_rises",
    ),
    Mutant(
        "core/sandwich.py",
        "by_theta @ drift - log_beta",
        "by_theta @ drift + log_beta",
        "core/test_sandwich.py::test_influence_is_the_derivative_in_the_weight_of_a_row",
    ),
    Mutant(
        "core/sandwich.py",
        "(min(counts) / (min(counts) - 1))",
        "(min(counts) / (min(counts) + 1))",
        "results/test_standard_errors.py::test_clusters_of_one_row",
    ),
    Mutant(
        "laws/gaussian.py",
        "0.5 * (df + dim) * np.log1p(square / df)",
        "0.5 * (df - dim) * np.log1p(square / df)",
        "laws/test_densities.py::test_heavy_tails_are_those_of_students_distribution",
    ),
    Mutant(
        "laws/together.py",
        "self.counts / self.sizes",
        "self.counts * self.sizes",
        "laws/test_groups.py::test_sums_over_groups_count_rows_as_often_as_they_count",
    ),
    Mutant(
        "losses/regression.py",
        "2.0 * (eta - self.endog)",
        "2.0 * (self.endog - eta)",
        "core/test_descent.py::test_derivatives_match_differences",
    ),
    Mutant(
        "losses/logistic.py",
        "3.0 * self.alpha * square",
        "2.0 * self.alpha * square",
        "properties/test_problem_contract.py::test_hessian",
    ),
    Mutant(
        "losses/deviance.py",
        "return -first, expected - swing",
        "return -first, expected + swing",
        "losses/test_deviance.py::test_slopes_are_derivatives",
    ),
)


def passes(copy: Path, tests: list[str]) -> bool:
    """Tell whether tests pass in a copy of the tree."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
    if done.returncode not in (0, 1):  # 1: a test failed
        raise RuntimeError(done.stdout.decode()[-2000:])
    return done.returncode == 0


def survives(copy: Path, mutant: Mutant) -> bool:
    """Tell whether the test of a mutant passes with it; the copy is left as it was."""
    path = copy / "rrmstats" / mutant.file
    text = path.read_text(encoding="utf-8")
    if mutant.old not in text:
        raise ValueError(f"{mutant.file} has no {mutant.old!r}; write the mutant anew")
    path.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    try:
        return passes(copy, [f"tests/{mutant.test}"])
    finally:
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """Run all mutants, and return 1 where one survives."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("rrmstats", "tests", "datasets", "docs", "replication", "benchmarks"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        if not passes(copy, sorted({f"tests/{mutant.test}" for mutant in MUTANTS})):
            print("the tests fail without a change")
            return 1
        alive = 0
        for mutant in MUTANTS:
            found = survives(copy, mutant)
            alive += found
            print(f"{'SURVIVES' if found else 'killed'}: {mutant.file}, {mutant.new}", flush=True)
        print(f"{len(MUTANTS) - alive} of {len(MUTANTS)} killed")
    return int(alive > 0)


if __name__ == "__main__":
    sys.exit(main())
