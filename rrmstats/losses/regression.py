"""Linear regression: squared residuals, the noise of a first step, and the second step.

Weights exp(-r^2 / lambda) narrow Gaussian noise of variance s to 1 / (1 / s + 2 / lambda),
whatever else is in the data, as long as bad rows have no weight. The weighted mean of squares is
therefore enough to know s, and the weights tell how many rows are good.

What decides the standard errors, where the noise may change with the predictors, is the curvature
of the weighted squares, the bread of the sandwich. Observed at the fit it is noisy and too large,
because the fit seeks out places where residuals crowd. It is therefore computed from the variance
of the noise at each row, a smooth function fitted under wide weights that see nearly all good
rows; its overall size is then moved toward the observed one as far as that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import f as f_distribution
from scipy.stats import t

from rrmstats.core.block_array import blocked, row_map
from rrmstats.core.blocks import sample_places
from rrmstats.core.consistency import (
    order_efficiency,
    residual_factor,
    scale_factor,
    scale_variance,
    second_moment_ratio,
    share_factor,
    untilted_variance,
)
from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.design import (
    CONDITION_ROWS,
    WIDE,
    Design,
    conjugate_gradients,
    inverse_root,
    power_of_two,
    standardizing,
)
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.explanations import Explanation, of_groups, without_comparison
from rrmstats.core.linear import LinearProblem
from rrmstats.core.points import evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import Dependence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian_choice import GaussianExplanation, curved, resampled
from rrmstats.laws.gaussian_equations import Equations
from rrmstats.losses.gaussian_rows import ExplainedRows, continued, explained_gaussian

# Order of the weights under which the variances of the noise are fitted: 95 % efficient.
# Derived: efficiency (2a - 1)^1.5 / a^3 = 0.95.
WIDE_ORDER = float(brentq(lambda order: order_efficiency(order) - 0.95, 1.0, 2.0))
# Standard deviation, before the data are seen, of the observed bread relative to the computed one
# (noise that is not Gaussian), and the least that their ratio may be.
# Convention: noise with tails from Laplace to uniform changes the bread by a fifth.
PRIOR_SHAPE, LEAST_SHAPE = 0.2, 0.3
# Largest log variance relative to the scale.
FARTHEST = 10.0
# Rows that the variances are fitted to at most, and the ratio of the two breads is taken over.
VARIANCE_ROWS = 20_000


class SquaresProblem(LinearProblem):
    """Squared residuals; the weighted fit is weighted least squares.

    Residuals that rounding alone could produce count as zero, so that exact fits are seen.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
        Design of full column rank and moderate condition.
    column_noise : ndarray, shape (k,), optional
        What rounding adds to a squared residual for each squared parameter; by default found
        from the design.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> x = np.arange(10.0)
    >>> y = 2 * x + 0.1 * np.sin(x)
    >>> y[0] = 50
    >>> minimize(SquaresProblem(y, x[:, None]), eps_bar=0.2).theta.round(1)
    array([2.])
    """

    least_risk = 0.0

    def __init__(self, endog: Array, exog: Array, column_noise: Array | None = None) -> None:
        super().__init__(endog, exog)
        drawn = sample_places(len(exog))
        some = drawn[:: max(1, len(drawn) // 1000)]
        unit = 4 * (exog.shape[1] + 4) * np.finfo(float).eps
        if column_noise is None:
            column_noise = (unit * np.median(np.abs(exog[some]), axis=0)) ** 2
        self._column_noise = column_noise
        self._row_noise = (unit * endog) ** 2

    def link_losses(self, eta: Array) -> Array:
        """Return the squared residuals, shape (..., n)."""
        residual = self.endog - eta
        return residual * residual

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the squared residuals in the linear predictor."""
        return 2.0 * (eta - self.endog), np.full_like(eta, 2.0)

    def losses(self, theta: Array) -> Array:
        """Return the squared residuals, zero where they are within rounding of it."""
        losses = super().losses(theta)
        # An infinite loss is not within rounding, however large the parameters are.
        by_theta = np.minimum(theta * theta @ self._column_noise, np.finfo(float).max / 2)
        noise = self._row_noise + by_theta[..., None]
        if blocked(losses):
            return np.where(losses <= noise, 0.0, losses)
        losses[losses <= noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted least squares fit, shape (..., k)."""
        return self.weighted_least_squares(weights, self.endog)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return the weighted least squares fit, or of many columns nearly so, shape (b, k)."""
        if self.n_params <= WIDE or self.blocks is not None:
            return self.weighted_fit(weights)
        found, _ = conjugate_gradients(
            lambda coef: ((weights * self.predictor(coef[..., 0])) @ self.exog)[..., None],
            ((weights * self.endog) @ self.exog)[..., None],
            theta[..., None],
            self._inverse_gram,
        )
        return found[..., 0]

    @cached_property
    def _inverse_gram(self) -> Array:
        """Inverse of the Gram matrix of equal weights, in the directions that rows reach."""
        equal = np.full(self.n_obs, 1.0 / self.n_obs)
        root = inverse_root(self.gram(equal, np.empty((0, self.n_obs)))[0])
        return root.T @ root

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return exact fits to subsets of rows, shape (m, k); NaN where rows are dependent."""
        return self.subset_solutions(subsets, self.endog)

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return the exact fit to the first independent rows of a random order, shape (k,)."""
        return self.independent_fit(drawn, self.endog)

    @property
    def with_rows(self) -> Callable[..., SquaresProblem]:
        """A function that makes the problem of other rows, with the same rounding."""
        return partial(SquaresProblem, column_noise=self._column_noise)


class Noise(NamedTuple):
    """The noise of good rows, in the units of the problem.

    Attributes
    ----------
    params : ndarray, shape (k,)
        The fit whose residuals it is.
    order : float
        Variance of the noise over that of the weighted rows.
    scale : float
        Variance of the noise.
    eps_hat : float
        Share of bad rows.
    """

    params: Array
    order: float
    scale: float
    eps_hat: float


def tilted(squares: Array | float, scale: float, order: float) -> Array:
    """Return the weights of an order, at most one, shape (n,)."""
    return np.exp(-0.5 * (order - 1) / scale * squares)


def lengths(exog: Array, gram: Array) -> Array:
    """Return the squared lengths of rows in the metric of the inverse of a Gram matrix, (n,)."""
    reach = exog @ inverse_root(gram).T
    return np.einsum("ni,ni->n", reach, reach)


def first_noise(problem: SquaresProblem, first: Solution, setting: Setting) -> Noise:
    """Return the noise that a first step tells; its variance is at most that of clean data."""
    n, least = problem.n_obs, 1 - setting.eps_bar
    share, clean = setting.spread(n), 1 / second_moment_ratio(setting.eps_bar)
    left = 1 - 2 * first.risk / first.lambda_
    order = min(1 / left, clean) if left > 0 else clean
    relative = float(share @ np.exp(-first.losses / first.lambda_))
    good = float(np.clip(np.sqrt(order) * relative, least, 1.0))
    taken = (problem.n_params / setting.wnobs(n) + problem.absorbed) / good
    scale = residual_factor(taken, order) * order * first.risk
    total = float(share @ tilted(first.losses, scale, order))
    good = float(np.sqrt(order)) * total / share_factor(taken, order, order)
    return Noise(first.theta, order, scale, 1 - float(np.clip(good, least, 1.0)))


def row_curvatures(
    exog: Array, squares: Array, variances: Callable[[Array], Array], wide: float, order: float
) -> Array:
    """Return what each row is expected to add to the curvature at an order, shape (n,).

    The weight of a row with noise of variance v has the expectation ``(1 + (b - 1) v)^-0.5`` at
    order b, its curvature ``(1 + (a - 1) v)^-1.5`` at order a. A bad row has no weight at
    either.
    """
    found = variances(exog)
    good = tilted(squares, 1.0, wide) * np.sqrt(1 + (wide - 1) * found)
    return good * (1 + (order - 1) * found) ** -1.5


def fitted_variances(features: Array, mass: Array, squares: Array, order: float) -> Array:
    """Return the coefficients of log variances, shape (p,); see `RegressionEstimate`.

    Parameters
    ----------
    features : ndarray, shape (n, p)
        The first is constant.
    mass : ndarray, shape (n,)
        Weights of the rows, in units of one observation.
    squares : ndarray, shape (n,)
        Squared residuals, made up for the fit, relative to the scale.
    order : float
        Order of the weights.
    """
    coef = np.zeros(features.shape[1])
    ridge = np.ones(len(coef))  # one row's worth of evidence for a constant variance
    ridge[0] = 0.0
    for _ in range(20):
        variances = np.exp(np.clip(features @ coef, -FARTHEST, FARTHEST))
        left = 1 / (1 + (order - 1) * variances)
        score = features.T @ (mass * (squares / (variances * left) - 1)) - ridge * coef
        information = features.T @ ((mass * left)[:, None] * features) + np.diag(ridge)
        step = np.linalg.solve(information, score)
        change = float(np.abs(features @ step).max())
        coef += step * min(1.0, 2.0 / max(change, 1e-3))
        if change < 1e-3:
            break
    return coef


class RegressionProblem(SquaresProblem):
    """Squared residuals of data of any scale and any rank, and their estimates.

    Losses of the data are ``endog_unit ** 2`` times those of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import RegressionProblem
    >>> x = 1e9 * np.arange(10.0)
    >>> problem = RegressionProblem(2 * x + np.sin(x), np.c_[x, x])
    >>> problem.to_params(minimize(problem, eps_bar=0.2).theta).round(6)
    array([1., 1.])
    """

    seeks_minima = True
    #: Whether the design is that of all parameters.
    is_linear = True

    def __init__(self, endog: Array, exog: Array) -> None:
        self.design = Design(exog)
        self.endog_unit = float(power_of_two(endog))
        if not 1e-152 < self.endog_unit < 1e152:
            raise ValueError(
                f"endog reaches {np.abs(endog).max():.3g}, whose square is too large or too small "
                "for a floating-point number; measure endog in other units or drop such rows"
            )
        scaled = endog if self.endog_unit == 1 else endog / self.endog_unit
        super().__init__(scaled, self.design.exog)
        if self.design.back is not None:
            self.columns = exog / power_of_two(exog, axis=0)

    def to_params(self, theta: Array) -> Array:
        """Return the parameters in the units of the data."""
        return self.endog_unit * self.design.to_params(theta)

    def from_params(self, params: Array) -> Array:
        """Return the parameters in the coordinates of the problem."""
        return self.design.from_params(params / self.endog_unit)

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell whether the second step of the problem of some of the rows serves all of them."""
        assert isinstance(other, RegressionProblem)
        given = self.design.back is None and other.design.back is None
        return given and self.endog_unit == other.endog_unit

    def consistent(self, solution: Solution, setting: Setting) -> RegressionEstimate:
        """Return the estimate of the first step, with the variance of the noise of good rows."""
        if tells_noise(solution, setting):
            noise = first_noise(self, solution, setting)
            found = RegressionEstimate(**self._fields(solution, setting, noise))
            return replace(found, eps_hat_se=found.share_error())
        total = setting.wnobs(self.n_obs)
        lost = float(setting.spread(self.n_obs) @ (solution.weights == 0))
        # Squared residuals fall short because they were fitted; without freedom any rows fit.
        free = total * (1 - self.absorbed) - self.n_params
        overfit = total / free if free > 0 else np.nan
        noise = Noise(solution.theta, 1.0, solution.risk * overfit, lost)
        error = float(np.sqrt(lost * (1 - lost) / total))
        return RegressionEstimate(**self._fields(solution, setting, noise), eps_hat_se=error)

    def _fields(self, solution: Solution, setting: Setting, noise: Noise) -> dict[str, Any]:
        """Return what estimates of both steps hold."""
        params = self.to_params(solution.theta)
        return dict(
            problem=self,
            setting=setting,
            solution=solution,
            params=params,
            raw_params=params,
            eps_hat=noise.eps_hat,
            loss_unit=self.endog_unit**2,
            noise=noise,
        )

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows.

        Without noise, or where no row can be bad, it is the first step.
        """
        assert isinstance(first, RegressionEstimate)
        found, setting = first.solution, first.setting
        if not tells_noise(found, setting):
            bad = of_groups(1.0 * (found.weights == 0), self.row_groups)
            told = without_comparison(bad, first.eps_hat)
            return replace(first, first=first, explained=told)
        decided = first.decided
        if isinstance(decided, ExplainedRegression):
            return self.explained_in(decided.basis, first, (), sample=decided.rows)
        basis = standardizing(self.thinned(CONDITION_ROWS).exog)
        starts = [(np.linalg.solve(basis, coef), s) for coef, s in self._candidates(first)]
        return self.explained_in(basis, first, starts)

    def explained_in(
        self,
        basis: Array,
        first: RegressionEstimate,
        candidates: Sequence[tuple[Array, Array]],
        known: ExplainedRows | None = None,
        sample: ExplainedRows | None = None,
    ) -> ExplainedRegression:
        """Return the best explanation of the rows with predictors ``exog @ basis``.

        `candidates`, `known` and `sample` are as `explained_gaussian` takes them.
        """
        rows = explained_gaussian(
            self, first.setting, self.endog[:, None], self.exog, candidates, known, sample, basis
        )
        mixture = rows.mixture
        theta, scale = basis @ mixture.coef[0, :, 0], float(mixture.scatter[0, 0, 0])
        share, error = rows.share()
        found = continued(self, first, theta, rows.probabilities()[1], rows.converged)
        return ExplainedRegression(
            **self._fields(found, first.setting, Noise(theta, 1.0, scale, share)),
            first=first,
            explained=rows.explained,
            eps_hat_se=error,
            rows=rows,
            basis=basis,
        )

    def _candidates(self, first: RegressionEstimate) -> list[tuple[Array, Array]]:
        """Return coefficients (k, 1) and variances (1, 1) to start from, the lowest first.

        They are the minima that the search met, there and at other bounds.
        """
        found, setting, candidates = first.solution, first.setting, []
        if self.blocks is not None:
            return [(found.theta[:, None], np.array([[first.noise.scale]]))]
        ends = np.vstack([found.theta[None], found.other_minima()])
        points = evaluate(self, ends, setting.budget(self.n_obs))
        told = (points.risk > 0) & (points.lambda_ > 0) & np.isfinite(points.lambda_)
        for i in np.flatnonzero(told):
            end = replace(
                found, theta=points.theta[i], losses=points.losses[i],
                risk=float(points.risk[i]), lambda_=float(points.lambda_[i]),
            )  # fmt: skip
            noise = first_noise(self, end, setting)
            candidates.append((noise.params[:, None], np.array([[noise.scale]])))
        return candidates

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, the variance of its noise consistent."""
        assert isinstance(estimate, RegressionEstimate)
        scale = untilted_variance(estimate.noise.scale, estimate.solution.weights, rates)
        found = replace(estimate, noise=estimate.noise._replace(scale=scale))
        return Untilted(found, found.influence())


def tells_noise(solution: Solution, setting: Setting) -> bool:
    """Tell whether rows may be bad, and have noise that tells them apart."""
    return setting.eps_bar > 0 and solution.risk > 0 and 0 < solution.lambda_ < np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionEstimate(Estimate):
    """The estimate of the first step of a linear regression.

    Attributes
    ----------
    noise : Noise
        The noise of the good rows, in the units of the problem. Its variance, and the standard
        errors, are NaN where there are no more rows than parameters.
    """

    problem: RegressionProblem
    noise: Noise

    @property
    def scale(self) -> float:
        """Consistent variance of the noise."""
        return self.loss_unit * self.noise.scale

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests.

        The good rows from which least squares would be as precise, less the parameters.
        """
        precise = self.wnobs * (1 - self.eps_hat) * order_efficiency(self.noise.order)
        return max(precise - self.n_lost, 1.0)

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level.

        Shape (n,), zero at an exact fit. To first order in parameters per good row: the fit to the
        other rows misses by its own standard error, the row draws fit and scale to itself by its
        influence function, and the scale has the degrees of freedom of its variance. All fits are
        one where rows are exhausted.

        Bad rows count in the leverage as well: were they left out, the fit would be taken to know
        nothing where only they are, and none of them be flagged.
        """
        scale, own, good = self.noise.scale, self.noise.order, self._good
        if not scale > 0:
            return scale * self.solution.weights
        order = 1 / second_moment_ratio(self.setting.eps_bar)
        leverage = lengths(self.problem.exog, self._gram(self._share)) / good
        out = float(t.ppf((1 + level) / 2, self.scale_freedom()))
        drawn = leverage * order**1.5 * tilted(out**2, 1.0, order)
        grown = own**1.5 * tilted(out**2, 1.0, own) * (own * out**2 - 1) / good
        efficiency, crowded = order_efficiency(order), min(self.n_lost / good, 1.0)
        variance = 1 + leverage / (efficiency + (1 - efficiency) * crowded)
        cutoffs = np.sqrt(scale * variance) * out * np.exp(-drawn - 0.5 * grown)
        return self.problem.endog_unit * cutoffs

    def scale_freedom(self) -> float:
        """Return the degrees of freedom of `scale`: those of a variance as precise as it is.

        Infinite at an exact fit.
        """
        if not self.noise.scale > 0:
            return np.inf
        return max(2 * self._good / scale_variance(self.noise.order), 1.0)

    def share_error(self) -> float:
        """Return the standard error of the share of bad rows that a first step tells.

        From the influence function of ``sqrt(a) * mean(w)``, the scale estimated with it. Which
        rows are bad counts as random too.
        """
        order, good = self.noise.order, 1 - self.noise.eps_hat
        square = self.solution.losses / self.noise.scale
        tilt = tilted(square, 1.0, order)
        log_scale = tilt * (order * square - 1) / (good * order**-1.5)
        moves = np.sqrt(order) * tilt - good + good * (order - 1) / (2 * order) * log_scale
        return float(np.sqrt(self._share @ moves**2 / self.wnobs))

    @property
    def n_lost(self) -> float:
        """Parameters that the fit takes from the degrees of freedom, with absorbed effects."""
        return self.problem.n_params + self.problem.absorbed * self.wnobs

    @property
    def _share(self) -> Array:
        """Weight of each row in the data; they sum to one."""
        return self.setting.spread(self.problem.n_obs)

    @property
    def _good(self) -> float:
        """Number of good observations."""
        return self.wnobs * (1 - self.noise.eps_hat)

    def _gram(self, weights: Array) -> Array:
        """Return the Gram matrix of the design under weights (n,), shape (k, k)."""
        return self.problem.gram(weights, np.empty((0, len(weights))))[0]

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        slopes, _, inverse = self._scores
        return self._back((slopes[:, None] * self.problem.exog) @ inverse)

    def deletion_influence(self) -> Array:
        """Return the influence functions with the residuals as they are, shape (n, k).

        Those of `influence`, as in HC3, have the residuals of fits without the row.
        """
        slopes, leverage, inverse = self._scores
        slopes = slopes * (1 - leverage)
        return self._back((slopes[:, None] * self.problem.exog) @ inverse)

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k), in one pass over the rows."""
        if dependence is not None and not dependence.none:
            return super().covariance(dependence)
        slopes, _, inverse = self._scores
        meat = self._gram(self._share * slopes**2) / self.wnobs
        return self._back(self._back(inverse @ meat @ inverse).T)

    def nonrobust_covariance(self) -> Array:
        """Return the covariance of the parameters if the noise is constant, shape (k, k)."""
        noise = self.noise
        if not noise.scale > 0:
            return np.full((len(self.params), len(self.params)), noise.scale)
        mass = self._share * tilted(self.problem.losses(noise.params), noise.scale, noise.order)
        root = inverse_root(self._gram(mass / mass.sum()))
        precise = self.wnobs * (1 - self.eps_hat) * order_efficiency(noise.order)
        return self._back(self._back(root.T @ root * (noise.scale / precise)).T)

    def _back(self, values: Array) -> Array:
        """Return rows of parameters in the units of the data."""
        back = self.problem.design.back
        return self.problem.endog_unit * (values if back is None else values @ back.T)

    @cached_property
    def _scores(self) -> tuple[Array, Array, Array]:
        """Scores (n,) and leverages (n,) of a first step, inverse of its mean curvature (k, k).

        The influence functions are ``scores * exog @ inverse``. Scores are residuals of fits
        without the row times its weight. The scale moves the parameters only where the noise is
        skewed; its part is left out. At order one the influence functions are those of least
        squares, with the residuals of HC3.
        """
        problem, (params, order, scale, _) = self.problem, self.noise
        if not scale > 0:  # zero at an exact fit, NaN without degrees of freedom
            none = scale * self.solution.weights
            return none, none, np.full((problem.n_params, problem.n_params), scale)
        resid = problem.endog - problem.predictor(params)
        tilt = tilted(resid * resid, scale, order)
        leverage = tilt / self.wnobs * lengths(problem.exog, self._gram(self._share * tilt))
        leverage = np.minimum(leverage, MOST_LEVERAGE)
        inverse = np.linalg.pinv(self._expected_bread(), hermitian=True)
        return tilt * resid / (1 - leverage), leverage, inverse

    def _expected_bread(self) -> Array:
        """Return the curvature of the weighted squares of a first step, shape (k, k).

        The observed one is worth its mean ratio to the computed one over all directions; in single
        directions it is too noisy. Their mean has the weights of a prior and of sampling.
        """
        problem, order = self.problem, self.noise.order
        squares = problem.losses(self.noise.params) / self.noise.scale
        wide = min(WIDE_ORDER, order)
        variances = self._variances(squares, wide)
        computed = row_map(row_curvatures, problem.exog, squares, variances, wide, order, tail=())
        bread = self._gram(self._share * computed)
        some = problem.thinned(VARIANCE_ROWS)
        squares = self._relative_squares(some)
        observed = 1 - self._made_up(order) * (order - 1) * squares
        expected = row_curvatures(some.exog, squares, variances, wide, order)
        gaps = tilted(squares, 1.0, order) * observed - expected
        gaps = gaps * lengths(some.exog, bread) / problem.n_params
        share = some.share(self._share)
        weight = PRIOR_SHAPE**2 / (PRIOR_SHAPE**2 + float(share @ gaps**2) / self.wnobs)
        return bread * max(1 + weight * float(share @ gaps), LEAST_SHAPE)

    def _relative_squares(self, some: Any) -> Array:
        """Return the squared residuals of some rows relative to the scale of the noise."""
        return (some.endog - some.exog @ self.noise.params) ** 2 / self.noise.scale

    def _made_up(self, order: float) -> float:
        """Return the factor of weighted squares of an order that makes up for the fit."""
        return scale_factor(self.n_lost / self._good, order, self.noise.order)

    def _variances(self, squares: Array, wide: float) -> Callable[[Array], Array]:
        """Return the variance of the noise relative to the scale, a function of predictors (m, k).

        It is log-linear in features of the predictors: a constant, and ``log(1 + z^2)`` for the
        coordinates z of the rows in the directions of most and least noise. They do not depend on
        the coordinates of the predictors. Under weights of order b, noise of variance v has the
        mean square ``v / (1 + (b - 1) v)``, to which it is fitted.

        Parameters
        ----------
        squares : ndarray, shape (n,)
            Squared residuals relative to the scale of the noise.
        wide : float
            Order b.
        """
        mass = self._share * tilted(squares, 1.0, wide)
        (gram, spread), _, _ = self.problem.products([mass, mass * squares], [], [])
        root = inverse_root(gram)
        axes = root.T @ np.linalg.eigh(root @ spread @ root.T)[1]
        some = self.problem.thinned(VARIANCE_ROWS)
        squares = self._relative_squares(some)
        mass = self.wnobs * some.share(self._share) * tilted(squares, 1.0, wide)
        logs = np.log1p((some.exog @ axes) ** 2)
        center = mass @ logs / mass.sum()
        unit = np.maximum(np.sqrt(mass @ (logs - center) ** 2 / mass.sum()), 1e-3)

        def features(exog: Array) -> Array:
            found = (np.log1p((exog @ axes) ** 2) - center) / unit
            return np.column_stack([np.ones(len(exog)), found])

        factor = self._made_up(wide)
        coef = fitted_variances(features(some.exog), mass, factor * squares, wide)
        return lambda exog: np.exp(np.clip(features(exog) @ coef, -FARTHEST, FARTHEST))


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedRegression(RegressionEstimate):
    """The estimate of the second step of a linear regression.

    Attributes
    ----------
    rows : ExplainedRows
        The rows and their explanation, predictors in units of their spread.
    basis : ndarray, shape (k, k)
        Takes the coefficients of these predictors to those of the problem.
    """

    rows: ExplainedRows
    basis: Array

    @cached_property
    def curvature_pvalue(self) -> float:
        """P-value of Ramsey's RESET test with the squares of the predictors.

        An F test that the squares explain nothing of the good rows. One where there is no square
        that the predictors do not span.
        """
        decided = self.rows.decided
        some, good = decided.rows, decided.good * decided.rows.counts
        plain, bent, added = curved(some, good / decided.size**2)
        free = float(good.sum()) - some.n_coef - added
        if not added or free < 1:
            return 1.0
        return float(f_distribution.sf((plain / bent - 1) * free / added, added, free))

    def params_of(self, explanation: Explanation) -> Array | None:
        """Return the parameters under an explanation that was compared."""
        assert isinstance(explanation, GaussianExplanation)
        return self.problem.to_params(self.basis @ explanation.mixture.coef[0, :, 0])

    @property
    def resamples(self) -> bool:
        """Whether samples of the rows are fitted together: not where some explain all rows."""
        rows = self.rows.decided.rows
        alone = rows.groups is None and len(rows.counts) == self.problem.n_obs
        return alone and self.problem.is_linear

    def resampled(self, counts: Array) -> Array:
        """Return the parameters of samples of the rows (b, n), shape (b, k)."""
        rows, told = self.rows.decided.rows, self.explained
        assert told is not None
        found, known = resampled(rows, told, counts, self.setting.eps_bar)
        params = np.array(
            [self.problem.to_params(self.basis @ coef) for coef in found.coef[..., 0]]
        )
        return np.where(known[:, None], params, np.nan)

    def errors_of(self, explanation: Explanation, dependence: Dependence) -> Array | None:
        """Return the standard errors of the parameters under an explanation, shape (k,)."""
        assert isinstance(explanation, GaussianExplanation)
        mixture = explanation.mixture
        decided = Equations(self.rows.decided.rows, mixture, self.setting.eps_bar)
        rows = replace(self.rows, mixture=mixture, decided=decided)
        noise = self.noise._replace(scale=float(mixture.scatter[0, 0, 0]))
        return np.sqrt(np.diag(replace(self, rows=rows, noise=noise).covariance(dependence)))

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests: the good rows less the parameters."""
        return max(self.scale_freedom(), 1.0)

    def scale_freedom(self) -> float:
        """Return the degrees of freedom of `scale`: the good rows less the parameters."""
        return self.wnobs * (1 - self.eps_hat) - self.n_lost

    def residual_cutoffs(self, level: float) -> Array:
        """Return the size of a residual that a good row exceeds with probability 1 - level.

        Shape (n,). A row that had a part in the fit is nearer to it than one that had none.
        """
        out = float(t.ppf((1 + level) / 2, self.inference_freedom))
        return self.rows.cutoffs() * (out * float(np.sqrt(self.scale)))

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        return self._in_units(self.rows.influence())

    def deletion_influence(self) -> Array:
        """Return the influence functions with the residuals as they are, shape (n, k)."""
        return self._in_units(self.rows.influence(corrected=False))

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of the parameters, shape (k, k); see `influence_covariance`."""
        if dependence is not None and not dependence.none:
            return self.covariance_of(self.influence(), dependence)
        place = self.rows.decided.place("coef")
        return self._square_in_units(self.rows.covariance()[place, place])

    def nonrobust_covariance(self) -> Array:
        """Return the covariance of the parameters if the noise is constant, shape (k, k)."""
        return self._square_in_units(self.rows.inverse_gram)

    def _square_in_units(self, square: Array) -> Array:
        """Return a covariance of the coefficients (k, k) in the units of the data."""
        covariance = self.basis @ square @ self.basis.T * self.noise.scale
        return self._back(self._back(covariance).T)

    def _in_units(self, influence: Array) -> Array:
        """Return the influence functions of the coefficients in the units of the data."""
        moves = influence[:, self.rows.decided.place("coef")]
        return self._back(moves @ self.basis.T * float(np.sqrt(self.noise.scale)))
