"""Losses: rows in memory are fitted as rows in blocks are."""

import pytest

from rrmstats.core import steps


@pytest.fixture
def as_many_rows(monkeypatch):
    """Let few rows be fitted as many are: bounds are compared on a sample of these alone."""
    monkeypatch.setattr(steps, "MOST_ROWS", 0)
