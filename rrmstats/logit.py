"""Logistic regression by robust risk minimisation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.base.wrapper as wrap
from scipy.special import entr, expit
from scipy.stats import bernoulli
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
from rrmstats.core.linear import Design, LinearProblem, solve_gram
from rrmstats.core.problem import SmoothProblem
from rrmstats.core.resample import refits
from rrmstats.core.sandwich import influence, relative_weights
from rrmstats.diagnostics import ProbabilityPrediction
from rrmstats.results import RRMResults, RRMResultsWrapper

# Newton steps of a weighted fit, those that improve a start, and the decrease at which it stops.
FIT_STEPS = 50
IMPROVING_STEPS = 2
FIT_TOL = 1e-20
# What rounding may add to a risk, relative to it: at the end steps change it by less.
RISK_NOISE = 1e-14
# Part of its share in the data that a class keeps at least under the weights.
KEPT_SHARE = 0.1
# Newton's decrement, squared, at which Firth's fit stops.
FIRTH_TOL = 1e-16
# Probability below which the second step leaves a label out, and weight of the ridge on
# standardised predictors under which separated data are judged: strong enough for the simplest
# direction, too weak to rule any out.
IMPROBABLE = 3e-3
EVIDENCE_RIDGE = 1e-5
# Linear predictors are kept below this in the middle of the data: probabilities past it are 0
# or 1 to rounding, and without a penalty separated data have no finite fit.
MIDDLE_MAX = 40.0
# Weight of the term that keeps the losses bounded, and of the ridge.
DEFAULT_ALPHA = {None: 1e-5, "l2": 1e-3}
# The ridge takes predictors for no further out than this many typical distances.
CLIP = 5.0


class LogitProblem(LinearProblem):
    """Cross-entropy losses, bounded by a small term in the linear predictor.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Labels, 0 or 1.
    exog : ndarray, shape (n, k)
    alpha : float
        The loss of an observation has ``alpha / 4 * (x' theta) ** 4`` added to it.
    ridge : ndarray, shape (k, k), optional
        Every loss has ``theta' ridge theta / 2`` added to it.
    """

    default_starts: ClassVar[int] = 200

    def __init__(
        self, endog: Array, exog: Array, alpha: float = 0.0, ridge: Array | None = None
    ) -> None:
        super().__init__(endog, exog)
        self.alpha = alpha
        k = exog.shape[1]
        self.ridge = np.zeros((k, k)) if ridge is None else ridge
        self.bounded = alpha > 0 or bool(self.ridge.any())
        self.signs = 2.0 * endog - 1.0

    def link_losses(self, eta: Array) -> Array:
        """Return the losses at linear predictors, shape (..., n)."""
        losses = np.logaddexp(0.0, -self.signs * eta)
        return losses + 0.25 * self.alpha * (eta * eta) ** 2 if self.alpha else losses

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the losses in the linear predictor."""
        p = expit(eta)
        square = eta * eta
        return (
            p - self.endog + self.alpha * eta * square,
            p * (1.0 - p) + 3.0 * self.alpha * square,
        )

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        common = 0.5 * np.einsum("...i,ij,...j->...", theta, self.ridge, theta)
        return super().losses(theta) + common[..., None]

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss, shape (n, k)."""
        return super().gradients(theta) + self.ridge @ theta

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        return super().hessian(theta, weights) + self.ridge

    def concentrated(
        self, theta: Array, losses: Array, weights: Array, lambda_: Array
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of the concentrated risk."""
        gradient, hessian, drift = super().concentrated(theta, losses, weights, lambda_)
        return gradient + theta @ self.ridge, hessian + self.ridge, drift

    def tempered(self, theta: Array, tilt: Array, lambda_: float) -> tuple[Array, Array]:
        """Return the derivatives of the risk at a fixed lambda."""
        if not self.ridge.any():
            return super().tempered(theta, tilt, lambda_)
        return SmoothProblem.tempered(self, theta, tilt, lambda_)

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted maximum likelihood fit by damped Newton steps, shape (..., k)."""
        batch = weights.reshape(-1, self.n_obs)
        start = np.zeros((len(batch), self.n_params))
        if theta is not None:
            start = np.broadcast_to(theta, (*weights.shape[:-1], self.n_params))
            start = start.reshape(-1, self.n_params).copy()
        return self._newton(batch, start, FIT_STEPS).reshape(*weights.shape[:-1], -1)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters two Newton steps towards the weighted fit, shape (b, k)."""
        return self._newton(weights, theta, IMPROVING_STEPS)

    def _newton(self, weights: Array, theta: Array, steps: int) -> Array:
        risk = np.einsum("bn,bn->b", weights, self.losses(theta))
        for _ in range(steps):
            first, second = self.link_slopes(self.predictor(theta))
            gram, moments = self.gram(weights * second, (weights * first)[:, None, :])
            gram += self.ridge
            gradient = moments[:, 0, :] + theta @ self.ridge
            step = -solve_gram(gram, gradient)[0]
            step[~np.isfinite(step).all(axis=-1)] = 0.0
            decrease = -np.einsum("bk,bk->b", gradient, step)
            if (decrease <= FIT_TOL * np.maximum(risk, 1e-300)).all():
                break
            fraction = 1.0
            for _ in range(10):
                trial = self.retract(theta, fraction * step)
                new = np.einsum("bn,bn->b", weights, self.losses(trial))
                lower = new <= risk * (1.0 + RISK_NOISE)
                theta = np.where(lower[:, None], trial, theta)
                risk = np.where(lower, new, risk)
                step[lower] = 0.0
                if lower.all():
                    break
                fraction *= 0.5
        return theta

    def retract(self, theta: Array, step: Array) -> Array:
        """Return ``theta + step``, drawn in where separated data would let it grow for ever."""
        moved = theta + step
        if self.bounded:
            return moved
        middle = np.median(np.abs(self.predictor(moved)), axis=-1)
        shrink = np.minimum(1.0, MIDDLE_MAX / np.maximum(middle, MIDDLE_MAX))
        return moved * shrink[..., None]

    def separated(self, theta: Array) -> bool:
        """Tell whether only the bound of `retract` keeps `theta` finite."""
        middle = np.median(np.abs(self.predictor(theta)))
        return not self.bounded and bool(middle > 0.99 * MIDDLE_MAX)

    def admissible(self, weights: Array) -> np.ndarray:
        """Tell which weights keep both classes.

        Where a class is rarer than eps_bar the least risk of all leaves it out, and predicts the
        other for every row.
        """
        ones, share = weights @ self.endog, self.endog.mean()
        return (ones >= KEPT_SHARE * share) & (1 - ones >= KEPT_SHARE * (1 - share))

    @property
    def subset_size(self) -> int:
        """Rows that determine a start."""
        return self.n_params + 1

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return directions fitted to the labels of subsets of rows by least squares."""
        exog, signs = self.exog[subsets], self.signs[subsets]
        right = np.einsum("mij,mi->mj", exog, signs)
        theta, sound = solve_gram(np.swapaxes(exog, -1, -2) @ exog, right)
        mixed = np.abs(signs.sum(axis=-1)) < subsets.shape[-1]
        return np.where((sound & mixed)[:, None], 3.0 * theta, np.nan)

    def take(self, rows: np.ndarray) -> LogitProblem:
        """Return the problem restricted to some rows."""
        return LogitProblem(self.endog[rows], self.exog[rows], self.alpha, self.ridge)


class DesignLogitProblem(LogitProblem):
    """Cross-entropy losses on a design of any rank and scale."""

    def __init__(self, endog: Array, exog: Array, alpha: float, ridge: Array | None) -> None:
        self.design = Design(exog)
        if ridge is not None and self.design.back is not None:
            ridge = self.design.back.T @ ridge @ self.design.back
        super().__init__(endog, self.design.exog, alpha, ridge)


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
        labels = self.model.data.row_labels
        if exog is None:
            rows = self.model.exog
        else:
            rows, labels = self._transform_predict_exog(exog, transform=transform)
            rows = np.atleast_2d(np.asarray(rows, dtype=float))
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
        rows = self.model.exog
        if exog is not None:
            rows, _ = self._transform_predict_exog(exog, transform=transform)
        return bernoulli(expit(np.asarray(rows, dtype=float) @ self.params))

    def _kept(self) -> Array:
        """Return what the first step leaves of each row for the second, in [0, 1], shape (n,).

        Where it tells the size of the coefficients, rows whose label it finds improbable fade
        out. Where it does not, rows are judged by the fit to those that it classifies right; a
        faint ridge then makes its direction the simplest that serves. Judging again by fits
        that include the readmitted rows would let the corrupted ones back in one by one.
        """
        problem = self._problem
        assert isinstance(problem, DesignLogitProblem)
        signs, exog = problem.signs, problem.exog
        if self.identified:
            theta = problem.design.from_params(self.params)
            return smooth_step(expit(signs * (exog @ theta)))
        ridge = np.diag(EVIDENCE_RIDGE * clipped_spread(exog) ** 2)
        evidence = LogitProblem(problem.endog, exog, 0.0, ridge)
        direction = self._solution.theta
        if self.model.penalty is None:
            direction = minimise(evidence, self.eps_bar, prior=self.model._prior).theta
        right = signs * (exog @ direction) > 0
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


def consistent_theta(
    problem: LogitProblem, theta: Array, weights: Array, lambda_: float
) -> tuple[Array, Array, bool]:
    """Return consistent coefficients, the weighted fit they rest on, and whether they exist.

    Under the weights the log-odds of clean labels at x are ``x' (true + theta / lambda)``. Their
    weighted maximum likelihood fit, without the penalty, less ``theta / lambda`` is therefore
    consistent. Where the weighted data are separated, the direction of theta is all there is;
    and a ridge is a choice of the user's, kept as it is.
    """
    if lambda_ == np.inf:
        return theta, theta, True
    fitted = theta
    if problem.alpha > 0:
        plain = LogitProblem(problem.endog, problem.exog)
        fitted = plain.weighted_fit(weights, theta)
        if plain.separated(fitted):
            return theta, theta, False
    elif lambda_ <= 1 or problem.separated(theta):
        return theta, theta, False
    consistent = fitted - theta / lambda_
    if problem.predictor(consistent) @ (weights * problem.predictor(theta)) <= 0:
        return theta, theta, False
    return consistent, fitted, True


def smooth_step(probability: Array) -> Array:
    """Return 0 for labels less probable than IMPROBABLE, 1 past tenfold that, smooth between."""
    with np.errstate(divide="ignore"):
        place = np.clip(np.log10(probability / IMPROBABLE), 0.0, 1.0)
    return place * place * (3.0 - 2.0 * place)


def firth_fit(problem: LogitProblem, weights: Array, total: float) -> Array:
    """Return the weighted maximum likelihood fit with Firth's penalty, shape (k,).

    The penalty, half the log-determinant of the information, keeps it finite on separated data
    and removes its bias of first order.

    Parameters
    ----------
    problem : LogitProblem
        Labels and design.
    weights : ndarray, shape (n,)
        Weights of the observations; they sum to at most one.
    total : float
        Number of observations that a sum of one stands for.
    """
    exog, endog = problem.exog, problem.endog
    mass = weights * total
    plain = LogitProblem(endog, exog)

    def penalised(theta: Array) -> tuple[float, Array]:
        information = plain.hessian(theta, mass)
        sign, log_det = np.linalg.slogdet(information)
        value = float(mass @ plain.losses(theta)) - 0.5 * float(log_det)
        return (value if sign > 0 else np.inf), information

    theta = np.zeros(problem.n_params)
    value, information = penalised(theta)
    for _ in range(FIT_STEPS):
        p = expit(exog @ theta)
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = mass * p * (1 - p) * np.einsum("ni,ni->n", exog @ inverse, exog)
        step = inverse @ ((mass * (endog - p) + leverage * (0.5 - p)) @ exog)
        if step @ information @ step <= FIRTH_TOL:
            break
        for halving in range(20):
            trial = theta + 0.5**halving * step
            new, new_information = penalised(trial)
            if new <= value:
                break
        else:
            break
        theta, value, information = trial, new, new_information
    return theta


def as_labels(endog: Any, level: Any) -> Any:
    """Return labels as zeros and ones, keeping missing values and the index."""
    if isinstance(endog, pd.DataFrame) and (endog.shape[1] > 1 or _is_dummy(endog, level)):
        return _dummy_column(endog, level)
    if isinstance(endog, pd.DataFrame):
        endog = endog.iloc[:, 0]
    series = endog if isinstance(endog, pd.Series) else pd.Series(np.asarray(endog).squeeze())
    if series.empty:
        raise ValueError("endog is empty; give at least as many rows as parameters")
    if pd.api.types.is_numeric_dtype(series.dtype) and level is None:
        values = series.astype(float)
        check_binary(values.dropna().to_numpy())
    else:
        levels = list(pd.unique(series.dropna()))
        if len(levels) > 2:
            raise ValueError(f"endog must have two levels, got {len(levels)}: {levels[:5]}")
        _check_level(level, levels)
        values = (series == level).astype(float).where(series.notna())
    return values if isinstance(endog, pd.Series) else values.to_numpy()


def _is_dummy(endog: pd.DataFrame, level: Any) -> bool:
    """Tell whether one column is a formula's dummy of the only level that there is."""
    return level is not None and str(endog.columns[0]).endswith("]")


def _dummy_column(endog: pd.DataFrame, level: Any) -> pd.Series:
    """Return the column of the level that counts as 1, out of a formula's dummy columns."""
    levels = [str(name).rsplit("[", 1)[-1].removesuffix("]") for name in endog.columns]
    if level is None and sorted(levels) == ["False", "True"]:
        level = "True"
    if len(levels) > 2:
        raise ValueError(f"endog must have two levels, got {len(levels)}: {levels[:5]}")
    _check_level(None if level is None else str(level), levels)
    return endog.iloc[:, levels.index(str(level))]


def _check_level(level: Any, levels: list[Any]) -> None:
    if level is None:
        raise ValueError(
            f"endog has the levels {levels}; name the one that counts as 1, for example "
            f"level={levels[-1]!r}"
        )
    if level not in levels:
        raise ValueError(f"level={level!r} is not among the levels of endog: {levels}")


def check_binary(labels: Array) -> None:
    """Raise where labels are not zeros and ones."""
    if not np.isin(labels, (0.0, 1.0)).all():
        raise ValueError(
            f"endog must be 0 and 1, got {np.unique(labels)[:5]}; for two other levels name the "
            "one that counts as 1 with level="
        )


def check_classes(labels: Array, prior: Array | None) -> None:
    """Raise where labels are all the same."""
    counted = labels if prior is None else labels[prior > 0]
    if len(np.unique(counted)) == 1:
        raise ValueError(
            f"endog has one class only, all {counted[0]:g}: a logistic regression needs both"
        )


def clipped_spread(exog: Array) -> Array:
    """Return a standard deviation of each column that bad rows cannot inflate, shape (k,).

    That of the values clipped at CLIP typical distances from the median, typical being the
    median of those that are not zero: a column that is mostly constant keeps its spread.
    """
    middle = np.median(exog, axis=0)
    distance = np.abs(exog - middle)
    varies = distance.any(axis=0)
    typical = np.zeros(exog.shape[1])
    positive = np.where(distance > 0, distance, np.nan)
    typical[varies] = np.nanmedian(positive[:, varies], axis=0)
    return np.clip(exog, middle - CLIP * typical, middle + CLIP * typical).std(axis=0)
