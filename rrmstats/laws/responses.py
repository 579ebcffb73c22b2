"""What good and bad responses look like: counts, positive responses, any likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, chdtri, digamma, gammaln

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Good
from rrmstats.core.tolerances import TINY
from rrmstats.laws.explain import Fit
from rrmstats.laws.families import (
    Binomial,
    Counts,
    Family,
    MeanFunction,
    NegativeBinomial,
    log_negative_binomial,
    of_counts,
    shape_slope,
)
from rrmstats.laws.mixture import (
    LEAST_SHARE,
    NO_BAD_ROWS,
    BadLaw,
    BadRows,
    Bounds,
    GoodLaw,
    GoodRows,
    Laws,
    Mixture,
    Share,
)
from rrmstats.laws.rows import PredictorRows, Responses, design_gram, design_rows

# Overdispersion, as a correlation or as what alpha adds to the variance, that counts as none.
# Convention: a dispersion that no sample shows.
LEAST_DISPERSION = 1e-4
#: Largest alpha of bad counts around one mean. Derived: beyond 1 the mode of a negative binomial
#: distribution is zero, and there is no cluster.
MOST_ALPHA = 1.0
#: Least median s of wide counts. Derived: zeros have probability 1 / (1 + s), half at most.
LEAST_MEDIAN = 1.0
# Bounds of the shapes of wide shares.
# Derived: of beta distributions, from two points at the ends to nearly normal ones.
SHAPES = (1e-2, 1e1)
# Squared distances from which rows are far when a fit starts: mean and four standard deviations
# of those of good rows.
FAR = 1.0 + 4.0 * 2.0**0.5
# Least dispersion around another line, relative to that of all responses around their mean: one
# per cent of their standard deviation, which rounded responses have.
# Convention: one per cent of a standard deviation.
LEAST_OTHER = 1e-4


@dataclass(frozen=True, eq=False)
class PlainCounts(GoodLaw):
    """Responses of an exponential family, whose variance is what the mean says.

    They are as many counts as their size says: centers and spreads are those of counts.
    """

    family: Family
    mean: MeanFunction

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n)."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        variance, size = self.family.variance(mu), seen.size
        per_unit = size * slope / variance
        return GoodRows(
            self.family.log_density(seen.endog, mu, size),
            ((seen.endog - mu) * per_unit)[None],
            (slope * per_unit)[None, None],
            size * mu,
            np.sqrt(size * variance),
        )


@dataclass(frozen=True, eq=False)
class OverdispersedCounts(GoodLaw):
    """Negative binomial counts of variance ``m + (alpha + given) m^2 / size``.

    Attributes
    ----------
    mean : MeanFunction
    given : float
        The alpha that the family has.
    """

    mean: MeanFunction
    given: float = 0.0
    kind = Good.OVERDISPERSED
    bounds = (np.array([LEAST_DISPERSION]), np.array([np.inf]))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return the alpha of the middle of the squared residuals, and a small one at least."""
        m = seen.size * self.mean.mean_and_slope(predictors[0])[0]
        alpha = np.median(((seen.counts - m) ** 2 - m) / np.maximum(m, 1.0) ** 2)
        return np.array([float(np.clip(alpha, 0.05, 5.0))])

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and the added alpha."""
        alpha = own[0] + self.given
        found = PlainCounts(NegativeBinomial(alpha), self.mean).rows(seen, predictors, own)
        shape = seen.size / alpha
        by_shape = shape_slope(seen.counts, found.center, shape)
        return found._replace(own=(-by_shape * shape / alpha)[None])


@dataclass(frozen=True, eq=False)
class OverdispersedShares(GoodLaw):
    """Beta-binomial counts; the parameter is the correlation of two trials of a row."""

    mean: MeanFunction
    kind = Good.OVERDISPERSED
    bounds = (np.array([LEAST_DISPERSION]), np.array([0.99]))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return a small correlation."""
        return np.array([0.05])

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and a correlation."""
        p, slope = self.mean.mean_and_slope(predictors[0])
        trials, rho = seen.trials, own[0]
        shapes = np.stack([p, 1.0 - p]) * (1.0 - rho) / rho
        up, down = shape_slopes(seen, shapes)
        variance = p * (1.0 - p) * trials * (1.0 + (trials - 1.0) * rho)
        return GoodRows(
            log_beta_binomial(seen, shapes),
            (slope * (1.0 - rho) / rho * (up - down))[None],
            ((slope * trials) ** 2 / variance)[None, None],
            trials * p,
            np.sqrt(variance),
            (-(p * up + (1.0 - p) * down) / rho**2)[None],
        )


@dataclass(frozen=True, eq=False)
class WideCounts(BadLaw):
    """Counts without predictors and without moments: discrete Lomax, ``s / ((y + s)(y + s + 1))``.

    The parameter s is their median.
    """

    bounds = (np.array([LEAST_MEDIAN]), np.array([np.inf]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the counts of rows that are far."""
        return np.array([_far_median(seen, rows, 1.0)])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return of_counts(lambda y: log_lomax(y, own[0]), seen.counts)

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in the median."""
        at = seen.counts + own[0]
        return (1.0 / own[0] - 1.0 / at - 1.0 / (at + 1.0))[None]


def _far_median(seen: Responses, rows: GoodRows, otherwise: float) -> float:
    """Return the median of counts that are far, or a multiple of the mean where none is."""
    far = seen.counts[np.abs(seen.counts - rows.center) > 3.0 * rows.spread]
    middle = float(np.median(far)) if len(far) else otherwise * float(np.mean(rows.center))
    return max(middle, LEAST_MEDIAN)


def log_lomax(count: Array, scale: Array | float) -> Array:
    """Return the log-probabilities of counts whose distribution function is y / (y + scale).

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.responses import log_lomax
    >>> float(np.exp(log_lomax(np.arange(3.0), 3.0)).sum().round(6))
    0.5
    """
    return np.log(scale) - np.log(count + scale) - np.log(count + scale + 1.0)


class EitherLabel(BadLaw):
    """Labels 0 and 1, one as likely as the other."""

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.full(len(seen.endog), -np.log(2.0))


class OftenFlipped(BadLaw):
    """Labels of a bad group: each is flipped with a probability f, the parameter.

    At f = 1/2 they do not depend on the predictors, at f = 1 all are the opposite.
    """

    bounds = (np.array([LEAST_DISPERSION]), np.array([1.0]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return a large share of flipped labels."""
        return np.array([0.9])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        label = np.exp(rows.log_density)
        return np.log(np.maximum((1.0 - own[0]) * label + own[0] * (1.0 - label), TINY))

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the derivatives of the log-probabilities in f."""
        label = np.exp(rows.log_density)
        return ((1.0 - 2.0 * label) / np.exp(self.log_density(seen, rows, own)))[None]


@dataclass(frozen=True, eq=False)
class AnyShare(BadLaw):
    """Counts of successes without predictors: beta-binomial, with its beta shapes."""

    bounds = (np.full(2, SHAPES[0]), np.full(2, SHAPES[1]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the shapes at which any number of successes is as likely as any other."""
        return np.ones(2)

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return log_beta_binomial(seen, own)

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in the shapes."""
        return shape_slopes(seen, own)


def _results(seen: Responses) -> Array:
    """Return the numbers of successes and of failures, shape (2, n)."""
    successes = np.clip(seen.counts, 0.0, seen.trials)
    return np.stack([successes, seen.trials - successes])


def log_beta_binomial(seen: Responses, shapes: Array) -> Array:
    """Return the log-probabilities of successes, at the shapes (2, ...) of a beta distribution."""
    y, rest = _results(seen)
    choices = gammaln(seen.trials + 1.0) - gammaln(y + 1.0) - gammaln(rest + 1.0)
    return choices + betaln(y + shapes[0], rest + shapes[1]) - betaln(*shapes)


def shape_slopes(seen: Responses, shapes: Array) -> Array:
    """Return their derivatives in the shapes, shape (2, n)."""
    total = shapes.sum(axis=0)
    both = digamma(total) - digamma(seen.trials + total)
    return np.stack(
        [
            digamma(result + shape) - digamma(shape) + both
            for result, shape in zip(_results(seen), shapes, strict=True)
        ]
    )


@dataclass(frozen=True, eq=False)
class CountCluster(BadLaw):
    """Counts without predictors around one mean: negative binomial, with its mean and alpha."""

    bounds = (
        np.array([LEAST_MEDIAN, LEAST_DISPERSION]),
        np.array([np.inf, MOST_ALPHA]),
    )

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the counts of rows that are far."""
        return np.array([_far_median(seen, rows, 2.0), 0.1])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return of_counts(lambda y: log_negative_binomial(y, own[0], 1.0 / own[1]), seen.counts)

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in mean and alpha."""
        mean, shape = own[0], 1.0 / own[1]
        by_mean = (seen.counts - mean) / (mean * (1.0 + mean * own[1]))
        by_shape = of_counts(lambda y: shape_slope(y, mean, shape), seen.counts)
        return np.stack([by_mean, -by_shape * shape**2])


class FalseZeros(BadLaw):
    """Zeros whatever the predictors are."""

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.where(seen.endog == 0, 0.0, -np.inf)


@dataclass(frozen=True, eq=False)
class Dispersed(PlainCounts):
    """Responses of an exponential family; the parameter is the dispersion.

    Its equation is that of Pearson's estimate with the degrees of freedom of a fit.

    Attributes
    ----------
    family : Family
    mean : MeanFunction
    n_params : int
        Parameters of the mean.
    total : float
        Number of observations.
    """

    n_params: int
    total: float
    bounds = (np.array([np.finfo(float).tiny]), np.array([np.inf]))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return the dispersion of the middle of the squared residuals."""
        mu = self.mean.mean_and_slope(predictors[0])[0]
        squares = seen.size * (seen.endog - mu) ** 2 / self.family.variance(mu)
        found = float(np.median(squares)) / float(chdtri(1.0, 0.5))
        return np.array([found if found > 0 else max(float(np.mean(squares)), 1e-300)])

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and a dispersion."""
        size = seen.size / own[0]
        found = super().rows(seen._replace(size=size), predictors, own)
        mu, spread = found.center / size, found.spread / size
        squares = ((seen.endog - mu) / spread) ** 2
        return found._replace(
            center=mu,
            spread=spread / mu if self.family.positive else spread,
            own=0.5 * (squares - 1.0)[None] / own[:1],
            rest=0.5 * (self.n_params / self.total) / own,
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return Pearson's dispersion, with the degrees of freedom of a fit."""
        squares = np.where(mass > 0, 1.0 + 2.0 * own[0] * rows.own[0], 0.0)
        free = float(mass.sum()) - self.n_params
        found = float(mass @ squares) / free if free > 0 else 0.0
        return own * found if found > 0 else own


