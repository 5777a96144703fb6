"""The shader compiler: it must accept a good shader, refuse a bad one, and say what it can.

ggml's own probe takes a glslc that crashes, is not executable or is absent for one that
supports every extension (case V8), so nothing is believed here that was not seen.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from llamawright.detect import proof_sources
from llamawright.detect.candidates import Candidate, Sighting
from llamawright.detect.probe import Problem, run_tool, succeed, telling_line
from llamawright.detect.surroundings import Surroundings
from llamawright.digest import sha256_file
from llamawright.model import fit
from llamawright.model.inventory import Fault, Found
from llamawright.model.recipe import Capability
from llamawright.model.toolchain import Fact
from llamawright.process import Result

# The arguments are those of ggml's CMakeLists.txt for its feature tests.
ARGUMENTS = ("-fshader-stage=compute", "--target-env=vulkan1.3")
SPIRV_MAGIC = b"\x03\x02\x23\x07"
VERSION = re.compile(r"shaderc\s+v?(\d+(?:\.\d+)*\S*)")
UNSUPPORTED = re.compile(r"extension not supported: (\w+)")
GENERATED = re.compile(r"(\d{1,6}) errors? generated")


def prove(
    candidate: Candidate, capabilities: Sequence[Capability], around: Surroundings
) -> Sighting:
    """Return glslc with its version and the names of the capabilities it has."""
    known = succeed((str(candidate.path), "--version"), around, seconds=around.short_s)
    if isinstance(known, Problem):
        return _refused(candidate, known, around)
    told = VERSION.search(known.stdout)
    if told is None:
        strange = f"it does not call itself glslc: {telling_line(known)}"
        return _refused(candidate, Problem(Fault.FAILED, strange), around)
    wrong = fit.misfit(candidate.role, "glslc", told[1], around.toolchains)
    if wrong:
        return _refused(candidate, Problem(*wrong), around)
    with tempfile.TemporaryDirectory(prefix="llamawright-", ignore_cleanup_errors=True) as folder:
        able = _abilities(candidate, capabilities, around, Path(folder))
    if isinstance(able, Problem):
        return _refused(candidate, able, around)
    parts = [line.strip() for line in known.stdout.splitlines() if line.strip()]
    return Found(
        role=candidate.role,
        name="glslc",
        path=candidate.path,
        version=told[1],
        where=candidate.where,
        sha256=sha256_file(candidate.path),
        facts=((Fact.CAPABILITIES, " ".join(able)), ("parts", ", ".join(parts[:3]))),
    )


def extension_shader(extensions: Sequence[str]) -> str:
    """Return one shader that requires every extension, as ggml's feature tests do singly."""
    wanted = "".join(f"#extension {e} : require\n" for e in extensions)
    return f"#version 460\n{wanted}void main() {{}}\n"


def supported(extensions: Sequence[str], result: Result) -> tuple[str, ...] | None:
    """Return the extensions a compiler supports, from its answer to the one shader.

    ``None`` when the answer does not add up: an error about anything else, or a count of
    errors that is not the number of refused extensions.
    """
    refused = set(UNSUPPORTED.findall(result.output))
    counted = GENERATED.search(result.output)
    errors = int(counted[1]) if counted else 0
    if (result.returncode == 0) != (errors == 0) or errors != len(refused):
        return None
    return tuple(e for e in extensions if e not in refused)


def _abilities(
    candidate: Candidate,
    capabilities: Sequence[Capability],
    around: Surroundings,
    folder: Path,
) -> tuple[str, ...] | Problem:
    unsound = _unsound(candidate, around, folder)
    if unsound:
        return unsound
    asked = [c for c in capabilities if c.extension]
    extensions = [c.extension for c in asked]
    answer = _compile(candidate, "all", extension_shader(extensions), around, folder)
    if isinstance(answer, Problem):
        return answer
    able = supported(extensions, answer)
    if able is None:
        unclear = f"its answer about extensions is unclear: {telling_line(answer)}"
        return Problem(Fault.FAILED, unclear)
    return tuple(c.name for c in asked if c.extension in able)


def _unsound(candidate: Candidate, around: Surroundings, folder: Path) -> Problem | None:
    good = _compile(candidate, "good", proof_sources.GOOD_SHADER, around, folder)
    if isinstance(good, Problem):
        return good
    if good.returncode != 0 or not _is_spirv(folder / "good.spv"):
        return Problem(Fault.FAILED, f"it cannot compile a plain shader: {telling_line(good)}")
    bad = _compile(candidate, "bad", proof_sources.BAD_SHADER, around, folder)
    if isinstance(bad, Problem):
        return bad
    if bad.returncode == 0:
        return Problem(Fault.FAILED, "it accepts a shader that is wrong: no answer of it counts")
    return None


def _compile(
    candidate: Candidate, name: str, text: str, around: Surroundings, folder: Path
) -> Result | Problem:
    source = folder / f"{name}.comp"
    source.write_text(text.lstrip(), encoding="utf-8")
    argv = (str(candidate.path), *ARGUMENTS, "-o", str(folder / f"{name}.spv"), str(source))
    return run_tool(argv, around, seconds=around.long_s, cwd=folder)


def _is_spirv(path: Path) -> bool:
    return path.is_file() and path.read_bytes()[:4] == SPIRV_MAGIC


def _refused(candidate: Candidate, problem: Problem, around: Surroundings) -> Sighting:
    return candidate.rejected(problem.fault, problem.reason, around.cure(candidate.role))
