"""Starts the mutant zoo (``nox -s zoo``): run by its path, so that ``tests`` is searched."""

from __future__ import annotations

import sys

from zoo.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
