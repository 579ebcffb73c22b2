"""Fit Parquet files of growing size in little memory, beside fits of the same data in memory.

It writes docs/scale.md: the tables between its markers. Each fit runs in a process of its own,
those of files with a limit on its memory.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
SIZES = (100_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000)
# Largest size that is also fitted in memory, and the one at which times per row are compared.
MOST_IN_MEMORY, COMPARED = 5_000_000, 5_000_000
PART, LIMIT, EPS_BAR = 500_000, 1.5e9, 0.2
SLOPES = np.array([1.0, 2.0, -1.0, 0.5, 0.0])
FORMULA = "y ~ x1 + x2 + x3 + x4 + x5"
# Under the limit what is freed must go back to the system, instead of lying in pieces; that costs
# time, which is counted.
RETURNED = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "1000000",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
# Samples of ten partitions one of which has other slopes.
SAMPLES, PARTS, PART_ROWS = 20, 10, 2_000
# Rows of the fits whose passes are counted.
PASS_ROWS = 200_000
OTHERS = {"far off": SLOPES + 5.0 * np.array([1, -1, 1, -1, 1]), "other sign": -SLOPES}


def rows(seed: int, n: int) -> pd.DataFrame:
    """Return rows of a regression, a tenth of them with another response and far out."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 5))
    y = 1 + x @ SLOPES + rng.standard_normal(n)
    bad = rng.random(n) < 0.1
    y[bad] = -30 + rng.standard_normal(bad.sum())
    x[bad, 0] += 4
    return pd.DataFrame({"y": y, **{f"x{j + 1}": x[:, j] for j in range(5)}})


def write(folder: Path, n: int) -> Path:
    """Write n rows as Parquet files of PART rows; return their folder."""
    target = folder / f"rows-{n}"
    target.mkdir(exist_ok=True)
    for i, start in enumerate(range(0, n, PART)):
        frame = rows(400_000 + i, min(PART, n - start))
        frame.to_parquet(target / f"part-{i:04d}.parquet", compression=None, index=False)
    return target


def fit(path: str, where: str) -> dict[str, object]:
    """Fit the data of a folder with standard errors; return time, memory, passes and numbers."""
    import rrmstats

    if where == "memory":
        data = pd.read_parquet(path)
    else:
        import dask.dataframe as dd

        data = dd.read_parquet(path)
    before = peak_bytes()
    start = time.perf_counter()
    options = {} if where == "memory" else {"persist": False}
    results = rrmstats.ols(FORMULA, data, EPS_BAR, **options).fit(steps=1)
    errors = np.asarray(results.bse)
    passed = time.perf_counter() - start
    return {
        "seconds": passed,
        "peak": peak_bytes(),
        "before": before,
        "passes": None if where == "memory" else results.model.partitioned_rows.blocks.passes,
        "params": list(np.asarray(results.params)),
        "bse": list(errors),
    }


def peak_bytes() -> float:
    """Return the most memory that this process has had resident."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_process(path: Path, where: str) -> dict[str, object]:
    """Return what `fit` tells, from a process of its own; files are fitted under the limit."""
    command = [sys.executable, __file__, "--fit", str(path), "--where", where]
    env = {**os.environ, **(RETURNED if where == "partitions" else {})}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if found.returncode:
        raise RuntimeError(found.stderr[-2000:])
    return json.loads(found.stdout.splitlines()[-1])


def limit_memory() -> None:
    """Let this process have no more than LIMIT bytes of data."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(LIMIT), int(LIMIT)))


