"""Proof that a shader compiler accepts a good shader and refuses a bad one.

ggml's own probe takes a compiler that crashes or is absent for one that supports
everything (case V8), so nothing is built before this has passed.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.process import ask

GOOD = """\
#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer Data { float values[]; } data;
void main() { data.values[gl_GlobalInvocationID.x] *= 2.0; }
"""
BAD = """\
#version 450
void main() { this is no shader; }
"""
VERSION = re.compile(r"shaderc\s+v?(\d+(?:\.\d+)+)")
SPIRV_MAGIC = b"\x03\x02\x23\x07"


def prove_glslc(program: Path) -> str:
    """Return the version of a working glslc, e.g. ``2025.2``.

    Raises ``ToolMissingError`` with the reason: it cannot start, crashes, refuses a good
    shader or accepts a bad one.
    """
    version = ask((str(program), "--version"))
    if not version.ok:
        raise _unfit(program, f"--version ended with status {version.returncode}", version.tail)
    with tempfile.TemporaryDirectory(prefix="llamawright-") as name:
        folder = Path(name)
        good, told = _compile(program, folder / "good.comp", GOOD)
        if not good:
            raise _unfit(program, "it cannot compile a good shader", told)
        bad, told = _compile(program, folder / "bad.comp", BAD)
        if bad:
            raise _unfit(program, "it accepts a bad shader", told)
    found = VERSION.search(version.output)
    return found.group(1) if found else "unknown"


def _compile(program: Path, shader: Path, text: str) -> tuple[bool, tuple[str, ...]]:
    shader.write_text(text, encoding="ascii")
    output = shader.with_suffix(".spv")
    result = ask(
        (str(program), "-fshader-stage=compute", "--target-env=vulkan1.2", str(shader),
         "-o", str(output))
    )  # fmt: skip
    written = output.is_file() and output.read_bytes()[:4] == SPIRV_MAGIC
    return result.ok and written, result.tail


def _unfit(program: Path, why: str, tail: tuple[str, ...]) -> ToolMissingError:
    return ToolMissingError(
        f"{program} is not a working glslc",
        why=why,
        hint="llamawright gc --keep-days 0 removes provided tools; the next run unpacks them again",
        kind="glslc-unusable",
        tail=tail,
    )
