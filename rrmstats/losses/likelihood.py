"""Any likelihood that is a sum over rows: its loss, its consistent estimate, its second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.core.consistency import second_moment_ratio
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.explanations import Bad, Explanation
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import minimum_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.families import MeanFunction
from rrmstats.laws.mixture import BadRows, Laws
from rrmstats.laws.responses import (
    KernelRows,
    WholeRows,
    WideCounts,
    bad_counts,
    information,
    laws_of_family,
    other_lines,
    unpredicted,
)
from rrmstats.laws.rows import PredictorRows, design_gram
from rrmstats.losses.explained import ExplainedEstimate, ExplainedProblem
from rrmstats.losses.finite_differences import inside
from rrmstats.losses.label_explanations import ExplainedLabels
from rrmstats.losses.likelihood_laws import (
    CountKernel,
    FamilyKernel,
    Likelihood,
    ZeroInflatedKernel,
    batch_fits,
    batch_slices,
)
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.numerical import (
    IMPROVING_STEPS,
    SUBSET_STEPS,
    NumericalProblem,
    with_infinite_losses,
)
from rrmstats.losses.tilted_rows import LawRows, Sample, tilted_fit

if TYPE_CHECKING:
    from typing_extensions import Self

# Lambda down to which the raw parameters of labels tell more than a direction.
# Derived: corrected parameters are 1 - 1 / lambda of the raw ones, here five per cent.
LEAST_LAMBDA = 1.05


class LikelihoodProblem(ExplainedProblem, NumericalProblem):
    """Minus log-likelihoods, above those that each row could have at most.

    Rows whose likelihoods have different largest values can only be compared once these are
    subtracted: otherwise rows with a large mean look bad whatever their response is.

    Parameters
    ----------
    likelihood : Likelihood
    """

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood
        self.largest: Array = np.zeros(len(likelihood.endog))
        if likelihood.largest is not None:
            self.largest = likelihood.largest(likelihood.endog)
        super().__init__(
            self._own_losses,  # methods, not lambdas: results are pickled with their problem
            likelihood.start,
            len(likelihood.endog),
            kinds=likelihood.kinds,
            gradients=self._own_gradients if likelihood.scored else None,
            lower=likelihood.lower,
        )

    @cached_property
    def unit(self) -> Array:
        """Changes of the parameters over which the mean loss bends, shape (k,)."""
        found, form = super().unit, self.likelihood.closed
        # Where the mean loss hardly bends, its curvature gives no unit.
        return found if form is None else np.minimum(found, form.longest_units)

    @property
    def designs(self) -> tuple[Array, ...]:
        """Designs of the predictors."""
        return self.likelihood.designs

    def _own_losses(self, theta: Array) -> Array:
        return self.largest - self.likelihood.rows.log_likelihood(theta)

    def _own_gradients(self, theta: Array) -> Array:
        return -self.likelihood.rows.scores(theta)

    @cached_property
    def design(self) -> Design:  # type: ignore[override]  # of labels; others need none
        """Coordinates of labels."""
        return Design(self.designs[0])

    @property
    def labels(self) -> LogisticProblem | None:
        """The rows as labels of a logistic regression; None where they are something else."""
        form = self.likelihood.closed
        if form is None or not self.likelihood.logistic:
            return None
        plain = LogisticProblem(self.likelihood.endog, self.design.exog, form.offsets[0])
        plain.columns = self.designs[0]
        return plain

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell that all rows are decided upon: units of parameters are those of all."""
        return False

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        form = self.likelihood.closed
        if form is None:
            return super().hessian(theta, weights)
        at = np.array(form.predictors(inside(theta, self.unit, self.likelihood.lower)))
        with np.errstate(all="ignore"):
            bend = weights * information(form.kernel.slopes, form.endog, at)
        return design_gram(form.designs, np.where(weights > 0, bend, 0.0))

    def rough_hessian(self, theta: Array, weights: Array) -> Array:
        """Return the outer products of the scores, which have the expectation of the Hessians."""
        used = weights > 0
        gradients = self.gradients(theta)[used]
        return gradients.T @ (weights[used, None] * gradients)

    def losses(self, theta: Array) -> Array:
        """Return the losses, BEYOND where they are infinite or not defined, shape (..., n)."""
        if self.likelihood.closed is None:
            return super().losses(theta)
        return self._row_losses(theta)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower weighted loss, shape (b, k)."""
        form = self.likelihood.closed
        if form is None:
            return super().improved(weights, theta)
        parts = [
            batch_fits(form, weights[b], theta[b], self.lower, IMPROVING_STEPS)
            for b in batch_slices(len(theta), self.n_obs, self.n_params)
        ]
        return np.concatenate(parts)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the fits to subsets of rows, shape (m, k)."""
        if self.likelihood.closed is None:
            return super().subset_fits(subsets)
        return batch_fits(
            self.likelihood.closed.subsets(subsets),
            np.full(subsets.shape, 1.0 / subsets.shape[1]),
            np.tile(self.start, (len(subsets), 1)),
            self.lower,
            SUBSET_STEPS,
        )

    def take(self, rows: np.ndarray) -> Self:
        """Return the problem restricted to some rows."""
        some = None if self.likelihood.part is None else self.likelihood.part(rows)
        return super().take(rows) if some is None else type(self)(some)

    def consistent(self, solution: Solution, setting: Setting) -> LikelihoodEstimate:
        """Return the estimate of the first step, corrected where the distribution is known."""
        found, raw = with_infinite_losses(solution), solution.theta
        if not self.likelihood.known:
            return self._estimate(found, setting, None, raw)
        sample = Sample(self, setting)
        if not 0 < solution.lambda_ < np.inf:
            return self._estimate(found, setting, LawRows(sample, raw, 1.0), raw)
        order = self._first_order(solution.lambda_, setting.eps_bar)
        if order is not None:
            rows, root = tilted_fit(LawRows(sample, raw, order, raw))
            if rows.flat.any():
                # A raw parameter at the end of its range, such as a share of zeros, stays there.
                other, found_root = tilted_fit(LawRows(sample, self.start, order, raw))
                if found_root and other.tilted_likelihood > rows.tilted_likelihood:
                    rows, root = other, True
        else:
            highest = 1.0 / second_moment_ratio(setting.eps_bar)
            rows, root = tilted_fit(LawRows(sample, self.start, highest))
        found = replace(found, converged=solution.converged and root)
        return self._estimate(found, setting, rows, raw)

    def _first_order(self, lambda_: float, eps_bar: float) -> float | None:
        """Return the order of a first step's weights; None where these tell nothing.

        Labels that may have probability one are fitted better and better as lambda falls to one.
        Counts near zero can be fitted so closely that their order is above that of clean data.
        """
        if self.likelihood.classes:
            return 1.0 + 1.0 / lambda_ if lambda_ > LEAST_LAMBDA else None
        return min(1.0 + 1.0 / lambda_, 1.0 / second_moment_ratio(eps_bar))

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows, from the first step.

        The first step where the distribution of the responses is not known, or where no single
        label is improbable enough to tell a wrong one from chance.
        """
        assert isinstance(first, LikelihoodEstimate)
        told = self.labels is not None and self.row_groups is None
        if first.rows is None or (self.likelihood.classes and not told):
            return first
        return super().second_step(first)

    def law_rows(self, first: Estimate) -> PredictorRows:
        """Return the rows as laws take them."""
        form, mass = self.likelihood.closed, np.array(first.setting.counts(self.n_obs))
        rows = PredictorRows.plain(
            mass, first.wnobs, self.likelihood.endog, self.designs, groups=self.row_groups
        )
        return rows if form is None else replace(rows, offsets=form.offsets)

    def laws(self, rows: PredictorRows) -> Laws:
        """Return what rows may look like."""
        form, y, lower = self.likelihood.closed, self.likelihood.endog, self.likelihood.lower
        kernel = None if form is None else form.kernel
        if isinstance(kernel, FamilyKernel):
            mean = MeanFunction.between(kernel.mean.link, *kernel.family.mean_bounds(y))
            return laws_of_family(kernel.family, mean, rows)
        if isinstance(kernel, CountKernel):
            bad = bad_counts(zeros=not isinstance(kernel, ZeroInflatedKernel))
        else:
            counts = bool((y >= 0).all() and (y == np.round(y)).all())
            bad = (BadRows(Bad.WIDE, (WideCounts() if counts else unpredicted(y, rows.mass),)),)
        if kernel is None:
            whole = WholeRows(self.likelihood.rows.log_likelihood, self._scores)
            return Laws(whole, None, bad, lower, divisible=False)
        good = KernelRows(kernel.log_density, kernel.slopes, getattr(kernel, "moments", None))
        return Laws(good, None, (*bad, *other_lines(good, rows, self.start)), lower)

    def _scores(self, theta: Array) -> Array:
        return -self.gradients(theta)

    def candidates(self, first: LikelihoodEstimate) -> list[Array]:
        """Return parameters to start from, those of maximum likelihood first."""
        return [self.start, first.params, *first.solution.other_minima()]

    def explained_by(self, first: LikelihoodEstimate, found: Any) -> LikelihoodEstimate:
        """Return the estimate of the explanation that was found."""
        if isinstance(found, ExplainedLabels):
            to_params, told = self.design.to_params, found.explained
            listed = tuple(
                replace(each, theta=to_params(each.theta))
                for each in told.explanations
                if each.theta is not None
            )
            found = replace(
                found,
                theta=to_params(found.theta),
                explained=replace(told, explanations=listed),
                moves=to_params(found.moves.T).T,
            )
            sound, sized = True, first.solution.lambda_ > LEAST_LAMBDA or not found.separated
            known = np.full(self.n_params, sized)
        else:
            sound, known = first.solution.converged, found.known
        report = found.reported(first, self.losses(found.theta), sound)
        return LikelihoodEstimate(
            problem=self,
            **report | {"solution": with_infinite_losses(report["solution"])},
            params=found.theta,
            raw_params=first.raw_params,
            rows=LawRows(Sample(self, first.setting), found.theta, 1.0),
            known=known,
        )

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, corrected if the distribution is known."""
        assert isinstance(estimate, LikelihoodEstimate)
        if not self.likelihood.known or not rates.any():
            return super().untilted(estimate, rates)
        found, sample = estimate.solution, Sample(self, estimate.setting)
        rows, root = tilted_fit(LawRows.weighed(sample, found.theta, rates))
        found = replace(found, converged=found.converged and root)
        plain = LawRows(sample, rows.theta, 1.0)
        told = self._estimate(found, estimate.setting, plain, estimate.raw_params)
        return Untilted(told, *rows.moves())

    def _estimate(
        self, solution: Solution, setting: Setting, rows: LawRows | None, raw: Array
    ) -> LikelihoodEstimate:
        share, error = (np.nan, np.nan) if rows is None else rows.bad_share()
        return LikelihoodEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=solution.theta if rows is None else rows.theta,
            raw_params=raw,
            eps_hat=share,
            eps_hat_se=error,
            rows=rows,
            known=solution.theta > self.lower if rows is None else rows.free,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LikelihoodEstimate(ExplainedEstimate):
    """The estimate of a likelihood.

    Attributes
    ----------
    rows : LawRows or None
        The rows at `params`; None where the distribution of the responses is not known.
    known : ndarray, shape (k,)
        Which parameters the rows tell something about and no bound holds.
    """

    problem: LikelihoodProblem
    rows: LawRows | None
    known: np.ndarray

    @property
    def saturated(self) -> bool:
        """Whether the largest log-likelihoods that rows could have are known."""
        return self.problem.likelihood.largest is not None

    def params_of(self, explanation: Explanation) -> Array | None:
        """Return the parameters under an explanation that was compared; None if not known."""
        return explanation.theta

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k); NaN if not `known`."""
        moves = self.first_moves() if self.moves is None else self.moves
        return np.where(self.known, moves, np.nan)

    def first_moves(self) -> Array:
        """Return the influence functions of all parameters, whatever those not known have."""
        if self.rows is None or self.rows.order == 1.0:
            return super().first_moves()
        if self.rows.anchor is None:
            return self.wnobs * self.rows.influence
        found = (self.first or self).solution
        raw = minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )
        free = self.known & (found.theta > self.problem.lower)
        return self.wnobs * self.rows.anchored_influence(
            np.where(free, raw.theta, 0.0) / self.wnobs, raw.log_lambda / self.wnobs
        )

    def tail(self) -> Array | None:
        """Return the probability of a loss as large as each row's, (n,); None if unknown."""
        return None if self.rows is None else self.rows.tail()
