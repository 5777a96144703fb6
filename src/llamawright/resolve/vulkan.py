"""Which Vulkan build side is used: the SDK, a provided set or the system's packages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from llamawright.model.condition import holds
from llamawright.model.inventory import Rejected, Role
from llamawright.model.plan import Conflict, PlannedPatch
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule
from llamawright.model.request import Request, VulkanChoice
from llamawright.resolve.choice import Field, conflict_of
from llamawright.resolve.sides import HEADERS, PROVIDED, SDK, SYSTEM, ModuleSide, Side, sides

# Without it matrix products leave tensor cores idle: an SDK that lacks it is no gain over
# the provided set.
WORTHWHILE = "cooperative_matrix"
PARTS = (Role.VULKAN, Role.GLSLC, Role.SPIRV)
PLACES = {
    VulkanChoice.SDK: (SDK,),
    VulkanChoice.PROVIDED: (PROVIDED,),
    VulkanChoice.SYSTEM: (SYSTEM,),
}
NAMES = {SDK: "the Vulkan SDK", SYSTEM: "the system's Vulkan", PROVIDED: "a provided Vulkan"}


def facts_of(backend: Backend, side: ModuleSide | None) -> dict[str, str]:
    """Return what patch conditions may ask about."""
    return {"backend": str(backend)} | (side.facts if side else {})


def select_patches(
    patches: tuple[PlannedPatch, ...], facts: dict[str, str]
) -> tuple[PlannedPatch, ...]:
    """Return the patches all of whose conditions hold, in the series' order."""
    return tuple(p for p in patches if all(holds(n, facts) for n in p.needs))


def choose_vulkan(
    request: Request, field: Field, rule: BackendRule, patches: tuple[PlannedPatch, ...]
) -> tuple[Side | None, tuple[Conflict, ...], tuple[str, ...]]:
    """Return the side to build with, or the conflicts; and what a reader should know."""
    every = [s for s in sides(field) if s.where in _places(request.vulkan)]
    judged = [(s, tuple(objections(s, rule, patches, field))) for s in every]
    fitting = [s for s, against in judged if not against]
    if not fitting:
        conflicts = [c for _, against in judged for c in against]
        return None, (*_unusable(request.vulkan, field, conflicts),), ()
    side = max(fitting, key=lambda s: _rank(s, rule))
    return side, (), tuple(_warnings(side, request, field, rule, judged))


def objections(
    side: Side, rule: BackendRule, patches: tuple[PlannedPatch, ...], field: Field
) -> Iterator[Conflict]:
    """Yield what speaks against a side: headers, required capabilities, SPIRV-Headers."""
    if not side.spirv_headers_dir:
        what, refused = f"{NAMES[side.where]} has no SPIRV-Headers", field.refused(Role.SPIRV)
        cures = (field.cure(Role.SPIRV), *_other_places(side.where))
        yield conflict_of(what, refused, *cures, role=Role.SPIRV)
    if rule.min_headers and side.headers < rule.min_headers:
        yield from _old_headers(side, rule, rule.min_headers, patches)
    for name in rule.required_capabilities:
        if side.capabilities is not None and name not in side.capabilities:
            yield Conflict(
                what=f"{NAMES[side.where]} cannot give {name}, which the recipe requires",
                why=f"glslc {side.glslc_version} does not know it",
                cures=_other_places(side.where),
                kind="capability-lost",
            )


def _old_headers(
    side: Side, rule: BackendRule, least: int, patches: tuple[PlannedPatch, ...]
) -> Iterator[Conflict]:
    patched = rule.min_headers_patched
    selected = select_patches(patches, facts_of(rule.backend, side))
    helps = any(n.startswith(HEADERS) for p in selected for n in p.needs)
    if patched is not None and side.headers >= patched and helps:
        return
    floor = f", with our patches {patched}" if patched is not None else ""
    yield Conflict(
        what=f"{NAMES[side.where]} has too old headers: {side.version}",
        why=f"the last part of the version must be {least} or more{floor}",
        cures=_other_places(side.where),
        kind="vulkan-too-old",
    )


