"""The build room: a patched tree to a staged install, host once and one module a backend."""

from llamawright.build.steps import build_host, build_module

__all__ = ["build_host", "build_module"]
