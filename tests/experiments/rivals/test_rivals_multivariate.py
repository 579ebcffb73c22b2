import numpy as np
import pytest
import statsmodels.api as sm

from replication.rivals import SeverCov, SeverPCA
from replication.samples import correlated_points, noisy_line


def test_gradients_of_the_covariance(rng):
    model = SeverCov(correlated_points(rng), 0.2)
    res = model.fit(rounds=0)
    found = model._gradients(np.arange(len(model.endog)))

    def losses(theta):
        centered, cov = model.endog - theta[:2], theta[2:].reshape(2, 2)
        mahalanobis = np.einsum("ni,ij,nj->n", centered, np.linalg.inv(cov), centered)
        return mahalanobis + np.log(np.linalg.det(cov))

    theta = np.r_[res.mean, res.cov.ravel()]
    slopes = [(losses(theta + 1e-6 * u) - losses(theta - 1e-6 * u)) / 2e-6 for u in np.eye(6)]
    np.testing.assert_allclose(found, np.transpose(slopes), rtol=1e-5, atol=1e-4)


def test_gradients_of_principal_components(rng):
    data = noisy_line(rng)
    model = SeverPCA(data, 1, 0.2, demean=False)
    theta = model.fit(rounds=0).loadings.ravel()

    def losses(v):
        return ((data - np.outer(data @ v, v)) ** 2).sum(axis=1)

    slopes = [(losses(theta + 1e-6 * u) - losses(theta - 1e-6 * u)) / 2e-6 for u in np.eye(2)]
    found = model._gradients(np.arange(len(data)))
    np.testing.assert_allclose(found, np.transpose(slopes), rtol=1e-4, atol=1e-4)


def test_without_corruption_they_are_the_classical_ones(rng):
    z = correlated_points(rng)
    np.testing.assert_allclose(SeverCov(z, 0).fit().cov, np.cov(z.T, bias=True))
    pca = sm.multivariate.PCA(z, ncomp=1, standardize=False, normalize=False)
    res = SeverPCA(z, 1, 0).fit()
    np.testing.assert_allclose(np.abs(res.loadings), np.abs(pca.loadings), rtol=1e-6)
    np.testing.assert_allclose(res.eigenvals * len(z), pca.eigenvals[:1])


def test_multivariate_formula_and_labels(frame):
    frame = frame.assign(z=[1.0, 0, 2, 1, 0, 3, 1, 0])
    res = SeverCov.from_formula("~ x + z", frame, 0.26).fit(rounds=1)
    assert res.cov.loc["x", "z"] == res.params["cov[x, z]"]
    assert res.mean.index.tolist() == ["x", "z"]
    assert res.kept.index.tolist() == frame.index.tolist()
    res = SeverPCA.from_formula("~ x + y + z", frame, 0.26, n_components=2).fit(rounds=1)
    assert res.loadings.shape == (3, 2)
    np.testing.assert_allclose(res.loadings.T @ res.loadings, np.eye(2), atol=1e-12)
    assert res.params.is_monotonic_decreasing
    text = str(res.summary())
    assert "eigenvalue" in text
    assert f"{res.loadings.iloc[0, 0]:.4g}" in text


@pytest.mark.parametrize("n_components", [0, 2, 0.5, True])
def test_number_of_components(n_components, frame):
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 1"):
        SeverPCA(frame, n_components, 0.1)


def test_missing_values(frame):
    with pytest.raises(ValueError, match="data contains 16 NaN or infinite values"):
        SeverCov(frame * np.nan, 0.1)
