"""What a likelihood is made of: functions of its parameters, the distribution of its responses.

Where a likelihood has a closed form, a kernel has the log-density of a response as a function of
few predictors, with its slopes. It knows nothing of parameters or designs: its predictors are
arrays that broadcast with the responses, the linear predictors of a model and its dispersion. Each
remains accurate as the dispersion falls to zero, where differences of log-gamma functions lose all
digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaincinv, digamma, expit, gammaln, log_expit, log_ndtr, xlogy

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import BLOCK_ENTRIES, MAX_STEPS
from rrmstats.laws.families import (
    FAINT,
    MORE,
    REACH,
    Counts,
    Link,
    MeanFunction,
    count_nodes,
    log_negative_binomial,
    shape_slope,
)
from rrmstats.losses.numerical import bounded_fits, defined_losses

# Logarithms of means beyond which exponentials over- or underflow; labels have no larger
# predictors.
FARTHEST_LOG = 300.0


class Kernel:
    """The log-density of a response, given predictors."""

    #: Function of responses and predictors that returns log-densities.
    log_density: Callable[..., Array]
    #: Function of both that returns the derivatives in each predictor, shape (q, ...).
    slopes: Callable[..., Array]
    #: Function of predictors that returns responses, and logarithms of what their densities count.
    nodes: Callable[..., tuple[Array, Array]]


class CountKernel(Kernel):
    """The log-probability of a count, given predictors."""

    #: Function of predictors that returns means and variances.
    moments: Callable[..., tuple[Array, Array]]

    def nodes(self, *predictors: Array) -> tuple[Array, Array]:
        """Return counts that stand for all, and the logarithms of for how many each."""
        mean, variance = np.broadcast_arrays(*self.moments(*predictors))
        return counts_worth_a_term(mean, variance, lambda y: self.log_density(y, *predictors))


@dataclass(frozen=True, eq=False)
class FamilyKernel(CountKernel):
    """Responses of a family of counts, given their linear predictor.

    Attributes
    ----------
    family : Counts
    mean : MeanFunction
    size : ndarray, shape (n,) or (1,)
        Variance weights over the dispersion.
    """

    family: Counts
    mean: MeanFunction
    size: Array

    def log_density(self, y: Array, eta: Array) -> Array:
        """Return the log-probabilities of responses, shape (..., n)."""
        return self.family.log_density(y, self.mean.mean(eta), self.size)

    def slopes(self, y: Array, eta: Array) -> Array:
        """Return their slopes in the linear predictor, shape (1, ..., n)."""
        mu, slope = self.mean.mean_and_slope(eta)
        return (self.size * slope / self.family.variance(mu) * (y - mu))[None]

    def largest(self, y: Array) -> Array:
        """Return the largest log-probabilities that responses could have, shape (..., n)."""
        return self.family.log_density(y, y, self.size)

    def nodes(self, *predictors: Array) -> tuple[Array, Array]:
        """Return responses, and the logarithms of for how many counts each stands, (m, n)."""
        mean = self.size * self.mean.mean(*predictors)
        counts, width = count_nodes(*self.family.count_range(mean, self.size))
        with np.errstate(divide="ignore"):  # nodes that a short range does not need
            return counts.T / self.size, np.log(width).T

    def moments(self, eta: Array) -> tuple[Array, Array]:
        """Return means and variances of responses."""
        mu = self.mean.mean(eta)
        return mu, self.family.variance(mu) / self.size


def log_mean_kernel(family: Counts) -> FamilyKernel:
    """Return the counts of a family whose predictor is the logarithm of the mean."""
    return FamilyKernel(family, MeanFunction(Link.log(), -FARTHEST_LOG, FARTHEST_LOG), np.ones(1))


@dataclass(frozen=True)
class NegativeBinomialKernel(CountKernel):
    """Counts of variance mu + alpha mu^power; predictors are the logarithm of mu, and alpha.

    Attributes
    ----------
    power : float
    """

    power: float

    def _sizes(self, log_mean: Array, alpha: Array) -> tuple[Array, Array]:
        mean = _exp(log_mean)
        return mean, mean ** (2.0 - self.power) / np.where(alpha > 0, alpha, np.nan)

    def log_density(self, y: Array, log_mean: Array, alpha: Array) -> Array:
        """Return the log-probabilities of counts."""
        return log_negative_binomial(y, *self._sizes(log_mean, alpha))

    def slopes(self, y: Array, log_mean: Array, alpha: Array) -> Array:
        """Return their derivatives, shape (2, ...)."""
        mean, size = self._sizes(log_mean, alpha)
        by_size = shape_slope(y, mean, size)
        by_mean = y - (y + size) * mean / (size + mean) + (2.0 - self.power) * size * by_size
        return np.stack(np.broadcast_arrays(by_mean, -size / alpha * by_size))

    def moments(self, log_mean: Array, alpha: Array) -> tuple[Array, Array]:
        """Return means and variances."""
        mean, size = self._sizes(log_mean, alpha)
        return mean, mean + mean**2 / size


@dataclass(frozen=True)
class GeneralizedPoissonKernel(CountKernel):
    """Counts of variance mu (1 + alpha mu^power)^2; predictors are ln(mu) and alpha.

    Attributes
    ----------
    power : float
        Statsmodels' parameterization.
    """

    power: float

    def _parts(self, y: Array, log_mean: Array, alpha: Array) -> tuple[Array, ...]:
        mean = _exp(log_mean)
        tilt = alpha * mean**self.power
        return mean, tilt, mean + tilt * y, 1.0 + tilt

    def log_density(self, y: Array, log_mean: Array, alpha: Array) -> Array:
        """Return the log-probabilities of counts, -inf outside of the domain."""
        _, _, rate, stretch = self._parts(y, log_mean, alpha)
        found = (
            _bounded(log_mean)
            + (y - 1.0) * np.log(rate)
            - y * np.log(stretch)
            - rate / stretch
            - gammaln(y + 1.0)
        )
        return np.where((rate > 0) & (stretch > 0), found, -np.inf)

    def slopes(self, y: Array, log_mean: Array, alpha: Array) -> Array:
        """Return their derivatives, shape (2, ...)."""
        mean, tilt, rate, stretch = self._parts(y, log_mean, alpha)
        by_mean = 1.0 / mean + (y - 1.0) / rate - 1.0 / stretch
        by_tilt = (y - 1.0) * y / rate - y / stretch - (y - mean) / stretch**2
        slope = mean * by_mean + self.power * tilt * by_tilt
        return np.stack(np.broadcast_arrays(slope, mean**self.power * by_tilt))

    def moments(self, log_mean: Array, alpha: Array) -> tuple[Array, Array]:
        """Return means and variances."""
        mean, _, _, stretch = self._parts(np.zeros(1), log_mean, alpha)
        return mean, mean * stretch**2


@dataclass(frozen=True)
class ZeroInflatedKernel(CountKernel):
    """Counts, some zero whatever their distribution; the first predictor tells how many.

    Attributes
    ----------
    main : CountKernel
        The distribution of the other counts.
    probit : bool
        Whether the share of added zeros is Gaussian in its predictor; logistic otherwise.
    """

    main: CountKernel
    probit: bool = False

    def log_density(self, y: Array, inflation: Array, *rest: Array) -> Array:
        """Return the log-probabilities of counts."""
        added, kept = log_shares(inflation, self.probit)
        plain = kept + self.main.log_density(y, *rest)
        return np.where(y == 0, np.logaddexp(added, plain), plain)

    def slopes(self, y: Array, inflation: Array, *rest: Array) -> Array:
        """Return their derivatives, shape (q, ...)."""
        added, kept = log_shares(inflation, self.probit)
        up, down = share_slopes(inflation, self.probit)
        plain = kept + self.main.log_density(y, *rest)
        # Probability that a zero is one of the main law.
        own = np.where(y == 0, expit(plain - added), 1.0)
        first = (1.0 - own) * up - own * down
        others = own * self.main.slopes(y, *rest)
        return np.concatenate([np.broadcast_to(first, others.shape[1:])[None], others])

    def moments(self, inflation: Array, *rest: Array) -> tuple[Array, Array]:
        """Return means and variances."""
        mean, variance = self.main.moments(*rest)
        added, kept = np.exp(log_shares(inflation, self.probit))
        return kept * mean, kept * (variance + added * mean**2)


@dataclass(frozen=True)
class BetaKernel(Kernel):
    """Shares; predictors are the logit of the mean and the logarithm of the precision."""

    def log_density(self, y: Array, logit_mean: Array, log_precision: Array) -> Array:
        """Return the log-densities of shares."""
        precision = _exp(log_precision)
        a, b = expit(logit_mean) * precision, expit(-logit_mean) * precision
        norm = gammaln(precision) - gammaln(a) - gammaln(b)
        return norm + xlogy(a - 1.0, y) + (b - 1.0) * np.log1p(-y)

    def slopes(self, y: Array, logit_mean: Array, log_precision: Array) -> Array:
        """Return their derivatives, shape (2, ...)."""
        precision, mean, rest = _exp(log_precision), expit(logit_mean), expit(-logit_mean)
        low = np.log(y) - digamma(mean * precision)
        high = np.log1p(-y) - digamma(rest * precision)
        by_mean = mean * rest * precision * (low - high)
        by_precision = precision * (digamma(precision) + mean * low + rest * high)
        return np.stack(np.broadcast_arrays(by_mean, by_precision))

    def nodes(self, logit_mean: Array, log_precision: Array) -> tuple[Array, Array]:
        """Return shares, and the logarithms of what their densities count."""
        at, weight = probability_nodes()
        precision = _exp(log_precision)
        a, b = expit(logit_mean) * precision, expit(-logit_mean) * precision
        y = np.asarray(betaincinv(a, b, at[:, None]))
        return y, np.log(weight)[:, None] - self.log_density(y, logit_mean, log_precision)


@dataclass(frozen=True)
class LabelKernel(Kernel):
    """Labels 0 and 1; the predictor is the log-odds, or the normal quantile, of 1.

    Attributes
    ----------
    probit : bool
    """

    probit: bool

    def log_density(self, y: Array, eta: Array) -> Array:
        """Return the log-probabilities of labels."""
        return log_shares((2.0 * y - 1.0) * _bounded(eta), self.probit)[0]

    def slopes(self, y: Array, eta: Array) -> Array:
        """Return their derivatives, shape (1, ...)."""
        side, kept = 2.0 * y - 1.0, _bounded(eta)
        found = side * share_slopes(side * kept, self.probit)[0]
        return np.where(kept == eta, found, 0.0)[None]

    def nodes(self, eta: Array) -> tuple[Array, Array]:
        """Return both labels, shape (2, 1), each of which counts once."""
        return np.array([[0.0], [1.0]]), np.zeros((2, 1))


def log_shares(eta: Array, probit: bool) -> Array:
    """Return the logarithms of a share and of the rest, shape (2, ...).

    The share is Gaussian in its predictor, or logistic.
    """
    log = log_ndtr if probit else log_expit
    return np.stack([log(eta), log(-eta)])


def share_slopes(eta: Array, probit: bool) -> Array:
    """Return by how much these change with the predictor, both positive, shape (2, ...)."""
    logs = log_shares(eta, probit)
    if probit:
        return np.exp(-0.5 * (eta**2 + np.log(2.0 * np.pi)) - logs)
    return np.exp(logs[::-1])


def _exp(log_mean: Array) -> Array:
    """Return exponentials that neither overflow nor vanish."""
    return np.exp(_bounded(log_mean))


def _bounded(log_mean: Array) -> Array:
    """Return logarithms whose exponentials are finite; terms that cancel must share them."""
    return np.clip(log_mean, -FARTHEST_LOG, FARTHEST_LOG)


class RowLikelihood:
    """Log-likelihoods of rows as functions of theta, and the distribution of the responses."""

    #: Responses, shape (n,).
    endog: Array
    #: Function of theta and responses that returns the log-likelihoods of these, shape (m, n).
    log_density: Callable[[Array, Array], Array]
    #: Function of theta that returns the gradients of the log-likelihoods of the rows, (n, k).
    scores: Callable[[Array], Array]
    #: Function of theta, responses and units of theta, which serve for differences, that returns
    #: slopes of the log-likelihoods in the predictors, shape (q, m, n).
    slopes: Callable[[Array, Array, Array], Array]
    #: Function of theta that returns responses, and logarithms of what their densities count,
    #: shape (m, n) or (m, 1). The expectation of a function is its sum over these, times density
    #: and count, at theta and at parameters near it.
    nodes: Callable[[Array], tuple[Array, Array]]

    def log_likelihood(self, theta: Array) -> Array:
        """Return the log-likelihoods of the rows, shape (n,)."""
        return self.log_density(theta, self.endog)


@dataclass(frozen=True, eq=False, kw_only=True)
class Likelihood:
    """A likelihood that is a sum over rows, and what else a fit needs to know of it.

    Attributes
    ----------
    rows : RowLikelihood
    start : ndarray, shape (k,)
        Parameters within the domain: the maximum of the likelihood.
    largest : callable or None
        Takes responses, shape (..., n), and returns the largest log-likelihood that each could
        have; None where it is not known.
    lower : ndarray, shape (k,), or None
        Least values of the parameters.
    scored : bool
        Whether the scores of the rows are known.
    known : bool
        Whether the distribution of the responses is known.
    classes : bool
        Whether the responses are labels, which may have probability one.
    kinds : tuple of ndarray
        Masks of rows, each of which weights must keep a part of.
    part : callable or None
        Takes rows and returns the likelihood of these; None where only the whole can be evaluated.
    """

    rows: RowLikelihood
    start: Array
    largest: Callable[[Array], Array] | None = None
    lower: Array | None = None
    scored: bool = True
    known: bool = True
    classes: bool = False
    kinds: tuple[np.ndarray, ...] = ()
    part: Callable[[np.ndarray], Likelihood | None] | None = None

    @property
    def endog(self) -> Array:
        """Responses, shape (n,)."""
        return self.rows.endog

    @property
    def closed(self) -> PredictorLikelihood | None:
        """Its closed form, where it has one."""
        return self.rows if isinstance(self.rows, PredictorLikelihood) else None

    @property
    def designs(self) -> tuple[Array, ...]:
        """Designs of the predictors, which are the parameters where there is no closed form."""
        if self.closed is not None:
            return self.closed.designs
        return (np.ones((len(self.endog), 1)),) * len(self.start)

    @property
    def logistic(self) -> bool:
        """Whether it is that of a logistic regression of labels 0 and 1."""
        kernel = None if self.closed is None else self.closed.kernel
        return isinstance(kernel, LabelKernel) and not kernel.probit


def counts_worth_a_term(
    mean: Array, variance: Array, log_pmf: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Return counts that stand for all of a distribution, and the logarithms of for how many each.

    Both have shape (m, n). The range grows until the probability of its end is not worth a term.
    Parameters outside of their domain, where differences may look, have no moments.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import poisson
    >>> from rrmstats.losses.likelihood_laws import counts_worth_a_term
    >>> law = poisson(np.array([0.5, 20.0]))
    >>> counts, log_width = counts_worth_a_term(law.mean(), law.var(), law.logpmf)
    >>> np.exp(log_width + law.logpmf(counts)).sum(axis=0).round(12)
    array([1., 1.])
    """
    mean = np.where(np.isfinite(mean), mean, 0.0)
    spread = np.where(np.isfinite(variance), np.sqrt(variance), 1.0 + mean)
    for _ in range(8):  # a tail that is heavier than after eight doublings is no distribution's
        low = np.floor(np.maximum(mean - REACH * spread, 0.0))
        high = np.ceil(mean + REACH * spread + MORE)
        if not (log_pmf(high) > -FAINT).any():
            break
        spread = 2.0 * spread
    counts, width = count_nodes(low, high)
    with np.errstate(divide="ignore"):  # nodes that a short range does not need
        return counts.T, np.log(width).T


