"""The gallery has every picture, each with a few lines that run by themselves."""

import ast
import builtins
import re
from pathlib import Path

import pytest

from replication import EXPERIMENTS
from rrmstats.plotting.catalog import PICTURES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")
CELLS = re.findall(r"```\{code-cell\}\n(.*?)```", PAGE, re.DOTALL)
OF_PATHS = {
    "plot_path": "path.plot(",
    "plot_path_weights": "path.plot_weights(",
    "plot_path_residuals": "path.plot_residuals(",
}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.function)
def test_every_picture_is_in_the_gallery(picture):
    call = OF_PATHS.get(picture.function, f"res.{picture.function}(")
    assert any(call in cell for cell in CELLS)


def test_the_picture_of_every_experiment_is_on_their_page():
    text = (DOCS / "replication.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(replication/(\w+)\.png\)", text)
    assert sorted(shown) == sorted(EXPERIMENTS)
    assert all((DOCS / "replication" / f"{name}.png").exists() for name in shown)


@pytest.mark.parametrize("cell", CELLS, ids=range(len(CELLS)))
def test_cells_are_short_and_need_no_other(cell):
    assert len(cell.strip().splitlines()) <= 10
    names = [node for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Name)]
    imported = [
        alias.asname or alias.name
        for node in ast.walk(ast.parse(cell))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    made = {name.id for name in names if isinstance(name.ctx, ast.Store)} | set(imported)
    assert {name.id for name in names} <= made | set(dir(builtins))
