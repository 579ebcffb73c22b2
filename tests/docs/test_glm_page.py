"""The page on generalized linear models prints what it says, and its tables are in place."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "glm.md"


def test_the_session_prints_what_the_page_says():
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("".join(found), {}, PAGE.name, str(PAGE), 0)
    assert test.examples
    report = []
    flags = doctest.NORMALIZE_WHITESPACE
    failed = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append).failed
    assert not failed, "".join(report)


def test_the_tables_have_been_made():
    text = PAGE.read_text(encoding="utf-8")
    made = {"consistency": 9, "errors": 14, "coverage": 12, "zeros": 4, "overdispersion": 4}
    for name, rows in made.items():
        part = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0]
        assert len([line for line in part.splitlines() if line.startswith("|")]) == rows + 2
