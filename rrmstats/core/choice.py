"""The automatic choice of eps_bar: the share of bad rows that is found, and a margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.estimate import Estimate
from rrmstats.core.steps import GRID

#: Standard errors of the share of bad rows that are added to it. Derived: the share is within them
#: in 95 % of samples, z = 1.96.
MARGIN = 2.0
#: The chosen value is a multiple of this. Derived: half the distance of the bounds of a path.
STEP = 0.5 * GRID


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of eps_bar, and why it was chosen.

    Attributes
    ----------
    eps_bar : float
        The value.
    bound : float
        The largest bound, at which the bad rows were counted.
    share : float
        Share of bad rows that the best explanation of the rows has there.
    margin : float
        What was added to it: two standard errors, at least those of one bad row.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars).fit()
    >>> choice = res.model.choice
    >>> choice.eps_bar == res.eps_bar, choice.share == res.eps_hat
    (True, True)
    """

    eps_bar: float
    bound: float
    share: float
    margin: float

    @property
    def reason(self) -> str:
        """The choice in a sentence."""
        found = "the share of bad rows" if self.share > 0 else "no bad rows"
        text = (
            f"eps_bar = {self.eps_bar:.3g} was chosen automatically: {found}, and a margin for "
            f"chance of {100 * self.margin:.2g} %"
        )
        if self.share + self.margin > self.bound:
            text += (
                f". Together they are more than the largest bound, {self.bound:.3g}, that "
                "eps_bar_max and the number of rows allow"
            )
        return text + "."


def chosen(robust: Estimate, most: float) -> Choice:
    """Return the bound that a second step at the largest bound needs, at most a value."""
    bound, n = min(robust.setting.eps_bar, most), robust.problem.units(robust.wnobs)
    share = float(np.nan_to_num(robust.eps_hat))
    least_one = min(max(share, 1 / n), 0.5)
    error = float(np.sqrt(least_one * (1 - least_one) / n))
    margin = MARGIN * max(float(np.nan_to_num(robust.eps_hat_se)), error)
    return Choice(rounded_up(share + margin, bound), bound, share, margin)


def rounded_up(value: float, bound: float) -> float:
    """Return a value as the next multiple of STEP, at most a bound."""
    return float(min(round(np.ceil(round(value / STEP, 9)) * STEP, 9), bound))