@dataclass(frozen=True, eq=False)
class _Around(BadLaw):
    """Bad rows around the fit, on a log scale where responses are positive.

    Attributes
    ----------
    log_scale : bool
    """

    log_scale: bool

    def distances(self, endog: Array, rows: GoodRows) -> tuple[Array, Array]:
        """Return distances in units of the spread, and the logarithms of their slopes, (n,)."""
        if not self.log_scale:
            return (endog - rows.center) / rows.spread, -np.log(rows.spread)
        some = np.where(endog > 0, endog, 1.0)
        off = (np.log(some) - np.log(rows.center)) / rows.spread
        return off, -np.log(rows.spread * some)


@dataclass(frozen=True, eq=False)
class WideAround(_Around):
    """Bad rows with a Cauchy distribution around the fit; the parameter is its squared scale.

    Attributes
    ----------
    zeros : bool
        Whether responses may be zero; the second parameter is the share of zeros among them.
    """

    zeros: bool = False

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the squared distances of rows that are far."""
        squares = self.distances(seen.endog, rows)[0] ** 2
        far = (squares > FAR) & ~(self.zeros & (seen.endog == 0))
        found = max(float(np.median(squares[far])), 2.0) if far.any() else 4.0
        return np.array([found, 0.5])[: 1 + self.zeros]

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        off, log_slope = self.distances(seen.endog, rows)
        found = log_slope - np.log(np.pi) - 0.5 * np.log(own[0]) - np.log1p(off**2 / own[0])
        if not self.zeros:
            return found
        return np.where(seen.endog == 0, np.log(own[1]), found + np.log1p(-own[1]))

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in the scale, and in the share of zeros."""
        squares = self.distances(seen.endog, rows)[0] ** 2
        scale = (squares / (own[0] + squares) - 0.5) / own[0]
        if not self.zeros:
            return scale[None]
        zero, share = seen.endog == 0, own[1]
        return np.stack([np.where(zero, 0.0, scale), (zero - share) / (share * (1.0 - share))])

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]  # a value in others
        """Least and largest scale, and share of zeros."""
        least, most = np.array([1.0, LEAST_SHARE]), np.array([np.inf, 1.0 - LEAST_SHARE])
        return least[: 1 + self.zeros], most[: 1 + self.zeros]


