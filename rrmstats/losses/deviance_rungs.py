"""The ladder of generalized linear models: from the first step to the efficiency asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.consistency import order_efficiency
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, Rung, climb, equal_pvalue, growth_pvalue
from rrmstats.losses.deviance_fits import TiltedFit, tilted_fit
from rrmstats.losses.noise import share_factor
from rrmstats.losses.regression_ladder import AS_EFFICIENT, joint_orders
from rrmstats.losses.tilted_rows import Sample, TiltedRows

# P-value below which two rungs disagree.
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
    """

    def __init__(self, rows: TiltedRows) -> None:
        self._rows = rows
        self._found: dict[float, tuple[Array, Array]] = {}
        self._counts = rows.sample.mass

    def of(self, order: float) -> tuple[Array, Array]:
        """Return influence functions of the parameters (n, k) and the log dispersion (n,)."""
        if order not in self._found:
            first = self._rows
            rows = first.sample.at(first.theta, first.dispersion, order)
            moved = rows.sample.problem.exog @ np.linalg.pinv(rows.bread, hermitian=True)
            good = float(self._counts @ rows.ratio)
            wanted = rows.moments.deviance / rows.moments.mass
            unit = order**1.5 / max(good, 1.0)
            log_scale = unit * rows.weights * (rows.deviance / wanted - 1.0)
            self._found[order] = moved * rows.scores[:, None], log_scale
        return self._found[order]

    def equal_pvalue(self, rung: DevianceRung, earlier: DevianceRung) -> float:
        """Return the p-value that two rungs have the same parameters."""
        moves = self.of(rung.order)[0] - self.of(earlier.order)[0]
        difference = rung.fit.rows.theta - earlier.fit.rows.theta
        return equal_pvalue(difference, moves, self._counts, self._free)

    def growth_pvalue(self, rung: DevianceRung, earlier: DevianceRung) -> float:
        """Return the p-value that the dispersion has not grown since an earlier rung."""
        moves = self.of(rung.order)[1] - self.of(earlier.order)[1]
        growth = float(np.log(rung.scale / earlier.scale))
        return growth_pvalue(growth, moves, self._counts, self._free)

    @property
    def _free(self) -> float:
        sample = self._rows.sample
        return max(sample.total * (1.0 - sample.setting.eps_bar) - sample.problem.n_params, 1.0)


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
    moves = Moves(first.rows)
    bottom = make_rung(first, to_params)

    def fit(order: float, last: DevianceRung) -> DevianceRung:
        rows = last.fit.rows
        found = tilted_fit(sample, rows.theta, rows.dispersion, order, dispersed)
        return make_rung(found, to_params)

    def agreement(rung: DevianceRung, earlier: DevianceRung) -> float:
        grown = moves.growth_pvalue(rung, earlier) if dispersed else 1.0
        if earlier is bottom:
            return grown
        return min(moves.equal_pvalue(rung, earlier), grown)

    orders = joint_orders(sample.setting.eps_bar, efficiency)
    orders = orders[orders < bottom.order]
    if not len(orders):
        return Ladder((bottom,), 0, AS_EFFICIENT)
    return climb(bottom, orders, fit, agreement, LEVEL)
