"""The page on a loss of one's own, run as a reader would."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "own_loss.md"


def test_the_page_prints_what_it_says():
    text = PAGE.read_text(encoding="utf-8")
    session = "".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(session, {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 30
    report = []
    failed = (
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        .run(test, out=report.append)
        .failed
    )
    assert not failed, "".join(report)
