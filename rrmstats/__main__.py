"""``python -m rrmstats``: the same as the command ``rrmstats``."""

import sys

from rrmstats.cli import main

if __name__ == "__main__":
    sys.exit(main())
