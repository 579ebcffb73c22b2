"""Log-likelihood and information criteria of the fitted model of good and bad rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from statsmodels.tools import eval_measures

from rrmstats.results.base import RRMResults

CRITERIA = ("aic", "bic", "aicc", "hqic")


class LikelihoodResults(RRMResults):
    """Results of models whose second step has a likelihood of all rows, good and bad.

    Where `eps_bar` is 0, all numbers are statsmodels'.
    """

    rank: int
    _has_design = True
    _meaningless: ClassVar[dict[str, str]] = {}
    #: Rows above which explanations are compared on a sample.
    _decided_rows: float = np.inf

    @property
    def df_model(self) -> float:
        """Rank of the design less its constant."""
        return float(self.rank - self.model.k_constant)

    @property
    def _classical_llf(self) -> float:
        """Log-likelihood of the rows under their weights, times their number."""
        raise NotImplementedError

    @cached_property
    def _log_likelihood(self) -> float:
        """Log-likelihood of all rows; NaN where it is not known."""
        if self.eps_bar == 0:
            return self._classical_llf
        explained = self._estimate.explained
        if self.steps == 1 or explained is None or self.nobs > self._decided_rows:
            return np.nan
        return explained.chosen.log_likelihood

    @cached_property
    def _extra_params(self) -> int:
        """Number of parameters of the explanation besides those of good rows."""
        explained = self._estimate.explained
        return 0 if explained is None else explained.chosen.n_params

    @property
    def _why_no_likelihood(self) -> str:
        """What to do where there is no likelihood."""
        if self.steps == 1:
            return (
                "needs a model of the bad rows, which the first step does not have; use "
                "fit(steps=2), or test terms with compare() or wald_test()"
            )
        if self.nobs > self._decided_rows:
            return (
                f"is not known: explanations of more than {self._decided_rows:,.0f} rows are "
                "compared on a sample; test terms with compare() or wald_test()"
            )
        return "is not known at an exact fit; see risk and losses"

    @property
    def llf(self) -> float:
        """Log-likelihood of all rows under the fitted model of good and bad ones, in two steps.

        With ``eps_bar=0`` it is statsmodels'. With other bounds it is that of `explanation`:
        compare it only with fits to the same rows.
        """
        if np.isnan(self._log_likelihood):
            raise AttributeError("llf")  # `__getattr__` of the results says why
        return self._log_likelihood

    @property
    def aic(self) -> float:
        """Akaike's criterion of `llf`; see `info_criteria`."""
        return self.info_criteria("aic")

    @property
    def bic(self) -> float:
        """Schwarz's criterion of `llf`; see `info_criteria`.

        The `bic` of `explanations`, which chooses among them, also integrates over coefficients.
        """
        return self.info_criteria("bic")

    def info_criteria(self, crit: str, scale: Any = None, dk_params: float = 0) -> float:
        """Return an information criterion of the fitted model of good and bad rows.

        Parameters
        ----------
        crit : {"aic", "bic", "aicc", "hqic"}
        scale : optional
            Accepted as in statsmodels, and not used.
        dk_params : float, optional
            What to add to the number of parameters: coefficients, and those of the explanation
            such as the share of bad rows. As in statsmodels, the scale does not count.

        Returns
        -------
        float

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> line = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> mean = rrmstats.ols("log_light ~ 1", stars, eps_bar=0.2).fit()
        >>> line.info_criteria("aic") < mean.info_criteria("aic")
        True
        """
        if crit not in CRITERIA:
            raise ValueError(f"crit must be one of {', '.join(CRITERIA)}, got {crit!r}")
        count = self.rank + self._extra_params + dk_params
        return float(getattr(eval_measures, crit)(self.llf, self.wnobs, count))
