"""Principal components: distances off a subspace, and the scatter of scores within it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import chdtr, chdtri, pdtrc
from scipy.stats import chi2

from rrmstats.core.block_array import aligned, blocked, row_map, row_sums, taken
from rrmstats.core.blocks import decided_once, deciding_places
from rrmstats.core.consistency import gaussian_efficiency, untilted_variance
from rrmstats.core.conventions import FAR
from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.estimate import Estimate, Untilted, standardized_departures
from rrmstats.core.explanations import FLAGGED, Bad, Explained, of_groups, without_comparison
from rrmstats.core.frames import median_of, sign_frame
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import minimum_influence, relative_weights
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.core.starts import USUAL_STARTS, affordable_starts
from rrmstats.core.tolerances import MAX_STEPS
from rrmstats.laws.densities import Densities, distance_densities
from rrmstats.laws.gaussian import (
    COLLAPSED,
    RIDGE,
    Metric,
    Mixtures,
    Rows,
    em_step,
    is_singular,
    seen,
)
from rrmstats.laws.gaussian_choice import best_explanation
from rrmstats.laws.gaussian_equations import POLISH_TOL, relative_change
from rrmstats.laws.together import Together
from rrmstats.losses.covariance import (
    Candidate,
    CovarianceEstimate,
    CovarianceProblem,
    MomentProblem,
    Tilt,
    different,
    distinct_ends,
    precision_order,
    robust_starts,
    share_of,
    some_rows,
    subspace_cutoff,
    untilted,
)
from rrmstats.losses.gaussian_rows import continued
from rrmstats.losses.matrices import central_moments, check_range, symmetric, weighted_scatter

# Rows per axis that can tell its variance from others, and per variable from which the errors of
# loadings can be relied on.
# Convention: five rows per parameter.
ROWS_PER_PARAMETER = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaneRows(Rows):
    """Rows around a q-dimensional subspace, some of them bad: mixtures of distances off it.

    The subspace is that of the leading axes of the scatter of the good rows. Where rows lie within
    it has no part in the densities. Off it the noise has one variance, but for leading axes that
    differ from the others by more than chance.

    Attributes
    ----------
    q : int
        Dimension of the subspace.
    codim : int
        Dimensions off it; more than those of the data where these are the span of few rows.
    own : int
        Leading axes off the subspace that have variances of their own.
    risk : callable
        That of a point (d,) and a basis (d, q). Likelihoods of distances off different subspaces
        do not compare: one through far bad rows has no large distances. The risk does.
    most_risk : float
        Largest risk of a subspace that may explain the rows.
    """

    q: int
    codim: int
    own: int
    risk: Callable[[Array, Array], float]
    most_risk: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the squared distances of good rows."""
        return self.codim

    def others(self, data: Array) -> PlaneRows:
        """Return other rows, within what is known of these; all of them where they have groups."""
        if self.groups is not None:
            return self
        exog, counts = np.ones((len(data), self.n_coef)), np.ones(len(data))
        return replace(self, data=data, exog=exog, counts=counts, frame=self.whole)

    @property
    def _overall(self) -> None:
        """Noise off a subspace has one shape, that of good rows."""
        return None

    def metric(self, scatter: Array) -> Metric:
        """Return the metric of the noise off the subspaces of scatters (b, d, d)."""
        variances, axes = self.off_axes(scatter)
        left = self.codim - variances.shape[1]
        log_det = np.log(variances).sum(axis=1) + left * np.log(variances[:, -1])
        return Metric(axes / np.sqrt(variances)[:, None], log_det)

    def off_axes(self, scatter: Array) -> tuple[Array, Array]:
        """Return the variances (b, m) and axes (b, d, m) off the subspaces, the largest first.

        The regression on q scores takes as many rows from the variances.
        """
        values, vectors = np.linalg.eigh(scatter)
        least = RIDGE * values[:, -1:] + np.finfo(float).tiny
        values, vectors = values[:, ::-1][:, self.q :], vectors[:, :, ::-1][:, :, self.q :]
        found = np.maximum(values, least)
        rest = values[:, self.own :].sum(axis=1, keepdims=True) / (self.codim - self.own)
        found[:, self.own :] = np.maximum(rest, least)
        return found * self.total / max(self.total - self.q, 1.0), vectors

    def coefficient_costs(self, weights: Array, scatter: Array) -> Array:
        """Return what the point and the basis of a subspace cost on the scale of BIC, shape (b,).

        As in `Rows`, each axis off the subspace being a regression on q scores and a constant.
        """
        log_det = self.metric(scatter).log_det
        relative = np.exp((log_det - self._unit[1]) / self.freedom)
        columns = self.n_coef + self.q
        return columns * self.freedom * np.log1p(weights.sum(axis=1) / relative)

    def variances(self, scatter: Array) -> Array:
        """Return the variances off the subspace of a scatter (d, d), in all dimensions."""
        found = self.off_axes(scatter[None])[0][0]
        return np.r_[found, np.full(self.codim - len(found), found[-1])]

    def refuses(self, coef: Array, scatter: Array) -> bool:
        """Tell whether a subspace is not near enough to most rows, or its noise is of few rows.

        Nor is one that passes through q rows or more, and more than can be expected so near to it:
        tails have a likelihood without bound there.
        """
        values, axes = np.linalg.eigh(scatter)
        point = coef.sum(axis=0)
        square = self.measured((self.data - point)[None], scatter[None]).square[0]
        typical = float(median_of(square, self.counts))
        if is_singular(values[-self.q - 1 :], scatter) or COLLAPSED * typical > self.freedom:
            return True
        # Squared distances, over their median, below which good rows are with chance FAR.
        least, middle = chdtri(self.freedom, [1 - FAR, 0.5])
        near = min(COLLAPSED, float(least / middle)) * typical
        expected = self.total * chdtr(self.freedom, near)
        through = np.floor(self.counts @ (square < near))
        if through >= self.q and pdtrc(through, expected) <= FAR:
            return True
        return self.risk(point, axes[:, ::-1][:, : self.q]) > self.most_risk