def _places(choice: VulkanChoice) -> tuple[str, ...]:
    return (SDK, PROVIDED, SYSTEM) if choice is VulkanChoice.AUTO else PLACES[choice]


def _rank(side: Side, rule: BackendRule) -> tuple[int, int]:
    """Return how good a side is: a worthwhile SDK, provided, other SDK, system; newer first."""
    if side.where == PROVIDED:
        # The sets stand in the order of preference, and max() keeps the first of equals.
        return 2, 0
    if side.where == SYSTEM:
        return 0, side.headers
    offered = WORTHWHILE in {c.name for c in rule.capabilities}
    worthwhile = not offered or side.capabilities is None or WORTHWHILE in side.capabilities
    return 3 if worthwhile else 1, side.headers


def _unusable(choice: VulkanChoice, field: Field, conflicts: list[Conflict]) -> Iterator[Conflict]:
    yield from conflicts
    refused = [r for r in field.refused(*PARTS) if _belongs(r, choice)]
    if conflicts:
        # What a side lacks of SPIRV-Headers is part of that side's own conflict.
        refused = [r for r in refused if r.role is not Role.SPIRV]
    if conflicts and not refused:
        return
    what, cures = "no Vulkan build side can be used", [field.cure(Role.VULKAN)]
    if choice is not VulkanChoice.AUTO:
        where = PLACES[choice][0]
        what = f"{NAMES[where]} cannot be used"
        cures += _other_places(where)
    yield conflict_of(what, refused, *cures, role=Role.VULKAN)


def _belongs(refused: Rejected, choice: VulkanChoice) -> bool:
    match choice:
        case VulkanChoice.AUTO:
            return True
        case VulkanChoice.SDK | VulkanChoice.PROVIDED:
            return refused.where in PLACES[choice]
        case VulkanChoice.SYSTEM:
            return refused.where not in (SDK, PROVIDED)
        case _:
            assert_never(choice)


def _other_places(where: str) -> tuple[str, ...]:
    if where == PROVIDED:
        return ("set VULKAN_SDK to a newer SDK",)
    return ("--vulkan provided (no root is needed)",)


def _warnings(
    side: Side,
    request: Request,
    field: Field,
    rule: BackendRule,
    judged: list[tuple[Side, tuple[Conflict, ...]]],
) -> Iterator[str]:
    if side.mixed:
        yield f"Vulkan parts come from different roots: {side.mixed}"
    if request.vulkan is VulkanChoice.AUTO and side.where != SDK:
        for refused in (r for r in field.refused(*PARTS) if r.where == SDK):
            yield f"VULKAN_SDK is not used: {refused.reason}"
        for other in (s for s, _ in judged if s.where == SDK):
            yield f"VULKAN_SDK ({other.version}) is not used: {_why_not(other, judged)}"
    if request.proof.offline:
        for item in (p for p in side.provisions if not p.present):
            yield f"offline, and {item.name} is not in the store yet"
    better = {c for s, _ in judged for c in s.capabilities or ()}
    lost = [c for c in rule.capabilities if c.name not in (side.capabilities or ())]
    if side.capabilities is None:
        return
    for capability in (c for c in lost if c.name in better or side.where == SYSTEM):
        yield f"without {capability.name} (glslc {side.glslc_version}): {capability.cost}"
    rest = [c.name for c in lost if c.name not in better and side.where != SYSTEM]
    if rest:
        yield f"glslc {side.glslc_version} does not know {', '.join(rest)}"


def _why_not(side: Side, judged: list[tuple[Side, tuple[Conflict, ...]]]) -> str:
    against = next(a for s, a in judged if s is side)
    return against[0].what if against else f"its glslc {side.glslc_version} lacks {WORTHWHILE}"
