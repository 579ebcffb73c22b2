"""Regressions with a penalty: ridge, lasso and elastic net, also with more columns than rows.

The penalized fit to weighted rows, and the weights, take turns. Weights are those of a robust
fit of a constant, around the linear predictors that fits without each row have: in-sample
residuals of as many columns as rows are all small, and tell nothing. Thus more columns than rows
need no likelihood of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.stats import rankdata
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.entropy import Array, base_weights, entropy_weights
from rrmstats.core.explanations import Bad
from rrmstats.core.frames import column_frame
from rrmstats.core.setting import DEFAULT_SEED
from rrmstats.core.spectral import PARTS, dropped, leading_projection
from rrmstats.core.starts import COSTLY_SIZE
from rrmstats.core.tolerances import HALVINGS, MAX_STEPS, SUM_ROUNDING, TINY
from rrmstats.laws.families import Gaussian, Link
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.models.checks import AUTO
from rrmstats.optional import require
from rrmstats.results.base import OPTIMIZER, ignoring
from rrmstats.results.regularized import RRMRegularizedResults, regularized_results

# The bound of the first weights where "auto" is to choose it.
# Convention: below a half, which is the most that any fit resists.
FIRST_BOUND = 0.4
# Random halves of the rows to start from, and steps of Algorithm 1 that starts take.
HALVES, STEPS = 2, 3
# Rounds of explanations: of each start or alpha, and at most, until weights have settled.
FEW_ROUNDS, ROUNDS, SETTLED = 2, 20, 1e-3
# Weights of the penalty that "auto" tries, and over how many decades.
N_ALPHAS, DECADES = 15, 4
# Degrees of freedom of the rows with weight, beyond which fits without a row are not known.
MOST_FREEDOM = 0.9


@dataclass(frozen=True, eq=False)
class Penalized:
    """Half the unit deviances of rows, and a penalty of all coefficients but the constant's.

    Attributes
    ----------
    rows : DevianceProblem
    constant : int or None
        Place of the column that is not penalized.
    alpha : float
        Weight of the penalty.
    l1 : float
        Part of the absolute values in the penalty; the rest is half the squares.
    """

    rows: DevianceProblem
    constant: int | None
    alpha: float
    l1: float

    @cached_property
    def slopes(self) -> np.ndarray:
        """Places of the columns that are penalized."""
        places = np.arange(self.rows.n_params)
        return places[places != self.constant]

    @cached_property
    def columns(self) -> Array:
        """These columns, shape (n, p)."""
        return np.asfortranarray(self.rows.exog[:, self.slopes])

    def value(self, theta: Array, weights: Array) -> float:
        """Return the weighted loss with the penalty."""
        slopes = theta[self.slopes]
        penalty = self.l1 * np.abs(slopes).sum() + 0.5 * (1.0 - self.l1) * slopes @ slopes
        return float(weights @ self.rows.losses(theta)) + self.alpha * float(penalty)

    def working(self, eta: Array) -> tuple[Array, Array]:
        """Return working responses at linear predictors, and the information of each, (n,)."""
        score, information, _ = self.rows.score_parts(eta)
        information = np.maximum(information, TINY)
        return eta + score / information, information

    def fit(self, weights: Array, theta: Array) -> Array:
        """Return the minimizer under weights (n,) by Newton's steps from parameters (k,)."""
        rows, here = self.rows, self.value(theta, weights)
        linear = isinstance(rows.family, Gaussian) and rows.mean.link == Link.identity()
        for _ in range(MAX_STEPS):
            new = self.step(weights, theta)
            if linear:  # one step is exact
                return new
            last, here = here, self.value(new, weights)
            for _ in range(HALVINGS):
                if here <= last:
                    break
                new = 0.5 * (theta + new)
                here = self.value(new, weights)
            if not here < last - SUM_ROUNDING * abs(last):
                break
            theta = new
        return theta

    def step(self, weights: Array, theta: Array) -> Array:
        """Return the penalized least squares fit to the working responses, shape (k,)."""
        z, information = self.working(self.rows.predictor(theta))
        used, found = weights > 0, np.zeros(len(theta))
        x, z, v = self.columns[used], z[used], (weights * information)[used]
        if self.l1 > 0:
            net = require("sklearn.linear_model", "sklearn").ElasticNet(
                alpha=self.alpha / v.sum(), l1_ratio=self.l1, tol=SUM_ROUNDING, warm_start=True,
                fit_intercept=self.constant is not None,
            )  # fmt: skip
            net.coef_ = theta[self.slopes].copy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # as exact as it gets
                net.fit(x, z, sample_weight=v)
            slopes, middle = net.coef_, net.intercept_
        else:
            share = v / v.sum() * (self.constant is not None)
            center, middle = share @ x, share @ z
            root = np.sqrt(v)
            slopes = _ridge_slopes(root[:, None] * (x - center), root * (z - middle), self.alpha)
            middle = middle - center @ slopes
        found[self.slopes] = slopes
        if self.constant is not None:
            found[self.constant] = middle / self.rows.exog[0, self.constant]
        return found

    def held_out(self, theta: Array, weights: Array) -> tuple[Array, float]:
        """Return linear predictors of fits without each row, (n,), and the degrees of freedom.

        To first order: columns without a coefficient have none without the row.
        """
        eta = self.rows.predictor(theta)
        z, information = self.working(eta)
        v = weights * information
        share = v / v.sum() * (self.constant is not None)
        x = self.columns[:, theta[self.slopes] != 0]
        x = np.sqrt(v)[:, None] * (x - share @ x)
        hat = share + _ridge_hat(x, self.alpha * (1.0 - self.l1))
        kept = 1.0 - np.minimum(hat, MOST_LEVERAGE)
        return eta - (1.0 - kept) / kept * (z - eta), float(hat.sum())

    def grid(self, weights: Array) -> Array:
        """Return weights of the penalty, the largest of which leaves hardly a column, (m,)."""
        score = self.rows.score_parts(self.rows.predictor(np.zeros(self.rows.n_params)))[0]
        score = score - (weights @ score) * (self.constant is not None)
        top = np.abs((weights * score) @ self.columns).max() / max(self.l1, 0.01)
        return np.asarray(top * np.logspace(0, -DECADES, N_ALPHAS))


