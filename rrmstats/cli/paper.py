"""The experiments of the paper."""

from __future__ import annotations

import argparse
import sys

from rrmstats.cli.errors import UsageError
from replication import EXPERIMENTS, replicate
from replication.driver import RUNS, installed
from replication.summaries import summary_lines


def experiment_name(name: str) -> str:
    """Return the long name of an experiment; names that are not known stay as they are.

    Parameters
    ----------
    name : str
        Such as "figure3a", "fig3a" or "3a".

    Returns
    -------
    str

    Examples
    --------
    >>> from rrmstats.cli.paper import experiment_name
    >>> experiment_name("3a")
    'figure3a'
    """
    folded = name.casefold()
    short = folded.removeprefix("figure").removeprefix("fig").strip(" .")
    return next((long for long in (folded, f"figure{short}") if long in EXPERIMENTS), name)


def run_replicate(args: argparse.Namespace) -> None:
    """Run experiments of the paper, and print what they find."""
    name = None if args.name is None else experiment_name(args.name)
    if name is not None and name not in EXPERIMENTS:
        raise UsageError(
            f"there is no experiment {args.name!r}; choose from {', '.join(EXPERIMENTS)}"
        )
    summary = replicate(
        None if name is None else [name],
        out=args.out,
        runs=args.runs or RUNS,
        jobs=args.jobs,
        progress=sys.stderr.isatty(),
    )
    print("\n".join(summary_lines(summary)))
    if installed("matplotlib") is None:
        print("\nNo pictures: matplotlib is not installed; pip install rrmstats[plot]")
    print(f"\nWritten to {args.out}")
