"""The experiments of the paper: ``rrmstats replicate``.

Each experiment draws its samples, fits the rivals and RRM, and writes a table of the results
(CSV), a picture (PNG) and a row of the summary, which compares what the paper says with what we
get. Errors are averages over the runs.
"""

from replication.driver import full_name, replicate, simulate
from replication.paper import EXPERIMENTS, Experiment
from replication.summaries import summary_lines

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "full_name",
    "replicate",
    "simulate",
    "summary_lines",
]
