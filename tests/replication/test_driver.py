import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replication import EXPERIMENTS, driver, replicate, simulate
from rrmstats import datasets
from rrmstats.__main__ import main

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_name_writes_its_files(name, tmp_path, capsys):
    assert main(["replicate", name, "--runs", "2", "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f"{name}.csv", f"{name}.png", "summary.csv"]
    )
    assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)
    table = pd.read_csv(tmp_path / f"{name}.csv")
    assert table["run"].nunique() == EXPERIMENTS[name].n_runs(2)
    numbers = table.select_dtypes("number")
    assert np.isfinite(numbers).all(axis=None)
    summary = pd.read_csv(tmp_path / "summary.csv", index_col="experiment")
    assert summary.index.tolist() == [name]
    assert summary.loc[name, "paper says"] == EXPERIMENTS[name].paper
    output = capsys.readouterr().out
    assert EXPERIMENTS[name].paper in output
    assert f"Written to {tmp_path}" in output


@pytest.mark.slow
def test_tables_are_the_means_of_the_runs(tmp_path):
    summary = replicate(["figure3a", "figure3b"], out=tmp_path, runs=1)
    table = pd.read_csv(tmp_path / "figure3a.csv")
    means = table.groupby("method")["error"].mean()
    np.testing.assert_allclose(summary.loc["figure3a", means.index].astype(float), means)
    table = pd.read_csv(tmp_path / "figure3b.csv")
    assert table["share"].unique().tolist() == pytest.approx(np.arange(9) * 0.05)
    most = table[table["share"] == 0.4].groupby("method")["error"].mean()
    np.testing.assert_allclose(summary.loc["figure3b", most.index].astype(float), most)


@pytest.mark.slow
def test_runs_do_not_depend_on_processes_or_company():
    serial = simulate("figure6", 3)
    pd.testing.assert_frame_equal(simulate("figure6", 3, jobs=2), serial)
    pd.testing.assert_frame_equal(simulate("figure6", 2), serial[serial["run"] < 2])
    assert serial.groupby("run")["error"].first().nunique() == 3


def test_unknown_name_lists_the_names(capsys, tmp_path):
    assert main(["replicate", "figure9", "--out", str(tmp_path / "new")]) == 2
    error = capsys.readouterr().err
    assert "figure9" in error
    assert all(name in error for name in EXPERIMENTS)
    with pytest.raises(ValueError, match="no experiment 'figure9'; choose from figure1a, fig"):
        replicate(["figure5", "figure9"], out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("option", ["--runs", "--jobs"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_numbers_that_make_no_sense(option, value, capsys):
    assert main(["replicate", f"{option}={value}"]) == 2
    assert "whole number, 1 or more" in capsys.readouterr().err


def no_work(*args):
    raise AssertionError("work was begun")


def test_folder_that_is_a_file(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "simulate", no_work)
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below"):
        assert main(["replicate", "--out", str(tmp_path / out)]) == 1
        assert f"cannot write to {tmp_path / out}: " in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write anywhere")
def test_folder_without_permission(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "simulate", no_work)
    tmp_path.chmod(0o500)
    assert main(["replicate", "--out", str(tmp_path)]) == 1
    assert "Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"), [(None, "breast_cancer.csv is not in"), (b"a,b", "has sha256")]
)
def test_data_missing_or_changed(content, message, capsys, monkeypatch, tmp_path):
    notes = datasets._read("breast_cancer.md")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "breast_cancer.md").write_bytes(notes)
    if content is not None:
        (tmp_path / "data" / "breast_cancer.csv").write_bytes(content)
    monkeypatch.setattr(datasets, "_FOLDERS", (tmp_path / "data",))
    monkeypatch.setattr(driver, "simulate", no_work)
    assert main(["replicate", "--out", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_folder_that_takes_no_files(capsys, monkeypatch, tmp_path):
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(driver, "simulate", no_work)
    monkeypatch.setattr(driver.tempfile, "TemporaryFile", refuse)
    assert main(["replicate", "--out", str(tmp_path)]) == 1
    assert f"cannot write to {tmp_path}: Permission denied" in capsys.readouterr().err


def test_failed_write_leaves_the_old_file_and_no_part(monkeypatch, tmp_path):
    (tmp_path / "figure4a.csv").write_text("old")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"cannot write .*figure4a.csv: No space left"):
        replicate(["figure4a"], out=tmp_path, runs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["figure4a.csv"]
    assert (tmp_path / "figure4a.csv").read_text() == "old"


def test_without_matplotlib_the_tables_are_written(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["replicate", "figure4a", "--out", str(tmp_path)]) == 0
    assert "pip install rrmstats[plot]" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure4a.csv", "summary.csv"]


def test_without_joblib_and_tqdm(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "joblib", None)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert main(["replicate", "figure6", "--runs", "2", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_bar_on_a_terminal_only(terminal, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["replicate", "6", "--runs", "1", "--out", str(tmp_path)]) == 0
    error = capsys.readouterr().err
    assert "figure6: 100%" in error if terminal else error == ""


def test_rows_without_weight_have_the_color_of_all_pictures():
    experiment, table = EXPERIMENTS["figure1a"], simulate("figure1a")
    for rows in (table, table[table["x"] < 0]):  # with corrupted rows, and without
        points = experiment.draw(rows, experiment.title, experiment.measure).axes[0].collections[0]
        np.testing.assert_allclose(points.to_rgba(0.0), points.cmap(0.0))
        assert points.cmap.name == "cividis_r"
