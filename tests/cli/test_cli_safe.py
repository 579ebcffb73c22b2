import argparse
import ast

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rrmstats.cli.errors import CommandError, UsageError
from rrmstats.cli.formulas import FUNCTIONS, Formula, safe_environment
from rrmstats.cli.model import make_model

from .hostile_formulas import HOSTILE, LIVE

ORDINARY = [
    "y ~ x",
    "y ~ x - 1",
    "y ~ 0 + x",
    "y ~ -1 + x + time",
    "y~x+time",
    "y ~ x * time",
    "y ~ x:time + (x + time):group",
    "y ~ (x + time + group)**2",
    "y ~ x*group - x:group",
    "y ~ C(group)",
    "y ~ C(firm) * x",
    "y ~ class_ + x",
    "y ~ np.log(time) + log(time)",
    "log(y + 60) ~ sqrt(time) + np.abs(x)",
    "y ~ I(x**2) + I(x ** 3)",
    "y ~ I(1 / time) + I(-x) + I(2.5e-1 * (x - 1.) / .5)",
    "y ~ I(time ** -0.5) + np.exp(-time**2 / 2)",
    "y ~ Q(\"a b\") + Q('a b'):x",
    'y ~ np.tanh(Q("a b") * 2) + C(Q("class"))',
    "y ~ größe + log + np.log(time)",
    "y ~ 1",
]


@pytest.fixture
def attacked(folder):
    """Return data some of whose columns are called like builtins; they are in data.csv too."""
    rng = np.random.default_rng(0)
    names = ["y", "x", "open", "eval"]
    data = pd.DataFrame(rng.uniform(1, 2, (40, 4)), columns=names)
    data["g"] = rng.choice(list("abcdef"), 40)
    data.to_csv(folder / "data.csv", index=False)
    return data


@pytest.mark.parametrize("formula", HOSTILE, ids=lambda formula: ascii(formula)[:40])
def test_hostile_formulas_are_refused_and_none_runs(formula, attacked, refused, folder):
    line = refused("fit", formula, "data.csv", "--eps-bar", "0.1", "--safe", status=2)
    assert 10 < len(line) < 300
    assert line.isprintable()
    assert not (folder / "marker").exists()


@pytest.mark.parametrize("code", ["__import__('os').mkdir('marker')", "open('marker', 'w')"])
def test_columns_and_values_that_are_code_do_not_run(code, attacked, run, folder):
    firms = np.repeat(range(10), 4)
    label = np.where(attacked["x"] > attacked["y"], code, "other")
    attacked.assign(**{code: firms, "label": label}).to_csv("data.csv", index=False)
    for argv in (
        ["y ~ x", "--groups", code],
        ["y ~ x + label"],
        ["label ~ x", "--model", "logit", "--level", code],
    ):
        assert run("fit", *argv, "data.csv", "--eps-bar", "0.1", "--safe").status == 0
    assert not (folder / "marker").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("formula", LIVE)
def test_what_is_refused_would_run_without_safe(formula, attacked, run, folder):
    attacked.drop(columns=["open", "eval"]).to_csv("data.csv", index=False)
    run("fit", formula, "data.csv", "--eps-bar", "0.1")
    assert (folder / "marker").exists()


@pytest.mark.parametrize("name", ["open", "__import__", "__builtins__", "center", "bs", "zz"])
def test_names_do_not_exist_where_safe_formulas_are_evaluated(name, attacked):
    namespace = safe_environment(attacked[["x", "y"]]).namespace
    with pytest.raises(UsageError, match=rf"--safe refuses the name '{name}'"):
        namespace[name]
    assert vars(namespace["np"]).keys() < set(dir(np))
    assert not hasattr(namespace["np"], "save")


# Attributes of columns are refused by the white list alone.
@pytest.mark.filterwarnings("ignore:EvalEnvironment is deprecated:FutureWarning")
@pytest.mark.parametrize(
    "formula", [each for each in LIVE if "x.to_csv" not in each and "x.values" not in each]
)
def test_evaluation_alone_stops_names_that_are_not_known(formula, attacked, monkeypatch, folder):
    monkeypatch.setattr("rrmstats.cli.formulas.count_columns", lambda tree, frame: None)
    data = attacked.drop(columns=["open", "eval"])
    with pytest.raises(CommandError, match=r"refuses the name|no attribute"):
        make_model(options(formula, safe=True), data, 0.1)
    assert not (folder / "marker").exists()


def check_safe(formula, frame):
    return Formula(formula, frame, safe=True)


