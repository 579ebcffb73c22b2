"""The explanation of rows that Schwarz's criterion prefers, among several fits of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Explained, best_of_each
from rrmstats.laws.em import Fit, fitted
from rrmstats.laws.mixture import BadLaw, GoodLaw, Mixture
from rrmstats.laws.rows import Rows

# Steps after which the candidates of an explanation are compared.
SCREENING_STEPS = 3
# Candidates that are then fitted, where the share of bad rows depends on the center: with 30 % of
# false zeros at the largest means one leads to a wrong end in 4 samples of 50, two in 1.
FINALISTS = 2


@dataclass(frozen=True, eq=False)
class BadRows:
    """What bad rows may look like.

    Attributes
    ----------
    kind : Bad
    n_extra : int
        Number of parameters.
    apart, wide : BadLaw or None
    sloped : bool
        Whether the share of rows apart depends on the center of the good ones.
    parts : tuple of int
        Simpler ones before it: it is tried only where each of these is better than none.
    """

    kind: Bad
    n_extra: int
    apart: BadLaw | None = None
    wide: BadLaw | None = None
    sloped: bool = False
    parts: tuple[int, ...] = ()

    @property
    def zeros(self) -> bool:
        """Whether zeros may be false."""
        return self.kind in (Bad.FALSE_ZEROS, Bad.WIDE_AND_ZEROS)


@dataclass(frozen=True, eq=False)
class Laws:
    """What rows may look like.

    Attributes
    ----------
    good : GoodLaw
        Good rows as the model has them.
    wider : GoodLaw or None
        Good rows that vary more.
    bad : tuple of BadRows
    lower : ndarray, shape (k,), or None
        Least values of theta.
    divisible : bool
        Whether some of the rows can be evaluated without the others.
    """

    good: GoodLaw
    wider: GoodLaw | None
    bad: tuple[BadRows, ...]
    lower: Array | None = None
    divisible: bool = True

    def mixture(self, rows: Rows, eps_bar: float, bad: BadRows | None, wider: bool) -> Mixture:
        """Return an explanation of rows, without bad ones where none are given."""
        good = self.wider if wider and self.wider is not None else self.good
        if bad is None:
            return Mixture(good, Bad.NONE, int(wider), eps_bar, rows.total)
        middle = float(np.log(max(float(np.mean(rows.size * rows.endog)), np.finfo(float).tiny)))
        return Mixture(
            good,
            bad.kind,
            bad.n_extra + int(wider),
            eps_bar,
            rows.total,
            bad.apart,
            bad.wide,
            bad.sloped,
            middle if bad.sloped else 0.0,
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """The fits of all explanations, and the one chosen.

    Attributes
    ----------
    fits : tuple of Fit
    best : Fit
    """

    fits: tuple[Fit, ...]
    best: Fit

    def explained(self, best: Fit) -> Explained:
        """Return what is told of the choice, given the chosen fit at its root."""
        chosen = best.explanation()
        others = [fit.explanation() for fit in self.fits if fit is not self.best]
        total = best.rows.total
        return Explained(
            explanations=best_of_each([chosen, *others], total), chosen=chosen, wnobs=total
        )


def fit_of(
    rows: Rows,
    mixture: Mixture,
    candidates: Sequence[Array],
    lower: Array | None = None,
    target: float = -np.inf,
) -> Fit:
    """Return the best fit of an explanation from candidates of theta; see `fitted`."""
    starts = []
    for theta in candidates:
        at = mixture.start(rows.endog, rows.size, rows.predictors(theta))
        fit = fitted(Fit(rows, mixture, theta, at, lower), held=True)
        starts.append(fitted(fit, SCREENING_STEPS, 0.0) if len(candidates) > 1 else fit)
    starts.sort(key=lambda fit: -fit.log_likelihood)
    ends = [fitted(fit, target=target) for fit in starts[: FINALISTS if mixture.sloped else 1]]
    return max(ends, key=lambda fit: fit.log_likelihood)


def choose(rows: Rows, laws: Laws, candidates: Sequence[Array], eps_bar: float) -> Choice:
    """Return the fits of all explanations, and the one that Schwarz's criterion prefers.

    Parameters
    ----------
    rows : Rows
        In memory.
    laws : Laws
    candidates : sequence of ndarray, shape (k,)
        Parameters to start from, those of maximum likelihood first.
    eps_bar : float
        Largest share of bad rows.
    """
    plain = fit_of(rows, laws.mixture(rows, eps_bar, None, False), candidates[:1], laws.lower)
    starts = [plain.theta, *candidates[1:]]
    found: dict[int, Fit] = {}
    target = plain.bic_gain
    for i, bad in enumerate(laws.bad):
        if all(part in found and found[part].bic_gain > plain.bic_gain for part in bad.parts):
            near = _near([found[part] for part in bad.parts], starts)
            mixture = laws.mixture(rows, eps_bar, bad, False)
            found[i] = fit_of(rows, mixture, near, laws.lower, target)
            target = max(target, found[i].bic_gain)
    fits = [plain, *found.values()]
    if laws.wider is not None:
        fits.append(_wider(plain, laws, None, eps_bar, target))
        best = max(found, key=lambda i: found[i].bic_gain)
        if found[best].bic_gain > plain.bic_gain:
            fits.append(_wider(found[best], laws, laws.bad[best], eps_bar, target))
    return Choice(tuple(fits), max(fits, key=lambda fit: fit.bic_gain))


def _near(parts: Sequence[Fit], starts: Sequence[Array]) -> list[Array]:
    """Return parameters to start from: where several parts meet, those of the best."""
    if len(parts) > 1:
        return [max(parts, key=lambda fit: fit.log_likelihood).theta]
    return [*(fit.theta for fit in parts), *starts]


def _wider(fit: Fit, laws: Laws, bad: BadRows | None, eps_bar: float, target: float) -> Fit:
    """Return the explanation of a fit with good rows that vary more."""
    mixture = laws.mixture(fit.rows, eps_bar, bad, True)
    return fit_of(fit.rows, mixture, [fit.theta], laws.lower, target)
