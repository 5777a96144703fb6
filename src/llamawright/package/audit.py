"""The audit: every rule over one artifact, in the order a reader wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from llamawright.package import closure, contents, device_code, hazards
from llamawright.package.findings import Finding
from llamawright.package.subject import Subject

Rule = Callable[[Subject], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    contents.missing_rules,
    contents.strange_rules,
    contents.link_rules,
    contents.double_rules,
    contents.licence_rules,
    contents.capability_rules,
    device_code.code_rules,
    device_code.runtime_rules,
    closure.unreadable_rules,
    closure.machine_rules,
    closure.import_rules,
    closure.runpath_rules,
    hazards.vector_rules,
    hazards.memory_rules,
    hazards.leak_rules,
    hazards.signature_rules,
)


def audit(subject: Subject) -> tuple[Finding, ...]:
    """Return every finding of every rule; none means the artifact may be packed."""
    return tuple(finding for rule in RULES for finding in rule(subject))
