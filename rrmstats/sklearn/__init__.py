"""Estimators with the interface of scikit-learn; the extra `sklearn` installs what they need.

Examples
--------
>>> import rrmstats
>>> from rrmstats.sklearn import RRMRegressor
>>> stars = rrmstats.datasets.stars_cyg.load_pandas()
>>> bool(RRMRegressor(eps_bar=0.2).fit(stars.exog, stars.endog).coef_[0] > 2)
True
"""

from rrmstats.optional import require

try:
    from rrmstats.sklearn.classifier import RRMClassifier
    from rrmstats.sklearn.covariance import RRMCovariance
    from rrmstats.sklearn.decomposition import RRMDecomposition
    from rrmstats.sklearn.detector import RRMOutlierDetector
    from rrmstats.sklearn.regressor import RRMRegressor
except ImportError:
    require("sklearn", "sklearn")
    raise

__all__ = [
    "RRMClassifier",
    "RRMCovariance",
    "RRMDecomposition",
    "RRMOutlierDetector",
    "RRMRegressor",
]
