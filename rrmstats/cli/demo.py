"""A fit to data that ship, compared with least squares."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import rrmstats
from rrmstats.cli.outputs import check_existing
from rrmstats.files import write_whole
from rrmstats.optional import installed

FORMULA = "log_light ~ log_te"
GIANTS = [10, 19, 29, 33]  # the four stars off the main sequence


def run_demo(args: argparse.Namespace) -> None:
    """Print a fit to the stars of CYG OB1, and write its picture."""
    drawn = installed("matplotlib") is not None
    if drawn:
        check_existing("--out", args.out, args.force)
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    robust = rrmstats.ols(FORMULA, stars, eps_bar="auto").fit()
    least_squares = smf.ols(FORMULA, stars).fit()
    if drawn:
        _save(robust.plot_fit(), args.out)
    print(robust.summary())
    print("\nRRM against least squares, stars of CYG OB1\n")
    print(_comparison(least_squares, robust).to_string(float_format="{:.3f}".format))
    no_picture = "No picture: matplotlib is not installed; pip install rrmstats[plot]"
    print(f"\n{f'Picture: {args.out}' if drawn else no_picture}")


def _comparison(least_squares: Any, robust: Any) -> pd.DataFrame:
    """Slope and mean squared residuals of the two fits, one column each."""
    main_sequence = ~least_squares.resid.index.isin(GIANTS)

    def column(fit: Any) -> list[float]:
        losses = fit.resid**2
        return [
            fit.params["log_te"],
            losses.mean(),
            losses[main_sequence].mean(),
            np.average(losses, weights=robust.weights),
        ]

    rows = [
        "slope",
        "mean squared residual: all 47 stars",
        "mean squared residual: 43 stars of the main sequence",
        "mean squared residual: weighted by RRM",
    ]
    return pd.DataFrame({"OLS": column(least_squares), "RRM": column(robust)}, index=rows)


def _save(figure: Any, path: Path) -> None:
    """Write the figure to `path`, or raise OSError and leave nothing behind."""
    try:
        content = io.BytesIO()
        figure.savefig(content, format=path.suffix.removeprefix(".") or "png", dpi=150)
        write_whole(path, content.getvalue())
    except ValueError as error:  # an unknown format, or a path without a name
        raise OSError(f"cannot write {path}: {error}") from error
