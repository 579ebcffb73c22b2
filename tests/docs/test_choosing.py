"""The page on choosing eps_bar runs as it stands."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "choosing.md"


def test_the_examples_print_what_the_page_says():
    found = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.attempted > 10
    assert found.failed == 0
