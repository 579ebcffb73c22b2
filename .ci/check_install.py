"""Load every data set and fit a model with the rrmstats that is found in the given folder."""

import sys
from pathlib import Path

import rrmstats

found = Path(rrmstats.__file__).resolve()
expected = Path(sys.argv[1]).resolve()
if expected not in found.parents:
    sys.exit(f"rrmstats was imported from {found}, not from {expected}")
if not found.with_name("py.typed").is_file():
    sys.exit(f"no py.typed in {found.parent}")

for name in rrmstats.datasets.available():
    shipped = getattr(rrmstats.datasets, name)
    loaded = shipped.load_pandas()
    print(f"{name}: {len(loaded.data)} rows, {shipped.TITLE}")

stars = rrmstats.datasets.stars_cyg.load_pandas().data
print(rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3).fit().summary())
