"""--floor: an old system is provided, its compiler is taken, and the result is held to it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

import cli_kit
from llamawright.cli import floor
from llamawright.cli.arguments import make_parser
from llamawright.cli.floor import apply_floor, require_floor
from llamawright.config import load_toolchains
from llamawright.console import Console
from llamawright.errors import PackageError, ToolchainConflictError, UsageError
from llamawright.model.inventory import Found, Role
from llamawright.model.platform import Platform, System
from llamawright.model.request import ProofRequest
from llamawright.model.toolchain import ProvidedSet, Toolchains
from llamawright.paths import data_root
from llamawright.resolve.keys import host_parts
from llamawright.store import Store
from package_kit import LINUX
from reporter_kit import Told
from resolve_kit import GCC, request

TOLD = cast("Console", Told())


@pytest.fixture(scope="module")
def toolchains() -> Toolchains:
    return load_toolchains(data_root() / "toolchains")


def old(toolchains: Toolchains) -> ProvidedSet:
    return next(s for s in toolchains.sets if s.role is Role.SYSROOT)


@dataclass
class Planned:
    """A pipeline that knows its compiler and provides nothing."""

    toolchains: Toolchains
    platform: Platform = LINUX
    store: Store = field(default_factory=lambda: Store(Path("/nowhere")))
    wanted: ProofRequest = field(default_factory=lambda: ProofRequest(offline=True))
    compiler: Found | None = GCC

    def open(self, *_words: object) -> Planned:
        return self

    def plan(self) -> Planned:
        return self

    def tool(self, _role: Role) -> Found | None:
        return self.compiler


@pytest.fixture
def planned(toolchains: Toolchains, monkeypatch: pytest.MonkeyPatch) -> Planned:
    made = Planned(toolchains)
    monkeypatch.setattr(floor, "Pipeline", made)
    monkeypatch.setattr(floor, "provide_set", lambda *_a, **_k: Path("/store/tools/d"))
    monkeypatch.setattr(floor, "compilers_for", lambda *_a, **_k: Path("/store/compilers/k/g++"))
    return made


def flags(*words: str) -> Namespace:
    return make_parser().parse_args(["build", *words])


def test_the_compiler_of_the_old_system_is_taken(planned: Planned) -> None:
    given = flags("vulkan", "--floor", "manylinux_2_28")
    chosen = apply_floor(given, Path("/store"), TOLD)
    assert given.compiler == "/store/compilers/k/g++"
    assert chosen == old(planned.toolchains)


def test_without_the_flag_nothing_is_provided_and_nothing_changes(planned: Planned) -> None:
    given = flags("cpu")
    assert apply_floor(given, Path("/store"), TOLD) is None
    assert given.compiler is None
    assert apply_floor(Namespace(), Path("/store"), TOLD) is None


def test_a_floor_that_no_set_has_names_those_that_are(planned: Planned) -> None:
    with pytest.raises(UsageError, match="no floor 'manylinux_2_5'") as caught:
        apply_floor(flags("cpu", "--floor", "manylinux_2_5"), Path("/s"), TOLD)
    assert caught.value.hint == "--floor manylinux_2_28"
    assert "manylinux_2_28" in caught.value.why


def test_another_platform_has_none(planned: Planned) -> None:
    planned.platform = Platform(System.MACOS, "arm64")
    with pytest.raises(UsageError, match="macos_arm64") as caught:
        apply_floor(flags("cpu", "--floor", "manylinux_2_28"), Path("/s"), TOLD)
    assert caught.value.hint == "leave --floor out"


def test_cuda_says_why_not() -> None:
    with pytest.raises(ToolchainConflictError, match="CPU and for Vulkan") as caught:
        apply_floor(flags("cuda", "--floor", "manylinux_2_28"), Path("/s"), TOLD)
    assert (caught.value.kind, int(caught.value.code)) == ("floor-cuda", 5)


@pytest.mark.parametrize("verb", ["build", "plan", "fetch"])
def test_the_verbs_that_plan_know_it(verb: str) -> None:
    given = make_parser().parse_args([verb, "cpu", "--floor", "manylinux_2_28"])
    assert given.floor == "manylinux_2_28"


@pytest.mark.parametrize(
    "measured",
    [
        {"glibc": "2.28", "glibcxx": "3.4.24", "cxxabi": "1.3.11"},
        {"glibc": "2.27", "glibcxx": "3.4.22", "cxxabi": "1.3.9"},
        {"glibc": "2.9", "glibcxx": "", "cxxabi": ""},
    ],
)
def test_what_keeps_the_floor_passes(toolchains: Toolchains, measured: dict[str, str]) -> None:
    require_floor(cli_kit.manifest(**measured), old(toolchains))


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        ({"glibc": "2.29"}, "GLIBC_2.29, and 2.28 is promised"),
        ({"glibc": "2.28", "glibcxx": "3.4.25"}, "GLIBCXX_3.4.25, and 3.4.24 is promised"),
        ({"glibc": "2.28", "glibcxx": "", "cxxabi": "1.3.13"}, "CXXABI_1.3.13"),
    ],
)
def test_what_needs_more_is_refused(
    toolchains: Toolchains, measured: dict[str, str], told: str
) -> None:
    with pytest.raises(PackageError, match="does not run on manylinux_2_28") as caught:
        require_floor(cli_kit.manifest(**{"glibcxx": "", **measured}), old(toolchains))
    assert (caught.value.kind, int(caught.value.code)) == ("floor-missed", 9)
    assert told in caught.value.why


def test_the_pins_are_whole(toolchains: Toolchains) -> None:
    """The ceiling is auditwheel's policy for the floor's name."""
    pinned = old(toolchains)
    assert pinned.fact("ceiling").split()[0] == "GLIBC_2.28"
    assert {f.package for f in pinned.files} == {
        "libc6", "libc6-dev", "linux-libc-dev", "libstdc++6", "libstdc++-9-dev", "libgcc-s1",
    }  # fmt: skip
    assert all(len(f.sha1) == 40 and len(f.sha256) == 64 for f in pinned.files)


def test_the_ceiling_is_auditwheels_for_that_name(toolchains: Toolchains) -> None:
    policies = pytest.importorskip("auditwheel.policy")
    known = policies.WheelPolicies(
        libc=pytest.importorskip("auditwheel.libc").Libc.GLIBC,
        arch=pytest.importorskip("auditwheel.architecture").Architecture.x86_64,
    )
    told = {"libx.so": set(old(toolchains).fact("ceiling").split())}
    names = {word.rpartition("_")[0]: {word} for word in told["libx.so"]}
    assert known.versioned_symbols_policy(names).name == "manylinux_2_28_x86_64"
    above = {**names, "GLIBCXX": {"GLIBCXX_3.4.25"}}
    assert known.versioned_symbols_policy(above).name > "manylinux_2_28_x86_64"


def test_a_compiler_of_the_store_has_one_key_in_every_store() -> None:
    """Else the same build in another folder would be another artifact."""
    wish = request()

    def key(store: str) -> object:
        place = Path(store, "compilers", "a" * 64)
        tool = replace(GCC, path=place / "g++", facts=(("c_compiler", str(place / "gcc")),))
        return host_parts(
            wish, wish.recipe.source, tools=(tool,), patches=(), options=(), environment=(),
            cpu="",
        )  # fmt: skip

    assert key("/home/a/store") == key("/srv/b")
