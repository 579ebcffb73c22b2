"""Rows with Gaussian noise in d dimensions, some of them bad: a batch of mixtures fitted by EM.

Rows are ``Y = X B + noise``: a regression has d = 1, a mean and covariance a constant X. Good rows
have Gaussian or Student noise with scatter S, whose size may change from row to row. Bad rows are
*wide*, Cauchy around the fit with scatter c S; or form a *cluster*, Gaussian around a shift m from
the fit with scatter v S, v >= 1; or *two clusters*, of one v; or are *scattered*, the same without
a shift; or the same with *another shape*, that of the scatter of all rows; or follow *another
line*, with coefficients of their own and the noise of the good rows. Bad rows do not count in the
fit of B and S.

The share of bad rows may differ for rows that lie far from the others in X: leverage points are
bad together or good together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, digamma, fdtri, gammaln, xlogy

from rrmstats.core.conventions import FAR
from rrmstats.core.design import WIDE, conjugate_gradients
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.core.frames import median_of
from rrmstats.laws.together import Together

LOG_2PI = float(np.log(2 * np.pi))
# Standard deviations beyond which the noise does not change any more.
# Convention: beyond, few rows tell how noise changes.
MOST_FEATURE = 4.0
# Mass of bad rows below which their parameters stay as they are.
NO_MASS = 1e-9
# Ridges, relative to the diagonal, that keep the normal equations of few rows solvable.
RIDGE, LINE_RIDGE = 1e-12, 1e-9
# Steps of conjugate gradients that take a fit of many columns nearer, at each step of EM.
NEARER = 3
# Degrees of freedom of Student noise, from tails as of a Cauchy distribution to Gaussian ones.
# Derived: a Cauchy distribution has 1, and 200 are normal for any sample.
LEAST_DF, MOST_DF = 1.0, 200.0
# Variance, relative to the squared median distance of all rows, below which it is one of few rows.
# It is 0.19 or more where half of the rows are good and normal: at the worst the median distance
# is their 98 % quantile.
# Derived: a twentieth of 0.19.
COLLAPSED = 0.01


class Kind(NamedTuple):
    """An explanation of the rows: what good rows are like, and what bad ones are."""

    good: Good
    bad: Bad


class Part(Enum):
    """What one of the two parts of the bad rows is like."""

    NONE = "none"
    WIDE = "Cauchy around the fit"
    CLUSTER = "normal around a shift from the fit"
    SCATTERED = "normal around the fit"
    SHAPED = "normal around the fit, with the shape of the scatter of all rows"
    LINE = "normal around another line, with the noise of the good rows"


#: The parts of the bad rows; two clusters have one size.
PARTS = {
    Bad.NONE: (Part.NONE, Part.NONE),
    Bad.WIDE: (Part.WIDE, Part.NONE),
    Bad.CLUSTER: (Part.NONE, Part.CLUSTER),
    Bad.WIDE_AND_CLUSTER: (Part.WIDE, Part.CLUSTER),
    Bad.SCATTERED: (Part.NONE, Part.SCATTERED),
    Bad.OTHER_SHAPE: (Part.NONE, Part.SHAPED),
    Bad.OTHER_LINE: (Part.NONE, Part.LINE),
    Bad.TWO_CLUSTERS: (Part.CLUSTER, Part.CLUSTER),
}
PLAIN = Kind(Good.PLAIN, Bad.NONE)
SHORT = Kind(Good.SHORT_TAILS, Bad.NONE)
HEAVY = Kind(Good.HEAVY_TAILS, Bad.NONE)
OTHER_LINE = Kind(Good.PLAIN, Bad.OTHER_LINE)
CONTAMINATED = tuple(Kind(Good.PLAIN, bad) for bad in PARTS if bad is not Bad.NONE)
KINDS = (
    *(PLAIN, SHORT, HEAVY, *CONTAMINATED),
    *(
        Kind(good, bad)
        for good in (Good.GROWING_NOISE, Good.CHANGING_NOISE)
        for bad in PARTS
        if bad not in (Bad.OTHER_LINE, Bad.OTHER_SHAPE, Bad.TWO_CLUSTERS)
    ),
    # Of groups: tails belong to the rows, and bad groups to none of them.
    *(Kind(Good.HEAVY_TAILS, bad) for bad in PARTS if bad is not Bad.NONE),
)
NUMBER = {kind: number for number, kind in enumerate(KINDS)}
#: Parts that are expected elsewhere than the fit, and those that have a size.
AWAY, SIZED = (Part.CLUSTER, Part.LINE), (Part.WIDE, Part.CLUSTER, Part.SCATTERED, Part.SHAPED)


@lru_cache(maxsize=4096)
def _with_noise(kinds: bytes, good: Good) -> np.ndarray:
    """Tell which kinds of a batch have these good rows, shape (b,)."""
    return np.array([KINDS[kind].good is good for kind in np.frombuffer(kinds, int)], bool)


@lru_cache(maxsize=4096)
def _with_parts(kinds: bytes, parts: tuple[Part, ...]) -> np.ndarray:
    """Tell which of the two parts of the kinds of a batch are among some, shape (b, 2)."""
    found = [[each in parts for each in PARTS[KINDS[k].bad]] for k in np.frombuffer(kinds, int)]
    return np.array(found, bool).reshape(-1, 2)


@lru_cache(maxsize=4096)
def _places(kinds: bytes, parts: tuple[Part, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return where a batch has such parts: places in the batch, and numbers of the part."""
    at, part = np.nonzero(_with_parts(kinds, parts))
    return at, part


