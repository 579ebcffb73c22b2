"""Experiments run, and their tables and pictures written.

Every run has a random generator of its own, so that results depend neither on the number of
processes nor on what else is run.
"""

from __future__ import annotations

import tempfile
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.tools.sm_exceptions import ModelWarning

from replication.drawing import rendered
from replication.methods import METHODS
from replication.paper import EXPERIMENTS, Experiment
from replication.runs import Rows
from rrmstats.files import write_whole
from rrmstats.optional import installed

RUNS = 100
SEED = 0


def simulate(name: str, runs: int = RUNS, jobs: int = 1, progress: bool = False) -> pd.DataFrame:
    """Run an experiment.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    runs : int, optional
        Number of runs; some experiments take fewer.
    jobs : int, optional
        Number of processes, where joblib is installed.
    progress : bool, optional
        Show a progress bar, where tqdm is installed.

    Returns
    -------
    DataFrame
        One row for each run and method, or for each point of a picture.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> from replication import simulate
    >>> table = simulate("figure6", runs=2)
    >>> table.columns.tolist(), len(table)
    (['run', 'method', 'error'], 10)
    """
    name = full_name(name)
    numbers = range(EXPERIMENTS[name].n_runs(runs))
    joblib, tqdm = installed("joblib"), installed("tqdm")
    results: Iterable[Rows] = (one_run(name, run) for run in numbers)
    if jobs > 1 and len(numbers) > 1 and joblib is not None:
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator")
        results = pool(joblib.delayed(one_run)(name, run) for run in numbers)
    if progress and tqdm is not None:
        results = tqdm.tqdm(results, desc=name, total=len(numbers), unit="run")
    return pd.DataFrame([row for rows in results for row in rows])


def one_run(name: str, run: int) -> Rows:
    """Return the rows of one run of an experiment."""
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), run])
    with warnings.catch_warnings():
        # Among many samples some are separated, have not converged or have few rows for their
        # parameters; their errors show it.
        warnings.simplefilter("ignore", ModelWarning)
        return [{"run": run} | row for row in EXPERIMENTS[name].run(rng)]


def replicate(
    names: Sequence[str] | None = None,
    *,
    out: Path | str,
    runs: int = RUNS,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Run experiments of the paper, and write their tables and pictures.

    Parameters
    ----------
    names : sequence of str, optional
        Some of `EXPERIMENTS`; all by default.
    out : path
        Folder to write to; it is created if it does not exist.
    runs, jobs, progress
        See `simulate`.

    Returns
    -------
    DataFrame
        The summary, a row for each experiment: what the paper says, and what we get by each
        method. It is written as ``summary.csv``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If the folder cannot be written to, or shipped data are missing or changed; nothing has
        been run then.

    Examples
    --------
    >>> import tempfile
    >>> from replication import replicate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = replicate(["figure4a"], out=folder, runs=1)
    >>> summary.loc["figure4a", "paper says"]
    'the classes are separable'
    """
    chosen = list(EXPERIMENTS) if names is None else [full_name(name) for name in names]
    for name in chosen:
        check_data(EXPERIMENTS[name])
    folder = writable(Path(out))
    summary = {}
    for name in chosen:
        experiment = EXPERIMENTS[name]
        table = simulate(name, runs, jobs, progress)
        write_table(folder / name, table, experiment)
        summary[name] = {
            "paper says": experiment.paper,
            "we get": experiment.measure,
            "runs": experiment.n_runs(runs),
        } | experiment.scores(table)
    result = pd.DataFrame.from_dict(summary, orient="index").rename_axis("experiment")
    present = [name for name in METHODS if name in result]
    result = result[["paper says", "we get", "runs", *present]]
    write_whole(folder / "summary.csv", result.to_csv(float_format="%.4g"))
    return result


def write_table(stem: Path, table: pd.DataFrame, experiment: Experiment) -> None:
    """Write the table of an experiment, and its picture where matplotlib is installed."""
    write_whole(stem.with_suffix(".csv"), table.to_csv(index=False))
    if installed("matplotlib") is not None:
        figure = experiment.draw(table, experiment.title, experiment.measure)
        write_whole(stem.with_suffix(".png"), rendered(figure))


def full_name(name: str) -> str:
    """Return the full name of an experiment, of which "3a", "fig3a" and "figure3a" are names.

    Raises
    ------
    ValueError
        If there is none, with the names of all.

    Examples
    --------
    >>> from replication import full_name
    >>> full_name("3a")
    'figure3a'
    """
    folded = name.casefold()
    short = folded.removeprefix("figure").removeprefix("fig").strip(" .")
    for candidate in (folded, f"figure{short}"):
        if candidate in EXPERIMENTS:
            return candidate
    raise ValueError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")


def check_data(experiment: Experiment) -> None:
    """Raise OSError where the data of an experiment are missing or changed."""
    try:
        if experiment.needs is not None:
            experiment.needs.load_pandas()
    except ValueError as error:
        raise OSError(str(error)) from error


def writable(folder: Path) -> Path:
    """Return a folder that takes files, made where it does not exist, or raise OSError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except FileExistsError:
        raise NotADirectoryError(f"cannot write to {folder}: it is a file, not a folder") from None
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}") from error
    return folder
