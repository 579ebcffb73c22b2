"""Numeric constants: those that change what is reported say where they come from."""

import importlib
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
constants = importlib.import_module("constants")
ALL = constants.all_constants()
MARKED = [each for each in ALL if each.mark]


def test_scripts_that_calibrate_exist():
    for each in MARKED:
        kind, source = each.mark.split(": ", 1)
        if kind == "Calibrated":
            script = source.split(".py")[0] + ".py"
            assert (ROOT / script).is_file(), f"{each.module}.{each.name}"


def test_names_have_one_meaning():
    """Conventions that files share are written once."""
    shared = {"CLOSE", "STRONG", "VERY_STRONG", "FAR", "MOST_LEVERAGE"}
    found = Counter(
        name.strip(" ()")
        for each in ALL
        for name in each.name.split(",")
        if each.module != "rrmstats.laws.explain" and each.module != "rrmstats.laws.responses"
    )
    assert {name: found[name] for name in shared} == dict.fromkeys(shared, 1)


def test_there_are_no_more_of_them():
    """A new constant takes the place of another, or of a reason to raise these numbers."""
    assert len(MARKED) <= 40
    assert len(ALL) <= 149
