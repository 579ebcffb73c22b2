"""Rows with Gaussian noise in d dimensions, some of them bad: a batch of mixtures fitted by EM.

Rows are ``Y = X B + noise``: a regression has d = 1, a mean and covariance a constant X. Good rows
have Gaussian or Student noise with scatter S, whose size may change from row to row. Bad rows are
*wide*, Cauchy around the fit with scatter c S; or form a *cluster*, Gaussian around a shift m from
the fit with scatter v S, v >= 1; or *two clusters*, of one v; or are *scattered*, the same without
a shift; or follow *another line*, with coefficients of their own and the noise of the good rows.
Bad rows do not count in the fit of B and S.

The share of bad rows may differ for rows that lie far from the others in X: leverage points are
bad together or good together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.core.frames import median_of
from rrmstats.laws.together import Together

LOG_2PI = float(np.log(2 * np.pi))
# Most that a step changes the log size of the noise per unit of a feature, and most in all.
GROWTH_STEP, MOST_GROWTH = 0.5, 3.0
# Standard deviations beyond which the noise does not change any more.
MOST_FEATURE = 4.0
# Mass of bad rows below which their parameters stay as they are.
NO_MASS = 1e-9
# Ridges, relative to the mean diagonal, that keep the normal equations of few rows solvable.
RIDGE, LINE_RIDGE = 1e-12, 1e-9
# Degrees of freedom of Student noise, from tails as of a Cauchy distribution to Gaussian ones.
LEAST_DF, MOST_DF = 1.0, 200.0
# A row is far from the others in X, or from a fit, where one good row in so many is.
FAR = 1e-3
# Squared distance beyond which rows are as far as can be told.
FARTHEST = 1e300
# Variance, relative to the squared median distance of all rows, below which it is one of few rows.
# It is 0.19 or more where half of the rows are good and normal: at the worst the median distance
# is their 98 % quantile.
COLLAPSED = 0.01
# Variance of a regression, relative to that of least squares, below which its rows fit exactly.
EXACT = 1e-10


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
    LINE = "normal around another line, with the noise of the good rows"


#: The parts of the bad rows; two clusters have one size.
PARTS = {
    Bad.NONE: (Part.NONE, Part.NONE),
    Bad.WIDE: (Part.WIDE, Part.NONE),
    Bad.CLUSTER: (Part.NONE, Part.CLUSTER),
    Bad.WIDE_AND_CLUSTER: (Part.WIDE, Part.CLUSTER),
    Bad.SCATTERED: (Part.NONE, Part.SCATTERED),
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
        if bad not in (Bad.OTHER_LINE, Bad.TWO_CLUSTERS)
    ),
    # Of groups: tails belong to the rows, and bad groups to none of them.
    *(Kind(Good.HEAVY_TAILS, bad) for bad in PARTS if bad is not Bad.NONE),
)
NUMBER = {kind: number for number, kind in enumerate(KINDS)}
_GOOD = np.array([kind.good for kind in KINDS])
_PARTS = np.array([PARTS[kind.bad] for kind in KINDS])


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
    """

    total: float
    mean: Array
    spread: Array
    middle: Array

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


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, and how often each of them counts.

    Attributes
    ----------
    data : ndarray, shape (n, d)
        Responses.
    exog : ndarray, shape (n, k)
        Predictors; a column of ones for a mean, none where the mean is known to be zero.
    counts : ndarray, shape (n,)
        How often each row counts.
    frame : Frame, optional
        That of all rows, where these are some of them.
    groups : ndarray of int, shape (n,), optional
        Number of the group of each row, whose rows are good or bad together; None where each row
        is by itself.
    """

    data: Array
    exog: Array
    counts: Array
    frame: Frame | None = None
    groups: np.ndarray | None = None

    @cached_property
    def together(self) -> Together:
        """Which rows are good or bad together."""
        return Together(self.counts, self.groups)

    @cached_property
    def whole(self) -> Frame:
        """What is known of all rows together."""
        return Frame.of(self.exog, self.counts) if self.frame is None else self.frame

    @property
    def dim(self) -> int:
        """Dimension of the responses."""
        return int(self.data.shape[1])

    @property
    def n_coef(self) -> int:
        """Coefficients of each response."""
        return int(self.exog.shape[1])

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the squared distances of good rows."""
        return self.dim

    def squares(self, resid: Array, scatter: Array) -> tuple[Array, Array]:
        """Return squared distances (b, n) of residuals (b, n, d), and ln det S (b,)."""
        return squared_distances(resid, scatter)

    def refuses(self, coef: Array, scatter: Array) -> bool:
        """Tell whether the variance along the least axis of a scatter (d, d) is of few rows.

        In one dimension: whether it is rounding beside that of least squares, which bad rows far
        out do not enlarge beyond that of the responses. `coef` is (k, d).
        """
        if self.dim == 1:
            return bool(scatter[0, 0] < EXACT * self._plain_variance)
        values, axes = np.linalg.eigh(scatter)
        along = self.data @ axes[:, 0]
        typical = self._typical(along)
        return is_singular(values, scatter) or bool(values[0] < COLLAPSED * typical**2)

    @cached_property
    def classical(self) -> tuple[Array, Array]:
        """The classical fit: coefficients (k, d) and scatter (d, d)."""
        return self.fit(self.counts)

    def fit(self, counts: Array) -> tuple[Array, Array]:
        """Return coefficients (k, d) and scatter (d, d) of rows that count so often, (n,)."""
        coef = self.coefficients(counts[None], self.data)[0]
        resid = self.data - self.fitted(coef[None])[0]
        free = max(float(counts.sum()) - self.n_coef, 1e-9)
        return coef, (counts[:, None] * resid).T @ resid / free

    @cached_property
    def _unit(self) -> tuple[Array, float]:
        """Gram matrix (k, k) of one row, and ln det of the scatter of the classical fit."""
        scatter = ridged(self.classical[1][None])
        log_det = self.squares(np.zeros((1, 1, self.dim)), scatter)[1]
        return self.grams(self.counts[None] / self.total, RIDGE)[0], float(log_det[0])

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
        log_det = self.squares(np.zeros((len(weights), 1, self.dim)), scatter)[1]
        relative = np.exp((log_det - unit_det) / self.freedom)[:, None, None]
        gram = self.grams(weights, 0.0) + relative * unit
        gained = np.linalg.slogdet(gram)[1] - np.linalg.slogdet(unit)[1]
        return np.asarray(self.freedom * gained - self.n_coef * (log_det - unit_det))

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
    def _pairs(self) -> Array:
        return (self.exog[:, :, None] * self.exog[:, None, :]).reshape(len(self.exog), -1)

    def grams(self, weights: Array, ridge: float) -> Array:
        """Return Gram matrices of the design under weights (b, n), shape (b, k, k)."""
        k = self.n_coef
        gram = (weights @ self._pairs).reshape(len(weights), k, k)
        size = np.einsum("bii->b", gram)[:, None, None] / max(k, 1)
        return gram + ridge * (size + NO_MASS) * np.eye(k)

    def coefficients(self, weights: Array, target: Array, ridge: float = RIDGE) -> Array:
        """Return weighted least squares fits (b, k, d) to a target (n, d) or (b, n, d)."""
        if self.dim == 1:
            right = ((weights * target[..., 0]) @ self.exog)[:, :, None]
        else:
            right = self.exog.T @ (weights[:, :, None] * target)
        return np.linalg.solve(self.grams(weights, ridge), right)

    def fitted(self, coef: Array) -> Array:
        """Return ``X B`` for coefficients (b, k, d), shape (b, n, d)."""
        if self.dim == 1:
            return (coef[:, :, 0] @ self.exog.T)[:, :, None]
        return np.asarray(self.exog @ coef)

    def middle(self, weights: Array) -> tuple[Array, Array]:
        """Return mean (p,) and a metric (p, p) in X of the rows with weight.

        In the metric, another row of the same normal distribution has a squared distance above 1
        with probability FAR (Hotelling's T^2).
        """
        varying, mass = self.whole.varying(self.exog), weights * self.counts
        m, p = float(mass.sum()), varying.shape[1]
        if not m > p + 1 > 1:
            return np.zeros(p), np.zeros((p, p))
        mean = mass @ varying / m
        centered = varying - mean
        inverse = np.linalg.pinv((mass[:, None] * centered).T @ centered, hermitian=True)
        most = p * (m + 1) / (m * (m - p)) * float(f_distribution.isf(FAR, p, m - p))
        return mean, inverse / most

    def far(self, mean: Array, metric: Array) -> np.ndarray:
        """Tell which rows are far in X from a middle, shape (n,)."""
        centered = self.whole.varying(self.exog) - mean
        return np.asarray(np.einsum("ni,ij,nj->n", centered, metric, centered) > 1)


