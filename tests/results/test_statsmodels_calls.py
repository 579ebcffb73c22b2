"""Calls of statsmodels' users: they work here, or are refused in words that help.

Each is tried on statsmodels' own model first; what fails there does not count. Left out are
functions of statsmodels that take nothing but its own results: `linear_rainbow`, `linear_reset`,
`OLSInfluence`, in place of which results have `get_influence`, and the sandwiches `cov_hac` and
`cov_cluster`, in place of which `fit` has `cov_type`.
"""

import copy
import io
import pickle
import re
import warnings
from functools import partial
from inspect import signature
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from statsmodels.iolib.summary2 import summary_col
from statsmodels.sandbox.regression.predstd import wls_prediction_std
from statsmodels.stats import diagnostic, multitest, outliers_influence, stattools

import rrmstats

from .fits import DATA

N = len(DATA)
COLUMNS = {"hours": 1.0 + np.arange(N) % 3, "w": 1.0 + np.arange(N) % 2}
df = DATA.assign(firm=np.arange(N) // 6, t=np.arange(N), **COLUMNS)
POISSON = {"family": sm.families.Poisson()}
MODELS = {
    "ols": ("y", smf.ols, rrmstats.ols, sm.OLS, rrmstats.RRMOLS, {}),
    "logit": ("label", smf.logit, rrmstats.logit, sm.Logit, rrmstats.RRMLogit, {}),
    "poisson": ("count", smf.poisson, rrmstats.poisson, sm.Poisson, rrmstats.RRMPoisson, {}),
    "glm": ("count", smf.glm, rrmstats.glm, sm.GLM, rrmstats.RRMGLM, POISSON),
    "wls": (
        *("y", partial(smf.wls, weights=df.w), partial(rrmstats.wls, weights=df.w)),
        *(partial(sm.WLS, weights=df.w), partial(rrmstats.RRMGLM, var_weights=df.w), {}),
    ),
}
NAMES = {
    **{"copy": copy, "io": io, "pickle": pickle, "np": np, "sm": sm, "df": df},
    **{"summary_col": summary_col, "wls_prediction_std": wls_prediction_std},
    **vars(diagnostic),
    **vars(multitest),
    **vars(outliers_influence),
    **vars(stattools),
}

#: What statsmodels itself refuses here as there.
OF_STATSMODELS = "which must be one of|only be used with the log link"
#: Takes seconds of a generalized linear model of Gaussian responses.
COSTLY = "fit_regularized"

OF_MODELS = r"""
model.fit()
make(formula=formula, data=df).fit()
make(formula, data=df, subset=df.x1 > -1).fit()
make(formula, df, missing='drop').fit()
make(formula, df, missing='raise').fit()
make(formula, df, drop_cols=['x2']).fit()
make(formula, df, eval_env=0).fit()
make(short + ' + np.exp(x2)', df).fit()
make(short + ' + I(x2 ** 2)', df).fit()
make(short + ' + bs(x2, 4)', df).fit()
make(short + ' * x2', df).fit()
make(short + ' - 1', df).fit()
make(short + ' + Q("x2")', df).fit()
make(short + ' + standardize(x2)', df).fit()
Model(y, X).fit()
Model(y, X, missing='drop').fit()
Model(y, X, hasconst=True).fit()
Model(y, x1).fit()
Model(np.asarray(y), np.asarray(X)).fit()
Model(list(y), X.to_numpy().tolist()).fit()
Model(y.to_frame(), X).fit()
Model.from_formula(formula, df).fit()
model.fit(disp=0)
model.fit(disp=False, maxiter=100)
model.fit(method='newton')
model.fit(method='bfgs', maxiter=200, disp=0)
model.fit(start_params=np.zeros(5))
model.fit(cov_type='nonrobust')
model.fit(cov_type='HC0')
model.fit(cov_type='HC1')
model.fit(cov_type='HC2')
model.fit(cov_type='HC3')
model.fit(cov_type='HC1', use_t=True)
model.fit(cov_type='cluster', cov_kwds={'groups': df.firm})
model.fit(cov_type='cluster', cov_kwds={'groups': df['firm'].to_numpy(), 'use_correction': True})
model.fit(cov_type='HAC', cov_kwds={'maxlags': 3})
model.fit(cov_type='HAC', cov_kwds={'maxlags': 3, 'kernel': 'uniform'})
model.fit(cov_type='hac-panel', cov_kwds={'groups': df.firm, 'maxlags': 2})
model.fit(cov_type='hac-groupsum', cov_kwds={'time': df.t, 'maxlags': 2})
model.fit(cov_type='fixed scale', cov_kwds={'scale': 1.0})
model.fit(cov_type='EIM')
model.fit(method='qr')
model.fit(method='pinv')
model.fit(scale='X2')
model.fit(scale=1.0)
model.fit(tol=1e-10)
model.fit(full_output=False)
model.fit(full_output=1, callback=None, disp=0)
model.fit(warn_convergence=False)
model.fit(skip_hessian=True)
model.fit(use_t=True)
model.fit_regularized(method='elastic_net', alpha=0.1, L1_wt=0.5)
model.fit_constrained('x1 = 0')
make(formula, df, weights=df.w).fit()
make(formula, df, freq_weights=df.w).fit()
make(formula, df, var_weights=df.w).fit()
make(formula, df, offset=np.log(df.hours)).fit()
make(formula, df, exposure=df.hours).fit()
make(formula, df, check_rank=False).fit()
model.predict(np.zeros(5))
model.score(np.zeros(5))
model.loglike(np.zeros(5))
model.hessian(np.zeros(5))
model.information(np.zeros(5))
model.score_obs(np.zeros(5))
model.loglikeobs(np.zeros(5))
model.hessian_factor(np.zeros(5))
model.score_factor(np.zeros(5))
model.get_distribution(np.zeros(5), 1.0)
model.initialize()
model.exog_names
model.endog_names
model.formula
model.data.frame
model.df_resid
model.df_model
model.nobs
model.rank
model.k_constant
model.family
model.offset
model.cdf(np.zeros(3))
model.pdf(np.zeros(3))
model.whiten(np.zeros((120, 2)))
model.estimate_scale(np.ones(120))
model.estimate_tweedie_power(np.ones(120))
model.fit(max_start_irls=3)
model.fit(attach_wls=True)
model.fit(tol_criterion='params')
model.fit(atol=1e-8)
model.fit(ftol=1e-8, disp=0)
model.fit(method='lbfgs', disp=0)
model.fit(method='IRLS')
model.fit(cov_type='cluster', cov_kwds={'groups': df.firm, 'use_correction': False})
model.fit(cov_type='cluster', cov_kwds={'groups': df.firm, 'df_correction': True})
model.fit(cov_type='cluster', cov_kwds={'groups': df.firm}, use_t=True)
model.fit(cov_type='HAC', cov_kwds={'maxlags': 3, 'use_correction': True})
model.fit(cov_type='HAC', cov_kwds={'maxlags': 3, 'kernel': 'bartlett'})
model.fit(cov_type='hac-panel', cov_kwds={'time': df.t, 'maxlags': 2})
model.fit(cov_kwds=None)
model.fit(cov_type='HC0', cov_kwds={})
model.fit(cov_type='HC3', use_t=False)
model.fit(cov_type='hc1')
model.fit(start_params=np.zeros(5), disp=0)
model.fit(start_params=list(np.zeros(5)))
model.predict(np.zeros(5), X.to_numpy()[:, [0,1,2,1,2]])
model.get_distribution(np.zeros(5), 1.0, exog=np.zeros((2,5)))
model.get_distribution(params=np.zeros(5))
model.endog
model.exog
model.data
model.wexog
model.wendog
model.weights
model.pinv_wexog
model.sigma
model.n_trials
model.exposure
model.freq_weights
model.var_weights
model.mu
model.scale
model.loglike_mu(np.ones(120))
make(formula, df, offset='hours').fit()
make(formula, df, freq_weights='w').fit()
make(formula, df, hasconst=True).fit()
make(formula, df, missing='none').fit()
make(short + ' + C(g, Treatment("b"))', df).fit()
make(short + ' + C(g, Sum)', df).fit()
make(short + ' + x1:x2', df).fit()
make(short + ' + center(x2)', df).fit()
make(short + ' + cr(x2, 3)', df).fit()
make(short + ' + np.where(x2 > 0, 1, 0)', df).fit()
make(short + ' + 0', df).fit()
make(short, df.assign(x1=df.x1.where(df.t != 3))).fit()
make(short, df[df.x1 > 0]).fit()
make(short, df.to_dict('list')).fit()
make(short.replace('x1', '1'), df).fit()
Model(y, sm.add_constant(x1)).fit()
Model(y.to_numpy(), x1.to_numpy()).fit()
Model(y, X, missing='raise').fit()
Model(y, X).fit().summary()
Model(y, X).fit().predict(X)
Model(y, X).fit().predict(X.iloc[0])
Model(y, X).fit().predict([1, 0, 0])
Model(y, X).fit().predict(np.asarray(X)[:2])
Model(y, X).fit().get_prediction(X[:2]).summary_frame()
Model(y, X).fit().t_test([0, 1, 0])
Model(y, X).fit().t_test('x1 = 0')
Model(y, X).fit().f_test(np.eye(3)[1:])
Model(y, X).fit().params['x1']
Model(np.asarray(y), np.asarray(X)).fit().params[1]
Model(np.asarray(y), np.asarray(X)).fit().conf_int()[0]
Model(np.asarray(y), np.asarray(X)).fit().summary(xname=['a','b','c'])
Model(np.asarray(y), np.asarray(X)).fit().t_test('x1 = 0')
Model(endog=y, exog=X).fit()
model.fit_regularized(method='l1', alpha=0.5, disp=0)
""".strip().splitlines()

OF_RESULTS = r"""
res.summary()
res.summary(alpha=0.1)
res.summary(yname='Y')
res.summary(xname=list('abcde'))
res.summary(title='A title')
res.summary(slim=True)
res.summary().as_text()
res.summary().as_latex()
res.summary().as_html()
res.summary().as_csv()
res.summary().tables[1]
res.summary2()
res.summary2().tables[1]
res.summary2(float_format='%.3f')
summary_col([res, res])
summary_col([res], stars=True, info_dict={'N': lambda r: r.nobs, 'R2': lambda r: r.rsquared})
summary_col([res], model_names=['a'], regressor_order=['x1'])
res.params['x1']
res.params.x1
res.params.to_dict()
res.bse['x1']
res.pvalues < 0.05
res.tvalues.round(2)
res.conf_int()
res.conf_int(0.1)
res.conf_int(alpha=0.01).loc['x1']
np.exp(res.conf_int())
res.cov_params()
res.cov_params().loc['x1', 'x2']
res.cov_params(column=1)
res.cov_params(r_matrix=np.eye(5)[:2])
res.cov_params(r_matrix=np.eye(5)[:2], cov_p=np.eye(5))
res.t_test('x1 = 0')
res.t_test('x1 = x2')
res.t_test('x1 = 1, x2 = -1')
res.t_test(np.eye(5))
res.t_test(np.eye(5)[:2], use_t=True)
res.t_test((np.eye(5)[:2], [1, 2]))
res.t_test('x1 = 0').summary_frame()
res.f_test('x1 = 0')
res.f_test('x1 = x2 = 0')
res.f_test(np.eye(5)[1:])
res.f_test(np.eye(5)[1:]).fvalue
res.wald_test('x1 = 0', scalar=True)
res.wald_test('x1 = 0, x2 = 0', use_f=False, scalar=True)
res.wald_test(np.eye(5)[1:], scalar=False)
res.wald_test_terms()
res.wald_test_terms(skip_single=True)
res.wald_test_terms().table
res.wald_test_terms(combine_terms=['x'])
res.t_test_pairwise('C(g)')
res.t_test_pairwise('C(g)', method='bonferroni').result_frame
res.compare_f_test(small)
res.compare_lr_test(small)
res.compare_lm_test(small)
sm.stats.anova_lm(res)
sm.stats.anova_lm(res, typ=2)
sm.stats.anova_lm(res, typ=3)
sm.stats.anova_lm(small, res)
sm.stats.anova_lm(res, typ=2, robust='hc3')
res.predict()
res.predict(df)
res.predict(df[:3])
res.predict(exog=df[:3])
res.predict(dict(x1=[0, 1], x2=[0, 1], g=['a', 'b']))
res.predict(res.model.exog[:3], transform=False)
res.predict(df[:3], which='linear')
res.predict(df[:3], which='mean')
res.predict(which='var')
res.predict(linear=True)
res.predict(df[:3], offset=np.ones(3))
res.predict(df[:3], exposure=np.ones(3))
res.get_prediction()
res.get_prediction(df[:3])
res.get_prediction(df[:3]).summary_frame()
res.get_prediction(df[:3]).summary_frame(alpha=0.1)
res.get_prediction(df[:3]).conf_int()
res.get_prediction(df[:3]).conf_int(alpha=0.1)
res.get_prediction(df[:3]).conf_int(obs=True)
res.get_prediction(df[:3]).predicted_mean
res.get_prediction(df[:3]).se_mean
res.get_prediction(df[:3]).se_obs
res.get_prediction(df[:3]).predicted
res.get_prediction(df[:3]).se
res.get_prediction(df[:3]).t_test()
res.get_prediction(df[:3], which='linear')
res.get_prediction(df[:3], which='mean')
res.get_prediction(df[:3], which='linear').summary_frame()
res.get_prediction(df[:3], row_labels=['a', 'b', 'c']).summary_frame()
res.get_prediction(df[:3], weights=np.ones(3)).summary_frame()
res.get_prediction(df[:3], offset=np.ones(3))
res.get_prediction(df[:3], exposure=np.ones(3))
res.get_prediction(df[:3], average=True)
res.get_prediction(df[:1], which='prob')
res.get_prediction(res.model.exog[:3], transform=False)
res.get_robustcov_results('HC1')
res.get_robustcov_results()
res.get_robustcov_results(cov_type='HC3').summary()
res.get_robustcov_results('cluster', groups=df.firm)
res.get_robustcov_results('HAC', maxlags=2)
res.get_robustcov_results('HAC', maxlags=2, use_correction=True)
res.get_robustcov_results('nonrobust')
res.get_influence()
res.get_influence().summary_frame()
res.get_influence().summary_table()
res.get_influence().hat_matrix_diag
res.get_influence().cooks_distance
res.get_influence().cooks_distance[0]
res.get_influence().dffits
res.get_influence().dfbetas
res.get_influence().dfbeta
res.get_influence().d_params
res.get_influence().d_fittedvalues
res.get_influence().d_fittedvalues_scaled
res.get_influence().params_one
res.get_influence().resid_studentized
res.get_influence().resid_studentized_internal
res.get_influence().resid_studentized_external
res.get_influence().cov_ratio
res.get_influence().hat_diag_factor
res.get_influence().resid_score()
res.get_influence().resid_score_factor()
res.get_influence().plot_influence()
res.get_influence().plot_index()
res.get_influence().plot_index(y_var='resid')
res.get_influence().plot_index('cooks', threshold=0.1)
res.get_influence(observed=False)
res.outlier_test()
res.outlier_test('fdr_bh')
res.outlier_test(method='bonf', alpha=0.1)
res.outlier_test(cutoff=0.5)
sm.graphics.plot_fit(res, 'x1')
sm.graphics.plot_fit(res, 1)
sm.graphics.plot_regress_exog(res, 'x1')
sm.graphics.plot_partregress_grid(res)
sm.graphics.plot_ccpr(res, 'x1')
sm.graphics.plot_ccpr_grid(res)
sm.graphics.influence_plot(res)
sm.graphics.influence_plot(res, criterion='cooks')
sm.graphics.plot_leverage_resid2(res)
sm.graphics.abline_plot(model_results=simple)
sm.qqplot(res.resid)
sm.qqplot(res.resid, line='s', fit=True)
res.plot_partial_residuals('x1')
res.plot_added_variable('x1')
res.plot_ceres_residuals('x1')
res.plot_predict()
sm.graphics.plot_partregress('x1', 'x2', ['x1'], data=df, obs_labels=False)
res.get_margeff()
res.get_margeff().summary()
res.get_margeff().summary_frame()
res.get_margeff(at='mean')
res.get_margeff(at='overall', method='eyex')
res.get_margeff(dummy=True)
res.get_margeff(count=True)
res.get_margeff(atexog={1: 0.5}, at='mean')
res.pred_table()
res.pred_table(threshold=0.3)
res.get_distribution()
res.get_distribution(df[:3])
res.predict_prob()
res.get_diagnostic()
res.score_test()
res.score_test(exog_extra=np.asarray(df[['t']]))
res.info_criteria('aic')
res.info_criteria('bic')
res.pseudo_rsquared()
res.pseudo_rsquared('mcf')
res.pseudo_rsquared(kind='cs')
res.get_hat_matrix_diag()
res.get_hat_matrix_diag(observed=False)
res.resid.mean()
res.resid.plot()
res.fittedvalues.head()
np.asarray(res.fittedvalues)
res.model.fit()
res.mle_retvals['converged']
res.save(io.BytesIO())
pickle.loads(pickle.dumps(res)).params
copy.deepcopy(res).params
res.remove_data()
res.initialize(res.model, res.params)
res.el_test([0.0], [0])
res.conf_int_el(1)
durbin_watson(res.resid)
jarque_bera(res.resid)
omni_normtest(res.resid)
het_breuschpagan(res.resid, res.model.exog)
het_white(res.resid, res.model.exog)
het_goldfeldquandt(res.resid, res.model.exog)
linear_harvey_collier(res)
acorr_breusch_godfrey(res, nlags=2)
acorr_ljungbox(res.resid, lags=2)
variance_inflation_factor(res.model.exog, 1)
normal_ad(res.resid)
GLMInfluence(res).summary_frame()
MLEInfluence(res).summary_frame()
recursive_olsresiduals(res)
wls_prediction_std(res)
multipletests(res.pvalues)[1]
summary_table(res)
lm_test_glm(res, df[['t']].to_numpy())
res.set_null_options()
res.aic
res.bic
res.llf
res.llnull
res.prsquared
res.llr_pvalue
res.deviance
res.null_deviance
res.pearson_chi2
res.rsquared
res.rsquared_adj
res.fvalue
res.f_pvalue
res.mse_resid
res.mse_model
res.mse_total
res.ssr
res.ess
res.centered_tss
res.uncentered_tss
res.wresid
res.condition_number
res.eigenvals
res.HC1_se
res.cov_HC3
res.df_resid
res.df_model
res.nobs
res.scale
res.cov_type
res.cov_kwds
res.use_t
res.converged
res.method
res.mle_settings
res.fit_history
res.k_constant
res.resid_pearson
res.resid_deviance
res.resid_dev
res.resid_response
res.resid_working
res.resid_anscombe
res.resid_generalized
res.mu
res.null
res.bic_llf
res.bic_deviance
res.llf_scaled
res.aic + res.bic
res.family
res.normalized_cov_params
res.cov_params_default
res.tvalues
res.bse / res.params
res.params.index
res.params.values
res.summary(title='x', yname='y', xname=list('abcde'), alpha=0.1)
res.summary().extra_txt
res.summary().tables[0].as_html()
str(res.summary())
res.summary2(yname='Y')
res.summary2(xname=list('abcde'))
res.summary2(title='A', alpha=0.1)
res.summary2().as_latex()
summary_col([res], float_format='%.2f', show='t')
summary_col([res], fixed_effects=['g'])
summary_col([res], drop_omitted=True, regressor_order=['x1'])
res.conf_int(alpha=0.05, cols=[0, 1])
res.conf_int(cols=(1,))
res.cov_params(scale=1.0)
res.cov_params(cov_p=np.eye(5))
res.t_test('x1 = 0', use_t=False)
res.t_test('x1 = 0', cov_p=res.cov_params())
res.t_test('x1').pvalue
res.t_test('x1 = 0').tvalue
res.t_test('x1 = 0').conf_int(alpha=0.1)
res.t_test('x1 = 0').summary(alpha=0.1)
res.t_test('x1 - x2 = 0').effect
res.t_test([0, 1, 0, 0, 0])
res.t_test({'x1': 0})
res.f_test('x1 = 0', cov_p=res.cov_params())
res.f_test(['x1 = 0', 'x2 = 0'])
res.wald_test('x1 = 0', cov_p=res.cov_params(), scalar=True)
res.wald_test('x1 = 0', use_f=True, scalar=True)
res.wald_test('x1 = 0', df_constraints=1, scalar=True)
res.wald_test('x1 = 0', invcov=np.eye(1), scalar=True)
res.wald_test_terms(extra_constraints=['x1 = x2'])
res.wald_test_terms(scalar=True)
res.wald_test_terms().summary_frame()
res.t_test_pairwise('C(g)', alpha=0.1)
res.t_test_pairwise('C(g)', method=['hs', 'fdr_bh'])
res.t_test_pairwise('C(g)', factor_labels=['a', 'b', 'c'])
res.t_test_pairwise(term_name='C(g)')
res.compare_f_test(restricted=small)
res.compare_lr_test(small, large_sample=True)
res.compare_lm_test(small, demean=False)
res.predict(df.iloc[0:1])
res.predict(df.iloc[0])
res.predict(df[:3].to_dict('list'))
res.predict(df[:3].set_index('t'))
res.predict({'x1': 0, 'x2': 0, 'g': 'a'})
res.predict(which='linear')
res.predict(which='prob', y_values=[0, 1])
res.predict(exog=df[:3], which='mean')
res.predict(df[:3], transform=True)
res.predict(df[:3], linear=True)
res.predict(df[:3], offset=0)
res.predict(df[:3], exposure=1)
res.get_prediction(exog=df[:3], transform=True)
res.get_prediction(df[:3].to_dict('list'))
res.get_prediction(df[:3]).summary_frame().mean_ci_lower
res.get_prediction(df[:3]).summary_frame()['mean']
res.get_prediction(df[:3]).summary_frame()['obs_ci_lower']
res.get_prediction(df[:3]).linpred
res.get_prediction(df[:3]).linpred_se
res.get_prediction(df[:3]).var_pred
res.get_prediction(df[:3]).var_pred_mean
res.get_prediction(df[:3]).var_resid
res.get_prediction(df[:3]).tvalues
res.get_prediction(df[:3]).row_labels
res.get_prediction(df[:3]).df
res.get_prediction(df[:3]).dist
res.get_prediction(df[:3]).func
res.get_prediction(df[:3]).deriv
res.get_prediction(df[:3]).link
res.get_prediction(df[:3]).t_test(value=1)
res.get_prediction(df[:3]).t_test(alternative='larger')
res.get_prediction(df[:3]).conf_int(method='endpoint', alpha=0.1)
res.get_prediction(df[:3]).conf_int(method='delta')
res.get_prediction(df[:3], which='linear').conf_int()
res.get_prediction(df[:3], which='var')
res.get_prediction(df[:3], y_values=[0, 1], which='prob')
res.get_prediction(df[:3], agg_weights=np.ones(3), average=True)
res.get_prediction(offset=np.zeros(120))
res.get_robustcov_results(cov_type='HC0', use_t=False)
res.get_robustcov_results(cov_type='cluster', groups=df.firm, use_correction=False)
res.get_robustcov_results(cov_type='cluster', groups=df.firm, df_correction=True)
res.get_robustcov_results(cov_type='hac-panel', groups=df.firm, maxlags=2)
res.get_robustcov_results(cov_type='fixed scale')
res.get_influence().dfbetas[:, 1]
res.get_influence().ess_press
res.get_influence().resid_press
res.get_influence().resid_std
res.get_influence().influence
res.get_influence().sigma2_not_obsi
res.get_influence().sigma_est
res.get_influence().params_not_obsi
res.get_influence().det_cov_params_not_obsi
res.get_influence().resid
res.get_influence().endog
res.get_influence().exog
res.get_influence().k_vars
res.get_influence().k_params
res.get_influence().nobs
res.get_influence().scale
res.get_influence().cov_params
res.get_influence().hessian
res.get_influence().score_obs
res.get_influence().model_class
res.get_influence().results
res.get_influence().d_linpred
res.get_influence().d_linpred_scaled
res.get_influence().resid_score(joint=False)
res.get_influence().resid_score(index=[0])
res.get_influence().summary_table(float_fmt='%.3f')
res.get_influence().plot_influence(external=False)
res.get_influence().plot_influence(criterion='dffits', size=20, alpha=0.1)
res.get_influence().plot_index(y_var='hat')
res.get_influence().plot_index(y_var='dfbeta', idx=1)
res.get_influence().plot_index('cooks', title='t', only_labels=True)
res.outlier_test(labels=list(range(120)))
res.outlier_test(order=True)
res.outlier_test('sidak', alpha=0.01)
sm.graphics.plot_fit(res, 'x1', vlines=False)
sm.graphics.plot_fit(res, 'x1', y_true=None)
sm.graphics.influence_plot(res, external=False)
sm.graphics.influence_plot(res, alpha=0.1, size=10, criterion='DFFITS')
sm.graphics.abline_plot(model_results=simple, ax=None)
res.plot_partial_residuals('x1', ax=None)
res.plot_partial_residuals(1)
res.plot_added_variable(1)
res.plot_added_variable('x1', resid_type='resid_response')
res.plot_added_variable('x1', use_glm_weights=False)
res.plot_added_variable('x1', fit_kwargs={})
res.plot_ceres_residuals('x1', frac=0.5)
res.get_margeff(at='median')
res.get_margeff(at='zero')
res.get_margeff(at='all')
res.get_margeff(method='dyex')
res.get_margeff(method='eydx')
res.get_margeff().margeff
res.get_margeff().margeff_se
res.get_margeff().pvalues
res.get_margeff().tvalues
res.get_margeff().conf_int()
res.get_margeff().summary(alpha=0.1)
res.get_margeff().get_margeff(at='mean')
res.get_margeff('overall', 'dydx', None, False, False)
res.pred_table(0.5)
res.get_distribution(df[:3]).mean()
res.get_distribution(exog=df[:3], transform=True)
res.get_distribution(var_weights=np.ones(120))
res.get_distribution(offset=np.zeros(120))
res.get_distribution().rvs()
res.predict_prob([0, 1])
res.predict_prob(n=[0, 1], exog=df[:3])
res.get_diagnostic(y_max=5)
res.score_test(params_constrained=np.zeros(5), k_constraints=5)
res.score_test(exog_extra=df[['t']], cov_type='HC0')
res.info_criteria('aic', dk_params=1)
res.info_criteria('bic', scale=1)
res.info_criteria('aicc')
res.info_criteria('qaic', scale=1.5)
res.pseudo_rsquared(kind='mcf')
sm.load(io.BytesIO(pickle.dumps(res)))
copy.copy(res).params
res.model.predict(res.params)
res.model.predict(res.params, res.model.exog[:2])
res.model.data.row_labels
res.model.data.orig_endog
res.model.data.ynames
res.model.weights
res.model.rank
res.model.df_resid
res.model.k_constant
res.model.wexog
res.model.normalized_cov_params
res.model.mu
res.model.scale
res.model.information(res.params)
res.tvalues.abs().sort_values()
res.pvalues.round(3).to_frame('p')
res.params.to_frame().join(res.bse.rename('se'))
np.exp(res.params)
np.sqrt(np.diag(res.cov_params()))
res.resid / res.resid.std()
(res.fittedvalues - df['x1']).mean()
np.corrcoef(res.fittedvalues, res.model.endog)
sm.stats.durbin_watson(res.resid)
res.model.exog
res.model.endog
res.model.exog_names
res.model.endog_names
res.model.data.frame.head()
res.model.data.orig_exog
res.model.formula
res.model.data.design_info
res.model.data.xnames
res.model.score(res.params)
res.model.loglike(res.params)
""".strip().splitlines()


def names_of(kind, ours):
    """Return what the calls name: a model and results of one package, and data."""
    endog, smf_make, make, theirs, own, options = MODELS[kind]
    if ours:
        make, model = partial(make, eps_bar=0.1, **options), partial(own, eps_bar=0.1, **options)
    else:
        make, model = partial(smf_make, **options), partial(theirs, **options)
    formula, quiet = (
        f"{endog} ~ x1 + x2 + C(g)",
        {} if kind in ("ols", "glm", "wls") else {"disp": 0},
    )
    smaller = make(f"{endog} ~ x1", df).fit(**quiet)
    return {
        **NAMES,
        **{"make": make, "Model": model, "formula": formula, "short": f"{endog} ~ x1"},
        **{"y": df[endog], "X": sm.add_constant(df[["x1", "x2"]]), "x1": df[["x1"]]},
        **{"small": smaller, "simple": smaller, "model": make(formula, df)},
        "res": make(formula, df).fit(**quiet),
    }


def outcome(call, names):
    """Return what a call raises; None where it works."""
    if re.search("remove_data|res.initialize", call):
        names = {**names, "res": copy.deepcopy(names["res"])}
    try:
        eval(call, dict(names))
    except Exception as error:
        return error
    finally:
        plt.close("all")
    return None


def in_words(error):
    """Tell whether an error was raised by the package, and not by Python or numpy."""
    if re.search(r"unexpected keyword|has no attribute '\w+'$|positional arg", str(error)):
        return False
    if re.search(OF_STATSMODELS, str(error)):
        return True
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    package = Path(rrmstats.__file__).parent
    return package in Path(trace.tb_frame.f_code.co_filename).parents


def alternatives(names):
    """Return the words by which a refusal may name what to use instead."""
    model, results = names["model"], names["res"]
    known = {*dir(results), *dir(model), *rrmstats.__all__, *signature(model.fit).parameters}
    known = {word for word in known if word[0] != "_"} - {type(model).__name__, "model"}
    return known | {"response", "mean", "interval", "var_weights", "columns", "results"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_calls_work_or_are_refused_in_words(kind, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = names_of(kind, False), names_of(kind, True)
        calls = [call for call in (*OF_MODELS, *OF_RESULTS) if kind != "wls" or COSTLY not in call]
        known = [call for call in calls if outcome(call, theirs) is None]
        errors = {call: outcome(call, ours) for call in known}
    refused = {call: error for call, error in errors.items() if error is not None}
    raw = {call: repr(error) for call, error in refused.items() if not in_words(error)}
    assert not raw
    words, silent = alternatives(ours), {}
    for call, error in refused.items():
        asked = set(re.findall(r"\w+", call)) - {"fit", "predict", "cov_kwds"}
        if re.search(OF_STATSMODELS, str(error)):
            continue
        if not (set(re.findall(r"\w+", str(error))) - asked) & words:
            silent[call] = str(error)
    assert not silent
    with capsys.disabled():
        print(f"\n{kind}: {len(known)} calls, {len(known) - len(refused)} work", end=" ")
    assert len(known) >= 150 and len(refused) < 0.2 * len(known)
