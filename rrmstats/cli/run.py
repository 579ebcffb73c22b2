"""The command from beginning to end: its status, its errors and its warnings."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from statsmodels.tools.sm_exceptions import MissingDataError

import rrmstats
from rrmstats.cli import commands
from rrmstats.cli.errors import CommandError, UsageError, one_line
from rrmstats.cli.formulas import ALLOWED
from rrmstats.cli.model import COV_OPTIONS, FAMILIES, LINKS, MODELS
from rrmstats.cli.summaries import SUMMARIES
from rrmstats.cli.tables import DECIMALS, FORMATS, SUFFIXES

FORMULA = (
    "formula as in R or statsmodels, such as 'y ~ x1 + np.log(x2) + C(group)'; for pca and cov "
    "one-sided, '~ a + b'. Formulas run Python code: take them only from people you trust, or "
    "give --safe"
)
DATA = f"file ({', '.join(SUFFIXES)}), or - for standard input"
BOUND = "upper bound on the share of bad rows, in [0, 1) (default: chosen from the data)"
FORCE = "replace files that exist"


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are raised, to be printed on one line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the options."""
        if message.startswith("unrecognized arguments") and ": -" not in message:
            message += " (a formula needs quotes)"
        raise UsageError(f"{message}; see {self.prog} --help")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = OneLineParser(
        prog="rrmstats",
        description=rrmstats.__doc__,
        epilog="Exit status: 0; 1 where the data or the files do not allow it; 2 for wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"rrmstats {rrmstats.__version__}")
    added = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., None], text: str) -> Callable[..., Any]:
        described = f"{text[0].upper()}{text[1:]}."
        new = added.add_parser(name, help=text, description=described)
        new.set_defaults(run=run)
        return new.add_argument

    option = command("fit", commands.run_fit, "fit a model to a file of data")
    _add_model(option)
    option("--eps-bar", type=_bound, default="auto", metavar="SHARE", help=BOUND)
    text = "of the summary (default: text)"
    option("--format", choices=SUMMARIES, default="text", help=text)
    _add_file(option, "--report", "write tables and pictures as one HTML page")
    _add_file(
        option, "--weights", "write the data with weight, prob_bad, outlier and residual beside it"
    )

    text = "fit a model at all values of eps_bar, and report what changes"
    option = command("path", commands.run_fit, text)
    _add_model(option)
    _add_file(option, "--report", "write a page to explore (needs plotly)")
    _add_file(option, "--plot", "write a picture: .png, .pdf or .svg")
    _add_file(option, "--table", "write the estimates at each value")

    text = "list the data sets of the package, or print one of them as CSV"
    option = command("datasets", commands.run_datasets, text)
    option("name", nargs="?", metavar="NAME", help="data to print")

    text = "run the experiments of the paper, in a checkout"
    option = command("replicate", commands.run_replicate, text)
    text = "such as figure3a, or short, 3a; tables (default: all)"
    option("name", nargs="?", metavar="NAME", help=text)
    option("--runs", type=_count, help="runs of each (default: as in the paper)")
    _add_file(option, "--out", "folder of pictures and tables", "rrmstats_replication", "DIR")
    text = "processes, where joblib is installed (default: %(default)s)"
    option("--jobs", type=_count, default=2, help=text)

    text = "fit the stars of CYG OB1 and compare with least squares"
    option = command("demo", commands.run_demo, text)
    _add_file(option, "--out", "picture", "rrmstats_demo.png")
    option("--force", action="store_true", help=FORCE)
    return parser


def _add_model(option: Callable[..., Any]) -> None:
    option("formula", metavar="FORMULA", help=FORMULA)
    option("data", metavar="DATA", help=DATA)
    option("--model", choices=MODELS, default="ols", help="(default: ols)")
    option("--steps", type=int, choices=(1, 2), default=2, help="1 or 2 (default: 2)")
    kinds = ("sandwich", *COV_OPTIONS, "bootstrap")
    option("--cov-type", choices=kinds, help="of standard errors (default: sandwich)")
    text = "for --cov-type cluster: rows of one group may depend on each other"
    option("--cluster", metavar="COLUMN", help=text)
    text = "for --cov-type HAC: rows so far apart, in the order of time, may depend on each other"
    option("--maxlags", type=_count, metavar="N", help=text)
    option("--family", choices=FAMILIES, help="for glm (default: gaussian)")
    option("--link", choices=LINKS, help="for glm (default: that of the family)")
    option("--level", help="for logit: the value of the response that counts as 1")
    option("--exposure", metavar="COLUMN", help="for counts, and glm with a log link")
    option("--groups", metavar="COLUMN", help="groups of rows that share a weight")
    text = "for pca: their number, or the share of the variance (default: 1)"
    option("--n-components", type=_components, metavar="K", help=text)
    text = "of DATA (default: by its name; csv for -)"
    option("--input-format", choices=FORMATS, help=text)
    option("--sep", type=_sign, metavar="CHAR", help="between values of CSV (default: a comma)")
    text = "in numbers of CSV (default: .)"
    option("--decimal", choices=DECIMALS, default=DECIMALS[0], help=text)
    _add_file(option, "--out", "write the summary to a file, not to standard output")
    option("--safe", action="store_true", help=f"allow only {ALLOWED} in formulas")
    option("--force", action="store_true", help=FORCE)


def _add_file(
    option: Callable[..., Any], name: str, text: str, default: str = "", metavar: str = "FILE"
) -> None:
    path = Path(default) if default else None
    shown = f"{text} (default: {default})" if default else text
    option(name, type=Path, default=path, metavar=metavar, help=shown)


def _value(
    convert: Callable[[str], Any], allowed: Callable[[Any], bool], words: str
) -> Callable[[str], Any]:
    """Return a function that reads an option, or raises what argparse reports."""

    def read(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = float("nan")
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"must be {words}, got {text!r}")
        return value

    return read


# A whole number is one, and no share.
_count = _value(int, lambda value: value >= 1, "a whole number, 1 or more")
_components = _value(
    lambda text: int(text) if text.isdecimal() else float(text),
    lambda value: value >= 1 if isinstance(value, int) else 0 < value < 1,
    "a whole number, 1 or more, or a share in (0, 1)",
)
_bound = _value(
    lambda text: text if text == "auto" else float(text),
    lambda value: value == "auto" or 0 <= value < 1,
    "in [0, 1) or auto",
)
_sign = _value(
    lambda text: "\t" if text == r"\t" else text,
    lambda sign: len(sign) == 1 and not sign.isalnum() and sign not in '"\r\n.-+',
    "one character such as ';'",
)


# What a shell reports of a process that Ctrl-C or a closed pipe has ended.
INTERRUPTED, CLOSED_PIPE = 130, 141
# What data, files and missing packages raise; anything else is an error of this package.
EXPECTED = (
    *(ArithmeticError, ImportError, MemoryError, OSError),
    *(CommandError, MissingDataError, RuntimeError, TypeError, ValueError),
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
    except BrokenPipeError:
        # What is still to be printed goes nowhere, so that Python does not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except EXPECTED as error:
        print(f"rrmstats: error: {one_line(error) or type(error).__name__}", file=sys.stderr)
        return getattr(error, "status", CommandError.status)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def encode_stdout() -> None:
    """Have files and pipes get UTF-8, and terminals no character that they cannot show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        terminal = sys.stdout.isatty()
        sys.stdout.reconfigure(encoding=None if terminal else "utf-8", errors="backslashreplace")


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
