import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rrmstats
from rrmstats.__main__ import main

PNG = b"\x89PNG\r\n\x1a\n"


def figures(row, output):
    """Columns OLS and RRM of a row of the comparison."""
    line = next(line for line in output.splitlines() if line.startswith(row))
    return [float(figure) for figure in re.findall(r"-?\d+\.\d+", line)]


def test_demo_prints_the_comparison_and_saves_a_picture(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    output = capsys.readouterr().out
    # Least squares in R: lm(log.light ~ log.Te, starsCYG).
    slope_ols, slope_rrm = figures("slope", output)
    assert slope_ols == -0.413
    assert 1.5 < slope_rrm < 4  # the main sequence: hotter stars shine more brightly
    ols, rrm = figures("mean squared residual: all", output)
    assert ols < rrm
    for row in ("mean squared residual: 43", "mean squared residual: weighted"):
        ols, rrm = figures(row, output)
        assert rrm < ols
    assert (tmp_path / "rrmstats_demo.png").read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["rrmstats_demo.png"]


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", PNG), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a", PNG)]
)
def test_out_names_the_picture_and_its_format(name, start, tmp_path):
    assert main(["demo", "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_picture_that_exists_is_kept_without_force(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    picture = tmp_path / "rrmstats_demo.png"
    picture.write_text("mine")
    assert main(["demo"]) == 0
    printed = capsys.readouterr()
    assert figures("slope", printed.out)[0] == -0.413
    assert "Picture: rrmstats_demo.png, kept as it was; --force replaces it" in printed.out
    assert picture.read_text() == "mine"
    assert main(["demo", "--force"]) == 0
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("missing/picture.png", "No such file or directory"),
        ("file/picture.png", "Not a directory"),
        ("folder.png", "Is a directory"),
        ("picture.xyz", "is not supported"),
    ],
)
def test_picture_that_cannot_be_written(out, reason, capsys, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    assert main(["demo", "--out", str(tmp_path / out)]) == 1
    output, error = capsys.readouterr()
    assert output == ""
    assert error.startswith(f"rrmstats: error: cannot write {tmp_path / out}")
    assert reason in error
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder.png"]


def test_without_matplotlib_says_how_to_get_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert "pip install rrmstats[plot]" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_unknown_command(capsys):
    assert main(["nothing"]) == 2
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def test_alone_it_prints_its_help(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert "demo " in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_runs_as_a_module(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rrmstats", "demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(rrmstats.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "slope" in done.stdout
    assert done.stderr == ""
