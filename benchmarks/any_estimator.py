"""Measure estimators of scikit-learn made robust, beside plain ones and cleanlab.

    python benchmarks/any_estimator.py --seed 1077000 --out

Responses are replaced by others far off or near by, labels are flipped at random. `--out` writes
the tables of docs/any_estimator.md. cleanlab is measured where it is installed.
"""

import argparse
import importlib.util
import os
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rrmstats.sklearn import RRMWrapper

PAGE = Path(__file__).resolve().parents[1] / "docs" / "any_estimator.md"
REGRESSORS = {
    "extra trees": ExtraTreesRegressor(100, random_state=0),
    "gradient boosting": GradientBoostingRegressor(random_state=0),
}
CLASSIFIERS = {
    "logistic regression": LogisticRegression(max_iter=500),
    "random forest": RandomForestClassifier(60, random_state=0),
}
LABELS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "simulated": lambda return_X_y: make_classification(
        1000, 10, n_informative=5, n_classes=3, random_state=0
    ),
}
CLEANLAB = importlib.util.find_spec("cleanlab") is not None


def responses(kind, rng, n=1000):
    """Return features, responses, and which of them were replaced."""
    x, y = make_friedman1(n, noise=1.0, random_state=int(rng.integers(2**31)))
    bad = rng.random(n) < (0 if kind == "clean" else 0.2)
    other = rng.normal(y.mean() + (45 if kind == "far" else 10), 5, n)
    return x, np.where(bad, other, y), bad


def regression_line(kind, name, runs, seed):
    estimator, found = REGRESSORS[name], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        x, y, bad = responses(kind, rng)
        test, target, _ = responses("clean", rng, 3000)
        model = RRMWrapper(clone(estimator)).fit(x, y)
        fits = clone(estimator).fit(x[~bad], y[~bad]), clone(estimator).fit(x, y), model
        good, plain, ours = (np.sqrt(np.mean((m.predict(test) - target) ** 2)) for m in fits)
        scores = [np.nan, np.nan]
        if bad.any():
            scores = [roc_auc_score(bad, model.prob_bad_), cleanlab_score(estimator, x, y, bad)]
        found.append([plain / good, ours / good, model.eps_hat_, *scores])
    return [name, kind, *(f"{value:.2f}" for value in np.mean(found, axis=0))]


def cleanlab_score(estimator, x, y, bad):
    if not CLEANLAB:
        return np.nan
    from cleanlab.regression.learn import CleanLearning

    issues = CleanLearning(clone(estimator), seed=0).find_label_issues(x, y)
    return roc_auc_score(bad, -issues["label_quality"])


def label_line(data, name, rate, runs, seed):
    x, y = LABELS[data](return_X_y=True)
    estimator, found = CLASSIFIERS[name], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        train, test, right, target = train_test_split(
            StandardScaler().fit_transform(x), y, test_size=0.4, random_state=run, stratify=y
        )
        flipped, c = rng.random(len(right)) < rate, len(np.unique(y))
        seen = np.where(flipped, (right + rng.integers(1, c, len(right))) % c, right)
        fits = [
            clone(estimator).fit(train[~flipped], right[~flipped]),
            clone(estimator).fit(train, seen),
            RRMWrapper(clone(estimator)).fit(train, seen),
        ]
        if CLEANLAB:
            from cleanlab.classification import CleanLearning

            fits.append(CleanLearning(clone(estimator), seed=0).fit(train, seen))
        found.append([model.score(test, target) for model in fits] + [np.nan] * (4 - len(fits)))
    return [data, name, f"{rate:.0%}", *(f"{value:.3f}" for value in np.mean(found, axis=0))]


def markdown(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1077000)
    parser.add_argument("--out", action="store_true", help="write docs/any_estimator.md")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = [
        (
            ["estimator", "rows", "plain", "robust", "eps_hat", "AUROC", "cleanlab's"],
            [
                regression_line(kind, name, asked.runs, asked.seed)
                for name in REGRESSORS
                for kind in ("clean", "near", "far")
            ],
        ),
        (
            ["data", "classifier", "flipped", "right labels", "plain", "robust", "cleanlab"],
            [
                label_line(data, name, rate, asked.runs, asked.seed)
                for data in LABELS
                for name in CLASSIFIERS
                for rate in (0.0, 0.2)
            ],
        ),
    ]
    for number, (head, lines) in enumerate(tables):
        table = markdown(head, lines)
        print(table)
        if asked.out:
            before, start, rest = PAGE.read_text().partition(f"<!-- table {number} -->\n")
            end = f"<!-- end of table {number} -->"
            PAGE.write_text(before + start + "\n" + table + "\n\n" + end + rest.partition(end)[2])


if __name__ == "__main__":
    main()
