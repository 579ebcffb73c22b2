"""Summaries without what changes from one minute to the next."""

import re

CLOCK = re.compile(r"Date: +\w+, \d+ \w+ \d+|Time: +[\d:]+")


def undated(summary):
    """Return the text of a summary without its date and time."""
    text, found = CLOCK.subn("", str(summary))
    assert found == 2, "a summary has one date and one time"
    return text
