"""statsmodels' own generic tests, run on our models: the tests come from the installed package."""

import numpy as np
import pytest
from statsmodels.base.tests.test_generic_methods import CheckGenericMixin
from statsmodels.base.tests.test_shrink_pickle import RemoveDataPickle

from rrmstats import RRMGLM, RRMOLS, RRMLogit, RRMPoisson

if not hasattr(CheckGenericMixin, "setup_method"):
    pytest.skip("statsmodels before 0.15 sets its tests up for the class", allow_module_level=True)

MODELS = {"ols": RRMOLS, "glm": RRMGLM, "logit": RRMLogit, "poisson": RRMPoisson}
PRIVATE = (
    "it calls private parts of fit_constrained, which reads normalized_cov_params; fit fewer "
    "columns, or use wald_test()"
)
COLLINEAR = (
    "it calls private parts of statsmodels' fits and asks for warnings of singular designs, which "
    "the summary notes here"
)
LINEAR = "statsmodels leaves out its own Logit by class: fittedvalues are linear predictors"


def sample(name, exog):
    """Return the responses that statsmodels' tests draw for its twin of a model."""
    rs = np.random.RandomState(987689)
    total = exog.sum(axis=1)
    if name == "poisson":
        return rs.poisson(np.exp(total - exog.mean()))
    if name == "logit":
        return (rs.rand(len(exog)) < 1.0 / (1 + np.exp(total - exog.mean()))).astype(int)
    return total + rs.randn(len(exog))


class Generic(CheckGenericMixin):
    def setup_method(self):
        super().setup_method()
        self.results = MODELS[self.name](sample(self.name, self.exog), self.exog).fit()

    @pytest.mark.xfail(reason=PRIVATE)
    def test_zero_constrained(self):
        super().test_zero_constrained()

    @pytest.mark.xfail(reason=COLLINEAR)
    def test_zero_collinear(self):
        super().test_zero_collinear()


class TestGenericOLS(Generic):
    name = "ols"


class TestGenericGLM(Generic):
    name = "glm"


class TestGenericLogit(Generic):
    name = "logit"

    @pytest.mark.xfail(reason=LINEAR)
    def test_fitted(self):
        super().test_fitted()

    @pytest.mark.xfail(reason=LINEAR)
    def test_predict_types(self):
        super().test_predict_types()


class TestGenericPoisson(Generic):
    name = "poisson"


class Shrinks(RemoveDataPickle):
    def setup_method(self):
        super().setup_method()
        self.model_class = MODELS[self.name]
        self.model_args = (sample(self.name, self.exog), self.exog)
        self.results = self.estimate_model()


class TestShrinksOLS(Shrinks):
    name = "ols"


class TestShrinksGLM(Shrinks):
    name = "glm"


class TestShrinksLogit(Shrinks):
    name = "logit"


class TestShrinksPoisson(Shrinks):
    name = "poisson"