def distinct_axes(values: Array, codim: int, wnobs: float) -> int:
    """Return how many leading variances (m,) differ from the rest by more than chance, by BIC.

    An axis of its own has a variance, and a direction among those that follow.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.components import distinct_axes
    >>> distinct_axes(np.array([9.0, 1.1, 1.0, 0.9]), 4, 200.0)
    1
    """
    best, found = -np.inf, 0
    for r in range(max(min(len(values), int(wnobs / ROWS_PER_PARAMETER)), 1)):
        rest = float(values[r:].sum()) / (codim - r)
        if not rest > 0:
            break
        fit = np.log(values[:r]).sum() + (codim - r) * np.log(rest)
        value = -0.5 * wnobs * fit - 0.5 * np.log(wnobs) * sum(codim - j for j in range(r))
        if value > best:
            best, found = value, r
    return found


def settled(rows: PlaneRows, mixture: Mixtures, eps_bar: float) -> tuple[Mixtures, bool]:
    """Return a mixture, a batch of one, after EM has come to rest, and whether it has."""
    for _ in range(10 * MAX_STEPS):
        new = em_step(rows, mixture, eps_bar)
        if relative_change(mixture, new) < POLISH_TOL:
            return new, True
        mixture = new
    return mixture, False


def seen_by(mixture: Mixtures, n: int) -> Mixtures:
    """Return a mixture, a batch of one, for n other rows."""
    return replace(mixture, far=np.zeros((1, n), bool), good=np.ones((1, n)))


def probabilities_at(rows: PlaneRows, mixture: Mixtures) -> tuple[Array, Array]:
    """Return the probability of each row to be good, and its pull on the subspace, (n,) each."""
    view = seen(rows, seen_by(mixture, len(rows.data)))
    good = view.probabilities[0, 0]
    return good, good * mixture.pulls(view.square, rows.freedom)[0]


def radial_slopes(rows: PlaneRows, mixture: Mixtures, step: float = 1e-4) -> Array:
    """Return the derivatives of the pulls of the rows in the log distance off, shape (n,)."""
    axes = rows.off_axes(mixture.scatter)[1][0]
    off = (rows.data - rows.fitted(mixture.coef)[0]) @ axes @ axes.T
    ends = [
        probabilities_at(replace(rows, data=rows.data + by * off), mixture)[1]
        for by in (step, -step)
    ]
    return (ends[0] - ends[1]) / (2 * step)


