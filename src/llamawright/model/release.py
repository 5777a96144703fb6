"""What a release is made of, as the recipe says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llamawright.model.platform import Backend


class TargetKind(StrEnum):
    """What a target of a release is: an archive, or one of the two kinds of wheels."""

    ARCHIVE = "archive"
    RUNTIME_WHEEL = "runtime-wheel"
    BINDING_WHEEL = "llama-cpp-python-wheel"


class Accepted(StrEnum):
    """The verdicts that a recipe may accept in place of ``verified``; no failure is one."""

    VERIFIED_SOFTWARE = "verified-software"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """A lesser verdict that a target may be released with, and why."""

    state: Accepted
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTarget:
    """One thing that a release must hold.

    ``archs`` are CUDA codes as ``--arch`` takes them, ``floor`` the oldest system it runs on
    as ``--floor`` takes it (empty: the building one). Without an exemption in ``accept``
    only ``verified`` will do.
    """

    name: str
    backend: Backend
    kind: TargetKind
    archs: tuple[str, ...] = ()
    floor: str = ""
    accept: tuple[Exemption, ...] = ()

    def reason_for(self, state: str) -> str | None:
        """Return why the recipe accepts ``state``, or ``None`` when it does not."""
        return next((e.reason for e in self.accept if e.state == state), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantProvider:
    """Who answers for a namespace of variant properties: a plugin's requirements."""

    namespace: str
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRule:
    """A wheel variant (PEP 825): label, the backend whose wheels it is made of, properties.

    A property is written ``namespace :: feature :: value``.
    """

    label: str
    backend: Backend
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRule:
    """The ``[release]`` table of a recipe.

    ``null_variant`` is the backend whose wheels every machine can run: they become the
    null variant when variants are asked for.
    """

    targets: tuple[ReleaseTarget, ...]
    null_variant: Backend = Backend.CPU
    providers: tuple[VariantProvider, ...] = ()
    variants: tuple[VariantRule, ...] = ()
