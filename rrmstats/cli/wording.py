"""What the package says to users of Python, as users of a shell would say it."""

from __future__ import annotations

import re

BINOMIAL = "use --model glm --family binomial"
NO_ROWS = (
    "no rows are left: each has a missing value, or one that a function of the formula cannot take"
)
PHRASES = (
    (r"\bfit\(steps=([12])\)", r"--steps \1"),
    (r"\bpath\(\)", "rrmstats path"),
    (r"(^|for example )level=", r"\1--level "),
    (r"with level=$", "with --level"),
    (r"n_components must be", "--n-components must be"),
    (r", or a fraction of the variance in \(0, 1\)", ""),
    (r",? or use missing='drop' \(NaN only\)", ""),
    (r"use rrmstats\.glm\(\.\.\., family=sm\.families\.Binomial\(\)\)", BINOMIAL),
    (r"(rrmstats\.l|RRML)ogit (?=has|bounds)", "--model logit "),
    (r"eps_bar='auto'", "--eps-bar auto"),
)
# What statsmodels calls the two sides of a formula; columns of these names are in quotes.
SIDES = (
    (r"^\w+ is empty; give at least as many rows as parameters", NO_ROWS),
    (r"(?<!['\"])\bendog\b(?!['\"])", "the response"),
    (r"(?<!['\"])\bexog\b(?!['\"])", "the design"),
)


def in_shell(text: str) -> str:
    """Return a text with options of the command in place of arguments in Python.

    Parameters
    ----------
    text : str
        A message, or a whole summary.

    Returns
    -------
    str

    Examples
    --------
    >>> from rrmstats.cli.wording import in_shell
    >>> in_shell("A second step, fit(steps=2), wins them back.")
    'A second step, --steps 2, wins them back.'
    """
    for said, meant in PHRASES:
        text = re.sub(said, meant, text)
    return text


def error_in_shell(text: str) -> str:
    """Return what a model raised, in words of the command.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from rrmstats.cli.wording import error_in_shell
    >>> error_in_shell("endog must be 0 and 1")
    'the response must be 0 and 1'
    """
    text = in_shell(text)
    for said, meant in SIDES:
        text = re.sub(said, meant, text)
    return text
