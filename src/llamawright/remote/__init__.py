"""A proof on another machine: what it lacks is sent, what it found is brought back."""

from llamawright.remote.address import parse_address
from llamawright.remote.errand import Errand, send_and_run
from llamawright.remote.result import FarResult, read_result
from llamawright.remote.tool import pack_tool

__all__ = [
    "Errand",
    "FarResult",
    "pack_tool",
    "parse_address",
    "read_result",
    "send_and_run",
]
