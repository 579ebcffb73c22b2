"""The commands and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import rrmstats
from rrmstats.cli import commands
from rrmstats.cli.errors import UsageError
from rrmstats.cli.model import COV_OPTIONS, FAMILIES, LINKS, MODELS
from rrmstats.cli.safe import ALLOWED
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
    option = command("path", commands.run_path, text)
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
    option("--efficiency", type=_efficiency, help=argparse.SUPPRESS)
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


def _count(text: str) -> int:
    """Return a whole number from 1 on, or raise what argparse reports."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, got {text!r}")
    return int(text)


def _components(text: str) -> float:
    """Return a whole number from 1 on or a share, or raise what argparse reports."""
    if 0 < _number(text) < 1:
        return _number(text)
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, 1 or more, or a share in (0, 1), got {text!r}"
        )
    return int(text)


def _sign(text: str) -> str:
    """Return one character that can separate values, or raise what argparse reports."""
    sign = "\t" if text == r"\t" else text
    if len(sign) != 1 or sign.isalnum() or sign in '"\r\n.-+':
        raise argparse.ArgumentTypeError(f"must be one character such as ';', got {text!r}")
    return sign


def _bound(text: str) -> float | str:
    """Return a share in [0, 1) or "auto", or raise what argparse reports."""
    if text == "auto":
        return text
    share = _number(text)
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"must be in [0, 1) or auto, got {text!r}")
    return share


def _efficiency(text: str) -> float:
    """Return a share in (0, 1), or raise what argparse reports."""
    share = _number(text)
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1), got {text!r}")
    return share


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
