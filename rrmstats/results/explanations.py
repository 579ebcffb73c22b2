"""What fits say of the rows, in plain English: explanations, and whether they are stable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from statsmodels.tools.sm_exceptions import ModelWarning

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import FLAGGED, Bad, Explained, Explanation, Good

if TYPE_CHECKING:
    from typing_extensions import Self

#: What the good rows are like, where there are no bad ones.
GOOD_ROWS = {
    Good.PLAIN: "All {unit} follow the model.",
    Good.SHORT_TAILS: (
        "No bad {unit}; the noise has shorter tails than the normal distribution. The estimates "
        "are those of least squares, which serves well here."
    ),
    Good.HEAVY_TAILS: (
        "No bad {unit}; the noise has heavier tails than the normal distribution. The fit allows "
        "for them by Student's t distribution; where responses are positive, their logarithm may "
        "have lighter tails."
    ),
    Good.GROWING_NOISE: (
        "No bad {unit}; the size of the noise changes with the fitted values. Rows with less "
        "noise count for more; the logarithm of the response, or a family of glm such as Gamma "
        "or Poisson, may fit better."
    ),
    Good.CHANGING_NOISE: (
        "No bad {unit}; the size of the noise changes with the predictors. Rows with less noise "
        "count for more; where groups of rows differ, use cov_type='cluster'."
    ),
    Good.OVERDISPERSED: (
        "The responses vary more than the distribution of the model allows; use one with a "
        "dispersion parameter."
    ),
}
#: What the bad rows are like.
BAD_ROWS = {
    Bad.WIDE: "{share} of the {unit} are scattered far from the others.",
    Bad.CLUSTER: "{share} of the {unit} form a cluster apart from the others.",
    Bad.WIDE_AND_CLUSTER: (
        "{share} of the {unit} are bad: some form a cluster apart from the others, some are "
        "scattered far from them."
    ),
    Bad.TWO_CLUSTERS: "{share} of the {unit} form two clusters apart from the others.",
    Bad.SCATTERED: "{share} of the {unit} are scattered more widely than the others.",
    Bad.OTHER_SHAPE: (
        "{share} of the {unit} are scattered more widely than the others, along some directions "
        "more than along others."
    ),
    Bad.OTHER_LINE: "{share} of the {unit} follow another regression than the others.",
    Bad.FALSE_ZEROS: "{share} of the responses are zeros that the model does not expect.",
    Bad.WIDE_AND_ZEROS: (
        "{share} of the {unit} are bad: some responses are zeros that the model does not expect, "
        "some are scattered far from it."
    ),
    Bad.LABEL_NOISE: "{share} of the labels are wrong, whatever the predictors are.",
    Bad.UNLIKELY_LABELS: "{share} of the labels are wrong, where the model is nearly sure.",
}
#: The same of groups, where it differs.
BAD_GROUPS: Mapping[Good | Bad, str] = {
    Bad.FALSE_ZEROS: "{share} of the {unit} have only zeros, which the model does not expect.",
    Bad.LABEL_NOISE: "{share} of the {unit} have labels that were flipped.",
}
#: Kinds of bad rows that one row may be by itself, and how it is told.
ALONE = (Bad.WIDE, Bad.CLUSTER, Bad.SCATTERED)
ONE_BAD = "One of the {unit} ({share}) lies far from the others."
#: What is added on the good rows, where there are bad ones.
BESIDE_BAD_ROWS = {
    Good.PLAIN: "",
    Good.SHORT_TAILS: " The noise of the others has shorter tails than the normal distribution.",
    Good.HEAVY_TAILS: " The noise of the others has heavier tails than the normal distribution.",
    Good.GROWING_NOISE: " The size of the noise of the others changes with the fitted values.",
    Good.CHANGING_NOISE: " The size of the noise of the others changes with the predictors.",
    Good.OVERDISPERSED: (
        " The others vary more than the distribution of the model allows; use one with a "
        "dispersion parameter."
    ),
}
#: Sentences of a model that differ from those of others.
Wording = Mapping[Good | Bad, str]
LABELS: Wording = {Good.PLAIN: "All labels follow the model."}
VARIABLES: Wording = {
    Good.HEAVY_TAILS: (
        "No bad {unit}; their distribution has heavier tails than a normal distribution. The fit "
        "allows for them by Student's t distribution; logarithms of skewed variables may have "
        "lighter tails."
    )
}
#: Where all bad rows of a regression lie on one side of the fit.
ONE_SIDE: dict[str, Wording] = {
    side: {
        Bad.CLUSTER: f"{{share}} of the {{unit}} form a cluster {side} the fit.",
        Bad.TWO_CLUSTERS: (
            f"{{share}} of the {{unit}} lie {side} the fit, all on this side: the noise may be "
            "skewed, and the logarithm of the response may serve better."
        ),
        Bad.WIDE_AND_CLUSTER: (
            f"{{share}} of the {{unit}} lie {side} the fit, all on this side: some form a "
            "cluster, some are scattered."
        ),
        Bad.WIDE: f"{{share}} of the {{unit}} are scattered far {side} the fit.",
        Bad.SCATTERED: f"{{share}} of the {{unit}} are scattered widely {side} the fit.",
    }
    for side in ("above", "below")
}
POISSON: Wording = {
    Good.OVERDISPERSED: (
        "The counts vary more than a Poisson distribution allows; use a negative binomial model."
    )
}
BINOMIAL: Wording = {
    Good.OVERDISPERSED: (
        "The counts vary more than a binomial distribution allows, as they do where the rows of a "
        "group share causes; use a beta-binomial model."
    )
}
#: By the name of statsmodels' family or model.
BY_FAMILY = {"Poisson": POISSON, "Binomial": BINOMIAL, "Logit": LABELS}
#: Where no row may be bad.
NOT_COMPARED = "No {unit} may be bad, since eps_bar is 0."
#: Where the share of bad rows is that of the bound.
AT_LEAST = {"{share} of": "At least {share} of", "({share})": "(at least {share})"}
AT_BOUND = "The share of bad rows is at its bound, eps_bar: more may be bad. Try a larger eps_bar."
AT_LARGEST = (
    "The share of bad rows is at the largest bound that is allowed (eps_bar_max or the number of "
    "rows): the fit may describe a minority of them. Look at the data, or use a model that fits "
    "more of the rows."
)
UNSEEN_FLIPS = (
    "Flips that do not show would have shrunk the coefficients: intervals reach as far from zero "
    "as under explanations that are nearly as good; see explanations."
)
ANOTHER_MINIMUM = "The second step follows another minimum of the risk than the first."


def separated_note(bad_of_all: tuple[float, float] | None, eps_bar: float) -> str:
    """Return what to know where a hyperplane separates the labels that are not flagged.

    Parameters
    ----------
    bad_of_all : tuple of float, or None
        How many labels are flagged, and of how many; None in a first step.
    eps_bar : float
    """
    flagged = bad_of_all is not None and bad_of_all[0] > 0
    if eps_bar == 0:
        advice = "Maximum likelihood has no finite estimate; one with eps_bar > 0 is finite."
    elif flagged:
        advice = "A smaller eps_bar may tell it."
    else:
        advice = "Their prior sets it; more rows or fewer predictors may tell it."
    return (
        f"A hyperplane separates the labels{' that are not called flipped' if flagged else ''}: "
        "only the direction of the coefficients is identified, not their size, so that there are "
        f"no standard errors, tests or intervals. {advice}"
    )


class ChosenExplanation(str):
    """The name of an explanation of the rows, with a sentence about it.

    Attributes
    ----------
    name : str
        Such as "none", "wide", "cluster" or "heavy tails".
    sentence : str
        The same in plain English.

    Examples
    --------
    >>> from rrmstats.results import ChosenExplanation
    >>> found = ChosenExplanation("none", "All rows follow the model.")
    >>> found == "none", found.sentence
    (True, 'All rows follow the model.')
    """

    __slots__ = ("sentence",)
    sentence: str

    def __new__(cls, name: str, sentence: str) -> Self:
        """Return a name with a sentence."""
        found = super().__new__(cls, name)
        found.sentence = sentence
        return found

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # of its own __new__
        return str(self), self.sentence

    @property
    def name(self) -> str:
        """The name as plain text."""
        return str(self)


def described(
    explanation: Explanation,
    unit: str = "rows",
    wording: Wording | None = None,
    eps_bar: float | None = None,
) -> ChosenExplanation:
    """Return an explanation as a name and a sentence.

    Parameters
    ----------
    explanation : Explanation
    unit : str, optional
        What is good or bad: "rows" or "groups". The sentence has their share.
    wording : mapping, optional
        Sentences of the model that differ from those of others.
    eps_bar : float, optional
        The bound on the share of bad rows, which may be more than a share that is at it.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.explanations import Bad, Explanation, Good
    >>> from rrmstats.results.explanations import described
    >>> found = Explanation(
    ...     good=Good.PLAIN, bad=Bad.WIDE, log_likelihood=-9.0, penalty=9.2, eps=0.13,
    ...     prob_bad=np.zeros(100),
    ... )
    >>> described(found).sentence
    '13 % of the rows are scattered far from the others.'
    """
    good, bad = explanation.good, explanation.bad
    wording, share = wording or {}, explanation.eps
    if unit == "groups":
        wording, share = {**BAD_GROUPS, **wording}, float(explanation.prob_bad.mean())
    if eps_bar == 0:
        text = NOT_COMPARED
    elif bad is Bad.NONE:
        text = wording.get(good, GOOD_ROWS[good])
    else:
        text = ONE_BAD if _one_is_bad(explanation) else wording.get(bad, BAD_ROWS[bad])
        own = good is Good.OVERDISPERSED and good in wording
        text += f" {wording[good]}" if own else BESIDE_BAD_ROWS[good]
        if eps_bar is not None and at_bound(explanation.eps, eps_bar):
            for exact, least in AT_LEAST.items():
                text = text.replace(exact, least)
    sentence = text.format(unit=unit, share=percent(share))
    return ChosenExplanation(explanation.name, sentence)


def _one_is_bad(explanation: Explanation) -> bool:
    """Tell whether a single row is bad, by its flag and by the share."""
    flagged = count_bad(explanation.prob_bad, None)
    share = round(explanation.eps * len(explanation.prob_bad))
    return explanation.bad in ALONE and flagged == share == 1


def at_bound(share: float, eps_bar: float) -> bool:
    """Tell whether the share of bad rows is as large as its bound allows."""
    return eps_bar > 0 and share >= eps_bar * (1 - 1e-6)


def percent(share: float) -> str:
    """Return a share as a percentage of two digits, such as "13 %" or "0.42 %".

    Examples
    --------
    >>> from rrmstats.results.explanations import percent
    >>> percent(0.1333), percent(0.0042), percent(0)
    ('13 %', '0.42 %', '0 %')
    """
    number = 100 * share
    return f"{number:.0f} %" if number >= 10 else f"{number:.2g} %"


def count_bad(prob_bad: Array, freq_weights: Array | None) -> float:
    """Return how many observations are more likely bad than good."""
    bad = prob_bad > FLAGGED
    return float(np.sum(bad if freq_weights is None else bad * freq_weights))


def explanations_frame(explained: Explained, freq_weights: Array | None) -> pd.DataFrame:
    """Return the explanations that were compared as a table: the chosen one, then by BIC."""
    rows = explained.explanations
    table = pd.DataFrame(
        {
            "explanation": [each.name for each in rows],
            "log_likelihood": [each.log_likelihood for each in rows],
            "bic": explained.bics,
            "eps": [each.eps for each in rows],
            "n_bad": [count_bad(each.prob_bad, freq_weights) for each in rows],
            "chosen": [each.name == explained.chosen.name for each in rows],
        }
    )
    return table.sort_values(["chosen", "bic"], ascending=[False, True], ignore_index=True)


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedDistances:
    """Residuals or distances of the rows, with the densities of their explanation.

    Attributes
    ----------
    values : ndarray, shape (n,)
        Residuals or distances of the rows, or of the groups that have the weights.
    name : str
        What they are.
    densities : callable or None
        Return the densities of good and of bad rows at some values (m,), each times its share;
        None where they have no simple form.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> found = rrmstats.ols("log_light ~ log_te", stars).fit().explained_distances()
    >>> good, bad = found.densities(np.array([0.0, 30.0]))
    >>> found.name, bool(good[0] > bad[0])
    ('standardized residual', True)
    """

    values: Array
    name: str
    densities: Callable[[Array], tuple[Array, Array]] | None = None


class UnstableWarning(ModelWarning):
    """A fit that a larger `eps_bar` changes by more than chance.

    The bound is probably below the share of bad rows: leave `eps_bar` out, or set it to
    `stability.differs_at` or above, and look at the rows in `stability.gained`. Where both fits
    are plausible, report both.

    Examples
    --------
    >>> import warnings, rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.05).fit()
    >>> [each.category.__name__ for each in caught]
    ['UnstableWarning']
    """


@dataclass(frozen=True, kw_only=True)
class Stability:
    """A fit compared with those at larger values of `eps_bar`.

    Explanations are compared at the largest bound. Where the best one has no more bad rows than
    `eps_bar` allows, it is the fit, and the fit is the same at all bounds in between. Otherwise
    the rows are explained anew at 0.02, 0.04, ... above `eps_bar`, up to the first bound at which
    a term is further off than chance allows, in standard errors of the fit there, from the fit
    at the bound before. These are the jumps of a path in two steps.

    Attributes
    ----------
    eps_bar : float
        The bound of the fit.
    largest : float or None
        The largest bound at which explanations were compared; None where they were not.
    differs_at : float or None
        The first bound at which a term changes by more than chance; None for a stable fit.
    pvalue : float
        P-value of the largest difference, corrected for the number of terms.
    terms : tuple of str
        Terms that differ by more than chance, the largest difference first.
    explained_at, explanation : float and str, or None
        The first bound at which the rows have another explanation, and its name; None where they
        have none up to `differs_at`.
    gained, lost : tuple
        Labels of rows that are bad only with the larger bound, and only with the smaller.
    unit : {"rows", "groups"}
        What is good or bad.
    why : str
        Why nothing was compared, where `largest` is None.

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
    >>> res.stability.stable, res.stability.terms
    (True, ())
    """

    eps_bar: float
    largest: float | None = None
    differs_at: float | None = None
    pvalue: float = 1.0
    terms: tuple[str, ...] = ()
    explained_at: float | None = None
    explanation: str | None = None
    gained: tuple[Any, ...] = ()
    lost: tuple[Any, ...] = ()
    unit: str = "rows"
    why: str = ""

    @property
    def stable(self) -> bool:
        """Whether no larger bound changes the fit, as far as they were compared."""
        return self.differs_at is None

    @property
    def short(self) -> str:
        """The finding for a table."""
        if self.differs_at is not None:
            return f"NO, differs at {self.differs_at:.2g}"
        return "not checked" if self.largest is None else f"{self.largest:.2g}"

    @property
    def message(self) -> str:
        """The finding in sentences."""
        if self.largest is None:
            return f"Larger values of eps_bar were not compared: {self.why}."
        if self.differs_at is None:
            most, other = f"{self.largest:.2g}", ""
            if self.explained_at is not None:
                other = (
                    f", but from {self.explained_at:.2g} on it has another explanation of the rows"
                )
                other += f", {self.explanation}"
            return f"No larger eps_bar up to {most} changes the fit by more than chance{other}."
        text = (
            f"The fit changes with eps_bar = {self.differs_at:.2g} by more than chance in "
            f"{listed(self.terms)} (p = {self.pvalue:.1g})."
        )
        if self.gained:
            text += f" Bad only then: {self._named(self.gained)}."
        if self.lost:
            text += f" Bad no longer: {self._named(self.lost)}."
        return f"{text} Raise eps_bar, and see the path for all its values."

    def _named(self, labels: tuple[Any, ...]) -> str:
        """Return rows or groups by their labels, such as "row 3" or "rows 3, 5"."""
        unit = self.unit[:-1] if len(labels) == 1 else self.unit
        return f"{unit} {listed(labels)}"


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Return names as a list in a sentence, the first few of many."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
