"""Which files an artifact must hold, by the names its platform gives them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from llamawright.model.built import Effective
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform, System

_AVAILABLE = "GGML_AVAILABLE_BACKENDS"
_CPU_ALONE = "ggml-cpu"
# The variant that every CPU of a machine runs; ggml's own names in ggml/src/CMakeLists.txt.
_BASELINE = {
    "x86_64": ("ggml-cpu-x64",),
    "aarch64": ("ggml-cpu-armv8.0_1", "ggml-cpu-android_armv8.0_1", "ggml-cpu-apple_m1"),
    "arm64": ("ggml-cpu-apple_m1", "ggml-cpu-armv8.0_1"),
}
_TRUE = ("ON", "TRUE", "1", "YES")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """File names in ``bin/``.

    ``needed`` must be there; of each group of ``one_of`` one must be, its first name is
    the usual one; ``allowed`` are the patterns of everything that may be there.
    ``cpu`` are the patterns of CPU modules, ``device`` those of the backend's own.
    """

    programs: tuple[str, ...]
    needed: tuple[str, ...]
    one_of: tuple[tuple[str, ...], ...]
    allowed: tuple[str, ...]
    cpu: tuple[str, ...]
    device: tuple[str, ...]


def expected_files(plan: Plan, effective: tuple[Effective, ...], *, tests: bool) -> Expected:
    """Return what ``bin/`` must hold; ``effective`` is CMake's own account of the host."""
    platform, recipe = plan.platform, plan.recipe
    stems = (*recipe.programs, *(recipe.test_programs if tests else ()))
    programs = tuple(platform.program(stem) for stem in stems)
    libraries = tuple(library_patterns(platform, stem) for stem in recipe.libraries)
    variants = _cpu_variants(plan, effective)
    cpu = tuple(platform.module(stem) for stem in (_CPU_ALONE, "ggml-cpu-*"))
    device = _device_modules(plan)
    named = (*(platform.module(s) for s in variants), *device)
    exact = tuple(name for name in (*programs, *named) if "*" not in name)
    patterns = tuple((name,) for name in named if "*" in name)
    return Expected(
        programs=programs,
        needed=exact,
        one_of=(*libraries, *_baseline(plan, variants), *patterns),
        allowed=(*programs, *(p for group in libraries for p in group), *cpu, *device),
        cpu=cpu,
        device=device,
    )


def library_patterns(platform: Platform, stem: str) -> tuple[str, ...]:
    """Return the names a shared library may have, with and without a version."""
    match platform.system:
        case System.WINDOWS:
            return (f"{stem}.dll", f"lib{stem}.dll")
        case System.MACOS:
            return (f"lib{stem}.dylib", f"lib{stem}.[0-9]*.dylib")
        case System.LINUX:
            return (f"lib{stem}.so", f"lib{stem}.so.[0-9]*")


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a file name is one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_native(plan: Plan) -> bool:
    """Whether the plan is for the building machine's own CPU."""
    return _switched(plan, "GGML_NATIVE")


def extra_programs(plan: Plan) -> tuple[str, ...]:
    """Return the file names of the programs that only the ``-tests`` archive holds."""
    return tuple(plan.platform.program(stem) for stem in plan.recipe.test_programs)


def _cpu_variants(plan: Plan, effective: tuple[Effective, ...]) -> tuple[str, ...]:
    """Return the CPU modules CMake said it builds; without its word, only the baseline."""
    if not _switched(plan, "GGML_CPU_ALL_VARIANTS"):
        return (_CPU_ALONE,)
    said = next((e.value for e in effective if e.name == _AVAILABLE), "")
    return tuple(b for b in said.split(";") if b.startswith(_CPU_ALONE))


def _baseline(plan: Plan, variants: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if variants == (_CPU_ALONE,):
        return ()
    stems = _BASELINE.get(plan.platform.machine, ("ggml-cpu-*",))
    return (tuple(plan.platform.module(stem) for stem in stems),)


def _device_modules(plan: Plan) -> tuple[str, ...]:
    rule = plan.recipe.rule(plan.backend)
    if plan.backend is Backend.CPU or rule is None:
        return ()
    return tuple(plan.platform.module(stem) for stem in rule.modules)


def _switched(plan: Plan, name: str) -> bool:
    values = [o.value for o in plan.host_options if o.name == name]
    return bool(values) and values[-1].upper() in _TRUE
