"""What the package says to users of Python, as users of a shell would say it."""

from __future__ import annotations

import re

PHRASES = (
    (r"fit\(efficiency=([\d.]+)\)", r"--efficiency \1"),
    (r"\bpath\(\)", "rrmstats path"),
    (r"(^|for example )level=", r"\1--level "),
    (r"with level=$", "with --level"),
    (r"n_components must be", "--n-components must be"),
    (r", or a fraction of the variance in \(0, 1\)", ""),
    (r",? or use missing='drop' \(NaN only\)", ""),
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
    >>> in_shell("fit(efficiency=0.95) makes it 95%.")
    '--efficiency 0.95 makes it 95%.'
    """
    for said, meant in PHRASES:
        text = re.sub(said, meant, text)
    return text
