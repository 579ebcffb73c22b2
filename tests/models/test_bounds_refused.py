"""An eps_bar that is no fraction is refused wherever one is taken."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from model_table import MODELS, frame

import rrmstats
from rrmstats.core import Setting, entropy_weights, minimize
from rrmstats.losses import SquaresProblem

DATA = frame()
EXOG = sm.add_constant(DATA[["x", "z"]].to_numpy())

TAKERS = {
    **{
        name: lambda value, e=entry: e.formula(DATA, eps_bar=value)
        for name, entry in MODELS.items()
    },
    **{f"{n}, arrays": lambda v, e=entry: e.array(DATA, eps_bar=v) for n, entry in MODELS.items()},
    "robustify": lambda value: rrmstats.robustify(sm.Poisson(DATA["count"], EXOG), value),
    "custom": lambda value: rrmstats.custom(lambda t: (DATA.y - t[0]) ** 2, [0.0], value),
    "robust_weights": lambda value: rrmstats.robust_weights(DATA.y**2, value),
    "entropy_weights": lambda value: entropy_weights(DATA.y**2, value),
    "minimize": lambda value: minimize(SquaresProblem(DATA.y.to_numpy(), EXOG), value),
    "Setting": lambda value: Setting(eps_bar=value),
    "path": lambda value: MODELS["ols"].formula(DATA, eps_bar=0.2).path([0.1, value], steps=1),
    "another bound": lambda value: MODELS["ols"].formula(DATA, eps_bar=0.2).with_eps_bar(value),
}

REFUSED = {
    "text": ("0.2", TypeError, "must be a number in .*got '0.2'"),
    "True": (True, TypeError, "must be a number in .*got True"),
    "numpy's True": (np.True_, TypeError, "must be a number in .*got .*True"),
    "Auto": ("Auto", TypeError, "must be a number in .*got 'Auto'"),
    "None": (None, TypeError, "must be a number in .*got None; .*share of bad rows .*eps_bar=0.2"),
    "nan": (np.nan, ValueError, r"must be in \[0, 1\), got nan"),
    "inf": (np.inf, ValueError, r"must be in \[0, 1\), got inf"),
    "complex": (0.2 + 0j, TypeError, "must be a number in .*got .*0j"),
    "array": (np.array([0.2]), TypeError, r"must be a number in .*got array\(\[0.2\]\)"),
    "list": ([0.2], TypeError, r"must be a number in .*got \[0.2\]"),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", REFUSED)
def test_refused(taker, kind):
    value, error, message = REFUSED[kind]
    with pytest.raises(error, match=message):
        TAKERS[taker](value)


@pytest.mark.parametrize(
    "value", [np.float32(0.25), np.array(0.25), Decimal("0.25"), Fraction(1, 4)]
)
def test_numbers_of_any_kind(value):
    model = rrmstats.ols("y ~ x", DATA, value)
    assert model.eps_bar == 0.25 and type(model.eps_bar) is float
    assert type(rrmstats.ols("y ~ x", DATA, np.int64(0)).eps_bar) is float


@pytest.mark.parametrize("value", ["0.3", True, np.nan, 1.0])
def test_largest_automatic_bound(value):
    with pytest.raises(ValueError, match=r"eps_bar_max must be a number in \(0, 1\), got"):
        rrmstats.ols("y ~ x", DATA, "auto", eps_bar_max=value)
