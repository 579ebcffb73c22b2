"""Rows with Gaussian noise in d dimensions, some of them bad: a batch of mixtures fitted by EM.

Rows are ``Y = X B + noise``: a regression has d = 1, a mean and covariance a constant X. Good rows
have Gaussian or Student noise with scatter S, whose size may change from row to row. Bad rows are
*wide*, Cauchy around the fit with scatter c S; or form a *cluster*, Gaussian around a shift m from
the fit with scatter v S, v >= 1; or *two clusters*, of one v; or are *scattered*, the same without
a shift; or follow *another line*, with coefficients of their own and the noise of the good rows.
Bad rows do not count in the fit of B and S. Rows may come in groups that are good or bad as a
whole: then it is the density of all rows of a group that tells, and a group that is wide is one
Cauchy variable.

The share of bad rows may differ for rows that lie far from the others in X: leverage points are
bad together or good together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
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


PLAIN = Kind(Good.PLAIN, Bad.NONE)
SHORT = Kind(Good.SHORT_TAILS, Bad.NONE)
HEAVY = Kind(Good.HEAVY_TAILS, Bad.NONE)
CONTAMINATED = tuple(
    Kind(Good.PLAIN, bad) for bad in (Bad.WIDE, Bad.CLUSTER, Bad.WIDE_AND_CLUSTER, Bad.SCATTERED)
)
OTHER_LINE = Kind(Good.PLAIN, Bad.OTHER_LINE)
TWO_CLUSTERS = Kind(Good.PLAIN, Bad.TWO_CLUSTERS)
KINDS = (
    *(PLAIN, SHORT, HEAVY, *CONTAMINATED, OTHER_LINE),
    *(
        Kind(good, bad)
        for good in (Good.GROWING_NOISE, Good.CHANGING_NOISE)
        for bad in (Bad.NONE, Bad.WIDE, Bad.CLUSTER, Bad.WIDE_AND_CLUSTER, Bad.SCATTERED)
    ),
    TWO_CLUSTERS,
    # Of groups: tails belong to the rows, and bad groups to none of them.
    *(Kind(Good.HEAVY_TAILS, kind.bad) for kind in (*CONTAMINATED, OTHER_LINE, TWO_CLUSTERS)),
)
NUMBER = {kind: number for number, kind in enumerate(KINDS)}
_HAS_WIDE = np.array([kind.bad in (Bad.WIDE, Bad.WIDE_AND_CLUSTER) for kind in KINDS])
_IS_SCATTERED = np.array([kind.bad is Bad.SCATTERED for kind in KINDS])
_HAS_TWO = np.array([kind.bad is Bad.TWO_CLUSTERS for kind in KINDS])
_HAS_CLUSTER = (
    _IS_SCATTERED
    | _HAS_TWO
    | np.array([kind.bad in (Bad.CLUSTER, Bad.WIDE_AND_CLUSTER) for kind in KINDS])
)
_HAS_LINE = np.array([kind.bad is Bad.OTHER_LINE for kind in KINDS])
_IS_HEAVY = np.array([kind.good is Good.HEAVY_TAILS for kind in KINDS])
_IS_GROWING = np.array([kind.good is Good.GROWING_NOISE for kind in KINDS])
_IS_CHANGING = np.array([kind.good is Good.CHANGING_NOISE for kind in KINDS])
# Parameters that go one way only from normal noise: those of tails, and share and size of bad rows
# around the others.
_N_ONE_SIDED = np.array(
    [
        (kind.good in (Good.HEAVY_TAILS, Good.SHORT_TAILS))
        + 2 * (kind.bad in (Bad.WIDE, Bad.WIDE_AND_CLUSTER, Bad.SCATTERED))
        for kind in KINDS
    ]
)


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
        coef = self.coefficients(self.counts[None], self.data)[0]
        resid = self.data - self.fitted(coef[None])[0]
        free = max(self.total - self.n_coef, 1e-9)
        return coef, (self.counts[:, None] * resid).T @ resid / free

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
    def together(self) -> Together:
        """Which rows are good or bad together."""
        return Together(self.counts, self.groups)

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
    wide, apart : ndarray, shape (b, 2)
        Shares of wide rows or those of a second cluster, and of those in a cluster or on another
        line: among rows near the others in X, and among those far from them.
    spread : ndarray, shape (b,)
        c of wide rows.
    shift : ndarray, shape (b, k, d)
        Coefficients of the other line less those of the fit.
    center : ndarray, shape (b, d)
        m of a cluster.
    second : ndarray, shape (b, d)
        m of a second cluster.
    size : ndarray, shape (b,)
        v of a cluster.
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
    wide: Array
    apart: Array
    spread: Array
    shift: Array
    center: Array
    second: Array
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

    def n_extra(self, rows: Rows) -> np.ndarray:
        """Return the parameters besides coefficients and S that are at no bound, shape (b,)."""
        kind, d = self.kind, rows.freedom
        bad = _HAS_WIDE[kind] | _HAS_CLUSTER[kind] | _HAS_LINE[kind]
        found = (_IS_HEAVY | _IS_GROWING)[kind] + (kind == NUMBER[SHORT])
        found = found + _IS_CHANGING[kind] * rows.distances.shape[1]
        shift = d * (_HAS_CLUSTER & ~_IS_SCATTERED)[kind]
        found = found + 2 * _HAS_WIDE[kind] + (1 + (self.size > 1)) * _HAS_CLUSTER[kind] + shift
        found = found + _HAS_LINE[kind] + (1 + d) * _HAS_TWO[kind]
        return np.asarray(found + (bad & self.far.any(axis=1)))


class Seen(NamedTuple):
    """How a batch of mixtures sees the rows.

    Attributes
    ----------
    resid : ndarray, shape (b, n, d)
        Residuals in units of the size of the noise of each row.
    log_size : ndarray, shape (b, n)
        Logarithm of that size.
    feature : ndarray, shape (b, n)
        Fitted values in standard deviations.
    square : ndarray, shape (b, n)
        Squared distances from the fit.
    logs : ndarray, shape (3, b, n)
        Log-densities of good rows, of wide ones or a second cluster, and of other bad rows; not
        those of kinds that no one has.
    """

    resid: Array
    log_size: Array
    feature: Array | None
    square: Array
    logs: list[Array | None]


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
    kind, view, d = mixtures.kind, seen(rows, mixtures), rows.freedom
    (good, wide, apart), _ = probabilities(rows, mixtures, view)
    if _IS_HEAVY[kind].any():
        df = mixtures.df[:, None]
        with np.errstate(invalid="ignore"):
            good = good * np.where(np.isinf(df), 1.0, (df + d) / (df + d + 2))
    line, mass = _HAS_LINE[kind], rows.counts * np.exp(-2 * view.log_size)
    two = _HAS_TWO[kind][:, None]
    around = np.where(two, apart + wide, apart * ~line[:, None]) / mixtures.size[:, None]
    free = d * rows.together.sizes
    around += np.where(two, 0.0, wide * (1 + free) / (3 + free) / mixtures.spread[:, None])
    found = rows.coefficient_costs(mass * (good + around), mixtures.scatter)
    if line.any():
        found[line] += rows.coefficient_costs((mass * apart)[line], mixtures.scatter[line])
    found += np.log(rows.total) * mixtures.n_extra(rows) - 2 * np.log(2) * _N_ONE_SIDED[kind]
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


def wide_logs(rows: Rows, square: Array, base: Array, spread: Array | float) -> Array:
    """Return log-densities of wide rows, each its part of its group's, shape (..., n).

    Parameters
    ----------
    rows : Rows
    square : ndarray, shape (..., n)
        Squared distances from the fit.
    base : ndarray, shape (..., n)
        ln det of the scatter of each row.
    spread : ndarray or float
        c, by which it is larger than that of good rows.
    """
    square, base = rows.together.sums(square), rows.together.sums(base)
    return (
        student(square / spread, base, 1.0, rows.freedom * rows.together.sizes)
        / rows.together.sizes
    )


def seen(rows: Rows, mixtures: Mixtures) -> Seen:
    """Return residuals and log-densities of the rows under a batch of mixtures."""
    kind, d = mixtures.kind, rows.freedom
    fitted = rows.fitted(mixtures.coef)
    resid = rows.data - fitted
    log_size, feature = np.zeros(resid.shape[:2]), None
    growing, changing = _IS_GROWING[kind], _IS_CHANGING[kind]
    if growing.any() or changing.any():
        feature = (fitted[:, :, 0] - mixtures.unit[:, :1]) / mixtures.unit[:, 1:]
        feature = np.clip(feature, -MOST_FEATURE, MOST_FEATURE)
        log_size = np.where(growing[:, None], mixtures.growth[:, :1] * feature, 0.0)
        if changing.any():
            log_size[changing] = mixtures.growth[changing] @ rows.distances.T
        resid = resid * np.exp(-log_size)[:, :, None]
    square, log_det = rows.squares(resid, mixtures.scatter)
    base = log_det[:, None] + 2 * d * log_size
    good = -0.5 * (square + base + d * LOG_2PI)
    heavy = _IS_HEAVY[kind]
    if heavy.any():
        good[heavy] = student(square[heavy], base[heavy], mixtures.df[heavy, None], d)
    logs: list[Array | None] = [good, None, None]
    if _HAS_WIDE[kind].any():
        log_spread = np.log(mixtures.spread)[:, None]
        logs[1] = wide_logs(rows, square, base + d * log_spread, np.exp(log_spread))
    if (_HAS_CLUSTER | _HAS_LINE)[kind].any():
        size = mixtures.size[:, None]
        around = rows.squares(resid - centers(rows, mixtures), mixtures.scatter)[0]
        logs[2] = -0.5 * (around / size + base + d * (np.log(size) + LOG_2PI))
        two = _HAS_TWO[kind]
        if two.any():
            away = resid[two] - mixtures.second[two, None, :]
            around = rows.squares(away, mixtures.scatter[two])[0]
            first = np.zeros_like(square) if logs[1] is None else logs[1]
            first[two] = -0.5 * (
                around / size[two] + base[two] + d * (np.log(size[two]) + LOG_2PI)
            )
            logs[1] = first
    return Seen(resid, log_size, feature, square, logs)


def fitted_unit(fitted: Array, mass: Array) -> Array:
    """Return mean and standard deviation of fitted values (b, n) under a mass, shape (b, 2)."""
    total = mass.sum(axis=1)
    mean = np.einsum("bn,bn->b", mass, fitted) / total
    centered = fitted - mean[:, None]
    spread = np.sqrt(np.einsum("bn,bn,bn->b", mass, centered, centered) / total)
    varies = spread > 1e-9 * np.abs(fitted).max(axis=1)
    return np.column_stack([mean, np.where(varies, spread, np.inf)])


def centers(rows: Rows, mixtures: Mixtures) -> Array:
    """Return where the bad rows apart are expected, less the fit, shape (b, n, d)."""
    line = _HAS_LINE[mixtures.kind]
    found = np.repeat(mixtures.center[:, None, :], len(rows.data), axis=1)
    if line.any():
        found[line] = rows.fitted(mixtures.shift[line])
    return found


def row_shares(shares: Array, far: np.ndarray) -> Array:
    """Return the share of bad rows at each row, shape (b, n), from those of both places."""
    return np.where(far, shares[:, 1:], shares[:, :1])


def probabilities(rows: Rows, mixtures: Mixtures, view: Seen) -> tuple[list[Array], Array]:
    """Return the probabilities of the rows to be good, wide and apart, and log-densities.

    Those of their groups, where rows come in groups.
    """
    wide, apart = (row_shares(shares, mixtures.far) for shares in (mixtures.wide, mixtures.apart))
    with np.errstate(divide="ignore"):
        priors = np.log(np.maximum(1 - wide - apart, 0)), np.log(wide), np.log(apart)
        logs = [
            p + rows.together.sums(q)
            for p, q in zip(priors, view.logs, strict=True)
            if q is not None
        ]
    top = np.maximum.reduce(logs)
    parts = [np.exp(each - top) for each in logs]
    total = sum(parts[1:], parts[0])
    found = iter(part / total for part in parts)
    none = np.zeros_like(top)
    return [none if q is None else next(found) for q in view.logs], top + np.log(total)


def em_step(rows: Rows, mixtures: Mixtures, eps_bar: float) -> Mixtures:
    """Return mixtures after one step of EM, with the log-likelihood before it."""
    view = seen(rows, mixtures)
    (good, wide, apart), log_density = probabilities(rows, mixtures, view)
    kind, d, counts = mixtures.kind, rows.freedom, rows.counts
    shares = bounded_shares(rows, mixtures.far, wide, apart, eps_bar)
    mass = good * counts
    pull = mass
    if _IS_HEAVY[kind].any():
        df = mixtures.df[:, None]
        with np.errstate(invalid="ignore"):
            pull = mass * np.where(np.isinf(df), 1.0, (df + d) / (df + view.square))
    scaled = view.feature is not None
    coef = rows.coefficients(pull, rows.data)
    resid = rows.data - rows.fitted(coef)
    if scaled:
        resid = resid * np.exp(-view.log_size)[:, :, None]
    free = np.maximum(mass.sum(axis=1) - rows.n_coef, 1e-9 if rows.dim == 1 else 1.0)
    scatter = np.swapaxes(resid * pull[:, :, None], 1, 2) @ resid / free[:, None, None]
    scatter = ridged(scatter)
    new = replace(
        mixtures,
        df=new_df(mixtures, view.square, mass, d),
        coef=coef,
        scatter=scatter,
        wide=shares[0],
        apart=shares[1],
        good=good,
        log_likelihood=log_density @ rows.together.decisions + mixtures.gain,
        growth=grown(rows, mixtures, view, mass) if scaled else mixtures.growth,
        unit=fitted_unit(rows.fitted(coef)[:, :, 0], mass) if scaled else mixtures.unit,
    )  # fmt: skip
    return with_bad_rows(rows, new, resid, wide * counts, apart * counts)


def new_df(mixtures: Mixtures, square: Array, mass: Array, dim: int) -> Array:
    """Return degrees of freedom after a step of Newton's method on their logarithm, shape (b,)."""
    heavy = _IS_HEAVY[mixtures.kind]
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


