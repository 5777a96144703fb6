"""What each backend adds to the configure gate: pure rules, one small module a backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from llamawright.build.backends import cpu, cuda, vulkan
from llamawright.build.fileapi import Reply
from llamawright.errors import BuildError
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule


class Gate(Protocol):
    """The rules of one backend over a configured tree."""

    def faults(self, plan: Plan, rule: BackendRule, reply: Reply, log: str) -> Iterator[str]:
        """Yield every way in which the backend is not what the plan says."""

    def proved(self, plan: Plan) -> frozenset[str] | None:
        """Return the capabilities seen to work before configure; ``None``: nobody looked."""


GATES: dict[Backend, Gate] = {
    Backend.CPU: cpu.Gate(),
    Backend.VULKAN: vulkan.Gate(),
    Backend.CUDA: cuda.Gate(),
}


def gate_of(backend: Backend) -> Gate:
    """Return the rules of a backend; ``BuildError`` for one that cannot be built yet."""
    gate = GATES.get(backend)
    if gate is None:
        raise BuildError(
            f"{backend} cannot be built by this llamawright",
            why=f"known backends: {', '.join(GATES)}",
            hint="use a newer llamawright, or one of the known backends",
            kind="backend-unknown",
        )
    return gate
