"""The words of a safe formula: whatever is not listed here is refused."""

from __future__ import annotations

import re
from typing import NamedTuple

from rrmstats.cli.errors import UsageError, short

# A formula of people is shorter; one that is longer takes patsy long, or too deep.
MOST_CHARACTERS = 4000
MOST_TOKENS = 600
# Digits of a number: enough for any float.
MOST_DIGITS = 25

WORD = re.compile(
    r"""(?P<space>[ ]+)
    |(?P<number>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[^\W\d]\w*)
    |(?P<text>"[^"'\\\n\r]*"|'[^"'\\\n\r]*')
    |(?P<operator>\*\*|[-+*/:()~.])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A word of a formula; `kind` is "number", "name", "text", "operator" or "end"."""

    kind: str
    text: str


def read_tokens(formula: str) -> list[Token]:
    """Return the words of a formula.

    Parameters
    ----------
    formula : str

    Returns
    -------
    list of Token
        The last is of the kind "end".

    Raises
    ------
    UsageError
        Where the formula is too long or has anything that is not allowed.

    Examples
    --------
    >>> from rrmstats.cli.safe_tokens import read_tokens
    >>> [token.text for token in read_tokens("y ~ np.log(x)")]
    ['y', '~', 'np', '.', 'log', '(', 'x', ')', '']
    """
    if len(formula) > MOST_CHARACTERS:
        raise UsageError(
            f"--safe refuses a formula of {len(formula)} characters; it allows {MOST_CHARACTERS}"
        )
    tokens, place = [], 0
    while place < len(formula):
        found = WORD.match(formula, place)
        if found is None:
            raise UsageError(f"--safe refuses the character {formula[place]!a} in a formula")
        place, kind = found.end(), str(found.lastgroup)
        if kind != "space":
            tokens.append(_checked(Token(kind, found.group()), formula[place : place + 1]))
    if len(tokens) > MOST_TOKENS:
        raise UsageError(
            f"--safe refuses a formula of {len(tokens)} words and signs; it allows {MOST_TOKENS}"
        )
    return [*tokens, Token("end", "")]


def _checked(token: Token, following: str) -> Token:
    """Return a word, or raise where Python would join it with what follows."""
    if token.kind == "number":
        if len(token.text) > MOST_DIGITS:
            raise UsageError(f"--safe refuses a number of more than {MOST_DIGITS} characters")
        if following.isalnum() or following in {"_", "."}:
            raise UsageError(f"--safe refuses {short(token.text + following)}, which is no number")
    if token.kind == "name" and following in {'"', "'"}:
        raise UsageError(f"--safe refuses {short(token.text + following)}, a prefix of a text")
    return token
