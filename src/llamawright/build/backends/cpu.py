"""The CPU backend: every variant that CMake announces must be a module of this build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from llamawright.build.fileapi import Reply
from llamawright.model.plan import Plan
from llamawright.model.recipe import BackendRule

ANNOUNCED = "GGML_AVAILABLE_BACKENDS"
ALL_VARIANTS = "GGML_CPU_ALL_VARIANTS"
MODULE = "MODULE_LIBRARY"


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of the CPU backend."""

    def faults(self, plan: Plan, rule: BackendRule, reply: Reply, log: str) -> Iterator[str]:
        """Yield variants that are announced and not built, or built as something else."""
        del log
        announced = (reply.entry(ANNOUNCED) or "").split(";")
        variants = [n for n in announced if any(fnmatch(n, p) for p in rule.targets)]
        wanted = {o.name: o.value for o in plan.host_options}
        if wanted.get(ALL_VARIANTS) == "ON" and reply.entry(ANNOUNCED) and len(variants) < 2:  # noqa: PLR2004
            yield f"{ALL_VARIANTS} is on, and CMake announces {len(variants)} variants"
        for name in variants:
            target = reply.target(name)
            if target is None:
                yield f"{name} is announced, and there is no such target"
            elif target.type != MODULE:
                yield f"{name} is a {target.type}, not a module that is loaded at run time"

    def proved(self, plan: Plan) -> frozenset[str] | None:
        """Return nothing: which CPU features count is decided on the user's machine."""
        del plan
        return None
