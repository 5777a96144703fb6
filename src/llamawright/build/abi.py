"""What host and module must share, as one digest: source, options, compiler, real flags."""

from __future__ import annotations

import re
from pathlib import Path

from llamawright.build.fileapi import Group, Reply
from llamawright.digest import digest_data
from llamawright.model.inventory import Role
from llamawright.model.plan import PatchedTree, Plan

# How a folder inside the source is spelled in messages: no matter of the interface.
_SUBFOLDERS = re.compile(r' ?"-ffile-prefix-map=<tree>/[^"]*"')
# They only say where something stands: the files there are covered by the compiler's part.
PLACES = ("FILEPATH", "PATH")
COMPILER_FACTS = ("c_sha256", "target", "libc", "libstdcxx")


def abi_digest(plan: Plan, patched: PatchedTree, reply: Reply, *, source: Path, build: Path) -> str:
    """Return the digest of all that a module and its host must have in common.

    The flags and definitions are those that CMake gives to the shared libraries in *this*
    tree. So a module option that reaches into ggml-base (a define that changes a struct,
    say) makes a module that no longer belongs to the host, whatever the plan says.
    """
    compiler = plan.tool(Role.CXX)
    identity: tuple[str, ...] = ()
    if compiler is not None:
        facts = (compiler.fact(name) for name in COMPILER_FACTS)
        identity = (compiler.name, compiler.version, compiler.sha256, *facts)
    used = [(c.language, c.id, c.version) for c in reply.compilers if c.language in ("C", "CXX")]
    options = {o.name: o.value for o in plan.host_options if o.type not in PLACES}
    flags = {
        name: [_told(g, source, build) for g in target.groups]
        for name in plan.recipe.libraries
        if (target := reply.target(name)) is not None
    }
    parts = [patched.digest, options, identity, sorted(used), flags, plan.platform]
    return digest_data(parts)


def _told(group: Group, source: Path, build: Path) -> list[object]:
    """Return a group's flags without the folders of this machine, and no include folders.

    Those differ between host and module (the module's SDK is on the path); which headers
    of llama.cpp are read is decided by the source digest.
    """
    text = _SUBFOLDERS.sub("", " ".join(group.flags).replace(f"{source.as_posix()}/", "<tree>/"))
    for folder in (source, build):
        text = text.replace(folder.as_posix(), "<tree>")
    return [group.language, group.standard, text, sorted(group.defines)]
