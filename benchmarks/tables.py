"""Tables of pages, as files beside them."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tables"


def write_table(name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table to ``docs/tables`` and return the lines of a page that show it."""
    with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return f"```{{csv-table}}\n:file: tables/{name}.csv\n:header-rows: 1\n:class: numbers\n```\n"