# Least part of the rows that a subspace is taken to rest on.
# Convention: a tenth.
LEAST_BREAD = 0.1
# Size of rows in partitions up to which they come to memory for the second step.
MOST_GIGABYTES = 1.0


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
    # Algorithm 1 takes hundreds of steps where no direction has a variance of its own.
    most_coordinates = 60

    def __init__(self, data: Array, q: int, demean: bool = True) -> None:
        super().__init__(data, demean, q)
        self.q, self.n_params = q, q + demean
        self.n_coordinates = (self.dim - q) * (q + demean)

    @cached_property
    def _noise(self) -> Array:
        """Squared distances that rounding alone could produce, shape (n,)."""
        squares = np.einsum("nd,nd->n", self.data, self.data)
        # The subspace is rounded as rows of usual size are, also where a row is near its point.
        usual = 0.0 if self.blocks is not None else float(np.median(squares))
        return (4 * (self.dim + 4) * np.finfo(float).eps) ** 2 * (squares + usual)

    def losses(self, theta: Array) -> Array:
        """Return squared distances, zero where rounding alone could produce them."""
        off, offset = self._off(theta)
        losses = row_map(squared_distances, self.data, off=off, offset=offset, tail=())
        return np.where(losses <= self._noise, 0.0, losses)

    def _off(self, theta: Array) -> tuple[Array, Array]:
        """Return a basis off the subspace (..., d, d - q), and the point in it (..., 1, d - q)."""
        point, basis = self.split(theta)
        off = complement(basis)
        return off, point[..., None, :] @ off

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted mean and leading eigenvectors, shape (..., d + d * q)."""
        point, scatter = self.weighted_moments(weights)
        return self.join(point, np.linalg.eigh(scatter)[1][..., ::-1][..., : self.q])

    def off(self, theta: Array) -> Array:
        """Return the coordinates of the rows off the subspace, shape (n, d - q)."""
        off, offset = self._off(theta)
        return self.data @ off - offset[0]

    def _frame(self, theta: Array) -> Array:
        """Return what takes rows, and a one, to coordinates (n, c) and those off, (n, d - q).

        The coordinates are those on the basis and, if the point moves, the one: shifts are turns
        towards it. Shape (d + 1, c + d - q).
        """
        point, basis = self.split(theta)
        on = np.eye(self.dim + 1)[:, self.dim :] * self.demean
        lifted = np.vstack([np.eye(self.dim), -point])
        return np.hstack([lifted @ basis, on[:, : int(self.demean)], lifted @ complement(basis)])

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss in the local coordinates, shape (n, k)."""
        frame, codim = self._frame(theta), self.dim - self.q
        return row_map(turning_gradients, self.data, frame=frame, codim=codim)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        kernel = partial(frame_moments, frame=self._frame(theta))
        moments, codim = row_sums(kernel, self.data, weights), self.dim - self.q
        moving = np.diag(np.arange(len(moments) - codim) < self.q)
        turn = np.kron(np.eye(codim), moments[:-codim, :-codim])
        return 2.0 * (turn - np.kron(moments[-codim:, -codim:], moving))

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.dim, eps_bar, USUAL_STARTS)

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
        step = off @ step.reshape(*step.shape[:-1], self.dim - self.q, self.q + self.demean)
        point = point + step[..., self.q :].sum(axis=-1)
        turn = step[..., : self.q]
        return self.join(point, np.linalg.qr(basis + turn)[0])

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the subspaces through subsets of rows, exact ones, shape (m, d + d * q)."""
        rows = self.data[subsets]
        point = rows.mean(axis=1) * self.demean
        right = np.linalg.svd(rows - point[:, None, :], full_matrices=False)[2]
        return self.join(point, np.swapaxes(right[:, : self.q], 1, 2))

    @property
    def with_rows(self) -> Callable[..., SubspaceProblem]:
        """A function that makes the problem of other rows."""
        return partial(SubspaceProblem, q=self.q, demean=self.demean)


def squared_distances(data: Array, off: Array, offset: Array) -> Array:
    """Return squared lengths (..., n) of rows (n, d) in bases (..., d, m), less offsets."""
    rest = np.swapaxes(off, -1, -2) @ data.T - np.swapaxes(offset, -1, -2)
    return np.asarray((rest**2).sum(axis=-2))


def coordinates(data: Array, frame: Array) -> Array:
    """Return the coordinates of rows (n, d) in a frame (d + 1, m) of rows and a one, (m, n)."""
    return frame[:-1].T @ data.T + frame[-1:].T


def turning_gradients(data: Array, frame: Array, codim: int) -> Array:
    """Return the gradients of losses (n, k): products of coordinates off a subspace and others."""
    found = coordinates(data, frame)
    both = -2.0 * found[-codim:, None] * found[:-codim]
    return np.asarray(both.reshape(codim * both.shape[1], -1).T)


def frame_moments(data: Array, weights: Array, frame: Array) -> Array:
    """Return weighted second moments of coordinates, shape (m, m)."""
    found = np.sqrt(weights) * coordinates(data, frame)
    return found @ found.T


def complement(basis: Array) -> Array:
    """Return an orthonormal basis of what is orthogonal to a basis, shape (..., d, d - q)."""
    return np.linalg.qr(basis, mode="complete")[0][..., basis.shape[-1] :]


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

    def probabilities(self, data: Array) -> Array:
        """Return the probability of rows to be good, and their pull on the fit, shape (n, 2)."""
        return np.column_stack(probabilities_at(self.rows.others(data), self.mixture))

    @cached_property
    def bread(self) -> float:
        """Mean pull of a row and what its slope adds to it, as of elliptical rows."""
        pull = probabilities_at(self.rows, self.mixture)[1]
        slopes = radial_slopes(self.rows, self.mixture)
        found = pull + slopes / (self.rows.freedom * self.rows.together.sizes)
        return max(float(self.rows.counts @ found) / self.rows.total, LEAST_BREAD)

    def turns(self, data: Array, span: Array, axes: Array) -> Array:
        """Return how loadings turn out of the subspace, for some rows, shape (n, d * q).

        Loadings are a span (d, r) times axes of the subspace, (r, q).

        The leading axes of a covariance turn towards another by their cross moment over the
        difference of the variances. Weights of rows fall with their distances, of which `bread`
        takes account.
        """
        q, (values, own) = self.rows.q, np.linalg.eigh(self.mixture.scatter[0])
        values, own = values[::-1], own[:, ::-1]
        centered = (data - self.mixture.coef[0].sum(axis=0)) @ own
        pull = self.probabilities(data)[:, 1] / self.bread
        gap = np.maximum(values[:q] - values[q:, None], np.finfo(float).tiny)
        moved = (pull[:, None] * centered[:, q:])[:, :, None] * centered[:, None, :q] / gap
        return turned(moved.reshape(len(data), gap.size), span @ own[:, q:], own[:, :q].T @ axes)


def plane_distances(plane: ExplainedPlane) -> Array:
    """Return the distances of the rows off a subspace in standard deviations, shape (n,)."""
    return np.sqrt(seen(plane.rows, plane.mixture).square[0])


def plane_densities(plane: ExplainedPlane, at: Array) -> Densities:
    """Return the densities of `plane_distances`, at each of (m,)."""
    return distance_densities(plane.rows, plane.mixture, at)


def explained_plane(
    problem: ComponentsProblem,
    solution: Solution,
    setting: Setting,
    sample: ExplainedPlane | None = None,
) -> ExplainedPlane:
    """Return the best explanation of the rows around the subspace of a first step.

    `sample` is the explanation of some of the rows, which all of them have.
    """
    n, groups = problem.n_obs, problem.row_groups
    if sample is None:
        sample = compared_planes(problem, solution, setting)
    if len(sample.rows.data) == n:
        return sample
    rows = plane_rows(problem, solution, setting, np.arange(n))
    rows = replace(rows, own=sample.rows.own)
    mixture, done = settled(rows, seen_by(sample.mixture, n), setting.eps_bar)
    told = sample.told.chosen
    told = replace(told, prob_bad=of_groups(1 - mixture.good[0], groups))
    return ExplainedPlane(rows, mixture, sample.told.with_chosen(told), done)


def compared_planes(
    problem: ComponentsProblem, solution: Solution, setting: Setting
) -> ExplainedPlane:
    """Return the best explanation of the rows, or of a sample of them.

    Which axes off the subspace have variances of their own is told by the first step, and once
    more by the explanation.
    """
    eps_bar, places = setting.eps_bar, deciding_places(problem.n_obs, problem.row_groups)
    rows = plane_rows(problem, solution, setting, places)
    starts = end_candidates(problem, solution, setting, rows)
    rows = replace(rows, own=own_axes(rows, starts[0][1], eps_bar))
    every = different(rows, [*starts, *robust_starts(rows, eps_bar)])
    told, mixture, done = best_explanation(rows, every, eps_bar, settled)
    own = own_axes(rows, mixture.scatter[0], told.chosen.eps)
    if own != rows.own:
        rows, again = replace(rows, own=own), [(mixture.coef[0], mixture.scatter[0]), starts[0]]
        told, mixture, done = best_explanation(rows, again, eps_bar, settled)
    return ExplainedPlane(rows, mixture, told, done)


def plane_rows(
    problem: ComponentsProblem, solution: Solution, setting: Setting, places: np.ndarray
) -> PlaneRows:
    """Return the rows at some places (m,), and which subspaces may explain them.

    Relative to the least risk the excess of the true subspace is that of a fit with efficiency e,
    chi-square with k coordinates over g n e, g being the dimensions off the subspace. One such
    subspace in 1 / FAR is refused.
    """
    data, counts = taken(
        places, problem.data, aligned(setting.counts(problem.n_obs), problem.blocks)
    )
    rows, groups = problem.with_rows(data), problem.row_groups
    if groups is not None:
        groups = np.unique(groups[places], return_inverse=True)[1]
    eps_bar, codim, total = setting.eps_bar, problem.codim, float(counts.sum())
    risk = partial(plane_risk, rows, Together(counts, groups), eps_bar)
    good = total * (1 - eps_bar) * gaussian_efficiency(eps_bar, codim)
    excess = float(chi2.isf(FAR, codim * problem.n_params)) / (codim * good)
    return PlaneRows(
        data, np.ones((len(data), int(problem.demean))), counts, groups=groups, q=problem.q,
        codim=codim, own=0, risk=risk,
        most_risk=risk(*problem.split(solution.theta)) * (1 + excess),
    )  # fmt: skip


def plane_risk(
    rows: SubspaceProblem, together: Together, eps_bar: float, point: Array, basis: Array
) -> float:
    """Return the risk of a point (d,) and a basis (d, q), where rows or groups of them weigh."""
    losses = rows.losses(rows.join(point, basis))
    if together.groups is not None:
        losses = together.sums(losses) / together.sizes
    weights = entropy_weights(losses, eps_bar, freq_weights=together.counts).weights
    return float(weights @ losses)


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
    data, base, q = rows.data, rows.counts / rows.total, problem.q
    for theta, lambda_ in distinct_ends(problem, solution, setting, solution.risk):
        losses = problem.with_rows(data).losses(theta)
        weights = entropy_weights(losses, setting.eps_bar, freq_weights=base).weights
        location = weights @ data * problem.demean
        values, axes = np.linalg.eigh(weighted_scatter(data, weights, location))
        values = np.maximum(values, 0.0)
        off = untilted(values[:-q], lambda_, setting.eps_bar).variances
        grown = float(off.sum() / max(values[:-q].sum(), np.finfo(float).tiny))
        full = np.r_[off, values[-q:] * max(grown, 1.0)]
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
        (some,) = taken(deciding_places(n), data)
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

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell whether the second step of the problem of some of the rows serves all of them."""
        assert isinstance(other, ComponentsProblem)
        pairs = [(p.center, p.column_unit, p.unit, p.span) for p in (self, other)]
        return all(map(np.array_equal, *pairs))

    def consistent(self, solution: Solution, setting: Setting) -> ComponentsEstimate:
        """Return the estimate of the first step, its eigenvalues consistent."""
        inner = self.scores(self.split(solution.theta)[1], setting)
        if 0 in (setting.eps_bar, solution.lambda_, solution.risk):
            variances, rate = None, 0.0
            share = share_of((solution.losses > 0) * float(setting.eps_bar > 0), setting)
        else:
            tilt = self._tilt(solution, setting)
            variances, rate = tilt.variances, tilt.rate
            share = tilt.share(
                solution.losses, setting.spread(self.n_obs), setting.wnobs(self.n_obs)
            )
            # Rows that are bad off the subspace and within it need not be the same, but often are.
            share = max(share, (inner.eps_hat, inner.eps_hat_se))
        found = self._estimate(solution, setting, inner, variances, rate=rate)
        return replace(found, eps_hat=min(share[0], setting.eps_bar), eps_hat_se=share[1])

    def scores(self, basis: Array, setting: Setting) -> CovarianceEstimate:
        """Return location and scatter of the scores on a basis, by a search of their own.

        Rows far out in the subspace lose no weight in the search for it, and would otherwise
        inflate the eigenvalues. Where least risk is that of few rows, the scatter is that of the
        middle half.
        """
        problem = CovarianceProblem(self.data @ basis, self.demean).in_groups(self.row_groups)
        found = problem.consistent(global_minimum(problem, setting), setting)
        if setting.eps_bar == 0 or found.plane is not None:
            return found
        location, scatter = problem.split(found.solution.theta)
        rows = some_rows(problem, setting)
        refused = rows.refuses(location, scatter * found.order)
        starts = robust_starts(rows, setting.eps_bar) if refused else []
        if not starts:
            return found
        return replace(found, params=problem.to_params(starts[0][0].sum(axis=0), starts[0][1]))

    def explained_scores(
        self, basis: Array, first: ComponentsEstimate, kept: Array
    ) -> CovarianceEstimate:
        """Return the scatter of the best explanation of the scores on a basis.

        `kept`, shape (n,), is what counts of each row because of its distance off the subspace.
        Rows that are bad off the subspace and within it are at most eps_bar together.
        """
        setting, decided = first.setting, first.decided
        if isinstance(decided, ComponentsEstimate):  # as the scores of the sample, on its basis
            scores = CovarianceProblem(self.data @ basis, self.demean, decided.inner.problem)
            scores = scores.in_groups(self.row_groups)
            inner = replace(first.inner, problem=scores, decided=decided.inner)
        else:
            inner = self.scores(basis, setting)
        good = float(setting.spread(self.n_obs) @ kept)
        # Half a row may always be bad: less than one is none.
        left = max(1 - (1 - setting.eps_bar) / good, 0.5 / setting.wnobs(self.n_obs))
        counted = replace(setting, freq_weights=setting.counts(self.n_obs) * kept)
        return inner.problem.explained(inner, counted, left)

    def _tilt(self, solution: Solution, setting: Setting) -> Tilt:
        """Return what the weights of least risk tell of the noise off the subspace."""
        scatter = central_moments(self.off(solution.theta), solution.weights)[2]
        seen = np.linalg.eigvalsh(scatter)[::-1]
        return untilted(np.maximum(seen, 0.0), solution.lambda_, setting.eps_bar)

    def second_step(self, first: Estimate) -> ComponentsEstimate:
        """Return the estimate of the best explanation of the rows.

        Where no row can be bad, or the fit is exact, it is the first step.
        """
        assert isinstance(first, ComponentsEstimate)
        setting, found = first.setting, first.solution
        if 0 in (setting.eps_bar, found.lambda_, found.risk):
            off = 1.0 * (found.losses > 0) * (setting.eps_bar > 0)
            told = without_comparison(of_groups(off, self.row_groups), first.eps_hat)
            return replace(first, first=first, explained=told)
        size = 8e-9 * self.n_obs * self.dim
        if self.blocks is not None and size > MOST_GIGABYTES:
            raise NotImplementedError(
                f"the second step of components takes all rows into memory, {size:.1f} GB; use "
                "steps=1, or fit a sample of the rows"
            )
        decided = first.decided if isinstance(first.decided, ComponentsEstimate) else None
        sample = None if decided is None else decided.off
        plane = decided_once(self.blocks, lambda: explained_plane(self, found, setting, sample))
        mixture, both = plane.mixture, row_map(plane.probabilities, self.data, tail=(2,))
        good, pull = both[:, 0], both[:, 1]
        basis = np.linalg.eigh(mixture.scatter[0])[1][:, ::-1][:, : self.q]
        if decided is not None:
            left, _, right = np.linalg.svd(basis.T @ self.split(decided.solution.theta)[1])
            basis = basis @ left @ right
        theta = self.join(mixture.coef[0].sum(axis=0), basis)
        inner = self.explained_scores(basis, first, good)
        within = 1.0 if inner.rows is None else inner.rows.probabilities()[0]
        prob_bad = 1 - good * within
        share = min(float(setting.spread(self.n_obs) @ prob_bad), setting.eps_bar)
        return self._estimate(
            continued(self, first, theta, pull * within, plane.settled),
            setting,
            inner,
            plane.rows.variances(mixture.scatter[0]),
            first=first,
            explained=joined(plane.told, inner, of_groups(prob_bad, self.row_groups), share),
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
        seen = np.linalg.eigvalsh(central_moments(self.off(theta), weights)[2])
        rest = sum(untilted_variance(max(float(v), 0.0), weights, rates) for v in seen)
        found = replace(estimate, rest=rest * self.unit**2)
        return Untilted(found, found.influence())

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        inner: CovarianceEstimate,
        variances: Array | None,
        **more: Any,
    ) -> ComponentsEstimate:
        """Return an estimate that a scatter of scores and variances off the subspace make."""
        point, basis = self.split(solution.theta)
        off, square = complement(basis), self.unit**2
        values, vectors = np.linalg.eigh(inner.cov)
        values = np.maximum(values, np.finfo(float).eps ** 2 * values[-1])
        axes = self.span @ (basis @ vectors[:, ::-1])
        signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(self.q)])
        center = basis @ inner.mean + off @ (off.T @ point)
        moment = central_moments(self.data - point, solution.weights, self.demean)[2]
        rest = solution.weights @ solution.losses if variances is None else variances.sum()
        return ComponentsEstimate(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=solution.converged and inner.solution.converged),
            params=values[::-1] * square,
            raw_params=np.linalg.eigvalsh(moment)[::-1][: self.q] * square,
            loss_unit=square,
            inner=inner,
            variances=variances,
            vectors=vectors[:, ::-1] * signs,
            loadings=axes * signs,
            mean=self.center + self.column_unit * self.unit * (self.span @ center),
            rest=float(rest) * square,
            **more,
        )


