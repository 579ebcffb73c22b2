import pytest

from .fits import FITS


@pytest.fixture(params=FITS, scope="module")
def res(request):
    return FITS[request.param]()
