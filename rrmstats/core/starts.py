"""Starts for the global search: random subsets and spectral filters, screened in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget, Points, evaluate
from rrmstats.core.problem import Problem, SmoothProblem
from rrmstats.core.spectral import spectral_starts

# Subsets fitted by default: as many as hold this number without a bad row, but at least
# USUAL_STARTS and at most MOST_STARTS.
CLEAN_SUBSETS, USUAL_STARTS, MOST_STARTS = 12, 200, 2000
# Rows that they have in all; and past COSTLY_SIZE rows each, where hardly any subset is clean, as
# many as cost the same, but at least LEAST_STARTS.
ROWS_DRAWN, LEAST_STARTS, COSTLY_SIZE = 20_000, 5, 30
# Screening compares risks that differ by factors: two digits of the divergence suffice.
SCREEN_RTOL = 1e-2
# Subsets that get steps of Algorithm 1: this fraction of them, and at least LEAST_REFINED. After
# each round of STEPS steps the best part goes on, and FINALISTS are taken to convergence, and so
# many spectral ones beside them: the order after a few steps is not yet that of the ends.
REFINED, LEAST_REFINED = 0.3, 30
ROUNDS, STEPS, GO_ON = 3, 2, 1 / 3
FINALISTS, SPECTRAL_FINALISTS = 8, 2
# Risks closer than this, relative to the excess, are one minimum.
SAME_RISK = 1e-6
# Fraction of their weight, of what the budget allows, that two starts must put on different rows
# to count as two.
APART = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """The starts of a search, and those worth a descent.

    Attributes
    ----------
    risks : ndarray, shape (m,)
        Risk of each start before any step; infinite where it gave no fit.
    kinds : tuple of str, length m
        "uniform", "given", "subset" or "spectral".
    theta : ndarray, shape (f, k)
        The best, a few steps on; the descendant of the first start comes first.
    origin : ndarray, shape (f,)
        Which start each of them comes from.
    weights : list of ndarray, each of shape (m, n)
        For each of them the weights of the observations at the m starts that lead to it, before
        any step.
    """

    risks: Array
    kinds: tuple[str, ...]
    theta: Array
    origin: np.ndarray
    weights: list[Array]

    def take(self, theta: Array, groups: list[list[int]]) -> Starts:
        """Return some of those worth a descent, moved on to `theta`; each stands for a group."""
        weights = [np.vstack([self.weights[i] for i in group]) for group in groups]
        first = [group[0] for group in groups]
        origin = self.origin[first]
        return replace(self, theta=theta, origin=origin, weights=weights)

    def count_apart(self, chosen: np.ndarray, eps_bar: float) -> int:
        """Return how many starts that lead to the chosen descents are apart from each other.

        Weights within the budget are at most ``2 sqrt(-log(1 - eps_bar) / 2)`` apart (Pinsker).
        """
        least = APART * min(1.0, 2.0 * float(np.sqrt(-0.5 * np.log1p(-eps_bar))))
        weights = np.vstack([self.weights[i] for i in chosen])
        apart: list[int] = []
        for i, own in enumerate(weights):
            distance = 0.5 * np.abs(weights[apart] - own).sum(axis=-1)
            if (distance > least).all():
                apart.append(i)
        return len(apart)


def canonical_order(problem: Problem, budget: Budget) -> np.ndarray:
    """Return the rows sorted by their loss under uniform weights."""
    theta = problem.weighted_fit(budget.uniform(problem.n_obs))
    return np.argsort(problem.losses(theta), kind="stable")


def first_start(risk: Array, theta: Array, kind: str) -> Starts:
    """Return the starts of a search that has only one, with its risk (1,) at theta (1, k)."""
    alone = np.ones((1, 1))
    return Starts(risk.copy(), (kind,), theta, np.zeros(1, int), [alone])


def screened_starts(
    problem: Problem,
    budgets: Sequence[Budget],
    order: np.ndarray,
    first: Array,
    n_starts: Sequence[int],
    rng: np.random.Generator,
    kind: str = "uniform",
) -> list[Starts]:
    """Return `first`, shape (1, k), and the best of many starts, a few steps on, at each bound.

    The searches at all bounds are one batch: fewer subsets at a bound are the first of all.
    """
    budgets = [loosened(budget) for budget in budgets]
    subsets, uniform = random_fits(problem, order, max(n_starts), rng, budgets[0]), None
    if isinstance(problem, SmoothProblem):
        uniform = problem.weighted_fit(budgets[0].uniform(problem.n_obs))
    theta, kinds = [], []
    for budget, count in zip(budgets, n_starts, strict=True):
        fits, names = [first, subsets[:count]], [kind, *["subset"] * count]
        if isinstance(problem, SmoothProblem) and uniform is not None:
            fits.append(spectral_starts(problem, budget, uniform))
            names += ["spectral"] * len(fits[-1])
        theta.append(np.vstack(fits))
        kinds.append(tuple(names))
    search = np.repeat(np.arange(len(budgets)), [len(each) for each in theta])
    together = Budget.each(budgets, [len(each) for each in theta])
    every, spectral = np.vstack(theta), np.concatenate(kinds) == "spectral"
    origin = np.flatnonzero(np.isfinite(every).all(axis=-1))
    risks = np.full(len(every), np.inf)
    points = evaluate(problem, every[origin], together.of(origin), rtol=SCREEN_RTOL)
    at_first: Array = np.zeros((len(every), problem.n_obs))
    risks[origin], at_first[origin] = points.risk, points.weights
    cheap = min(1.0, COSTLY_SIZE / problem.n_params)
    last = max(1, int(cheap * FINALISTS))
    most = [max(last, int(cheap * max(REFINED * each, LEAST_REFINED))) for each in n_starts]
    for _ in range(ROUNDS):
        parts = [np.flatnonzero(search[origin] == i) for i in range(len(budgets))]
        chosen = np.concatenate(
            [
                part[promising(points.risk[part], spectral[origin[part]], count)]
                for part, count in zip(parts, most, strict=True)
            ]
        )
        points, origin = points[chosen], origin[chosen]
        for _ in range(STEPS):
            moved = problem.improved(points.weights, points.theta)
            points = evaluate(
                problem, moved, together.of(origin), points.lambda_, rtol=SCREEN_RTOL
            )
        most = [max(last, int(GO_ON * each)) for each in most]
    found = []
    for i, own_kinds in enumerate(kinds):
        part = np.flatnonzero(search[origin] == i)
        groups = finalists(points[part], spectral[origin[part]], last)
        best, own = part[[group[0] for group in groups]], np.flatnonzero(search == i)
        at_start = [at_first[origin[part[group]]] for group in groups]
        found.append(
            Starts(risks[own], own_kinds, points.theta[best], origin[best] - own[0], at_start)
        )
    return found


def finalists(points: Points, spectral: np.ndarray, last: int) -> list[list[int]]:
    """Return the first start and the best of each kind, each with those of the same risk."""
    best = [[0]]
    for kind, most in ((~spectral, last), (spectral, SPECTRAL_FINALISTS)):
        among = np.flatnonzero(kind & (np.arange(len(kind)) > 0))
        best += [[int(among[i]) for i in group] for group in distinct(points[among], most)]
    return best


def promising(risks: Array, always: np.ndarray, most: int) -> np.ndarray:
    """Return the first start, the best of the others, and those that are `always` tried."""
    rank = np.argsort(np.where(always, np.inf, risks)[1:], kind="stable")[:most] + 1
    found = np.r_[0, rank, np.flatnonzero(always)]
    found = found[np.isfinite(risks[found]) | (found == 0)]
    return found[np.sort(np.unique(found, return_index=True)[1])]


def loosened(budget: Budget) -> Budget:
    """Return a budget that the error of the divergence in screening cannot take below this one.

    Where it just suffices to leave out rows that are very far off, a budget a little smaller
    makes them count, and the best starts look the worst.
    """
    eps_bar = -float(np.expm1((1 + 1.25 * SCREEN_RTOL) * np.log1p(-budget.eps_bar)))
    return replace(budget, eps_bar=eps_bar)


def distinct(points: Points, most: int) -> list[list[int]]:
    """Return groups of points with the same risk, at most `most`, the lowest first."""
    groups: list[list[int]] = []
    for i in np.argsort(points.risk, kind="stable"):
        risk, lowest = points.risk[i], points.risk[groups[-1][0]] if groups else np.nan
        # infinite risks are equal, and have no difference
        if risk == lowest or risk - lowest <= SAME_RISK * points.excess[i]:
            groups[-1].append(int(i))
        elif len(groups) < most:
            groups.append([int(i)])
        else:
            break
    return groups


def affordable_starts(size: int, eps_bar: float, most: int = MOST_STARTS) -> int:
    """Return how many subsets of a size to fit by default.

    Parameters
    ----------
    size : int
        Rows of a subset.
    eps_bar : float
        Upper bound on the share of bad rows.
    most : int, optional
        Number of subsets at most.

    Examples
    --------
    >>> from rrmstats.core.starts import affordable_starts
    >>> [affordable_starts(10, eps_bar) for eps_bar in (0.1, 0.3, 0.4)]
    [200, 424, 1984]
    """
    wanted = CLEAN_SUBSETS / (1 - eps_bar) ** min(size, 100)
    afforded = min(1.0, COSTLY_SIZE / size) * ROWS_DRAWN / size
    return max(LEAST_STARTS, int(min(max(wanted, USUAL_STARTS), most, afforded)))


def draw_keys(n_starts: int, order: np.ndarray, rng: np.random.Generator, budget: Budget) -> Array:
    """Draw a random key for each place in `order`, shape (n_starts, n): small ones come first.

    Rows of larger frequency weight come up more often; those of no weight have infinite keys.
    """
    keys = rng.exponential(size=(n_starts, len(order)))
    if budget.base is not None:
        with np.errstate(divide="ignore"):
            keys /= budget.base[order]
    return keys


def draw_subsets(keys: Array, order: np.ndarray, size: int) -> np.ndarray:
    """Return the rows with the smallest keys, without replacement, shape (n_starts, size).

    Rows are drawn by their place in `order`, so that the draw does not depend on how the
    data were sorted or scaled.
    """
    return order[np.argpartition(keys, size - 1, axis=-1)[:, :size]]


def random_fits(
    problem: Problem, order: np.ndarray, n_starts: int, rng: np.random.Generator, budget: Budget
) -> Array:
    """Return fits to random subsets of rows, shape (n_starts, k).

    Where the first rows drawn do not determine a fit, those that depend on earlier ones are
    passed over for later ones, as in nonsingular subsampling (Koller and Stahel, 2017).
    """
    if not n_starts:
        return np.empty((0, *problem.weighted_fit(budget.uniform(problem.n_obs)).shape))
    size = min(problem.subset_size, problem.n_obs)
    keys = draw_keys(n_starts, order, rng, budget)
    theta = problem.subset_fits(draw_subsets(keys, order, size))
    for i in np.flatnonzero(~np.isfinite(theta).all(axis=-1)):
        drawn = order[np.argsort(keys[i], kind="stable")[: np.isfinite(keys[i]).sum()]]
        theta[i] = problem.determined_fit(drawn)
    return theta
