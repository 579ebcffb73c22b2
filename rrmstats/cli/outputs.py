"""Files that a command writes: all of them, or none."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from rrmstats.cli.errors import CommandError, UsageError
from rrmstats.cli.tables import STDIN
from rrmstats.files import check_target


def check_outputs(args: argparse.Namespace, options: Sequence[str]) -> None:
    """Raise where a file that is asked for cannot be written, before any work.

    Parameters
    ----------
    args : argparse.Namespace
        With `data` and `force`.
    options : sequence of str
        The options, as `args` has them, that name files.
    """
    given = {option: getattr(args, option) for option in options}
    given = {option: path for option, path in given.items() if path is not None}
    for option, path in given.items():
        _check_output(f"--{option}", path, args)
    for first, second in combinations(given, 2):
        if given[first].resolve() == given[second].resolve():
            raise UsageError(f"--{first} and --{second} must be different files")


def _check_output(option: str, path: Path, args: argparse.Namespace) -> None:
    if str(path) == STDIN:
        raise UsageError(f"{option} needs the name of a file, got {path}")
    check_target(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise CommandError(f"cannot write to {path.parent}: {error.strerror}") from None
    if not path.exists():
        return
    if not path.is_file():
        raise CommandError(f"{path} is not a regular file; give another name to {option}")
    if args.data != STDIN and Path(args.data).exists() and path.samefile(args.data):
        raise UsageError(f"{path} has the data; give another name to {option}")
    check_existing(option, path, args.force)


def check_existing(option: str, path: Path, force: bool) -> None:
    """Raise where a file exists that is not to be replaced."""
    if path.is_file() and not force:
        raise UsageError(f"{path} exists; give another name to {option}, or --force")


def check_report(path: Path | None) -> None:
    """Raise where the name of a report does not say that it is HTML."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--report writes HTML: give a name that ends in .html, got {path}")
