"""A Gaussian mixture decided on some rows, and what all rows say of it, one pass a question.

All that is asked of the rows is a sum over them, or a function of each, so that they may lie in
memory or in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array
from rrmstats.laws.gaussian import Mixtures, Rows
from rrmstats.laws.gaussian_equations import POLISH_TOL, SETTLED, Equations

# Steps on all rows from a solution on some of them: each is as much nearer as the derivative of
# the equations on these is near that on all.
STEPS = 20

#: Numbers of the groups of rows, shape (n,); None where rows are good or bad by themselves.
Groups = np.ndarray | None


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A mixture, and the equations of the rows that it was decided on.

    Attributes
    ----------
    mixture : Mixtures
        A batch of one; its arrays of rows are those of `decided`.
    decided : Equations
        Its equations on the rows on which it was decided.
    total : float
        Number of observations that all rows stand for.
    """

    mixture: Mixtures
    decided: Equations
    total: float

    def equations(
        self, data: Array, exog: Array, counts: Array, groups: Groups = None
    ) -> Equations:
        """Return the equations of some rows."""
        frame = self.decided.rows.whole._replace(total=self.total)
        rows = Rows(data, exog, counts, frame, groups)
        far = rows.far(self.mixture.middle[0], self.mixture.metric[0])
        near = not self.decided.mixture.far.any()
        mixture = replace(
            self.mixture, far=(far & (not near))[None], good=np.ones((1, len(counts)))
        )
        return Equations(rows, mixture, self.decided.eps_bar, like=self.decided)

    @property
    def at_new_bound(self) -> bool:
        """Whether a parameter has reached a bound that it was not at when this was decided."""
        names = {block.name for block in self.decided.blocks}
        return any(f"size {part}" in names and self.mixture.size[0, part] <= 1 for part in (0, 1))

    def decided_again(self) -> FittedMixture:
        """Return the same with equations that know of its bounds."""
        mixture = replace(self.mixture, good=self.decided.mixture.good)
        decided = Equations(self.decided.rows, mixture, self.decided.eps_bar)
        return replace(self, mixture=mixture, decided=decided)

    def value(self, data: Array, exog: Array, counts: Array, groups: Groups = None) -> Array:
        """Return what some rows add to the equations, shape (q,)."""
        return self.equations(data, exog, counts, groups).value

    def probabilities(
        self, data: Array, exog: Array, counts: Array, groups: Groups = None
    ) -> Array:
        """Return the probability of each row to be good, and its pull on the fit, shape (n, 2)."""
        found = self.equations(data, exog, counts, groups)
        return np.column_stack([found.good, found.pull])

    def influence(
        self,
        data: Array,
        exog: Array,
        counts: Array,
        groups: Groups = None,
        corrected: bool = True,
    ) -> Array:
        """Return the influence functions of all parameters, shape (n, q)."""
        found = self.equations(data, exog, counts, groups)
        growth = self.total / self.decided.rows.total
        if corrected:
            scores = found.scores(1 / (1 - found.leverage(self.inverse_gram)))
        else:
            scores = found.count_slopes()
        return found.solved(scores, growth * self.decided.jacobian)

    @property
    def inverse_gram(self) -> Array:
        """Inverse Gram matrix of the predictors of all good rows, shape (k, k)."""
        growth = self.total / self.decided.rows.total
        return np.linalg.pinv(growth * self.decided.gram, hermitian=True)

    def cutoffs(self, data: Array, exog: Array, counts: Array, groups: Groups = None) -> Array:
        """Return the standard deviations of the residuals of good rows at each row, shape (n,).

        In units of the noise. A row that had a part in the fit is nearer to it than one that had
        none.
        """
        found = self.equations(data, exog, counts, groups)
        reach = np.einsum("ni,ij,nj->n", exog, self.inverse_gram, exog)
        variance = np.maximum(1 + (1 - 2 * found.good) * reach, np.finfo(float).eps)
        return np.asarray(found.size * np.sqrt(variance))


def polished_on_all(
    fitted: FittedMixture, data: Array, exog: Array, counts: Array, groups: Groups = None
) -> tuple[FittedMixture, bool]:
    """Return a mixture that solves its equations on all rows, and whether it does."""
    last = np.inf
    for _ in range(STEPS):
        growth = fitted.total / fitted.decided.rows.total
        value = row_sums(fitted.value, data, exog, counts, groups)
        step = -np.linalg.solve(growth * fitted.decided.jacobian, value)
        change = fitted.decided.change(step)
        if not change < last:
            break
        last, moved = change, fitted.decided.moved(step, fitted.mixture)
        fitted = replace(fitted, mixture=fitted.decided.bounded(moved))
        if fitted.at_new_bound:
            fitted, last = fitted.decided_again(), np.inf
        if change < POLISH_TOL:
            break
    return fitted, last < SETTLED
