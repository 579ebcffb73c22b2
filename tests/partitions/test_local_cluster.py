"""A real cluster of two processes: the same numbers, also when a worker is killed."""

import os
import signal
import threading
import time

import dask.dataframe as dd
import numpy as np
import pytest
from numpy.testing import assert_allclose
from samples import regression_frame
from test_partitioned_models import MODELS, assert_same_fit

import rrmstats

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what the cluster says of sockets and threads
    pytest.mark.slow,
    pytest.mark.xdist_group("cluster"),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def frame():
    return regression_frame(1_000)


CASES = [("ols", 2), ("logit", 1), ("poisson", 1), ("pca", 1), ("cov", 1)]


@pytest.mark.parametrize(("name", "steps"), CASES)
def test_fits_agree_with_memory(client, frame, name, steps):
    parts = dd.from_pandas(frame, npartitions=3)
    found = MODELS[name](parts, persist=True).fit(steps=steps)
    assert_same_fit(found, MODELS[name](frame).fit(steps=steps))


class Slow:
    """A function of rows that takes a while, so that a worker can be killed in the middle."""

    def __call__(self, values):
        time.sleep(0.03)
        return values


def test_a_killed_worker_loses_nothing(client, frame, monkeypatch):
    monkeypatch.setattr("rrmstats.core.blocks.SAMPLE_ROWS", 500)  # so that there are rounds
    slow = Slow()  # noqa: F841  # the formula names it
    formula = "y ~ slow(x1) + x2"
    expected = rrmstats.ols("y ~ x1 + x2", frame, 0.2).fit(steps=1)
    parts = dd.from_pandas(frame, npartitions=4)
    model = rrmstats.ols(formula, parts, 0.2, persist=False)
    victim = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    pid = client.run(os.getpid, workers=[victim])[victim]
    passes = model.partitioned_rows.blocks.passes

    def kill():
        while model.partitioned_rows.blocks.passes < passes + 2:
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = model.fit(steps=1)
    errors = np.asarray(found.bse)
    killer.join()
    assert_allclose(np.asarray(found.params), np.asarray(expected.params), rtol=1e-7)
    assert_allclose(errors, np.asarray(expected.bse), rtol=1e-7)
    survivors = client.run(os.getpid)
    assert pid not in survivors.values()
