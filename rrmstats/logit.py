"""Logistic regression by robust risk minimisation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import statsmodels.base.wrapper as wrap
from scipy.special import entr, expit
from scipy.stats import bernoulli, chi2
from statsmodels.discrete.discrete_margins import DiscreteMargins
from statsmodels.discrete.discrete_model import Logit
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from rrmstats import plotting
from rrmstats.base import (
    RRMModel,
    check_finite,
    check_kwargs,
    check_numbers,
    check_required,
    check_weights,
    readable_errors,
)
from rrmstats.core import Problem, Solution, minimise
from rrmstats.core.entropy import Array
from rrmstats.core.logistic import (
    DesignLogitProblem,
    LogitProblem,
    clipped_spread,
    consistent_theta,
    firth_fit,
    smooth_step,
)
from rrmstats.core.resample import refits
from rrmstats.core.sandwich import influence, relative_weights
from rrmstats.diagnostics import ProbabilityPrediction
from rrmstats.labels import as_labels, check_classes
from rrmstats.results import RRMResults, RRMResultsWrapper

# Weight of the term that keeps the losses bounded, and of the ridge.
DEFAULT_ALPHA = {None: 1e-5, "l2": 1e-3}
# Weight of the ridge on standardised predictors under which separated data are judged: strong
# enough for the simplest direction, too weak to rule any out.
EVIDENCE_RIDGE = 1e-4
# Risk near the simpler direction, relative to the least, up to which it is preferred: samples
# where it serves have ratios below 1.2, others above 3.
RIVAL_RISK = 2.0
# P-value of the test of the two steps below which the summary prefers the first.
STEPS_DIFFER = 1e-3


class RRMLogit(RRMModel, Logit):
    """Logistic regression when some of the rows may be wrong.

    Weights that shun the misclassified rows leave data that a hyperplane separates, and then the
    plain cross-entropy has no finite minimiser. The default loss therefore adds
    ``alpha / 4 * (x' params) ** 4`` to that of each row: a term of no weight where probabilities
    differ from 0 and 1, and equivariant to linear changes of the design.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Labels: 0 and 1, booleans, or two levels of which `level` names the one that counts as 1.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is maximum likelihood.
    alpha : float, optional
        Weight of the penalty. By default 1e-5, or 1e-3 with `penalty`; 0 where `eps_bar` is 0.
    penalty : {None, "l2"}, optional
        None for the default loss; "l2" for a ridge penalty, ``alpha / 2`` times the sum of the
        squared coefficients of the standardised predictors, the intercept left out.
    level : optional
        The level of `endog` that counts as 1, where it is not numeric.
    weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 is the row twice.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' formula interface passes on.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from rrmstats import RRMLogit
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> y = (rng.random(500) < 1 / (1 + np.exp(-2 * x))).astype(float)
    >>> y[np.argsort(x)[-40:]] = 0
    >>> res = RRMLogit(y, sm.add_constant(x), eps_bar=0.1).fit()
    >>> bool(abs(res.params[1] - 2) < 0.7)
    True
    """

    _formula_max_endog = None

    def __init__(
        self,
        endog: Any,
        exog: Any = None,
        eps_bar: float | None = None,
        *,
        alpha: float | None = None,
        penalty: str | None = None,
        level: Any = None,
        weights: Any = None,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        check_required(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        if exog is None:
            raise ValueError("exog is required; for an intercept alone use a column of ones")
        exog = check_numbers("exog", exog)
        if penalty not in (None, "l2"):
            raise ValueError(f"penalty must be None or 'l2', got {penalty!r}")
        if alpha is not None and not 0 <= alpha < np.inf:
            raise ValueError(f"alpha must be a finite number, not negative, got {alpha!r}")
        extra = {}
        if weights is not None:
            given = kwargs.get("missing_idx")
            check_weights(weights, len(endog) if given is None else len(given))
            extra = {"weights": weights}
        with readable_errors():
            super().__init__(
                as_labels(endog, level), exog, check_rank=False, missing=missing, **extra, **kwargs
            )
        self._set_eps_bar(eps_bar)
        self._set_prior(weights)
        check_finite("endog", self.endog)
        check_finite("exog", self.exog)
        check_classes(self.endog, self._prior)
        self.alpha = DEFAULT_ALPHA[penalty] * (self.eps_bar > 0) if alpha is None else alpha
        self.penalty = penalty
        # statsmodels adds an offset, which clones would take for an unknown keyword.
        self._init_keys = [key for key in self._init_keys if key != "offset"]
        self._init_keys.extend(["alpha", "penalty"])

    def problem(self) -> DesignLogitProblem:
        """Return the cross-entropy losses with their penalty."""
        if self.penalty is None:
            return DesignLogitProblem(self.endog, self.exog, self.alpha, None)
        scale = clipped_spread(self.exog)
        return DesignLogitProblem(self.endog, self.exog, 0.0, np.diag(self.alpha * scale**2))

    def _start_theta(self, problem: Problem, start_params: npt.ArrayLike) -> Array:
        assert isinstance(problem, DesignLogitProblem)
        return problem.design.from_params(np.asarray(start_params, dtype=float))

    def _results(self, problem: Problem, solution: Solution) -> Any:
        assert isinstance(problem, DesignLogitProblem)
        separated = problem.separated(solution.theta)
        if separated:
            warnings.warn(
                "a hyperplane separates the rows with weight, so that no finite parameters are "
                "best; these were stopped where the probabilities are 0 and 1 to rounding. Give "
                "alpha > 0 (1e-5 is the default where eps_bar > 0) or penalty='l2'",
                PerfectSeparationWarning,
                stacklevel=3,
            )
        results = RRMLogitResults(self, problem, solution)
        results.converged = results.converged and not separated
        return RRMLogitResultsWrapper(results)

    def _second_step(self, first: Any, efficiency: float) -> Any:
        problem = first._problem
        kept = first._kept()
        share = np.full(problem.n_obs, 1 / problem.n_obs) if self._prior is None else first._share
        theta = firth_fit(problem, kept * share, first._total)
        losses = LogitProblem(problem.endog, problem.exog).losses(theta)
        weights = kept * share / (kept @ share)
        used = weights > 0
        divergence = float(weights[used] @ np.log(weights[used] / share[used]))
        solution = replace(
            first._solution,
            theta=theta,
            losses=losses,
            weights=weights,
            divergence=divergence,
            n_eff=first._total * float(np.exp(-divergence)),
            risk=float(weights @ losses),
        )
        results = RRMLogitResults(self, problem, solution, kept)
        results.efficiency, results.first_step = efficiency, first
        return RRMLogitResultsWrapper(results)


class RRMLogitResults(RRMResults):
    """Results of a logistic regression; see `RRMResults` for what all models share.

    The second step is maximum likelihood with Firth's penalty, without the rows that the first
    step exposes. It has the efficiency of maximum likelihood whatever `efficiency` is given, and
    `lambda_` stays that of the first step.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Consistent coefficients: without a penalty ``(1 - 1 / lambda_) * raw_params``.
    raw_params : ndarray, shape (k,)
        The paper's, the minimiser of the risk.
    identified : bool
        Whether the weighted data overlap enough to tell the size of the coefficients. Where they
        do not, only their direction is identified, and `params` are `raw_params`.
    """

    def __init__(
        self,
        model: RRMLogit,
        problem: DesignLogitProblem,
        solution: Solution,
        kept: Array | None = None,
    ) -> None:
        theta, self._fitted, self.identified = solution.theta, solution.theta, True
        if kept is None:
            theta, self._fitted, self.identified = consistent_theta(
                problem, solution.theta, solution.weights, solution.lambda_
            )
        self._rows_kept, self._rank = kept, problem.n_params
        super().__init__(model, problem.design.to_params(theta), problem, solution)
        self.raw_params = problem.design.to_params(solution.theta)

    _meaningless: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("aic", "bic", "info_criteria", "llr", "llr_pvalue", "score_test", "im_ratio"),
            "llf is a pseudo-likelihood, without the laws of one; use compare() and wald_test()",
        ),
        **dict.fromkeys(
            ("mle_retvals", "mle_settings", "method", "set_null_options"),
            "the fit is not statsmodels'; see trace, converged and n_iter",
        ),
        "get_influence": "see weight_table() for the weights and distances of the rows",
    }

    plot_separation = plotting.plot_separation
    plot_reliability = plotting.plot_reliability

    @property
    def steps_pvalue(self) -> float:
        """P-value of the test that the two steps estimate the same; 1 where there is one.

        The second is efficient where the labels that it keeps are right, and the first is
        consistent either way (Hausman's test). Where it is small, labels are wrong in ways that
        no single row shows, and the first step is to be preferred.
        """
        if self.first_step is None or not self.first_step.identified:
            return 1.0
        difference = np.asarray(self.params) - np.asarray(self.first_step.params)
        inverse = np.linalg.pinv(self.first_step.cov_params_default, hermitian=True)
        return float(chi2.sf(difference @ inverse @ difference, self._rank))

    @property
    def llf(self) -> float:
        """Pseudo-log-likelihood: that of the rows under their weights, times their number."""
        return self._pseudo_likelihood(self.params)

    @property
    def llnull(self) -> float:
        """Pseudo-log-likelihood, under the same weights, of a constant probability."""
        share = float(self.weights @ self.model.endog)
        return self._total * float(entr(share) + entr(1 - share)) * -1.0

    @property
    def prsquared(self) -> float:
        """McFadden's pseudo-R-squared, of the pseudo-likelihoods."""
        return 1 - self.llf / self.llnull

    def _pseudo_likelihood(self, params: Array) -> float:
        signs = 2 * self.model.endog - 1
        losses = np.logaddexp(0.0, -signs * (self.model.exog @ params))
        return -self._total * float(self.weights @ losses)

    @property
    def df_model(self) -> float:
        """Rank of the design less its constant."""
        return float(self._rank - self.model.k_constant)

    @property
    def df_resid(self) -> float:
        """Number of observations less the rank of the design."""
        return self.nobs - self._rank

    @property
    def _probability(self) -> Array:
        return expit(self.fittedvalues)

    @property
    def resid_response(self) -> Array:
        """Labels less probabilities, shape (n,)."""
        return self.model.endog - self._probability

    resid_generalized = resid_response

    @property
    def resid_pearson(self) -> Array:
        """Residuals over the standard deviation of a label, shape (n,)."""
        # the root of the odds against the label, which has no overflow
        signs = 2 * self.model.endog - 1
        return signs * np.exp(np.clip(-0.5 * signs * self.fittedvalues, -700, 700))

    @property
    def resid_dev(self) -> Array:
        """Signed roots of the deviances, shape (n,)."""
        signs = 2 * self.model.endog - 1
        return signs * np.sqrt(2 * np.logaddexp(0.0, -signs * self.fittedvalues))

    def _distances(self) -> Array:
        return self.resid_dev

    def _flags(self, level: float) -> np.ndarray:
        signs = 2 * self.model.endog - 1
        return expit(signs * self.fittedvalues) < 1 - level

    def get_prediction(self, exog: Any = None, transform: bool = True) -> ProbabilityPrediction:
        """Predict probabilities with confidence intervals.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.

        Returns
        -------
        ProbabilityPrediction
        """
        rows, labels = self._rows_to_predict(exog, transform)
        return ProbabilityPrediction(rows, self.params, self.cov_params_default, labels)

    def get_margeff(self, at: str = "overall", method: str = "dydx", **kwargs: Any) -> Any:
        """Return marginal effects; see statsmodels' `BinaryResults.get_margeff`.

        Parameters
        ----------
        at : str, optional
            Where the effects are taken.
        method : str, optional
            Kind of effect.
        **kwargs
            `atexog`, `dummy` and `count` of statsmodels.

        Returns
        -------
        statsmodels DiscreteMargins
        """
        return DiscreteMargins(self, (at, method), kwargs)

    def get_distribution(self, exog: Any = None, transform: bool = True) -> Any:
        """Return the distribution of the labels, as scipy's frozen Bernoulli law."""
        rows, _ = self._rows_to_predict(exog, transform)
        return bernoulli(expit(rows @ self.params))

    def _kept(self) -> Array:
        """Return what the first step leaves of each row for the second, in [0, 1], shape (n,).

        Where it tells the size of the coefficients, rows whose label it finds improbable fade
        out. Where it does not, rows are judged by the fit to those that it classifies right; its
        direction is then the simpler one under a faint ridge, unless the risk there is far from
        the least. Judging again by fits that include the readmitted rows would let the corrupted
        ones back in one by one.
        """
        problem = self._problem
        assert isinstance(problem, DesignLogitProblem)
        signs, exog = problem.signs, problem.exog
        if self.identified:
            theta = problem.design.from_params(self.params)
            return smooth_step(expit(signs * (exog @ theta)))
        right = signs * (exog @ self._solution.theta) > 0
        if self.model.penalty is None:
            ridge = np.diag(EVIDENCE_RIDGE * clipped_spread(exog) ** 2)
            evidence = LogitProblem(problem.endog, exog, 0.0, ridge)
            prior = self.model._prior
            simple = minimise(evidence, self.eps_bar, prior=prior).theta
            near = minimise(problem, self.eps_bar, n_starts=0, start_theta=simple, prior=prior)
            if near.risk <= RIVAL_RISK * self._solution.risk:
                right = signs * (exog @ simple) > 0
        share = np.full(problem.n_obs, 1 / problem.n_obs) if self._share is None else self._share
        fit = firth_fit(problem, right * share, self._total)
        return np.where(right, 1.0, smooth_step(expit(signs * (exog @ fit))))

    def _influence(self) -> Array:
        problem, found = self._problem, self._solution
        assert isinstance(problem, DesignLogitProblem)
        plain = LogitProblem(problem.endog, problem.exog)
        if self._rows_kept is not None:
            relative = relative_weights(found.weights, self._share)
            total = self._total
            moved = -(plain.gradients(found.theta) * relative[:, None]) @ np.linalg.pinv(
                plain.hessian(found.theta, found.weights), hermitian=True
            )
            moved *= np.sqrt(total / (total - problem.n_params))
        else:
            moved = self._first_influence(problem, plain)
        return moved if problem.design.back is None else moved @ problem.design.back.T

    def _first_influence(self, problem: LogitProblem, plain: LogitProblem) -> Array:
        """Return the influence functions of the first step, shape (n, k).

        The consistent coefficients are the weighted maximum likelihood fit less theta / lambda;
        the fit moves with the data, and with theta and lambda through the weights.
        """
        found = self._solution
        moved, log_lambda = influence(
            problem, found.theta, found.losses, found.weights, found.lambda_, self._share
        )
        beta = 1.0 / found.lambda_ if found.lambda_ > 0 else np.inf
        if not self.identified or beta == 0:
            return moved
        fitted = moved
        if problem.alpha > 0:
            weights = found.weights
            gradients = plain.gradients(self._fitted)
            own = problem.gradients(found.theta)
            with_theta = gradients.T @ (weights[:, None] * own)
            with_theta -= np.outer(weights @ gradients, weights @ own)
            with_loss = (weights * (found.losses - weights @ found.losses)) @ gradients
            score = gradients * relative_weights(weights, self._share)[:, None]
            score += beta * (np.outer(log_lambda, with_loss) - moved @ with_theta.T)
            fitted = -score @ np.linalg.pinv(plain.hessian(self._fitted, weights), hermitian=True)
        return fitted - beta * (moved - np.outer(log_lambda, found.theta))

    def _refits(self, counts: Array) -> Array:
        problem = self._problem
        assert isinstance(problem, DesignLogitProblem)
        if self._rows_kept is not None:
            shares = counts / counts.sum(axis=1, keepdims=True)
            thetas = [firth_fit(problem, self._rows_kept * q, self._total) for q in shares]
        else:
            points = refits(problem, self.eps_bar, counts, self._solution.theta)
            thetas = [
                consistent_theta(problem, theta, weights, float(lambda_))[0]
                for theta, weights, lambda_ in zip(
                    points.theta, points.weights, points.lambda_, strict=True
                )
            ]
        return np.array([problem.design.to_params(theta) for theta in thetas])

    @property
    def fittedvalues(self) -> Array:
        """Linear predictor of all rows, shape (n,)."""
        return self.model.exog @ self.params

    def pred_table(self, threshold: float = 0.5) -> Array:
        """Return the table of labels, by row, against predicted labels.

        Parameters
        ----------
        threshold : float, optional
            Probability from which a row is predicted to be 1.

        Returns
        -------
        ndarray, shape (2, 2)
            Counts: entry [i, j] is the number of rows labelled i and predicted j.
        """
        predicted = expit(self.fittedvalues) > threshold
        edges = np.array([0, 0.5, 1])
        return np.histogram2d(self.model.endog, predicted.astype(float), bins=[edges, edges])[0]

    def _efficiency_text(self) -> str:
        return "n/a" if self.efficiency is None else "1.00"

    def _summary_title(self) -> str:
        return "Robust Risk Minimization: Logistic Regression"

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.efficiency is None and self.eps_bar > 0:
            notes.append(
                "Robustness has a price in efficiency that grows with eps_bar; on clean data "
                "fit(efficiency=0.95) has the variances of maximum likelihood."
            )
        if self.steps_pvalue < STEPS_DIFFER:
            notes.append(
                "The two steps differ by more than chance: labels are wrong in ways that no "
                "single row shows. Prefer first_step."
            )
        if not self.identified:
            notes.append(
                "A hyperplane separates the rows with weight: only the direction of the "
                "coefficients is identified, not their size. A lower eps_bar or "
                "fit(efficiency=0.95) identifies both."
            )
        return notes


class RRMLogitResultsWrapper(RRMResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]] = {
        **RRMResultsWrapper._wrap_attrs,
        "raw_params": "columns",
        **dict.fromkeys(
            ("resid_response", "resid_generalized", "resid_pearson", "resid_dev"), "rows"
        ),
    }


wrap.populate_wrapper(RRMLogitResultsWrapper, RRMLogitResults)
