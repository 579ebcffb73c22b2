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
    from rrmstats.sklearn.multivariate import RRMCovariance, RRMDecomposition, RRMOutlierDetector
    from rrmstats.sklearn.regressor import RRMRegressor
    from rrmstats.sklearn.wrapper import RRMWrapper
except ImportError:
    require("sklearn", "sklearn")
    raise

__all__ = [
    "RRMClassifier",
    "RRMCovariance",
    "RRMDecomposition",
    "RRMOutlierDetector",
    "RRMRegressor",
    "RRMWrapper",
]
