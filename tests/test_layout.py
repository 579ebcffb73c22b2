import ast
from pathlib import Path

import pytest

import rrmstats

PACKAGE = Path(rrmstats.__file__).parent
MODELS = {"ols", "logit", "pca", "cov"}


def imports(path):
    """Return the names of the modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_imports_go_one_way(path):
    banned = {"rrmstats.tests"}
    if path.parent.name == "core":
        ours = {name for name in imports(path) if name.split(".")[0] == "rrmstats"}
        assert {name for name in ours if not name.startswith("rrmstats.core")} == set()
        banned = {"statsmodels", "pandas", "patsy"}
    elif path.stem in MODELS:
        banned = {f"rrmstats.{model}" for model in MODELS - {path.stem}}
    elif path.stem == "base":
        banned = {f"rrmstats.{model}" for model in MODELS}
    found = {name for name in imports(path) if any(f"{name}.".startswith(f"{b}.") for b in banned)}
    assert found == set()