def _gram_root(x: Array, ridge: float) -> tuple[Array, Any]:
    """Return the smaller of x'x and xx', and the Cholesky root of it with a ridge."""
    gram = x @ x.T if x.shape[1] > x.shape[0] else x.T @ x
    more = ridge + SUM_ROUNDING * max(np.trace(gram), TINY)
    return gram, cho_factor(gram + more * np.eye(len(gram)), lower=True)


def _ridge_slopes(x: Array, z: Array, ridge: float) -> Array:
    """Return the slopes of a ridge regression, shape (k,)."""
    gram, root = _gram_root(x, ridge)
    wide = len(gram) == len(x)
    return np.asarray(x.T @ cho_solve(root, z) if wide else cho_solve(root, x.T @ z))


def _ridge_hat(x: Array, ridge: float) -> Array:
    """Return the diagonal of the hat matrix of a ridge regression, shape (n,)."""
    if not x.size:
        return np.zeros(len(x))
    gram, root = _gram_root(x, ridge)
    if len(gram) == len(x):
        return np.einsum("ij,ji->i", gram, cho_solve(root, np.eye(len(gram))))
    reach = solve_triangular(root[0], x.T, lower=True)
    return np.einsum("kn,kn->n", reach, reach)


class PenalizedFit(NamedTuple):
    """A penalized fit with the explanation of its rows.

    Attributes
    ----------
    problem : Penalized
    theta : ndarray, shape (k,)
    weights : ndarray, shape (n,)
    explained : results
        The fit of a constant around the linear predictors of fits without each row.
    freedom : float
        Degrees of freedom.
    converged : bool
    n_iter : int
        Rounds of explanations.
    """

    problem: Penalized
    theta: Array
    weights: Array
    explained: Any
    freedom: float
    converged: bool
    n_iter: int

    @property
    def bic(self) -> float:
        """BIC of good and bad rows around fits without each of them; infinite if not known."""
        if self.freedom * (self.weights @ self.weights) > MOST_FREEDOM:
            return np.inf
        return float(getattr(self.explained, "bic", np.inf))


