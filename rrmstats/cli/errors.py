"""Errors of the command line: one line each, and an exit status."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# The most names that an error lists.
LISTED = 12


class CommandError(Exception):
    """What the data or the files do not allow: exit status 1."""

    status = 1


class UsageError(CommandError):
    """What was asked for wrongly: exit status 2."""

    status = 2


def one_line(text: object) -> str:
    r"""Return a text on one line, without characters that a terminal would obey.

    Parameters
    ----------
    text : object
        A message, or an exception.

    Returns
    -------
    str

    Examples
    --------
    >>> from rrmstats.cli.errors import one_line
    >>> one_line("no column\n  named \x1b[31mx")
    'no column named \\x1b[31mx'
    """
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def short(text: str, most: int = 60) -> str:
    """Return a text in quotes, without its middle where it is long."""
    half = most // 2
    return repr(text if len(text) <= most else f"{text[:half]} ... {text[-half:]}")


def nearest(name: str, known: Iterable[str], kind: str = "column") -> str:
    """Return which of the known names may have been meant, or which there are.

    Parameters
    ----------
    name : str
        The name that was given.
    known : iterable of str
        The names that there are.
    kind : str, optional
        What they are names of.

    Returns
    -------
    str
        A clause that ends an error.

    Examples
    --------
    >>> from rrmstats.cli.errors import nearest
    >>> nearest("log_t", ["log_te", "log_light"])
    "did you mean 'log_te'?"
    >>> nearest("age", ["log_te", "log_light"])
    'the columns are log_te, log_light'
    """
    names = [str(each) for each in known]
    folded = {each.casefold(): each for each in reversed(names)}
    close = get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    listed = ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "")
    return f"the {kind}s are {listed}" if names else f"there are no {kind}s"
