"""What the rows of any likelihood may look like."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad
from rrmstats.core.setting import Setting
from rrmstats.laws.choice import Laws
from rrmstats.laws.counts import WideCounts
from rrmstats.laws.likelihood import KernelRows, WholeRows, unpredicted
from rrmstats.laws.mixture import BadRows
from rrmstats.laws.rows import Rows
from rrmstats.losses.families import Link, MeanFunction, Poisson
from rrmstats.losses.family_laws import bad_counts, laws_of_family, other_lines
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.kernels import PoissonKernel, ZeroInflatedKernel
from rrmstats.losses.likelihood_laws import CountLaw, Likelihood, PredictorLikelihood


def rows_of_likelihood(likelihood: Likelihood, setting: Setting) -> Rows:
    """Return the rows of a likelihood as laws take them."""
    n, form = likelihood.n_obs, likelihood.closed
    ones = np.ones(n)
    mass = np.array(setting.counts(n))
    designs: tuple[Array, ...] = (ones[:, None],) * len(likelihood.start)
    offsets: tuple[Array, ...] = (np.zeros(n),) * len(designs)
    if form is not None:
        designs = form.designs
        offsets = tuple(np.broadcast_to(np.asarray(off, float), (n,)) for off in form.offsets)
    total, y = setting.wnobs(n), likelihood.endog
    return Rows(mass, total, y, ones, designs, offsets, setting.groups)


def laws_of_likelihood(likelihood: Likelihood, rows: Rows, unit: Array) -> Laws:
    """Return what the rows of a likelihood may look like.

    Parameters
    ----------
    likelihood : Likelihood
        With a law.
    rows : Rows
    unit : ndarray, shape (k,)
        Units of the parameters, for differences.
    """
    form, y = likelihood.closed, likelihood.endog
    if isinstance(form, CountLaw):
        return _count_laws(form, rows, likelihood)
    if _are_counts(y):
        bad = (BadRows(Bad.WIDE, (WideCounts(),)),)
    else:
        bad = (BadRows(Bad.WIDE, (unpredicted(y, rows.mass),)),)
    if form is not None:
        good = KernelRows(form.kernel.log_density, form.kernel.slopes)
        return Laws(good, None, (*bad, *other_lines(good, rows, likelihood.start)))
    scores = likelihood.scores

    def differenced(theta: Array) -> Array:
        return np.asarray(differences(likelihood.log_likelihood, theta, unit)).T

    whole = WholeRows(likelihood.log_likelihood, differenced if scores is None else scores)
    return Laws(whole, None, bad, likelihood.lower, divisible=False)


def _count_laws(form: PredictorLikelihood, rows: Rows, likelihood: Likelihood) -> Laws:
    kernel = form.kernel
    if isinstance(kernel, PoissonKernel):
        family = Poisson()
        mean = MeanFunction.between(Link.log(), *family.mean_bounds(form.endog))
        return laws_of_family(family, mean, rows)
    assert isinstance(form, CountLaw)
    bad = bad_counts(zeros=not isinstance(kernel, ZeroInflatedKernel))
    good = KernelRows(form.kernel.log_density, form.kernel.slopes, form.kernel.moments)
    bad = (*bad, *other_lines(good, rows, likelihood.start))
    return Laws(good, None, bad, likelihood.lower)


def _are_counts(endog: Array) -> bool:
    return bool((endog >= 0).all() and (endog == np.round(endog)).all())
