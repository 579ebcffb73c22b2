"""Formula functions: the functions of a formula are looked up where it is written."""

import numpy as np
import patsy
import pytest
import statsmodels.formula.api as smf
from model_table import MODELS, frame
from numpy.testing import assert_allclose

import rrmstats
from rrmstats import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

CASES = {
    "ols": (rrmstats.ols, RRMOLS, "y ~ {}(x)", {}),
    "logit": (rrmstats.logit, RRMLogit, "label ~ {}(x)", {}),
    "glm": (rrmstats.glm, RRMGLM, "y ~ {}(x)", {}),
    "poisson": (rrmstats.poisson, RRMPoisson, "count ~ {}(x)", {}),
    "pca": (rrmstats.pca, RRMPCA, "~ {}(x) + y", {"n_components": 1}),
    "cov": (rrmstats.cov, RRMCov, "~ {}(x) + y", {}),
}


def twice(values):
    return 2 * values


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def expected(case):
    function, _, formula, kwargs = case
    return function(formula.format("np.exp"), frame(), 0.2, **kwargs).fit(steps=1).params


def test_both_engines_of_statsmodels(case, engine):
    function, _, formula, kwargs = case
    data = frame()
    data.loc[data.index[3], "x"] = np.nan
    res = function(formula.format("np.exp"), data, 0.2, **kwargs).fit(steps=1)
    expected = function(formula.format(""), data.assign(x=np.exp(data["x"])), 0.2, **kwargs).fit(
        steps=1
    )
    assert_allclose(res.params, expected.params, rtol=1e-8)
    design = res.model._formula_design
    spec = res.model.data.model_spec if design is None else design.designs[-1]
    assert type(spec).__module__.startswith(engine)
    new = frame()[10:15]
    for name in ("transform", "mahalanobis", "predict"):
        if hasattr(res, name) and not (name == "predict" and hasattr(res, "mahalanobis")):
            found = getattr(res, name)(new)
            transformed = getattr(expected, name)(new.assign(x=np.exp(new["x"])))
            assert_allclose(found, transformed, rtol=1e-8)
            break


@pytest.mark.parametrize("by", ["function", "class"])
def test_functions_local_to_the_caller(case, expected, by):
    def local(values):
        return np.exp(values)

    function, cls, formula, kwargs = case
    make = function if by == "function" else cls.from_formula
    res = make(formula.format("local"), frame(), 0.2, **kwargs).fit(steps=1)
    assert_allclose(res.params, expected, rtol=1e-9)


@pytest.mark.parametrize("by", ["function", "class"])
def test_eval_env_counts_frames_from_the_caller(case, expected, by):
    function, cls, formula, kwargs = case
    make = function if by == "function" else cls.from_formula

    def helper(eval_env):
        def outer(values):  # hides the one of the caller
            return values

        return make(formula.format("outer"), frame(), 0.2, eval_env=eval_env, **kwargs).fit(
            steps=1
        )

    def outer(values):
        return np.exp(values)

    assert_allclose(helper(1).params, expected, rtol=1e-9)
    assert not np.allclose(helper(0).params, expected)


@pytest.mark.filterwarnings("ignore:EvalEnvironment is deprecated:FutureWarning")
@pytest.mark.parametrize("by", ["function", "class"])
def test_an_environment_of_patsys(case, expected, by):
    function, cls, formula, kwargs = case
    make = function if by == "function" else cls.from_formula
    env = patsy.EvalEnvironment([{"given": np.exp}])
    res = make(formula.format("given"), frame(), 0.2, eval_env=env, **kwargs).fit(steps=1)
    assert_allclose(res.params, expected, rtol=1e-9)
    res = make(formula.format("given"), frame(), 0.2, eval_env={"given": np.exp}, **kwargs)
    assert_allclose(res.fit(steps=1).params, expected, rtol=1e-9)
    with pytest.raises(Exception, match="twice"):
        make(formula.format("twice"), frame(), 0.2, eval_env=-1, **kwargs)


@pytest.mark.parametrize("name", MODELS)
def test_new_data_go_through_the_formula(name):
    def local(values):
        return values**3

    function, _, formula, kwargs = CASES[name]
    data = frame()
    res = function(formula.format("local"), data, 0.2, **kwargs).fit(steps=1)
    predict = {"pca": "transform", "cov": "mahalanobis"}.get(name, "predict")
    whole = res.scores if name == "pca" else getattr(res, predict)()
    assert_allclose(getattr(res, predict)(data.iloc[:5]), whole[:5], rtol=1e-8)


def test_a_column_with_the_name_of_a_keyword(case):
    function, _, formula, kwargs = case
    data = frame().rename(columns={"x": "class"})
    bare, quoted = (formula.replace("{}(x)", word) for word in ("class", 'Q("class")'))
    with pytest.raises(ValueError, match=r"'class' is a keyword of Python; write Q\(\"class\"\)"):
        function(bare, data, 0.2, **kwargs)
    assert len(function(quoted, data, 0.2, **kwargs).endog) == len(data)
    with pytest.raises(SyntaxError, match="invalid syntax"):
        function(bare, frame(), 0.2, **kwargs)


@pytest.mark.parametrize("steps", [1, 2])
def test_weights_of_the_variance(steps):
    def local(values):
        return np.exp(values)

    data = frame()
    weights = np.linspace(0.5, 3.0, len(data))
    expected = smf.wls("y ~ local(x)", data, weights=weights).fit(cov_type="HC3")
    res = rrmstats.wls("y ~ local(x)", data, 0, weights=weights).fit(steps=steps)
    assert_allclose(res.params, expected.params, rtol=1e-9)
    assert_allclose(res.bse, expected.bse, rtol=1e-9)
    assert_allclose([res.llf, res.scale], [expected.llf, expected.scale], rtol=1e-9)
    with pytest.raises(TypeError, match=r"wls\(\) or var_weights= of glm\(\)"):
        RRMOLS.from_formula("y ~ x", data, weights=weights)
