"""What the results of models of several variables share."""

from __future__ import annotations

from typing import Any, NoReturn

import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.results.base import RRMResults
from rrmstats.results.explanations import VARIABLES, Wording
from rrmstats.results.labels import Labeled, LabeledTable, labeled, labeled_table

WALD = "use wald_test() with restrictions on the parameters"


class MultivariateResults(RRMResults):
    """Results whose parameters are about variables rather than predictors."""

    def predict(self, *args: object, **kwargs: object) -> Any:
        """Refuse, as the model does: there is no response to predict."""
        return self.model.predict()

    def wald_test_terms(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: variables are not terms."""
        raise NotImplementedError(f"there are no predictors to test; {WALD}")

    def t_test_pairwise(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: variables are not terms."""
        raise NotImplementedError(f"there are no terms to compare; {WALD}")

    def compare(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: models of other variables are not nested."""
        raise NotImplementedError(f"models of several variables are not nested; {WALD}")

    @property
    def _wording(self) -> Wording:
        return VARIABLES

    def _by_variable(self, values: Array) -> Labeled:
        return labeled(values, self.model.variable_index)

    def _variable_table(self, values: Array, columns: list[str] | None = None) -> LabeledTable:
        names = self.model.variables if columns is None else columns
        return labeled_table(values, self.model.variable_index, names)

    def _by_row(self, values: Array) -> Labeled:
        return labeled(values, self.model.data.row_labels)

    def _row_table(
        self, values: Array, index: pd.Index | None, columns: list[str]
    ) -> LabeledTable:
        return labeled_table(values, index, columns)

    def _summary_subject(self) -> tuple[str, list[str] | None]:
        return ("Variables:", [str(len(self.model.variables))])