def growth(folder: Path, sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """Return a row of the table for each size."""
    table = []
    for n in sizes:
        path = write(folder, n)
        found = in_process(path, "partitions")
        memory = in_process(path, "memory") if n <= MOST_IN_MEMORY else None
        row = {
            "rows": f"{n:.0e}".replace("e+0", "e"),
            "passes": found["passes"],
            "seconds": round(found["seconds"], 1),
            "microseconds per row": round(1e6 * found["seconds"] / n, 2),
            "peak memory, GB": round(found["peak"] / 1e9, 2),
            "in memory: seconds": None if memory is None else round(memory["seconds"], 1),
            "in memory: peak, GB": None if memory is None else round(memory["peak"] / 1e9, 2),
            "largest difference, standard errors": None,
        }
        if memory is not None:
            off = np.abs(np.subtract(found["params"], memory["params"])) / memory["bse"]
            row["largest difference, standard errors"] = f"{off.max():.0e}"
        table.append(row)
        print(row, flush=True)
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    return table


def corrupt_partition(seed: int, other: np.ndarray) -> dict[str, float]:
    """Return errors of the slopes where one partition of ten has other slopes."""
    import dask.dataframe as dd
    from dask import delayed

    import rrmstats

    rng = np.random.default_rng(seed)
    truth, pieces = np.r_[1.0, SLOPES], []
    for i in range(PARTS):
        x = rng.standard_normal((PART_ROWS, 5))
        y = 1 + x @ (other if i == 3 else SLOPES) + rng.standard_normal(PART_ROWS)
        pieces.append(pd.DataFrame({"y": y, **{f"x{j + 1}": x[:, j] for j in range(5)}}))
    frame = dd.from_delayed([delayed(piece) for piece in pieces], meta=pieces[0].iloc[:0])
    model = rrmstats.ols(FORMULA, frame, EPS_BAR)
    two = model.fit()
    good = pd.concat([piece for i, piece in enumerate(pieces) if i != 3])
    each = [rrmstats.ols(FORMULA, piece, 0.0).fit().params for piece in pieces]
    fits = {
        "average of least squares fits to partitions": np.mean(each, axis=0),
        "least squares, all rows": rrmstats.ols(FORMULA, pd.concat(pieces), 0.0).fit().params,
        "least squares, good partitions": rrmstats.ols(FORMULA, good, 0.0).fit().params,
        "one step": two.first_step.params,
        "two steps": two.params,
    }
    return {name: float(np.linalg.norm(params - truth)) for name, params in fits.items()}


def passes() -> pd.DataFrame:
    """Return the passes of fits with standard errors, in one step and in two, by model."""
    import dask.dataframe as dd

    import rrmstats

    data = rows(420_000, PASS_ROWS)
    rng = np.random.default_rng(420_001)
    data["label"] = (rng.random(PASS_ROWS) < 1 / (1 + np.exp(-data["x1"]))).astype(float)
    data["count"] = rng.poisson(np.exp(1 + 0.3 * data["x2"])).astype(float)
    parts = dd.from_pandas(data, npartitions=8)
    predictors, variables = "x1 + x2 + x3 + x4 + x5", "~ x1 + x2 + x3 + x4 + x5"
    models = {
        "linear regression": lambda: rrmstats.ols(FORMULA, parts, EPS_BAR, persist=False),
        "logistic regression": lambda: rrmstats.logit(
            f"label ~ {predictors}", parts, 0.05, persist=False
        ),
        "Poisson": lambda: rrmstats.poisson(f"count ~ {predictors}", parts, 0.1, persist=False),
        "covariance": lambda: rrmstats.cov(variables, parts, EPS_BAR, persist=False),
        "components": lambda: rrmstats.pca(spread, parts, EPS_BAR, n_components=2, persist=False),
        "components, equal variances": lambda: rrmstats.pca(
            variables, parts, EPS_BAR, n_components=2, persist=False
        ),
    }
    spread = "~ I(3 * x1) + I(2 * x2) + I(0.5 * x3) + I(0.5 * x4) + I(0.5 * x5)"
    table = []
    for name, make in models.items():
        counts = []
        for steps in (1, 2):
            model = make()
            model.fit(steps=steps, stability=False)
            counts.append(model.partitioned_rows.blocks.passes)
        table.append({"model": name, "one step": counts[0], "two steps": counts[1]})
        print(table[-1], flush=True)
    return pd.DataFrame(table)


def markdown(frame: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    head = f"| {' | '.join(frame.columns)} |\n|---|{'---:|' * (len(frame.columns) - 1)}"
    lines = [
        f"| {' | '.join('' if pd.isna(v) else str(v) for v in row)} |"
        for row in frame.itertuples(index=False)
    ]
    return "\n".join([head, *lines])


def put(name: str, table: str) -> None:
    """Put a table between its markers on the page."""
    text = PAGE.read_text()
    pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end of {name} -->)"
    PAGE.write_text(re.sub(pattern, lambda m: f"{m[1]}\n{table}\n{m[2]}", text, flags=re.S))


def main() -> None:
    """Run all, or one fit in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=5e7, help="largest number of rows")
    parser.add_argument("--folder", help="where files are written; by default a temporary one")
    parser.add_argument("--seed", type=int, default=410_000, help="of the corrupt partitions")
    parser.add_argument("--only", choices=["growth", "corrupt", "passes"], help="one table")
    parser.add_argument("--out", action="store_true", help="write docs/scale.md")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        if given.where == "partitions":
            limit_memory()
        print(json.dumps(fit(given.fit, given.where)))
        return
    if given.only in (None, "passes"):
        table = passes()
        if given.out:
            put("passes", markdown(table))
    if given.only in (None, "growth"):
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            sizes = tuple(n for n in SIZES if n <= given.most)
            table = pd.DataFrame(growth(Path(folder), sizes), dtype=object)
        print(table.to_string())
        if given.out:
            put("growth", markdown(table))
    if given.only in (None, "corrupt"):
        columns = {}
        for kind, other in OTHERS.items():
            runs = [corrupt_partition(given.seed + i, other) for i in range(SAMPLES)]
            found = pd.DataFrame(runs).mean()
            clean = found["least squares, good partitions"]
            columns[f"{kind}: mean error"] = [f"{value:.4f}" for value in found]
            columns[f"{kind}: times good partitions"] = [f"{value / clean:.2f}" for value in found]
        table = pd.DataFrame({"method": found.index, **columns})
        print(table.to_string())
        if given.out:
            put("corrupt", markdown(table))


if __name__ == "__main__":
    main()
