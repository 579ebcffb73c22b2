"""Tables as files: CSV, TSV, parquet and Excel."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pandas.api.types import infer_dtype

from rrmstats.cli.errors import CommandError, UsageError
from rrmstats.optional import require

STDIN = "-"
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
SEPARATORS = {"csv": ",", "tsv": "\t"}
#: Signs before the decimals of a number.
DECIMALS = (".", ",")
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
        frame = self._parsed(as_text=False)
        for name in frame.columns:
            if infer_dtype(frame[name]) == "decimal":
                frame[name] = frame[name].astype(float)
        return frame

    def frame_for(self, form: str) -> pd.DataFrame:
        """Return the table as another file is to repeat it.

        From text to text each value stays as it was written: 007 stays 007.
        """
        return self._parsed(as_text=self.form in SEPARATORS and form in SEPARATORS)

    def _parsed(self, as_text: bool) -> pd.DataFrame:
        if not self.content.strip():
            raise CommandError(f"{self.name} is empty")
        if self.form in SEPARATORS and b"\0" in self.content[:1000]:
            raise CommandError(
                f"cannot read {self.name}: it is no text file in UTF-8; save it as one, or give "
                "another --input-format"
            )
        if self._semicolons(alone=True):
            raise CommandError(self._advice())
        try:
            sep = self.sep or SEPARATORS.get(self.form)
            frame = parsed(self.content, self.form, sep, self.decimal, as_text)
            if not frame.empty:
                self._check_header(sep)
        except UnicodeDecodeError:
            before = self.content.decode(errors="replace").partition("\ufffd")[0]
            line = before.count("\n") + 1
            raise CommandError(
                f"cannot read {self.name}: line {line} is not UTF-8 text; "
                "save it in UTF-8, if it is a text file at all"
            ) from None
        except (CommandError, ImportError, MemoryError):
            raise
        except Exception as error:  # the libraries raise errors of many classes
            if self._semicolons():
                raise CommandError(self._advice()) from None
            reason = str(error) or type(error).__name__
            raise CommandError(f"cannot read {self.name} as {self.form}: {reason}") from None
        return self._checked(frame)

    def _semicolons(self, alone: bool = False) -> bool:
        """Return whether the header has more semicolons than separators, or them alone."""
        if self.form not in SEPARATORS or self.sep is not None:
            return False
        header = self.content.lstrip().split(b"\n", 1)[0]
        others = header.count(SEPARATORS[self.form].encode())
        return header.count(b";") > others and not (alone and others)

    def _advice(self) -> str:
        return (
            f"cannot read {self.name}: its values seem to be separated by semicolons; give "
            "--sep ';' (and --decimal , if its numbers look like 1,5)"
        )

    def _check_header(self, sep: str | None) -> None:
        """Raise where two columns have the same name, which pandas would change."""
        if self.form == "parquet":
            return
        options = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
        # The stubs of pandas know no keywords in a dictionary.
        file = io.BytesIO(self.content)
        if self.form == "excel":
            names = pd.read_excel(file, engine="openpyxl", **options)  # type: ignore[call-overload]
        else:
            names = pd.read_csv(file, sep=sep, **options)  # type: ignore[call-overload]
        if names.empty:
            raise CommandError(f"the first row of {self.name} is empty; it must name the columns")
        self._check_twice(names.iloc[0])

    def _check_twice(self, names: Iterable[str]) -> None:
        counts = Counter(name for name in names if name != "")
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            raise CommandError(f"{self.name} has columns of the same name: {', '.join(twice)}")

    def _checked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with names of columns that are text and rows numbered from 0."""
        numbered = frame.index.equals(pd.RangeIndex(len(frame)))
        if self.form in SEPARATORS and not numbered:
            if self._semicolons():
                raise CommandError(self._advice())
            raise CommandError(
                f"cannot read {self.name}: its rows have more values than its header has names"
            )
        frame = frame.reset_index(drop=None in frame.index.names)
        frame.columns = frame.columns.map(str)
        self._check_twice(frame.columns)
        if frame.empty:
            raise CommandError(f"{self.name} has no rows of data")
        return frame


def parsed(
    content: bytes, form: str, sep: str | None, decimal: str, as_text: bool = False
) -> pd.DataFrame:
    """Return the content of a file as a table."""
    file = io.BytesIO(content)
    if form == "parquet":
        return pd.read_parquet(file)
    if form == "excel":
        return pd.read_excel(file, engine="openpyxl")
    kept = {"dtype": str, "keep_default_na": False} if as_text else {}
    # The stubs of pandas know no keywords in a dictionary.
    return pd.read_csv(file, sep=sep, decimal=decimal, low_memory=False, **kept)  # type: ignore[call-overload]


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
    check_signs(form, sep, decimal)
    require_form(form)
    if data == STDIN:
        if sys.stdin is None:
            raise CommandError("standard input is closed; give a file")
        return Source("standard input", form, sys.stdin.buffer.read(), sep, decimal)
    try:
        return Source(data, form, Path(data).read_bytes(), sep, decimal)
    except FileNotFoundError:
        raise CommandError(f"there is no file {data}") from None
    except OSError as error:
        raise CommandError(f"cannot read {data}: {error.strerror}") from None


def check_signs(form: str, sep: str | None, decimal: str) -> None:
    """Raise where ``--sep`` or ``--decimal`` is given for a format that is no text."""
    if form not in SEPARATORS and (sep is not None or decimal != DECIMALS[0]):
        raise UsageError(f"--sep and --decimal are for {' and '.join(SEPARATORS)}, not {form}")


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
        for row in writer.book.active.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    cell.data_type = "s"
