"""Compute how precise a regression can be that leaves bad rows out without knowing them.

Where the distributions of good and bad residuals are known, rows count by their probability w to
be good: the estimate solves sum w(r) r x = 0. Its variance over that of least squares on the good
rows, with many rows, is (1 - eps) E[w^2 r^2] / E[(w r)']^2. No fit that also has to learn the
distributions can be expected to do better. Good residuals are standard normal.
"""

import numpy as np
from scipy.stats import norm

SHARES = (0.1, 0.2, 0.3, 0.4)
BAD = {
    "5 sd on one side": norm(5, 1),
    "3.5 sd on one side": norm(3.5, 1),
    "wide, sd 8 more": norm(0, np.sqrt(65)),
}


def variance_ratio(share: float, bad_density: np.ndarray, resid: np.ndarray) -> float:
    """Return the variance over that of the good rows; `resid` is an even grid."""
    step = resid[1] - resid[0]
    good = (1 - share) * norm.pdf(resid)
    density = good + share * bad_density
    psi = good / np.maximum(density, np.finfo(float).tiny) * resid
    slope = np.gradient(psi, step)
    return float((1 - share) * step * (density @ psi**2) / (step * density @ slope) ** 2)


def main() -> None:
    resid = np.linspace(-80, 80, 800_001)
    print(f"{'bad rows':20}" + "".join(f"{share:8.0%}" for share in SHARES))
    for name, bad in BAD.items():
        ratios = [variance_ratio(share, bad.pdf(resid), resid) for share in SHARES]
        print(f"{name:20}" + "".join(f"{ratio:8.3f}" for ratio in ratios))


if __name__ == "__main__":
    main()
