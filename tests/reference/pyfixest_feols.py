"""Write pyfixest_feols.csv, pyfixest's coefficients and standard errors of three panels.

    /work/peers/bin/python tests/reference/pyfixest_feols.py      (pyfixest 0.60)

Its fixed effects are found to 1e-10. The tests read the panels from here, too.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm

#: What is fitted: panel, formula, and a name for each covariance.
FITS = (
    ("grunfeld", "invest ~ value + capital | firm", ("iid", "hetero", "firm", "year")),
    ("grunfeld", "invest ~ value + capital | firm + year", ("iid", "firm", "firm + year")),
    ("unbalanced", "y ~ x1 + x2 | firm + year", ("iid", "hetero", "firm", "year", "firm + year")),
    ("workers", "y ~ x1 + x2 + C(kind) | worker + firm", ("hetero", "worker", "firm")),
    ("workers", "y ~ x1 | worker + firm + year", ("hetero", "firm + year")),
)


def panels():
    """Return the panels by name."""
    rng = np.random.default_rng(27)
    n = 600
    frame = pd.DataFrame({"firm": rng.integers(0, 80, n), "year": rng.integers(2000, 2012, n)})
    effects = rng.standard_normal(80)[frame.firm] + 0.3 * (frame.year - 2006)
    frame["x1"] = effects + rng.standard_normal(n)
    frame["x2"] = 100 + rng.standard_normal(n) * (1 + frame.firm % 3)
    frame["y"] = 2 * frame.x1 - 0.5 * frame.x2 + effects + rng.standard_normal(n)
    frame.loc[::50, "y"] = np.nan
    frame.loc[5, "firm"] = 999
    workers = pd.DataFrame({"worker": np.repeat(np.arange(150), 5)})
    workers["firm"] = (
        workers.worker % 20 + (rng.random(750) < 0.3) * rng.integers(1, 20, 750)
    ) % 20
    workers["year"] = np.tile(np.arange(5), 150)
    workers["kind"] = rng.choice(["a", "b", "c"], 750)
    workers["x1"] = rng.standard_normal(750) + 0.1 * workers.worker
    workers["x2"] = rng.standard_exponential(750)
    workers["y"] = workers.x1 + workers.x2 + workers.firm + rng.standard_normal(750)
    grunfeld = sm.datasets.grunfeld.load_pandas().data
    return {"grunfeld": grunfeld, "unbalanced": frame, "workers": workers}


def covariance(name):
    """Return a covariance as pyfixest takes it."""
    return name if name in ("iid", "hetero") else {"CRV1": name.replace(" ", "")}


def main():
    """Fit all panels by pyfixest."""
    import pyfixest

    found = []
    data = panels()
    for panel, formula, names in FITS:
        for name in names:
            res = pyfixest.feols(formula, data[panel], vcov=covariance(name), fixef_tol=1e-10)
            for term, row in res.tidy().iterrows():
                found.append((panel, formula, name, term, row["Estimate"], row["Std. Error"]))
    columns = ["panel", "formula", "vcov", "term", "coef", "se"]
    frame = pd.DataFrame(found, columns=columns)
    frame.to_csv(Path(__file__).with_suffix(".csv"), index=False)


if __name__ == "__main__":
    main()
