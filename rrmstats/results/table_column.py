"""One fit as a column of a table of several, as the package maketables reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rrmstats.results.summary import bad_rows_text

LABELS = {"N": "Observations", "bad_rows": "Bad rows", "explanation": "Explanation"}


class TableColumn:
    """Attributes that ``maketables.ETable`` looks for in the results of any package."""

    @property
    def __maketables_coef_table__(self: Any) -> pd.DataFrame:
        values = {"b": self.params, "se": self.bse, "t": self.tvalues, "p": self.pvalues}
        values["ci95l"], values["ci95u"] = np.transpose(self.conf_int())
        return pd.DataFrame(values, index=list(self.model.data.param_names))

    def __maketables_stat__(self: Any, key: str) -> Any:
        match key:
            case "N":
                return int(self.nobs)
            case "bad_rows":
                return bad_rows_text(self)
            case "explanation":
                return None if self.explanation is None else str(self.explanation)
            case "se_type":
                return self.cov_type
        found = {"r2": "rsquared", "adj_r2": "rsquared_adj", "ll": "llf"}.get(key, key)
        return getattr(self, found, None)

    @property
    def __maketables_depvar__(self: Any) -> str:
        return str(self.model.endog_names)

    @property
    def __maketables_vcov_info__(self: Any) -> dict[str, str]:
        return {"se_type": self.cov_type}

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        return LABELS

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        return list(LABELS)