@dataclass(frozen=True, eq=False)
class Mixtures:
    """A batch of b mixtures, each of its own kind, and what they were last seen to explain.

    Attributes
    ----------
    kind : ndarray of int, shape (b,)
        Places in KINDS.
    candidate : ndarray of int, shape (b,)
        Which start each comes from.
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
    middle, metric : ndarray, shapes (b, p) and (b, p, p)
        Mean and metric in X of the rows from which others are far.
    far : ndarray of bool, shape (b, n)
        Whether rows are far from the others in X.
    gain : ndarray, shape (b,)
        What short tails add to the log-likelihood of normal ones.
    good : ndarray, shape (b, n)
        Probability of each row to be good.
    log_likelihood : ndarray, shape (b,)
    """

    kind: np.ndarray
    candidate: np.ndarray
    coef: Array
    scatter: Array
    growth: Array
    unit: Array
    df: Array
    share: Array
    center: Array
    line: Array
    size: Array
    middle: Array
    metric: Array
    far: np.ndarray
    gain: Array
    good: Array
    log_likelihood: Array

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, places: np.ndarray | list[int]) -> Mixtures:
        """Return some of the batch."""
        return Mixtures(*(getattr(self, field.name)[places] for field in fields(self)))

    @staticmethod
    def join(parts: list[Mixtures]) -> Mixtures:
        """Return several batches as one."""
        names = [field.name for field in fields(Mixtures)]
        return Mixtures(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def noise(self, *good: Good) -> np.ndarray:
        """Tell whose good rows are of one of these kinds, shape (b,)."""
        return np.isin(_GOOD[self.kind], np.array(good))

    def has(self, *parts: Part) -> np.ndarray:
        """Tell which of the two parts of the bad rows are of one of these kinds, shape (b, 2)."""
        return np.isin(_PARTS[self.kind], np.array(parts))

    def pulls(self, square: Array, dim: int) -> Array:
        """Return the weights of good rows in the fit, from their squared distances (b, n)."""
        df = self.df[:, None]
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(df), 1.0, (df + dim) / (df + square))

    def row_shares(self) -> Array:
        """Return the share of each part of the bad rows at each row, shape (2, b, n)."""
        near, far = np.moveaxis(self.share, (2, 1), (0, 1))[..., None]
        return np.where(self.far, far, near)

    def offsets(self, rows: Rows, part: int, chosen: np.ndarray) -> Array:
        """Return where a part of the bad rows is expected, less the fit, (m, 1 or n, d).

        `chosen`, shape (b,), tells which m mixtures of the batch.
        """
        found = self.center[chosen, part][:, None]
        if self.has(Part.LINE)[chosen, part].any():
            found = found + rows.fitted(self.line[chosen])
        return found

    def n_extra(self, rows: Rows) -> np.ndarray:
        """Return the parameters besides coefficients and S that are at no bound, shape (b,)."""
        bad, d = ~self.has(Part.NONE), rows.freedom
        one = self.noise(Good.SHORT_TAILS, Good.HEAVY_TAILS, Good.GROWING_NOISE)
        several = self.noise(Good.CHANGING_NOISE) * rows.distances.shape[1]
        shares = bad.sum(axis=1) + (bad.any(axis=1) & self.far.any(axis=1))
        places = d * self.has(Part.CLUSTER).sum(axis=1)
        wide, larger = self.has(Part.WIDE)[:, 0], self.size[:, 1] > 1
        return np.asarray(one + several + shares + places + wide + larger)

    @property
    def n_one_sided(self) -> np.ndarray:
        """Parameters that go one way only from normal noise, shape (b,).

        Those of tails, and share and size of bad rows around the others.
        """
        around = self.has(Part.WIDE, Part.SCATTERED).any(axis=1)
        return np.asarray(self.noise(Good.SHORT_TAILS, Good.HEAVY_TAILS) + 2 * around)