def bounded_shares(
    rows: Rows, far: np.ndarray, wide: Array, apart: Array, eps_bar: float
) -> tuple[Array, Array]:
    """Return the shares of wide rows and of others, (b, 2) each, at most eps_bar in all."""
    places = np.stack([~far, far]) * rows.counts
    total = np.maximum(places.sum(axis=2), NO_MASS)
    sums = [np.einsum("pbn,bn->pb", places, prob) for prob in (wide, apart)]
    most = eps_bar * rows.total / np.maximum((sums[0] + sums[1]).sum(axis=0), NO_MASS)
    low = np.minimum(most, 1.0)
    return (sums[0] * low / total).T, (sums[1] * low / total).T


def grown(rows: Rows, mixtures: Mixtures, view: Seen, mass: Array) -> Array:
    """Return the change of the log size of the noise after a step of Fisher's scoring."""
    kind, growth = mixtures.kind, mixtures.growth.copy()
    excess = mass * (view.square / rows.dim - 1)
    growing, changing = _IS_GROWING[kind], _IS_CHANGING[kind]
    if growing.any():
        assert view.feature is not None
        feature = view.feature[growing]
        slope = (excess[growing] * feature).sum(axis=1)
        curve = 2 * (mass[growing] * feature**2).sum(axis=1)
        growth[growing, 0] += np.clip(
            slope / np.maximum(curve, NO_MASS), -GROWTH_STEP, GROWTH_STEP
        )
    if changing.any():
        features = rows.distances
        slope = excess[changing] @ features
        curve = 2 * np.einsum("bn,ni,nj->bij", mass[changing], features, features)
        step = np.linalg.solve(curve + NO_MASS * np.eye(features.shape[1]), slope[:, :, None])
        growth[changing] += np.clip(step[:, :, 0], -GROWTH_STEP, GROWTH_STEP)
    return np.clip(growth, -MOST_GROWTH, MOST_GROWTH)


