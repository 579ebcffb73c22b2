"""The stacked estimating equations of one Gaussian mixture: its polish and influence functions.

Every parameter of an explanation solves an equation that is a sum over rows. The derivative of the
stack is found by differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.core.tolerances import MAX_STEPS, SUM_ROUNDING
from rrmstats.laws.gaussian import (
    KINDS,
    LEAST_DF,
    MOST_DF,
    Mixtures,
    Part,
    Rows,
    Seen,
    df_scores,
    em_step,
    seen,
)

# Step of the central differences, in standard deviations of the noise or on a log scale.
STEP = 1e-4
# What rounding leaves of derivatives that are zero, relative to the others.
JACOBIAN_ROUNDING = 1e-10
# Accuracy of the polish, in standard deviations of the noise.
POLISH_TOL = 1e-9
# Most that a step of the polish changes log sizes and log-odds.
MOST_STEP = 1.0
# Accuracy with which a fit has converged for all purposes.
SETTLED = 1e-6
# Equations beyond which EM is cheaper than Newton's steps.
MOST_EQUATIONS = 80
# Rows of a kind below which there is none.
LEAST_ROWS = 0.01
# Shares this close to eps_bar, relative to it, and log sizes this close to 0 stay there.
AT_END = 1e-9


class Block(NamedTuple):
    """Equations of one set of parameters of b mixtures: sums over the rows of products.

    Attributes
    ----------
    name : str
        Where there are two such sets, one for each part of the bad rows, with its number.
    cores : ndarray, shape (b, n, m)
    factors : ndarray, shape (n, r) or (b, n, r)
    """

    name: str
    cores: Array
    factors: Array


def all_blocks(
    rows: Rows, mixtures: Mixtures, view: Seen, free_shares: np.ndarray
) -> Iterator[Block]:
    """Return the equations of all parameters of a batch of mixtures of one kind.

    Parameters
    ----------
    rows : Rows
    mixtures : Mixtures
    view : Seen
        How they see the rows.
    free_shares : ndarray of bool, shape (2, 2)
        Shares of each part and place of the bad rows that have an equation.
    """
    d, one, good = rows.dim, np.ones((len(rows.data), 1)), view.probabilities[0]
    kind = KINDS[int(mixtures.kind[0])]
    here, white = view.here, view.here.white
    pull, upper = good * mixtures.pulls(view.square, d), np.triu_indices(d)
    yield Block("coef", (pull * np.exp(-view.log_size))[:, :, None] * white, rows.exog)
    outer = pull[:, :, None] * white[:, :, upper[0]] * white[:, :, upper[1]]
    outer[:, :, upper[0] == upper[1]] -= (good - rows.n_lost / rows.total)[:, :, None]
    yield Block("scatter", outer, one)
    if view.features is not None:
        features = view.features[:, :, : 1 if kind.good is Good.GROWING_NOISE else None]
        yield Block("growth", (good * (view.square / d - 1))[:, :, None], features)
    places = np.stack([~mixtures.far, mixtures.far], axis=2).astype(float)
    sizes, together = {}, rows.together
    squares = mixtures.distances(rows, here)[0] / mixtures.size.T[:, :, None]
    for part, share in enumerate(mixtures.row_shares()):
        if mixtures.has(Part.NONE)[0, part]:
            continue
        prob, around, every = view.probabilities[1 + part], squares[part], np.arange(len(mixtures))
        away = white - here.metric.white(mixtures.offsets(rows, every, np.full_like(every, part)))
        weight: Array | float = 1.0
        if mixtures.has(Part.WIDE)[0, part]:
            weight = (1 + d * together.sizes) / (1 + together.sums(around))
        sizes[part] = (prob * (weight * around - d))[:, :, None]
        yield Block(f"share {part}", (prob - share)[:, :, None], places[:, :, free_shares[part]])
        if mixtures.has(Part.CLUSTER)[0, part]:
            yield Block(f"center {part}", prob[:, :, None] * away, one)
        if mixtures.has(Part.LINE)[0, part]:
            yield Block("line", prob[:, :, None] * away, rows.exog)
    if mixtures.has(Part.CLUSTER)[0].all():
        sizes = {1: sizes[0] + sizes[1]}
    for part, cores in sizes.items():
        yield Block(f"size {part}", cores, one)
    if kind.good is Good.HEAVY_TAILS:
        scores = good * df_scores(view.square, mixtures.df[:, None], d)
        yield Block("df", scores[:, :, None], one)


class Equations:
    """The equations of one mixture, at its parameters.

    Parameters
    ----------
    rows : Rows
    mixture : Mixtures
        A batch of one.
    eps_bar : float
    like : Equations, optional
        The same of other rows, which tell what parameters are at a bound.
    """

    def __init__(
        self, rows: Rows, mixture: Mixtures, eps_bar: float, like: Equations | None = None
    ) -> None:
        self.rows, self.mixture, self.eps_bar = rows, mixture, eps_bar
        self.kind = KINDS[int(mixture.kind[0])]
        self.view = seen(rows, mixture)
        self.good = self.view.probabilities[0, 0]
        self.size = np.broadcast_to(np.exp(self.view.log_size[0]), self.good.shape)
        self.pull = self.good * mixture.pulls(self.view.square, rows.dim)[0] / self.size**2
        self.root = np.linalg.cholesky(mixture.scatter[0])
        self.masses: Array = np.stack([~mixture.far[0], mixture.far[0]]) @ rows.counts
        self.free_shares: np.ndarray = self._free_shares()
        if like is not None:
            self.masses, self.free_shares = like.masses, like.free_shares
        self._names = None if like is None else set(like.places)

    def _free_shares(self) -> np.ndarray:
        """Tell which shares are neither 0 nor 1 nor at the bound, shape (2, 2)."""
        counts, share = self.rows.counts, self.mixture.share[0]
        most = self.eps_bar * self.rows.total * (1 - AT_END)
        before, after = self.mixture.row_shares()[:, 0].sum(axis=0), 1 - self.good
        bounded = counts @ before >= most and counts @ after >= most
        least = np.minimum(share, 1 - share) * self.masses
        return np.asarray((least > LEAST_ROWS) & (not bounded))

    def of_sample(self) -> Equations:
        """Return the same, fit to tell what other rows are.

        Where none of the few rows far out is bad, others of which none is here may be: they are
        as likely bad as rows near by.
        """
        far = float(self.mixture.share[0, :, 1].sum()) * self.masses[1]
        if not self.mixture.far.any() or far > LEAST_ROWS:
            return self
        mixture = replace(self.mixture, far=np.zeros_like(self.mixture.far))
        return Equations(self.rows, mixture, self.eps_bar)

    def _is_free(self, block: Block) -> bool:
        """Tell whether the parameters of a block exist and are at no bound."""
        if self._names is not None:
            return block.name in self._names
        name, _, part = block.name.partition(" ")
        if name == "size":
            return bool(self.mixture.size[0, int(part)] > 1 + AT_END)
        if name == "df":
            return bool(LEAST_DF < self.mixture.df[0] < MOST_DF)
        return block.factors.shape[-1] > 0

    @cached_property
    def blocks(self) -> list[Block]:
        """The equations of parameters that are at no bound."""
        found = all_blocks(self.rows, self.mixture, self.view, self.free_shares)
        return [block for block in found if self._is_free(block)]

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where the equations of each block are."""
        sizes = [block.cores.shape[-1] * block.factors.shape[-1] for block in self.blocks]
        ends = np.cumsum([0, *sizes])
        return {b.name: slice(ends[i], ends[i + 1]) for i, b in enumerate(self.blocks)}

    def place(self, name: str) -> slice:
        """Return where the equations of a block are; empty where its parameters are known."""
        return self.places.get(name, slice(0, 0))

    @cached_property
    def value(self) -> Array:
        """The equations, shape (q,), zero at the solution."""
        return self._sums(self.blocks)[0]

    def _sums(self, blocks: list[Block]) -> Array:
        """Return the sums over the rows of blocks of b mixtures, shape (b, q)."""
        counts = self.rows.counts[:, None]
        sums = [np.swapaxes(b.cores * counts, 1, 2) @ b.factors for b in blocks]
        return np.hstack([each.reshape(len(each), -1) for each in sums])

    def values(self, mixtures: Mixtures) -> Array:
        """Return the equations at other parameters, shape (b, q)."""
        view = seen(self.rows, mixtures)
        found = all_blocks(self.rows, mixtures, view, self.free_shares)
        return self._sums([block for block in found if block.name in self.places])

    @cached_property
    def jacobian(self) -> Array:
        """Derivative of the equations in the parameters, shape (q, q)."""
        q, steps = len(self.value), STEP * np.eye(len(self.value))
        both, portions = np.vstack([steps, -steps]), self.rows.portions(2 * q)
        ends = np.vstack([self.values(self.moved(both[some])) for some in portions])
        return (ends[:q] - ends[q:]).T / (2 * STEP)

    @property
    def bread(self) -> Array:
        """The derivative for standard errors, shape (q, q).

        Student noise is symmetric, so that the degrees of freedom do not move the coefficients:
        their derivative in a sample is chance, which would count for much where the likelihood
        hardly tells degrees of freedom.
        """
        found = self.jacobian
        if self.kind == (Good.HEAVY_TAILS, Bad.NONE):
            found = found.copy()
            found[self.place("coef"), self.place("df")] = 0.0
        return found

    def scores(self, factor: Array | float = 1.0) -> Array:
        """Return what each row adds to the equations, shape (n, q).

        The scores of the coefficients are multiplied by a factor (n,), as in HC3.
        """
        parts = []
        for name, cores, factors in self.blocks:
            scores = cores[0, :, :, None] * factors.reshape(factors.shape[-2:])[:, None, :]
            if name == "coef":
                scores *= np.reshape(factor, (-1, 1, 1))
            parts.append(scores.reshape(len(scores), np.prod(scores.shape[1:], dtype=int)))
        return np.hstack(parts)

    def count_slopes(self) -> Array:
        """Return the derivatives of the equations in how often each row counts, shape (n, q).

        The scores of the rows; in a group that is not sure to be good or bad, a row also has a
        part in what the others of the group add.
        """
        rows, found = self.rows, self.scores()
        if rows.groups is None:
            return found
        unsure = np.flatnonzero(np.minimum(self.good, 1 - self.good) > SUM_ROUNDING)
        unsure = unsure[np.argsort(rows.groups[unsure], kind="stable")]
        first = np.searchsorted(rows.groups[unsure], rows.groups[unsure])
        rank = np.arange(len(unsure)) - first  # within the group
        for place in range(rank.max(initial=-1) + 1):
            chosen, step = unsure[rank == place], np.zeros(len(rows.counts))
            step[chosen] = STEP
            ends = [
                replace(rows, counts=rows.counts + by, frame=rows.whole) for by in (step, -step)
            ]
            sums = [
                end.together.sums(Equations(end, self.mixture, self.eps_bar, self).scores().T)
                for end in ends
            ]
            found[chosen] = ((sums[0] - sums[1]).T / (2 * STEP))[chosen]
        return found

    def solved(self, scores: Array, jacobian: Array) -> Array:
        """Return influence functions of all parameters, shape (n, q): they move by their mean.

        Parameters
        ----------
        scores : ndarray, shape (n, q)
            What the rows add to the equations.
        jacobian : ndarray, shape (q, q)
            Derivative of the equations of all rows.
        """
        return -self.rows.total * scores @ np.linalg.pinv(jacobian).T

    def corrected_scores(self, inverse: Array) -> Array:
        """Return `scores` corrected for leverage, given the inverse Gram matrix of all rows."""
        leverage = np.minimum(self.pull * self._reach(inverse), MOST_LEVERAGE)
        return self.scores(1 / (1 - leverage))

    def cutoffs(self, inverse: Array) -> Array:
        """Return the standard deviations of the residuals of good rows at each row, shape (n,).

        In units of the noise. A row that had a part in the fit is nearer to it than one that had
        none.
        """
        relative = (1 - 2 * self.good) * self._reach(inverse) / self.size**2
        return np.asarray(self.size * np.sqrt(np.maximum(1 + relative, np.finfo(float).eps)))

    def n_bad(self) -> Array:
        """Return how many rows are expected to be bad."""
        return np.asarray(self.mixture.row_shares().sum(axis=(0, 1)) @ self.rows.counts)

    def _reach(self, inverse: Array) -> Array:
        exog = self.rows.exog
        return np.einsum("ni,ni->n", exog @ inverse, exog)

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the predictors of good rows, shape (k, k)."""
        return self.rows.grams((self.pull * self.rows.counts)[None], 0.0)[0]

    @property
    def affordable(self) -> bool:
        """Whether the equations are few enough for their derivative."""
        return len(self.value) <= MOST_EQUATIONS

    @property
    def share_slopes(self) -> Array:
        """Derivative of the share of bad rows in all parameters, shape (q,)."""
        found = np.zeros(len(self.value))
        for part, shares in enumerate(self.mixture.share[0]):
            slopes = self.masses * shares * (1 - shares) / self.rows.total
            place = self.place(f"share {part}")
            found[place] = slopes[self.free_shares[part]][: place.stop - place.start]
        return found

    def moved(self, steps: Array, old: Mixtures | None = None) -> Mixtures:
        """Return the mixture, or another one near it, steps (b, q) away in its parameters."""
        old, b, d = self.mixture if old is None else old, len(steps), self.rows.dim
        root, new = np.linalg.cholesky(old.scatter[0]), old.take(np.zeros(b, int))
        for block, place in self.places.items():
            by, (name, _, number) = steps[:, place], block.partition(" ")
            part, factor = int(number or 0), np.exp(np.clip(by, -MOST_STEP, MOST_STEP))
            value = getattr(new, name)
            if name == "scatter":
                tangent, (first, second) = np.zeros((b, d, d)), np.triu_indices(d)
                tangent[:, first, second] = tangent[:, second, first] = by
                values, vectors = np.linalg.eigh(tangent)
                half = np.exp(np.clip(values, -MOST_STEP, MOST_STEP) / 2)[:, None]
                half = root @ vectors * half
                value[:] = half @ np.swapaxes(half, 1, 2)
            elif name in ("coef", "line"):
                value += np.swapaxes(root @ by.reshape(b, d, -1), 1, 2)
            elif name == "growth":
                value[:, : by.shape[1]] += by
            elif name == "share":
                odds = value[:, part, self.free_shares[part]]
                odds = odds / (1 - odds) * factor
                value[:, part, self.free_shares[part]] = odds / (1 + odds)
            elif name == "center":
                value[:, part] += by @ root.T
            elif name == "size":
                both = old.has(Part.CLUSTER)[0].all()
                value[:, [0, 1] if both else [part]] *= factor
            else:
                value *= factor[:, 0]
        return new

    def bounded(self, mixture: Mixtures) -> Mixtures:
        """Return a mixture whose parameters are within their bounds."""
        df = np.where(np.isinf(mixture.df), np.inf, np.clip(mixture.df, LEAST_DF, MOST_DF))
        bad = float((mixture.share[0] @ self.masses).sum())
        most = self.eps_bar * float(self.masses.sum())
        share = mixture.share * (most / bad if bad > most else 1.0)
        return replace(mixture, df=df, share=share, size=np.maximum(mixture.size, 1.0))

    def change(self, step: Array) -> float:
        """Return the size of a step: the largest change of a parameter in units of the noise.

        Those of the place of bad rows are relative to their distance from the fit, where that is
        larger than the noise.
        """
        unit, mixture = np.ones(len(step)), self.mixture
        away = {"center 0": mixture.center[0, :1], "center 1": mixture.center[0, 1:]}
        for name, vectors in {**away, "line": mixture.line[0]}.items():
            white = np.linalg.solve(self.root, vectors.T)
            unit[self.place(name)] = np.linalg.norm(white, axis=0).max(initial=1.0)
        return float(np.abs(step / unit).max())


def polished(rows: Rows, mixture: Mixtures, eps_bar: float) -> tuple[Mixtures, bool]:
    """Return a mixture, a batch of one, that solves its equations, and whether it does.

    By Broyden's method, and by EM where its steps do not shrink.
    """
    last, before = np.inf, None
    step: Array = np.zeros(0)
    inverse: Array = np.zeros((0, 0))
    for _ in range(MAX_STEPS):
        here, change = Equations(rows, mixture, eps_bar), np.inf
        fresh = before is None or before.places != here.places
        if before is not None and not fresh:
            inverse = broyden(inverse, step, here.value - before.value)
        elif here.affordable and np.isfinite(here.jacobian).all():
            inverse = np.linalg.pinv(here.jacobian, rcond=JACOBIAN_ROUNDING)
        if len(inverse) == len(here.value):
            step = -inverse @ here.value
            change = here.change(step)
        if change < min(1.0, 0.5 * last):
            mixture, last, before = here.bounded(here.moved(step[None])), change, here
            if change < POLISH_TOL:
                break
            continue
        before = None
        if not fresh:
            continue
        old, last = replace(mixture, good=here.good[None]), np.inf
        for _ in range(20):
            mixture = em_step(rows, mixture, eps_bar, by_noise=True)
        if change == np.inf and relative_change(old, mixture) < POLISH_TOL:
            last = 0.0
            break
    view = seen(rows, mixture)
    likelihood = view.log_density @ rows.together.decisions + mixture.gain
    found = replace(mixture, good=view.probabilities[0], log_likelihood=likelihood)
    return found, last < SETTLED


def broyden(inverse: Array, step: Array, change: Array) -> Array:
    """Return the inverse derivative (q, q) after a step that changed the equations, (q,) each."""
    moved = inverse @ change
    along = float(step @ moved)
    return inverse + np.outer(step - moved, step @ inverse) / along if along else inverse


def relative_change(before: Mixtures, after: Mixtures) -> float:
    """Return the largest change of the scatter relative to it, and of probabilities."""
    size = np.abs(after.scatter).max()
    scatter = np.abs(after.scatter - before.scatter).max() / size
    return float(max(scatter, np.abs(after.good - before.good).max()))
