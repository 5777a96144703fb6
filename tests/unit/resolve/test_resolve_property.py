"""Whatever the machine has: a whole plan, or an error that names a cure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamawright.digest import digest_data
from llamawright.errors import LlamawrightError, ToolchainConflictError, ToolMissingError
from llamawright.model.inventory import Available, Fault, Found, Inventory, Role
from llamawright.model.plan import KeyPart, Plan
from llamawright.model.platform import Backend
from llamawright.model.request import CacheChoice, ProofRequest, Request, VulkanChoice
from llamawright.model.toolchain import Minimum
from llamawright.resolve import explain, resolve
from resolve_kit import (
    CCACHE,
    CLANG,
    CMAKE,
    GCC,
    GIT,
    NEW_SYSTEM,
    NINJA,
    NO_TOOLCHAINS,
    PATCHES,
    PROVIDED,
    SCCACHE,
    SDK,
    SPIRV_SET,
    SYSTEM,
    WEAK_SDK,
    inventory,
    refused,
    request,
    vulkan_side,
)

OLDEST = vulkan_side("system", "/usr", 204, "")
BARE = vulkan_side("system", "/usr", 309, "", spirv=False)
TOOLS = (
    (GCC,), (CLANG,), (CMAKE,), (NINJA,), (CCACHE,), (SCCACHE,), (GIT,), SDK, WEAK_SDK, SYSTEM,
    NEW_SYSTEM, OLDEST, BARE,
)  # fmt: skip
TOOLCHAINS = replace(
    NO_TOOLCHAINS,
    minimums=(Minimum(role=Role.CXX, name="clang", version="17", reason="test"),),
)

WHOLE = (GCC, CMAKE, NINJA, GIT)
EITHER = st.booleans()


@st.composite
def tools(draw: st.DrawFn) -> tuple[Found, ...]:
    """Return any tools; mostly what a build needs is among them."""
    groups = draw(st.lists(st.sampled_from(TOOLS), unique=True, max_size=7))
    base = WHOLE if draw(st.integers(0, 3)) else ()
    return (*base, *(t for group in groups for t in group if t not in base))


sets = st.lists(st.sampled_from((PROVIDED, SPIRV_SET)), unique=True).map(tuple)
rejection = st.builds(
    refused,
    st.sampled_from(list(Role)),
    st.sampled_from(("it crashed", "it is too old")),
    st.sampled_from(list(Fault)),
    st.sampled_from(("PATH", "PATH", "PATH", "CXX", "VULKAN_SDK", "system", "provided")),
)
rejections = st.lists(rejection, max_size=3).map(tuple)


@st.composite
def machines(draw: st.DrawFn) -> Inventory:
    seen: tuple[Found, ...] = draw(tools())
    given_sets: tuple[Available, ...] = draw(sets)
    whole = inventory(*seen, sets=given_sets, rejected=draw(rejections))
    return replace(
        whole,
        cores=draw(st.integers(1, 256)),
        memory=draw(st.integers(1 << 20, 1 << 42)),
        memory_free=draw(st.integers(0, 1 << 40)),
    )


any_request = st.builds(
    replace,
    st.just(request()),
    backend=st.sampled_from((Backend.VULKAN, Backend.VULKAN, Backend.CPU, Backend.CUDA)),
    vulkan=st.sampled_from(list(VulkanChoice)),
    cache=st.sampled_from((CacheChoice.AUTO, *CacheChoice)),
    compiler=st.sampled_from(("auto", "auto", "gcc", "clang", "/usr/bin/g++", "/gone")),
    source=st.sampled_from(("auto", "git", "path:/x", f"git+https://e.org/x@{'a' * 40}")),
    with_tests=EITHER,
    native=st.sampled_from((False, False, False, True)),
)
# What most people ask for, as often as everything else together.
requests = st.one_of(st.just(request()), st.just(request(backend=Backend.CPU)), any_request)
# The same examples every time: a suite must not fail by chance. Raise the number to explore.
quick = settings(
    max_examples=120, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def outcome(wanted: Request, machine: Inventory) -> Plan | LlamawrightError:
    try:
        return resolve(wanted, machine, TOOLCHAINS, PATCHES)
    except (ToolMissingError, ToolchainConflictError) as error:
        return error


def test_the_machines_are_worth_asking_about() -> None:
    seen: Counter[type] = Counter()

    @settings(quick, database=None)
    @given(requests, machines())
    def ask(wanted: Request, machine: Inventory) -> None:
        seen[type(outcome(wanted, machine))] += 1

    ask()
    assert set(seen) == {Plan, ToolMissingError, ToolchainConflictError}
    assert seen[Plan] >= 10


@quick
@given(requests, machines())
def test_a_whole_plan_or_an_error_with_a_cure(wanted: Request, machine: Inventory) -> None:
    made = outcome(wanted, machine)
    if isinstance(made, LlamawrightError):
        assert made.what
        assert made.why
        assert made.hint
        assert made.kind
        return
    for role in (Role.CXX, Role.CMAKE, Role.NINJA):
        assert made.tool(role) in machine.found
    assert made.jobs >= 1
    assert all(tool in machine.found for tool in made.tools)
    assert all(item in machine.available for item in made.provisions)
    compiler = made.tool(Role.CXX)
    assert compiler is not None
    assert compiler.name != "clang", "it is under the minimum"


@quick
@given(requests, machines())
def test_the_same_question_has_the_same_answer(wanted: Request, machine: Inventory) -> None:
    first, second = outcome(wanted, machine), outcome(wanted, machine)
    if isinstance(first, LlamawrightError):
        assert isinstance(second, LlamawrightError)
        assert first.as_record() == second.as_record()
    else:
        assert first == second


@quick
@given(requests, machines(), st.integers(1, 1024), st.booleans())
def test_jobs_network_and_cache_never_change_a_key(
    wanted: Request, machine: Inventory, jobs: int, offline: bool
) -> None:
    first = outcome(wanted, machine)
    other = replace(
        wanted,
        jobs=jobs,
        proof=ProofRequest(offline=offline),
        cache=CacheChoice.OFF,
        dist=Path("/d"),
    )
    second = outcome(other, machine)
    if isinstance(first, Plan):
        assert isinstance(second, Plan)
        assert (second.key, second.host_key) == (first.key, first.host_key)


@quick
@given(requests, machines())
def test_a_vulkan_plan_is_complete_and_its_headers_fit(wanted: Request, machine: Inventory) -> None:
    made = outcome(replace(wanted, backend=Backend.VULKAN), machine)
    if not isinstance(made, Plan):
        return
    told = {o.name: o.value for o in made.module_options}
    for name in ("Vulkan_INCLUDE_DIR", "Vulkan_LIBRARY", "Vulkan_GLSLC_EXECUTABLE"):
        assert told[name]
    assert told["SPIRV-Headers_DIR"]
    side = made.tool(Role.VULKAN)
    if side is not None and side.fact("header_version") == "239":
        assert "0001-old-headers" in {p.name for p in made.patches}
    if side is not None:
        assert side.fact("header_version") != "204"


@quick
@given(machines(), machines())
def test_more_to_choose_from_never_breaks_an_automatic_plan(
    machine: Inventory, more: Inventory
) -> None:
    wanted = request()
    if isinstance(outcome(wanted, machine), Plan):
        extra = tuple(f for f in more.found if f not in machine.found)
        assert isinstance(outcome(wanted, replace(machine, found=(*machine.found, *extra))), Plan)


words = st.sampled_from(("a", "b", "c", "d"))
parts = st.dictionaries(words, words, max_size=4).map(
    lambda d: tuple(KeyPart(name=k, value=v) for k, v in d.items())
)


@quick
@given(parts, parts)
def test_no_difference_exactly_when_the_parts_are_equal(
    a: tuple[KeyPart, ...], b: tuple[KeyPart, ...]
) -> None:
    same = sorted((p.name, p.value) for p in a) == sorted((p.name, p.value) for p in b)
    assert (explain(a, b) == ()) == same
    assert {d.name for d in explain(a, b)} == {d.name for d in explain(b, a)}
    assert digest_data(a) == digest_data(tuple(a))