def with_bad_rows(
    rows: Rows, mixtures: Mixtures, resid: Array, wide: Array, apart: Array
) -> Mixtures:
    """Return mixtures whose bad rows are fitted, given residuals and the mass of bad rows."""
    kind, d = mixtures.kind, rows.freedom
    if _HAS_WIDE[kind].any():
        square = rows.squares(resid, mixtures.scatter)[0]
        total = wide.sum(axis=1)
        far = rows.together.sums(square) / mixtures.spread[:, None]
        pull = wide * (1 + d * rows.together.sizes) / (1 + far)
        # At the maximum the pulls sum to the mass; dividing by them is the faster EM in high
        # dimensions (with expanded parameters).
        found = np.einsum("bn,bn->b", pull, square) / np.maximum(d * pull.sum(axis=1), NO_MASS)
        spread = np.where(total > NO_MASS, np.maximum(found, 1.0), mixtures.spread)
        mixtures = replace(mixtures, spread=spread)
    cluster, line = _HAS_CLUSTER[kind], _HAS_LINE[kind]
    if not (cluster | line).any():
        return mixtures
    total = apart.sum(axis=1)
    known = np.maximum(total, NO_MASS)
    center = np.einsum("bn,bnd->bd", apart, resid) / known[:, None]
    shifted = cluster & ~_IS_SCATTERED[kind] & (total > NO_MASS)
    center = np.where(shifted[:, None], center, mixtures.center)
    shift = mixtures.shift.copy()
    fitted = np.flatnonzero(line & (total > NO_MASS))
    if len(fitted):
        shift[fitted] = rows.coefficients(apart[fitted], resid[fitted], LINE_RIDGE)
    mixtures = replace(mixtures, center=center, shift=shift)
    around = rows.squares(resid - centers(rows, mixtures), mixtures.scatter)[0]
    around = np.einsum("bn,bn->b", apart, around)
    two = _HAS_TWO[kind]
    if two.any():
        second, there = mixtures.second.copy(), wide[two].sum(axis=1)
        second[two] = np.einsum("bn,bnd->bd", wide[two], resid[two])
        second[two] /= np.maximum(there, NO_MASS)[:, None]
        mixtures = replace(mixtures, second=second)
        square = rows.squares(resid[two] - second[two, None, :], mixtures.scatter[two])[0]
        around[two] += np.einsum("bn,bn->b", wide[two], square)
        known[two] += there
    size = around / (d * known)
    own = cluster & (total > NO_MASS)
    return replace(mixtures, size=np.where(own, np.maximum(size, 1.0), mixtures.size))


