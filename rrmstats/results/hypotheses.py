"""Tests of hypotheses: smaller models, and pairs of levels."""

from __future__ import annotations

from typing import Any

from statsmodels.base.model import LikelihoodModelResults
from statsmodels.stats.contrast import ContrastResults

from rrmstats.results.inference import nested_restriction


class WaldResults(LikelihoodModelResults):
    """Results whose parameters can be tested; statsmodels has `t_test` and `wald_test`."""

    model: Any
    nobs: float

    def t_test_pairwise(self, term_name: str, *args: Any, **kwargs: Any) -> Any:
        """Test the differences between all pairs of levels of a categorical term.

        Parameters
        ----------
        term_name : str
            A categorical term of the formula, such as ``"C(region)"``.
        *args, **kwargs
            `method`, `alpha` and `factor_labels` of statsmodels.

        Returns
        -------
        statsmodels MultiCompResult

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> hbk["third"] = ["abc"[i % 3] for i in range(len(hbk))]
        >>> res = rrmstats.ols("y ~ x1 + third", hbk, eps_bar=0.2).fit()
        >>> res.t_test_pairwise("third").result_frame.index.tolist()
        ['b-a', 'c-a', 'c-b']
        """
        try:
            return super().t_test_pairwise(term_name, *args, **kwargs)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"t_test_pairwise compares the levels of a categorical term of a formula, got "
                f"{term_name!r}; test other parameters with t_test()"
            ) from None

    def compare(self, other: WaldResults) -> ContrastResults:
        """Test a smaller model against this one by Wald's test.

        Likelihood ratios and sums of squares do not have their usual distributions under
        estimated weights; Wald's test with this covariance does.

        Parameters
        ----------
        other : results
            Fit of a model nested in this one: its predictors are among those of this one.

        Returns
        -------
        statsmodels ContrastResults
            Test that the parameters which `other` lacks are zero.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> large = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
        >>> small = rrmstats.ols("y ~ x1", hbk, eps_bar=0.2).fit()
        >>> bool(large.compare(small).pvalue > 0.05)
        True
        """
        restriction = nested_restriction(self.model.exog_names, other.model.exog_names)
        if other.nobs != self.nobs:
            raise ValueError(
                f"the models were fitted to {self.nobs:g} and {other.nobs:g} rows; fit both to "
                "the same rows"
            )
        return self.wald_test(restriction, scalar=True)
