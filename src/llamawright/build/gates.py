"""What must hold after configure: pure rules over CMake's own answers and its log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch

from llamawright.build.cache import LAUNCHERS
from llamawright.build.fileapi import Reply
from llamawright.errors import BuildError
from llamawright.model.built import CapabilityState, Effective
from llamawright.model.inventory import Role
from llamawright.model.plan import Plan
from llamawright.model.recipe import BackendRule, Option

UNUSED = re.compile(
    r"Manually-specified variables were not used by the project:\s*\n\s*\n((?:[ \t]+\S+\n)+)"
)
FETCHERS = frozenset({"FetchContent.cmake"})
FETCHING = re.compile(r"^.*(?:\bDownloading |\bCloning into |\bFetching ).*$", re.MULTILINE)
TRUE = frozenset({"1", "ON", "YES", "TRUE", "Y"})


def check_configured(
    plan: Plan, options: tuple[Option, ...], reply: Reply, log: str, *, more: Iterable[str] = ()
) -> None:
    """Raise ``BuildError`` naming every way in which CMake did something else than planned.

    ``more`` are what a backend's own gate found.
    """
    faults = [
        *unused(log, {o.name for o in options if o.guard}),
        *changed(options, reply),
        *other_compiler(plan, reply),
        *downloads(reply, log),
        *more,
    ]
    if faults:
        raise BuildError(
            "CMake did not configure what the plan says",
            why="\n".join(faults),
            hint="compare the recipe's options with this llama.cpp: `llamawright plan` lists them; "
            "an option that upstream renamed is ignored without an error",
            kind="configure-gate",
        )


def unused(log: str, guards: set[str]) -> Iterator[str]:
    """Yield each option that the project never read; a guard may go unread."""
    for match in UNUSED.finditer(log.replace("\r\n", "\n")):
        for name in match[1].split():
            if name not in guards:
                yield f"{name} was given and never read"


def changed(options: tuple[Option, ...], reply: Reply) -> Iterator[str]:
    """Yield each option whose value in the cache is not the given one."""
    for option in options:
        value = reply.entry(option.name)
        if value is None or not same(option, value):
            yield f"{option.name} is {value if value is not None else 'absent'}, not {option.value}"


def same(option: Option, value: str) -> bool:
    """Whether a cache value is what was given; CMake's true words are one."""
    if option.type == "BOOL":
        return (value.upper() in TRUE) == (option.value.upper() in TRUE)
    return value == option.value


def other_compiler(plan: Plan, reply: Reply) -> Iterator[str]:
    """Yield each language that is compiled by another program than the chosen one."""
    compiler = plan.tool(Role.CXX)
    if compiler is None:
        return
    chosen = {"C": compiler.fact("c_compiler"), "CXX": compiler.path.as_posix()}
    for used in reply.compilers:
        wanted = chosen.get(used.language)
        if wanted is not None and used.path != wanted:
            yield f"{used.language} is compiled by {used.path}, not by {wanted}"


def downloads(reply: Reply, log: str) -> Iterator[str]:
    """Yield each sign that the project fetches something while it is configured or built.

    CMake reads its FetchContent module only in a project that declares such content; the
    log words are those of upstream's own download steps (case S7).
    """
    for path in reply.inputs:
        if path.rpartition("/")[2] in FETCHERS:
            yield f"the project reads CMake's {path.rpartition('/')[2]}: it would download"
    for match in FETCHING.finditer(log):
        yield f"CMake said: {match[0].strip()}"


def matching(reply: Reply, patterns: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return the targets of the patterns; ``BuildError`` when one matches nothing."""
    names = [t.name for t in reply.targets]
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = [n for n in names if fnmatch(n, pattern)]
        if not hits:
            raise BuildError(
                f"CMake has no target {pattern}",
                why=f"the {what} needs it, and the project defines {len(names)} others",
                hint="the backend was not switched on, or upstream renamed the target: "
                "compare the recipe with the source",
                kind="no-target",
            )
        found |= dict.fromkeys(hits)
    return tuple(found)


def capabilities(rule: BackendRule, reply: Reply) -> tuple[CapabilityState, ...]:
    """Return what went into the module, from the definitions it is compiled with."""
    hits = [t for t in reply.targets if any(fnmatch(t.name, p) for p in rule.targets)]
    defines = frozenset[str]().union(*(t.defines for t in hits))
    return tuple(
        CapabilityState(name=c.name, present=c.define in defines, cost=c.cost)
        for c in rule.capabilities
    )


def cross_check(
    rule: BackendRule, states: tuple[CapabilityState, ...], proved: frozenset[str]
) -> tuple[str, ...]:
    """Raise when CMake counts on what the shader compiler was not seen to do.

    ggml's probe only looks for one phrase: a glslc that crashes "supports" everything.
    Returns the names that were proved and that CMake left out all the same. What no probe
    can ask for (no ``extension``) is not compared.
    """
    asked = {c.name for c in rule.capabilities if c.extension}
    claimed = [s.name for s in states if s.present and s.name in asked - proved]
    if claimed:
        raise BuildError(
            "CMake counts on shader extensions that the shader compiler does not have",
            why=f"{', '.join(claimed)}; proved by compiling: {', '.join(sorted(proved)) or 'none'}",
            hint="the shader compiler fails during configure: `llamawright doctor` runs it alone",
            kind="capability-contradiction",
        )
    return tuple(s.name for s in states if not s.present and s.name in asked & proved)


def required(rule: BackendRule, states: tuple[CapabilityState, ...]) -> None:
    """Raise when the recipe demands a capability that is not there."""
    lost = [s for s in states if not s.present and s.name in rule.required_capabilities]
    if lost:
        raise BuildError(
            "the recipe requires what this shader compiler cannot do",
            why="; ".join(f"{s.name}: {s.cost}" for s in lost),
            hint="use a newer shader compiler: --vulkan provided, or install a newer Vulkan SDK",
            kind="capability-missing",
        )


def effective(options: tuple[Option, ...], reply: Reply) -> tuple[Effective, ...]:
    """Return the options as they are in effect, by name.

    A compiler cache changes no output, so it is not told: where it stands would make two
    equal archives differ.
    """
    names = sorted({o.name for o in options} - set(LAUNCHERS))
    return tuple(Effective(name=n, value=reply.entry(n) or "") for n in names)
