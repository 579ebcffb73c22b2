import numpy as np
import pytest

import rrmstats
from rrmstats import plotting

from .axes_content import flagged, named


def test_separation(fits):
    results = fits["logit"]
    ax = plotting.plot_separation(results).axes[0]
    (bands,) = ax.collections
    probability = 1 / (1 + np.exp(-np.asarray(results.fittedvalues)))
    order = np.argsort(probability, kind="stable")
    (band,) = bands.get_paths()
    in_band = band.contains_points(np.c_[np.arange(len(order)), np.full(len(order), 0.5)])
    np.testing.assert_array_equal(in_band, results.model.endog[order] == 1)
    line = named(ax, "fitted probability").get_ydata()
    np.testing.assert_allclose(line, np.sort(probability))
    (expected,) = named(ax, "expected").get_xdata()
    np.testing.assert_allclose(results.nobs - expected, probability.sum())
    marks = named(ax, "flagged").get_xdata()
    np.testing.assert_array_equal(marks, np.flatnonzero(flagged(results)[order]))


def test_reliability(fits):
    results = fits["logit"]
    ax = plotting.plot_reliability(results, bins=4).axes[0]
    curves = {c.get_label(): c.lines[0].get_data() for c in ax.containers}
    bad = flagged(results)
    assert set(curves) == {"all rows", f"without {bad.sum()} flagged"}
    x, y = curves["all rows"]
    assert 2 <= len(x) <= 4 and np.abs(x - y).max() < 0.1 and (np.diff(x) > 0).all()
    with pytest.raises(ValueError, match="bins must be 1 or more, got 0"):
        plotting.plot_reliability(results, bins=0)


def test_separation_of_labels_that_are_not_flagged():
    x = np.linspace(-1, 1, 40)
    labels = np.arange(40) % 3 == 0
    results = rrmstats.RRMLogit(labels.astype(float), np.c_[np.ones(40), x], 0.0).fit(steps=1)
    assert not flagged(results).any()
    ax = plotting.plot_separation(results).axes[0]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["labeled 1", "fitted probability", "expected start of ones"]
