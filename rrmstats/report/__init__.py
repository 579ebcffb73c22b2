"""Fits as HTML files that can be read without anything else."""

from rrmstats.report.page import data_hash, write_report
from rrmstats.report.paths import write_path_report

__all__ = ["data_hash", "write_path_report", "write_report"]