class Frame(NamedTuple):
    """What is known of all rows together, so that some of them can be looked at alone.

    Attributes
    ----------
    total : float
        Number of observations that the rows stand for.
    mean, spread : ndarray, shape (k,)
        Of the columns of X; the spread of constant columns is infinite.
    middle : ndarray, shape (p,)
        Mean distance from the middle of each column that varies.
    overall : ndarray, shape (d, d), or None
        Scatter of the classical fit in several dimensions, whose shape bad rows may have that are
        far out along some axes alone.
    absorbed : float
        Coefficients that were taken out of the rows beforehand, per observation.
    """

    total: float
    mean: Array
    spread: Array
    middle: Array
    overall: Array | None = None
    absorbed: float = 0.0

    @classmethod
    def of(cls, exog: Array, counts: Array) -> Frame:
        """Return the frame of some rows."""
        total = float(counts.sum())
        mean = counts @ exog / total
        spread = np.sqrt(counts @ (exog - mean) ** 2 / total)
        varies = spread > 1e-8 * np.abs(exog).max(axis=0, initial=0.0)
        frame = cls(total, mean, np.where(varies, spread, np.inf), np.zeros(varies.sum()))
        return frame._replace(middle=counts @ frame.sizes(exog) / total)

    def varying(self, exog: Array) -> Array:
        """Return columns of X that vary, in standard deviations from the mean, (n, p)."""
        used = np.isfinite(self.spread)
        return (exog[:, used] - self.mean[used]) / self.spread[used]

    def sizes(self, exog: Array) -> Array:
        """Return distances from the middle of the columns that vary, of mean zero, (n, p)."""
        return np.minimum(np.abs(self.varying(exog)), MOST_FEATURE) - self.middle


class Metric(NamedTuple):
    """How a batch of scatters measures distances.

    Attributes
    ----------
    root : ndarray, shape (b, d, m)
        Squared distances are squared lengths of residuals times it.
    log_det : ndarray, shape (b,)
        ln det S.
    """

    root: Array
    log_det: Array

    def take(self, places: np.ndarray) -> Metric:
        """Return some of the batch."""
        return Metric(self.root[places], self.log_det[places])

    def white(self, resid: Array) -> Array:
        """Return residuals (b, n, d) in the frame where S is the identity, shape (b, n, m)."""
        return resid * self.root if resid.shape[2] == 1 else np.asarray(resid @ self.root)


