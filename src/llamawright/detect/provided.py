"""Pinned sets that can be had without root: which of them fit this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Available, Fault, Rejected
from llamawright.model.toolchain import ProvidedSet
from llamawright.store import Store

PROVIDED = "provided"


def provided_sets(around: Surroundings, store_tools: Path) -> Iterator[Available | Rejected]:
    """Yield the sets for this platform; one whose glibc is newer than ours is refused.

    ``store_tools`` is the store's shelf for tools. Sets for other platforms are none of
    this machine's business and do not show up.
    """
    store = Store(store_tools.parent)
    for item in around.toolchains.sets:
        if around.platform.tag not in item.platforms:
            continue
        reason = _unfit(item, around.libc)
        if reason:
            yield _refused(item, reason)
            continue
        yield Available(
            role=item.role,
            name=item.name,
            version=item.version,
            digest=item.digest,
            size=item.size,
            root=store_tools / item.digest,
            present=store.is_stamped(store_tools.name, item.digest),
            facts=item.facts,
        )


def _unfit(item: ProvidedSet, libc: str) -> str:
    if not item.glibc:
        return ""
    name, _, version = libc.partition(" ")
    if name != "glibc":
        return f"it needs glibc {item.glibc}, this machine has another C library"
    if Version(version) < Version(item.glibc):
        return f"it needs glibc {item.glibc}, this machine has {version}"
    return ""


def _refused(item: ProvidedSet, reason: str) -> Rejected:
    return Rejected(
        role=item.role,
        name=item.name,
        path=None,
        where=PROVIDED,
        reason=reason,
        fault=Fault.UNSUPPORTED,
    )
