"""The ladder of generalized linear models: from the first step to the efficiency asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.consistency import order_efficiency
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, Rung, climb, difference_pvalue, excess_pvalue
from rrmstats.losses.deviance_fits import TiltedFit, tilted_fit
from rrmstats.losses.noise import share_factor
from rrmstats.losses.regression_ladder import AS_EFFICIENT, joint_orders
from rrmstats.losses.tilted_rows import Sample, TiltedRows

# P-value below which two rungs disagree. Where no dispersion tells of bad rows, parameters alone
# do; a rung refused by chance costs at most a quarter of the efficiency.
LEVEL = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class DevianceRung(Rung):
    """One rung of the ladder.

    Attributes
    ----------
    fit : TiltedFit
        Parameters and dispersion, in the coordinates of the problem.
    """

    fit: TiltedFit


def make_rung(fit: TiltedFit, to_params: Array | None) -> DevianceRung:
    """Return a fit as a rung; `to_params` takes its parameters to the units of the data."""
    rows = fit.rows
    return DevianceRung(
        order=rows.order,
        efficiency=order_efficiency(rows.order),
        params=rows.theta if to_params is None else to_params @ rows.theta,
        scale=rows.dispersion,
        eps_hat=bad_share(rows),
        converged=fit.converged,
        fit=fit,
    )


def bad_share(rows: TiltedRows) -> float:
    """Return the estimated share of bad rows, at most eps_bar."""
    taken = rows.sample.taken(rows.good())
    return 1.0 - rows.good(share_factor(taken, rows.order, rows.order))


class Moves:
    """How chance moves the fits of all orders, as the first step sees it.

    Parameters
    ----------
    rows : TiltedRows
        The rows at the parameters and the dispersion of the first step.
    orders : sequence of float
        Orders of the rungs, that of the first step included.
    """

    def __init__(self, rows: TiltedRows, orders: Sequence[float]) -> None:
        self._rows, self._orders = rows, list(orders)
        self._known: dict[float, tuple[Array, Array]] = {}

    def of(self, *orders: float) -> list[tuple[Array, Array]]:
        """Return influence functions of the parameters (n, k) and the log dispersion (n,)."""
        new = [order for order in orders if order not in self._known]
        first = self._rows
        sample, problem = first.sample, first.sample.problem
        rows_of = [sample.at(first.theta, first.dispersion, order) for order in new]
        breads, _, goods = problem.products(
            [sample.mass * rows.weights * rows.spread for rows in rows_of],
            [],
            [sample.mass * rows.ratio for rows in rows_of],
        )
        for rows, bread, good in zip(rows_of, breads, goods, strict=True):
            root = inverse_root(bread)
            moved = (problem.exog @ (root.T @ root)) * rows.scores[:, None]
            wanted = rows.moments.deviance / rows.moments.mass
            unit = rows.order**1.5 / max(float(good), 1.0)
            log_scale = unit * rows.weights * (rows.deviance / wanted - 1.0)
            self._known[rows.order] = moved, log_scale
        return [self._known[order] for order in orders]

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        """Sums of products of the influence functions of all orders, (m k, m k) and (m, m)."""
        moved, scales = zip(*self.of(*self._orders), strict=True)
        return row_sums(partial(_squares, len(moved)), self._rows.sample.mass, *moved, *scales)

    def variances(self, one: float, other: float) -> tuple[Array, float]:
        """Return the variances of the difference of the fits of two orders.

        Of the parameters (k, k), and of the log dispersion. Of rows in blocks all orders share
        two passes.
        """
        if self._rows.sample.problem.blocks is None:
            (left, low), (right, high) = self.of(one, other)
            mass, moves, scales = self._rows.sample.mass, left - right, low - high
            return (mass[:, None] * moves).T @ moves, float(mass @ (scales * scales))
        contrast = np.zeros(len(self._orders))
        contrast[self._orders.index(one)], contrast[self._orders.index(other)] = 1.0, -1.0
        wide = np.kron(contrast, np.eye(len(self._rows.theta)))
        moved, log_scales = self._squares
        return wide @ moved @ wide.T, float(contrast @ log_scales @ contrast)

    def equal_pvalue(self, rung: DevianceRung, earlier: DevianceRung) -> float:
        """Return the p-value that two rungs have the same parameters."""
        difference = rung.fit.rows.theta - earlier.fit.rows.theta
        variance = self.variances(rung.order, earlier.order)[0]
        return difference_pvalue(difference, variance, self._free)

    def growth_pvalue(self, rung: DevianceRung, earlier: DevianceRung) -> float:
        """Return the p-value that the dispersion has not grown since an earlier rung."""
        growth = float(np.log(rung.scale / earlier.scale))
        return excess_pvalue(growth, self.variances(rung.order, earlier.order)[1], self._free)

    @property
    def _free(self) -> float:
        sample = self._rows.sample
        return max(sample.total * (1.0 - sample.setting.eps_bar) - sample.problem.n_params, 1.0)


def _squares(count: int, mass: Array, *arrays: Array) -> tuple[Array, Array]:
    moved, scales = np.hstack(arrays[:count]), np.column_stack(arrays[count:])
    return (mass[:, None] * moved).T @ moved, (mass[:, None] * scales).T @ scales


def deviance_ladder(
    sample: Sample, first: TiltedFit, efficiency: float, to_params: Array | None
) -> Ladder[DevianceRung]:
    """Return the ladder of the second step.

    Parameters
    ----------
    sample : Sample
    first : TiltedFit
        The first step.
    efficiency : float
        Efficiency of the last rung.
    to_params : ndarray, shape (p, k), or None
        Takes parameters to the units of the data; None where they are the same.
    """
    dispersed = sample.problem.family.dispersed
    bottom = make_rung(first, to_params)

    def fit(order: float, last: DevianceRung) -> DevianceRung:
        rows = last.fit.rows
        found = tilted_fit(sample, rows.theta, rows.dispersion, order, dispersed)
        return make_rung(found, to_params)

    def agreement(rung: DevianceRung, earlier: DevianceRung) -> float:
        if not rung.converged:  # a root of the equation vanishes where bad rows come back
            return 0.0
        grown = moves.growth_pvalue(rung, earlier) if dispersed else 1.0
        if earlier is bottom:
            return grown
        return min(moves.equal_pvalue(rung, earlier), grown)

    orders = joint_orders(sample.setting.eps_bar, efficiency)
    orders = orders[orders < bottom.order]
    if not len(orders):
        return Ladder((bottom,), 0, AS_EFFICIENT)
    moves = Moves(first.rows, [bottom.order, *map(float, orders)])
    return climb(bottom, orders, fit, agreement, LEVEL)
