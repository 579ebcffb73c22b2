"""The commands and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import rrmstats
from rrmstats.cli.errors import UsageError
from rrmstats.cli.fits import run_fit
from rrmstats.cli.formats import SUMMARIES
from rrmstats.cli.making import FAMILIES, LINKS, MODELS
from rrmstats.cli.paths import run_path
from rrmstats.cli.safe_formulas import ALLOWED
from rrmstats.cli.shipped import run_datasets
from rrmstats.cli.tables import DECIMALS, FORMATS, SUFFIXES

FORMULA = (
    "formula as in R or statsmodels, such as 'y ~ x1 + np.log(x2) + C(group)'; for pca and cov "
    "one-sided, '~ a + b'. Formulas run Python code: take them only from people you trust, or "
    "give --safe"
)
DATA = f"file ({', '.join(SUFFIXES)}), or - for standard input"


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
        description=f"{rrmstats.__doc__} Without a command, demo is run.",
        epilog="Exit status: 0; 1 where the data or the files do not allow it; 2 for wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"rrmstats {rrmstats.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_fit(commands)
    _add_path(commands)
    _add_datasets(commands)
    _add_replicate(commands)
    _add_demo(commands)
    return parser


def _command(commands: Any, name: str, run: Callable[..., None], text: str) -> Any:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=run)
    return parser


def _add_fit(commands: Any) -> None:
    parser = _command(commands, "fit", run_fit, "fit a model to a file of data")
    _add_model(parser)
    parser.add_argument(
        "--eps-bar",
        type=_bound,
        default="auto",
        metavar="SHARE",
        help="upper bound on the share of bad rows, in [0, 1) (default: chosen from the data)",
    )
    parser.add_argument(
        "--format", choices=SUMMARIES, default="text", help="of the summary (default: text)"
    )
    _add_file(parser, "--out", "write the summary to a file, not to standard output")
    _add_file(parser, "--report", "write tables and pictures as one HTML page")
    _add_file(parser, "--weights", "write the data with weight, outlier and residual beside it")
    _add_switches(parser)


def _add_path(commands: Any) -> None:
    text = "fit a model at all values of eps_bar, and tell what changes"
    parser = _command(commands, "path", run_path, text)
    _add_model(parser)
    _add_file(parser, "--report", "write a page to explore (needs plotly)")
    _add_file(parser, "--plot", "write a picture: .png, .pdf or .svg")
    _add_file(parser, "--table", "write the estimates at each value")
    _add_switches(parser)


def _add_model(parser: Any) -> None:
    parser.add_argument("formula", metavar="FORMULA", help=FORMULA)
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--model", choices=MODELS, default="ols", help="(default: ols)")
    parser.add_argument("--steps", type=int, choices=(1, 2), default=2, help="1 or 2 (default: 2)")
    parser.add_argument("--efficiency", type=_efficiency, help=argparse.SUPPRESS)
    parser.add_argument("--family", choices=FAMILIES, help="for glm (default: gaussian)")
    parser.add_argument("--link", choices=LINKS, help="for glm (default: that of the family)")
    parser.add_argument("--level", help="for logit: the value of the response that counts as 1")
    parser.add_argument("--exposure", metavar="COLUMN", help="for poisson and glm with a log link")
    parser.add_argument("--groups", metavar="COLUMN", help="groups of rows that share a weight")
    parser.add_argument("--n-components", type=_count, metavar="K", help="for pca (default: 1)")
    parser.add_argument(
        "--input-format", choices=FORMATS, help="of DATA (default: by its name; csv for -)"
    )
    parser.add_argument(
        "--sep", type=_sign, metavar="CHAR", help="between values of CSV (default: a comma)"
    )
    parser.add_argument(
        "--decimal", choices=DECIMALS, default=DECIMALS[0], help="in numbers of CSV (default: .)"
    )


def _add_file(parser: Any, option: str, text: str) -> None:
    parser.add_argument(option, type=Path, metavar="FILE", help=text)


def _add_switches(parser: Any) -> None:
    parser.add_argument("--safe", action="store_true", help=f"allow only {ALLOWED} in formulas")
    _add_force(parser)


def _add_force(parser: Any) -> None:
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def _add_datasets(commands: Any) -> None:
    text = "list the data that ship, or print one of them as CSV"
    parser = _command(commands, "datasets", run_datasets, text)
    parser.add_argument("name", nargs="?", metavar="NAME", help="data to print")


def _add_replicate(commands: Any) -> None:
    text = "run the experiments of the paper"
    parser = _command(commands, "replicate", _run_replicate, text)
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="such as figure3a, or short, 3a; tables (default: all)",
    )
    parser.add_argument("--runs", type=_count, help="runs of each (default: as in the paper)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("rrmstats_replication"),
        metavar="DIR",
        help="folder of pictures and tables (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=_count,
        default=2,
        help="processes, where joblib is installed (default: %(default)s)",
    )


def _run_replicate(args: argparse.Namespace) -> None:
    from rrmstats.cli.paper import run_replicate  # experiments take long to import

    run_replicate(args)


def _run_demo(args: argparse.Namespace) -> None:
    from rrmstats.cli.demo import run_demo

    run_demo(args)


def _add_demo(commands: Any) -> None:
    text = "fit the stars of CYG OB1 and compare with least squares (the default)"
    parser = _command(commands, "demo", _run_demo, text)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("rrmstats_demo.png"),
        metavar="FILE",
        help="picture (default: %(default)s)",
    )
    _add_force(parser)


def _count(text: str) -> int:
    """Return a whole number from 1 on, or raise what argparse reports."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, got {text!r}")
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
    if share is None or not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"must be in [0, 1) or auto, got {text!r}")
    return share


def _efficiency(text: str) -> float:
    """Return a share in (0, 1), or raise what argparse reports."""
    share = _number(text)
    if share is None or not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1), got {text!r}")
    return share


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
