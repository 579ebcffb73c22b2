"""Formulas of the site: spaces are those of TeX."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml")

FILE = Path(__file__).parents[2] / "docs" / "_ext" / "mathml.py"
THIN = '<mspace width="0.167em" />'
MINUS = "&#x02212;</mo>"


@pytest.fixture(scope="module")
def mathml():
    spec = importlib.util.spec_from_file_location("mathml", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_stand_apart_from_factors_but_not_from_parentheses(mathml):
    made = mathml.spaced(mathml.convert(r"\pi \ln s + \ln(s)"))
    assert f"</mi>{THIN}<mi>ln</mi>{THIN}<mi>s</mi>" in made
    assert "<mi>ln</mi><mo" in made


@pytest.mark.parametrize("formula", [r"\exp(-\ell)", "a = -b", r"\quad -a"])
def test_a_sign_is_not_a_difference(mathml, formula):
    assert f'<mo form="prefix">{MINUS}' in mathml.spaced(mathml.convert(formula))
    assert f"<mo>{MINUS}" in mathml.spaced(mathml.convert("a - b"))


def test_what_is_minimized_over_stands_below(mathml):
    made = mathml.spaced(mathml.convert(r"\min_{\theta, \pi} F", display="block"))
    assert made.count("munder") == 2 and "msub" not in made
