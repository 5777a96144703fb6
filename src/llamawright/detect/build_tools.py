"""cmake, ninja, git and the compiler caches: asked for their version, which they must give."""

from __future__ import annotations

import re

from llamawright.detect.candidates import Candidate, Sighting
from llamawright.detect.probe import Problem, succeed, telling_line
from llamawright.detect.surroundings import Surroundings
from llamawright.digest import sha256_file
from llamawright.model import fit
from llamawright.model.inventory import Fault, Found, Role

VERSIONS = {
    "cmake": re.compile(r"cmake version (\d+(?:\.\d+)+\S*)"),
    "ninja": re.compile(r"^(\d+(?:\.\d+)+\S*)"),
    "git": re.compile(r"git version (\d+(?:\.\d+)+\S*)"),
    "ccache": re.compile(r"ccache version (\d+(?:\.\d+)+\S*)"),
    "sccache": re.compile(r"sccache (\d+(?:\.\d+)+\S*)"),
}
# A broken one of these is mended by not using it.
UNNEEDED = {Role.CACHE: "--cache off"}


def prove(candidate: Candidate, around: Surroundings) -> Sighting:
    """Return the program with its version, or why it cannot be used."""
    argv = (str(candidate.path), "--version")
    result = succeed(argv, around, seconds=around.short_s)
    cure = UNNEEDED.get(candidate.role) or around.cure(candidate.role)
    if isinstance(result, Problem):
        return candidate.rejected(result.fault, result.reason, cure)
    told = VERSIONS[candidate.name].search(result.stdout)
    if told is None:
        reason = f"it does not call itself {candidate.name}: {telling_line(result)}"
        return candidate.rejected(Fault.FAILED, reason, cure)
    wrong = fit.misfit(candidate.role, candidate.name, told[1], around.toolchains)
    if wrong:
        return candidate.rejected(*wrong, cure)
    return Found(
        role=candidate.role,
        name=candidate.name,
        path=candidate.path,
        version=told[1],
        where=candidate.where,
        sha256=sha256_file(candidate.path),
    )
