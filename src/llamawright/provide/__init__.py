"""The provide room: pinned toolchains and drivers, unpacked without root."""

from llamawright.provide.debugging import debugger_of, layers_of
from llamawright.provide.driver import driver_environment
from llamawright.provide.sets import provide_set
from llamawright.provide.sysroot import compilers_for
from llamawright.provide.tools import SHELF, provided_tools

__all__ = [
    "SHELF",
    "compilers_for",
    "debugger_of",
    "driver_environment",
    "layers_of",
    "provide_set",
    "provided_tools",
]
