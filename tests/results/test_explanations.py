"""What results tell of the explanations that a second step compared."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rrmstats
from rrmstats.core.explanations import Bad, Explained, Explanation, Good, best_of_each
from rrmstats.core.grouped import GroupedProblem
from rrmstats.losses.regression import RegressionProblem
from rrmstats.results.explanations import (
    BAD_ROWS,
    BESIDE_BAD_ROWS,
    GOOD_ROWS,
    POISSON,
    VARIABLES,
    described,
    explanations_frame,
    percent,
)

HBK = rrmstats.datasets.hbk.load_pandas().data


def explanation(good, bad, prob_bad, log_likelihood=0.0, penalty=0.0):
    eps = float(np.mean(prob_bad))
    return Explanation(
        good=good,
        bad=bad,
        log_likelihood=log_likelihood,
        penalty=penalty,
        eps=eps,
        prob_bad=prob_bad,
    )


def explained_by(bad_units, count):
    prob_bad = np.where(np.arange(count) < bad_units, 0.99, 0.01)
    each = [
        explanation(Good.PLAIN, Bad.NONE, np.zeros(count), -200.0),
        explanation(Good.HEAVY_TAILS, Bad.NONE, np.zeros(count), -150.0, np.log(75)),
        explanation(Good.PLAIN, Bad.CLUSTER, prob_bad, -100.0, 3 * np.log(75)),
    ]
    ordered = best_of_each(each)
    return Explained(explanations=ordered, chosen=ordered[0])


@pytest.fixture
def explain(monkeypatch):
    """Return a function after which second steps call the first rows, or groups, bad."""

    def patched(bad_units):
        for kind in (RegressionProblem, GroupedProblem):

            def second_step(self, first, old=kind.second_step):
                second = old(self, first)
                found = explained_by(bad_units, self.n_obs)
                chosen = found.chosen
                return replace(second, explained=found, eps_hat=chosen.eps, eps_hat_se=0.04)

            monkeypatch.setattr(kind, "second_step", second_step)

    return patched


@pytest.fixture
def res(explain):
    explain(10)
    return rrmstats.ols("y ~ x1 + x2 + x3", HBK, eps_bar=0.2).fit()


def test_flags_and_share_are_those_of_the_probabilities(res):
    assert isinstance(res.prob_bad, pd.Series)
    assert_array_equal(res.prob_bad.index, HBK.index)
    assert_array_equal(res.outliers(), res.prob_bad > 0.5)
    assert int(res.outliers().sum()) == len(res.outlier_table()) == 10
    assert_array_equal(res.outliers(level=0.975), res._results._flags(0.975))
    assert res.outliers(level=0.5).sum() > 20
    assert res.weight_table(75)["outlier"].sum() == 10


def test_the_chosen_explanation_is_told(res):
    assert res.steps == 2
    assert res.explanation == res.explanation.name == "cluster"
    assert res.explanation.sentence == "14 % of the rows form a cluster above the fit."
    again = pickle.loads(pickle.dumps(res.explanation))
    assert (again, again.sentence) == (res.explanation, res.explanation.sentence)


def test_the_explanations_are_a_table(res):
    table = res.explanations
    assert table["explanation"].tolist() == ["cluster", "heavy tails", "none"]
    assert table["log_likelihood"].tolist() == [-100, -150, -200]
    assert_allclose(table["bic"], [3 * np.log(75) - 200, np.log(75) - 100, 0.0])
    assert table["n_bad"].tolist() == [10, 0, 0]
    assert table["chosen"].tolist() == [True, False, False]
    assert_allclose(table["eps"], [res.eps_hat, 0, 0])


def test_the_summary_tells_it(res):
    text = str(res.summary())
    words = " ".join(text.split())
    assert "Bad rows: 10 of 75 (14 %, se 4 %)" in words
    assert "Explanation: cluster" in words
    assert f"{res.explanation.sentence} Intervals are conditional on this and on eps_bar" in words
    assert "another minimum" not in words
    slim = " ".join(str(res.summary(slim=True)).split())
    assert "Explanation: cluster" in slim and "Bad rows:" in slim


@pytest.mark.parametrize("eps_bar, follows", [(0.1, True), (0.2, False)])
def test_another_minimum_is_told(eps_bar, follows):
    """With a bound of 0.1 the risk is least at a fit to the ten bad rows."""
    res = rrmstats.ols("y ~ x1 + x2 + x3", HBK, eps_bar).fit()
    assert (res.first_step.weights[:10].max() > 0.01) == follows
    words = " ".join(str(res.summary()).split())
    sentence = "The second step follows another minimum of the risk than the first."
    assert (sentence in words) == follows


def test_the_temperature_is_that_of_the_first_step(res):
    assert res.lambda_ == res.first_step.lambda_
    assert (res.trace["step"] == "second step").any()


def test_one_step_has_no_explanation(res):
    first = res.first_step
    assert first.steps == 1
    assert first.explanation is None and first.explanations is None
    with pytest.raises(AttributeError, match="prob_bad needs a second step, steps=2"):
        _ = first.prob_bad
    assert_array_equal(first.outliers(), first.outliers(level=0.975))
    assert "Explanation: n/a" in " ".join(str(first.summary()).split())


def test_removed_data_leave_the_explanations(res):
    table, text = res.explanations, str(res.summary())
    res.remove_data()
    pd.testing.assert_frame_equal(res.explanations, table)
    assert res.explanation == "cluster"
    assert "10 of 75" in text and "10 of 75" in str(res.summary())
    with pytest.raises(AttributeError, match="remove_data"):
        _ = res.prob_bad


def test_frequency_weights_count(explain):
    explain(10)
    counts = np.where(np.arange(75) < 5, 3.0, 1.0)
    model = rrmstats.ols("y ~ x1 + x2 + x3", HBK, eps_bar=0.3, freq_weights=counts)
    res = model.fit()
    assert res.explanations["n_bad"].iloc[0] == 20
    assert "20 of 85" in str(res.summary())


def test_groups_are_good_or_bad_as_a_whole(explain):
    explain(2)
    data = HBK.assign(unit=np.arange(75) // 5)
    res = rrmstats.ols("y ~ x1 + x2 + x3", data, eps_bar=0.25, groups="unit").fit()
    assert_array_equal(res.prob_bad > 0.5, np.arange(75) < 10)
    assert_array_equal(res.group_view.prob_bad > 0.5, np.arange(15) < 2)
    assert res.outlier_groups().sum() == 2
    assert res.group_table(15)["outlier"].sum() == 2
    words = " ".join(str(res.summary()).split())
    assert "Bad groups: 2 of 15" in words
    assert "of the groups form a cluster" in res.explanation.sentence


def test_a_path_flags_bad_rows(explain):
    explain(10)
    path = rrmstats.ols("y ~ x1 + x2 + x3", HBK, eps_bar=0.2).path([0.1, 0.2])
    assert path.steps == 2
    assert (path.flags.sum() == 10).all()


def test_every_explanation_has_a_sentence():
    assert set(GOOD_ROWS) == set(BESIDE_BAD_ROWS) == set(Good)
    assert set(BAD_ROWS) == set(Bad) - {Bad.NONE}
    for good in Good:
        for bad in Bad:
            sentence = described(explanation(good, bad, np.full(10, 0.2))).sentence
            assert sentence.endswith(".") and "{" not in sentence
            assert ("20 %" in sentence) == (bad is not Bad.NONE)


def test_sentences_name_the_distribution():
    found = explanation(Good.OVERDISPERSED, Bad.NONE, np.zeros(10))
    assert "Poisson" in described(found, wording=POISSON).sentence
    both = explanation(Good.OVERDISPERSED, Bad.WIDE, np.full(10, 0.2))
    sentence = described(both, wording=POISSON).sentence
    assert sentence.startswith("20 % of the rows") and "negative binomial" in sentence


def test_a_share_at_its_bound_is_a_lower_bound():
    found = explanation(Good.PLAIN, Bad.CLUSTER, np.full(10, 0.2))
    assert described(found, eps_bar=0.3).sentence.startswith("20 % of the rows form")
    assert described(found, eps_bar=0.2).sentence.startswith("At least 20 % of the rows form")
    res = rrmstats.ols("y ~ x1 + x2 + x3", HBK, eps_bar=0.1).fit()
    assert "10 of 75 (at least 10 %)" in str(res.summary())


def test_one_bad_row_is_no_cluster():
    for bad in (Bad.WIDE, Bad.CLUSTER, Bad.SCATTERED):
        found = explanation(Good.PLAIN, bad, np.r_[1.0, np.zeros(19)])
        assert described(found).sentence == "One of the rows (5 %) lies far from the others."
        least = described(found, eps_bar=0.05).sentence
        assert least == "One of the rows (at least 5 %) lies far from the others."
        more = replace(found, eps=0.2)
        assert described(more).sentence.startswith("20 % of the rows")


def test_nothing_is_claimed_where_no_row_may_be_bad():
    res = rrmstats.ols("y ~ x1 + x2 + x3", HBK, eps_bar=0).fit(stability=False)
    assert res.explanation.sentence == "No rows may be bad, since eps_bar is 0."
    assert "second step" not in str(res.summary())


def test_intervals_of_labels_allow_for_flips_that_do_not_show():
    cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    words = " ".join(str(res.summary()).split())
    assert (
        "intervals reach as far from zero as under explanations that are nearly as good" in words
    )
    assert "conditional on this" not in words


def test_the_chosen_explanation_comes_first():
    rows = [explanation(Good.PLAIN, bad, np.zeros(10)) for bad in (Bad.NONE, Bad.WIDE)]
    ranked = [replace(each, log_likelihood=-float(i)) for i, each in enumerate(rows)]
    table = explanations_frame(Explained(explanations=tuple(ranked), chosen=ranked[1]), None)
    assert table["explanation"].tolist() == ["wide", "none"]
    assert table["bic"].is_monotonic_decreasing


def test_groups_have_probabilities():
    data = HBK.assign(unit=np.arange(75) // 5)
    res = rrmstats.ols("y ~ x1 + x2 + x3", data, eps_bar=0.25, groups="unit").fit()
    assert_array_equal(res.prob_bad > 0.5, np.arange(75) < 10)
    assert res.explanations["n_bad"][0] == 2
    assert_allclose(res.eps_hat, 10 / 75, atol=0.01)


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.004, "0.4 %"), (0.0951, "9.5 %"), (0.4, "40 %")]
)
def test_percentages(share, text):
    assert percent(share) == text


def test_rows_in_partitions(monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    old = RegressionProblem.second_step

    def second_step(self, first):
        second = old(self, first)
        prob_bad = 1.0 * (second.solution.losses > 100 * second.solution.losses.mean() / 75)
        chosen = Explanation(
            good=Good.PLAIN,
            bad=Bad.WIDE,
            log_likelihood=0.0,
            penalty=9.2,
            eps=0.1,
            prob_bad=prob_bad,
        )
        found = Explained(explanations=(chosen,), chosen=chosen)
        return replace(second, explained=found, eps_hat=0.1, eps_hat_se=0.04)

    monkeypatch.setattr(RegressionProblem, "second_step", second_step)
    formula = "y ~ x1 + x2 + x3"
    res = rrmstats.ols(formula, dask.from_pandas(HBK, npartitions=3), eps_bar=0.2).fit()
    memory = rrmstats.ols(formula, HBK, eps_bar=0.2).fit()
    assert_allclose(res.prob_bad.compute(), memory.prob_bad)
    assert_array_equal(res.outliers().compute(), memory.outliers())
    assert res.explanations["n_bad"].tolist() == memory.explanations["n_bad"].tolist()
    assert len(res.outlier_table()) == int(memory.outliers().sum()) > 0
    assert len(res.seen_rows.prob_bad) == 75
    assert f"{len(memory.outlier_table())} of 75" in str(res.summary())


def test_bad_rows_beside_heavy_tails_are_not_denied():
    found = explanation(Good.HEAVY_TAILS, Bad.TWO_CLUSTERS, np.full(100, 0.39))
    sentence = described(found, wording=VARIABLES).sentence
    assert sentence.startswith("39 % of the rows form two clusters apart from the others. The no")
    assert "No bad rows" not in sentence
