"""The stacked estimating equations of one Gaussian mixture: its polish and influence functions.

Every parameter of an explanation solves an equation that is a sum over rows. The derivative of the
stack is found by differences.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.gaussian import (
    KINDS,
    LEAST_DF,
    MOST_DF,
    Mixtures,
    Part,
    Rows,
    df_scores,
    em_step,
    seen,
)

# Step of the central differences, in standard deviations of the noise or on a log scale.
STEP = 1e-4
# Steps of the polish, and its accuracy in standard deviations of the noise.
POLISH_STEPS, POLISH_TOL = 60, 1e-9
# Most that a step of the polish changes log sizes and log-odds.
MOST_STEP = 1.0
# Accuracy with which a fit has converged for all purposes.
SETTLED = 1e-6
# Steps of EM where Newton's method does not get nearer.
EM_STEPS = 20
# Equations beyond which EM is cheaper than Newton's steps.
MOST_EQUATIONS = 80
# Largest weighted hat value that the correction for leverage is made for.
MOST_LEVERAGE = 0.99
# Shares this close to eps_bar, relative to it, and log sizes this close to 0 stay there.
AT_END = 1e-9
# Probability to be good, or bad, below which a group is sure to be the other.
SURE = 1e-12
# Rows in expectation below which bad rows, or the good ones of a place, are none.
LEAST_MASS = 1e-2


#: What moves with the parameters.
MOVING = ("coef", "scatter", "growth", "share", "center", "line", "size", "df")


class Block(NamedTuple):
    """Equations of one set of parameters.

    Attributes
    ----------
    name : str
        Where there are two such sets, one for each part of the bad rows, with its number.
    cores : ndarray, shape (n, m)
        Values of the rows.
    factors : ndarray, shape (n, r)
        What they are multiplied by, so that their sum over the rows vanishes.
    start : int
        Where its equations start.
    """

    name: str
    cores: Array
    factors: Array
    start: int

    @property
    def place(self) -> slice:
        """Where its equations are."""
        return slice(self.start, self.start + self.cores.shape[1] * self.factors.shape[1])


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
        self.good, self.size = self.view.probabilities[0, 0], np.exp(self.view.log_size[0])
        self.pull = self.good * mixture.pulls(self.view.square, rows.dim)[0]
        self.root = np.linalg.cholesky(mixture.scatter[0])
        far = mixture.far[0]
        self.places = np.column_stack([~far, far]).astype(float)
        self.masses: Array = rows.counts @ self.places
        self.free: np.ndarray = np.zeros((2, 2), bool)
        self._names: set[str] | None = None
        if like is not None:
            self.masses, self.free = like.masses, like.free
            self._names = {block.name for block in like.blocks}
            return
        most = eps_bar * rows.total * (1 - AT_END)
        before, after = mixture.row_shares()[:, 0].sum(axis=0), 1 - self.good
        bounded = rows.counts @ before >= most and rows.counts @ after >= most
        least = np.minimum(mixture.share[0], 1 - mixture.share[0]) * self.masses
        # Shares of each part and place that are neither 0 nor 1 nor at the bound.
        self.free = (least > LEAST_MASS) & (not bounded)

    @cached_property
    def blocks(self) -> list[Block]:
        """The equations of parameters that are at no bound."""
        rows, mixture, view, d = self.rows, self.mixture, self.view, self.rows.dim
        found: list[Block] = []

        def add(name: str, cores: Array, factors: Array | None = None, free: bool = True) -> None:
            factors = np.ones((len(rows.data), 1)) if factors is None else factors
            if self._names is not None:
                free = name in self._names
            if free and factors.shape[1]:
                cores = cores.reshape(len(factors), -1)
                found.append(Block(name, cores, factors, found[-1].place.stop if found else 0))

        upper, inverse = np.triu_indices(d), np.linalg.inv(self.root)
        white, square = view.resid[0] @ inverse.T, view.square[0]
        add("coef", (self.pull * self.size)[:, None] * white, rows.exog)
        outer = self.pull[:, None] * white[:, upper[0]] * white[:, upper[1]]
        outer[:, upper[0] == upper[1]] -= (self.good - rows.n_coef / rows.total)[:, None]
        add("scatter", outer)
        if view.features is not None:
            one = self.kind.good is Good.GROWING_NOISE
            add("growth", self.good * (square / d - 1), view.features[0][:, : 1 if one else None])
        sizes, wide, chosen = {}, mixture.has(Part.WIDE)[0], np.ones(1, bool)
        for part, share in enumerate(mixture.row_shares()[:, 0]):
            if mixture.has(Part.NONE)[0, part]:
                continue
            prob, size = view.probabilities[1 + part, 0], mixture.size[0, part]
            away = (view.resid - mixture.offsets(rows, part, chosen))[0] @ inverse.T
            around = np.einsum("nd,nd->n", away, away) / size
            pull: Array | float = 1.0
            if wide[part]:
                pull = (1 + d * rows.together.sizes) / (1 + rows.together.sums(around))
            sizes[part] = prob * (pull * around - d)
            add(f"share {part}", prob - share, self.places[:, self.free[part]])
            add(f"center {part}", prob[:, None] * away, None, mixture.has(Part.CLUSTER)[0, part])
            add("line", prob[:, None] * away, rows.exog, mixture.has(Part.LINE)[0, part])
        if mixture.has(Part.CLUSTER)[0].all():
            sizes = {1: sizes[0] + sizes[1]}
        for part, cores in sizes.items():
            add(f"size {part}", cores, None, mixture.size[0, part] > 1 + AT_END)
        if self.kind.good is Good.HEAVY_TAILS:
            df = float(mixture.df[0])
            add("df", self.good * df_scores(square, df, d), None, LEAST_DF < df < MOST_DF)
        return found

    @cached_property
    def value(self) -> Array:
        """The equations, shape (q,), zero at the solution."""
        counts = self.rows.counts[:, None]
        return np.concatenate([(b.factors.T @ (counts * b.cores)).T.ravel() for b in self.blocks])

    @cached_property
    def jacobian(self) -> Array:
        """Derivative of the equations in the parameters, shape (q, q)."""

        def at(step: Array) -> Array:
            return Equations(self.rows, self.moved(step), self.eps_bar, like=self).value

        steps = STEP * np.eye(len(self.value))
        return np.column_stack([(at(step) - at(-step)) / (2 * STEP) for step in steps])

    def scores(self, factor: Array | float = 1.0) -> Array:
        """Return what each row adds to the equations, shape (n, q).

        The scores of the coefficients are multiplied by a factor (n,), as in HC3.
        """
        parts = []
        for block in self.blocks:
            scores = block.cores[:, :, None] * block.factors[:, None, :]
            scores = scores.reshape(len(scores), -1)
            by = np.broadcast_to(factor if block.name == "coef" else 1.0, len(scores))
            parts.append(by[:, None] * scores)
        return np.hstack(parts)

    def count_slopes(self) -> Array:
        """Return the derivatives of the equations in how often each row counts, shape (n, q).

        The scores of the rows; in a group that is not sure to be good or bad, a row also has a
        part in what the others of the group add.
        """
        rows, found = self.rows, self.scores()
        if rows.groups is None:
            return found
        unsure = np.flatnonzero(np.minimum(self.good, 1 - self.good) > SURE)
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

    def leverage(self, inverse: Array) -> Array:
        """Return weighted hat values, given the inverse Gram matrix of all rows, shape (n,)."""
        reach = np.einsum("ni,ij,nj->n", self.rows.exog, inverse, self.rows.exog)
        return np.minimum(self.pull * reach, MOST_LEVERAGE)

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
            found[place] = slopes[self.free[part]][: place.stop - place.start]
        return found

    def place(self, name: str) -> slice:
        """Return where the equations of a block are; empty where its parameters are known."""
        return next((b.place for b in self.blocks if b.name == name), slice(0, 0))

    def moved(self, step: Array, old: Mixtures | None = None) -> Mixtures:
        """Return the mixture, or another one near it, a step (q,) away in its parameters."""
        old = self.mixture if old is None else old
        root, d = np.linalg.cholesky(old.scatter[0]), self.rows.dim
        new = {name: getattr(old, name).copy() for name in MOVING}
        for block in self.blocks:
            by, (name, _, number) = step[block.place], block.name.partition(" ")
            part, factor = int(number or 0), np.exp(np.clip(by, -MOST_STEP, MOST_STEP))
            if name == "scatter":
                tangent = np.zeros((d, d))
                tangent[np.triu_indices(d)] = by
                values, vectors = np.linalg.eigh(tangent + np.triu(tangent, 1).T)
                half = root @ vectors * np.exp(np.clip(values, -MOST_STEP, MOST_STEP) / 2)
                new[name][0] = half @ half.T
            elif name in ("coef", "line"):
                new[name][0] += by.reshape(d, -1).T @ root.T
            elif name == "growth":
                new[name][0, : len(by)] += by
            elif name == "share":
                odds = old.share[0, part, self.free[part]]
                odds = odds / (1 - odds) * factor
                new[name][0, part, self.free[part]] = odds / (1 + odds)
            elif name == "center":
                new[name][0, part] += root @ by
            elif name == "size":
                both = old.has(Part.CLUSTER)[0].all()
                new[name][0, [0, 1] if both else [part]] *= factor
            else:
                new[name] *= factor
        return replace(old, **new)

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
        unit = np.ones(len(step))
        for part, center in enumerate(self.mixture.center[0]):
            unit[self.place(f"center {part}")] = max(1.0, self._length(center))
        unit[self.place("line")] = max(1.0, self._length(self.mixture.line[0]))
        return float(np.abs(step / unit).max())

    def _length(self, place: Array) -> float:
        """Return the length of a vector (d,) or of the longest of several, in units of noise."""
        white = np.linalg.solve(self.root, np.atleast_2d(place).T)
        return float(np.linalg.norm(white, axis=0).max(initial=0.0))


def polished(rows: Rows, mixture: Mixtures, eps_bar: float) -> tuple[Mixtures, bool]:
    """Return a mixture, a batch of one, that solves its equations, and whether it does."""
    last = np.inf
    for _ in range(POLISH_STEPS):
        equations = Equations(rows, mixture, eps_bar)
        change, step = np.inf, None
        if equations.affordable and np.isfinite(equations.jacobian).all():
            step = -np.linalg.lstsq(equations.jacobian, equations.value, rcond=None)[0]
            change = equations.change(step)
        if step is not None and change < min(1.0, 0.5 * last):
            mixture, last = equations.bounded(equations.moved(step)), change
            if change < POLISH_TOL:
                break
            continue
        before, last = replace(mixture, good=equations.good[None]), np.inf
        for _ in range(EM_STEPS):
            mixture = em_step(rows, mixture, eps_bar)
        if step is None and relative_change(before, mixture) < POLISH_TOL:
            last = 0.0
            break
    view = seen(rows, mixture)
    likelihood = view.log_density @ rows.together.decisions + mixture.gain
    found = replace(mixture, good=view.probabilities[0], log_likelihood=likelihood)
    return found, last < SETTLED


def relative_change(before: Mixtures, after: Mixtures) -> float:
    """Return the largest change of the scatter relative to it, and of probabilities."""
    size = np.abs(after.scatter).max()
    scatter = np.abs(after.scatter - before.scatter).max() / size
    return float(max(scatter, np.abs(after.good - before.good).max()))
