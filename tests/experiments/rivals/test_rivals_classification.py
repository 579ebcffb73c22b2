import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.iolib.summary2 import summary_col
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

import rrmstats
from replication.rivals import SeverLogit
from replication.samples import logistic_labels, separated_strip


def test_gradients_are_the_slopes_of_the_losses(rng):
    endog, exog = logistic_labels(rng, 200)
    model = SeverLogit(endog, exog, 0.2)
    theta, found = model.fit(rounds=0).params, model._gradients(np.arange(200))

    def losses(theta):
        return np.logaddexp(0, -(2 * endog - 1) * (exog @ theta))

    for j, step in enumerate(1e-5 * np.eye(len(theta))):
        slope = (losses(theta + step) - losses(theta - step)) / 2e-5
        np.testing.assert_allclose(found[:, j], slope, rtol=1e-4, atol=1e-5)


def test_without_corruption_it_is_maximum_likelihood(rng):
    y, x = logistic_labels(rng, 300)
    fit = sm.Logit(y, x).fit(disp=0)
    res = SeverLogit(y, x, 0).fit()
    np.testing.assert_allclose(res.params, fit.params, rtol=1e-6)
    np.testing.assert_allclose(res.bse, fit.bse, rtol=1e-6)


def test_logit_formula_beside_the_others(rng):
    y, x = logistic_labels(rng, 300)
    frame = pd.DataFrame({"y": y, "x": x[:, 1]})
    res = SeverLogit.from_formula("y ~ x", frame, eps_bar=0.04).fit()
    erm = sm.Logit.from_formula("y ~ x", frame).fit(disp=0)
    rrm = rrmstats.logit("y ~ x", frame, eps_bar=0.04).fit()
    text = str(summary_col([erm, rrm, res], model_names=["ERM", "RRM", "SEVER"]))
    assert len(next(line for line in text.splitlines() if line.startswith("x ")).split()) == 4
    assert "ignore the removal" in " ".join(str(res.summary()).split())
    assert res.pred_table().sum() == res.nobs


def test_separated_rows_give_a_direction_and_a_warning(rng):
    y, x = separated_strip(rng)
    with pytest.warns(PerfectSeparationWarning, match="SEVER kept"):
        res = SeverLogit(y[:-5], x[:-5], 0.2).fit()
    assert np.isfinite(res.params).all()
    assert ((x[:-5] @ res.params > 0) == y[:-5])[res.kept].all()
    assert not res.converged


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(9.0), "unit interval"),
        (np.full(9, 0.5), r"endog must be 0 and 1, got \[0.5\]"),
        (np.zeros(9), "endog has one class only, all 0"),
    ],
)
def test_labels_are_zeros_and_ones(labels, message):
    with pytest.raises(ValueError, match=message):
        SeverLogit(labels, np.ones(9), 0.1)


def test_every_label_removed():
    y = np.r_[np.zeros(30), 1.0]
    with pytest.raises(ValueError, match="has the label 0; lower eps_bar"):
        SeverLogit(y, np.c_[np.ones(31), np.arange(31) % 7], 0.1).fit()
