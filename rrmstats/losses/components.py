"""Principal components: distances off a subspace, and the scatter of scores within it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.stats import chi2

from rrmstats.core.block_array import aligned, blocked, row_map, row_sums, taken
from rrmstats.core.blocks import decided_once
from rrmstats.core.consistency import gaussian_efficiency, untilted_variance
from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.estimate import Estimate, Untilted, standardized_departures
from rrmstats.core.explanations import FLAGGED, Bad, Explained, of_groups, without_comparison
from rrmstats.core.frames import sign_frame
from rrmstats.core.grouped import GroupedProblem, Groups
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import influence_covariance, minimum_influence, relative_weights
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.core.starts import USUAL_STARTS, affordable_starts
from rrmstats.laws.densities import Densities, distance_densities
from rrmstats.laws.gaussian import Mixtures, seen
from rrmstats.laws.gaussian_choice import best_polished
from rrmstats.laws.planes import (
    PlaneRows,
    distinct_axes,
    probabilities_at,
    radial_slopes,
    seen_by,
    settled,
)
from rrmstats.losses.covariance import (
    Candidate,
    CovarianceEstimate,
    CovarianceProblem,
    ExplainedCovariance,
    MomentProblem,
    distinct_ends,
    moment_sums,
    normalized,
    precision_order,
    robust_starts,
    some_rows,
    subspace_cutoff,
    untilted_variances,
)
from rrmstats.losses.gaussian_rows import DECIDING_ROWS, continued, some_places
from rrmstats.losses.matrices import check_range, thinned, weighted_scatter

# Coordinates of a step up to which Newton's steps cost less in all than Algorithm 1, which takes
# hundreds of steps where no direction has a variance of its own.
NEWTON_MAX = 60
# Probability that the true subspace is refused because of its risk.
# Convention: one sample in a thousand.
CHANCE = 1e-3
# Least part of the rows that a subspace is taken to rest on.
# Convention: a tenth.
LEAST_BREAD = 0.1
# Rows per variable from which the errors of loadings can be relied on.
# Convention: five rows per parameter.
ROWS_PER_VARIABLE = 5
# Size of rows in partitions up to which they come to memory for the second step.
MOST_GIGABYTES = 1.0
# Rows that may always be bad: less than one is none.
LEAST_BAD = 0.5


class SubspaceProblem(MomentProblem):
    """Squared distances to a q-dimensional affine subspace.

    theta holds a point of the subspace (d,), then its orthonormal basis row by row (d, q). The
    local coordinates of a step turn the basis towards its complement and shift the point along
    the complement.

    Parameters
    ----------
    data : ndarray, shape (n, d)
    q : int
        Dimension of the subspace, less than d.
    demean : bool, optional
        False keeps the subspace through the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import SubspaceProblem
    >>> problem = SubspaceProblem(rng.standard_normal((50, 3)) * [5.0, 1.0, 1.0], 1)
    >>> point, basis = problem.split(minimize(problem, eps_bar=0.1).theta)
    >>> basis.shape, bool(abs(basis[0, 0]) > 0.95)
    ((3, 1), True)
    """

    least_risk = 0.0

    def __init__(self, data: Array, q: int, demean: bool = True) -> None:
        super().__init__(data, demean)
        self.q, self.n_params = q, q + demean
        unit = 4 * (self.dim + 4) * np.finfo(float).eps
        squares = np.einsum("nd,nd->n", data, data)
        # The subspace is rounded as rows of usual size are, also where a row is near its point.
        usual = 0.0 if self.blocks is not None else float(np.median(squares))
        self._noise = unit**2 * (squares + usual)

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return the point (..., d) and the basis (..., d, q)."""
        d = self.dim
        return theta[..., :d], theta[..., d:].reshape(*theta.shape[:-1], d, self.q)

    def join(self, point: Array, basis: Array) -> Array:
        """Return theta of a point and a basis."""
        flat = basis.reshape(*basis.shape[:-2], self.dim * self.q)
        return np.concatenate([point, flat], axis=-1)

    def losses(self, theta: Array) -> Array:
        """Return squared distances, zero where rounding alone could produce them."""
        if self.blocks is not None:
            return row_map(losses_of, self.data, make=self.with_rows, theta=theta, tail=())
        point, basis = self.split(theta)
        centered = self.data - point[..., None, :]
        rest = centered - (centered @ basis) @ np.swapaxes(basis, -1, -2)
        losses = np.einsum("...nd,...nd->...n", rest, rest)
        losses[losses <= self._noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted mean and leading eigenvectors, shape (..., d + d * q)."""
        point = weights @ self.data * self.demean
        return self._leading(point, weighted_scatter(self.data, weights, point))

    def _leading(self, point: Array, moment: Array) -> Array:
        """Return theta of a point and the leading eigenvectors of a covariance."""
        vectors = np.linalg.eigh(moment)[1]
        return self.join(point, vectors[..., ::-1][..., : self.q])

    def frame(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return scores (n, q), coordinates off the subspace (n, d - q), and their basis."""
        point, basis = self.split(theta)
        off = complement(basis)
        centered = self.data - point
        return centered @ basis, centered @ off, off

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss in the local coordinates, shape (n, k)."""
        x, y, _ = self.frame(theta)
        return row_map(turning_gradients, x, y, demean=self.demean)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        x, y, _ = self.frame(theta)
        codim = self.dim - self.q
        inside = x.T @ (weights[:, None] * x)
        outside = y.T @ (weights[:, None] * y)
        turn = 2.0 * (np.kron(np.eye(codim), inside) - np.kron(outside, np.eye(self.q)))
        if not self.demean:
            return turn
        cross = 2.0 * np.kron(np.eye(codim), (weights @ x)[:, None])
        return np.block([[turn, cross], [cross.T, 2.0 * weights.sum() * np.eye(codim)]])

    @property
    def n_coordinates(self) -> int:
        """Length of a step."""
        return (self.dim - self.q) * (self.q + self.demean)

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.dim, eps_bar, USUAL_STARTS)

    @property
    def newton_pays(self) -> bool:
        """Whether steps are short enough for their Hessian."""
        return self.n_coordinates <= NEWTON_MAX

    def robust_starts(self) -> Array:
        """Return the subspace of the leading axes of the signs, shape (1, d + d * q)."""
        center, axes = sign_frame(self.data, self.demean)
        return self.join(center, axes[:, : self.q])[None]

    def pulls(self, theta: Array) -> Array:
        """Return the observations: those far out along one direction turn the subspace."""
        return self.data

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away in local coordinates, shape (..., d + d * q)."""
        point, basis = self.split(theta)
        off = complement(basis)
        codim = self.dim - self.q
        turn = step[..., : codim * self.q].reshape(*step.shape[:-1], codim, self.q)
        if self.demean:
            point = point + (off @ step[..., codim * self.q :, None])[..., 0]
        return self.join(point, np.linalg.qr(basis + off @ turn)[0])

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the subspaces through subsets of rows, shape (m, d + d * q)."""
        rows = self.data[subsets]
        point = rows.mean(axis=1) if self.demean else np.zeros((len(subsets), self.dim))
        right = np.linalg.svd(rows - point[:, None, :], full_matrices=False)[2]
        return self.join(point, np.swapaxes(right[:, : self.q], 1, 2))

    @property
    def with_rows(self) -> Callable[..., SubspaceProblem]:
        """A function that makes the problem of other rows."""
        return partial(SubspaceProblem, q=self.q, demean=self.demean)


def losses_of(data: Array, make: Callable[..., SubspaceProblem], theta: Array) -> Array:
    """Return the losses of some rows, shape (n,), as one step of an expression."""
    return make(data).losses(theta)


def turning_gradients(x: Array, y: Array, demean: bool) -> Array:
    """Return the gradients of losses (n, k), from coordinates on a basis and off it."""
    turn = -2.0 * (y[:, :, None] * x[:, None, :]).reshape(len(x), x.shape[1] * y.shape[1])
    return np.hstack([turn, -2.0 * y]) if demean else turn


def complement(basis: Array) -> Array:
    """Return an orthonormal basis of what is orthogonal to a basis, shape (..., d, d - q)."""
    return np.linalg.qr(basis, mode="complete")[0][..., basis.shape[-1] :]


def risk_at(
    problem: SubspaceProblem, weighed: Problem, budget: Budget, point: Array, basis: Array
) -> float:
    """Return the risk of a point (d,) and a basis (d, q), where rows or groups of them weigh."""
    theta = problem.join(point, basis)
    return float(evaluate(weighed, theta[None], budget).risk[0])


def plane_risk(problem: SubspaceProblem, setting: Setting) -> Callable[[Array, Array], float]:
    """Return the risk of subspaces at the rows of a problem, or at their groups."""
    if setting.groups is None:
        return partial(risk_at, problem, problem, setting.budget(problem.n_obs))
    groups = Groups(setting.groups, int(setting.groups.max()) + 1, setting.freq_weights)
    budget = replace(setting, freq_weights=groups.sizes).budget(groups.count)
    return partial(risk_at, problem, GroupedProblem(problem, groups), budget)


@dataclass(frozen=True, eq=False)
class ExplainedPlane:
    """A subspace with the explanation of the distances off it.

    Attributes
    ----------
    rows : PlaneRows
    mixture : Mixtures
        A batch of one.
    told : Explained
    settled : bool
        Whether it converged.
    """

    rows: PlaneRows
    mixture: Mixtures
    told: Explained
    settled: bool

    def probabilities(self, data: Array) -> tuple[Array, Array]:
        """Return the probability of each row to be good, and its pull on the fit, (n,) each.

        Rows in memory or in blocks.
        """
        both = row_map(self._of_rows, data, tail=(2,))
        return both[:, 0], both[:, 1]

    def _part(self, data: Array) -> PlaneRows:
        """Return some of the rows, within what is known of all."""
        if self.rows.groups is not None:  # of all rows, in memory
            return replace(self.rows, data=data)
        exog = np.ones((len(data), self.rows.n_coef))
        return replace(
            self.rows, data=data, exog=exog, counts=np.ones(len(data)), frame=self.rows.whole
        )

    def _of_rows(self, data: Array) -> Array:
        return np.column_stack(probabilities_at(self._part(data), self.mixture))

    @cached_property
    def bread(self) -> float:
        """Mean pull of a row and what its slope adds to it, as of elliptical rows."""
        pull = probabilities_at(self.rows, self.mixture)[1]
        slopes = radial_slopes(self.rows, self.mixture)
        found = pull + slopes / (self.rows.freedom * self.rows.together.sizes)
        return max(float(self.rows.counts @ found) / self.rows.total, LEAST_BREAD)

    def turns(self, data: Array) -> Array:
        """Return how the basis turns off itself, shape (n, d, q), for rows in memory or blocks.

        The leading axes of a covariance turn towards another by their cross moment over the
        difference of the variances. Weights of rows fall with their distances, of which `bread`
        takes account.
        """
        return row_map(self._turns_of, data, tail=(self.rows.dim, self.rows.q))

    def _turns_of(self, data: Array) -> Array:
        part, q = self._part(data), self.rows.q
        values, axes = np.linalg.eigh(self.mixture.scatter[0])
        values, axes = values[::-1], axes[:, ::-1]
        centered = (data - part.fitted(self.mixture.coef)[0]) @ axes
        pull = probabilities_at(part, self.mixture)[1] / self.bread
        gap = np.maximum(values[:q] - values[q:, None], np.finfo(float).tiny)
        moved = (pull[:, None] * centered[:, q:])[:, :, None] * centered[:, None, :q] / gap
        return np.asarray(axes[:, q:] @ moved)


def plane_distances(plane: ExplainedPlane) -> Array:
    """Return the distances of the rows off a subspace in standard deviations, shape (n,)."""
    return np.sqrt(seen(plane.rows, plane.mixture).square[0])


def plane_densities(plane: ExplainedPlane, at: Array) -> Densities:
    """Return the densities of `plane_distances`, at each of (m,)."""
    return distance_densities(plane.rows, plane.mixture, at)


def explained_plane(
    problem: SubspaceProblem, solution: Solution, setting: Setting, codim: int
) -> ExplainedPlane:
    """Return the best explanation of the rows around a subspace.

    Which axes off it have variances of their own is told by the first step, and once more by the
    explanation.

    Parameters
    ----------
    problem : SubspaceProblem
    solution : Solution
        The first step.
    setting : Setting
    codim : int
        Dimensions off the subspace.
    """
    n, groups = problem.n_obs, setting.groups
    counts = aligned(setting.counts(n), problem.blocks)
    places = some_places(n, groups) if n > DECIDING_ROWS else np.arange(n)
    rows = plane_rows(problem, solution, setting, codim, places, counts)
    starts = end_candidates(problem, solution, setting, rows)
    for _ in range(2):
        rows = replace(rows, own=own_axes(rows, starts[0][1], setting.eps_bar))
        every = [*starts, *robust_starts(rows, setting.eps_bar)]
        told, mixture, done = best_polished(rows, every, setting.eps_bar, settled)
        if own_axes(rows, mixture.scatter[0], told.chosen.eps) == rows.own:
            break
        starts = [(mixture.coef[0], mixture.scatter[0]), *starts[1:]]
    if len(places) < n:
        own = rows.own
        rows = replace(
            plane_rows(problem, solution, setting, codim, np.arange(n), counts), own=own
        )
        mixture, done = settled(rows, seen_by(mixture, n), setting.eps_bar)
        prob_bad = of_groups(1 - mixture.good[0], groups)
        told = told.with_chosen(replace(told.chosen, prob_bad=prob_bad))
    return ExplainedPlane(rows, mixture, told, done)


def plane_rows(
    problem: SubspaceProblem,
    solution: Solution,
    setting: Setting,
    codim: int,
    places: np.ndarray,
    counts: Array,
) -> PlaneRows:
    """Return rows of a problem in memory, and which subspaces may explain them.

    Parameters
    ----------
    problem, solution, setting, codim
        As `explained_plane` takes them.
    places : ndarray of int, shape (m,)
    counts : ndarray or BlockArray, shape (n,)
    """
    data, counts = taken(places, problem.data, counts)
    groups = setting.groups
    if groups is not None:
        groups = np.unique(groups[places], return_inverse=True)[1]
    among = replace(setting, freq_weights=counts, groups=groups)
    risk = plane_risk(problem.with_rows(data), among)
    exog = np.ones((len(data), int(problem.demean)))
    least = risk(*problem.split(solution.theta))
    return PlaneRows(
        data, exog, counts, groups=groups, q=problem.q, codim=codim, own=0, risk=risk,
        most_risk=least * excess_risk(problem, float(counts.sum()), setting.eps_bar, codim),
    )  # fmt: skip


def excess_risk(problem: SubspaceProblem, wnobs: float, eps_bar: float, codim: int) -> float:
    r"""Return the relative risk that the true subspace exceeds with probability CHANCE.

    Relative to the least risk its excess is that of a fit with efficiency e,
    :math:`\chi^2_k / (g n e)` with k coordinates and g dimensions off the subspace.
    """
    good = wnobs * (1 - eps_bar) * gaussian_efficiency(eps_bar, codim)
    return 1 + float(chi2.isf(CHANCE, codim * problem.n_params)) / (codim * good)


def own_axes(rows: PlaneRows, scatter: Array, bad: float) -> int:
    """Return how many axes off the leading ones of a scatter have variances of their own."""
    values = np.maximum(np.linalg.eigvalsh(scatter)[::-1][rows.q :], 0.0)
    return distinct_axes(values, rows.codim, rows.total * (1 - bad))


def end_candidates(
    problem: SubspaceProblem, solution: Solution, setting: Setting, rows: PlaneRows
) -> list[Candidate]:
    """Return the minima that the search met, with their weighted covariances made consistent.

    The variances off the subspace become those of good rows, and those within grow as much, so
    that the leading axes remain so.
    """
    found: list[Candidate] = []
    data, base = rows.data, rows.counts / rows.total
    for theta, lambda_ in distinct_ends(problem, solution, setting, solution.risk):
        losses = problem.with_rows(data).losses(theta)
        weights = entropy_weights(losses, setting.eps_bar, freq_weights=base).weights
        location = weights @ data * problem.demean
        values, axes = np.linalg.eigh(weighted_scatter(data, weights, location))
        values, q = np.maximum(values[::-1], 0.0), problem.q
        off = untilted_variances(values[q:], lambda_, setting.eps_bar)
        grown = float(off.sum() / max(values[q:].sum(), np.finfo(float).tiny))
        full = np.r_[values[:q] * max(grown, 1.0), off]
        axes = axes[:, ::-1]
        found.append((location[None][: int(problem.demean)], (axes * full) @ axes.T))
    return found


class ComponentsProblem(SubspaceProblem):
    """The subspace problem in the span of the data, scaled: wide data cost no more than tall.

    Observations are ``center + column_unit * unit * (data @ span.T)``, with the columns of
    `span` orthonormal. `codim` is the number of dimensions off the subspace, of data that may span
    fewer; constant columns are none of them.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import ComponentsProblem
    >>> z = rng.standard_normal((50, 3)) * [5.0, 1.0, 1.0]
    >>> problem = ComponentsProblem(z, 1, True, np.ones(3))
    >>> minimize(problem, eps_bar=0.1).converged
    True
    """

    seeks_minima = True

    def __init__(self, data: Array, q: int, demean: bool, column_unit: Array) -> None:
        n, d = data.shape
        if blocked(data) and d >= n:
            raise ValueError(
                f"data of {n} rows and {d} columns lie in blocks, which needs more rows than "
                "columns; bring them into memory"
            )
        self.column_unit = column_unit
        (some,) = thinned(data)
        self.center = np.median(some, axis=0) if demean else np.zeros(d)
        with np.errstate(over="ignore"):
            length = np.linalg.norm((some - self.center) / column_unit, axis=1)
        spread = np.median(length)
        self.unit = float(np.exp2(np.round(np.log2(spread)))) if spread > 0 else 1.0
        scaled = (data - self.center) / (column_unit * self.unit)
        check_range(scaled)
        varies = np.abs(scaled).max(axis=0) > 0
        if not varies.sum() > q:
            varies[:] = True
        self.span, scaled = np.eye(d)[:, varies], scaled[:, varies]
        self.codim = self.span.shape[1] - q
        if scaled.shape[1] > n:
            wide = np.linalg.svd(scaled, full_matrices=False)[2].T
            self.span, scaled = self.span @ wide, scaled @ wide
        if not q < scaled.shape[1]:
            raise ValueError(
                f"n_components={q} is too large: data of shape {data.shape} span "
                f"{scaled.shape[1]} dimensions, and n_components must be smaller than that"
            )
        super().__init__(scaled, q, demean)

    def consistent(self, solution: Solution, setting: Setting) -> ComponentsEstimate:
        """Return the estimate of the first step, its eigenvalues consistent."""
        inner = self.scores(self.split(solution.theta)[1], setting)
        noise, bad = None, (solution.losses > 0) * float(setting.eps_bar > 0)
        if 0 not in (setting.eps_bar, solution.lambda_, solution.risk):
            noise = self.first_noise(solution, setting)
            bad = 1 - noise.tilts(solution.losses)
        spread, total = setting.spread(self.n_obs), setting.wnobs(self.n_obs)
        mean = float(spread @ bad)
        share = max(mean, 0.0), float(np.sqrt(spread @ (bad - mean) ** 2 / total))
        if noise is not None:
            # Rows that are bad off the subspace and within it need not be the same, but often are.
            share = max(share, (inner.eps_hat, inner.eps_hat_se))
        found = self._estimate(solution, setting, inner, noise)
        return replace(found, eps_hat=min(share[0], setting.eps_bar), eps_hat_se=share[1])

    def scores(self, basis: Array, setting: Setting) -> CovarianceEstimate:
        """Return location and scatter of the scores on a basis, by a search of their own.

        Rows far out in the subspace lose no weight in the search for it, and would otherwise
        inflate the eigenvalues. Where least risk is that of few rows, the scatter is that of the
        middle half.
        """
        problem = CovarianceProblem(self.data @ basis, self.demean)
        found = problem.consistent(global_minimum(problem, setting), setting)
        if setting.eps_bar == 0 or found.plane is not None:
            return found
        location, scatter = problem.split(found.solution.theta)
        rows = some_rows(problem, setting)
        if not rows.refuses(location, scatter / found.ratio):
            return found
        starts = robust_starts(rows, setting.eps_bar)
        if not starts:
            return found
        location, scatter = starts[0][0].sum(axis=0), starts[0][1]
        mean, cov = problem.to_units(location, scatter)
        return replace(found, mean=mean, raw_cov=cov * found.ratio)

    def explained_scores(self, basis: Array, setting: Setting, kept: Array) -> CovarianceEstimate:
        """Return the scatter of the best explanation of the scores on a basis.

        `kept`, shape (n,), is what counts of each row because of its distance off the subspace.
        Rows that are bad off the subspace and within it are at most eps_bar together.
        """
        first, n = self.scores(basis, setting), self.n_obs
        good = float(setting.spread(n) @ kept)
        left = max(1 - (1 - setting.eps_bar) / good, LEAST_BAD / setting.wnobs(n))
        counted = replace(setting, freq_weights=setting.counts(n) * kept)
        return first.problem.explained(first, counted, left)

    def first_noise(self, solution: Solution, setting: Setting) -> PlaneNoise:
        """Return the noise off the subspace of least risk."""
        _, off, _ = self.frame(solution.theta)
        mass, first, second = row_sums(moment_sums, off, solution.weights)
        seen = np.linalg.eigvalsh(second / mass - np.outer(first, first) / mass**2)[::-1]
        seen = np.maximum(seen, 0.0)
        found = untilted_variances(seen, solution.lambda_, setting.eps_bar)
        left = seen[seen > 0] / found[seen > 0]
        # 1 - left is 2 v / lambda, at the lambda that counts.
        rate = float(((1 - left) / (2 * seen[seen > 0])).max(initial=0.0))
        return PlaneNoise(found, rate, float(np.exp(-0.5 * np.log(left).sum())))

    def second_step(self, first: Estimate) -> ComponentsEstimate:
        """Return the estimate of the best explanation of the rows.

        Where no row can be bad, or the fit is exact, it is the first step.
        """
        assert isinstance(first, ComponentsEstimate)
        setting, found = first.setting, first.solution
        if 0 in (setting.eps_bar, found.lambda_, found.risk):
            off = 1.0 * (found.losses > 0) * (setting.eps_bar > 0)
            told = without_comparison(of_groups(off, setting.groups), first.eps_hat)
            return replace(first, first=first, explained=told)
        size = 8e-9 * self.n_obs * self.dim
        if self.blocks is not None and size > MOST_GIGABYTES:
            raise NotImplementedError(
                f"the second step of components takes all rows into memory, {size:.1f} GB; use "
                "steps=1, or fit a sample of the rows"
            )
        plane = decided_once(
            self.blocks, lambda: explained_plane(self, found, setting, self.codim)
        )
        mixture, (good, pull) = plane.mixture, plane.probabilities(self.data)
        location = mixture.coef[0].sum(axis=0)
        basis = np.linalg.eigh(mixture.scatter[0])[1][:, ::-1][:, : self.q]
        theta = self.join(location, basis)
        inner = self.explained_scores(basis, setting, good)
        within = inner.rows.probabilities()[0] if isinstance(inner, ExplainedCovariance) else 1.0
        prob_bad = 1 - good * within
        share = min(float(setting.spread(self.n_obs) @ prob_bad), setting.eps_bar)
        return self._estimate(
            continued(self, first, theta, pull * within, plane.settled),
            setting,
            inner,
            PlaneNoise(plane.rows.variances(mixture.scatter[0]), 0.0, 1.0),
            ExplainedComponents,
            first=first,
            explained=joined(plane.told, inner, of_groups(prob_bad, setting.groups), share),
            eps_hat=share,
            eps_hat_se=float(np.sqrt(plane.rows.together.share_variance(share))),
            off=plane,
            n_within=int(((prob_bad > FLAGGED) & (good > FLAGGED)).sum()),
        )

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, its variance off the subspace consistent.

        The variances within the subspace have no part in the losses, and need no correction.
        """
        assert isinstance(estimate, ComponentsEstimate)
        weights, theta = estimate.solution.weights, estimate.solution.theta
        off = self.frame(theta)[1]
        seen = np.linalg.eigvalsh(weighted_scatter(off, weights, weights @ off))
        rest = sum(untilted_variance(max(float(v), 0.0), weights, rates) for v in seen)
        found = replace(estimate, rest=rest * self.unit**2)
        return Untilted(found, found.influence())

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        inner: CovarianceEstimate,
        noise: PlaneNoise | None,
        made: type[ComponentsEstimate] | None = None,
        **more: Any,
    ) -> ComponentsEstimate:
        """Return an estimate, by default of the first step, that a scatter of scores makes."""
        point, basis = self.split(solution.theta)
        off, square = complement(basis), self.unit**2
        values, vectors = np.linalg.eigh(inner.cov)
        values = np.maximum(values, np.finfo(float).eps ** 2 * values[-1])
        axes = self.span @ (basis @ vectors[:, ::-1])
        largest = np.abs(axes).argmax(axis=0)
        signed = vectors[:, ::-1] * np.sign(axes[largest, np.arange(self.q)])
        center = basis @ inner.mean + off @ (off.T @ point)
        sums = row_sums(moment_sums, self.data - point, solution.weights)
        moment = self.central(normalized(sums))[1]
        rest = float(solution.weights @ solution.losses) if noise is None else noise.total
        return (made or ComponentsEstimate)(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=solution.converged and inner.solution.converged),
            params=values[::-1] * square,
            raw_params=np.linalg.eigvalsh(moment)[::-1][: self.q] * square,
            loss_unit=square,
            inner=inner,
            noise=noise,
            vectors=signed,
            loadings=self.span @ (basis @ signed),
            mean=self.center + self.column_unit * self.unit * (self.span @ center),
            rest=rest * square,
            **more,
        )


