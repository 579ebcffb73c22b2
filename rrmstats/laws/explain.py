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

from rrmstats.core.block_array import in_blocks
from rrmstats.core.blocks import DECIDING_ROWS, decided_once, deciding_places
from rrmstats.core.conventions import CLOSE, MOST_LEVERAGE, VERY_STRONG
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import Bad, Explained, Explanation, best_of_each, of_groups
from rrmstats.core.newton import damped_root
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
    parameter_parts,
)

# Gain of the log-likelihood in one step below which an explanation is known well enough to be
# compared with others.
ENOUGH = 1e-2
# Size of a parameter of a mixture from which changes of it are relative; of predictors it is one.
SMALL = 1e-3
# Size of the last step in standard errors.
STEP_TOL = 1e-9
# The same where derivatives are those of a sample, by which steps shrink at a steady rate.
SAMPLE_TOL = 1e-6
# Rows from which fits of an explanation start, where there are more.
START_ROWS = 1_000


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsExplanation(Explanation):
    """One explanation of rows, with what it takes to fit it to others.

    Attributes
    ----------
    mixture : Mixture
    params : ndarray, shape (k + m,)
        Theta, then the parameters of the mixture.
    stack : Stack or None
        Its equations, where they are known.
    sound : bool
        Whether the parameters solve them.
    """

    mixture: Mixture
    params: Array
    stack: Stack | None = None
    sound: bool = False


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
    like : Stack or None
        The equations of a sample, whose derivatives stand for those of all rows.
    """

    rows: PredictorRows
    mixture: Mixture
    params: Array
    lower: Array | None = None
    good: GoodRows | None = None
    like: Stack | None = None

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

    def explanation(self, n_plain: int) -> RowsExplanation:
        """Return the fit as an explanation; plain good rows have `n_plain` parameters."""
        return RowsExplanation(
            good=self.mixture.good.kind,
            bad=self.mixture.bad.kind,
            log_likelihood=self.log_likelihood,
            penalty=(len(self.others) - n_plain) * float(np.log(self.rows.total)),
            eps=float(self.rows.mass @ self.found.bad_share) / self.rows.total,
            prob_bad=of_groups(1.0 - self.found.good, self.rows.groups),
            theta=self.theta,
            n_params=len(self.others) - n_plain,
            mixture=self.mixture,
            params=self.params,
        )

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest values of all parameters."""
        low, high = self.mixture.bounds
        free = np.full(self.rows.n_params, np.inf)
        least = -free if self.lower is None else self.lower
        return np.concatenate([least, low]), np.concatenate([free, high])

    @cached_property
    def stack(self) -> Stack:
        """The equations, in one pass over the rows."""
        like = self.like
        if like is None:
            sums, information, slopes = self.rows.sums(partial(_sums, self.mixture), self.params)
        else:
            sums = self.rows.sums(partial(_pulls, self.mixture), self.params)
            information, slopes = like.information, like.slopes
        (low, high), pull = self.bounds, sums[:-1]
        held = ((self.params <= low) & (pull <= 0)) | ((self.params >= high) & (pull >= 0))
        return Stack(~held, sums, information, slopes)

    @property
    def farthest(self) -> float:
        """The longest step in standard errors: from the estimate of a sample all the way."""
        if self.like is None:
            return 1.0
        return 3.0 * (len(self.params) * self.rows.total / DECIDING_ROWS) ** 0.5

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
        parts = zip(designs, parameter_parts(step, designs), strict=False)
        squares = [(design @ part) ** 2 @ mass for design, part in parts]
        return step / max(float(max(squares) / max(mass.sum(), TINY)) ** 0.5, 1.0)


