"""The command from beginning to end: its status, its errors and its warnings."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from statsmodels.tools.sm_exceptions import MissingDataError

from rrmstats.cli.errors import CommandError, one_line
from rrmstats.cli.parser import make_parser

# What a shell reports of a process that Ctrl-C or a closed pipe has ended.
INTERRUPTED, CLOSED_PIPE = 130, 141
# What data, files and missing packages raise; anything else is an error of this package.
EXPECTED = (
    *(ArithmeticError, ImportError, MemoryError, OSError),
    *(MissingDataError, RuntimeError, TypeError, ValueError),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of ``rrmstats``.

    Parameters
    ----------
    argv : sequence of str, optional
        The command and its options; those of the process unless given. Without any, the help is
        printed.

    Returns
    -------
    int
        Exit status: 0; 1 where the data or the files do not allow it; 2 for wrong usage.

    Examples
    --------
    >>> from rrmstats.cli import main
    >>> main(["datasets", "phones"])  # doctest: +ELLIPSIS
    year,calls
    ...
    0
    """
    given = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        encode_stdout()
        with warnings_in_lines() as seen:
            args = make_parser().parse_args(given)
            args.warnings = seen
            args.run(args)
            print(end="", flush=True)
    except CommandError as error:
        return failed(one_line(error), error.status)
    except BrokenPipeError:
        silence_stdout()
        return CLOSED_PIPE
    except EXPECTED as error:
        return failed(one_line(error) or type(error).__name__, CommandError.status)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def failed(line: str, status: int) -> int:
    """Print an error, and return the exit status."""
    print(f"rrmstats: error: {line}", file=sys.stderr)
    return status


def encode_stdout() -> None:
    """Have files and pipes get UTF-8, and terminals no character that they cannot show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        terminal = sys.stdout.isatty()
        sys.stdout.reconfigure(encoding=None if terminal else "utf-8", errors="backslashreplace")


def silence_stdout() -> None:
    """Send what is still to be printed nowhere, so that Python does not complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def warnings_in_lines() -> Iterator[list[str]]:
    """Print each warning about the data once, on one line, and collect them."""
    seen: list[str] = []

    def show(message: Warning | str, *rest: Any, **more: Any) -> None:
        line = one_line(message)
        if line not in seen:
            seen.append(line)
            print(f"rrmstats: warning: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of changes to come in libraries
        for category in (UserWarning, RuntimeWarning):
            warnings.filterwarnings("always", category=category)
        # Of overflow where it does no harm; that in a formula is the user's concern.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rrmstats\.")
        warnings.showwarning = show
        yield seen
