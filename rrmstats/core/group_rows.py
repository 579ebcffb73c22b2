"""What one row does to an estimate whose weights are of groups.

A row is a part of its group in three ways: of the mass of the group, of the rows over which the
estimate is made, and of the mean loss, which decides the weight of all its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import relative_weights

if TYPE_CHECKING:
    from rrmstats.core.group_estimate import TiltedGroups


def row_influence(estimate: TiltedGroups, by_row: Array) -> Array:
    r"""Return the influence functions of the rows, the weights of their groups estimated.

    With :math:`\omega` the relative weight of a group, :math:`\ell` its mean loss and
    :math:`\phi` the mean of `by_row`, a row adds to the influence of its group
    :math:`\omega (\phi_i - \phi)`, and what follows from a mean loss that is higher by
    :math:`\omega (\ell_i - \ell)`.

    Parameters
    ----------
    estimate : TiltedGroups
    by_row : ndarray, shape (n, m)
        Influence functions of the rows, their weights taken as known.

    Returns
    -------
    ndarray, shape (n, m)
    """
    found, grouped, told = estimate.found, estimate.problem, estimate.untilted
    groups, codes = grouped.groups, grouped.groups.codes
    phi = groups.means(by_row)
    omega = relative_weights(found.weights, estimate.base)
    moved = omega[codes, None] * (by_row - phi[codes])
    moved += estimate.group_influence(by_row, told.by_theta, told.by_log_lambda)[codes]
    if not 0 < found.lambda_ < np.inf:
        return moved
    of_theta, of_log_lambda, raised = _loss_moves(estimate, omega)
    phi = phi - found.weights @ phi
    weighted = found.weights[:, None] * phi / found.lambda_
    gradients = grouped.gradients(found.theta)
    moved -= of_theta @ (gradients.T @ weighted) + raised[:, None] * phi[codes] / found.lambda_
    moved += np.outer(of_log_lambda, found.losses @ weighted)
    if told.by_theta is not None:
        moved += of_theta @ told.by_theta
    if told.by_log_lambda is not None:
        moved += np.outer(of_log_lambda, told.by_log_lambda)
    return moved


def _loss_moves(estimate: TiltedGroups, omega: Array) -> tuple[Array, Array, Array]:
    """Return how theta (n, k) and ln(lambda) (n,) move with the mean losses that rows raise.

    The third answer is by how much they raise them, in relative weights, shape (n,).
    """
    found, grouped = estimate.found, estimate.problem
    groups, rows, codes = grouped.groups, grouped.problem, grouped.groups.codes
    _, hessian, drift = (
        part[0]
        for part in grouped.concentrated(
            found.theta[None],
            found.losses[None],
            found.weights[None],
            np.array([found.lambda_]),
        )
    )
    off = found.losses - found.weights @ found.losses
    spread = float(found.weights @ off**2)
    far = off / spread if spread > 0 else np.zeros_like(off)
    gradients = rows.gradients(found.theta)
    means = groups.means(gradients)
    raised = omega[codes] * (rows.losses(found.theta) - found.losses[codes])
    pull = means - np.outer(far, spread * drift)
    scores = omega[codes, None] * (gradients - means[codes])
    scores -= (raised / found.lambda_)[:, None] * pull[codes]
    of_theta = -scores @ np.linalg.pinv(hessian, hermitian=True)
    return of_theta, of_theta @ drift + raised * far[codes], raised
