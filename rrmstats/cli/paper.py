"""The experiments of the paper, which a checkout has beside the package."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import rrmstats
from rrmstats.cli.errors import UsageError
from rrmstats.optional import installed


def run_replicate(args: argparse.Namespace) -> None:
    """Run experiments of the paper, and print what they find."""
    experiments = find_experiments()
    name = args.name and full_name(args.name, experiments.EXPERIMENTS)
    summary = experiments.replicate(
        name and [name],
        out=args.out,
        progress=sys.stderr.isatty(),
        jobs=args.jobs,
        **({"runs": args.runs} if args.runs else {}),
    )
    print("\n".join(import_module("replication.summaries").summary_lines(summary)))
    if installed("matplotlib") is None:
        print("\nNo pictures: matplotlib is not installed; pip install rrmstats[plot]")
    print(f"\nWritten to {args.out}")


def find_experiments() -> ModuleType:
    """Return the module `replication` of the checkout around the package or the current folder."""
    for folder in (Path(rrmstats.__file__).parents[1], Path.cwd()):
        if (folder / "replication" / "paper.py").is_file():
            sys.path.insert(0, str(folder))
            return import_module("replication")
    raise UsageError(
        "the experiments are not installed with the package: run this command in a checkout of "
        "rrmstats or in its unpacked sdist, which have them in the folder replication"
    )


def full_name(name: str, experiments: dict[str, object]) -> str:
    """Return the full name of an experiment, of which "3a", "fig3a" and "figure3a" are names."""
    folded = name.casefold()
    short = folded.removeprefix("figure").removeprefix("fig").strip(" .")
    for candidate in (folded, f"figure{short}"):
        if candidate in experiments:
            return candidate
    raise UsageError(f"there is no experiment {name!r}; choose from {', '.join(experiments)}")
