"""Tables as files: CSV, TSV, parquet and Excel."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import infer_dtype

from rrmstats.cli.errors import CommandError, UsageError
from rrmstats.optional import require

STDIN = "-"
SUFFIXES = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv"},
    **{".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel"},
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
SEPARATORS = {"csv": ",", "tsv": "\t"}
#: Signs before the decimals of a number.
DECIMALS = (".", ",")
# Options of pandas that leave each value as it is written.
AS_WRITTEN = {"dtype": str, "keep_default_na": False}
# The module that reads and writes a format.
MODULES = {"parquet": "pyarrow", "excel": "openpyxl"}


@dataclass(frozen=True)
class Source:
    """A table as a user gave it.

    Attributes
    ----------
    name : str
        The path, or "standard input".
    form : str
        One of `FORMATS`.
    content : bytes
        All that the file holds.
    sep : str, optional
        What separates the values of text; by default as in its format.
    decimal : str
        One of `DECIMALS`.
    """

    name: str
    form: str
    content: bytes
    sep: str | None = None
    decimal: str = DECIMALS[0]

    def frame(self) -> pd.DataFrame:
        """Return the table with its columns typed and its rows numbered from 0."""
        frame = self._parsed()
        exact = [name for name in frame.columns if infer_dtype(frame[name]) == "decimal"]
        return frame.astype(dict.fromkeys(exact, float))

    def frame_for(self, form: str) -> pd.DataFrame:
        """Return the table as another file is to repeat it.

        From text to text each value stays as it was written: 007 stays 007.
        """
        return self._parsed(**AS_WRITTEN if {self.form, form} <= SEPARATORS.keys() else {})

    def _parsed(self, **options: Any) -> pd.DataFrame:
        """Return a table with names of columns that are text and rows numbered from 0."""
        try:
            frame = self._read(options)
        except UnicodeDecodeError:
            line = self.content.decode(errors="replace").partition("\ufffd")[0].count("\n") + 1
            advice = "save it in UTF-8, if it is a text file at all"
            raise self._unreadable(f"line {line} is not UTF-8 text; {advice}") from None
        except (CommandError, ImportError, MemoryError):
            raise
        except Exception as error:  # the libraries raise errors of many classes
            self._check_semicolons()
            reason = str(error) or type(error).__name__
            raise CommandError(f"cannot read {self.name} as {self.form}: {reason}") from None
        if self.form in SEPARATORS and not frame.index.equals(pd.RangeIndex(len(frame))):
            self._check_semicolons()
            raise self._unreadable("its rows have more values than its header has names")
        frame = frame.reset_index(drop=None in frame.index.names)
        frame.columns = frame.columns.map(str)
        self._check_twice(frame.columns)
        if frame.empty:
            raise CommandError(f"{self.name} has no rows of data")
        return frame

    def _unreadable(self, reason: str) -> CommandError:
        return CommandError(f"cannot read {self.name}: {reason}")

    def _read(self, options: dict[str, Any]) -> pd.DataFrame:
        """Return the table as pandas reads it, after a look at its header."""
        if not self.content.strip():
            raise CommandError(f"{self.name} is empty")
        file = io.BytesIO(self.content)
        if self.form == "parquet":
            return pd.read_parquet(file)
        read: Callable[..., Any] = partial(pd.read_excel, engine="openpyxl")
        if self.form in SEPARATORS:
            if b"\0" in self.content[:1000]:
                advice = "save it as one, or give another --input-format"
                raise self._unreadable(f"it is not a text file in UTF-8; {advice}")
            self._check_semicolons(alone=True)
            sep = self.sep or SEPARATORS[self.form]
            read = partial(pd.read_csv, sep=sep, decimal=self.decimal, low_memory=False)
        header = read(file, header=None, nrows=1, **AS_WRITTEN)
        if header.empty:
            raise CommandError(f"the first row of {self.name} is empty; it must name the columns")
        self._check_twice(header.iloc[0])  # pandas would change a name that is there twice
        file.seek(0)
        return read(file, **options)

    def _check_semicolons(self, alone: bool = False) -> None:
        """Raise where the header has more semicolons than separators, or them alone."""
        if self.form not in SEPARATORS or self.sep is not None:
            return
        header = self.content.lstrip().split(b"\n", 1)[0]
        others = header.count(SEPARATORS[self.form].encode())
        if header.count(b";") > others and not (alone and others):
            advice = "give --sep ';' (and --decimal , if its numbers look like 1,5)"
            raise self._unreadable(f"its values seem to be separated by semicolons; {advice}")

    def _check_twice(self, names: Iterable[str]) -> None:
        counts = Counter(name for name in names if name != "")
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            raise CommandError(f"{self.name} has columns of the same name: {', '.join(twice)}")


def read_source(
    data: str, form: str | None, sep: str | None = None, decimal: str = DECIMALS[0]
) -> Source:
    """Return the table that a user gave.

    Parameters
    ----------
    data : str
        A path, or ``-`` for standard input.
    form : str, optional
        One of `FORMATS`; by default what the name ends in, and CSV for standard input.
    sep : str, optional
        What separates the values of text.
    decimal : str, optional
        One of `DECIMALS`.

    Returns
    -------
    Source
    """
    if form is None:
        form = "csv" if data == STDIN else form_of(Path(data), "--input-format")
    if form not in SEPARATORS and (sep is not None or decimal != DECIMALS[0]):
        raise UsageError(f"--sep and --decimal are for {' and '.join(SEPARATORS)}, not {form}")
    require_form(form)
    name = "standard input" if data == STDIN else data
    if data == STDIN and sys.stdin is None:
        raise CommandError("standard input is closed; give a file")
    try:
        content = sys.stdin.buffer.read() if data == STDIN else Path(data).read_bytes()
        return Source(name, form, content, sep, decimal)
    except FileNotFoundError:
        raise CommandError(f"there is no file {data}") from None
    except OSError as error:
        raise CommandError(f"cannot read {data}: {error.strerror}") from None


def form_of(path: Path, option: str | None = None) -> str:
    """Return the format of a table that the name of its file ends in."""
    if path.suffix.lower() in SUFFIXES:
        return SUFFIXES[path.suffix.lower()]
    advice = f", or give {option}" if option else ""
    raise UsageError(
        f"the name {path} does not say what it is: use one of {', '.join(SUFFIXES)}{advice}"
    )


def require_form(form: str) -> None:
    """Raise where what reads and writes a format is not installed."""
    if form in MODULES:
        require(MODULES[form], "cli")


def table_bytes(
    frame: pd.DataFrame, form: str, sep: str | None = None, decimal: str = DECIMALS[0]
) -> bytes:
    r"""Return a table as the content of a file, without its index.

    Parameters
    ----------
    frame : DataFrame
    form : str
        One of `FORMATS`.
    sep : str, optional
        What separates the values of CSV.
    decimal : str, optional
        One of `DECIMALS`, for numbers in text.

    Returns
    -------
    bytes

    Examples
    --------
    >>> import pandas as pd
    >>> from rrmstats.cli.tables import table_bytes
    >>> table_bytes(pd.DataFrame({"a": [1, 2]}), "csv")
    b'a\n1\n2\n'
    """
    if form in SEPARATORS:
        between = sep if sep and form == "csv" else SEPARATORS[form]
        text = frame.to_csv(sep=between, decimal=decimal, index=False, lineterminator="\n")
        return text.encode("utf-8")
    file = io.BytesIO()
    try:
        if form == "parquet":
            frame.to_parquet(file, index=False, engine="pyarrow")
        else:
            write_sheet(frame, file)
    except Exception as error:  # the libraries raise errors of many classes
        reason = str(error) or type(error).__name__
        raise CommandError(f"cannot write the table as {form}: {reason}") from None
    return file.getvalue()


def write_sheet(frame: pd.DataFrame, file: io.BytesIO) -> None:
    """Write a table as Excel, with text that begins with = as text and not as a formula."""
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        frame.to_excel(writer, index=False)
        for cell in chain.from_iterable(writer.book.active.iter_rows()):
            if cell.data_type == "f":
                cell.data_type = "s"
