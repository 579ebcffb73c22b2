"""Names and paths in the README, the docs and CONTRIBUTING.md exist."""

import importlib
import re
from pathlib import Path

import pytest

import rrmstats
from rrmstats.results.summary import top_entries

ROOT = Path(__file__).parents[2]
PAGES = [
    *(path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"),  # has old names
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "docs").glob("**/*.rst")),
]
REFERENCE = sorted((ROOT / "docs" / "api").glob("*.rst"))
PUBLIC = [
    "rrmstats",
    *(
        f"rrmstats.{name}"
        for name in (*("core", "losses", "models", "results", "plotting", "report", "sklearn"),)
    ),
    *("replication", "replication.rivals", "replication.samples"),
]
FOLDERS = "rrmstats|replication|tests|docs|benchmarks|datasets|\\.ci"


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


def documented():
    """Return the names that the pages of the reference document one by one, and whole modules."""
    names, modules = set(), set()
    for path in REFERENCE:
        text = path.read_text(encoding="utf-8")
        names |= set(re.findall(r"^\.\. autofunction:: (\S+)", text, flags=re.MULTILINE))
        modules |= set(re.findall(r"^\.\. automodule:: (\S+)", text, flags=re.MULTILINE))
        # Lists of classes, each of which gets a page: their names follow the module.
        for part in text.split(".. currentmodule:: ")[1:]:
            module, _, rest = part.partition("\n")
            lists = re.findall(r"^\.\. autosummary::\n(.*?)(?=^\S|\Z)", rest, re.M | re.S)
            for name in "".join(lists).split():
                if not name.startswith(":") and name != "generated":
                    names.add(f"{module}.{name}")
    return names, modules


def test_documented_names_are_imported_from_where_they_are_documented():
    names, modules = documented()
    assert len(names) > 40
    for name in names:
        parent, _, last = name.rpartition(".")
        assert last in importlib.import_module(parent).__all__, name
    assert all(importlib.import_module(module) for module in modules)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_is_complete(module):
    names, modules = documented()
    if module in modules:
        return
    places = (*PUBLIC, "rrmstats")  # a name is documented once, where most users import it from
    for name in importlib.import_module(module).__all__:
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, type) or callable(found):
            assert {f"{place}.{name}" for place in places} & names, f"{module}.{name}"


def test_every_line_of_a_summary_is_explained():
    text = (ROOT / "docs" / "api" / "summary.md").read_text(encoding="utf-8")
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    entries = [entry for column in top_entries(res._results) for entry in column]
    labels = [name.rstrip(":") for name, _ in entries]
    assert len(labels) == 20
    for label in (*labels, "weight * n", "loss", "distance"):
        assert f"**{label}**" in text, label
