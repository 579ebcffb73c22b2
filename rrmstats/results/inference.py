"""Standard errors, tests and intervals of an estimate, and checks of what users ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from statsmodels.stats.contrast import ContrastResults

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.sandwich import Dependence
from rrmstats.interchange import as_values

COV_TYPES = ("sandwich", "cluster", "HAC", "bootstrap")
#: What kinds of standard errors take in `cov_kwds`, besides the bootstrap.
COV_KWDS = {"cluster": ("groups", "labels"), "HAC": ("maxlags", "number")}
#: statsmodels' names of covariances for noise of any variance: the sandwich here.
AS_SANDWICH = ("hc0", "hc1", "hc2", "hc3", "robust")


# Fraction of clean rows that are not flagged, where flags go by distances.
# Convention: as robustbase and rrcov flag rows.
LEVEL = 0.975


@dataclass(frozen=True, eq=False)
class Replicates:
    """Parameters fitted to resampled data.

    Attributes
    ----------
    replicates : ndarray, shape (n_boot, k)
        Parameters fitted to each sample.
    acceleration : ndarray, shape (k,)
        That of the BCa intervals.
    interval : {"bca", "percentile"}
        Kind of the confidence intervals.
    scheme : {"pairs", "stratified", "groups"}
        How the samples were drawn.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.1).fit(
    ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
    >>> res.bootstrap.n_boot, res.bootstrap.scheme
    (50, 'pairs')
    """

    replicates: Array
    acceleration: Array
    interval: str
    scheme: str

    @property
    def n_boot(self) -> int:
        """Number of samples."""
        return len(self.replicates)

    def covariance(self) -> Array:
        """Return the covariance of the parameters over the samples, shape (k, k).

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.1).fit(
        ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
        >>> bool(abs(res.bootstrap.covariance() - res.cov_params()).max(axis=None) < 1e-12)
        True
        """
        return np.atleast_2d(np.cov(self.replicates, rowvar=False))

    def intervals(self, params: Array, alpha: float) -> Array:
        """Return percentile or BCa intervals, shape (k, 2).

        The acceleration of BCa is the skewness of the influence functions over six.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.1).fit(
        ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
        >>> res.bootstrap.intervals(res.params.to_numpy(), alpha=0.1).shape
        (2, 2)
        """
        levels = np.tile([alpha / 2, 1 - alpha / 2], (len(params), 1))
        if self.interval == "bca":
            below = (self.replicates < params).mean(axis=0)
            bias = norm.ppf(np.clip(below, 0.5 / self.n_boot, 1 - 0.5 / self.n_boot))
            z = bias[:, None] + norm.ppf(levels)
            levels = norm.cdf(bias[:, None] + z / (1 - self.acceleration[:, None] * z))
        return np.array(
            [np.quantile(draws, q) for draws, q in zip(self.replicates.T, levels, strict=True)]
        )

    def describe(self) -> str:
        """Return what was done in a few words.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.1).fit(
        ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
        >>> res.bootstrap.describe()
        'pairs bootstrap, 50 samples, BCa intervals'
        """
        name = {"bca": "BCa", "percentile": "percentile"}[self.interval]
        return f"{self.scheme} bootstrap, {self.n_boot} samples, {name} intervals"


@dataclass(frozen=True, eq=False)
class Inference:
    """How standard errors are found.

    Attributes
    ----------
    cov_type : {"sandwich", "nonrobust", "cluster", "HAC", "bootstrap"}
    cov_kwds : mapping
        Its options, as they were given to `fit`.
    use_t : bool or None
        Whether tests use Student's t distribution; None for the default of the model.
    dependence : Dependence
        Which rows may depend on each other.
    replicates : Replicates or None
        What the bootstrap found.
    """

    cov_type: str
    cov_kwds: Mapping[str, Any]
    use_t: bool | None
    dependence: Dependence = field(default_factory=Dependence)
    replicates: Replicates | None = None
    bootstrap: Callable[[Estimate], Replicates] | None = None

    def resampled(self, estimate: Estimate) -> Inference:
        """Return the same with the replicates of an estimate, where there is a bootstrap."""
        if self.bootstrap is None:
            return self
        return replace(self, replicates=self.bootstrap(estimate), bootstrap=None)

    def of_first_step(self) -> Inference:
        """Return the same for a first step; a bootstrap of it would take as long again."""
        if self.replicates is None:
            return self
        return Inference("sandwich", {}, self.use_t)

    def covariance(self, estimate: Estimate) -> Array:
        """Return the covariance of the parameters, shape (k, k)."""
        if self.replicates is not None:
            return self.replicates.covariance()
        if self.cov_type == "nonrobust":
            return estimate.nonrobust_covariance()
        return estimate.covariance(self.dependence)

    def of_influence(self, estimate: Estimate, influence: Array) -> Array:
        """Return the covariance of what has given influence functions (n, k), shape (k, k)."""
        return estimate.covariance_of(influence, self.dependence)

    def describe(self) -> str:
        """Return a sentence for the notes of a summary."""
        if self.replicates is not None:
            return f"Standard errors and intervals: {self.replicates.describe()}."
        kind = {
            "cluster": "clustered by groups",
            "HAC": f"for rows that depend on each other up to {self.dependence.maxlags} apart",
            "nonrobust": "for noise that does not change with the predictors",
        }.get(self.cov_type, "sandwich")
        return f"Standard errors: {kind}; the weights are estimated with the parameters."


def checked_cov_type(
    cov_type: str | None,
    cov_kwds: Mapping[str, Any],
    offered: Sequence[str],
    grouped: bool,
    weighted: bool,
) -> str:
    """Return the kind of standard errors: the one asked for, or the default of a model.

    Parameters
    ----------
    cov_type : str or None
    cov_kwds : mapping
    offered : sequence of str
        Kinds that the model offers.
    grouped, weighted : bool
        Whether weights are of groups, and whether the rows have frequency weights.
    """
    if cov_type is None:
        cov_type = "cluster" if grouped or "groups" in cov_kwds else "sandwich"
    elif str(cov_type).lower() in AS_SANDWICH:
        cov_type = "sandwich"
    if grouped and cov_type not in ("cluster", "bootstrap"):
        raise ValueError(
            f"cov_type={cov_type!r} takes rows as they are, but with groups= whole groups have "
            "influence; leave cov_type out for errors clustered by the groups, or use 'bootstrap'"
        )
    if cov_type not in offered:
        raise ValueError(
            f"cov_type must be one of {', '.join(offered)}, got {cov_type!r}; a covariance "
            "that takes the weights as known is not offered, because it is far too small"
        )
    name, kind = COV_KWDS.get(cov_type, ("", ""))
    given, own_groups = sorted(cov_kwds), grouped and cov_type == "cluster" and not cov_kwds
    if cov_type != "bootstrap" and not own_groups and given != ([name] if name else []):
        takes = f"cov_kwds={{{name!r}: {kind}}}" if name else "no cov_kwds"
        raise TypeError(f"cov_type={cov_type!r} takes {takes}, got {given}")
    if cov_type == "HAC" and weighted:
        raise ValueError(
            "cov_type='HAC' takes the rows to be in the order of time, which frequency weights "
            "do not tell; repeat the rows instead of weighting them"
        )
    return cov_type


def row_dependence(
    cov_type: str, cov_kwds: Mapping[str, Any], n: int, labels: Sequence[np.ndarray] | None
) -> Dependence:
    """Return which of n rows may depend on each other, as `cov_kwds` and group labels tell."""
    if labels is not None:
        numbers = [group_numbers(each) for each in labels]
        return Dependence(groups=numbers[0] if len(numbers) == 1 else np.column_stack(numbers))
    if cov_type != "HAC":
        return Dependence()
    lags = cov_kwds["maxlags"]
    if isinstance(lags, bool) or not isinstance(lags, int | np.integer) or not 0 <= lags < n:
        raise ValueError(
            f"maxlags must be a whole number from 0 to {n - 1}, one less than the rows, "
            f"got {lags!r}"
        )
    return Dependence(maxlags=int(lags))


def label_array(groups: Any, n: int, index: Any = None, dropped: Any = ()) -> np.ndarray:
    """Return the labels of groups, one for each of n rows, as an array.

    Labels of rows that a model has not are left out: those of rows with missing values, and of a
    Series those that its index does not have.
    """
    if isinstance(groups, str):
        raise TypeError(
            f"groups={groups!r} names a column, but arrays have none; give the labels themselves, "
            f"data[{groups!r}], or use a formula"
        )
    if isinstance(groups, pd.Series) and index is not None and len(groups) != n:
        groups = groups.loc[index]
    labels = np.asarray(as_values(groups))
    if len(dropped) and labels.shape == (n + len(dropped),):
        labels = np.delete(labels, dropped)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"groups must have one label per row, got shape {labels.shape}")
    if len(labels) != n:
        raise ValueError(f"groups must have one label for each of the {n} rows, got {len(labels)}")
    return labels


def group_numbers(labels: np.ndarray) -> np.ndarray:
    """Return labels of groups numbered from zero, or say what is wrong with them."""
    numbers, levels = pd.factorize(labels)
    missing = int((numbers < 0).sum())
    if missing:
        raise ValueError(
            f"groups has {missing} missing labels; drop these rows or give them a label of their "
            "own"
        )
    if len(levels) < 2:
        raise ValueError("groups needs at least two groups, got one; leave groups out")
    return numbers


def nested_restriction(mine: Sequence[str], theirs: Sequence[str]) -> Array:
    """Return the rows of the identity that test the terms which a smaller model lacks."""
    others = [name for name in theirs if name not in mine]
    tested = [name for name in mine if name not in theirs]
    if others or not tested:
        raise ValueError(
            "compare needs a smaller, nested model: its predictors must be some, not all, of "
            f"{list(mine)}, got {list(theirs)}"
        )
    return np.eye(len(mine))[[mine.index(name) for name in tested]]


def reaching(ends: Array, errors: Array, alternatives: Sequence[Array]) -> Array:
    """Return intervals whose ends away from zero are as far out as under other explanations.

    The ends toward zero stay, so that intervals and tests of zero agree.

    Parameters
    ----------
    ends : ndarray, shape (k, 2)
        Intervals around the parameters.
    errors : ndarray, shape (k,)
        Standard errors.
    alternatives : sequence of ndarray, shape (2, k)
        Differences from the parameters, and variances to be added.
    """
    low, high = ends.T
    center = 0.5 * (low + high)
    for shift, added in alternatives:
        half = 0.5 * (high - low) * np.sqrt(1.0 + added / errors**2)
        ends = np.column_stack(
            [
                np.where(center < 0, np.minimum(ends[:, 0], center + shift - half), ends[:, 0]),
                np.where(center > 0, np.maximum(ends[:, 1], center + shift + half), ends[:, 1]),
            ]
        )
    return ends


class ReachingContrast(ContrastResults):
    """A t test whose intervals reach as far from zero as under other explanations.

    Parameters
    ----------
    found : ContrastResults
    alternatives : sequence of ndarray, shape (2, m)
        As `reaching` takes them.
    """

    def __init__(self, found: ContrastResults, alternatives: Sequence[Array]) -> None:
        self.__dict__.update(vars(found))
        self._alternatives = alternatives

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return confidence intervals of the contrasts, shape (m, 2).

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> res.t_test("clump_thickness = 0").conf_int().shape
        (1, 2)
        """
        return reaching(super().conf_int(alpha), np.ravel(self.sd), self._alternatives)


def contrast_alternatives(alternatives: Sequence[Array], contrasts: Array) -> list[Array]:
    """Return what `reaching` takes for contrasts (m, k), from what it takes for parameters.

    How the added variances go together is not known: standard deviations add up at most.
    """
    return [
        np.array([contrasts @ shift, (np.abs(contrasts) @ np.sqrt(added)) ** 2])
        for shift, added in alternatives
    ]


def skewness(influence: Array) -> Array:
    """Return the sum of cubes over that of squares to the power 1.5, shape (k,)."""
    square = (influence**2).sum(axis=0)
    cube = (influence**3).sum(axis=0)
    return np.divide(cube, square**1.5, out=np.zeros_like(cube), where=square > 0)


def check_order(name: str, values: Any, labels: Any, dropped: Any = ()) -> None:
    """Raise where a Series has the labels of the rows, but in another order.

    `labels` are those of the rows that are left; `dropped` the positions of those that are not.
    """
    given = isinstance(values, pd.Series) and labels is not None
    if not given or len(values) != len(labels) + len(dropped):
        return
    left = values.index.delete(np.asarray(dropped, dtype=int))
    if not left.equals(labels) and labels.isin(values.index).all():
        raise ValueError(
            f"{name} has the labels of the data in another order; reindex it like the data"
        )


def checked_level(level: float | None) -> float:
    """Return a level of flags, the usual one for None; raise where it is not one."""
    if level is None:
        return LEVEL
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level:g}")
    return level


def test_freedom(results: Any) -> float:
    """Return the degrees of freedom of the tests of results; infinite for normal ones."""
    if not results.use_t:
        return np.inf
    return float(getattr(results, "df_resid_inference", results.df_resid))
