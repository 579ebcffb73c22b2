import numpy as np
import pytest

from replication.rivals import (
    SeverCov,
    SeverLogit,
    SeverOLS,
    SeverPCA,
    filter_round,
    sever,
)
from replication.rivals.filtering import rows_left
from replication.samples import (
    correlated_points,
    heavy_tailed_noise,
    logistic_labels,
    noisy_line,
)

MODELS = {
    "ols": lambda rng, e: SeverOLS(*heavy_tailed_noise(rng, n=60), eps_bar=e),
    "logit": lambda rng, e: SeverLogit(*logistic_labels(rng, 200), eps_bar=e),
    "pca": lambda rng, e: SeverPCA(noisy_line(rng), 1, eps_bar=e),
    "cov": lambda rng, e: SeverCov(correlated_points(rng), eps_bar=e),
}


def test_filter_by_hand():
    # Centered second column: -2, 0, 4, -2; the first column is the constant 7.
    gradients = np.c_[np.full(4, 7.0), [1.0, 3, 7, 1]]
    assert filter_round(gradients, 0.25).tolist() == [True, True, False, True]
    # Of two equal scores the earlier row goes first.
    assert filter_round(gradients, 0.5).tolist() == [False, True, False, True]
    assert filter_round(gradients, 0.24).all()


def test_filter_centers_and_takes_the_widest_direction():
    # Uncentered, the common 100 would be the direction, and row 1 the farthest along it.
    gradients = np.array([[100.0, 0], [101, 0], [100, 5], [100, -4], [99, 0], [100, -1]])
    assert filter_round(gradients, 1 / 6).tolist() == [True, True, False, True, True, True]


def test_rounds_refit_to_the_rows_left():
    z = np.array([0.0, 1, -1, 2, -2, 50, -1000, 1000])
    asked = []

    def gradients(rows):
        asked.append(list(rows))
        return (z[rows] - z[rows].mean())[:, None]

    assert sever(gradients, 8, 0.26, rounds=3).tolist() == [True] * 6 + [False, True]
    assert sever(gradients, 8, 0.5, rounds=2).tolist() == [True] * 5 + [False, False, False]
    assert asked[3:] == [[*range(8)], [*range(6)]]


def test_rows_left_by_hand():
    assert rows_left(100, 0.2, 4) == 100 - 10 - 9 - 8 - 7
    assert rows_left(60, 0.1, 2) == 60 - 3 - 2
    assert rows_left(9, 0.2, 5) == 9
    # 0.29 * 100 is below 29 in floating point.
    assert rows_left(100, 0.58, 1) == 71


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("eps_bar", [0.0, 0.05, 0.1])
def test_number_of_rows_removed(name, eps_bar, rng):
    model = MODELS[name](rng, eps_bar)
    for rounds in (0, 1, 4):
        res = model.fit(rounds=rounds)
        assert res.kept.sum() == res.nobs == rows_left(len(model.endog), eps_bar, rounds)
        assert (res.eps_bar, res.rounds) == (eps_bar, rounds)
    assert "SEVER" in str(res.summary())


@pytest.mark.parametrize("rounds", [-1, 1.5, True])
def test_rounds_are_a_whole_number(rounds, rng):
    with pytest.raises(ValueError, match="rounds must be a whole number, 0 or more, got"):
        MODELS["ols"](rng, 0.1).fit(rounds=rounds)
