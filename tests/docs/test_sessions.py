"""Pages whose sessions run as a reader would run them."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("own_loss.md", 30),
        ("curves.md", 15),
        ("fixed_effects.md", 7),
        ("few_rows.md", 10),
        ("any_estimator.md", 14),
    ],
)
def test_the_page_prints_what_it_says(name, least):
    page = DOCS / name
    text = page.read_text(encoding="utf-8")
    session = "".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(session, {}, name, str(page), 0)
    assert len(test.examples) >= least
    report = []
    failed = (
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        .run(test, out=report.append)
        .failed
    )
    assert not failed, "".join(report)
