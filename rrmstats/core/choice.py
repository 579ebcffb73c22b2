"""The automatic choice of eps_bar: what a generous bound finds corrupted, and a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from rrmstats.core.comparison import compare, larger_bound
from rrmstats.core.estimate import Estimate

# Standard errors of the corrupted fraction that are added to it.
MARGIN = 2.0
# The chosen value is a multiple of this.
STEP = 0.01


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of eps_bar, and why it was chosen.

    Attributes
    ----------
    eps_bar : float
        The value.
    bound : float
        The generous bound from which it was found.
    share : float
        Fraction of the rows that an efficient fit gives up there.
    margin : float
        What was added to it.
    raised : bool
        Whether it was raised because less robust fits disagree with more robust ones.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar="auto").fit()
    >>> choice = res.model.choice
    >>> choice.eps_bar == res.eps_bar, choice.raised
    (True, False)
    """

    eps_bar: float
    bound: float
    share: float
    margin: float
    raised: bool

    @property
    def reason(self) -> str:
        """The choice in a sentence."""
        text = (
            f"eps_bar = {self.eps_bar:g} was chosen automatically: a fit with the bound "
            f"{self.bound:g} leaves out {100 * max(self.share, 0.0):.1f} % of the rows, wholly or "
            f"in part, and the margin for chance is {100 * self.margin:.1f} %"
        )
        if self.raised:
            text += ", raised until the fit agrees with more robust ones"
        if self.eps_bar >= self.bound:
            text += "; it is the largest value allowed (eps_bar_max or the number of rows)"
        return text + "."


def choose(fit: Callable[[float], Estimate], bound: float) -> Choice:
    """Choose eps_bar.

    A fit at a generous bound tells how many rows are corrupted: an efficient one, because with the
    smaller noise of its residuals they stand out. The value is that share and a margin. It is
    raised where the fit there disagrees with more robust ones, as it does in a wrong minimum.

    Parameters
    ----------
    fit : callable
        Return the efficient estimate at a value of eps_bar.
    bound : float
        The largest value.
    """
    fitted = cache(fit)
    bound = max(round(float(np.floor(round(bound / STEP, 9))) * STEP, 9), 0.0)
    value, share, margin = _needed(fitted(bound), bound)
    raised = False
    while (larger := larger_bound(value, bound)) is not None:
        if compare(fitted(value), fitted(larger)).agrees:
            break
        value, raised = rounded_up(larger, bound), True
    return Choice(value, bound, share, margin, raised)


def rounded_up(value: float, bound: float) -> float:
    """Return a value as the next multiple of STEP, at most a bound."""
    return float(min(round(np.ceil(round(value / STEP, 9)) * STEP, 9), bound))


def _needed(estimate: Estimate, bound: float) -> tuple[float, float, float]:
    """Return the value that an estimate needs, the share of rows that it gives up, the margin."""
    n, share = estimate.wnobs, float(np.nan_to_num(estimate.eps_hat))
    # The weights of a fit that gives up rows in part are those of a larger bound.
    share = max(share, 1 - estimate.solution.n_eff / n)
    least_one = min(max(share, 1 / n), 0.5)
    error = np.sqrt(least_one * (1 - least_one) / n)
    margin = MARGIN * max(float(np.nan_to_num(estimate.eps_hat_se)), float(error))
    return rounded_up(share + margin, bound), share, margin
