"""Names and paths in the README, the docs and CONTRIBUTING.md exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"),  # has old names
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.rst")),
]
FOLDERS = "rrmstats|tests|docs|benchmarks|datasets|\\.ci"


def resolve(name):
    """Return what a dotted name stands for, importing modules on the way."""
    found = importlib.import_module(name.split(".")[0])
    path = found.__name__
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_the_package_resolve(page):
    for name in sorted(set(re.findall(r"\brrmstats(?:\.\w+)+", page.read_text(encoding="utf-8")))):
        resolve(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./*]+)`", text):
        assert list(ROOT.glob(path)), path


def test_documented_classes_are_imported_from_where_they_are_documented():
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    names = re.findall(r"^\.\. auto(?:class|function):: (\S+)", text, flags=re.MULTILINE)
    assert len(names) > 20
    for name in names:
        parent, _, last = name.rpartition(".")
        assert last in importlib.import_module(parent).__all__, name
