from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder, in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stars(folder):
    """Return the stars, which are also in stars.csv."""
    data = rrmstats.datasets.stars_cyg.load_pandas().data
    data.to_csv(folder / "stars.csv", index=False)
    return data


@pytest.fixture
def rows(folder):
    """Return rows with missing values, words and awkward names, which are also in rows.csv."""
    rng = np.random.default_rng(0)
    n = 60
    data = pd.DataFrame(
        {
            "id": [f"{i:03d}" for i in range(n)],
            "x": rng.standard_normal(n),
            "time": rng.uniform(1, 2, n),
            "group": rng.choice(["a", "b", "c"], n),
            "firm": np.repeat(range(20), 3),
            "a b": rng.standard_normal(n),
            "class": rng.choice(["one", "two"], n),
        }
    )
    data["y"] = 1 + 2 * data["x"] + rng.standard_normal(n)
    data["count"] = rng.poisson(data["time"] * np.exp(1 + 0.5 * data["x"]))
    data["label"] = (data["x"] + rng.logistic(size=n) > 0).astype(int)
    data["word"] = np.where(data["label"] == 1, "sick", "well")
    data.loc[:3, "y"] = 40.0
    data.loc[[7, 9], "x"] = np.nan
    data.to_csv(folder / "rows.csv", index=False)
    return data


@pytest.fixture
def run(capsys, folder):
    """Return a function that runs a command here, and what came of it."""

    def running(*argv):
        capsys.readouterr()
        status = main([str(part) for part in argv])
        captured = capsys.readouterr()
        return SimpleNamespace(status=status, out=captured.out, err=captured.err)

    return running


@pytest.fixture
def refused(run, folder):
    """Return a function that runs a command that must fail, and its one line."""

    def running(*argv, status):
        before = sorted(folder.rglob("*"))
        done = run(*argv)
        assert done.out == ""
        assert done.err.startswith("rrmstats: error: ")
        assert done.err.count("\n") == 1
        assert done.status == status
        assert sorted(folder.rglob("*")) == before
        return done.err.removeprefix("rrmstats: error: ").rstrip("\n")

    return running
