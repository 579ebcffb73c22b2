"""Fits as HTML files that can be read without anything else."""

from rrmstats.report.page import write_report
from rrmstats.report.paths import write_path_report
from rrmstats.report.provenance import data_hash

__all__ = ["data_hash", "write_path_report", "write_report"]
