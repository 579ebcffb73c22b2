"""The plan of the house: who may import whom, and the names of the files."""

import ast
import sys
from pathlib import Path

import pytest

import rrmstats

PACKAGE = Path(rrmstats.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
TESTS = Path(__file__).parent
TEST_FILES = sorted(TESTS.rglob("*.py"))
# Folders of tests that are about no room: what holds across models, and other files.
ACROSS = {"properties", "reference", "docs", "typing", "replication"}

# What the files of each room may import of the package, besides their own room.
MAY_IMPORT = {
    "core": set(),
    "laws": {"core"},
    "losses": {"core", "laws"},
    "plotting": {"files", "optional"},
    "report": {"files", "optional", "plotting"},
    "results": {"core", "losses", "plotting", "report", "interchange"},
    "partitions": {"core", "optional", "interchange"},
    "models": {"core", "laws", "losses", "results", "partitions", "optional", "interchange"},
    "datasets": set(),
    "files": set(),
    "interchange": set(),
    "optional": set(),
    "formula": {"models"},
    "sklearn": {"core", "laws", "losses", "results", "models", "optional", "interchange"},
    # The package as its users know it ("").
    "cli": {"", "datasets", "files", "formula", "optional", "report"},
}
# What they may import besides the package and the standard library.
NUMERICAL = {"numpy", "scipy"}
MODELING = {*NUMERICAL, "pandas", "statsmodels", "patsy"}
OUTSIDE = {
    "core": NUMERICAL,
    "laws": NUMERICAL,
    "losses": NUMERICAL,
    "sklearn": {*MODELING, "sklearn"},
}


def room(name):
    """Return the first part of a module's name within the package; "" for the package itself."""
    return [*name.split("."), ""][1]


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path):
    """Return the names of the modules that a file imports anywhere in it, but for types."""
    tree = ast.parse(path.read_text())
    typed = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    skipped = {id(inner) for node in typed for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            if node.module == "rrmstats":
                yield from (f"rrmstats.{alias.name}" for alias in node.names)
            else:
                yield node.module


def in_room(name):
    return [path for path in FILES if room(module_name(path)) == name]


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_imports_go_one_way(name):
    paths = in_room(name)
    assert paths, f"there is no {name}"
    allowed = {*MAY_IMPORT[name], name}
    for path in paths:
        rooms = {room(found) for found in imports(path) if found.split(".")[0] == "rrmstats"}
        assert rooms <= allowed, path


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_rooms_know_only_the_libraries_they_need(name):
    allowed = {*OUTSIDE.get(name, MODELING), "rrmstats", "matplotlib", *sys.stdlib_module_names}
    if name in ("core", "losses"):
        allowed -= {"matplotlib"}
    for path in in_room(name):
        assert {found.split(".")[0] for found in imports(path)} <= allowed, path


def test_every_file_has_a_room():
    faces = {"", "__main__"}
    assert {room(module_name(path)) for path in FILES} <= {*MAY_IMPORT, *faces}


@pytest.mark.parametrize("name", ["linear", "logistic", "generalized", "multivariate"])
@pytest.mark.parametrize("place", ["models", "results"])
def test_a_model_imports_no_other_model(place, name):
    others = {"linear", "logistic", "generalized", "multivariate"} - {name}
    found = set(imports(PACKAGE / place / f"{name}.py"))
    assert not found & {f"rrmstats.{p}.{o}" for p in ("models", "results") for o in others}


def test_no_public_function_has_the_name_of_a_module():
    modules = {path.parent.name if path.stem == "__init__" else path.stem for path in FILES}
    functions = {
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert functions & modules == set()


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_module_imports_by_its_own_name(path):
    name = module_name(path)
    if name.endswith("__main__"):
        pytest.skip("it is run, not imported")
    __import__(name)
    parent, _, last = name.rpartition(".")
    if parent:
        assert getattr(sys.modules[parent], last) is sys.modules[name]


def test_tests_mirror_the_package():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    folders = {path.relative_to(TESTS).parts[0] for path in TEST_FILES if path.parent != TESTS}
    assert folders <= rooms | ACROSS
    assert rooms <= folders


def test_files_of_tests_have_names_of_their_own():
    names = [path.name for path in TEST_FILES if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))
