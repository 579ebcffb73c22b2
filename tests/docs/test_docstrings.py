"""Every public name has a docstring with an example, and help that a person can read."""

import importlib
import inspect
import pydoc
from functools import cached_property
from typing import get_origin

import pytest
from sklearn.base import BaseEstimator

import rrmstats
from rrmstats.models import RRMModel
from rrmstats.results import RRMPath, RRMResults

MODULES = [
    "rrmstats",
    "rrmstats.core",
    "rrmstats.datasets",
    "replication",
    "replication.rivals",
    "replication.samples",
    "rrmstats.formula",
    "rrmstats.interchange",
    "rrmstats.losses",
    "rrmstats.models",
    "rrmstats.plotting",
    "rrmstats.report",
    "rrmstats.results",
    "rrmstats.sklearn",
]
FORMULAS = ["cov", "glm", "logit", "ols", "pca", "poisson"]
# Classes whose methods users call; those of losses are called by the search.
USED = (RRMModel, RRMResults, RRMPath, BaseEstimator)
# What models offer to their results and to the search, which users do not call.
INNER = {
    *("problem", "chosen", "second_step", "whiten", "shaped", "fitted_copy"),
    *("on_sample", "design_in_partitions", "predicted", "column_unit"),
    *("inference", "few_rows_of"),
}


def public_things():
    """Return the public functions and classes by their full names, each once."""
    found = {}
    for module in MODULES:
        home = importlib.import_module(module)
        for name in home.__all__:
            thing = getattr(home, name)
            # Python 3.10 takes aliases of types for classes.
            if inspect.isfunction(thing) or (inspect.isclass(thing) and not get_origin(thing)):
                found.setdefault(id(thing), (f"{module}.{name}", thing))
    return dict(found.values())


THINGS = public_things()
CLASSES = {name: thing for name, thing in THINGS.items() if inspect.isclass(thing)}


def members(cls):
    """Return the public methods and properties that a class has from this package."""
    found = {}
    for kind in reversed(cls.__mro__):
        if kind.__module__.startswith("rrmstats"):
            found |= {name: value for name, value in vars(kind).items() if name[0] != "_"}
    plain = {name: getattr(value, "__func__", value) for name, value in found.items()}
    # Functions that scikit-learn's classes lend are described there.
    own = {
        n: v for n, v in plain.items() if not getattr(v, "__module__", "").startswith("sklearn")
    }
    kinds = (property, cached_property)
    return {n: v for n, v in own.items() if isinstance(v, kinds) or inspect.isfunction(v)}


def documented(thing):
    return (thing.__doc__ or "").strip()


def test_the_walk_sees_the_package():
    assert len(THINGS) > 80
    assert {"rrmstats.ols", "rrmstats.core.minimize", "rrmstats.plotting.plot_path"} <= set(THINGS)


@pytest.mark.parametrize("name", THINGS)
def test_functions_and_classes_have_examples(name):
    text = documented(THINGS[name])
    assert "Examples\n" in text and ">>> " in text, name


@pytest.mark.parametrize("name", CLASSES)
def test_methods_and_properties_have_docstrings(name):
    missing = [member for member, value in members(CLASSES[name]).items() if not documented(value)]
    assert missing == []


@pytest.mark.parametrize(
    "name",
    [name for name, cls in CLASSES.items() if issubclass(cls, USED)],
)
def test_methods_that_users_call_have_examples(name):
    methods = {n: v for n, v in members(CLASSES[name]).items() if inspect.isfunction(v)}
    assert methods
    without = [
        member
        for member, value in methods.items()
        if ">>> " not in documented(value)
        and not documented(value).startswith("Refuse")
        and member not in INNER
    ]
    assert without == []


@pytest.mark.parametrize("name", ["custom", "robust_weights", "robustify", *FORMULAS])
def test_help_of_functions(name):
    function = getattr(rrmstats, name)
    text = pydoc.plain(pydoc.render_doc(function))
    assert "_typing" not in text and "npt." not in text
    parameters = inspect.signature(function).parameters
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())
    for parameter in parameters:
        assert f"    {parameter} : " in text, parameter


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_take_what_the_class_takes(name):
    function = getattr(rrmstats, name)
    model = getattr(rrmstats, inspect.signature(function).return_annotation)
    data = {"self", "endog", "exog", "data", "kwargs"}
    taken = set(inspect.signature(model.__init__).parameters) - data
    assert taken <= set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", [n for n, c in CLASSES.items() if issubclass(c, RRMModel)])
def test_help_of_models(name):
    text = pydoc.plain(pydoc.render_doc(CLASSES[name]))
    assert "numpy._typing" not in text and "npt." not in text
    fit = str(inspect.signature(CLASSES[name].fit))
    assert "**" not in fit and ("steps" in fit or "Sever" in name)
