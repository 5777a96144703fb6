"""Shared by all tests. Its folder is importable, so kits such as ``transfer_kit`` are too."""
