"""The command as a shell runs it: each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import rrmstats

from .hostile_formulas import LIVE

FIT = ("fit", "log_light ~ log_te", "stars.csv", "--eps-bar", "0.2")
COMMAND = [sys.executable, "-m", "rrmstats"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(rrmstats.__file__).parents[1])}
HASTE = 60  # seconds after which a command hangs

pytestmark = pytest.mark.slow


def shell(*argv, given=b""):
    done = subprocess.run(
        [*COMMAND, *argv], input=given, env=ENVIRONMENT, capture_output=True, timeout=HASTE
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("form", "suffix"),
    [("text", "csv"), ("latex", "tsv"), ("html", "parquet"), ("json", "xlsx")],
)
def test_formats_of_summaries_and_of_tables(form, suffix, rows, folder):
    file = f"data.{suffix}"
    if suffix == "parquet":
        rows.to_parquet(file)
    elif suffix == "xlsx":
        rows.to_excel(file, index=False)
    else:
        rows.to_csv(file, index=False, sep="\t" if suffix == "tsv" else ",")
    argv = ("fit", "y ~ x + C(group)", file, "--eps-bar", "0.1", "--weights", "out.csv")
    status, out, err = shell(*argv, "--format", form)
    note = b"rrmstats: note: 2 of 60 rows were left out: missing values"
    assert (status, err.splitlines()) == (0, [note])
    starts = {"text": b" ", "latex": b"\\begin{center}", "html": b"<!DOCTYPE html>", "json": b"{"}
    assert out.startswith(starts[form])
    assert b"Intercept" in out
    assert len(pd.read_csv("out.csv")) == len(rows)


def test_binary_data_from_standard_input(rows, folder):
    rows.to_parquet("data")
    argv = ("fit", "y ~ x", "-", "--input-format", "parquet", "--eps-bar", "0.1")
    status, out, _ = shell(*argv, "--format", "json", given=(folder / "data").read_bytes())
    assert status == 0
    assert json.loads(out)["nobs"] == 58


@pytest.mark.parametrize(
    ("argv", "status", "line"),
    [
        (["fit", "log_light ~ log_te", "none.csv", "--eps-bar", "0.2"], 1, "no file none.csv"),
        (["fit", "log_light ~ log_t", "stars.csv", "--eps-bar", "0.2"], 2, "mean 'log_te'?"),
        (["fit", "log_light ~ (", "stars.csv", "--eps-bar", "0.2"], 2, "cannot parse"),
        (["fit", "a ~ b", "gaps.csv", "--eps-bar", "0.2"], 1, "no rows are left"),
        ([*FIT, "--weights", "old.csv"], 2, "old.csv exists"),
        ([*FIT, "--bogus"], 2, "unrecognized arguments: --bogus"),
        (["fit", LIVE[0], "stars.csv", "--eps-bar", "0.2", "--safe"], 2, "--safe refuses"),
    ],
)
def test_errors(argv, status, line, stars, folder):
    (folder / "gaps.csv").write_text("a,b\n1,\n,2\n")
    (folder / "old.csv").write_text("mine")
    before = sorted(folder.iterdir())
    found, out, err = shell(*argv)
    assert (found, out) == (status, b"")
    assert err.startswith(b"rrmstats: error: ")
    assert err.count(b"\n") == 1
    assert line in err.decode()
    assert sorted(folder.iterdir()) == before
    assert (folder / "old.csv").read_text() == "mine"


def test_a_closed_pipe_ends_quietly(folder):
    process = subprocess.Popen(
        [*COMMAND, "datasets", "breast_cancer"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(HASTE) == 141


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_ctrl_c_ends_quietly_and_leaves_nothing(folder):
    """A command that waits for its data is interrupted."""
    process = subprocess.Popen(
        [*COMMAND, "fit", "y ~ x", "-", "--eps-bar", "0.1", "--weights", "out.csv"],
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"y,x\n" * 100_000)  # more than a pipe holds: it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    with process.stdout, process.stderr:
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert process.wait(HASTE) == 130
    assert list(folder.iterdir()) == []
