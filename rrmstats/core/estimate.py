"""What a fit produces: a frozen estimate, made by the steps of a problem."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Explained, Explanation
from rrmstats.core.problem import Problem, SmoothProblem
from rrmstats.core.sandwich import (
    Dependence,
    influence_covariance,
    minimum_influence,
)
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.tolerances import ROUNDING

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """Everything that a fit found; results are views of it.

    Attributes
    ----------
    problem : EstimableProblem
    setting : Setting
        What the fit was asked for.
    solution : Solution
        Parameters and weights of the reported step, in the coordinates of the problem.
    params : ndarray, shape (k,)
        Consistent parameters in the units of the data.
    raw_params : ndarray, shape (k,)
        The paper's, which minimize the risk.
    first : Estimate or None
        That of the first step, where this one is of the second.
    explained : Explained or None
        The explanations that the second step compared; None where there is one step.
    eps_hat, eps_hat_se : float
        Estimated share of bad rows and its standard error; NaN where the model
        has no such estimate.
    loss_unit, loss_shift : float
        The losses of the data are ``loss_unit`` times those of the problem plus ``loss_shift``.
    largest : float
        The largest bound at which explanations were compared; NaN where there is one step.
    robust : Estimate or None
        The second step at that bound, where it is another one.
    decided : Estimate or None
        The second step of a sample of many rows, whose explanation all rows have.
    alternatives : tuple of ndarray, shape (2, k)
        Of explanations that are nearly as good: how far from `params` theirs are, and the
        variance that they add. Intervals reach as far from zero as under any of these.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import Setting, minimize
    >>> from rrmstats.losses import RegressionProblem
    >>> x = np.arange(20.0)
    >>> problem = RegressionProblem(2 * x + np.sin(x), x[:, None])
    >>> estimate = problem.consistent(minimize(problem, eps_bar=0.2), Setting(eps_bar=0.2))
    >>> estimate.params.round(1), estimate.influence().shape
    (array([2.]), (20, 1))
    """

    problem: EstimableProblem
    setting: Setting
    solution: Solution
    params: Array
    raw_params: Array
    first: Estimate | None = None
    explained: Explained | None = None
    eps_hat: float = np.nan
    eps_hat_se: float = np.nan
    loss_unit: float = 1.0
    loss_shift: float = 0.0
    largest: float = np.nan
    robust: Estimate | None = None
    decided: Estimate | None = None
    alternatives: tuple[Array, ...] = ()

    @property
    def base(self) -> Array | None:
        """Frequency weights scaled to sum to one; None where they are equal."""
        return self.setting.base(self.problem.n_obs)

    @property
    def wnobs(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.problem.n_obs)

    @property
    def explanation(self) -> str | None:
        """The name of the explanation that was chosen; None where none was."""
        return None if self.explained is None else self.explained.chosen.name

    @property
    def rows_per_group(self) -> float:
        """Mean number of rows that share a weight."""
        return 1.0

    def influence(self) -> Array:
        """Return the influence functions of `params`, shape (n, k): it moves by their mean."""
        found = self.solution
        return minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        ).theta

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of `params`, shape (k, k); see `influence_covariance`."""
        return self.covariance_of(self.influence(), dependence)

    def covariance_of(self, influence: Array, dependence: Dependence | None = None) -> Array:
        """Return the covariance of what has given influence functions (n, m), shape (m, m)."""
        return influence_covariance(influence, self.base, self.wnobs, dependence)

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests; infinite for normal ones."""
        return np.inf

    def departures(self, other: Estimate) -> Array:
        """Return how far off another estimate is, in standard errors of this one, shape (t,).

        One number for each term that the model reports, NaN where there is no error to compare
        with.
        """
        return standardized_departures(
            other.params, self.params, np.sqrt(np.diag(self.covariance()))
        )

    def params_of(self, explanation: Explanation) -> Array | None:
        """Return the parameters under an explanation that was compared; None if not known."""
        return None

    @property
    def resamples(self) -> bool:
        """Whether samples of the rows are fitted together, from the explanations of the rows."""
        return False

    def resampled(self, counts: Array) -> Array:
        """Return the parameters of samples of the rows, shape (b, k), NaN where none are known.

        Parameters
        ----------
        counts : ndarray, shape (b, n)
            How often each row counts in each sample.
        """
        raise NotImplementedError(f"{type(self).__name__} fits samples one by one")

    def errors_of(self, explanation: Explanation, dependence: Dependence) -> Array | None:
        """Return the standard errors of these parameters, shape (k,); None if not known."""
        return None

    def nonrobust_covariance(self) -> Array:
        """Return the covariance of `params` if the noise does not change, shape (k, k)."""
        raise NotImplementedError(f"{type(self).__name__} has no covariance for constant noise")


def standardized_departures(other: Array, own: Array, error: Array) -> Array:
    """Return ``other - own`` in units of the errors of `own`; 0 where they differ by rounding.

    At exact fits all of them do.
    """
    same = np.abs(other - own) <= ROUNDING * np.abs(own).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(same, 0.0, (other - own) / error)


@dataclass(frozen=True, slots=True, eq=False)
class Untilted:
    """An estimate made under weights of groups, and how it moves.

    Attributes
    ----------
    estimate : Estimate
    row_influence : ndarray, shape (n, k)
        Influence functions of its parameters, the weights of the rows taken as known.
    by_theta : ndarray, shape (t, k), or None
        Derivative of the parameters with respect to theta, in its local coordinates, beyond what
        the weights of the rows tell; None for zero.
    by_log_lambda : ndarray, shape (k,), or None
        Derivative with respect to ln(lambda), likewise.
    """

    estimate: Estimate
    row_influence: Array
    by_theta: Array | None = None
    by_log_lambda: Array | None = None


class EstimableProblem(SmoothProblem):
    """A smooth problem that can make estimates of its solutions: what a model needs.

    Examples
    --------
    >>> from rrmstats.core import EstimableProblem, Setting, minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> import numpy as np
    >>> x = np.arange(10.0)
    >>> problem = SquaresProblem(2 * x + np.sin(x), x[:, None])
    >>> estimate = problem.consistent(minimize(problem, eps_bar=0.2), Setting(eps_bar=0.2))
    >>> isinstance(problem, EstimableProblem), estimate.params.round(1)
    (True, array([2.1]))
    """

    #: Number of the group of each row, shape (n,), where rows are good or bad by whole groups.
    row_groups: np.ndarray | None = None
    #: Parameters that were taken out of the rows beforehand, per observation.
    absorbed: float = 0.0
    #: Whether the second step starts from minima of the risk at several bounds.
    seeks_minima: bool = False
    #: Whether the second step at a larger bound is that at a smaller one whose share it keeps;
    #: those that seek minima are so.
    nested: bool = False
    #: Whether the second step starts from the first one.
    follows_first: bool = True

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell whether the second step of the problem of some of the rows serves all of them.

        Parameters and distributions have to have the same coordinates.
        """
        return False

    @property
    def searched(self) -> EstimableProblem:
        """The problem in which minima at other bounds are sought: by default this one."""
        return self

    def in_groups(self, codes: np.ndarray | None) -> Self:
        """Return the problem of the same rows, good or bad by whole groups in a second step."""
        grouped = copy(self)
        grouped.row_groups = codes
        return grouped

    def consistent(self, solution: Solution, setting: Setting) -> Estimate:
        """Return the estimate of the first step, consistent where a correction is known.

        By default the parameters of least risk as they are.
        """
        theta = solution.theta
        return Estimate(
            problem=self, setting=setting, solution=solution, params=theta, raw_params=theta
        )

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows, from the first step.

        Problems without one return their first step.
        """
        return first

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return a classical estimate under weights of groups, made consistent.

        Good rows were given unequal weights with their groups: the weight of a row is
        proportional to ``exp(-rates * losses)`` and to what does not depend on it. By default
        the estimate stays as it is.

        Parameters
        ----------
        estimate : Estimate
            That of `consistent` for equal weights, with the weights as frequency weights.
        rates : ndarray, shape (n,)
            Zero where the weights of good rows are equal.
        """
        return Untilted(estimate, estimate.influence())
