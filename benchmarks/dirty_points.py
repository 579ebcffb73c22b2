"""Measure covariances of many rows, a tenth of them shifted, beside scikit-learn's MinCovDet."""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.covariance import MinCovDet

from replication.samples import shifted_cluster
from rrmstats import RRMCov

N, D, SHARE, SHIFT, EPS_BAR = 20_000, 10, 0.1, 5.0, 0.3


def relative_error(cov: np.ndarray) -> float:
    """Return the Frobenius norm of the error relative to the true covariance, the identity."""
    return float(np.linalg.norm(cov - np.eye(D)) / np.sqrt(D))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="samples")
    parser.add_argument("--seed", type=int, default=96_000, help="seed of the first sample")
    args = parser.parse_args()
    print(f"{'seed':>8}{'two steps':>12}{'MinCovDet':>12}")
    for seed in range(args.seed, args.seed + args.runs):
        data = shifted_cluster(np.random.default_rng(seed), N, np.eye(D), SHARE, SHIFT)
        ours = RRMCov(data, EPS_BAR).fit().cov
        theirs = MinCovDet(random_state=0).fit(data).covariance_
        print(f"{seed:8}{relative_error(ours):12.4f}{relative_error(theirs):12.4f}", flush=True)


if __name__ == "__main__":
    main()