class Measured(NamedTuple):
    """Residuals and their distances.

    Attributes
    ----------
    resid : ndarray, shape (b, n, d)
    metric : Metric
    white : ndarray, shape (b, n, m)
        Residuals in the frame of the metric.
    square : ndarray, shape (b, n)
        Squared distances.
    """

    resid: Array
    metric: Metric
    white: Array
    square: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, and how often each of them counts.

    Attributes
    ----------
    data : ndarray, shape (n, d)
        Responses.
    exog : ndarray, shape (n, k)
        Predictors; a column of ones for a mean, none where the mean is known to be zero.
    counts : ndarray, shape (n,) or (b, n)
        How often each row counts; of samples of the rows in each mixture of a batch.
    frame : Frame, optional
        That of all rows, where these are some of them, or samples of them.
    groups : ndarray of int, shape (n,), optional
        Number of the group of each row, whose rows are good or bad together; None where each row
        is by itself.
    absorbed : float, optional
        Coefficients that were taken out of the rows beforehand, per observation.
    """

    data: Array
    exog: Array
    counts: Array
    frame: Frame | None = None
    groups: np.ndarray | None = None
    absorbed: float = 0.0

    @cached_property
    def together(self) -> Together:
        """Which rows are good or bad together."""
        return Together(self.counts, self.groups)

    @cached_property
    def whole(self) -> Frame:
        """What is known of all rows together."""
        if self.frame is not None:
            return self.frame
        found = Frame.of(self.exog, self.counts)
        return found._replace(overall=self._overall, absorbed=self.absorbed)

    @property
    def _overall(self) -> Array | None:
        return None if self.dim == 1 else ridged(self.classical[1][None])[0]

    @property
    def dim(self) -> int:
        """Dimension of the responses."""
        return int(self.data.shape[1])

    @property
    def n_coef(self) -> int:
        """Coefficients of each response."""
        return int(self.exog.shape[1])

    @property
    def n_lost(self) -> float:
        """Degrees of freedom that coefficients take from the scatter, with absorbed ones."""
        return self.n_coef + self.whole.absorbed * self.total

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the squared distances of good rows."""
        return self.dim

    def metric(self, scatter: Array) -> Metric:
        """Return the metric of scatters (b, d, d)."""
        if self.dim == 1:
            variance = np.maximum(scatter, np.finfo(float).tiny)
            return Metric(1 / np.sqrt(variance), np.log(variance[:, 0, 0]))
        root = np.linalg.cholesky(scatter)
        log_det = 2 * np.log(np.einsum("bii->bi", root)).sum(axis=1)
        return Metric(np.swapaxes(np.linalg.inv(root), 1, 2), log_det)

    def measured(self, resid: Array, scatter: Array) -> Measured:
        """Return residuals (b, n, d) with their distances in the metric of scatters (b, d, d)."""
        metric = self.metric(scatter)
        white = metric.white(resid)
        return Measured(resid, metric, white, squared_lengths(white))

    @cached_property
    def overall_metric(self) -> Metric:
        """That of the scatter of all rows, in several dimensions."""
        assert self.whole.overall is not None
        return self.metric(self.whole.overall[None])

    def refuses(self, coef: Array, scatter: Array) -> bool:
        """Tell whether the variance along the least axis of a scatter (d, d) is of few rows.

        In one dimension: whether it is rounding beside that of least squares, which bad rows far
        out do not enlarge beyond that of the responses. `coef` is (k, d).
        """
        if self.dim == 1:
            return bool(scatter[0, 0] < 1e-10 * self._plain_variance)
        values, axes = np.linalg.eigh(scatter)
        along = self.data @ axes[:, 0]
        typical = self._typical(along)
        return is_singular(values, scatter) or bool(values[0] < COLLAPSED * typical**2)

    def portions(self, count: int) -> list[np.ndarray]:
        """Return the places of `count` mixtures in portions that a processor's cache can hold."""
        parts = -(-count * self.data.size // 50_000)
        return np.array_split(np.arange(count), max(min(parts, count), 1))

    def summed(self, values: Array) -> Array:
        """Return sums of values (b, n) over the rows, each as often as it counts, shape (b,)."""
        return np.asarray((values * self.counts).sum(axis=-1))

    def of(self, chosen: np.ndarray) -> Rows:
        """Return the rows as some mixtures of a batch count them."""
        return self if self.counts.ndim == 1 else replace(self, counts=self.counts[chosen])

    def thinned(self, step: int) -> Rows:
        """Return every so many-th row, in the frame of all; rows that are in no groups."""
        if step == 1:
            return self
        counts = self.counts[::step]
        frame = self.whole._replace(total=float(counts.sum()))
        data, exog = self.data[::step], self.exog[::step]
        return replace(self, data=data, exog=exog, counts=counts, frame=frame)

    @cached_property
    def classical(self) -> tuple[Array, Array]:
        """The classical fit: coefficients (k, d) and scatter (d, d)."""
        coef, scatter = self.fits(self.counts[None])
        return coef[0], scatter[0]

    def fits(self, counts: Array) -> tuple[Array, Array]:
        """Return coefficients (b, k, d) and scatters (b, d, d) of rows that count (b, n)."""
        coef = self.coefficients(counts, self.data)
        resid = self.data - self.fitted(coef)
        free = np.maximum(counts.sum(axis=1) - self.n_coef, 1e-9)[:, None, None]
        return coef, np.swapaxes(counts[:, :, None] * resid, 1, 2) @ resid / free

    @cached_property
    def _unit(self) -> tuple[Array, Array]:
        """Gram matrices (b, k, k) of one row, and ln det (b,) of the scatter of classical fits."""
        counts = np.atleast_2d(self.counts)
        log_det = self.metric(ridged(self.fits(counts)[1])).log_det
        return self.grams(counts / self.total, RIDGE), log_det

    def coefficient_costs(self, weights: Array, scatter: Array) -> Array:
        """Return ``ln det(I + I_1) - ln det I_1`` of the information on coefficients, shape (b,).

        I is that of rows with weights, I_1 that of one row of the classical fit. It is exact in
        one dimension, and where the scatter is in proportion to that of the classical fit.

        Parameters
        ----------
        weights : ndarray, shape (b, n)
        scatter : ndarray, shape (b, d, d)
        """
        unit, unit_det = self._unit
        log_det = self.metric(scatter).log_det
        relative = np.exp((log_det - unit_det) / self.freedom)[:, None, None]
        gram = self.grams(weights, 0.0) + relative * unit
        gained = np.linalg.slogdet(gram)[1] - np.linalg.slogdet(unit)[1]
        return np.asarray(self.freedom * gained - self.n_coef * (log_det - unit_det))

    def rough_costs(self, weights: Array, scatter: Array) -> Array:
        """Return the same; of many columns as if any rows told as much as so many of all."""
        if self.n_coef <= WIDE:
            return self.coefficient_costs(weights, scatter)
        change = self.metric(scatter).log_det - self._unit[1]
        gained = np.log(weights.sum(axis=1) + np.exp(change / self.freedom))
        return np.asarray(self.n_coef * (self.freedom * gained - change))

    @cached_property
    def _plain_variance(self) -> float:
        plain, typical = float(self.classical[1][0, 0]), self._typical(self.data[:, 0])
        return min(plain, typical**2) if typical > 0 else plain

    def _typical(self, values: Array) -> float:
        """Return the median distance of values (n,) from their median."""
        return float(median_of(np.abs(values - median_of(values, self.counts)), self.counts))

    @property
    def total(self) -> float:
        """Number of observations that all rows stand for."""
        return self.whole.total

    @cached_property
    def distances(self) -> Array:
        """Distances from the middle of the columns of X that vary, of mean zero, (n, p)."""
        return self.whole.sizes(self.exog)

    @cached_property
    def _pairs(self) -> tuple[Array, np.ndarray]:
        """Products of two columns of X (n, q), and which of them those of all pairs (k, k) are."""
        first, second = np.triu_indices(self.n_coef)
        places = np.zeros((self.n_coef, self.n_coef), int)
        places[first, second] = places[second, first] = np.arange(len(first))
        return self.exog[:, first] * self.exog[:, second], places

    def grams(self, weights: Array, ridge: float) -> Array:
        """Return Gram matrices of the design under weights (b, n), shape (b, k, k)."""
        k = self.n_coef
        if k > WIDE:
            roots = (np.sqrt(each)[:, None] * self.exog for each in weights)
            gram = np.stack([root.T @ root for root in roots])
        else:
            products, places = self._pairs
            gram = (weights @ products)[:, places]
        sizes = np.einsum("bii->bi", gram)[:, :, None] + NO_MASS
        return gram + ridge * sizes * np.eye(k)

    def coefficients(
        self, weights: Array, target: Array, ridge: float = RIDGE, near: Array | None = None
    ) -> Array:
        """Return weighted least squares fits (b, k, d) to a target (n, d) or (b, n, d).

        `near` holds fits to begin from, where these are found by steps.
        """
        right = self._moments(weights, target)
        if self.n_coef <= WIDE:
            return np.linalg.solve(self.grams(weights, ridge), right)
        sizes = (weights @ self.exog**2)[:, :, None] + NO_MASS
        found, solved = conjugate_gradients(
            lambda coef: self._moments(weights, self.fitted(coef)) + ridge * sizes * coef,
            right,
            np.zeros_like(right) if near is None else near,
            self._inverse_gram,
            60 if near is None else NEARER,
        )
        if near is not None:
            return found
        if not solved.all():
            found[~solved] = np.linalg.solve(self.grams(weights[~solved], ridge), right[~solved])
        return found

    @cached_property
    def _inverse_gram(self) -> Array:
        """Inverse of the Gram matrix of all rows, shape (k, k)."""
        return np.linalg.inv(self.grams(self.counts[None], RIDGE)[0])

    def _moments(self, weights: Array, target: Array) -> Array:
        """Return ``X' W Z`` under weights (b, n), of a target Z (n, d) or (b, n, d), (b, k, d)."""
        if self.dim == 1:
            return ((weights * target[..., 0]) @ self.exog)[:, :, None]
        return np.asarray(self.exog.T @ (weights[:, :, None] * target))

    def fitted(self, coef: Array) -> Array:
        """Return ``X B`` for coefficients (b, k, d), shape (b, n, d)."""
        if self.dim == 1:
            return (coef[:, :, 0] @ self.exog.T)[:, :, None]
        return np.asarray(self.exog @ coef)

    @cached_property
    def far_square(self) -> Array:
        """Squared distance of a row, or its group, that one good one in 1 / FAR exceeds."""
        return np.asarray(chdtri(self.freedom * self.together.sizes, FAR))

    def neighborhood(self, weights: Array) -> Array:
        """Return a map of X in which rows longer than 1 are far from those with weight.

        Another row of the same normal distribution is with probability FAR (Hotelling's T^2). The
        map is affine, shape (p + 1, p); zero where too few rows have weight.
        """
        varying, mass = self.whole.varying(self.exog), weights * self.counts
        m, p = float(mass.sum()), varying.shape[1]
        if not m > p + 1 > 1:
            return np.zeros((p + 1, p))
        mean = mass @ varying / m
        centered = varying - mean
        values, axes = np.linalg.eigh((mass[:, None] * centered).T @ centered)
        most = p * (m + 1) / (m * (m - p)) * float(fdtri(p, m - p, 1 - FAR))
        used = values > p * np.finfo(float).eps * values[-1]
        root = axes * np.where(used, 1 / np.sqrt(most * np.where(used, values, 1.0)), 0.0)
        return np.vstack([-mean @ root, root])

    def far(self, near: Array) -> np.ndarray:
        """Tell which rows are far in X from a neighborhood (p + 1, p), shape (n,)."""
        frame, used = self.whole, np.isfinite(self.whole.spread)
        slopes = np.zeros((self.n_coef, near.shape[1]))
        slopes[used] = near[1:] / frame.spread[used, None]
        length = self.exog @ slopes + (near[0] - frame.mean @ slopes)
        return np.asarray(np.einsum("ni,ni->n", length, length) > 1)


@dataclass(frozen=True, eq=False)
class Mixtures:
    """A batch of b mixtures, each of its own kind, and what they were last seen to explain.

    Attributes
    ----------
    kind : ndarray of int, shape (b,)
        Places in KINDS.
    coef : ndarray, shape (b, k, d)
    scatter : ndarray, shape (b, d, d)
    growth : ndarray, shape (b, p)
        Change of the log size of the noise with the fitted value (the first) or with the
        distances of the columns.
    unit : ndarray, shape (b, 2)
        Mean and standard deviation of the fitted values.
    df : ndarray, shape (b,)
        Degrees of freedom of Student noise; infinite for Gaussian noise.
    share : ndarray, shape (b, 2, 2)
        Share of each part of the bad rows: among rows near the others in X, and among those far
        from them.
    center : ndarray, shape (b, 2, d)
        Shift m of each part from the fit.
    line : ndarray, shape (b, k, d)
        Coefficients of the other line less those of the fit.
    size : ndarray, shape (b, 2)
        Scatter of each part over that of the good rows: c or v.
    near : ndarray, shape (b, p + 1, p)
        The neighborhood in X from which other rows are far; see `Rows.neighborhood`.
    far : ndarray of bool, shape (b, n)
        Whether rows are far from the others in X.
    gain : ndarray, shape (b,)
        What tails that are not normal add to the log-likelihood.
    good : ndarray, shape (b, n)
        Probability of each row to be good.
    log_likelihood : ndarray, shape (b,)
    """

    kind: np.ndarray
    coef: Array
    scatter: Array
    growth: Array
    unit: Array
    df: Array
    share: Array
    center: Array
    line: Array
    size: Array
    near: Array
    far: np.ndarray
    gain: Array
    good: Array
    log_likelihood: Array

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, places: np.ndarray | list[int]) -> Mixtures:
        """Return some of the batch, with arrays of their own."""
        return Mixtures(*(getattr(self, name)[places] for name in _ARRAYS))

    @staticmethod
    def join(parts: Sequence[Mixtures]) -> Mixtures:
        """Return several batches as one."""
        return Mixtures(*(np.concatenate([getattr(p, name) for p in parts]) for name in _ARRAYS))

    def thinned(self, step: int) -> Mixtures:
        """Return the same of every so many-th row."""
        return replace(self, far=self.far[:, ::step], good=self.good[:, ::step])

    def on(self, rows: Rows) -> Mixtures:
        """Return the same of more rows, which have not been seen yet."""
        shape = len(self), len(rows.counts)
        far = np.array([rows.far(near) for near in self.near], bool).reshape(shape)
        bad = (~self.has(Part.NONE)).any(axis=1, keepdims=True)
        unknown = np.full(len(self), -np.inf)
        return replace(self, far=far & bad, good=np.ones(shape), log_likelihood=unknown)

    def started_as(self, kinds: Sequence[Kind], **changed: Array) -> Mixtures:
        """Return the same of other kinds, whose likelihood is not known."""
        number, unknown = [NUMBER[kind] for kind in kinds], np.full(len(self), -np.inf)
        return replace(self, kind=np.array(number, int), log_likelihood=unknown, **changed)

    def noise(self, good: Good) -> np.ndarray:
        """Tell whose good rows are like this, shape (b,)."""
        return _with_noise(self.kind.tobytes(), good)

    def has(self, part: Part) -> np.ndarray:
        """Tell which of the two parts of the bad rows are like this, shape (b, 2)."""
        return _with_parts(self.kind.tobytes(), (part,))

    def places(self, *parts: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return where the bad rows have such parts: places in the batch, numbers of the part."""
        return _places(self.kind.tobytes(), parts)

    def pulls(self, square: Array, dim: int) -> Array:
        """Return the weights of good rows in the fit, from their squared distances (b, n)."""
        if np.isinf(self.df).all():
            return np.ones((len(self), 1))
        df = self.df[:, None]
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(df), 1.0, (df + dim) / (df + square))

    def row_shares(self) -> Array:
        """Return the share of each part of the bad rows at each row, shape (2, b, n)."""
        near, far = self.share.transpose(2, 1, 0)[..., None]
        return np.where(self.far, far, near)

    def offsets(self, rows: Rows, at: np.ndarray, part: np.ndarray) -> Array:
        """Return where parts of the bad rows are expected, less the fit, (m, 1 or n, d).

        `at` has their places in the batch, and `part` which of the two they are.
        """
        found = self.center[at, part][:, None]
        lines = self.has(Part.LINE)[at, part]
        return found + rows.fitted(self.line[at] * lines[:, None, None]) if lines.any() else found

    def distances(
        self, rows: Rows, here: Measured, away: Sequence[Part] = AWAY
    ) -> tuple[Array, Array]:
        """Return squared distances from where both parts of the bad rows are expected, (2, b, n).

        Up to their size; with ln det of their scatter, (2, b). `here` has the distances from the
        fit, which are those of parts that are not `away`.
        """
        square, log_det = np.stack([here.square] * 2), np.stack([here.metric.log_det] * 2)
        at, part = self.places(Part.SHAPED)
        if len(at) and rows.whole.overall is not None:
            white = rows.overall_metric.white(here.resid[at])
            square[part, at] = squared_lengths(white)
            log_det[part, at] = rows.overall_metric.log_det
        at, part = self.places(*away)
        if len(at):
            offset = here.metric.take(at).white(self.offsets(rows, at, part))
            square[part, at] = squared_lengths(here.white[at] - offset)
        return square, log_det

    def costs(self, rows: Rows) -> Array:
        """Return what parameters besides coefficients and S cost on the scale of BIC, shape (b,).

        ln n for each that is at no bound, and `share_costs`. BIC is the logarithm of a Bayes
        factor with a prior that knows as much as one row. For a parameter that goes one way only
        from normal noise, that of tails, or the size of bad rows around the others, it is twice as
        dense, which is worth 2 ln 2. Noise that grows and noise that changes share one prior,
        which costs each as much.
        """
        larger, around = self.size[:, 1] > 1, self.has(Part.SCATTERED)[:, 1]
        changing = self.noise(Good.GROWING_NOISE) | self.noise(Good.CHANGING_NOISE)
        likelier = self._tails + self.has(Part.WIDE)[:, 0] + (around & larger) - 1 * changing
        known = np.log(rows.total) * self._counts(rows) - 2 * np.log(2) * likelier
        return np.asarray(known + self.share_costs(rows))

    @property
    def _tails(self) -> np.ndarray:
        return 1 * (self.noise(Good.SHORT_TAILS) | self.noise(Good.HEAVY_TAILS))

    def _counts(self, rows: Rows) -> np.ndarray:
        """Return the numbers of parameters besides coefficients, S and shares, shape (b,)."""
        wide, places = self.has(Part.WIDE)[:, 0], self.has(Part.CLUSTER).sum(axis=1)
        growing, changing = map(self.noise, (Good.GROWING_NOISE, Good.CHANGING_NOISE))
        sizes = growing + rows.distances.shape[1] * changing
        shape = self.has(Part.SHAPED)[:, 1] * (rows.dim * (rows.dim + 1) // 2 - 1)
        larger = self.size[:, 1] > 1
        return np.asarray(self._tails + sizes + rows.freedom * places + shape + wide + larger)

    def n_params(self, rows: Rows) -> np.ndarray:
        """Return the numbers of parameters besides coefficients of good rows and S, shape (b,)."""
        lines = self.has(Part.LINE).any(axis=1) * rows.n_coef * rows.freedom
        shares = (~self.has(Part.NONE)).sum(axis=1) * (1 + self.far.any(axis=1))
        return np.asarray(self._counts(rows) + lines + shares)

    def share_costs(self, rows: Rows) -> Array:
        """Return what the shares of bad rows cost on the scale of BIC, shape (b,).

        The likelihood of m shares, were it known which rows are bad, is integrated over them: with
        a uniform prior on shares of less than a half in all, of less than one among rows that are
        far from the others in X.
        """
        parts = (~self.has(Part.NONE)).sum(axis=1)
        found = np.zeros(len(self))
        for place, (here, most) in enumerate(((~self.far, 0.5), (self.far, 1.0))):
            total = rows.together.total(here)
            shares = self.share[:, :, place]
            shares = np.column_stack([shares, np.maximum(1 - shares.sum(axis=1), 0.0)])
            bad = shares * total[:, None]
            volume = parts * np.log(most) - gammaln(parts + 1)
            mean = gammaln(bad + 1).sum(axis=1) - gammaln(total + parts + 1) - volume
            found += 2 * (xlogy(bad, shares).sum(axis=1) - mean)
        return np.where(parts > 0, found, 0.0)


_ARRAYS = tuple(field.name for field in fields(Mixtures))


class Seen(NamedTuple):
    """How a batch of mixtures sees the rows.

    Attributes
    ----------
    here : Measured
        Residuals in units of the size of the noise of each row, and distances from the fit.
    log_size : ndarray, shape (b, n), or (b, 1) where it does not change
        Logarithm of that size.
    features : ndarray, shape (b, n, p), or None
        What that size changes with; None where it does not change.
    probabilities : ndarray, shape (3, b, n)
        Of each row, or its group, to be good, and to belong to each part of the bad rows.
    log_density : ndarray, shape (b, n)
        That of the group of each row, where rows come in groups.
    """

    here: Measured
    log_size: Array
    features: Array | None
    probabilities: Array
    log_density: Array

    @property
    def square(self) -> Array:
        """Squared distances from the fit, shape (b, n)."""
        return self.here.square


def penalties(rows: Rows, mixtures: Mixtures, roughly: bool = False) -> Array:
    r"""Return what the parameters cost on the scale of BIC, shape (b,).

    About ln n for each, see `Mixtures.costs`, but for the coefficients: the likelihood is
    integrated over these with a prior as informative as one row of the classical fit,
    :math:`N(0, I_1^{-1})`. By Laplace's method they cost :math:`\ln\det(I + I_1) - \ln\det I_1`,
    where I is their information in the mixture: about k ln n without bad rows, and more where the
    noise is smaller. Few rows that fit well do not win by their small noise alone, as in
    restricted maximum likelihood.
    """
    view, d = seen(rows, mixtures), rows.freedom
    good, *bad = view.probabilities * rows.counts * np.exp(-2 * view.log_size)
    # A row of Student's distribution tells (f + d) / (f + d + 2) of a normal one.
    good = good * mixtures.pulls(np.full((1, 1), d + 2.0), d)
    information = np.where(mixtures.has(Part.WIDE), (1 + d) / (3 + d), 1.0) / mixtures.size
    lines = mixtures.has(Part.LINE)
    around = sum(mass * (information * ~lines)[:, part, None] for part, mass in enumerate(bad))
    found = (rows.rough_costs if roughly else rows.coefficient_costs)(
        good + around, mixtures.scatter
    )
    line = np.asarray(lines.any(axis=1))
    if line.any():
        found[line] += rows.of(line).coefficient_costs(bad[1][line], mixtures.scatter[line])
    return found + mixtures.costs(rows)


def squared_lengths(white: Array) -> Array:
    """Return squared lengths (b, n) of white residuals (b, n, m), at any distance."""
    with np.errstate(over="ignore"):
        one = white.shape[2] == 1
        found = white[:, :, 0] ** 2 if one else np.einsum("bnd,bnd->bn", white, white)
        return np.minimum(found, 1e300)


def ridged(scatter: Array) -> Array:
    """Return scatters (b, d, d) of several dimensions that are not singular."""
    d = scatter.shape[-1]
    if d == 1:
        return scatter
    size = np.einsum("bii->b", scatter)[:, None, None] / d
    return np.asarray(scatter + (RIDGE * size + NO_MASS**2) * np.eye(d))


def is_singular(values: Array, scatter: Array) -> bool:
    """Tell whether the least of some variances is no more than the ridge of a scatter (d, d)."""
    return bool(values.min() <= 10 * RIDGE * np.trace(scatter) / len(scatter))


def student(square: Array, base: Array, df: Array | float, dim: Array | int) -> Array:
    """Return log-densities of Student's distribution; `base` holds ln det of its scatter."""
    norm = gammaln((df + dim) / 2) - gammaln(df / 2) - 0.5 * dim * np.log(np.pi * df)
    return norm - 0.5 * base - 0.5 * (df + dim) * np.log1p(square / df)


def normal(square: Array, base: Array, dim: int) -> Array:
    """Return log-densities of the normal distribution; `base` holds ln det of its scatter."""
    return -0.5 * (square + (base + dim * LOG_2PI))


def seen(rows: Rows, mixtures: Mixtures) -> Seen:
    """Return residuals and probabilities of the rows under a batch of mixtures: the E-step."""
    d, fitted, together = rows.freedom, rows.fitted(mixtures.coef), rows.together
    resid = rows.data - fitted
    log_size, features = np.zeros((len(resid), 1)), noise_features(rows, mixtures, fitted)
    if features is not None:
        log_size = (features @ mixtures.growth[:, : features.shape[2], None])[:, :, 0]
        resid = resid * np.exp(-log_size)[:, :, None]
    here = rows.measured(resid, mixtures.scatter)
    square, log_det = here.square, here.metric.log_det
    base = log_det[:, None] + 2 * d * log_size
    around, grown = mixtures.distances(rows, here)
    size = mixtures.size.T[:, :, None]
    around /= size
    base_bad = grown[:, :, None] + 2 * d * log_size + d * np.log(size)
    logs = np.empty((3, *square.shape))
    logs[0], logs[1:] = normal(square, base, d), normal(around, base_bad, d)
    heavy = np.flatnonzero(mixtures.noise(Good.HEAVY_TAILS))
    if len(heavy):
        logs[0, heavy] = student(square[heavy], base[heavy], mixtures.df[heavy, None], d)
    logs = together.sums(logs)
    wide, part = mixtures.places(Part.WIDE)
    if len(wide):  # a wide group is one Cauchy variable
        apart = around[part, wide]
        spread = together.sums(np.broadcast_to(base_bad[part, wide], apart.shape))
        logs[1 + part, wide] = student(together.sums(apart), spread, 1.0, d * together.sizes)
    good = 1 - mixtures.share.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        shares = np.log(np.concatenate([np.maximum(good, 0.0), mixtures.share], axis=1))
    near, far = shares.transpose(2, 1, 0)[..., None]
    logs += np.where(mixtures.far, far, near) if mixtures.far.any() else near
    top = logs.max(axis=0)
    logs -= top
    parts = np.exp(logs, out=logs)
    total = parts.sum(axis=0)
    parts /= total
    return Seen(here, log_size, features, parts, top + np.log(total))


def noise_features(rows: Rows, mixtures: Mixtures, fitted: Array) -> Array | None:
    """Return what the size of the noise changes with, shape (b, n, p); None where it does not.

    Fitted values in standard deviations, or distances of the columns of X.
    """
    growing, changing = map(mixtures.noise, (Good.GROWING_NOISE, Good.CHANGING_NOISE))
    if not (growing | changing).any():
        return None
    if changing.any():
        found = changing[:, None, None] * rows.distances
    else:
        found = np.zeros((*fitted.shape[:2], 1))
    unit = mixtures.unit[growing]
    feature = (fitted[growing, :, 0] - unit[:, :1]) / unit[:, 1:]
    found[growing, :, 0] = np.clip(feature, -MOST_FEATURE, MOST_FEATURE)
    return found


def fitted_unit(fitted: Array, mass: Array) -> Array:
    """Return mean and standard deviation of fitted values (b, n) under a mass, shape (b, 2)."""
    total = mass.sum(axis=1)
    mean = (mass * fitted).sum(axis=1) / total
    spread = np.sqrt((mass * (fitted - mean[:, None]) ** 2).sum(axis=1) / total)
    varies = spread > 1e-9 * np.abs(fitted).max(axis=1)
    return np.column_stack([mean, np.where(varies, spread, np.inf)])


def em_step(rows: Rows, mixtures: Mixtures, eps_bar: float, by_noise: bool = False) -> Mixtures:
    """Return mixtures after one step of EM, with the log-likelihood before it.

    `by_noise` says whether rows with less noise count for more in the fit where its size changes.
    Explanations are compared without: few rows that fit well could else take the fit to
    themselves, and rows far out in X pass for noisy ones.
    """
    view, d = seen(rows, mixtures), rows.freedom
    mass = view.probabilities * rows.counts
    good, bad = mass[0], mass[1:]
    pull = good * mixtures.pulls(view.square, d)
    precision = np.exp(-2 * view.log_size) if by_noise else 1.0
    coef = rows.coefficients(pull * precision, rows.data, near=mixtures.coef)
    fitted = rows.fitted(coef)
    resid = rows.data - fitted
    free = np.maximum(good.sum(axis=1) - rows.n_lost, 1e-9 if rows.dim == 1 else 1.0)
    changed = {"coef": coef, "df": new_df(mixtures, view.square, good, d)}
    if view.features is not None:
        resid = resid * np.exp(-view.log_size)[:, :, None]
        growth = grown(mixtures, view, good, d)
        changed |= {"growth": growth, "unit": fitted_unit(fitted[:, :, 0], good)}
    scatter = np.swapaxes(resid * pull[:, :, None], 1, 2) @ resid / free[:, None, None]
    new = replace(
        mixtures,
        **changed,
        scatter=ridged(scatter),
        share=bounded_shares(rows, mixtures.far, bad, eps_bar),
        good=view.probabilities[0],
        log_likelihood=rows.together.total(view.log_density) + mixtures.gain,
    )
    return with_bad_rows(rows, new, resid, bad)


def new_df(mixtures: Mixtures, square: Array, mass: Array, dim: int) -> Array:
    """Return degrees of freedom after a step of Newton's method on their logarithm, shape (b,)."""
    heavy = mixtures.noise(Good.HEAVY_TAILS)
    if not heavy.any():
        return mixtures.df
    df = mixtures.df[heavy, None]

    width = 0.01
    near = df * np.exp(width * np.arange(-1, 2))[:, None, None]
    below, here, above = (mass[heavy] * near * df_scores(square[heavy], near, dim)).sum(axis=2)
    curve = (above - below) / (2 * width)
    step = np.where(curve < 0, -here / np.where(curve < 0, curve, -1.0), np.sign(here))
    found = mixtures.df.copy()
    found[heavy] = np.clip(df[:, 0] * np.exp(np.clip(step, -1.0, 1.0)), LEAST_DF, MOST_DF)
    return found


def df_scores(square: Array, df: Array | float, dim: int) -> Array:
    """Return the derivatives of Student's log-densities in the degrees of freedom, as `square`."""
    known = digamma((df + dim) / 2) - digamma(df / 2) - dim / df
    ratio = square / df
    return 0.5 * (known - np.log1p(ratio) + (df + dim) / df * ratio / (1 + ratio))


def bounded_shares(rows: Rows, far: np.ndarray, bad: Array, eps_bar: float) -> Array:
    """Return the shares of both parts of the bad rows, (b, 2, 2), at most eps_bar in all.

    `bad` has the number of observations of each row that belong to each part, (2, b, n).
    """
    sums, total = np.zeros((len(far), 2, 2)), np.zeros((len(far), 2))
    sums[:, :, 0], total[:, 0] = bad.sum(axis=2).T, rows.counts.sum(axis=-1)
    if far.any():
        sums[:, :, 1], total[:, 1] = (bad * far).sum(axis=2).T, rows.summed(far)
        sums[:, :, 0], total[:, 0] = (bad * ~far).sum(axis=2).T, rows.summed(~far)
    most = eps_bar * rows.total / np.maximum(sums.sum(axis=(1, 2)), NO_MASS)
    return sums * np.minimum(most, 1.0)[:, None, None] / np.maximum(total, NO_MASS)[:, None]


def grown(mixtures: Mixtures, view: Seen, mass: Array, dim: int) -> Array:
    """Return the change of the log size of the noise after a step of Fisher's scoring."""
    assert view.features is not None
    across = np.swapaxes(view.features * mass[:, :, None], 1, 2)
    slope = across @ (view.square / dim - 1)[:, :, None]
    curve = 2 * across @ view.features + NO_MASS * np.eye(len(across[0]))
    step = np.linalg.solve(curve, slope)[:, :, 0]
    # A step, and all of them, are bounded per unit of a feature.
    found, used = mixtures.growth.copy(), view.features.shape[2]
    found[:, :used] = np.clip(found[:, :used] + np.clip(step, -0.5, 0.5), -3.0, 3.0)
    return found


def with_bad_rows(rows: Rows, mixtures: Mixtures, resid: Array, bad: Array) -> Mixtures:
    """Return mixtures whose bad rows are fitted, given residuals and the mass of both parts."""
    center, line, size = mixtures.center.copy(), mixtures.line.copy(), mixtures.size.copy()
    new = replace(mixtures, center=center, line=line, size=size)
    total, together = bad.sum(axis=2), rows.together
    known = total > NO_MASS
    at, part = mixtures.places(Part.CLUSTER)
    if len(at):
        sums = (bad[part, at][:, None] @ resid[at])[:, 0]
        found = sums / np.maximum(total[part, at], NO_MASS)[:, None]
        center[at, part] = np.where(known[part, at][:, None], found, center[at, part])
    at, part = mixtures.places(Part.LINE)
    if len(at):
        at, part = at[known[part, at]], part[known[part, at]]
        line[at] = rows.coefficients(bad[part, at], resid[at], LINE_RIDGE, line[at])
    sized = mixtures.places(*SIZED)[0]
    if not len(sized):
        return new
    square = new.distances(rows, rows.measured(resid, mixtures.scatter), (Part.CLUSTER,))[0]
    pull = bad
    wide, part = mixtures.places(Part.WIDE)
    if len(wide):
        # Dividing by the pulls of Cauchy rows, which sum to the mass at the maximum, is
        # the faster EM in high dimensions (with expanded parameters).
        apart = together.sums(square[part, wide]) / size[wide, part, None]
        pull = bad.copy()
        pull[part, wide] *= (1 + rows.freedom * together.sizes) / (1 + apart)
    sums = np.einsum("pbn,pbn->bp", pull, square)
    mass = rows.freedom * pull.sum(axis=2).T
    two = mixtures.has(Part.CLUSTER).all(axis=1)
    if two.any():
        sums[two], mass[two] = (each[two].sum(axis=1, keepdims=True) for each in (sums, mass))
    found = np.maximum(sums / np.maximum(mass, np.finfo(float).tiny), 1.0)
    told = _with_parts(mixtures.kind.tobytes(), SIZED) & known.T
    size[told] = found[told]
    return new


def both_sides(resid: Array, counts: Array, scatter: Array) -> Array:
    """Return the means (2, d) of centered rows (n, d) on both sides of their first axis.

    That of their second moment in the frame of a scatter (d, d).
    """
    inverse = np.linalg.inv(np.linalg.cholesky(scatter))
    white = resid @ inverse.T
    axis = np.linalg.eigh((counts[:, None] * white).T @ white)[1][:, -1]
    side = white @ axis > 0
    parts = [counts * each for each in (~side, side)]
    return np.array([part @ resid / max(float(part.sum()), NO_MASS) for part in parts])


def started(
    rows: Rows, candidates: Sequence[tuple[Array, Array]], kinds: Sequence[Kind], eps_bar: float
) -> Mixtures:
    """Return mixtures of all kinds from each of several candidates, shape (candidates * kinds,).

    Candidates are coefficients (k, d) and scatters (d, d); bad rows are those far from them.
    """
    coef, scatter = (np.stack(each) for each in zip(*candidates, strict=True))
    scatter, fitted, (c, n) = ridged(scatter), rows.fitted(coef), (len(coef), len(rows.counts))
    resid = rows.data - fitted
    square = rows.measured(resid, scatter).square
    out = rows.together.sums(square) > rows.far_square
    share = np.clip(out @ rows.counts / rows.total, 0.5 / rows.total, 0.9 * eps_bar)
    spread, middle, sides = np.full(c, 4.0), np.zeros((c, rows.dim)), np.zeros((c, 2, rows.dim))
    line = np.zeros_like(coef)
    with_lines = any(Part.LINE in PARTS[kind.bad] for kind in kinds)
    for i in np.flatnonzero(out.any(axis=1)):
        here, count = resid[i, out[i]], rows.counts[out[i]]
        spread[i] = max(float(median_of(square[i, out[i]], count)) / rows.freedom, 2.0)
        middle[i] = count @ here / max(float(count.sum()), NO_MASS)
        sides[i] = both_sides(here - middle[i], count, scatter[i]) + middle[i]
        if with_lines:
            line[i] = rows.coefficients((rows.counts * out[i])[None], resid[i], LINE_RIDGE)[0]
    near = np.stack([rows.neighborhood(1.0 - each) for each in out])
    far = np.stack([rows.far(each) for each in near]) & (rows.groups is None)
    which = np.repeat(np.arange(c), len(kinds))
    number = np.tile([NUMBER[kind] for kind in kinds], c)
    kinds_of = partial(_with_parts, number.tobytes())
    has, cluster = ~kinds_of((Part.NONE,)), kinds_of((Part.CLUSTER,))[:, :, None]
    two, any_bad = cluster.all(axis=1, keepdims=True), has.any(axis=1, keepdims=True)
    lines = np.asarray(kinds_of((Part.LINE,)).any(axis=1))
    around = kinds_of((Part.WIDE, Part.SCATTERED))
    each_share = share[which, None] * has / np.maximum(has.sum(axis=1, keepdims=True), 1)
    return Mixtures(
        kind=number,
        coef=coef[which],
        scatter=scatter[which],
        growth=np.zeros((len(which), rows.distances.shape[1])),
        unit=fitted_unit(fitted[:, :, 0], np.broadcast_to(rows.counts, (c, n)))[which],
        df=np.full(len(which), np.inf),
        share=np.repeat(each_share[:, :, None], 2, axis=2),
        center=np.where(two, sides[which], cluster * middle[which, None]),
        line=line[which] * lines[:, None, None],
        size=np.where(around, spread[which, None], 1.0),
        near=near[which],
        far=far[which] & any_bad,
        gain=np.zeros(len(which)),
        good=np.where(out[which] & any_bad, 0.0, 1.0),
        log_likelihood=np.full(len(which), -np.inf),
    )
