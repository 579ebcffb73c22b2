"""The stacked estimating equations of one Gaussian mixture: its polish and influence functions.

Every parameter of an explanation solves an equation that is a sum over rows. The derivative of the
stack is found by differences: of each row in its residual, in the place of the bad rows and in the
size of its noise, and of all rows in the few parameters that they share. Where rows are good or
bad by groups, each has a part in the equations of the others of its group, and differences are
those of all rows in each parameter.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.laws.gaussian import (
    KINDS,
    LEAST_DF,
    LOG_2PI,
    MOST_DF,
    MOST_FEATURE,
    NO_MASS,
    Mixtures,
    Rows,
    df_scores,
    em_step,
    seen,
    student,
    wide_logs,
)

# Step of the central differences, in standard deviations of the noise or on a log scale.
STEP = 1e-4
# Steps of the polish, its accuracy in standard errors, and how often a step is halved.
POLISH_STEPS, POLISH_TOL = 60, 1e-9
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
# What differs by row in a direction.
BY_ROW = {"white", "center", "log_size"}
# Rows in expectation below which bad rows, or the good ones of a place, are none.
LEAST_MASS = 1e-2


class Block(NamedTuple):
    """Equations of one set of parameters.

    Attributes
    ----------
    name : str
    columns : slice
        Their columns of the cores of the rows.
    factors : ndarray, shape (n, r)
        What the cores are multiplied by.
    """

    name: str
    columns: slice
    factors: Array

    @property
    def n_equations(self) -> int:
        """Number of equations."""
        return (self.columns.stop - self.columns.start) * self.factors.shape[1]


class Shared(NamedTuple):
    """Parameters of all rows, and shares of bad rows at each (n,)."""

    wide: Array
    apart: Array
    log_spread: float
    log_size: float
    log_df: float


class Equations:
    """The equations of one mixture, at its parameters.

    Rows have *cores*, values whose sum over the rows vanishes once they are multiplied by the
    predictors, features or places of the rows.

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
        view = seen(rows, mixture)
        self.root = np.linalg.cholesky(mixture.scatter[0])
        self._inverse = np.linalg.inv(self.root)
        self.white = view.resid[0] @ self._inverse.T
        self.size = np.exp(view.log_size[0])
        center = mixture.center[0] @ self._inverse.T
        self.center = np.broadcast_to(center, self.white.shape)
        self.second = mixture.second[0] @ self._inverse.T
        if self.kind.bad is Bad.OTHER_LINE:
            self.center = rows.exog @ (mixture.shift[0] @ self._inverse.T)
        self._feature = None if view.feature is None else view.feature[0][:, None]
        far = mixture.far[0]
        self.places = np.column_stack([~far, far]).astype(float)
        self.shared = Shared(
            wide=self.places @ mixture.wide[0],
            apart=self.places @ mixture.apart[0],
            log_spread=float(np.log(mixture.spread[0])),
            log_size=float(np.log(mixture.size[0])),
            log_df=float(np.log(mixture.df[0])),
        )
        self._upper = np.triu_indices(rows.dim)
        self._names = None if like is None else {block.name for block in like.blocks}
        if like is None:
            most = eps_bar * rows.total * (1 - AT_END)
            before, after = self.shared.wide + self.shared.apart, 1 - self.good
            self._bounded = bool(rows.counts @ before >= most and rows.counts @ after >= most)
            self._masses = rows.counts @ self.places
        else:
            self._bounded, self._masses = like._bounded, like._masses

    @property
    def _has_wide(self) -> bool:
        return self.kind.bad in (Bad.WIDE, Bad.WIDE_AND_CLUSTER)

    @property
    def _has_apart(self) -> bool:
        return self.kind.bad in (
            Bad.CLUSTER, Bad.WIDE_AND_CLUSTER, Bad.TWO_CLUSTERS, Bad.OTHER_LINE, Bad.SCATTERED
        )  # fmt: skip

    @property
    def _has_second(self) -> bool:
        return self.kind.bad is Bad.TWO_CLUSTERS

    @property
    def _heavy(self) -> bool:
        return self.kind.good is Good.HEAVY_TAILS

    @cached_property
    def features(self) -> Array | None:
        """What the size of the noise changes with, shape (n, p); None for constant noise."""
        if self.kind.good is Good.CHANGING_NOISE:
            return self.rows.distances
        return self._feature if self.kind.good is Good.GROWING_NOISE else None

    @property
    def growth_by_fit(self) -> Array:
        """Change of the log size of the noise with the fit, in units of the noise, shape (n,)."""
        if self.kind.good is not Good.GROWING_NOISE:
            return np.zeros(1)
        assert self._feature is not None
        inside = np.abs(self._feature[:, 0]) < MOST_FEATURE
        return inside * float(
            self.mixture.growth[0, 0] * self.root[0, 0] / self.mixture.unit[0, 1]
        )

    def free_places(self, shares: Array) -> Array:
        """Return the places whose share of bad rows is to be found, shape (n, 0 to 2).

        Each is the derivative of the shares of the rows in the log-odds at the place.
        """
        return self.places[:, self._free(shares)] * self._slope(shares)[self._free(shares)]

    def _free(self, shares: Array) -> np.ndarray:
        """Tell which shares of the two places are neither 0 nor 1 nor at the bound, shape (2,)."""
        least = np.minimum(shares, 1 - shares) * self._masses
        return (least > LEAST_MASS) & (not self._bounded)

    @staticmethod
    def _slope(shares: Array) -> Array:
        """Return the derivative of shares in their log-odds."""
        return shares * (1 - shares)

    @cached_property
    def blocks(self) -> list[Block]:
        """The equations of parameters that are at no bound."""
        rows, found, start = self.rows, [], 0
        one = np.ones((len(rows.data), 1))

        def add(name: str, width: int, factors: Array | None, free: bool = True) -> None:
            nonlocal start
            if self._names is not None:
                free = name in self._names
            if free and factors is not None and factors.shape[1]:
                found.append(Block(name, slice(start, start + width), factors))
            start += width

        add("coef", rows.dim, rows.exog)
        add("scatter", len(self._upper[0]), one)
        add("growth", 1, self.features)
        wide = self._has_wide or self._has_second
        add("wide", 1, self.free_places(self.mixture.wide[0]), wide)
        add("spread", 1, one, self._has_wide and self.shared.log_spread > AT_END)
        line = self.kind.bad is Bad.OTHER_LINE
        add("apart", 1, self.free_places(self.mixture.apart[0]), self._has_apart)
        shifted = self._has_apart and self.kind.bad is not Bad.SCATTERED
        add("center", rows.dim, rows.exog if line else one, shifted)
        add("second", rows.dim, one, self._has_second)
        add("size", 1, one, self._has_apart and not line and self.shared.log_size > AT_END)
        inside = LEAST_DF < self.mixture.df[0] < MOST_DF
        add("df", 1, one, self._heavy and inside)
        return found

    def cores(
        self, white: Array, center: Array, second: Array, log_size: float | Array, shared: Shared
    ) -> tuple[Array, Array]:
        """Return the cores of the rows, shape (n, m), and their probabilities to be good.

        `white`, `center` and `second` are residuals and the places of the bad rows in the frame
        of the scatter, (n, d) or (d,); the noise of the rows grows by `log_size`.
        """
        d = self.rows.dim
        white = white * np.exp(-np.asarray(log_size))[..., None]
        square, away = np.einsum("nd,nd->n", white, white), white - center
        around, beyond = np.einsum("nd,nd->n", away, away), white - second
        further = np.einsum("nd,nd->n", beyond, beyond)
        spread, size, df = (float(np.exp(value)) for value in shared[2:])
        logs: list[Array] = [-0.5 * (square + d * LOG_2PI)]
        pull = 1.0
        if self._heavy:
            logs[0] = student(square, np.zeros(1), df, d)
            pull = (df + d) / (df + square)
        shares: list[Array] = [1 - shared.wide - shared.apart]
        if self._has_wide:
            shares.append(shared.wide)
            base = np.full(len(square), d * shared.log_spread)
            logs.append(wide_logs(self.rows, square, base, spread))
        if self._has_second:
            shares.append(shared.wide)
            logs.append(-0.5 * (further / size + d * (shared.log_size + LOG_2PI)))
        if self._has_apart:
            shares.append(shared.apart)
            logs.append(-0.5 * (around / size + d * (shared.log_size + LOG_2PI)))
        with np.errstate(divide="ignore"):
            logs = [
                np.log(np.maximum(share, 0.0)) + self.rows.together.sums(each)
                for share, each in zip(shares, logs, strict=True)
            ]
        top = np.maximum.reduce(logs)
        parts = [np.exp(each - top) for each in logs]
        total = sum(parts[1:], parts[0])
        good, none = parts[0] / total, np.zeros(len(square))
        wide = parts[1] / total if self._has_wide or self._has_second else none
        apart = parts[-1] / total if self._has_apart else none
        second_mass = wide if self._has_second else none
        outer = (good * pull)[:, None] * white[:, self._upper[0]] * white[:, self._upper[1]]
        diagonal = self._upper[0] == self._upper[1]
        outer[:, diagonal] -= (good - self.rows.n_coef / self.rows.total)[:, None]
        noise, free = (self.size * np.exp(log_size))[:, None], d * self.rows.together.sizes
        columns = [
            (good * pull)[:, None] * white * noise,
            outer,
            (good * (square / d - 1))[:, None],
            (wide - shared.wide)[:, None],
            (wide * ((1 + free) * square / (spread + self.rows.together.sums(square)) - d))[
                :, None
            ],
            (apart - shared.apart)[:, None],
            apart[:, None] * away,
            second_mass[:, None] * beyond,
            (apart * (around / size - d) + self._has_second * wide * (further / size - d))[
                :, None
            ],
            (good * df_scores(square, df, d))[:, None] if self._heavy else none[:, None],
        ]
        return np.hstack(columns), good

    @cached_property
    def _here(self) -> tuple[Array, Array]:
        return self.cores(self.white, self.center, self.second, 0.0, self.shared)

    @property
    def good(self) -> Array:
        """Probability of each row to be good, shape (n,)."""
        return self._here[1]

    def sums(self, cores: Array, factor: Array | float = 1.0) -> Array:
        """Return the equations as sums over the rows, each times a factor, shape (q,)."""
        weighted = (self.rows.counts * factor)[:, None] * cores
        return np.concatenate(
            [(block.factors.T @ weighted[:, block.columns]).T.ravel() for block in self.blocks]
        )

    @cached_property
    def value(self) -> Array:
        """The equations, shape (q,), zero at the solution."""
        return self.sums(self._here[0])

    def _difference(self, white: Array, center: Array, second: Array, log_size: Array,
                    wide: Array, apart: Array, shared: Array) -> Array:  # fmt: skip
        """Return the derivative of the cores in one direction, shape (n, m)."""

        def at(step: float) -> Array:
            moved = Shared(
                self.shared.wide + step * wide,
                self.shared.apart + step * apart,
                *(value + step * by for value, by in zip(self.shared[2:], shared, strict=True)),
            )
            return self.cores(
                self.white + step * white, self.center + step * center,
                self.second + step * second, step * log_size, moved,
            )[0]  # fmt: skip

        return (at(STEP) - at(-STEP)) / (2 * STEP)

    @cached_property
    def jacobian(self) -> Array:
        """Derivative of the equations in the parameters, shape (q, q)."""
        n, d = self.white.shape
        columns: list[Array] = []

        def move(factors: Array, **moves: Array) -> None:
            still = dict(
                white=np.zeros((1, d)), center=np.zeros((1, d)), second=np.zeros(d),
                log_size=np.zeros(1), wide=np.zeros(1), apart=np.zeros(1), shared=np.zeros(3),
            )  # fmt: skip
            if self.rows.groups is None:
                slopes = self._difference(**(still | moves))
                columns.extend(self.sums(slopes, factor) for factor in factors.T)
                return
            for factor in factors.T:
                by_row = {name: (factor * moves[name].T).T for name in moves.keys() & BY_ROW}
                columns.append(self.sums(self._difference(**(still | moves | by_row))))

        axes, one = np.eye(d), np.ones((n, 1))
        for block in self.blocks:
            if block.name == "coef":
                for axis in axes:
                    white = -axis / self.size[:, None]
                    move(block.factors, white=white, log_size=self.growth_by_fit)
            elif block.name == "scatter":
                for i, j in zip(*self._upper, strict=True):
                    turn = np.zeros((d, d))
                    turn[i, j] = turn[j, i] = -0.5
                    white, center = self.white @ turn, self.center @ turn
                    move(one, white=white, center=center, second=self.second @ turn)
            elif block.name == "growth":
                move(block.factors, log_size=np.ones(1))
            elif block.name in ("wide", "apart"):
                for place in block.factors.T:
                    move(one, **{block.name: place})
            elif block.name == "center":
                for axis in axes:
                    move(block.factors, center=axis[None])
            elif block.name == "second":
                for axis in axes:
                    move(one, second=axis)
            else:
                which = ("spread", "size", "df").index(block.name)
                move(one, shared=np.eye(3)[which])
        return np.column_stack(columns)

    def scores(self, factor: Array | float = 1.0) -> Array:
        """Return what each row adds to the equations, shape (n, q).

        The scores of the coefficients are multiplied by a factor (n,), as in HC3.
        """
        cores = self._here[0].copy()
        cores[:, : self.rows.dim] *= np.broadcast_to(factor, len(cores))[:, None]
        parts = [
            (cores[:, block.columns][:, :, None] * block.factors[:, None, :]).reshape(
                len(cores), block.n_equations
            )
            for block in self.blocks
        ]
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

    @cached_property
    def pull(self) -> Array:
        """Weight of each row in the fit of the coefficients, shape (n,)."""
        if not self._heavy:
            return self.good
        df, d = float(self.mixture.df[0]), self.rows.dim
        square = np.einsum("nd,nd->n", self.white, self.white)
        return self.good * (df + d) / (df + square)

    @property
    def affordable(self) -> bool:
        """Whether the equations are few enough for their derivative."""
        return len(self.value) <= MOST_EQUATIONS

    @property
    def share_slopes(self) -> Array:
        """Derivative of the share of bad rows in all parameters, shape (q,)."""
        found = np.zeros(len(self.value))
        for block in self.blocks:
            if block.name in ("wide", "apart"):
                slopes = self.rows.counts @ block.factors / self.rows.total
                found[self.place(block.name)] = slopes
        return found

    def place(self, name: str) -> slice:
        """Return where the equations of a block are; empty where its parameters are known."""
        start = 0
        for block in self.blocks:
            if block.name == name:
                return slice(start, start + block.n_equations)
            start += block.n_equations
        return slice(0, 0)

    def moved(self, step: Array, old: Mixtures | None = None) -> Mixtures:
        """Return the mixture, or another one near it, a step (q,) away in its parameters."""
        old = self.mixture if old is None else old
        root, d = np.linalg.cholesky(old.scatter[0]), self.rows.dim
        parts = {block.name: step[self.place(block.name)] for block in self.blocks}
        tangent = np.zeros((d, d))
        tangent[self._upper] = parts["scatter"]
        values, vectors = np.linalg.eigh(tangent + np.triu(tangent, 1).T)
        grown = (vectors * np.exp(np.clip(values, -1.0, 1.0))) @ vectors.T
        changes = {"scatter": (root @ grown @ root.T)[None]}
        if "coef" in parts:
            changes["coef"] = old.coef + parts["coef"].reshape(d, -1).T @ root.T
        if "growth" in parts:
            growth = old.growth.copy()
            growth[0, : len(parts["growth"])] += parts["growth"]
            changes["growth"] = growth
        for name in ("wide", "apart"):
            shares = getattr(old, name).copy()
            if name in parts:
                free = self._free(shares[0])
                shares[0, free] = expit(logit(shares[0, free]) + np.clip(parts[name], -2.0, 2.0))
            changes[name] = shares
        bad = float(self._masses @ (changes["wide"] + changes["apart"])[0])
        most = self.eps_bar * float(self._masses.sum())
        if bad > most:
            changes |= {name: changes[name] * (most / bad) for name in ("wide", "apart")}
        if "center" in parts:
            shift = parts["center"].reshape(d, -1).T @ root.T
            line = self.kind.bad is Bad.OTHER_LINE
            key, old_place = ("shift", old.shift) if line else ("center", old.center)
            changes[key] = old_place + (shift if line else shift[0])
        if "second" in parts:
            changes["second"] = old.second + parts["second"] @ root.T
        for name in ("spread", "size", "df"):
            if name in parts:
                factor = np.exp(np.clip(parts[name], -1.0, 1.0))
                most = MOST_DF if name == "df" else np.inf
                changes[name] = np.clip(getattr(old, name) * factor, 1.0, most)
        return replace(old, **changes)

    def change(self, step: Array) -> float:
        """Return the size of a step: the largest change of a parameter in units of the noise.

        Those of coefficients are the changes of what they predict. Those of the place of bad rows
        are relative to their distance from the fit, where that is larger than the noise.
        """
        rows, d = self.rows, self.rows.dim
        fit, line = self.place("coef"), self.place("center")
        sizes = [np.abs(np.delete(step, np.r_[fit, line])).max(initial=0.0)]
        bad = rows.counts * self.shared.apart
        far = np.sqrt(bad @ (self.center**2).sum(axis=1) / max(bad.sum(), NO_MASS))
        for block, mass, unit in ((fit, rows.counts * self.good, 1.0), (line, bad, max(far, 1.0))):
            if block.stop > block.start:
                factors = next(b.factors for b in self.blocks if self.place(b.name) == block)
                predicted = factors @ step[block].reshape(d, -1).T
                sizes.append(np.sqrt(mass @ (predicted**2).sum(axis=1) / mass.sum()) / unit)
        return float(max(sizes))


