"""Which numeric constants change what is reported: each is multiplied, and fits are repeated.

    python benchmarks/constants.py --jobs 2

A constant at the level of a module counts as statistical if a multiple of it moves a parameter, a
standard error, a share or a probability of a stored fit (tests/reference) by more than `MOVED` of
its largest value. It then needs a formula, a calibration or a convention, which its comment
names after `Derived:`, `Calibrated:` or `Convention:`. All others are numbers of the computer. The
fits cannot see constants that act on other data only, so that a comment with such a mark counts as
well.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rrmstats"
FOLDERS = ("core", "laws", "losses", "models", "results")
FACTORS = (1.4, 0.7)
MOVED = 1e-5
#: Seconds after which a fit with a changed constant is given up; that counts as moved.
PATIENCE = 600
#: Models and samples that are fitted with an automatic bound, too.
AUTOMATIC = (
    ("ols", "clean"),
    ("ols", "shifted"),
    ("ols", "leverage"),
    ("gaussian", "shifted"),
    ("gamma", "high"),
    ("poisson", "high"),
    ("logit", "flipped"),
    ("cov", "shifted"),
    ("pca", "shifted"),
)
Fit = dict[str, Any]
MARK = re.compile(r"(Derived|Calibrated|Convention): (.+)", re.S)


@dataclass(frozen=True)
class Constant:
    """A number, or several, at the level of a module."""

    module: str
    name: str
    line: int
    end: int
    comment: str

    @property
    def mark(self) -> str:
        """The formula or the script that its comment names, or nothing."""
        found = MARK.search(self.comment)
        return found.group(0).strip() if found else ""


def is_numeric(value: ast.expr) -> bool:
    """Whether an expression is made of numbers, and of no text."""
    kinds = [type(node.value) for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return any(kind in (int, float) for kind in kinds) and str not in kinds


def comment_above(lines: list[str], line: int) -> str:
    """Return the comment that ends above a line (counted from 1)."""
    found: list[str] = []
    place = line - 2
    while place >= 0 and lines[place].startswith("#"):
        found.insert(0, lines[place].lstrip("#: "))
        place -= 1
    return " ".join(found)


def constants_of(path: Path) -> Iterator[Constant]:
    """Yield the numeric constants of a file."""
    source = path.read_text()
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if is_numeric(value):
            comment = comment_above(source.splitlines(), node.lineno)
            yield Constant(module, ast.unparse(target), node.lineno, node.end_lineno or 0, comment)


def all_constants(folders: tuple[str, ...] = FOLDERS) -> list[Constant]:
    """Return the numeric constants of some folders of the package."""
    files = [path for folder in folders for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return [constant for path in files for constant in constants_of(path)]


class Multiply(ast.NodeTransformer):
    """Multiply each number of an expression; whole ones stay whole."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if type(node.value) is int:
            return ast.Constant(max(1, round(node.value * self.factor)))
        if type(node.value) is float:
            return ast.Constant(node.value * self.factor)
        return node


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one module with a constant multiplied."""

    def __init__(self, constant: Constant, factor: float) -> None:
        self.constant, self.factor = constant, factor
        self.path = ROOT / (constant.module.replace(".", "/") + ".py")

    def find_spec(self, name, path=None, target=None):
        if name != self.constant.module:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def exec_module(self, module) -> None:
        tree = ast.parse(self.path.read_text())
        for node in tree.body:
            if node.lineno == self.constant.line:
                node.value = Multiply(self.factor).visit(node.value)
        exec(compile(ast.fix_missing_locations(tree), str(self.path), "exec"), module.__dict__)


def fits() -> Iterator[tuple[str, Fit]]:
    """Yield the quantities of the stored fits, and of some with an automatic bound."""
    from reference import first_steps, second_steps

    automatic = {
        f"{name}, {kind}, auto": partial(first_steps.simulated, name, kind, "auto")
        for name, kind in AUTOMATIC
    }
    for name, build in chain(first_steps.cases(), automatic.items()):
        yield name, second_steps.quantities(second_steps.two_steps(build()))


def largest_move(stored: dict[str, Fit]) -> tuple[float, str]:
    """Return how far the first fit that moves does, and its name."""
    import numpy as np

    for name, found in fits():
        for quantity, values in found.items():
            before = stored[name][quantity]
            scale = np.nanmax(np.abs(before), initial=1e-12)
            move = np.nanmax(np.abs(values - before), initial=0.0) / scale
            if move > MOVED or np.any(np.isnan(values) != np.isnan(before)):
                return float(move), f"{name}: {quantity}"
    return 0.0, ""


def effect(constant: Constant, stored: dict[str, Fit]) -> str:
    """Return what moves if a constant is multiplied, or nothing. Runs in a process of its own."""
    for factor in FACTORS:
        for name in list(sys.modules):
            if name.split(".")[0] in ("rrmstats", "reference", "replication"):
                del sys.modules[name]
        finder = Changed(constant, factor)
        sys.meta_path.insert(0, finder)
        signal.alarm(PATIENCE)
        try:
            move, where = largest_move(stored)
        except Exception as error:  # a changed number may break a fit: it matters, then
            move, where = 1.0, f"{type(error).__name__}"
        finally:
            signal.alarm(0)
            sys.meta_path.remove(finder)
        if move > MOVED:
            return f"times {factor:g}: {where} by {move:.1g}"
    return ""


def give_up(*_: object) -> None:
    """End a fit that takes too long."""
    raise TimeoutError


def prepare() -> None:
    """Set up a process of the pool."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    signal.signal(signal.SIGALRM, give_up)
    import pandas  # noqa: F401, imported once for all fits
    import statsmodels.api  # noqa: F401, likewise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="constants whose module and name contain this")
    arguments = parser.parse_args()
    constants = [
        constant
        for constant in all_constants()
        if arguments.only in f"{constant.module}.{constant.name}"
        and not constant.module.endswith("tolerances")
    ]
    prepare()
    stored = dict(fits())
    with get_context("spawn").Pool(arguments.jobs, prepare, maxtasksperchild=20) as pool:
        for constant, moved in zip(
            constants, pool.imap(partial(effect, stored=stored), constants), strict=True
        ):
            mark = constant.mark or "-"
            print(f"{constant.module}.{constant.name} | {moved or 'nothing'} | {mark}", flush=True)


if __name__ == "__main__":
    main()