def fitted(
    fit: Fit,
    steps: int = 60,
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
        # The gain still to be expected, were steps to shrink as the last two did.
        ahead = gain**2 / (last - gain) if 0 < gain < last else np.inf
        if abs(gain) < enough or fit.bic_gain + 5.0 * ahead < aim:
            break
        last = gain
    return fit


def _functions(
    mixture: Mixture, seen: Responses, predictors: Sequence[Array], rows: GoodRows | None = None
) -> tuple[Array, Array, GoodRows]:
    """Return the equations of rows, information, and what they are like if good.

    The shares of bad rows are last among the equations, (p + 1, n). The information on the
    predictors is that were the good rows known, (q, q, n). Differences may step out of the range
    of a parameter that is at its end.
    """
    with np.errstate(all="ignore"):
        found = mixture.probabilities(seen, predictors, rows)
        slopes, information = (
            np.where(found.good > 0, found.good * each, 0.0)
            for each in (found.rows.slopes, found.rows.information)
        )
        others = mixture.equations(seen, found)
    others = np.where(np.isfinite(others), others, 0.0)
    equations = np.concatenate([slopes, others, found.bad_share[None]])
    return equations, information, found.rows


def _totals(rows: PredictorRows, equations: Array, columns: Array) -> Array:
    """Return sums over rows of the equations, times their designs, and times columns (n, c)."""
    parts = zip(rows.designs, equations, strict=False)
    by_design = [design.T @ (one[:, None] * columns) for design, one in parts]
    return np.vstack([*by_design, equations[len(by_design) :] @ columns])


def _pulls(mixture: Mixture, rows: PredictorRows, params: Array) -> Array:
    """Return the sums of the equations and of the shares, shape (k + m + 1,)."""
    equations = _functions(mixture, rows.seen, rows.predictors(params))[0]
    return _totals(rows, equations, rows.mass[:, None])[:, 0]


def _sums(mixture: Mixture, rows: PredictorRows, params: Array) -> tuple[Array, Array, Array]:
    """Return the same sums, the information on theta, and the derivatives of the sums."""
    predictors, seen = rows.predictors(params), rows.seen
    here, information, good = _functions(mixture, seen, predictors)
    q, once = len(rows.designs), rows.mass[:, None]
    n_good = q + len(mixture.good.bounds[0])  # bad rows change with their parameters alone
    slopes = []
    for j, predictor in enumerate(predictors):
        size = 1e-5 * np.maximum(np.abs(predictor), 1.0 if j < q else SMALL)
        # Each row by itself, or where rows have a part in the equations of others each column.
        along: list[tuple[Array, Any, Array]] = [
            (size, size, once * rows.designs[j] if j < q else once)
        ]
        if mixture.together.groups is not None and j < q:
            design = rows.designs[j]
            units = size.max() / np.maximum(np.abs(design).max(axis=0), TINY)
            along = [
                (unit * column, unit, once) for unit, column in zip(units, design.T, strict=True)
            ]
        for length, unit, columns in along:
            ends = []
            for moved in (predictor + length, predictor - length):
                at = [*predictors[:j], moved, *predictors[j + 1 :]]
                ends.append(_functions(mixture, seen, at, good if j >= n_good else None)[0])
            slopes.append(_totals(rows, np.subtract(*ends) / (2.0 * unit), columns))
    sums = _totals(rows, here, once)[:, 0]
    return sums, design_gram(rows.designs, rows.mass * information), np.hstack(slopes)


class Stack(NamedTuple):
    """The equations of all rows at a fit.

    Attributes
    ----------
    free : ndarray, shape (k + m,)
        Which parameters no bound holds.
    sums : ndarray, shape (k + m + 1,)
        The equations, and the sum of the shares of bad rows.
    information : ndarray, shape (k, k)
        On theta, were the good rows known.
    slopes : ndarray, shape (k + m + 1, k + m)
        The derivatives of `sums`.
    """

    free: np.ndarray
    sums: Array
    information: Array
    slopes: Array

    @property
    def inverse(self) -> Array:
        """Minus the inverse of the Jacobian of the free parameters, zero for others."""
        jacobian, places = self.slopes[:-1], np.ix_(self.free, self.free)
        found = np.zeros_like(jacobian)
        unit = np.sqrt(np.maximum(np.abs(np.diag(jacobian)[self.free]), 1e-300))
        scaled = jacobian[places] / np.outer(unit, unit)
        found[places] = -np.linalg.pinv(scaled) / np.outer(unit, unit)
        return found


def _newton_step(fit: Fit) -> tuple[Array, float]:
    """Return a step to the root of the equations, and its size in standard errors."""
    now, k = fit.stack, len(fit.theta)
    step = now.inverse @ np.where(now.free, now.sums[:-1], 0.0)
    unit = np.abs(fit.others) + SMALL
    errors = max(float(step[:k] @ now.information @ step[:k]), 0.0) ** 0.5
    size = max(errors, float(np.abs(step[k:] / unit).max(initial=0.0)))
    step[:k] /= max(size / fit.farthest, 1.0)
    step[k:] = np.clip(step[k:], -0.7 * unit, 0.7 * unit)
    return step, size


def rooted(fit: Fit, tol: float = STEP_TOL) -> tuple[Fit, bool]:
    """Return the root of the equations that steps of EM lead to, or a fit near none, and which.

    The last step of Newton's method is smaller than `tol` standard errors.
    """
    for _ in range(4):
        root, size = damped_root(fit, _newton_step, Fit.moved, tol, 30)  # a few steps, or never
        if size <= tol:
            return root, True
        if fit.like is not None:  # derivatives of a sample do not lead there
            return rooted(replace(fit, like=None), tol)
        if fit.rows.in_blocks:  # where steps of EM are not taken
            break
        fit = fitted(fit, 30, 0.0)
    return fit, False


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
    now, rows, k = fit.stack, fit.rows, len(fit.theta)
    root, inverse = inverse_root(now.information), now.inverse
    kernel = partial(_row_moves, fit.mixture, root.T @ root)
    found = rows.map(kernel, fit.params, (len(inverse) + 1,))
    share = min(float(now.sums[-1]) / rows.total, fit.mixture.eps_bar)  # rounding may leave more
    by_theta = np.column_stack([inverse[:k], np.zeros(k)])
    eps = found @ np.append(now.slopes[-1] @ inverse, 1.0) - share
    if fit.mixture.full:  # the share is its bound, whatever the rows are
        eps = 0.0 * eps
    return Moves(rows.total * (found @ by_theta.T), eps, now.free[:k], share)


def _row_moves(mixture: Mixture, inverse: Array, rows: PredictorRows, params: Array) -> Array:
    """Return the functions of rows, those of theta with the factors of HC3, (n, k + m + 1)."""
    here, weights, _ = _functions(mixture, rows.seen, rows.predictors(params))
    q, leverage = len(weights), design_leverage(rows.designs, inverse, weights)
    here[:q] /= 1.0 - np.clip(leverage, 0.0, MOST_LEVERAGE)
    return np.column_stack([design_rows(rows.designs, here[:q]), here[q:].T])


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedRows:
    """The explanation of rows that is reported.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        Its parameters in the coordinates of the problem.
    converged : bool
        Whether they solve its equations.
    explained : Explained
    mass : ndarray, shape (n,)
        How often each row counts.
    good : ndarray, shape (n,)
        Probability of each row to be good.
    eps_error : float
        Standard error of the share of bad rows.
    moves : ndarray, shape (n, k)
        Influence functions of theta, which moves by their mean.
    alternatives : tuple of ndarray, shape (2, k)
        See `Estimate`.
    """

    theta: Array
    converged: bool
    explained: Explained
    mass: Array
    good: Array
    eps_error: float
    moves: Array
    alternatives: tuple[Array, ...] = ()

    def reported(self, first: Estimate, losses: Array, sound: bool = True) -> dict[str, Any]:
        """Return what estimates of all models have in common, by the names there.

        Parameters
        ----------
        first : Estimate
            That of the first step.
        losses : ndarray, shape (n,)
            Losses of its problem at the parameters.
        sound : bool, optional
            Whether the parameters may be reported as a solution.
        """
        kept, old = self.mass * self.good, first.solution
        solution = old.continued(self.theta, losses, kept / kept.sum(), old.lambda_, first.setting)
        return {
            "first": first,
            "setting": first.setting,
            "solution": replace(solution, converged=sound and self.converged),
            "explained": self.explained,
            "eps_hat": self.explained.chosen.eps,
            "eps_hat_se": self.eps_error,
            "alternatives": self.alternatives,
            "moves": self.moves,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedResponses(ExplainedRows):
    """The same of responses that have a density.

    Attributes
    ----------
    fit : Fit
    eps_moves : ndarray, shape (n,)
        Influence functions of the share of bad rows.
    known : ndarray, shape (k,)
        Which parameters of theta no bound holds.
    """

    fit: Fit
    eps_moves: Array
    known: np.ndarray


def explained_rows(
    rows: PredictorRows,
    laws: Laws,
    candidates: Sequence[Array],
    eps_bar: float,
    sample: Explained | None = None,
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
    sample : Explained, optional
        Explanations of a sample of the rows, the best of which all of them have.
    """
    n = len(rows.seen.endog)

    def decide() -> tuple[Fit | None, Explained]:
        if sample is not None:
            return None, sample
        some, places = rows, deciding_places(n)
        if laws.divisible and rows.groups is None and (rows.in_blocks or n > len(places)):
            some = rows.part(places)
        starts = [*candidates, *_without_zeros(some, laws, candidates)]
        fits = all_fits(some, laws, starts, eps_bar)
        best, sound = _best(fits)
        chosen, *others = (fit.explanation(len(laws.good.bounds[0])) for fit in (best, *fits))
        chosen = replace(chosen, stack=best.stack, sound=sound)
        others = [each for each in others if each.name != chosen.name]
        told = Explained(explanations=best_of_each([chosen, *others]), chosen=chosen)
        return best if some is rows else None, told

    of_all, told = decided_once(in_blocks(rows.seen.endog), decide)
    assert isinstance(told.chosen, RowsExplanation)
    if of_all is None:
        best, sound = rooted(of_all_rows(told.chosen, rows, eps_bar, laws.lower), SAMPLE_TOL)
    else:
        best, sound = of_all, told.chosen.sound
    good = rows.map(partial(_good, best.mixture), best.params)
    moved = moves(best)
    chosen = replace(
        told.chosen,
        prob_bad=of_groups(1.0 - good, rows.groups),
        eps=moved.share,
        theta=best.theta,
    )
    together = rows.together
    return ExplainedResponses(
        theta=best.theta,
        converged=sound,
        explained=told.with_chosen(chosen),
        mass=rows.mass,
        good=good,
        eps_error=float(np.sqrt(together.decisions @ together.sums(moved.eps) ** 2)) / rows.total,
        moves=moved.theta,
        fit=best,
        eps_moves=moved.eps,
        known=moved.known,
    )


def of_all_rows(
    few: RowsExplanation, rows: PredictorRows, eps_bar: float, lower: Array | None
) -> Fit:
    """Return the explanation of a sample as a fit of all rows that is yet to be polished."""
    mixture, like = replace(few.mixture, eps_bar=eps_bar, total=rows.total), None
    if few.stack is not None:
        growth = rows.total / few.mixture.total
        like = few.stack._replace(
            information=growth * few.stack.information,
            slopes=growth * few.stack.slopes,
        )
    return Fit(rows, mixture, few.params, lower, like=like)


def _best(fits: Sequence[Fit]) -> tuple[Fit, bool]:
    """Return the root that is best among those that fits in their order lead to.

    The first fit, and False, where none leads to a root.
    """
    best, found = fits[0], False
    for fit in fits:
        if found and fit.bic_gain <= best.bic_gain:
            break
        root, sound = rooted(fit)
        if sound and not (found and root.bic_gain <= best.bic_gain):
            best, found = root, True
    return best, found


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


def _good(mixture: Mixture, rows: PredictorRows, params: Array) -> Array:
    return mixture.probabilities(rows.seen, rows.predictors(params)).good


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
                20,
                0.3 * rough,
                held=True,
            )
            for start in starts
        ]
        best = max(held, key=lambda fit: fit.log_likelihood)
        tried.append(fitted(best, 8, aim=aim))
    tried.sort(key=lambda fit: -fit.log_likelihood)
    kept = tried[: 2 if rough == 1.0 else 1]
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
    # How far below the best an explanation may end that is fitted to its end: half the difference
    # in BIC that tells them apart, or where another has it as a part hardly tells.
    behind, close = 0.5 * VERY_STRONG, 0.5 * CLOSE
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
        aim = least - close if place in needed else best - behind
        parts = [found[i][0] for i in bad.parts if found[i]]
        if bad.share is not Share.NOTHING and rows.groups is not None:
            found.append([])  # rows of a group have one share
            continue
        tried = len(parts) == len(bad.parts) and all(fit.bic_gain > least for fit in parts)
        found.append(fits(bad, _near(parts, starts)) if tried else [])
    every = plain + [fit for each in found for fit in each]
    if laws.wider is not None:
        first = max(every, key=lambda fit: fit.bic_gain)
        aim = first.bic_gain - behind
        every += fits(NO_BAD_ROWS, [plain[0].theta], wider=True)
        if first.bic_gain > least:
            every += fits(first.mixture.bad, [first.theta], wider=True)
    return sorted(every, key=lambda fit: -fit.bic_gain)


def _near(parts: Sequence[Fit], starts: Sequence[Array]) -> list[Array]:
    """Return parameters to start from: where several parts meet, those of the best."""
    if len(parts) > 1:
        return [max(parts, key=lambda fit: fit.log_likelihood).theta]
    return [*(fit.theta for fit in parts), *starts]
