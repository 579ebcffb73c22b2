"""What models and results inherit from statsmodels works, or says in a sentence what to use."""

import contextlib
import inspect
import io
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm
from model_table import MODELS, frame

import rrmstats

PACKAGE = Path(rrmstats.__file__).parent
DATA = frame()
X, Y = DATA["x"].to_numpy(), DATA["y"].to_numpy()
EXOG = sm.add_constant(DATA[["x", "z"]])

BUILDERS = {
    **{name: lambda e=entry: e.formula(DATA, eps_bar=0.2) for name, entry in MODELS.items()},
    "robustify": lambda: rrmstats.robustify(sm.Poisson(DATA["count"], EXOG), 0.2),
    "custom": lambda: rrmstats.custom(lambda t: (Y - t[0] - t[1] * X) ** 2, [0, 0], 0.2),
}

QUICK = {"n_starts": 5, "stability": False}

# They write, rebuild or remove, or fit again: other tests call them.
CHANGING = {"initialize", "remove_data", "save", "load", "path", "report", "bootstrap"}
CHANGING |= {"fit", "fit_regularized"}
# What the results ask the model for, with arguments that no user has.
INTERNAL = {"chosen", "results_of", "few_rows_of", "inference", "factors", "absorbed_problem"}

ARGUMENTS = {
    "r_matrix": lambda res: np.eye(len(res.params))[:1],
    "params": lambda res: np.asarray(res.params),
    "params_constrained": lambda res: np.asarray(res.params),
    "formula": lambda res: "y ~ x",
    "data": lambda res: DATA,
    "x": lambda res: np.asarray(res.model.endog),
    "mu": lambda res: np.ones(len(DATA)),
    "exog": lambda res: res.model.exog,
    "other": lambda res: res,
    "new": lambda res: DATA,
    "term_name": lambda res: "x",
    "constraints": lambda res: "x = 0",
}


@pytest.fixture(scope="module", params=BUILDERS)
def res(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BUILDERS[request.param]().fit(**QUICK, steps=1)


def called(thing, name, res):
    """Read an attribute, and call it with plausible arguments where it can be called."""
    member = getattr(thing, name)
    if not callable(member) or inspect.isclass(member):
        return
    required = [
        parameter.name
        for parameter in inspect.signature(member).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        member(*(ARGUMENTS.get(argument, lambda res: 1.0)(res) for argument in required))


def is_clear(error):
    """Tell whether an error is a sentence that this package says on purpose."""
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    ours = Path(last.tb_frame.f_code.co_filename).is_relative_to(PACKAGE)
    text = str(error)
    return ours and len(text.split()) > 5 and "NoneType" not in text and "object has" not in text


def walk(thing, res):
    """Return what goes wrong without a clear sentence, by name, and the names that were walked."""
    unclear, seen = {}, []
    for name in sorted(set(dir(getattr(thing, "_results", thing) if thing is res else thing))):
        if name.startswith("_") or name in CHANGING | INTERNAL:
            continue
        seen.append(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                called(thing, name, res)
        except Exception as error:
            if not is_clear(error):
                unclear[name] = f"{type(error).__name__}: {error}"
        plt.close("all")
    return unclear, seen


def test_models(res):
    unclear, _ = walk(res.model, res)
    assert unclear == {}


def test_results(res):
    unclear, seen = walk(res, res)
    assert unclear == {}
    assert {"predict", "t_test", "t_test_pairwise", "wald_test_terms", "cov_params"} <= set(seen)


@pytest.mark.parametrize("name", BUILDERS)
def test_results_without_data(name):
    res = BUILDERS[name]().fit(**QUICK, steps=1)
    params, errors = np.asarray(res.params), np.asarray(res.bse)
    res.remove_data()
    unclear, _ = walk(res, res)
    assert unclear == {}
    for gone in ("weights", "losses", "relative_weights"):
        with pytest.raises(AttributeError, match=rf"{gone} needs the data, .*remove_data\(\)"):
            getattr(res, gone)
    for method in (res.outliers, res.weight_table):
        with pytest.raises(
            ValueError, match=r"\(\) needs the data, which remove_data\(\) dropped"
        ):
            method()
    np.testing.assert_array_equal(res.params, params)
    np.testing.assert_array_equal(res.bse, errors)
    assert len(res.conf_int()) == len(params)
    assert "eps_bar" in str(res.summary())


@pytest.mark.parametrize(
    ("name", "method", "message"),
    [
        ("cov", "predict", r"no response to predict; results have mahalanobis\(new\)"),
        ("pca", "predict", r"no response to predict; results have transform\(new\)"),
        ("cov", "wald_test_terms", r"no predictors to test; use wald_test\(\)"),
        ("pca", "compare", r"not nested; use wald_test\(\)"),
        ("custom", "predict", "no predictions; use params"),
    ],
)
def test_methods_of_results_that_cannot_work(name, method, message):
    with pytest.raises(NotImplementedError, match=message):
        getattr(BUILDERS[name]().fit(**QUICK, steps=1), method)()


@pytest.mark.parametrize("name", ["ols", "logit", "poisson", "glm", "pca", "cov"])
@pytest.mark.parametrize("method", ["loglike", "score", "hessian", "information"])
def test_likelihoods_of_all_rows_are_refused(name, method):
    model = BUILDERS[name]()
    message = rf"{type(model).__name__} has no {method}\(\): .* counts bad rows like others"
    with pytest.raises(NotImplementedError, match=message):
        getattr(model, method)(np.zeros(3))


def test_pairs_of_levels_need_a_categorical_term():
    res = MODELS["ols"].formula(DATA, eps_bar=0.2).fit(steps=1)
    with pytest.raises(ValueError, match=r"levels of a categorical term .* got 'x'; .* t_test"):
        res.t_test_pairwise("x")


def test_distributions_of_a_family_with_a_dispersion():
    res = MODELS["glm"].formula(DATA, eps_bar=0.2).fit(steps=1)
    with pytest.raises(TypeError, match=r"scale is required .* scale=res.scale"):
        res.model.get_distribution(res.params)
    law = res.model.get_distribution(res.params, res.scale)
    np.testing.assert_allclose(law.mean(), res.fittedvalues)


def test_a_subclass_keeps_its_own_methods():
    class Own(rrmstats.RRMCov):
        def predict(self):
            return "mine"

    assert Own(EXOG[["x", "z"]], 0.2).predict() == "mine"


def test_errors_within_properties_are_seen():
    class Own(rrmstats.RRMOLS):
        @property
        def broken(self):
            return self.data.not_there

    with pytest.raises(AttributeError, match="not_there"):
        _ = Own(Y, EXOG, 0.2).broken
