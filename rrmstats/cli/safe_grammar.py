"""The grammar of a safe formula: whatever is not in it is refused."""

from __future__ import annotations

import keyword
import unicodedata

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rrmstats.cli.errors import UsageError, nearest, short
from rrmstats.cli.formulas import FUNCTIONS
from rrmstats.cli.safe_tokens import Token

MOST_NESTED = 20
# Columns that a formula may make: a*b*c*... doubles them with each letter.
MOST_COLUMNS = 2000
MOST_POWER = 9
# Operators of formulas and of arithmetic, those that bind least first.
TERM_LEVELS = (("+", "-"), ("*",), (":",))
NUMBER_LEVELS = (("+", "-"), ("*", "/"))


class SafeParser:
    """A parser of one formula, by recursive descent.

    Each method reads one kind of phrase. Those of the formula itself return how many columns
    their phrase makes at most, those of arithmetic whether there is a column in it.
    """

    def __init__(self, tokens: list[Token], frame: pd.DataFrame) -> None:
        self.tokens, self.frame = tokens, frame
        self.place = self.depth = 0

    @property
    def next(self) -> Token:
        """The word to be read next."""
        return self.tokens[self.place]

    def taken(self, *texts: str) -> str | None:
        """Return the next word and pass it, if it is an operator among these."""
        if self.next.kind == "operator" and self.next.text in texts:
            self.place += 1
            return self.tokens[self.place - 1].text
        return None

    def expect(self, text: str) -> None:
        """Pass an operator, or refuse what stands in its place."""
        if self.taken(text) is None:
            raise self.refusal(f"where {text!r} is expected")

    def refusal(self, why: str = "") -> UsageError:
        """Return the error that refuses the next word."""
        if self.next.kind == "end":
            return UsageError(f"the formula ends too early {why}".rstrip())
        before = self.tokens[self.place - 1].text if self.place else ""
        where = why or (f"after {short(before)}" if before else "at the start of a formula")
        return UsageError(f"--safe refuses {short(self.next.text)} {where}")

    def deeper(self) -> None:
        """Count one more level of nesting, or refuse it."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise UsageError(f"--safe refuses a formula nested deeper than {MOST_NESTED} levels")

    def formula(self) -> None:
        """Read ``terms ~ terms`` or ``~ terms``."""
        if self.taken("~") is None:
            self.terms()
            self.expect("~")
        self.terms()
        if self.next.kind != "end":
            raise self.refusal()

    def terms(self, level: int = 0) -> int:
        """Read terms joined by the operators of a level and those that bind more."""
        if level == len(TERM_LEVELS):
            return self.power()
        count = self.terms(level + 1)
        while operator := self.taken(*TERM_LEVELS[level]):
            count = self.limited(_columns(operator, count, self.terms(level + 1)))
        return count

    def limited(self, count: int) -> int:
        """Return how many columns a phrase makes, or refuse it if they are too many."""
        if count > MOST_COLUMNS:
            raise UsageError(f"--safe refuses a formula of more than {MOST_COLUMNS} columns")
        return count

    def power(self) -> int:
        """Read a term and its power, a small whole number."""
        count = self.term()
        if self.taken("**") is None:
            return count
        power = self.next.text
        if power not in [str(number) for number in range(1, MOST_POWER + 1)]:
            raise self.refusal(f"as a power of terms: use 1 to {MOST_POWER}")
        self.place += 1
        return self.limited((1 + count) ** int(power) - 1)

    def term(self) -> int:
        """Read a term: a column, a number, a function, a sign or parentheses."""
        self.deeper()
        if self.taken("+", "-"):
            count = self.term()
        elif self.taken("("):
            count = self.terms()
            self.expect(")")
        elif self.next.kind == "number":
            self.place, count = self.place + 1, 1
        else:
            count = self.factor()
        self.depth -= 1
        return count

    def factor(self) -> int:
        """Read a column, or a function of columns, of a formula."""
        if self.called("C"):
            column = self.column()
            self.expect(")")
            return self.levels(column)
        if self.called("I"):
            self.numbers()
            self.expect(")")
            return 1
        if self.function():
            return 1
        column = self.column()
        return 1 if self.numeric(column) else self.levels(column)

    def called(self, name: str) -> bool:
        """Pass ``name(`` if it comes next."""
        if self.next != ("name", name) or self.tokens[self.place + 1] != ("operator", "("):
            return False
        self.check_not_hidden(name)
        self.place += 2
        return True

    def check_not_hidden(self, name: str) -> None:
        """Raise where a column takes the place of a function."""
        if name in self.frame.columns:
            raise UsageError(f"--safe refuses the function {name}: a column has its name")

    def function(self) -> bool:
        """Read a function of numpy and its argument, if one comes next."""
        start = self.place
        if self.next == ("name", "np") and self.tokens[start + 1] == ("operator", "."):
            self.check_not_hidden("np")
            self.place += 2
            if self.next.kind != "name" or self.next.text not in FUNCTIONS:
                raise self.refusal("as a function of numpy")
            self.place += 1
            self.expect("(")
        elif self.next.text not in FUNCTIONS or not self.called(self.next.text):
            return False
        self.numbers()
        self.expect(")")
        return True

    def column(self) -> str:
        """Read a column, by its name or by ``Q("name")``."""
        if self.called("Q"):
            if self.next.kind != "text":
                raise self.refusal("in Q(): give the name of a column in quotes")
            name = self.next.text[1:-1]
            self.place += 1
            self.expect(")")
        else:
            if self.next.kind != "name":
                raise self.refusal()
            name = self.next.text
            self.check_plain(name)
            self.place += 1
        if name not in self.frame.columns:
            raise UsageError(
                f"--safe refuses {short(name)}: there is no such column; "
                f"{nearest(name, self.frame.columns)}"
            )
        return name

    def check_plain(self, name: str) -> None:
        """Raise where Python would read a name as something else."""
        if self.tokens[self.place + 1] == ("operator", "("):
            raise UsageError(f"--safe refuses the function {short(name)}")
        if keyword.iskeyword(name) or not name.isidentifier():
            raise UsageError(f"--safe refuses {short(name)}; if it is a column, write Q(...)")
        if unicodedata.normalize("NFKC", name) != name:
            raise UsageError(f"--safe refuses {name!a}, which Python reads as another name")

    def numeric(self, column: str) -> bool:
        """Tell whether a column holds numbers."""
        dtype = self.frame[column].dtype
        return is_numeric_dtype(dtype) and not is_bool_dtype(dtype)

    def levels(self, column: str) -> int:
        """Return how many columns a categorical column makes."""
        return self.limited(int(self.frame[column].nunique()))

    def numbers(self, level: int = 0) -> bool:
        """Read arithmetic joined by the operators of a level and those that bind more."""
        if level == len(NUMBER_LEVELS):
            return self.signed()
        varies = self.numbers(level + 1)
        while self.taken(*NUMBER_LEVELS[level]):
            varies |= self.numbers(level + 1)
        return varies

    def signed(self) -> bool:
        """Read a number, a column, a function or parentheses, with its sign and power."""
        self.deeper()
        if self.taken("+", "-"):
            varies = self.signed()
        else:
            varies = self.number()
            if self.taken("**"):
                self.exponent(varies)
        self.depth -= 1
        return varies

    def exponent(self, varies: bool) -> None:
        """Read the power of a column, a number that is not large."""
        if not varies:
            raise UsageError("--safe refuses powers of numbers; write the number")
        self.taken("-")
        if self.next.kind != "number" or not float(self.next.text) <= MOST_POWER:
            raise self.refusal(f"as a power: use a number up to {MOST_POWER}")
        self.place += 1

    def number(self) -> bool:
        """Read a number, a column of numbers, a function or parentheses."""
        if self.next.kind == "number":
            self.place += 1
            return False
        if self.taken("("):
            varies = self.numbers()
            self.expect(")")
            return varies
        if self.function():
            return True
        column = self.column()
        if not self.numeric(column):
            raise UsageError(f"--safe refuses arithmetic with {short(column)}: it is not numeric")
        return True


def _columns(operator: str, left: int, right: int) -> int:
    """Return how many columns two phrases make together, at most."""
    if operator == ":":
        return left * right
    return left + right + (left * right if operator == "*" else 0)