class RegularizedModel:
    """Mixin of models whose fits can have a penalty."""

    endog: Array
    exog: Array
    eps_bar: float | str
    freq_weights: Array | None
    data: Any
    refuse_partitions: Any
    weighs_groups: bool

    def _deviances(self) -> DevianceProblem:
        """Return half the unit deviances of the rows, on the design as it is."""
        raise NotImplementedError

    def _around(self, exog: Any, eta: Array | float = 0.0) -> Any:
        """Return the model of other columns, whose linear predictors are added to `eta`."""
        raise NotImplementedError

    @ignoring(OPTIMIZER | {"callback", "disp", "full_output", "maxiter", "start_params"})
    def fit_regularized(
        self,
        method: str = "elastic_net",
        alpha: float | str = AUTO,
        L1_wt: float = 1.0,
        *,
        alphas: ArrayLike | None = None,
        refit: bool = False,
        rng: int | np.random.Generator | None = None,
    ) -> RRMRegularizedResults:
        """Fit with a penalty: ridge, lasso or elastic net, also with more columns than rows.

        The penalty ``alpha * ((1 - L1_wt) * sum(params**2) / 2 + L1_wt * sum(abs(params)))`` is
        added to the weighted mean of half the unit deviances, as in statsmodels' OLS and GLM. The
        constant is not penalized. Columns count in the units that they have.

        Parameters
        ----------
        method : {"elastic_net"}, optional
        alpha : float or "auto", optional
            Weight of the penalty; 0 is `fit`. "auto" takes the one under which rows are most
            likely, good and bad ones, each seen from a fit without it.
        L1_wt : float, optional
            Part of the absolute values: 1 is the lasso, 0 ridge regression. Any but 0 needs
            scikit-learn, which the extra `sklearn` installs.
        alphas : array_like, optional
            Values that "auto" tries.
        refit : bool, optional
            Whether the selected columns are fitted again without a penalty, for standard errors;
            `refit` of the results.
        rng : int or numpy.random.Generator, optional
            Source of random starts; by default a fixed one, so that results repeat.

        Returns
        -------
        RRMRegularizedResults

        Examples
        --------
        >>> import numpy as np, statsmodels.api as sm
        >>> from rrmstats import RRMOLS
        >>> rng = np.random.default_rng(0)
        >>> x = rng.standard_normal((60, 100))
        >>> y = 5 * x[:, 0] + 0.1 * rng.standard_normal(60)
        >>> y[:6] += 50
        >>> res = RRMOLS(y, sm.add_constant(x)).fit_regularized(alpha=0.2)
        >>> res.selected, res.prob_bad[:6].round(2).tolist()
        (['x1'], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        """
        part, grid = self._check_penalty(method, alpha, L1_wt, alphas)
        constant = getattr(self.data, "const_idx", None)
        problem, path = Penalized(self._deviances(), constant, 0.0, part), None
        if len(problem.slopes) == 0:
            raise ValueError("the design has no column but the constant to penalize; use fit()")
        n = len(self.endog)
        base = base_weights(self.freq_weights, n)
        base = np.full(n, 1.0 / n) if base is None else base
        source = np.random.default_rng(DEFAULT_SEED if rng is None else rng)
        if alpha == 0:
            plain = cast(Any, self).fit(rng=rng)
            theta, weights = np.asarray(plain.params), np.asarray(plain.weights)
            fit = PenalizedFit(problem, theta, weights, plain, len(theta), True, plain.n_iter)
        elif alpha == AUTO:
            fit, path = self._along_path(problem, base, source, grid)
        else:
            fit = self._best_start(replace(problem, alpha=float(alpha)), base, source)
        if not fit.converged:
            warnings.warn(
                f"the weights did not settle within {ROUNDS} rounds: rows change between good and "
                "bad; see prob_bad, or give a larger alpha",
                ConvergenceWarning,
                stacklevel=2,
            )
        again, chosen = None, (fit.theta != 0) | (np.arange(len(fit.theta)) == constant)
        if refit:
            columns = pd.DataFrame(self.exog, self.data.row_labels, self.data.xnames)
            again = self._around(columns.loc[:, chosen]).fit(rng=rng)
        told = {name: getattr(fit, name) for name in ("weights", "explained", "freedom")}
        told |= {"alpha": fit.problem.alpha, "L1_wt": part, "n_iter": fit.n_iter}
        return regularized_results(
            self, fit.theta, **told, converged=fit.converged, path=path, refit=again
        )

    def _check_penalty(
        self, method: str, alpha: Any, L1_wt: Any, alphas: ArrayLike | None
    ) -> tuple[float, Array | None]:
        """Return the part of the absolute values and the grid, or say what is wrong."""
        self.refuse_partitions("fit_regularized", "fit a sample of the rows")
        if getattr(self, "absorbed", None) is not None:
            raise NotImplementedError(
                "fit_regularized does not take effects out of the variables; use dummy variables "
                "in place of absorb="
            )
        if self.weighs_groups:
            raise NotImplementedError(
                "fit_regularized weighs single rows, but these are good or bad by whole groups; "
                "fit without groups="
            )
        if method != "elastic_net":
            raise ValueError(
                f"method must be 'elastic_net', got {method!r}; an alpha for the sum over the "
                "rows, as 'l1' of statsmodels takes it, is to be divided by nobs"
            )
        automatic = isinstance(alpha, str) and alpha == AUTO
        if not (automatic or (_is_number(alpha) and 0 <= alpha < np.inf)):
            raise ValueError(
                f"alpha must be one number, at least 0, or 'auto', got {alpha!r}; for penalties "
                "of their own divide the columns"
            )
        if not (_is_number(L1_wt) and 0 <= L1_wt <= 1):
            raise ValueError(
                f"L1_wt must be in [0, 1], from ridge regression to the lasso, got {L1_wt!r}"
            )
        if L1_wt > 0 and alpha != 0:
            require("sklearn", "sklearn")
        if alphas is None:
            return float(L1_wt), None
        grid = np.sort(np.asarray(alphas, float).ravel())[::-1]
        if alpha != AUTO or not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
            raise ValueError(
                f"alphas are positive numbers for alpha='auto', got {alphas!r} and alpha={alpha!r}"
            )
        return float(L1_wt), grid

    def _explained_fit(
        self, problem: Penalized, weights: Array, rounds: int = ROUNDS
    ) -> PenalizedFit:
        """Return the fit from given weights after some rounds of explanations."""
        one = np.ones((len(weights), 1))
        theta: Array = np.zeros(problem.rows.n_params)
        seen: list[PenalizedFit] = []
        for count in range(1, rounds + 1):
            theta = problem.fit(weights, theta)
            eta, freedom = problem.held_out(theta, weights)
            explained = explained_rows(self._around(one, eta))
            seen.append(PenalizedFit(problem, theta, weights, explained, freedom, False, count))
            weights = np.asarray(explained.weights)
            again = [i for i, fit in enumerate(seen) if _apart(weights, fit.weights) < SETTLED]
            if again:  # two explanations may lead to each other
                best = min(seen[again[-1] :], key=lambda fit: fit.bic)
                weights = np.asarray(best.explained.weights)
                theta = problem.fit(weights, best.theta)
                return best._replace(theta=theta, weights=weights, converged=True, n_iter=count)
        return seen[-1]._replace(theta=problem.fit(weights, theta), weights=weights)

    def _best_start(
        self, problem: Penalized, base: Array, rng: np.random.Generator
    ) -> PenalizedFit:
        """Return the fit from the start that leads to the least BIC."""
        bound = FIRST_BOUND if self.eps_bar == AUTO else float(self.eps_bar)
        if bound == 0:
            return self._explained_fit(problem, base)
        starts = self._starts(problem, base, bound, rng)
        fits = [self._explained_fit(problem, weights, FEW_ROUNDS) for weights in starts]
        return self._explained_fit(problem, min(fits, key=lambda fit: fit.bic).weights)

    def _starts(
        self, problem: Penalized, base: Array, bound: float, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Generate weights of rows, shape (n,), to start from.

        All rows, those of a robust fit to the columns of largest rank correlation, and random
        halves, each after some steps with entropy weights. Rows without those that are far out
        together, in the predictors or in what they pull, are as they are: where columns are as
        many as rows, steps would fit far rows again.
        """
        n, slopes, constant = len(base), problem.slopes, problem.constant
        enough = int(np.clip(n // 10, 1, COSTLY_SIZE))
        order = np.argsort(-_rank_correlations(self.endog, problem.columns), kind="stable")
        few = np.sort(np.r_[slopes[order[:enough]], [] if constant is None else constant])
        robust = _quiet(self._around(self.exog[:, few.astype(int)])).weights
        halves = [np.where(rng.permutation(n) < n // 2, base, 0.0) for _ in range(HALVES)]
        for weights in (base, np.asarray(robust), *(half / half.sum() for half in halves)):
            theta: Array = np.zeros(problem.rows.n_params)
            for _ in range(STEPS):
                theta = problem.fit(weights, theta)
                losses = problem.rows.link_losses(problem.held_out(theta, weights)[0])
                weights = entropy_weights(losses, bound, freq_weights=base).weights
            yield weights
        frame = column_frame(problem.columns)
        score = problem.rows.score_parts(np.zeros(n))[0]
        for pulls in (frame, (score - np.median(score))[:, None] * frame):
            kept = base
            for part in range(PARTS):
                square = leading_projection(pulls, kept / kept.sum()) ** 2
                kept = dropped(kept, square, bound / PARTS)
                if part % 2 and kept.any():
                    yield kept / kept.sum()

    def _along_path(
        self, problem: Penalized, base: Array, rng: np.random.Generator, alphas: Array | None
    ) -> tuple[PenalizedFit, pd.DataFrame]:
        """Return the fit at the weight of the penalty of least BIC, and the path."""
        grid = problem.grid(base) if alphas is None else alphas
        first = self._best_start(replace(problem, alpha=grid[2 * len(grid) // 5]), base, rng)
        fits = []
        for alpha in grid:
            fits.append(
                self._explained_fit(replace(problem, alpha=alpha), first.weights, FEW_ROUNDS)
            )
            if fits[-1].bic == np.inf:  # as many degrees of freedom as rows
                break
        path = pd.DataFrame(
            {
                "alpha": [fit.problem.alpha for fit in fits],
                "bic": [fit.bic for fit in fits],
                "eps_hat": [float(fit.explained.eps_hat) for fit in fits],
                "freedom": [fit.freedom for fit in fits],
                "n_selected": [int((fit.theta[problem.slopes] != 0).sum()) for fit in fits],
            }
        )
        params = pd.DataFrame([fit.theta for fit in fits], columns=self.data.xnames)
        best = min(fits, key=lambda fit: fit.bic)
        return self._explained_fit(best.problem, best.weights), path.join(params)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _rank_correlations(endog: Array, columns: Array) -> Array:
    """Return the sizes of Spearman's correlations of a response with columns, shape (p,)."""
    ranks = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    own = rankdata(endog)
    length = np.sqrt((ranks * ranks).sum(axis=0))
    return np.asarray(np.abs((own - own.mean()) @ ranks) / np.where(length > 0, length, np.inf))


def _apart(weights: Array, others: Array) -> float:
    """Return how far two sets of weights, which sum to one, are apart."""
    return float(np.abs(weights - others).sum())


def explained_rows(model: Any) -> Any:
    """Return the fit of a constant, without its warnings; good rows are not divided.

    A second cluster may be some of the good rows, where their tails are short or chance leaves a
    gap. Another explanation of larger classification likelihood (ICL) is taken in its place.
    """
    results = _quiet(model)
    told = results._explained
    if told is not None and told.chosen.bad is Bad.TWO_CLUSTERS:
        surest = min((each for each in told.explanations if each.eps > 0), key=lambda it: it.icl)
        if surest.bad is not Bad.TWO_CLUSTERS:
            model.eps_bar = surest.eps
            return _quiet(model)
    return results


def _quiet(model: Any) -> Any:
    """Return the fit of a model, without its warnings: these are of a step on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(stability=False)