class Seen(NamedTuple):
    """How a batch of mixtures sees the rows.

    Attributes
    ----------
    resid : ndarray, shape (b, n, d)
        Residuals in units of the size of the noise of each row.
    log_size : ndarray, shape (b, n)
        Logarithm of that size.
    features : ndarray, shape (b, n, p), or None
        What that size changes with; None where it does not change.
    square : ndarray, shape (b, n)
        Squared distances from the fit.
    probabilities : ndarray, shape (3, b, n)
        Of each row, or its group, to be good, and to belong to each part of the bad rows.
    log_density : ndarray, shape (b, n)
        That of the group of each row, where rows come in groups.
    """

    resid: Array
    log_size: Array
    features: Array | None
    square: Array
    probabilities: Array
    log_density: Array


def penalties(rows: Rows, mixtures: Mixtures) -> Array:
    r"""Return what the parameters cost on the scale of BIC, shape (b,).

    ln n for each, as in BIC, but for the coefficients: the likelihood is integrated over these
    with a prior as informative as one row of the classical fit, :math:`N(0, I_1^{-1})`. By
    Laplace's method they cost :math:`\ln\det(I + I_1) - \ln\det I_1`, where I is their information
    in the mixture: about k ln n without bad rows, and more where the noise is smaller. Few rows
    that fit well do not win by their small noise alone, as in restricted maximum likelihood.

    BIC is the logarithm of a Bayes factor with a prior that knows as much as one row. For a
    parameter with one side it is twice as dense, which is worth 2 ln 2.
    """
    view, d = seen(rows, mixtures), rows.freedom
    good, *bad = view.probabilities * rows.counts * np.exp(-2 * view.log_size)
    # A row of Student's distribution tells (f + d) / (f + d + 2) of a normal one.
    good = good * mixtures.pulls(np.full((1, 1), d + 2.0), d)
    information = np.where(mixtures.has(Part.WIDE), (1 + d) / (3 + d), 1.0) / mixtures.size
    lines = mixtures.has(Part.LINE)
    around = sum(mass * (information * ~lines)[:, part, None] for part, mass in enumerate(bad))
    found = rows.coefficient_costs(good + around, mixtures.scatter)
    line = lines.any(axis=1)
    if line.any():
        found[line] += rows.coefficient_costs(bad[1][line], mixtures.scatter[line])
    found += np.log(rows.total) * mixtures.n_extra(rows) - 2 * np.log(2) * mixtures.n_one_sided
    return np.asarray(found)


