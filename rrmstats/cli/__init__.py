"""The command ``rrmstats``: fits, paths, shipped data and the paper's experiments in a shell."""

from rrmstats.cli.run import main

__all__ = ["main"]
