"""Results of a generalized linear model."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.genmod.families import Binomial, Gaussian
from statsmodels.genmod.families.links import Identity
from statsmodels.genmod.generalized_linear_model import GLM

from rrmstats import plotting
from rrmstats.core.block_array import blocked, row_map
from rrmstats.core.entropy import Array
from rrmstats.interchange import as_pandas
from rrmstats.losses.generalized import GeneralizedEstimate
from rrmstats.results.base import NEEDS_DATA, DataRemoved, drawn, refused, standardized
from rrmstats.results.explanations import AT_BOUND, BY_FAMILY, Wording, separated_note
from rrmstats.results.labels import NewRows
from rrmstats.results.means import LinkFunctions, MeanResults

# Share of eps_bar from which the estimated share of bad rows counts as all of it.
# Convention: 99 per cent.
ALL_SPENT = 0.99
#: What a linear regression has besides, other generalized linear models not.
OF_REGRESSION = ("rsquared", "rsquared_adj", "mse_resid", "fvalue", "f_pvalue")


class RRMGLMResults(MeanResults):
    """Results of a generalized linear model; see `RRMResults` for what all models share.

    Attributes
    ----------
    params : Series or ndarray, shape (k,)
        Consistent parameters: on clean data the weighted scores have expectation zero at the true
        ones.
    raw_params : Series or ndarray, shape (k,)
        The paper's, the minimizer of the risk.
    scale : float
        Dispersion of the good rows; 1 where the family has none. Losses, risk and lambda are in
        units of it.
    family : statsmodels family
    rank : int
        Rank of the design.

    Examples
    --------
    >>> import pandas as pd, rrmstats
    >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
    >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
    >>> res.family.__class__.__name__, res.scale
    ('Poisson', 1.0)
    """

    _estimate: GeneralizedEstimate
    _estimate_attrs = ("scale",)
    _distance_name = "deviance residual"
    scale: float
    _title = "Robust Risk Minimization: Generalized Linear Model"
    _corrected = True
    _dimension = 1
    _row_attrs = (
        *MeanResults._row_attrs,
        *("fittedvalues", "mu", "resid_deviance", "resid_scaled", "resid_quantile"),
        *("resid_anscombe", "resid_anscombe_scaled", "resid_anscombe_unscaled"),
    )
    _meaningless: ClassVar[dict[str, str]] = refused(
        ratio="score_test llr llr_pvalue im_ratio compare_lr_test",
        likelihood="llnull llf_scaled bic_deviance",
        deviances=(
            "deviance null_deviance null pearson_chi2 ssr ess centered_tss uncentered_tss "
            "mse_model mse_total"
        ),
        f_test="compare_f_test compare_lm_test",
        known_weights="HC0_se HC1_se HC2_se HC3_se cov_HC0 cov_HC1 cov_HC2 cov_HC3",
        linear=f"{' '.join(OF_REGRESSION)} condition_number eigenvals wresid",
        empirical="el_test conf_int_el",
        optimizer="fit_history method fit_options mle_retvals mle_settings set_null_options",
        pictures="plot_ceres_residuals get_diagnostic",
    )

    def __init__(self, model: Any, *args: Any) -> None:
        super().__init__(model, *args)
        self.family = model.family

    plot_fit = drawn(plotting.plot_fit)

    def __getattr__(self, name: str) -> Any:
        model = self.__dict__.get("model")
        if name in OF_REGRESSION and model is not None and is_regression(model.family):
            return self._of_regression(name)
        return super().__getattr__(name)

    @property
    def _noise(self) -> float | None:  # type: ignore[override]
        return self.scale if is_regression(self.family) else None

    def _of_regression(self, name: str) -> float:
        """Return what is that of a linear regression, such as those of `wls`."""
        if name == "mse_resid":
            return self.scale
        if name.startswith("f"):
            test = self._slopes_test()
            return float(test.fvalue if name == "fvalue" else test.pvalue)
        if self._without_data:
            raise DataRemoved(f"{name} {NEEDS_DATA}")
        rsquared = self._explained_variance(self.weights * self.model.var_weights)
        return rsquared if name == "rsquared" else self._adjusted(rsquared)

    def _by_family(self, name: str, mu: Array, scale: float) -> Array:
        """Return what a method of the family tells of each row at means and a dispersion, (n,)."""
        rows = self.model.endog, mu, self.model.var_weights, self.model.n_trials
        return row_map(_of_family, *rows, tail=(), family=self.family, name=name, scale=scale)

    def _weighted_llf(self, mu: Array, mass: Array, scale: float) -> float:
        """Return the log-likelihood of rows that count as often as a mass (n,) says."""
        return float(mass @ self._by_family("loglike_obs", mu, scale))

    @property
    def _classical_llf(self) -> float:
        """Log-likelihood of the rows under their weights, times their number."""
        scale = self.scale
        if isinstance(self.family, Gaussian):  # the variance of maximum likelihood
            scale = float(self.weights @ (self.model.var_weights * self._off**2))
        return self._weighted_llf(self.fittedvalues, self.wnobs * self.weights, scale)

    @cached_property
    def _null_llf(self) -> float:  # type: ignore[override]  # found when it is asked for
        """Log-likelihood of an intercept alone, under the weights of the rows."""
        self.model.refuse_partitions("prsquared", "fit a sample of the rows")
        model, mass = self.model, self.wnobs * np.asarray(self.weights)
        given = {"freq_weights": mass, "var_weights": model.row_sizes}
        given["offset"] = np.asarray(model.fitted_offset, float) + np.zeros(len(mass))
        null = GLM(model.endog, np.ones(len(mass)), copy.copy(self.family), **given).fit()
        return self._weighted_llf(null.fittedvalues, mass, self.scale)

    def pseudo_rsquared(self, kind: str = "cs") -> float:
        """Return a pseudo-R-squared of the rows under their weights: of the good ones.

        Parameters
        ----------
        kind : {"cs", "mcf"}, optional
            That of Cox and Snell, or that of McFadden.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> bool(0 < res.pseudo_rsquared("mcf") < res.pseudo_rsquared("cs") < 1)
        True
        """
        if kind not in ("cs", "mcf"):
            raise ValueError(f"kind must be 'cs' or 'mcf', got {kind!r}")
        if kind == "mcf":
            return self.prsquared
        return float(1 - np.exp(2 * (self._null_llf - self._classical_llf) / self.wnobs))

    def get_distribution(self, exog: NewRows = None, transform: bool = True, **given: Any) -> Any:
        """Return the distributions of good responses, as scipy's frozen distributions.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        **given
            `exposure`, `offset`, `var_weights` and `n_trials` of statsmodels.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> bool(res.get_distribution().sf(98)[6] < 1e-6)
        True
        """
        self.model.refuse_partitions("get_distribution", "give rows to a fit of a sample")
        rows = None if exog is None else self._rows_to_predict(as_pandas(exog), transform)[0]
        return self.model.get_distribution(self.params, self.scale, exog=rows, **given)

    def predict_prob(
        self,
        n: ArrayLike | None = None,
        exog: NewRows = None,
        exposure: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        transform: bool = True,
    ) -> Array:
        """Return the probabilities of counts of good rows.

        Parameters
        ----------
        n : array_like, optional
            The counts; by default 0 to the largest of the data.
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        exposure, offset : array_like, optional
            Those of the rows to predict.
        transform : bool, optional
            Whether data frames pass through the formula.

        Returns
        -------
        ndarray, shape (m, c)
            A row for each row, a column for each count.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.predict_prob([0, 1]).shape
        (10, 2)
        """
        law = self.get_distribution(exog, transform, exposure=exposure, offset=offset)
        if not hasattr(law, "pmf"):
            raise NotImplementedError(
                "predict_prob needs counts, and the family has densities; use "
                "get_distribution().cdf"
            )
        counts = np.arange(np.max(self.model.endog) + 1) if n is None else np.atleast_1d(n)
        return np.asarray(law.pmf(np.asarray(counts)[:, None])).T

    bic_llf = MeanResults.bic

    @property
    def fittedvalues(self) -> Array:
        """Means of all rows, shape (n,)."""
        if blocked(self.model.exog):
            return self._estimate.rows.mu
        return np.asarray(self.model.predict(np.asarray(self.params)))

    mu = fittedvalues

    @property
    def _off(self) -> Array:
        return self.model.endog - self.fittedvalues

    @property
    def resid_response(self) -> Array:
        """Responses less means, of binomial counts in successes, shape (n,)."""
        return self.model.n_trials * self._off

    resid = resid_response

    @property
    def resid_pearson(self) -> Array:
        """Residuals over the standard deviation at dispersion one, shape (n,)."""
        mu = self.fittedvalues
        spread = np.sqrt(row_map(self.family.variance, mu, tail=()) / self.model.row_sizes)
        return self._off / spread

    @property
    def resid_working(self) -> Array:
        """Residuals on the scale of the linear predictor, shape (n,)."""
        return self._off * row_map(self.family.link.deriv, self.fittedvalues, tail=())

    @property
    def working_weights(self) -> Array:
        """Weights of `resid_working` in the weighted fit, shape (n,)."""
        mu, family = self.fittedvalues, self.family
        slope = row_map(family.link.deriv, mu, tail=())
        curvature = self.model.row_sizes / (slope**2 * row_map(family.variance, mu, tail=()))
        return self.relative_weights * curvature

    @property
    def resid_deviance(self) -> Array:
        """Signed roots of the deviances, shape (n,)."""
        rows = self._estimate.rows
        return np.sign(self._off) * np.sqrt(rows.deviance * rows.dispersion)

    @property
    def resid_anscombe(self) -> Array:
        """Anscombe residuals in units of the root of the dispersion, shape (n,)."""
        return self._by_family("resid_anscombe", self.fittedvalues, self.scale)

    resid_anscombe_scaled = resid_anscombe

    @property
    def resid_anscombe_unscaled(self) -> Array:
        """Anscombe residuals at dispersion one, shape (n,)."""
        return self.resid_anscombe * np.sqrt(self.scale)

    @property
    def resid_scaled(self) -> Array:
        """Deviance residuals over the root of the dispersion, shape (n,)."""
        return standardized(self.resid_deviance, self.scale)

    @property
    def resid_quantile(self) -> Array:
        """Quantile residuals, standard normal where the model is right, shape (n,).

        Normal quantiles at the probabilities of the responses, counts at random within the
        probability that each has, with the same random numbers each time. For Tweedie, whose
        probabilities have no closed form, and at an exact fit they are `resid_scaled`.
        """
        self.model.refuse_partitions("resid_quantile", "use resid_scaled")
        estimate = self._estimate
        return self.resid_scaled if estimate.exact else estimate.quantile_residuals()

    def _distances(self) -> Array:
        return self.resid_scaled

    def _flags(self, level: float) -> np.ndarray:
        return self._estimate.tail() < 1 - level

    def _link(self) -> LinkFunctions:
        return self.family.link.inverse, self.family.link.inverse_deriv

    @property
    def _wording(self) -> Wording:
        return BY_FAMILY.get(type(self.family).__name__, {})

    def _notes(self) -> list[str]:
        family, link = type(self.family).__name__, type(self.family.link).__name__
        notes = [f"{family} family, {link} link, dispersion {self.scale:.4g}.", *super()._notes()]
        if self.eps_bar > 0 and self.eps_hat > ALL_SPENT * self.eps_bar:
            # The next sentence says more.
            notes = [note for note in notes if note != AT_BOUND]
            notes.append(
                "The share of bad rows is all that eps_bar allows: more rows may be bad, or "
                "good ones vary more than the family says. Try a larger eps_bar, or a family with "
                "a dispersion or a larger one."
            )
        notes += self._price("data the variances are about those of")
        if not self._has_errors:
            notes.append(separated_note(self._bad_of_all, self.eps_bar))
        return notes + self._rank_notes()


def _of_family(*rows: Array, family: Any, name: str, scale: float) -> Array:
    endog, mu, var_weights, trials = rows
    if isinstance(family, Binomial):  # it keeps the numbers of trials
        family = copy.copy(family)
        family.n = trials
    return np.asarray(getattr(family, name)(endog, mu, var_weights=var_weights, scale=scale))


def is_regression(family: Any) -> bool:
    """Tell whether a family and its link are those of a linear regression."""
    return isinstance(family, Gaussian) and isinstance(family.link, Identity)
