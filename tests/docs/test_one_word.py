"""Notebooks in the manner of statsmodels' documentation run with one word changed.

Their data have hardly any bad rows, so that what they tell stays the same.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import rrmstats

LEAST_SQUARES = """
rng = np.random.default_rng(9876789)
x = np.linspace(0, 10, 100)
X = sm.add_constant(np.column_stack((x, x**2)))
y = X @ np.array([1, 0.1, 10]) + rng.standard_normal(100)
results = package.OLS(y, X).fit()
print(results.summary())
print("Parameters: ", results.params)
print("R2: ", results.rsquared)

x = np.linspace(0, 20, 50)
frame = pd.DataFrame({"x": x, "bend": (x - 5) ** 2})
frame["y"] = 0.5 * x + 0.5 * np.sin(x) - 0.02 * frame.bend + 5 + 0.5 * rng.normal(size=50)
res = package.ols("y ~ x + np.sin(x) + bend", frame).fit()
print("Standard errors: ", res.bse)
print("Predicted values: ", res.predict())
intervals = res.get_prediction().summary_frame()
fig, ax = plt.subplots(figsize=(8, 6))
ax.plot(x, frame.y, "o", label="data")
ax.plot(x, res.fittedvalues, "r--.", label="OLS")
ax.plot(x, intervals["obs_ci_upper"], "r--")
ax.plot(x, intervals["obs_ci_lower"], "r--")
ax.legend(loc="best")

frame["group"] = np.repeat([0, 1, 2], [20, 20, 10])
res2 = package.ols("y ~ x + C(group)", frame).fit()
print(res2.summary())
print(res2.f_test("C(group)[T.1] = C(group)[T.2] = 0"))
print(res2.f_test(np.eye(4)[1:3]))
print(res2.t_test("x = 0").summary_frame())
print(res2.conf_int(alpha=0.1))

longley = sm.datasets.longley.load_pandas()
ols_results = package.OLS(longley.endog, sm.add_constant(longley.exog)).fit()
print(ols_results.summary())
print(ols_results.condition_number)
infl = ols_results.get_influence()
print(2.0 / len(longley.exog) ** 0.5)
print(infl.summary_frame().filter(regex="dfb"))
"""

LABELS = """
spector = sm.datasets.spector.load_pandas()
exog = sm.add_constant(spector.exog)
logit_res = package.Logit(spector.endog, exog).fit(disp=0)
print("Parameters: ", logit_res.params)
print(logit_res.summary())
print(logit_res.pred_table())
margeff = logit_res.get_margeff()
print(margeff.summary())
print(logit_res.get_margeff(at="mean", method="eyex").summary_frame())
print(np.exp(logit_res.params), np.exp(logit_res.conf_int()))

frame = spector.data
res = package.logit("GRADE ~ GPA + TUCE + PSI", frame).fit(method="bfgs", maxiter=100, disp=0)
print(res.summary2())
print(res.predict(frame.head()))
print(res.get_prediction(frame.head()).summary_frame())
print(res.wald_test_terms())
print(res.t_test("GPA = TUCE"))
print(res.prsquared, res.nobs, res.df_model, res.df_resid)
print(res.resid_pearson[:5], res.resid_dev[:5])
print(res.get_influence().summary_frame().sort_values("cooks_d", ascending=False)[:5])
"""

MEANS = """
data = sm.datasets.star98.load_pandas()
exog = sm.add_constant(data.exog[["LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PCTCHRT"]])
res = package.GLM(data.endog, exog, family=sm.families.Binomial()).fit()
print(res.summary())
print("Total number of trials:", data.endog.iloc[:, 0].sum())
print("Parameters: ", res.params)
print("T-values: ", res.tvalues)
means = exog.mean(axis=0)
means25, means75 = means.copy(), means.copy()
means25["LOWINC"], means75["LOWINC"] = exog["LOWINC"].quantile([0.25, 0.75])
resp_25, resp_75 = res.predict(means25.to_frame().T), res.predict(means75.to_frame().T)
print(f"{(resp_75.iloc[0] - resp_25.iloc[0]) * 100:2.4f}%")
nobs, y, yhat = res.nobs, data.endog.iloc[:, 0] / data.endog.sum(axis=1), res.mu
fig, ax = plt.subplots()
ax.scatter(yhat, y)
line_fit = sm.OLS(y, sm.add_constant(yhat, prepend=True)).fit()
sm.graphics.abline_plot(model_results=line_fit, ax=ax)
fig, ax = plt.subplots()
ax.scatter(yhat, res.resid_pearson)
ax.hlines(0, 0, 1)
fig, ax = plt.subplots()
ax.hist(res.resid_deviance.copy(), bins=25)
sm.graphics.qqplot(res.resid_deviance.copy(), line="r")

scotland = sm.datasets.scotland.load_pandas()
scotland.exog = sm.add_constant(scotland.exog)
gamma = sm.families.Gamma(sm.families.links.Log())
print(package.GLM(scotland.endog, scotland.exog, family=gamma).fit().summary())

formula = "NABOVE + NBELOW ~ LOWINC + PERASIAN + PERBLACK + PERHISP + PCTCHRT"
mod1 = package.glm(formula=formula, data=data.data, family=sm.families.Binomial()).fit()
print(mod1.summary())
"""


class Statsmodels:
    OLS, Logit, GLM = sm.OLS, sm.Logit, sm.GLM
    ols, logit, glm = smf.ols, smf.logit, smf.glm


class Ours:
    OLS, Logit, GLM = rrmstats.RRMOLS, rrmstats.RRMLogit, rrmstats.RRMGLM
    ols, logit, glm = rrmstats.ols, rrmstats.logit, rrmstats.glm


#: Code, how many standard errors a parameter moves at most, and the explanation of the rows. The
#: shares of star98 vary more than binomial ones, for which statsmodels' errors make no allowance.
NOTEBOOKS = {
    "OLS": (LEAST_SQUARES, 0.6, {"none", "growing noise"}),
    "Logit": (LABELS, 0.6, {"none"}),
    "GLM": (MEANS, 3.5, {"overdispersed"}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_and_tells_the_same(name):
    code, most, explanations = NOTEBOOKS[name]
    theirs, ours = (
        {"np": np, "pd": pd, "sm": sm, "plt": plt, "package": package}
        for package in (Statsmodels, Ours)
    )
    exec(code, theirs)
    exec(code, ours)
    plt.close("all")
    fits = [each for each, found in ours.items() if hasattr(found, "explanation")]
    assert fits and {str(ours[each].explanation) for each in fits} == explanations
    for each in fits:
        errors = np.maximum(ours[each].bse, theirs[each].bse)
        assert (np.abs(ours[each].params - theirs[each].params) <= most * errors).all()