def both_sides(resid: Array, counts: Array, scatter: Array) -> Array:
    """Return the means (2, d) of centered rows (n, d) on both sides of their first axis.

    That of their second moment in the frame of a scatter (d, d).
    """
    inverse = np.linalg.inv(np.linalg.cholesky(scatter))
    white = resid @ inverse.T
    axis = np.linalg.eigh((counts[:, None] * white).T @ white)[1][:, -1]
    side = white @ axis > 0
    parts = [counts * each for each in (side, ~side)]
    return np.array([part @ resid / max(float(part.sum()), NO_MASS) for part in parts])


def started(
    rows: Rows, coef: Array, scatter: Array, kind: Kind, eps_bar: float, candidate: int
) -> Mixtures:
    """Return a mixture that starts from coefficients (k, d) and a scatter (d, d)."""
    d, k = rows.dim, rows.n_coef
    resid = rows.data - rows.fitted(coef[None])[0]
    scatter = ridged(scatter[None])[0]
    square = rows.squares(resid[None], scatter[None])[0][0]
    out = rows.together.sums(square) > chi2.isf(FAR, rows.freedom * rows.together.sizes)
    bad = float(rows.counts @ out) / rows.total
    number, count = NUMBER[kind], rows.counts[out]
    share = min(max(bad, 0.5 / rows.total), 0.9 * eps_bar)
    first_two = bool(_HAS_WIDE[number] or _HAS_TWO[number])
    share = share / max(int(first_two) + int(_HAS_CLUSTER[number]), 1)
    center, second, shift, spread = np.zeros(d), np.zeros(d), np.zeros((k, d)), 4.0
    if out.any():
        if not _IS_SCATTERED[number]:
            center = second = count @ resid[out] / max(float(count.sum()), NO_MASS)
        spread = max(float(median_of(square[out], count)) / rows.freedom, 2.0)
        if _HAS_TWO[number]:
            center, second = both_sides(resid[out] - center, count, scatter) + center
        if _HAS_LINE[number]:
            shift = rows.coefficients((rows.counts * out)[None], resid, LINE_RIDGE)[0]
    middle, metric = rows.middle(1.0 - out)
    has_apart = _HAS_CLUSTER[number] or _HAS_LINE[number]
    contaminated = _HAS_WIDE[number] or has_apart
    return Mixtures(
        kind=np.array([number]),
        candidate=np.array([candidate]),
        coef=coef[None],
        scatter=scatter[None],
        growth=np.zeros((1, max(rows.distances.shape[1], 1))),
        unit=fitted_unit(rows.fitted(coef[None])[:, :, 0], rows.counts[None]),
        df=np.full(1, np.inf),
        wide=np.full((1, 2), share * first_two),
        apart=np.full((1, 2), share * has_apart),
        spread=np.full(1, spread),
        shift=shift[None],
        center=center[None],
        second=second[None],
        size=np.full(1, spread if _IS_SCATTERED[number] else 1.0),
        middle=middle[None],
        metric=metric[None],
        far=(rows.far(middle, metric) & contaminated & (rows.groups is None))[None],
        gain=np.zeros(1),
        good=np.where(out & contaminated, 0.0, 1.0)[None],
        log_likelihood=np.full(1, -np.inf),
    )
