"""Which host compilers a toolkit takes, read from its own ``crt/host_config.h`` (case C12)."""

from __future__ import annotations

import re

from llamawright.model.toolchain import Fact

_GCC = re.compile(r"^\s*#\s*if\s[^\n]*__GNUC__\s*>\s*(\d{1,3})\b", re.MULTILINE)
# Grace's and QNX's clang have limits of their own before that of the plain one.
_CLANG = re.compile(r"^\s*#\s*if\s*\(?__clang_major__\s*>=\s*(\d{1,3})\b", re.MULTILINE)
_PLAIN_CLANG = re.compile(r"^\s*#\s*if\s[^\n]*defined\(__clang__\)[^\n]*$", re.MULTILINE)
_MSC = re.compile(
    r"^\s*#\s*if\s+_MSC_VER\s*<\s*(\d{3,5})\s*\|\|\s*_MSC_VER\s*(>=?)\s*(\d{3,5})", re.MULTILINE
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def host_limits(text: str) -> dict[str, str]:
    """Return the highest gcc and clang and the range of ``_MSC_VER``, both ends included.

    The keys are ``Fact.GCC_MAX`` and its like. A limit that the text does not hold in a
    known shape has no key: then nothing is claimed, and nvcc itself must judge.
    """
    code = _COMMENT.sub(" ", text)
    limits: dict[str, str] = {}
    gcc = _GCC.findall(code)
    if gcc:
        limits[Fact.GCC_MAX] = gcc[-1]
    plain = _PLAIN_CLANG.search(code)
    clang = _CLANG.search(code, plain.end()) if plain else None
    if clang:
        limits[Fact.CLANG_MAX] = str(int(clang[1]) - 1)
    msc = _MSC.search(code)
    if msc:
        limits[Fact.MSC_MIN] = msc[1]
        limits[Fact.MSC_MAX] = str(int(msc[3]) - (msc[2] == ">="))
    return limits