def probability_nodes() -> tuple[Array, Array]:
    """Return probabilities in (0, 1) and their weights in a mean over them, shape (m,) each.

    The double exponential rule, which integrates what grows like a logarithm at the ends.

    Examples
    --------
    >>> from rrmstats.losses.likelihood_laws import probability_nodes
    >>> at, weight = probability_nodes()
    >>> import numpy as np
    >>> bool(abs(weight @ np.log(at) + 1) < 1e-8)
    True
    """
    t = np.linspace(-3.0, 3.0, 60)  # weights at the ends are 1e-13
    inner = 0.5 * np.pi * np.sinh(t)
    at = 1.0 / (1.0 + np.exp(-2.0 * inner))
    weight = np.cosh(t) / np.cosh(inner) ** 2
    return at, weight / weight.sum()


@dataclass(frozen=True, eq=False)
class PredictorLikelihood(RowLikelihood):
    """Log-likelihoods of rows, given predictors that are linear in parts of the parameters.

    Attributes
    ----------
    kernel : Kernel
    endog : ndarray, shape (n,)
    designs : tuple of ndarray, shape (n, k_j) each
        Designs of the predictors; parameters come in their order.
    offsets : tuple of ndarray, shape (n,) each
        Added to the predictors.

    All may have a batch of subsets of rows in front, with one theta for each.
    """

    kernel: Kernel
    endog: Array
    designs: tuple[Array, ...]
    offsets: tuple[Array, ...]

    @cached_property
    def _ends(self) -> list[int]:
        return np.cumsum([0, *(design.shape[-1] for design in self.designs)]).tolist()

    def predictors(self, theta: Array) -> tuple[Array, ...]:
        """Return the predictors of the rows at theta (..., k), shape (..., n) each."""
        found = []
        for j, design in enumerate(self.designs):
            own = theta[..., self._ends[j] : self._ends[j + 1]]
            linear = own @ design.T if design.ndim == 2 else (design @ own[..., None])[..., 0]
            found.append(linear + self.offsets[j])
        return tuple(found)

    def subsets(self, rows: np.ndarray) -> PredictorLikelihood:
        """Return the likelihood of a batch of subsets of rows, shape (b, r)."""
        return PredictorLikelihood(
            self.kernel,
            self.endog[rows],
            tuple(design[rows] for design in self.designs),
            tuple(offset[rows] for offset in self.offsets),
        )

    @property
    def longest_units(self) -> Array:
        """Changes of the parameters that change a predictor by much whatever it is, shape (k,)."""
        size = np.sqrt(np.concatenate([(z**2).mean(axis=0) for z in self.designs]))
        return 10.0 / np.where(size > 0, size, 1.0)

    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-likelihoods of responses that broadcast with the rows."""
        with np.errstate(all="ignore"):
            return np.asarray(self.kernel.log_density(y, *self.predictors(theta)))

    def scores(self, theta: Array) -> Array:
        """Return the scores of the rows, shape (..., n, k)."""
        with np.errstate(all="ignore"):
            slopes = self.kernel.slopes(self.endog, *self.predictors(theta))
        parts = [s[..., None] * z for s, z in zip(slopes, self.designs, strict=True)]
        return np.concatenate(parts, axis=-1)

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return responses, and logarithms of what their densities count; see `Law`."""
        with np.errstate(all="ignore"):
            return self.kernel.nodes(*self.predictors(theta))

    def slopes(self, theta: Array, y: Array, unit: Array) -> Array:
        """Return the slopes in the predictors, shape (q, m, n)."""
        with np.errstate(all="ignore"):
            return self.kernel.slopes(y, *self.predictors(theta))


