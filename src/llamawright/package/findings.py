"""What the audit has to say about an artifact, and how it is told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from llamawright.errors import PackageError


class Severity(StrEnum):
    """Whether a finding refuses the artifact or is only told."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault: ``kind`` is its stable class word, ``cure`` what to do about it."""

    kind: str
    path: str
    what: str
    cure: str
    severity: Severity = Severity.ERROR


def refuse(name: str, findings: Iterable[Finding]) -> None:
    """Raise ``PackageError`` with every error among the findings and every cure, once."""
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if not errors:
        return
    kinds = tuple(dict.fromkeys(f.kind for f in errors))
    count = "1 fault" if len(errors) == 1 else f"{len(errors)} faults"
    raise PackageError(
        f"the audit refuses {name}: {count}",
        why="\n".join(grouped(errors)),
        hint="\n".join(dict.fromkeys(f.cure for f in errors)),
        kind=kinds[0] if len(kinds) == 1 else "audit",
    )


def grouped(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the findings as lines; files with the very same fault share one."""
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    for finding in findings:
        paths[finding.kind, finding.what].append(finding.path)
    return tuple(f"[{kind}] {', '.join(p)}: {what}" for (kind, what), p in paths.items())
