"""Half the unit deviance: the loss of generalized linear models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from rrmstats.core.block_array import aligned, in_blocks, row_map
from rrmstats.core.descent import newton_steps
from rrmstats.core.entropy import Array
from rrmstats.core.linear import LinearProblem
from rrmstats.laws.families import Family, MeanFunction


class DevianceProblem(LinearProblem):
    """Half the unit deviances of responses, times their variance weights.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Responses; of binomial counts the shares of successes.
    exog : ndarray, shape (n, k)
    offset : ndarray, shape (n,), optional
        Added to the linear predictor.
    var_weights : ndarray, shape (n,), optional
        Variance weights; of binomial counts the numbers of trials.
    family : Family
    mean : MeanFunction

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import DevianceProblem
    >>> from rrmstats.laws.families import Link, MeanFunction, Poisson
    >>> counts = np.r_[rng.poisson(2.0, 50), np.full(5, 90)].astype(float)
    >>> mean = MeanFunction(Link.log())
    >>> problem = DevianceProblem(counts, np.ones((55, 1)), family=Poisson(), mean=mean)
    >>> bool(abs(np.exp(minimize(problem, eps_bar=0.2).theta[0]) - 2) < 0.5)
    True
    """

    def __init__(
        self,
        endog: Array,
        exog: Array,
        offset: Array | None = None,
        var_weights: Array | None = None,
        *,
        family: Family,
        mean: MeanFunction,
    ) -> None:
        super().__init__(endog, exog)
        self.family, self.mean = family, mean
        self.offset = self._per_row(0.0 if offset is None else offset)
        self.var_weights = self._per_row(1.0 if var_weights is None else var_weights)

    @property
    def designs(self) -> tuple[Array, ...]:
        """The design of the linear predictor."""
        return (self.exog,)

    def _per_row(self, values: Array | float) -> Array:
        if isinstance(values, float):
            values = np.broadcast_to(values, (self.n_obs,))
        return aligned(values, in_blocks(self.endog, self.exog))

    def link_losses(self, eta: Array) -> Array:
        """Return the losses at linear predictors, shape (..., n)."""
        mu = self.mean.mean(eta + self.offset)
        return 0.5 * self.var_weights * self.family.deviance(self.endog, mu)

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the losses in the linear predictor."""
        first, expected, swing = self.score_parts(eta)
        return -first, expected - swing

    def score_parts(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return the score of each row in its linear predictor, and two parts of its derivative.

        Scores are those of dispersion one. Their derivative is minus the second answer, the
        information, plus the third, which has expectation zero.
        """
        eta = eta + self.offset
        mu = self.mean.mean(eta)
        slope, curvature = self.mean.slopes(eta)
        variance = self.family.variance(mu)
        per_unit = self.var_weights * slope / variance
        off = self.endog - mu
        expected = per_unit * slope
        bend = self.var_weights * curvature - expected * self.family.variance_slope(mu)
        return off * per_unit, expected, off * bend / variance

    def weighted_slopes(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        """Return gradients (b, k) and Hessians (b, k, k) of the weighted losses.

        Hessians are the expected ones where the observed are not positive definite, as happens
        where the link is not canonical.
        """
        first, expected, swing = self.score_parts(self.predictor(theta))
        hessian, moments = self.gram(weights * (expected - swing), (-weights * first)[:, None, :])
        bad = ~newton_steps(moments[:, 0, :], hessian)[1]
        if bad.any():
            none = np.empty((int(bad.sum()), 0, self.n_obs))
            hessian[bad] = self.gram((weights * expected)[bad], none)[0]
        return moments[:, 0, :], hessian

    def start(self, weights: Array) -> Array:
        """Return the least squares fit to linear predictors near the responses, (..., k)."""
        return self.weighted_least_squares(weights, self._target)

    @property
    def _target(self) -> Array:
        """Linear predictors, without the offset, at which the means are near the responses."""
        near = self.family.near_means(self.endog, self.var_weights)
        return row_map(self.mean.link.forward, near, tail=()) - self.offset

    @cached_property
    def row_kinds(self) -> Array | None:
        """The rows of each kind, shape (n, m).

        Where counts above zero are rarer than eps_bar, the least risk of all leaves them out.
        """
        kinds = self.family.kept_kinds(self.endog)
        return np.column_stack(kinds).astype(float) if kinds else None

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return least squares fits to the links of responses in subsets of rows."""
        return self.subset_solutions(subsets, self._target)

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return the fit to the first rows of full rank, shape (k,)."""
        return self.independent_fit(drawn, self._target)

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The response, the design, the offset and the variance weights."""
        return self.endog, self.exog, self.offset, self.var_weights

    @property
    def with_rows(self) -> Callable[..., DevianceProblem]:
        """A function that makes the problem of other rows."""
        return partial(DevianceProblem, family=self.family, mean=self.mean)