def batch_fits(
    form: PredictorLikelihood, weights: Array, theta: Array, lower: Array, steps: int
) -> Array:
    """Return parameters of larger weighted log-likelihood, after a few steps, shape (b, k).

    The outer products of the scores serve for Hessians.

    Parameters
    ----------
    form : PredictorLikelihood
        Of rows (n,), or of a batch of subsets (b, n).
    weights : ndarray, shape (b, n)
    theta : ndarray, shape (b, k)
        Where to start.
    lower : ndarray, shape (k,)
        Least values of the parameters.
    steps : int
        Number of steps at most.
    """

    def of(places: np.ndarray) -> PredictorLikelihood:
        return form if form.endog.ndim == 1 else form.subsets(places)

    def losses(at: Array, places: np.ndarray) -> Array:
        return defined_losses(-of(places).log_likelihood(at))

    def slopes(at: Array, places: np.ndarray) -> tuple[Array, Array]:
        scores = of(places).scores(at)
        scores[~np.isfinite(scores)] = 0.0
        pulled = weights[places, :, None] * scores
        return -pulled.sum(axis=-2), np.swapaxes(pulled, -1, -2) @ scores

    return bounded_fits(losses, slopes, weights, theta, lower, steps)


def own_fit(form: PredictorLikelihood, start: Array, lower: Array) -> Array:
    """Return the parameters of largest likelihood near a start, shape (k,)."""
    weights = np.full((1, len(form.endog)), 1.0 / len(form.endog))
    return batch_fits(form, weights, start[None], lower, MAX_STEPS)[0]


def batch_slices(n_fits: int, n_obs: int, n_params: int) -> list[slice]:
    """Return parts of a batch whose arrays fit in memory."""
    size = max(1, BLOCK_ENTRIES // (n_obs * n_params))
    return [slice(i, i + size) for i in range(0, n_fits, size)]