def options(formula, safe):
    others = dict.fromkeys(["exposure", "groups", "n_components", "level", "family"])
    return argparse.Namespace(formula=formula, model="ols", safe=safe, **others)


@pytest.mark.filterwarnings("ignore:EvalEnvironment is deprecated:FutureWarning")
@pytest.mark.parametrize("formula", ORDINARY)
def test_ordinary_formulas_make_the_same_design_with_and_without_safe(formula, rows):
    data = rows.assign(class_=rows["class"], größe=rows["time"])
    if " log " in formula:
        data["log"] = rows["time"] ** 2
    safe, free = (make_model(options(formula, safe), data, 0.1) for safe in (True, False))
    assert safe.exog_names == free.exog_names
    np.testing.assert_array_equal(safe.exog, free.exog)
    np.testing.assert_array_equal(safe.endog, free.endog)


@pytest.mark.parametrize("name", ["np", "C", "I", "Q", "log"])
def test_a_column_that_hides_a_function_is_named(name):
    data = pd.DataFrame({"y": [1.0], "x": [1.0], name: [1.0]})
    formula = {"np": "np.log(x)", "log": "log(x)", "Q": 'Q("x")'}.get(name, f"{name}(x)")
    with pytest.raises(UsageError, match=f"the function {name}: a column has its name"):
        check_safe(f"y ~ {formula}", data)
    check_safe(f"y ~ x + {name}", data)


def test_the_nearest_column_is_named(rows):
    with pytest.raises(UsageError, match="there is no such column; did you mean 'group'"):
        check_safe("y ~ groop", rows)


def test_words_are_no_numbers(rows):
    for formula in ("y ~ I(group * 2)", "y ~ log(word)", 'y ~ I(x + Q("class"))'):
        with pytest.raises(UsageError, match="it is not numeric"):
            check_safe(formula, rows)


def test_columns_are_counted_by_their_levels(rows):
    data = pd.DataFrame({"y": range(100), "a": range(100), "b": range(100)})
    check_safe("y ~ a*b + C(a)", data)
    with pytest.raises(UsageError, match="more than 2000 columns"):
        check_safe("y ~ C(a)*C(b)", data)


PIECES = [
    *("y", "x", "g", "~", "+", "-", "*", ":", "/", "**", "(", ")", "1", "2", ".5", "3.", "1e2"),
    *("np.log(", "log(", "I(", "C(", 'Q("', '")', "Q('", "np", ".", ",", "=", "[", "]", "'", '"'),
    *("open", "__class__", "lambda", " ", "_", "#", "\\", "\n", "f", "b", "if", "not", "x.x"),
]
PHRASES = st.recursive(
    st.sampled_from(["x", "y", "C(g)", 'Q("x")', "np.log(x)", "I(x**2)", "g", "1", "x.T", "open"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", ":", "**2", "/", "("]), inner).map(
            "".join
        ),
        st.tuples(st.sampled_from(["(", "log(", "I(", "-", "C("]), inner).map(
            lambda pair: "".join(pair) + ")" * (pair[0] != "-")
        ),
    ),
    max_leaves=6,
)


@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), PHRASES))
@example("log(x) + I(-x**2/3) + C(g):Q('x')")
def test_what_passes_is_arithmetic_to_python_too(right):
    """Python's own parser finds nothing but arithmetic in what the white list lets pass."""
    data = pd.DataFrame({"y": [1.0, 2.0], "x": [1.0, 2.0], "g": ["a", "b"]})
    try:
        formula = check_safe(f"y ~ {right}", data)
    except UsageError:
        return
    terms = (*formula.response, *formula.predictors)
    for code in (code for term in terms for code in term):
        for node in ast.walk(ast.parse(code, mode="eval").body):
            check_node(node, data.columns)


def check_node(node, columns):
    """Fail where a part of an expression is more than --safe allows."""
    if isinstance(node, ast.Call):
        assert not node.keywords and len(node.args) == 1
        name = ast.unparse(node.func)
        assert name in ("C", "I", "Q") or name.removeprefix("np.") in FUNCTIONS
    elif isinstance(node, ast.Attribute):
        assert ast.unparse(node.value) == "np" and node.attr in FUNCTIONS
    elif isinstance(node, ast.Name):
        assert node.id in {*columns, "C", "I", "Q", "np", *FUNCTIONS}
    elif isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float) or node.value in columns
    else:
        allowed = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
        assert isinstance(node, allowed), ast.dump(node)
