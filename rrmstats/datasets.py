"""Data sets that ship with the package, in the manner of ``statsmodels.datasets``.

Each is a CSV file beside an ``.md`` file that tells its source, license, variables and
checksum. Nothing is downloaded.

Examples
--------
>>> from rrmstats import datasets
>>> datasets.available()
['breast_cancer', 'hbk', 'phones', 'stars_cyg']
>>> stars = datasets.stars_cyg.load_pandas()
>>> stars.endog_name, stars.exog_name
('log_light', ['log_te'])
>>> print(datasets.stars_cyg.DESCRSHORT)
Surface temperature and light intensity of 47 stars, four of them giants.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from statsmodels.datasets.utils import Dataset

__all__ = ["ShippedData", "available", "breast_cancer", "hbk", "phones", "stars_cyg"]

# A wheel holds the files inside the package, a checkout beside it.
_FOLDERS = (Path(__file__).parent / "_data", Path(__file__).parents[1] / "datasets")


def _read(filename: str) -> bytes:
    for folder in _FOLDERS:
        if (folder / filename).is_file():
            return (folder / filename).read_bytes()
    looked = " or ".join(str(folder) for folder in _FOLDERS)
    raise FileNotFoundError(f"{filename} is not in {looked}; install rrmstats again")


def _told(heading: str, doc: str) -> property:
    """Return what the ``.md`` file of a data set says under a heading."""
    return property(lambda data: data._sections()[heading], doc=doc)


@dataclass(frozen=True)
class ShippedData:
    """A data set that ships with the package.

    Parameters
    ----------
    name : str
        Name of the two files, without ``.csv`` and ``.md``.
    response : str
        Column that is the response.
    success : str, optional
        For a response in words: the word that counts as 1. ``load_pandas`` adds a column of
        zeros and ones of that name, and ``endog`` is that column.

    Examples
    --------
    >>> from rrmstats.datasets import breast_cancer
    >>> print(breast_cancer.TITLE)
    Wisconsin breast cancer, original
    """

    name: str
    response: str
    success: str | None = None

    def load_pandas(self) -> Dataset:
        """Load the data as pandas objects.

        Returns
        -------
        statsmodels.datasets.utils.Dataset
            ``data`` is the whole table and ``names`` its columns; ``endog`` (Series) and
            ``exog`` (DataFrame, without constant) are its complete rows, with the row labels
            of ``data``; ``endog_name`` and ``exog_name`` their names.

        Raises
        ------
        FileNotFoundError
            If the files were not installed.
        ValueError
            If the CSV file does not have the checksum that its ``.md`` file states.

        Examples
        --------
        >>> from rrmstats.datasets import breast_cancer
        >>> cancer = breast_cancer.load_pandas()
        >>> len(cancer.data), len(cancer.endog)
        (699, 683)
        >>> cancer.endog_name, int(cancer.endog.sum())
        ('malignant', 239)
        """
        data = pd.read_csv(io.BytesIO(self._checked_csv()))
        predictors = [column for column in data.columns if column != self.response]
        endog_name = self.response
        if self.success is not None:
            endog_name = self.success
            data[endog_name] = (data[self.response] == self.success).astype(int)
        complete = data.dropna()
        return Dataset(
            data=data,
            names=list(data.columns),
            endog=complete[endog_name],
            exog=complete[predictors],
            endog_name=endog_name,
            exog_name=predictors,
        )

    def load(self) -> Dataset:
        """Load the data; the same as `load_pandas`, as in statsmodels.

        Returns
        -------
        statsmodels.datasets.utils.Dataset
            See `load_pandas`.

        Examples
        --------
        >>> from rrmstats.datasets import hbk
        >>> hbk.load().endog_name
        'y'
        """
        return self.load_pandas()

    def _checked_csv(self) -> bytes:
        content = _read(f"{self.name}.csv")
        stated = self._sections()["Checksum"].split()[-1]
        found = hashlib.sha256(content).hexdigest()
        if found != stated:
            raise ValueError(
                f"{self.name}.csv has sha256 {found}, but {self.name}.md states {stated}; "
                "the file was changed: install rrmstats again"
            )
        return content

    def _sections(self) -> dict[str, str]:
        """Text of the ``.md`` file by heading; the title and short text come under ``""``."""
        head, *sections = _read(f"{self.name}.md").decode("utf-8").split("\n## ")
        parts = (section.partition("\n") for section in sections)
        return {"": head} | {heading: body.strip() for heading, _, body in parts}

    @property
    def TITLE(self) -> str:
        """Title."""
        return self._sections()[""].partition("\n")[0].removeprefix("# ")

    @property
    def DESCRSHORT(self) -> str:
        """What it is, in a sentence."""
        return self._sections()[""].partition("\n")[2].strip()

    DESCRLONG = _told("Description", "What it is, at length.")
    SOURCE = _told("Source", "Where it comes from.")
    COPYRIGHT = _told("License", "Its license.")
    NOTE = _told("Variables", "Its variables.")


breast_cancer = ShippedData("breast_cancer", response="diagnosis", success="malignant")
hbk = ShippedData("hbk", response="y")
phones = ShippedData("phones", response="calls")
stars_cyg = ShippedData("stars_cyg", response="log_light")


def available() -> list[str]:
    """Names of the data sets of the package.

    Returns
    -------
    list of str
        Each is an attribute of this module, with ``load_pandas``.

    Examples
    --------
    >>> from rrmstats import datasets
    >>> [len(getattr(datasets, name).load_pandas().data) for name in datasets.available()]
    [699, 75, 24, 47]
    """
    return [data.name for data in (breast_cancer, hbk, phones, stars_cyg)]