def polished(rows: Rows, mixture: Mixtures, eps_bar: float) -> tuple[Mixtures, bool]:
    """Return a mixture, a batch of one, that solves its equations, and whether it does."""
    last = np.inf
    for _ in range(POLISH_STEPS):
        equations = Equations(rows, mixture, eps_bar)
        mixture = replace(mixture, good=equations.good[None])
        change, step = np.inf, None
        few = len(equations.value) <= MOST_EQUATIONS
        if few and np.isfinite(equations.jacobian).all():
            step = -np.linalg.lstsq(equations.jacobian, equations.value, rcond=None)[0]
            change = equations.change(step)
        if step is not None and change < min(1.0, 0.5 * last):
            mixture, last = equations.moved(step), change
            if change < POLISH_TOL:
                break
            continue
        before, last = mixture, np.inf
        for _ in range(EM_STEPS):
            mixture = em_step(rows, mixture, eps_bar)
        if step is None and _relative_change(before, mixture) < POLISH_TOL:
            last = 0.0
            break
    good = Equations(rows, mixture, eps_bar).good[None]
    found = replace(mixture, good=good)
    likelihood = em_step(rows, found, eps_bar).log_likelihood
    return replace(found, log_likelihood=likelihood), last < SETTLED


def _relative_change(before: Mixtures, after: Mixtures) -> float:
    """Return the largest change of the scatter relative to it, and of probabilities."""
    size = np.abs(after.scatter).max()
    return float(
        max(np.abs(after.scatter - before.scatter).max() / size,
            np.abs(after.good - before.good).max())
    )  # fmt: skip
