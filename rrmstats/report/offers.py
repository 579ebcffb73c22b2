"""What a report asks of results and of their models."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Protocol

import pandas as pd

from rrmstats.plotting import offers


class ReportedModel(offers.Model, Protocol):
    """What the report asks of every model."""

    @property
    def eps_bar(self) -> float:
        """Upper bound on the fraction of corrupted rows."""


class Replicates(Protocol):
    """What the report asks of a bootstrap."""

    def describe(self) -> str:
        """Return the kind of bootstrap in a few words."""


class ReportedResults(offers.Results, Protocol):
    """What the report asks of the results of every model."""

    @property
    def model(self) -> ReportedModel:
        """The model that was fitted."""

    @property
    def seen_rows(self) -> ReportedResults:
        """The results as pictures draw them: of a sample where rows are in partitions."""

    @property
    def nobs(self) -> float:
        """Number of rows."""

    @property
    def starts(self) -> Sized:
        """The starts of the search, one per row."""

    @property
    def bootstrap(self) -> Replicates | None:
        """The bootstrap behind the standard errors; None if there was none."""

    @property
    def cov_type(self) -> str:
        """How standard errors are found."""

    @property
    def use_t(self) -> bool:
        """Whether tests use Student's t distribution."""

    def summary(self) -> Any:
        """Return the tables of the fit as statsmodels' Summary."""

    def suspicious_table(self, k: int) -> pd.DataFrame:
        """Return at most k rows, those most likely bad or in one step of smallest weight."""

    def outlier_table(self, k: int) -> pd.DataFrame:
        """Return at most k flagged rows, the smallest weights first."""