def joined(
    plane: Explained, inner: CovarianceEstimate, prob_bad: Array, share: float
) -> Explained:
    """Return the explanation of rows that are bad off the subspace or within it."""
    told = plane
    within = inner.explained if isinstance(inner, ExplainedCovariance) else None
    if plane.chosen.bad is Bad.NONE and within is not None and within.chosen.bad is not Bad.NONE:
        told = within
    # Rows within the subspace that are bad leave the noise off it as it was found.
    chosen = replace(told.chosen, good=plane.chosen.good, prob_bad=prob_bad, eps=share)
    return told.with_chosen(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class PlaneNoise:
    """The noise of good rows off a subspace.

    Attributes
    ----------
    variances : ndarray, shape (m,)
        Along its axes.
    rate : float
        1 / lambda of the weights of a first step.
    size : float
        What takes the mean of those weights over good rows to one.
    """

    variances: Array
    rate: float
    size: float

    @property
    def total(self) -> float:
        """Variance in all directions together."""
        return float(self.variances.sum())

    @property
    def freedom(self) -> float:
        """Degrees of freedom of squared distances (Box)."""
        return self.total**2 / float((self.variances**2).sum())

    @property
    def order(self) -> float:
        """Variances over the weighted ones, as of one dimension."""
        return 1 + 2 * self.rate * self.total / self.freedom

    def tilts(self, losses: Array) -> Array:
        """Return weights of rows whose mean over good rows is one, shape (n,)."""
        return self.size * np.exp(-self.rate * losses)


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentsEstimate(Estimate):
    """The estimate of principal components; `params` are the eigenvalues.

    Attributes
    ----------
    inner : CovarianceEstimate
        Of the scores within the subspace.
    noise : PlaneNoise or None
        Off the subspace; None where no row can be bad, and at an exact fit.
    vectors : ndarray, shape (q, q)
        Axes within the subspace.
    loadings : ndarray, shape (d, q)
    mean : ndarray, shape (d,)
    rest : float
        Variance off the subspace.
    """

    problem: ComponentsProblem
    inner: CovarianceEstimate
    noise: PlaneNoise | None
    vectors: Array
    loadings: Array
    mean: Array
    rest: float

    def score_cutoff(self, level: float) -> float:
        """Return the quantile of the squared score distances of clean rows."""
        if self.setting.eps_bar == 0:
            return float(chi2.ppf(level, self.problem.q))
        return self.inner.cutoff(level)

    def orthogonal_cutoff(self, level: float) -> float | None:
        """Return the quantile of the squared orthogonal distances of clean rows, where known."""
        noise = self.noise
        if noise is None:
            return None
        order = precision_order(noise.order, self.setting.eps_bar, self.eps_hat, noise.freedom)
        return self._off_cutoff(level, noise, order)

    def _off_cutoff(self, level: float, noise: PlaneNoise, order: float) -> float:
        good = self.wnobs * (1 - self.eps_hat)
        found = subspace_cutoff(level, noise.freedom, self.problem.n_params, good, order)
        return found * noise.total / noise.freedom * self.problem.unit**2

    def influence(self) -> Array:
        """Return the influence functions of the eigenvalues, shape (n, q)."""
        along = row_map(along_axes, self._scatter_moves(), axes=self.vectors)
        return along * self.problem.unit**2

    def departures(self, other: Estimate) -> Array:
        """Return how far off eigenvalues and loadings are in standard errors, shape (q + d q,).

        NaN for the loadings of data with few rows per variable, whose errors are too small.
        """
        assert isinstance(other, ComponentsEstimate)
        along = super().departures(other)
        if self.wnobs < ROWS_PER_VARIABLE * len(self.loadings):
            return np.r_[along, np.full(self.loadings.size, np.nan)]
        signs = np.where(np.sum(self.loadings * other.loadings, axis=0) < 0, -1.0, 1.0)
        influence = flat_rows(self.loadings_influence())
        variance = np.diag(influence_covariance(influence, self.base, self.wnobs))
        turned = standardized_departures(
            (signs * other.loadings).ravel(), self.loadings.ravel(), np.sqrt(variance)
        )
        return np.r_[along, turned]

    def loadings_influence(self) -> Array:
        """Return the influence functions of the loadings, shape (n, d, q)."""
        problem = self.problem
        basis = problem.split(self.solution.theta)[1]
        return row_map(
            turned_loadings,
            self._turns(),
            self._scatter_moves(),
            axes=self.vectors,
            basis=basis,
            values=self.params / problem.unit**2,
            span=problem.span,
        )

    def _scatter_moves(self) -> Array:
        """Return the influence functions of the scatter of the scores, shape (n, q, q).

        A row counts for what is left of it at its distance off the subspace.
        """
        inner, unit = self.inner, self.inner.problem.unit
        moves = inner.moves()[1] * np.outer(unit, unit)
        if inner.setting is self.setting:
            return moves
        relative = relative_weights(inner.setting.spread(self.problem.n_obs), self.base)
        return relative[:, None, None] * moves

    def _turns(self) -> Array:
        """Return how the basis turns off itself, shape (n, d, q)."""
        problem, found = self.problem, self.solution
        steps = minimum_influence(
            problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        ).theta
        off = complement(problem.split(found.theta)[1])
        factor = 1.0 if self.noise is None else self._enlargement
        return row_map(basis_turns, steps, off=factor * off)

    @property
    def _enlargement(self) -> float:
        """By how much errors grow because the fit has used up some of the rows."""
        left = max(self.wnobs * (1 - self.eps_hat) - self.problem.n_params, 1.0)
        return float(np.sqrt(self.wnobs * (1 - self.eps_hat) / left))


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedComponents(ComponentsEstimate):
    """The estimate of the second step.

    Attributes
    ----------
    off : ExplainedPlane
        The explanation of the distances off the subspace.
    n_within : int
        Flagged rows that are near the subspace.
    """

    off: ExplainedPlane
    n_within: int

    def orthogonal_cutoff(self, level: float) -> float | None:
        """Return the quantile of the squared orthogonal distances of clean rows."""
        assert self.noise is not None
        return self._off_cutoff(level, self.noise, 1.0)

    def _turns(self) -> Array:
        """Return how the basis turns off itself, shape (n, d, q)."""
        return self._enlargement * self.off.turns(self.problem.data)


def along_axes(scatter: Array, axes: Array) -> Array:
    """Return the variances (n, q) of scatters (n, q, q) along axes (q, q)."""
    return np.einsum("ij,nik,kj->nj", axes, scatter, axes)


def flat_rows(values: Array) -> Array:
    """Return rows of any shape as vectors, shape (n, k)."""
    return row_map(_flat, values)


def _flat(values: Array) -> Array:
    return values.reshape(len(values), int(np.prod(values.shape[1:])))


def basis_turns(steps: Array, off: Array) -> Array:
    """Return turns of a basis (n, d, q) for steps (n, k) in coordinates off it, (d, d - q)."""
    codim = off.shape[1]
    q = len(off) - codim
    return np.asarray(off @ steps[:, : codim * q].reshape(len(steps), codim, q))


def turned_loadings(
    turns: Array, scatter: Array, axes: Array, basis: Array, values: Array, span: Array
) -> Array:
    """Return how loadings move (n, d, q).

    Parameters
    ----------
    turns : ndarray, shape (n, r, q)
        Of the basis, off itself.
    scatter : ndarray, shape (n, q, q)
        Moves of the scatter within the subspace.
    axes, basis, span : ndarray, shapes (q, q), (r, q) and (d, r)
    values : ndarray, shape (q,)
        Eigenvalues of the scatter.
    """
    within = axes.T @ scatter @ axes
    gap = np.broadcast_to(values[None, :] - values[:, None], within.shape)
    rotation = np.divide(within, gap, out=np.zeros_like(within), where=gap != 0)
    return np.asarray(span @ (turns @ axes + basis @ axes @ rotation))
