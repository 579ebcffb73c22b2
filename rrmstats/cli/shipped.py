"""The data that ship."""

from __future__ import annotations

import argparse

from rrmstats import datasets
from rrmstats.cli.errors import UsageError, nearest
from rrmstats.cli.tables import table_bytes


def run_datasets(args: argparse.Namespace) -> None:
    """List the data that ship, or print one table as CSV."""
    names = datasets.available()
    if args.name is None:
        print("\n".join(line for name in names for line in dataset_lines(name)))
        print("\nrrmstats datasets NAME > NAME.csv writes one of them.")
        return
    if args.name not in names:
        raise UsageError(f"no data {args.name!r} ship; {nearest(args.name, names, 'name')}")
    data = getattr(datasets, args.name).load_pandas().data
    print(table_bytes(data, "csv").decode("utf-8"), end="")


def dataset_lines(name: str) -> list[str]:
    """Return a data set on two lines: what it is, its size and its columns."""
    shipped = getattr(datasets, name)
    data = shipped.load_pandas().data
    return [
        f"{name}: {shipped.DESCRSHORT}",
        f"  {len(data)} rows: {', '.join(data.columns)}",
    ]
