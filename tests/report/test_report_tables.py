import re

import numpy as np
import pytest

from .html_outline import Outline

MODELS = ["stars", "hbk", "cov", "pca", "logit"]


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_of_the_summary_are_there(name, fits, pages):
    words = " ".join(Outline(pages[name]).words)
    table = fits[name].summary().tables[1]
    cells = [cell.format(0, "txt").strip() for row in table for cell in row]
    assert all(cell in words for cell in cells) and len(cells) > 5
    assert f"{fits[name].lambda_:.5g}" in words


def test_the_smallest_weights_come_first(fits, pages):
    rows = re.search(r"<h2>Smallest weights</h2>(.*?)</section>", pages["stars"], re.DOTALL)[1]
    names = re.findall(r'<th scope="row">(\d+)</th>', rows)
    assert names == [str(i) for i in np.argsort(fits["stars"].weights, kind="stable")[:20]]
    assert "27 rows of larger weight are not shown." in rows
    assert rows.count("<td>yes</td>") == fits["stars"].outliers().sum()
