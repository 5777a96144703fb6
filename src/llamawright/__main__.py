"""``python -m llamawright``."""

from llamawright.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