@dataclass(frozen=True, eq=False)
class Cluster(_Around):
    """Bad rows in a cluster: normal with a mean and a variance, at least that of good rows."""

    bounds = (np.array([-np.inf, 1.0]), np.array([np.inf, np.inf]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the distances of rows that are far, above and below, (2, 2)."""
        off = self.distances(seen.endog, rows)[0][seen.endog != 0]
        sides = [sign * off[(sign * off > 0) & (off**2 > FAR)] for sign in (1.0, -1.0)]
        above, below = (float(np.median(far)) if len(far) else 3.0 for far in sides)
        return np.array([[above, 1.0], [-below, 1.0]])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows; zeros are in no cluster of a log scale."""
        off, log_slope = self.distances(seen.endog, rows)
        found = log_slope - 0.5 * (np.log(2.0 * np.pi * own[1]) + (off - own[0]) ** 2 / own[1])
        return np.where(seen.endog > 0, found, -np.inf) if self.log_scale else found

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in mean and variance."""
        off = (self.distances(seen.endog, rows)[0] - own[0]) / own[1]
        return np.stack([off, 0.5 * (off**2 - 1.0 / own[1])])


@dataclass(frozen=True, eq=False)
class KernelRows(GoodLaw):
    """Rows whose log-density is a function of the response and a few predictors.

    Attributes
    ----------
    log_density, slopes : callable
        Functions of responses and predictors; the second returns derivatives, shape (q, n).
    moments : callable or None
        Function of the predictors that returns means and variances.
    """

    log_density: Callable[..., Array]
    slopes: Callable[..., Array]
    moments: Callable[..., tuple[Array, Array]] | None = None

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (q, n)."""
        endog = seen.endog
        center, variance = np.ones((2, len(endog)))
        if self.moments is not None:
            center, variance = np.broadcast_arrays(*self.moments(*predictors))
        return _defined(
            self.log_density(endog, *predictors),
            np.asarray(self.slopes(endog, *predictors)),
            information(self.slopes, endog, predictors),
            center,
            np.sqrt(variance),
        )


def _defined(
    log_density: Array, slopes: Array, information: Array, center: Array, spread: Array
) -> GoodRows:
    """Return good rows, impossible where they are not defined."""
    slopes, information = (np.where(np.isfinite(v), v, 0.0) for v in (slopes, information))
    found = np.where(np.isnan(log_density), -np.inf, log_density)
    return GoodRows(found, slopes, information, center, spread)


def information(slopes: Callable[..., Array], endog: Array, predictors: Array) -> Array:
    """Return minus the second derivatives of log-densities in predictors (q, n), (q, q, n).

    Parameters
    ----------
    slopes : callable
        Function of responses and predictors that returns the first derivatives, shape (q, n).
    endog : ndarray, shape (n,)
    predictors : ndarray, shape (q, n)
    """
    found = []
    for j, one in enumerate(predictors):
        step = np.zeros_like(predictors)
        step[j] = np.finfo(float).eps ** (1 / 3) * np.maximum(np.abs(one), 1e-2)
        low, high = (np.asarray(slopes(endog, *predictors + sign * step)) for sign in (-1, 1))
        found.append((low - high) / (2.0 * step[j]))
    both = np.array(found)
    return np.asarray(0.5 * (both + both.swapaxes(0, 1)))


@dataclass(frozen=True, eq=False)
class WholeRows(GoodLaw):
    """Rows whose log-likelihoods only the whole of a model tells, as functions of theta.

    The predictors are the parameters, the same for all rows.

    Attributes
    ----------
    log_likelihood, slopes : callable
        Functions of theta (k,) that return (n,) and (n, k).
    """

    log_likelihood: Callable[[Array], Array]
    slopes: Callable[[Array], Array]

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (k, n), the parameters, the same for all rows."""
        theta, ones = predictors[:, 0].copy(), np.ones(len(seen.endog))
        slopes = self.slopes(theta).T
        outer = slopes[:, None] * slopes[None]
        return _defined(self.log_likelihood(theta), slopes, outer, ones, ones)


@dataclass(frozen=True, eq=False)
class Unpredicted(BadLaw):
    """Responses without predictors: Cauchy on the line, on a log scale or on one of odds.

    The parameters are its center and its scale, at least that of all responses.

    Attributes
    ----------
    support : {"line", "positive", "unit"}
    center, scale : float
        Those of all responses.
    """

    support: str
    center: float
    scale: float

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the center and scale of all responses."""
        return np.array([self.center, self.scale])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        at, log_slope = _on_line(seen.endog, self.support)
        return log_slope - np.log(np.pi) - np.log(own[1]) - np.log1p(((at - own[0]) / own[1]) ** 2)

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in center and scale."""
        off = (_on_line(seen.endog, self.support)[0] - own[0]) / own[1]
        weight = 2.0 / (1.0 + off**2)
        return np.stack([weight * off, weight * off**2 - 1.0]) / own[1]

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]  # a value in others
        """Least and largest center and scale."""
        return np.array([-np.inf, self.scale]), np.array([np.inf, np.inf])


def unpredicted(endog: Array, mass: Array) -> Unpredicted:
    """Return the distribution of responses without predictors.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.responses import unpredicted
    >>> y = np.tan(np.pi * (np.arange(1, 200) / 200 - 0.5))
    >>> law = unpredicted(5 + 2 * y, np.ones(199))
    >>> law.support, round(law.center, 2), round(law.scale, 1)
    ('line', 5.0, 2.0)
    """
    inside, positive = ((endog > 0) & (endog < 1)).all(), (endog > 0).all()
    support = "unit" if inside else "positive" if positive else "line"
    at = _on_line(endog, support)[0]
    center = float(np.median(at))
    scale = float(np.median(np.abs(at - center))) or float(np.std(at)) or 1.0
    for _ in range(50):  # each step of EM halves the distance or more
        weights = mass / (1.0 + ((at - center) / scale) ** 2)
        center = float(weights @ at / weights.sum())
        squares = (at - center) ** 2
        scale *= float(np.sqrt(2.0 * (mass @ (squares / (scale**2 + squares))) / mass.sum()))
    return Unpredicted(support, center, scale)


def _on_line(endog: Array, support: str) -> tuple[Array, Array]:
    """Return responses on a scale without ends, and the logarithms of its slopes."""
    if support == "line":
        return endog, np.zeros(len(endog))
    if support == "positive":
        return np.log(endog), -np.log(endog)
    return np.log(endog) - np.log1p(-endog), -np.log(endog) - np.log1p(-endog)


@dataclass(frozen=True, eq=False)
class OtherLine(BadLaw):
    """Responses like good ones, with parameters of their own.

    Attributes
    ----------
    good : GoodLaw
        The distribution of a response, given its predictors.
    data : PredictorRows
        All rows, in groups.
    first : ndarray, shape (k,)
        Parameters of the designs from which a fit starts.
    least : float
        Least dispersion: rows that lie on a line exactly would have any likelihood.
    """

    good: GoodLaw
    data: PredictorRows
    first: Array
    least: float = 0.0

    def _at(self, own: Array) -> GoodRows:
        """Return the rows at parameters (k + m, 1)."""
        k, own = self.data.n_params, own.reshape(-1, 1)
        with np.errstate(all="ignore"):
            predictors = np.array(self.data.predictors(own[:k, 0]))
            return self.good.rows(self.data.seen, predictors, own[k:])

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the fit to the tenth of the rows whose groups are farthest from the line."""
        data = self.data
        scores = data.together.sums(design_rows(data.designs, rows.slopes).T)
        bread = design_gram(data.designs, data.mass * rows.information)
        inverse = np.linalg.pinv(bread, hermitian=True)
        far = np.einsum("kn,kj,jn->n", scores, inverse, scores) / data.together.sizes
        order = np.argsort(-far, kind="stable")
        before = np.cumsum(data.mass[order]) - data.mass[order]
        cut = far[order[np.searchsorted(before, 0.1 * data.total) - 1]]
        mass, predictors = data.mass * (far >= cut), np.array(data.predictors(self.first))
        own = np.append(self.first, self.good.start(seen, predictors))
        for _ in range(10):
            own = self.updated(own, mass, seen, rows)
        return own

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        return self._at(own).log_density

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the scores of the parameters."""
        at = self._at(own)
        by_design = design_rows(self.data.designs, at.slopes).T
        return np.vstack([by_design, *at.own])

    def updated(self, own: Array, mass: Array, seen: Responses, rows: GoodRows) -> Array:
        """Return the parameters after a step of scoring, under a mass (n,)."""
        if float(mass.sum()) < LEAST_SHARE:
            return own
        alone = Mixture(self.good, NO_BAD_ROWS, 0.0, self.data.total, 0.0)
        return Fit(replace(self.data, mass=mass, groups=None), alone, own).stepped().params

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]  # a value in others
        """Least and largest parameters."""
        free, (low, high) = np.full(self.data.n_params, np.inf), self.good.bounds
        return np.concatenate([-free, np.maximum(low, self.least)]), np.concatenate([free, high])


def laws_of_family(family: Family, mean: MeanFunction, rows: PredictorRows) -> Laws:
    """Return what rows of a family may look like."""
    if isinstance(family, Counts) and not family.dispersed:
        good = PlainCounts(family, mean)
        wider: GoodLaw | None = None
        if not isinstance(family, Binomial):
            given = float(family.alpha) if isinstance(family, NegativeBinomial) else 0.0
            wider, bad = OverdispersedCounts(mean, given), bad_counts()
        elif float(np.max(rows.seen.size)) < 2.0:
            bad = bad_labels(rows)  # labels vary as much as they can
        else:
            wider, bad = OverdispersedShares(mean), bad_shares()
        return Laws(good, wider, (*bad, *other_lines(good, rows)))
    zeros = family.zeros and family.positive
    alone = rows.groups is None  # rows of a group have one share
    share = Share.FAR if alone and rows.seen.far.any() else Share.NOTHING
    wide, cluster = WideAround(family.positive, zeros), Cluster(family.positive)
    dispersed = Dispersed(family, mean, rows.n_params, rows.total)
    bad = (
        BadRows(Bad.WIDE, (wide,), share),
        BadRows(Bad.CLUSTER, (cluster,), share),
        BadRows(Bad.WIDE_AND_CLUSTER, (cluster, wide), share, parts=(0, 1)),
    )
    return Laws(dispersed, None, (*bad, *other_lines(dispersed, rows)))


def other_lines(
    good: GoodLaw, rows: PredictorRows, start: Array | None = None
) -> tuple[BadRows, ...]:
    """Return groups that follow another regression; none where rows are by themselves.

    A fit starts from given parameters of the designs, or from zero.
    """
    if rows.groups is None:
        return ()
    first, least = np.zeros(rows.n_params) if start is None else start, 0.0
    if isinstance(good, Dispersed):
        endog, middle = rows.seen.endog, np.asarray(np.mean(rows.seen.endog))
        squares = rows.seen.size * (endog - middle) ** 2 / good.family.variance(middle)
        least = LEAST_OTHER * float(np.mean(squares))
    return (BadRows(Bad.OTHER_LINE, (OtherLine(good, rows, first, least),)),)


def bad_labels(rows: PredictorRows) -> tuple[BadRows, ...]:
    """Return what bad labels may look like."""
    if rows.groups is None:
        return (BadRows(Bad.WIDE, (EitherLabel(),)),)
    return (BadRows(Bad.LABEL_NOISE, (OftenFlipped(),)),)


def bad_counts(zeros: bool = True) -> tuple[BadRows, ...]:
    """Return what bad counts may look like."""
    wide, cluster = WideCounts(), CountCluster()
    far = (BadRows(Bad.WIDE, (wide,)), BadRows(Bad.CLUSTER, (cluster,)))
    if not zeros:
        return far
    pairs = [
        BadRows(Bad.WIDE_AND_ZEROS, (FalseZeros(), law), share, parts=(place, false))
        for place, law in enumerate((wide, cluster))
        for false, share in ((2, Share.NOTHING), (3, Share.CENTER))
    ]
    return (*far, *_false_zeros(2), *pairs)


def bad_shares() -> tuple[BadRows, ...]:
    """Return what bad counts of successes may look like."""
    return (BadRows(Bad.WIDE, (AnyShare(),)), *_false_zeros(1))


def _false_zeros(place: int) -> tuple[BadRows, ...]:
    """Return false zeros, listed at a place, and those whose share depends on the mean."""
    laws = (FalseZeros(),)
    sloped = BadRows(Bad.FALSE_ZEROS, laws, Share.CENTER, parts=(place,))
    return (BadRows(Bad.FALSE_ZEROS, laws), sloped)