def joined(
    plane: Explained, inner: CovarianceEstimate, prob_bad: Array, share: float
) -> Explained:
    """Return the explanation of rows that are bad off the subspace or within it."""
    told = plane
    within = None if inner.rows is None else inner.explained
    if plane.chosen.bad is Bad.NONE and within is not None and within.chosen.bad is not Bad.NONE:
        told = within
    # Rows within the subspace that are bad leave the noise off it as it was found.
    chosen = replace(told.chosen, good=plane.chosen.good, prob_bad=prob_bad, eps=share)
    return told.with_chosen(chosen)


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentsEstimate(Estimate):
    """The estimate of principal components; `params` are the eigenvalues.

    Attributes
    ----------
    inner : CovarianceEstimate
        Of the scores within the subspace.
    variances : ndarray, shape (m,), or None
        Of good rows along the axes off the subspace; None where no row can be bad, and at an
        exact fit.
    vectors : ndarray, shape (q, q)
        Axes within the subspace.
    loadings : ndarray, shape (d, q)
    mean : ndarray, shape (d,)
    rest : float
        Variance off the subspace.
    rate : float
        1 / lambda of the weights of a first step.
    off : ExplainedPlane or None
        In the second step the explanation of the distances off the subspace.
    n_within : int
        Flagged rows that are near the subspace.
    """

    problem: ComponentsProblem
    inner: CovarianceEstimate
    variances: Array | None
    vectors: Array
    loadings: Array
    mean: Array
    rest: float
    rate: float = 0.0
    off: ExplainedPlane | None = None
    n_within: int = 0

    def score_cutoff(self, level: float) -> float:
        """Return the quantile of the squared score distances of clean rows."""
        if self.setting.eps_bar == 0:
            return float(chi2.ppf(level, self.problem.q))
        return self.inner.cutoff(level)

    def orthogonal_cutoff(self, level: float) -> float | None:
        """Return the quantile of the squared orthogonal distances of clean rows, where known.

        They are a multiple of a chi-square variable (Box).
        """
        if self.variances is None:
            return None
        size = float((self.variances**2).sum() / self.variances.sum())
        freedom, order = float(self.variances.sum()) / size, 1.0
        if self.off is None:
            order += 2 * self.rate * size
            order = precision_order(order, self.setting.eps_bar, self.eps_hat, freedom)
        good = self.wnobs * (1 - self.eps_hat)
        found = subspace_cutoff(level, freedom, self.problem.n_params, good, order)
        return found * size * self.problem.unit**2

    def influence(self) -> Array:
        """Return the influence functions of the eigenvalues, shape (n, q)."""
        within = self._within(self.problem.unit**2)
        return self._scatter_moves() @ np.einsum("kii->ki", within)

    def _within(self, size: float) -> Array:
        """Return changes of the upper triangle of the scatter along its axes, (k, q, q)."""
        q = self.problem.q
        return size * self.vectors.T @ symmetric(np.eye(q * (q + 1) // 2), q) @ self.vectors

    def departures(self, other: Estimate) -> Array:
        """Return how far off eigenvalues and loadings are in standard errors, shape (q + d q,).

        NaN for the loadings of data with few rows per variable, whose errors are too small.
        """
        assert isinstance(other, ComponentsEstimate)
        along = super().departures(other)
        if self.wnobs < ROWS_PER_PARAMETER * len(self.loadings):
            return np.r_[along, np.full(self.loadings.size, np.nan)]
        signs = np.where(np.sum(self.loadings * other.loadings, axis=0) < 0, -1.0, 1.0)
        errors = np.sqrt(np.diag(self.covariance_of(self.loadings_influence())))
        turned = (signs * other.loadings).ravel()
        return np.r_[along, standardized_departures(turned, self.loadings.ravel(), errors)]

    def loadings_influence(self) -> Array:
        """Return the influence functions of the loadings, those of one variable together.

        Shape (n, d * q). Errors grow because the fit has used up some of the rows.
        """
        problem, found, tail = self.problem, self.solution, (self.loadings.size,)
        axes, span, basis = self.vectors, problem.span, problem.split(found.theta)[1]
        values, within = self.params / problem.unit**2, self._within(1.0)
        gap = np.broadcast_to(values[None, :] - values[:, None], within.shape)
        rotation = np.divide(within, gap, out=np.zeros_like(within), where=gap != 0)
        rotated = (span @ basis @ axes @ rotation).reshape(len(within), -1)
        if self.variances is not None:
            good = self.wnobs * (1 - self.eps_hat)
            span = span * np.sqrt(good / max(good - problem.n_params, 1.0))
        if self.off is not None:
            turns = row_map(self.off.turns, problem.data, span, basis @ axes, tail=tail)
        else:
            steps = minimum_influence(
                problem, found.theta, found.losses, found.weights, found.lambda_, self.base
            ).theta
            turns = row_map(turned, steps, span @ complement(basis), axes, tail=tail)
        return turns + self._scatter_moves() @ rotated

    def _scatter_moves(self) -> Array:
        """Return the influence functions of the scatter of the scores, its upper triangle, (n, k).

        A row counts for what is left of it at its distance off the subspace.
        """
        moves = self.inner.moves()[:, self.problem.q :]
        if self.inner.setting is self.setting:
            return moves
        spread = self.inner.setting.spread(self.problem.n_obs)
        return relative_weights(spread, self.base)[:, None] * moves


def turned(moves: Array, left: Array, right: Array) -> Array:
    """Return matrices as rows (n, k), times two others (d, r) and (q, q), as rows (n, d * q).

    Their columns beyond the first q, which are shifts, are left out.
    """
    matrices = moves.reshape(len(moves), left.shape[1], -1)[:, :, : len(right)]
    return np.asarray(left @ matrices @ right).reshape(len(moves), len(left) * len(right))
