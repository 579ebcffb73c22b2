"""Fits of every model to one small data frame."""

import numpy as np
import pandas as pd

import rrmstats

N = 120


def frame(seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "x1": rng.standard_normal(N),
            "x2": rng.standard_normal(N),
            "g": rng.choice(list("abc"), N),
        },
        index=[f"row{i}" for i in range(N)],
    )
    data["y"] = 1 + 2 * data.x1 - data.x2 + 0.5 * rng.standard_normal(N)
    data["label"] = (rng.random(N) < 1 / (1 + np.exp(-data.x1))).astype(float)
    data["count"] = rng.poisson(np.exp(1 + 0.5 * data.x1)).astype(float)
    return data


DATA = frame()

DIRTY = DATA.assign(y=DATA.y.where(np.arange(N) >= 10, 30.0))

FITS = {
    "ols": lambda: rrmstats.ols("y ~ x1 + C(g)", DIRTY, 0.2).fit(steps=1),
    "ols, two steps": lambda: rrmstats.ols("y ~ x1 + C(g)", DIRTY, 0.2).fit(),
    "logit": lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0.05).fit(steps=1),
    "logit, two steps": lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0.05).fit(),
    "poisson": lambda: rrmstats.poisson("count ~ x1 + C(g)", DATA, 0.2).fit(steps=1),
    "poisson, two steps": lambda: rrmstats.poisson("count ~ x1 + C(g)", DATA, 0.2).fit(),
    "cov": lambda: rrmstats.cov("~ x1 + x2 + y", DIRTY, 0.2).fit(steps=1),
    "pca": lambda: rrmstats.pca("~ x1 + x2 + y", DIRTY, 0.2, n_components=1).fit(steps=1),
}
