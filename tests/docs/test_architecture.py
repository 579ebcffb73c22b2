"""The page on the architecture names the files that a fit really enters, in their order."""

import re
import sys
from pathlib import Path

import rrmstats

PACKAGE = Path(rrmstats.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def files_on_page():
    walk = PAGE.read_text(encoding="utf-8").split("## One call, file by file")[1]
    return re.findall(r"^\d+\. `([\w/]+\.py)`: ", walk, flags=re.MULTILINE)


def files_entered(call):
    """Return the files of the package that a call enters, in the order of first entry."""
    entered = {}

    def record(frame, event, arg):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            entered.setdefault(path.relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(entered)


def test_the_walk_names_the_files_that_are_entered():
    stars = rrmstats.datasets.stars_cyg.load_pandas().data

    def call():
        model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
        model.fit().summary()

    assert files_entered(call) == files_on_page()


def test_the_table_of_rooms_is_complete():
    table = PAGE.read_text(encoding="utf-8").split("## The flow")[0]
    rooms = {path.parent.name + "/" for path in PACKAGE.glob("*/__init__.py")}
    alone = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert named == rooms | alone
