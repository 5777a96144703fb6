"""What one question of the resolver comes to: tools, or conflicts with their cures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llamawright.errors import LlamawrightError, ToolchainConflictError, ToolMissingError
from llamawright.model import fit
from llamawright.model.inventory import Fault, Found, Inventory, Rejected, Role
from llamawright.model.plan import Conflict
from llamawright.model.toolchain import Toolchains

SLUGS = {
    Role.CXX: "compiler",
    Role.CMAKE: "cmake",
    Role.NINJA: "ninja",
    Role.GLSLC: "glslc",
    Role.VULKAN: "vulkan",
    Role.SPIRV: "spirv-headers",
    Role.CACHE: "compiler-cache",
    Role.DRIVER: "vulkan-driver",
    Role.GIT: "git",
    Role.CUDA: "cuda",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tools chosen for one question, what speaks against it, what a reader should know."""

    tools: tuple[Found, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The inventory with the limits of the toolchains applied: what may be used at all."""

    inventory: Inventory
    toolchains: Toolchains

    def usable(self, role: Role) -> tuple[Found, ...]:
        """Return the tools of a role that fit their limits, best first."""
        return tuple(f for f in self.inventory.having(role) if self._misfit(f) is None)

    def refused(self, *roles: Role) -> tuple[Rejected, ...]:
        """Return every candidate of the roles that cannot be used, whoever says so."""
        unfit = [_as_rejected(f, *m) for f in self._found(roles) if (m := self._misfit(f))]
        return (*(r for r in self.inventory.rejected if r.role in roles), *unfit)

    def cure(self, role: Role) -> str:
        """Return how this system installs a tool of the role, or nothing."""
        return fit.cure(role, self.inventory.systems, self.toolchains)

    def _found(self, roles: Iterable[Role]) -> Iterator[Found]:
        return (f for f in self.inventory.found if f.role in roles)

    def _misfit(self, tool: Found) -> tuple[Fault, str] | None:
        return fit.misfit(tool.role, tool.name, tool.version, self.toolchains)


def _as_rejected(tool: Found, fault: Fault, reason: str) -> Rejected:
    return Rejected(
        role=tool.role,
        name=tool.name,
        path=tool.path,
        where=tool.where,
        reason=reason,
        fault=fault,
    )


def conflict_of(what: str, refused: Iterable[Rejected], *cures: str, role: Role) -> Conflict:
    """Return one conflict that lists every refused candidate with its reason.

    The conflict counts as a missing tool unless a candidate works and merely does not fit.
    """
    seen = list(refused)
    reasons = [f"{r.path or r.name} ({r.where}): {r.reason}" for r in seen]
    told = [*(r.cure for r in seen), *cures]
    if not any(told):
        told = [f"install {role} by your system's package manager"]
    first = seen[0] if seen else None
    slug = SLUGS[first.role if first else role]
    return Conflict(
        what=what,
        why="\n".join(reasons) or "no candidate was found",
        cures=tuple(dict.fromkeys(c for c in told if c)),
        missing=not any(r.fault.misfit for r in seen),
        kind=f"{slug}-{first.fault if first else 'absent'}",
    )


def failure(conflicts: tuple[Conflict, ...]) -> LlamawrightError:
    """Return the one error that carries all conflicts and all cures.

    ``ToolMissingError`` when every one of them is a missing tool.
    """
    missing = all(c.missing for c in conflicts)
    kind = ToolMissingError if missing else ToolchainConflictError
    cures = dict.fromkeys(cure for c in conflicts for cure in c.cures)
    if len(conflicts) == 1:
        only = conflicts[0]
        return kind(only.what, why=only.why, hint="\n".join(cures), kind=only.kind)
    reasons = [f"{c.what}: {line}" for c in conflicts for line in c.why.splitlines()]
    count = f"{len(conflicts)} tools are missing" if missing else f"{len(conflicts)} conflicts"
    return kind(
        f"{count}: {'; '.join(c.what for c in conflicts)}",
        why="\n".join(reasons),
        hint="\n".join(cures),
        kind="tools-missing" if missing else "toolchain-conflicts",
    )