def squared_distances(resid: Array, scatter: Array) -> tuple[Array, Array]:
    """Return squared distances (b, n) of residuals (b, n, d), and ln det S (b,)."""
    if resid.shape[2] == 1:
        variance = np.maximum(scatter[:, 0, 0], np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # rows at any distance
            square = resid[:, :, 0] ** 2 / variance[:, None]
        return np.minimum(square, FARTHEST), np.log(variance)
    root = np.linalg.cholesky(scatter)
    u = resid @ np.swapaxes(np.linalg.inv(root), 1, 2)
    return np.einsum("bnd,bnd->bn", u, u), 2 * np.log(np.einsum("bii->bi", root)).sum(axis=1)


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
    return -0.5 * (square + base + dim * LOG_2PI)


def seen(rows: Rows, mixtures: Mixtures) -> Seen:
    """Return residuals and probabilities of the rows under a batch of mixtures: the E-step."""
    d, fitted = rows.freedom, rows.fitted(mixtures.coef)
    resid = rows.data - fitted
    log_size, features = np.zeros(resid.shape[:2]), noise_features(rows, mixtures, fitted)
    if features is not None:
        log_size = (features @ mixtures.growth[:, :, None])[:, :, 0]
        resid = resid * np.exp(-log_size)[:, :, None]
    square, log_det = rows.squares(resid, mixtures.scatter)
    base, shares = log_det[:, None] + 2 * d * log_size, mixtures.row_shares()
    logs = np.full((3, *square.shape), -np.inf)
    logs[0] = normal(square, base, d)
    heavy = mixtures.noise(Good.HEAVY_TAILS)
    if heavy.any():
        logs[0, heavy] = student(square[heavy], base[heavy], mixtures.df[heavy, None], d)
    wide, sums = mixtures.has(Part.WIDE), rows.together.sums
    free = d * rows.together.sizes
    logs[0] = sums(logs[0])
    with np.errstate(divide="ignore"):
        logs[0] += np.log(np.maximum(1 - shares[0] - shares[1], 0.0))
        for part, has in enumerate(~mixtures.has(Part.NONE).T):
            if has.any():
                size = mixtures.size[has, part, None]
                away = resid[has] - mixtures.offsets(rows, part, has)
                around = rows.squares(away, mixtures.scatter[has])[0] / size
                grown = base[has] + d * np.log(size)
                log, cauchy = sums(normal(around, grown, d)), wide[has, part]
                # A wide group is one Cauchy variable.
                log[cauchy] = student(sums(around[cauchy]), sums(grown[cauchy]), 1.0, free)
                logs[1 + part, has] = np.log(shares[part, has]) + log
    top = logs.max(axis=0)
    parts = np.exp(logs - top)
    total = parts.sum(axis=0)
    return Seen(resid, log_size, features, square, parts / total, top + np.log(total))


def noise_features(rows: Rows, mixtures: Mixtures, fitted: Array) -> Array | None:
    """Return what the size of the noise changes with, shape (b, n, p); None where it does not.

    Fitted values in standard deviations, or distances of the columns of X.
    """
    growing, changing = (
        mixtures.noise(good) for good in (Good.GROWING_NOISE, Good.CHANGING_NOISE)
    )
    if not (growing | changing).any():
        return None
    found = changing[:, None, None] * rows.distances
    unit = mixtures.unit[growing]
    feature = (fitted[growing, :, 0] - unit[:, :1]) / unit[:, 1:]
    found[growing, :, 0] = np.clip(feature, -MOST_FEATURE, MOST_FEATURE)
    return found


def fitted_unit(fitted: Array, mass: Array) -> Array:
    """Return mean and standard deviation of fitted values (b, n) under a mass, shape (b, 2)."""
    total = mass.sum(axis=1)
    mean = np.einsum("bn,bn->b", mass, fitted) / total
    centered = fitted - mean[:, None]
    spread = np.sqrt(np.einsum("bn,bn,bn->b", mass, centered, centered) / total)
    varies = spread > 1e-9 * np.abs(fitted).max(axis=1)
    return np.column_stack([mean, np.where(varies, spread, np.inf)])


def em_step(rows: Rows, mixtures: Mixtures, eps_bar: float) -> Mixtures:
    """Return mixtures after one step of EM, with the log-likelihood before it."""
    view, d = seen(rows, mixtures), rows.freedom
    good, *bad = view.probabilities * rows.counts
    pull = good * mixtures.pulls(view.square, d)
    coef = rows.coefficients(pull, rows.data)
    fitted = rows.fitted(coef)
    resid = (rows.data - fitted) * np.exp(-view.log_size)[:, :, None]
    free = np.maximum(good.sum(axis=1) - rows.n_coef, 1e-9 if rows.dim == 1 else 1.0)
    scatter = np.swapaxes(resid * pull[:, :, None], 1, 2) @ resid / free[:, None, None]
    new = replace(
        mixtures,
        coef=coef,
        scatter=ridged(scatter),
        df=new_df(mixtures, view.square, good, d),
        share=bounded_shares(rows, mixtures.far, bad, eps_bar),
        good=view.probabilities[0],
        log_likelihood=view.log_density @ rows.together.decisions + mixtures.gain,
    )
    if view.features is not None:
        growth, unit = grown(mixtures, view, good, d), fitted_unit(fitted[:, :, 0], good)
        new = replace(new, growth=growth, unit=unit)
    return with_bad_rows(rows, new, resid, bad)


def new_df(mixtures: Mixtures, square: Array, mass: Array, dim: int) -> Array:
    """Return degrees of freedom after a step of Newton's method on their logarithm, shape (b,)."""
    heavy = mixtures.noise(Good.HEAVY_TAILS)
    if not heavy.any():
        return mixtures.df
    df = mixtures.df[heavy, None]

    def slope(at: Array) -> Array:
        return np.asarray((mass[heavy] * at * df_scores(square[heavy], at, dim)).sum(axis=1))

    here, width = slope(df), 0.01
    curve = (slope(df * np.exp(width)) - slope(df * np.exp(-width))) / (2 * width)
    step = np.where(curve < 0, -here / np.where(curve < 0, curve, -1.0), np.sign(here))
    found = mixtures.df.copy()
    found[heavy] = np.clip(df[:, 0] * np.exp(np.clip(step, -1.0, 1.0)), LEAST_DF, MOST_DF)
    return found


def df_scores(square: Array, df: Array | float, dim: int) -> Array:
    """Return the derivatives of Student's log-densities in the degrees of freedom, as `square`."""
    known = digamma((df + dim) / 2) - digamma(df / 2) - dim / df
    ratio = square / df
    return 0.5 * (known - np.log1p(ratio) + (df + dim) / df * ratio / (1 + ratio))


def bounded_shares(rows: Rows, far: np.ndarray, bad: list[Array], eps_bar: float) -> Array:
    """Return the shares of both parts of the bad rows, (b, 2, 2), at most eps_bar in all.

    `bad` has the number of observations of each row that belong to each part, (b, n) both.
    """
    places = np.stack([~far, far]).astype(float)
    sums = np.einsum("qbn,pbn->bpq", places, bad)
    total = np.maximum(places @ rows.counts, NO_MASS).T[:, None]
    most = eps_bar * rows.total / np.maximum(sums.sum(axis=(1, 2)), NO_MASS)
    return np.asarray(sums * np.minimum(most, 1.0)[:, None, None] / total)


def grown(mixtures: Mixtures, view: Seen, mass: Array, dim: int) -> Array:
    """Return the change of the log size of the noise after a step of Fisher's scoring."""
    assert view.features is not None
    across = np.swapaxes(view.features * mass[:, :, None], 1, 2)
    slope = across @ (view.square / dim - 1)[:, :, None]
    curve = 2 * across @ view.features + NO_MASS * np.eye(len(across[0]))
    step = np.linalg.solve(curve, slope)[:, :, 0]
    growth = mixtures.growth + np.clip(step, -GROWTH_STEP, GROWTH_STEP)
    return np.clip(growth, -MOST_GROWTH, MOST_GROWTH)


def with_bad_rows(rows: Rows, mixtures: Mixtures, resid: Array, bad: list[Array]) -> Mixtures:
    """Return mixtures whose bad rows are fitted, given residuals and the mass of both parts."""
    center, line, size = mixtures.center.copy(), mixtures.line.copy(), mixtures.size.copy()
    new = replace(mixtures, center=center, line=line, size=size)
    wide, cluster, lines = (mixtures.has(p) for p in (Part.WIDE, Part.CLUSTER, Part.LINE))
    sized = wide | cluster | mixtures.has(Part.SCATTERED)
    sums = np.zeros((2, len(mixtures), 2))
    for part, mass in enumerate(bad):
        total = mass.sum(axis=1)
        known = total > NO_MASS
        at = np.flatnonzero(known & cluster[:, part])
        center[at, part] = np.einsum("bn,bnd->bd", mass[at], resid[at]) / total[at, None]
        at = np.flatnonzero(known & lines[:, part])
        if len(at):
            line[at] = rows.coefficients(mass[at], resid[at], LINE_RIDGE)
        at = np.flatnonzero(known & sized[:, part])
        if len(at):
            away = resid[at] - new.offsets(rows, part, at)
            square = rows.squares(away, mixtures.scatter[at])[0]
            # Dividing by the pulls of Cauchy rows, which sum to the mass at the maximum, is the
            # faster EM in high dimensions (with expanded parameters).
            cauchy, apart = wide[at, part, None], rows.together.sums(square)
            free = np.where(cauchy, 1 + rows.freedom * rows.together.sizes, 1.0)
            pull = mass[at] * free / (1 + cauchy * apart / size[at, part, None])
            sums[:, at, part] = (pull * square).sum(axis=1), rows.freedom * pull.sum(axis=1)
    sums[:, cluster.all(axis=1)] = sums[:, cluster.all(axis=1)].sum(axis=2, keepdims=True)
    found = np.maximum(sums[0] / np.maximum(sums[1], np.finfo(float).tiny), 1.0)
    size[sums[1] > 0] = found[sums[1] > 0]
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
    rows: Rows, coef: Array, scatter: Array, kind: Kind, eps_bar: float, candidate: int
) -> Mixtures:
    """Return a mixture that starts from coefficients (k, d) and a scatter (d, d)."""
    d, k, parts = rows.dim, rows.n_coef, PARTS[kind.bad]
    resid = rows.data - rows.fitted(coef[None])[0]
    scatter = ridged(scatter[None])[0]
    square = rows.squares(resid[None], scatter[None])[0][0]
    has = np.array([p is not Part.NONE for p in parts])
    out = rows.together.sums(square) > chi2.isf(FAR, rows.freedom * rows.together.sizes)
    bad, count = float(rows.counts @ out) / rows.total, rows.counts[out]
    share = min(max(bad, 0.5 / rows.total), 0.9 * eps_bar) / max(has.sum(), 1)
    center, line, spread = np.zeros((2, d)), np.zeros((k, d)), 4.0
    if out.any():
        spread = max(float(median_of(square[out], count)) / rows.freedom, 2.0)
        middle = count @ resid[out] / max(float(count.sum()), NO_MASS)
        if kind.bad is Bad.TWO_CLUSTERS:
            center = both_sides(resid[out] - middle, count, scatter) + middle
        elif Part.CLUSTER in parts:
            center[1] = middle
        elif Part.LINE in parts:
            line = rows.coefficients((rows.counts * out)[None], resid, LINE_RIDGE)[0]
    around = [p in (Part.WIDE, Part.SCATTERED) for p in parts]
    middle, metric = rows.middle(1.0 - out)
    return Mixtures(
        kind=np.array([NUMBER[kind]]),
        candidate=np.array([candidate]),
        coef=coef[None],
        scatter=scatter[None],
        growth=np.zeros((1, rows.distances.shape[1])),
        unit=fitted_unit(rows.fitted(coef[None])[:, :, 0], rows.counts[None]),
        df=np.full(1, np.inf),
        share=(share * has)[None, :, None] * np.ones((1, 2, 2)),
        center=center[None],
        line=line[None],
        size=np.where(around, spread, 1.0)[None],
        middle=middle[None],
        metric=metric[None],
        far=(rows.far(middle, metric) & has.any() & (rows.groups is None))[None],
        gain=np.zeros(1),
        good=np.where(out & has.any(), 0.0, 1.0)[None],
        log_likelihood=np.full(1, -np.inf),
    )
