"""No ten lines of code stand in two places of the package, docstrings and comments aside."""

import ast
from collections import defaultdict
from pathlib import Path

import rrmstats

PACKAGE = Path(rrmstats.__file__).parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def code_lines(path):
    """Return numbers and texts of the lines of code of a file."""
    source, docstrings = path.read_text(encoding="utf-8"), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstrings |= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    lines = [(number, line.strip()) for number, line in enumerate(source.splitlines(), 1)]
    return [(n, line) for n, line in lines if line and line[0] != "#" and n not in docstrings]


def test_no_ten_lines_of_code_stand_in_two_places():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        lines = code_lines(path)
        for i in range(len(lines) - 9):
            text = tuple(line for _, line in lines[i : i + 10])
            places[text].append(f"{path.relative_to(PACKAGE)}:{lines[i][0]}")
    assert [found for found in places.values() if len(found) > 1] == []
