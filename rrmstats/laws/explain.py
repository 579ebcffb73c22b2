"""Explanations of rows: fitted by EM, compared, solved to the last digit, with errors.

The stacked equations of an explanation are sums over rows of functions of a row's predictors,
among which are the parameters of the mixture, so that differences in each of these make all
derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from rrmstats.core.block_array import in_blocks, row_sums
from rrmstats.core.blocks import decided_once, sample_places
from rrmstats.core.conventions import MOST_LEVERAGE
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Explained, Explanation, best_of_each, of_groups
from rrmstats.core.tolerances import TINY
from rrmstats.laws.mixture import (
    NO_BAD_ROWS,
    BadRows,
    GoodRows,
    Laws,
    Mixture,
    Probabilities,
    Share,
)
from rrmstats.laws.rows import (
    PredictorRows,
    Responses,
    design_gram,
    design_leverage,
    design_rows,
    design_sums,
)

# Gain of the log-likelihood in one step below which an explanation is known well enough to be
# compared with others, and the steps that it may take.
ENOUGH, EM_STEPS = 1e-2, 60
# The same where theta is held, which only leads to a start.
START_ENOUGH, START_STEPS = 0.3, 20
# Multiple of the gain still to be expected, were steps to shrink as the last two did, within which
# a fit that is worth while must come.
HOPE = 5.0
# Change of a predictor over which derivatives are differences, relative to its size.
DELTA = 1e-5
# Size of a parameter of a mixture from which changes of it are relative; of predictors it is one.
SMALL = 1e-3
# Size of the last step in standard errors.
STEP_TOL = 1e-9
# Largest relative change of a parameter of the mixture in one step.
LONGEST = 0.7
# Size of a step, relative to the last, up to which the derivatives of that one serve for it.
CONTRACTED = 0.1
# Rows on which an explanation is chosen; it is then solved on all of them.
MOST_ROWS = 20_000
# Size of the last step on a sample, in standard errors, from which all rows go on.
SAMPLE_TOL = 1e-3
# Rows from which fits of an explanation start, where there are more.
START_ROWS = 4_000
# Steps of EM after which candidates are compared, and how many of them go on.
TRIAL_STEPS, MOST_CANDIDATES = 8, 2
#: How far below rows without bad ones an explanation may end that is fitted to its end. Derived:
#: half the difference of 2 in BIC from which explanations differ (Kass and Raftery, 1995).
CLOSE = 1.0
#: The same below the best one, where no other explanation has it as a part. Derived: half the
#: difference of 10 that is very strong evidence (Kass and Raftery, 1995).
FAR_BEHIND = 5.0


@dataclass(frozen=True, eq=False)
class Fit:
    """An explanation at some parameters.

    Attributes
    ----------
    rows : PredictorRows
    mixture : Mixture
    params : ndarray, shape (k + m,)
        Theta, then the parameters of the mixture.
    lower : ndarray, shape (k,), or None
        Least values of theta.
    good : GoodRows or None
        The rows were they good, where they are known at these parameters.
    """

    rows: PredictorRows
    mixture: Mixture
    params: Array
    lower: Array | None = None
    good: GoodRows | None = None

    @property
    def theta(self) -> Array:
        """Parameters of the model, shape (k,)."""
        return self.params[: self.rows.n_params]

    @property
    def others(self) -> Array:
        """Parameters of the mixture, shape (m,)."""
        return self.params[self.rows.n_params :]

    @cached_property
    def found(self) -> Probabilities:
        """Densities of rows in memory, and their probabilities to be good."""
        predictors = self.rows.predictors(self.params)
        return self.mixture.probabilities(self.rows.seen, predictors, self.good)

    @cached_property
    def log_likelihood(self) -> float:
        """Log-likelihood of rows in memory; -inf where it is not defined."""
        value = float(self.rows.together.decisions @ self.found.log_density)
        return value if np.isfinite(value) else -np.inf

    @property
    def bic_gain(self) -> float:
        """Log-likelihood less Schwarz's penalty, up to a constant."""
        return self.log_likelihood - 0.5 * len(self.others) * float(np.log(self.rows.total))

    def explanation(self, n_plain: int) -> Explanation:
        """Return the fit as an explanation; plain good rows have `n_plain` parameters."""
        return Explanation(
            good=self.mixture.good.kind,
            bad=self.mixture.bad.kind,
            log_likelihood=self.log_likelihood,
            penalty=(len(self.others) - n_plain) * float(np.log(self.rows.total)),
            eps=float(self.rows.mass @ self.found.bad_share) / self.rows.total,
            prob_bad=of_groups(1.0 - self.found.good, self.rows.groups),
            theta=self.theta,
            n_params=len(self.others) - n_plain,
        )

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest values of all parameters."""
        low, high = self.mixture.bounds
        free = np.full(self.rows.n_params, np.inf)
        least = -free if self.lower is None else self.lower
        return np.concatenate([least, low]), np.concatenate([free, high])

    def moved(self, step: Array) -> Fit:
        """Return the fit at other parameters, within their bounds."""
        return replace(self, params=np.clip(self.params + step, *self.bounds), good=None)

    def stepped(self, held: bool = False) -> Fit:
        """Return the fit after one step of EM; theta may be held."""
        rows, found = self.rows, self.found
        theta = 0.0 * self.theta if held else self._theta_step(rows.mass * found.good)
        mixture, others = self.mixture.updated(self.others, rows.mass, rows.seen, found)
        new = self.moved(np.concatenate([theta, others - self.others]))
        same = held and not len(mixture.good.bounds[0])
        return replace(new, mixture=mixture, good=found.rows if same else None)

    def _theta_step(self, mass: Array) -> Array:
        """Return a step towards the weighted fit.

        It changes predictors by at most one, in the root mean square over the good rows.
        """
        good, designs = self.found.rows, self.rows.designs
        slopes = np.where(mass > 0, mass * good.slopes, 0.0)
        information = np.where(mass > 0, mass * good.information, 0.0)
        pull, bread = design_sums(designs, slopes), design_gram(designs, information)
        if self.lower is not None:
            held = (self.theta <= self.lower) & (pull <= 0)
            pull = np.where(held, 0.0, pull)
            bread = np.where(held[:, None] | held, np.diag(1.0 * held), bread)
        try:
            np.linalg.cholesky(bread)
        except np.linalg.LinAlgError:  # the outer products of the slopes take its place
            bread = design_gram(designs, np.where(mass > 0, slopes[:, None] * good.slopes, 0.0))
        step = np.linalg.lstsq(bread, pull, rcond=None)[0]
        change = self.rows.predictors(step) - self.rows.predictors(0.0 * step)
        longest = np.sqrt((change**2 @ mass).max() / max(mass.sum(), TINY))
        return step / max(float(longest), 1.0)


def fitted(
    fit: Fit,
    steps: int = EM_STEPS,
    enough: float = ENOUGH,
    held: bool = False,
    aim: float = -np.inf,
) -> Fit:
    """Return a fit after steps of EM, as long as they change the likelihood by enough.

    Parameters
    ----------
    fit : Fit
    steps : int, optional
        Number of steps at most.
    enough : float, optional
        Gain of the log-likelihood in one step that is worth another.
    held : bool, optional
        Whether theta is held.
    aim : float, optional
        The `bic_gain` below which the fit is of no interest: it stops where it cannot come there.
    """
    last = np.inf
    for _ in range(steps):
        new = fit.stepped(held)
        if not new.log_likelihood > -np.inf:
            break
        gain, fit = new.log_likelihood - fit.log_likelihood, new
        ahead = gain**2 / (last - gain) if 0 < gain < last else np.inf
        if abs(gain) < enough or fit.bic_gain + HOPE * ahead < aim:
            break
        last = gain
    return fit


def _functions(
    mixture: Mixture, seen: Responses, predictors: Array, rows: GoodRows | None = None
) -> tuple[Array, Probabilities]:
    """Return the equations of rows, their shares of bad rows last, (p + 1, n).

    Differences may step out of the range of a parameter that is at its end.
    """
    with np.errstate(all="ignore"):
        found = mixture.probabilities(seen, predictors, rows)
        slopes = np.where(found.good > 0, found.good * found.rows.slopes, 0.0)
        others = mixture.equations(seen, found)
    others = np.where(np.isfinite(others), others, 0.0)
    return np.concatenate([slopes, others, found.bad_share[None]]), found


def _information(found: Probabilities) -> Array:
    """Return the information of rows on their predictors, were the good ones known, (q, q, n)."""
    return np.where(found.good > 0, found.good * found.rows.information, 0.0)


def _sums(
    mixture: Mixture,
    differentiated: bool,
    mass: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
) -> tuple[Array, ...]:
    """Return the sums of `Stack`, with the derivatives or without."""
    here, found = _functions(mixture, seen, predictors)
    q = len(found.rows.slopes)
    information = design_gram(designs[:q], mass * _information(found))
    sums = design_sums(designs, mass * here[:-1]), information, here[-1] @ mass
    if not differentiated:
        return sums
    # Bad rows change with their parameters alone.
    n_good, n = q + len(mixture.good.bounds[0]), len(mass)
    by_params, by_share = [], []
    for j, design in enumerate(designs):
        size = np.maximum(np.abs(predictors[j]), 1.0 if j < q else SMALL)
        # Each row by itself, or where rows have a part in the equations of others each column.
        along: list[tuple[Any, Array, Array]] = [(DELTA * size, np.ones(n), design)]
        if mixture.together.groups is not None:
            most = [max(float(np.abs(column).max()), TINY) for column in design.T]
            along = [
                (DELTA * float(size.max()) / unit, column, np.ones((n, 1)))
                for unit, column in zip(most, design.T, strict=True)
            ]
        for length, direction, columns in along:
            step = np.zeros_like(predictors)
            step[j] = length * direction
            ends = (
                _functions(mixture, seen, at, found.rows if j >= n_good else None)[0]
                for at in (predictors + step, predictors - step)
            )
            slopes = mass * np.subtract(*ends) / (2.0 * length)
            parts = zip(designs, slopes[:-1], strict=True)
            by_params.append(np.vstack([left.T @ (one[:, None] * columns) for left, one in parts]))
            by_share.append(slopes[-1] @ columns)
    return *sums, np.hstack(by_params), np.concatenate(by_share)


class Stack(NamedTuple):
    """The equations of all rows at a fit.

    Attributes
    ----------
    pull : ndarray, shape (k + m,)
    information : ndarray, shape (k, k)
        On theta, were the good rows known.
    share : float
        The sum of the shares of bad rows.
    jacobian : ndarray, shape (k + m, k + m)
    share_slopes : ndarray, shape (k + m,)
        The derivatives of `share`.
    free : ndarray, shape (k + m,)
        Which parameters no bound holds.
    """

    pull: Array
    information: Array
    share: float
    jacobian: Array
    share_slopes: Array
    free: np.ndarray

    @property
    def inverse(self) -> Array:
        """Minus the inverse of the Jacobian of the free parameters, zero for others."""
        found = np.zeros_like(self.jacobian)
        places = np.ix_(self.free, self.free)
        unit = np.sqrt(np.maximum(np.abs(np.diag(self.jacobian)[self.free]), 1e-300))
        scaled = self.jacobian[places] / np.outer(unit, unit)
        found[places] = -np.linalg.pinv(scaled) / np.outer(unit, unit)
        return found


def stacked(fit: Fit, near: Stack | None = None) -> Stack:
    """Return the equations of a fit, in one pass over the rows.

    Those of parameters near by lend their derivatives, where they are given.
    """
    pull, information, share, *slopes = fit.rows.sums(
        partial(_sums, fit.mixture, near is None), fit.params
    )
    by_params, by_share = slopes if near is None else (near.jacobian, near.share_slopes)
    low, high = fit.bounds
    held = ((fit.params <= low) & (pull <= 0)) | ((fit.params >= high) & (pull >= 0))
    return Stack(pull, information, share, by_params, by_share, ~held)


def polished(
    fit: Fit, near: Stack | None = None, tol: float = STEP_TOL
) -> tuple[Fit, Stack | None]:
    """Return the root of the stacked equations near a fit, and the equations; None if it is none.

    Parameters
    ----------
    fit : Fit
    near : Stack, optional
        The equations of similar rows near the root, whose derivatives serve while they do.
    tol : float, optional
        Size of the last step, in standard errors.
    """
    last, start, k = np.inf, fit, len(fit.theta)
    for _ in range(30):  # they converge in a few, or never
        now = stacked(fit, near)
        step = now.inverse @ np.where(now.free, now.pull, 0.0)
        unit = np.abs(fit.others) + SMALL
        errors = max(float(step[:k] @ now.information @ step[:k]), 0.0) ** 0.5
        size = max(errors, float(np.abs(step[k:] / unit).max(initial=0.0)))
        if not np.isfinite(size):
            break
        if near is not None and size > CONTRACTED * last:
            near = None  # the derivatives serve no more
            continue
        # A step that is longer than the last is halved.
        step *= 0.5 if size > last else 1.0
        step[:k] *= 1.0 / max(size, 1.0)
        step[k:] = np.clip(step[k:], -LONGEST * unit, LONGEST * unit)
        serves = size < CONTRACTED * last and not fit.rows.in_blocks
        fit, near = fit.moved(step), now if serves else None
        last = size
        if size < tol:
            return fit, now
    return start, None


def rooted(fit: Fit, near: Stack | None = None, tol: float = STEP_TOL) -> tuple[Fit, Stack | None]:
    """Return the root of the equations that steps of EM lead to; see `polished`."""
    for _ in range(4):
        root, now = polished(fit, near, tol)
        if now is not None or fit.rows.in_blocks:  # where steps of EM are not taken
            return root, now
        fit = fitted(fit, 30, 0.0)
    return fit, None


class Moves(NamedTuple):
    """Influence functions: estimates move by their mean over the observations.

    Attributes
    ----------
    theta : ndarray, shape (n, k)
        With the factors of HC3.
    eps : ndarray, shape (n,)
        Of the share of bad rows.
    known : ndarray, shape (k,)
        Which parameters of theta no bound holds.
    share : float
        The share of bad rows.
    """

    theta: Array
    eps: Array
    known: np.ndarray
    share: float


def moves(fit: Fit) -> Moves:
    """Return the influence functions of a fit, at a root of its equations."""
    now, rows, k = stacked(fit), fit.rows, len(fit.theta)
    root, inverse = inverse_root(now.information), now.inverse
    kernel = partial(_row_moves, fit.mixture, root.T @ root)
    found = rows.map(kernel, fit.params, (len(inverse) + 1,))
    share = min(now.share / rows.total, fit.mixture.eps_bar)  # rounding may leave more
    by_theta = np.column_stack([inverse[:k], np.zeros(k)])
    eps = found @ np.append(now.share_slopes @ inverse, 1.0) - share
    if fit.mixture.full:  # the share is its bound, whatever the rows are
        eps = 0.0 * eps
    return Moves(rows.total * (found @ by_theta.T), eps, now.free[:k], share)


def _row_moves(
    mixture: Mixture,
    inverse: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
) -> Array:
    """Return the functions of rows, those of theta with the factors of HC3, (n, k + m + 1)."""
    here, found = _functions(mixture, seen, predictors)
    weights, q = _information(found), len(found.rows.slopes)
    leverage = design_leverage(designs[:q], inverse, weights)
    here[:q] /= 1.0 - np.clip(leverage, 0.0, MOST_LEVERAGE)
    return np.column_stack([design_rows(designs, here[:-1]), here[-1]])


@dataclass(frozen=True, eq=False)
class ExplainedResponses:
    """The explanation that is reported.

    Attributes
    ----------
    fit : Fit
    converged : bool
    explained : Explained
    good : ndarray, shape (n,)
        Probability of each row to be good.
    moves : Moves
    """

    fit: Fit
    converged: bool
    explained: Explained
    good: Array
    moves: Moves

    @property
    def eps_error(self) -> float:
        """Standard error of the share of bad rows."""
        rows = self.fit.rows
        moves = rows.together.sums(self.moves.eps)
        return float(np.sqrt(row_sums(_squares, rows.together.decisions, moves))) / rows.total


def explained_rows(
    rows: PredictorRows, laws: Laws, candidates: Sequence[Array], eps_bar: float
) -> ExplainedResponses:
    """Return the best explanation of rows, in memory or in blocks.

    Parameters
    ----------
    rows : PredictorRows
    laws : Laws
    candidates : sequence of ndarray, shape (k,)
        Parameters to start from, those of maximum likelihood first.
    eps_bar : float
        Largest share of bad rows.
    """
    n = len(rows.seen.endog)

    def decide() -> tuple[Fit, Stack | None, Explained, bool]:
        some = rows
        if laws.divisible and rows.groups is None and (rows.in_blocks or n > MOST_ROWS):
            some = rows.take(sample_places(n))
        starts = [*candidates, *_without_zeros(some, laws, candidates)]
        fits = all_fits(some, laws, starts, eps_bar)
        best, now = _best(fits, STEP_TOL if some is rows else SAMPLE_TOL)
        told = _explained(best, fits, len(laws.good.bounds[0]))
        return best, now, told, some is rows

    best, now, told, all_rows = decided_once(in_blocks(rows.seen.endog), decide)
    if not all_rows:
        best, now = rooted(replace(best, rows=rows), None if rows.in_blocks else now)
    good = rows.map(partial(_good, best.mixture), best.params)
    moved = moves(best)
    chosen = replace(told.chosen, prob_bad=of_groups(1.0 - good, rows.groups), eps=moved.share)
    return ExplainedResponses(best, now is not None, replace(told, chosen=chosen), good, moved)


def _best(fits: Sequence[Fit], tol: float) -> tuple[Fit, Stack | None]:
    """Return the root that is best among those that fits in their order lead to.

    The first fit without equations where none leads to a root.
    """
    best: tuple[Fit, Stack | None] = fits[0], None
    for fit in fits:
        if best[1] is not None and fit.bic_gain <= best[0].bic_gain:
            break
        root, now = rooted(fit, tol=tol)
        if now is not None and (best[1] is None or root.bic_gain > best[0].bic_gain):
            best = root, now
    return best


def _explained(best: Fit, fits: Sequence[Fit], n_plain: int) -> Explained:
    """Return the explanation of the chosen fit, at its root, and of all."""
    chosen = best.explanation(n_plain)
    every = [fit.explanation(n_plain) for fit in fits]
    others = [each for each in every if each.name != chosen.name]
    return Explained(explanations=best_of_each([chosen, *others]), chosen=chosen)


def _without_zeros(rows: PredictorRows, laws: Laws, candidates: Sequence[Array]) -> list[Array]:
    """Return the fit to counts above zero, whatever made zeros of others, where these may lie.

    It is that of a distribution without zeros: as many are added to each count as it stands for.
    """
    some = np.flatnonzero(rows.seen.endog != 0)
    zeros = any(bad.kind is Bad.FALSE_ZEROS for bad in laws.bad)
    if not zeros or len(some) in (0, len(rows.seen.endog)):
        return []
    some = some[:: -(-len(some) // START_ROWS)]
    part = rows.take(np.concatenate([some, some]))
    endog = np.where(np.arange(2 * len(some)) < len(some), part.seen.endog, 0.0)
    part = replace(part, seen=part.seen._replace(endog=endog))
    fit = fits_of(part, laws.mixture(part, 0.0, NO_BAD_ROWS), candidates[:1], laws.lower)[0]
    for _ in range(20):  # towards a start
        zero = np.exp(fit.found.rows.log_density[len(some) :])
        mass = part.mass[: len(some)] * np.stack([np.ones(len(some)), zero / (1.0 - zero)])
        fit = replace(fit, rows=replace(part, mass=mass.ravel())).stepped()
    return [fit.theta]


def _good(mixture: Mixture, seen: Responses, predictors: Array, *designs: Any) -> Array:
    return mixture.probabilities(seen, predictors).good


def _squares(mass: Array, values: Array) -> float:
    return float(mass @ values**2)


def fits_of(
    rows: PredictorRows,
    mixture: Mixture,
    candidates: Sequence[Array],
    lower: Array | None = None,
    aim: float = -np.inf,
    rough: float = 1.0,
) -> list[Fit]:
    """Return the fits of an explanation from candidates of theta, the likeliest first.

    The other parameters are fitted to theta before it moves. Where each row stands for several,
    `rough` of them, the best candidate alone goes on, as far as so few rows tell.
    """
    tried = []
    for theta in candidates:
        starts = mixture.starts(rows.seen, rows.predictors(theta))
        held = [
            fitted(
                Fit(rows, mixture, np.concatenate([theta, start]), lower),
                START_STEPS,
                rough * START_ENOUGH,
                held=True,
            )
            for start in starts
        ]
        best = max(held, key=lambda fit: fit.log_likelihood)
        tried.append(fitted(best, TRIAL_STEPS, aim=aim))
    tried.sort(key=lambda fit: -fit.log_likelihood)
    kept = tried[: MOST_CANDIDATES if rough == 1.0 else 1]
    fits = [fitted(fit, enough=rough * ENOUGH, aim=aim) for fit in kept]
    return sorted(fits, key=lambda fit: -fit.log_likelihood)


def all_fits(
    rows: PredictorRows, laws: Laws, candidates: Sequence[Array], eps_bar: float
) -> list[Fit]:
    """Return the fits of all explanations, that which Schwarz's criterion prefers first.

    Parameters
    ----------
    rows : PredictorRows
        In memory.
    laws : Laws
    candidates : sequence of ndarray, shape (k,)
        Parameters to start from, those of maximum likelihood first.
    eps_bar : float
        Largest share of bad rows.
    """
    n, aim, few_below = len(rows.mass), -np.inf, 0.0
    divides = laws.divisible and rows.groups is None and n > START_ROWS
    few = rows.take(np.arange(0, n, -(-n // START_ROWS))) if divides else rows

    def fits(bad: BadRows, near: Sequence[Array], wider: bool = False) -> list[Fit]:
        mixture = laws.mixture(rows, eps_bar, bad, wider)
        if few is rows:
            return fits_of(rows, mixture, near, laws.lower, aim)
        start = fits_of(few, mixture, near, laws.lower, aim - few_below, n / len(few.mass))[0]
        return [fitted(replace(start, rows=rows, good=None), aim=aim)]

    plain = fits(NO_BAD_ROWS, candidates[:1])
    starts, least = [plain[0].theta, *candidates[1:]], plain[0].bic_gain
    few_below = least - replace(plain[0], rows=few, good=None).bic_gain
    found: list[list[Fit]] = []
    needed = {place for bad in laws.bad for place in bad.parts}
    for place, bad in enumerate(laws.bad):
        best = max([least, *(each[0].bic_gain for each in found if each)])
        aim = least - CLOSE if place in needed else best - FAR_BEHIND
        parts = [found[i][0] for i in bad.parts if found[i]]
        if bad.share is not Share.NOTHING and rows.groups is not None:
            found.append([])  # rows of a group have one share
            continue
        tried = len(parts) == len(bad.parts) and all(fit.bic_gain > least for fit in parts)
        found.append(fits(bad, _near(parts, starts)) if tried else [])
    every = plain + [fit for each in found for fit in each]
    if laws.wider is not None:
        first = max(every, key=lambda fit: fit.bic_gain)
        aim = first.bic_gain - FAR_BEHIND
        every += fits(NO_BAD_ROWS, [plain[0].theta], wider=True)
        if first.bic_gain > least:
            every += fits(first.mixture.bad, [first.theta], wider=True)
    return sorted(every, key=lambda fit: -fit.bic_gain)


def _near(parts: Sequence[Fit], starts: Sequence[Array]) -> list[Array]:
    """Return parameters to start from: where several parts meet, those of the best."""
    if len(parts) > 1:
        return [max(parts, key=lambda fit: fit.log_likelihood).theta]
    return [*(fit.theta for fit in parts), *starts]
