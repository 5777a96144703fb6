"""The Vulkan backend: headers, shader compiler and extensions are the plan's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from llamawright.build.fileapi import Reply
from llamawright.model.inventory import Role
from llamawright.model.plan import Plan
from llamawright.model.recipe import BackendRule
from llamawright.model.toolchain import Fact

SAID = "Including Vulkan backend"
HEADERS = "Vulkan_INCLUDE_DIR"
# The compiler looks there by itself, and CMake leaves such folders out of a command line.
IMPLIED = frozenset({PurePosixPath("/usr/include"), PurePosixPath("/usr/local/include")})


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of the Vulkan backend."""

    def faults(self, plan: Plan, rule: BackendRule, reply: Reply, log: str) -> Iterator[str]:
        """Yield a backend that was left out, and headers of another root (case V4)."""
        if SAID not in log:
            yield f"CMake did not say: {SAID}"
        wanted = {o.name: o.value for o in plan.module_options}.get(HEADERS)
        if wanted is None or PurePosixPath(wanted) in IMPLIED:
            return
        for name in rule.targets:
            target = reply.target(name)
            if target and PurePosixPath(wanted) not in map(PurePosixPath, target.includes):
                yield f"{name} is not compiled with the headers of {wanted}"

    def proved(self, plan: Plan) -> frozenset[str] | None:
        """Return what the chosen glslc was seen to do, or what its pinned set is known for."""
        glslc = plan.tool(Role.GLSLC)
        if glslc is not None:
            return frozenset(glslc.fact(Fact.CAPABILITIES).split())
        for item in plan.provisions:
            if item.role is Role.VULKAN and Fact.CAPABILITIES in dict(item.facts):
                return frozenset(item.fact(Fact.CAPABILITIES).split())
        return None
