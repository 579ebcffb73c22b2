"""The page on data in partitions, run as a reader would."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_page_prints_what_it_says():
    text = PAGE.read_text(encoding="utf-8")
    session = re.findall(r"^```python\n(>>>.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[0]
    test = doctest.DocTestParser().get_doctest(session, {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 10
    report = []
    failed = doctest.DocTestRunner().run(test, out=report.append).failed
    assert not failed, "".join(report)
