"""Vulkan's build side: whole, partial, old and mixed roots (cases V1, V2, V4, V5, V8)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from llamawright.detect import vulkan
from llamawright.detect.candidates import Sighting
from llamawright.model.inventory import Fault, Found, Rejected, Role
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, Capability
from llamawright.model.toolchain import Fact, Hint
from machine_kit import NO_TOOLCHAINS, Machine, stand_up

HINTS = (
    Hint(role=Role.VULKAN, system="debian", command="apt vulkan"),
    Hint(role=Role.GLSLC, system="debian", command="apt glslc"),
    Hint(role=Role.SPIRV, system="debian", command="apt spirv-headers"),
)
TOOLCHAINS = dataclasses.replace(NO_TOOLCHAINS, hints=HINTS)


def capability(name: str, extension: str) -> Capability:
    return Capability(name=name, define=name, feature_test="", cost="", extension=extension)


RULE = BackendRule(
    backend=Backend.VULKAN,
    min_headers=272,
    min_headers_patched=239,
    capabilities=(
        capability("matrix", "GL_KHR_cooperative_matrix"),
        capability("dot", "GL_EXT_integer_dot_product"),
        capability("half", "GL_EXT_float16_never_refused"),
    ),
)


def look(machine: Machine, rule: BackendRule = RULE, **env: str) -> list[Sighting]:
    around = machine.surroundings(TOOLCHAINS, **env)
    return [s for root in vulkan.roots(around) for s in vulkan.survey(root, rule, around)]


def side(sightings: list[Sighting], where: str = "system") -> Found:
    return next(
        s for s in sightings if isinstance(s, Found) and s.role is Role.VULKAN and s.where == where
    )


def refusals(root: Path, name: str) -> list[Rejected]:
    seen = look(stand_up("vulkan", name, root))
    assert not [s for s in seen if isinstance(s, Found) and s.role is Role.VULKAN]
    return [s for s in seen if isinstance(s, Rejected)]


def refusal(root: Path, name: str) -> Rejected:
    (seen,) = refusals(root, name)
    return seen


def test_the_systems_packages_are_found_with_what_they_can_do(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "debian12", tmp_path))
    found = side(seen)
    usr = tmp_path / "usr"
    assert found.version == "1.3.239"
    assert found.fact(Fact.HEADER_VERSION) == "239"
    assert found.fact(Fact.INCLUDE_DIR) == str(usr / "include")
    assert found.fact(Fact.LIBRARY) == str(usr / "lib/x86_64-linux-gnu/libvulkan.so")
    assert found.fact(Fact.GLSLC) == str(usr / "bin/glslc")
    assert found.fact(Fact.GLSLC_VERSION) == "2023.2"
    assert found.fact(Fact.SPIRV_HEADERS_DIR) == str(usr / "share/cmake/SPIRV-Headers")
    assert found.fact(Fact.SPIRV_INCLUDE_DIR) == str(usr / "include")
    assert found.fact(Fact.CAPABILITIES) == "half"
    assert found.fact("mixed") == ""
    glslc = next(s for s in seen if s.role is Role.GLSLC)
    assert isinstance(glslc, Found)
    assert glslc.fact("parts") == "shaderc v2023.2, spirv-tools v1, glslang 15"


def test_a_whole_sdk_is_found_and_nothing_else_is_taken_for_it(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "sdk", tmp_path))
    found = side(seen, "VULKAN_SDK")
    assert found.version == "1.4.321"
    assert found.fact(Fact.CAPABILITIES) == "matrix dot half"
    assert found.fact(Fact.GLSLC).startswith(str(tmp_path / "sdk"))
    (system,) = (s for s in seen if s.where == "system")
    assert isinstance(system, Rejected)
    assert system.fault is Fault.ABSENT
    assert system.reason.startswith("not installed:")
    assert system.cure == "apt vulkan"


def test_the_digest_is_of_the_files_not_of_their_place(tmp_path: Path) -> None:
    first = side(look(stand_up("vulkan", "debian12", tmp_path / "a")))
    second = side(look(stand_up("vulkan", "debian12", tmp_path / "b")))
    assert first.sha256 == second.sha256
    (tmp_path / "b/usr/include/vulkan/vulkan.hpp").write_text("// changed")
    third = side(
        look(Machine(root=tmp_path / "b", env={"PATH": f"{tmp_path}/b/usr/bin"}, about={}))
    )
    assert third.sha256 != first.sha256


@pytest.mark.parametrize(
    ("name", "kind", "said", "cure"),
    [
        ("no-glslc", (Role.GLSLC, Fault.ABSENT), "no glslc in", "apt glslc"),
        ("no-loader", (Role.VULKAN, Fault.ABSENT), "no libvulkan.so below", "apt vulkan"),
        ("only-runtime-loader", (Role.VULKAN, Fault.INCOMPLETE),
         "libvulkan.so.1 is there, the link libvulkan.so for building is not", "apt vulkan"),
        ("dangling-loader", (Role.VULKAN, Fault.DANGLING),
         "a link to libvulkan.so.1.3.239, which does not exist", "apt vulkan"),
        ("thirty-two-bit-loader", (Role.VULKAN, Fault.WRONG_MACHINE),
         "is made for i386, not for x86_64", "apt vulkan"),
        ("no-headers", (Role.VULKAN, Fault.ABSENT), "no vulkan/vulkan_core.h below", "apt vulkan"),
        ("no-cxx-headers", (Role.VULKAN, Fault.INCOMPLETE), "vulkan.hpp is missing", "apt vulkan"),
        ("strange-headers", (Role.VULKAN, Fault.INCOMPLETE),
         "holds no VK_HEADER_VERSION", "apt vulkan"),
        ("ubuntu22", (Role.VULKAN, Fault.TOO_OLD), "its headers are 1.3.204", "--vulkan provided"),
        ("sdk-gone", (Role.VULKAN, Fault.ABSENT), "which is no folder", "unset VULKAN_SDK"),
        ("sdk-without-glslc", (Role.GLSLC, Fault.ABSENT), "no glslc in", "unset VULKAN_SDK"),
    ],
)  # fmt: skip
def test_each_missing_or_wrong_part_is_named(
    tmp_path: Path, name: str, kind: tuple[Role, Fault], said: str, cure: str
) -> None:
    seen = [r for r in refusals(tmp_path, name) if r.cure != "apt vulkan" or r.path]
    (refused,) = seen
    assert (refused.role, refused.fault) == kind
    assert said in refused.reason
    assert cure in refused.cure


@pytest.mark.parametrize(
    ("name", "fault", "said"),
    [
        ("glslc-139", Fault.CRASHED, "it crashed with SIGSEGV (exit status 139)"),
        ("glslc-crashes-on-shaders", Fault.CRASHED, "it crashed with SIGSEGV (exit status 139)"),
        ("glslc-believes-all", Fault.FAILED, "it accepts a shader that is wrong"),
        ("glslc-does-nothing", Fault.FAILED, "it cannot compile a plain shader"),
        ("glslc-not-executable", Fault.NOT_EXECUTABLE, "it is not executable"),
        ("glslc-hangs", Fault.HUNG, "it gave no answer within 0.6 s"),
        ("glslc-dangling", Fault.DANGLING, "it is a link to glslc-2023, which does not exist"),
        ("glslc-foreign", Fault.WRONG_MACHINE, "it is made for aarch64, this machine is x86_64"),
        ("glslc-is-another", Fault.FAILED, "it does not call itself glslc: glslangValidator"),
    ],
)
def test_a_shader_compiler_that_does_not_work_is_never_supported(
    tmp_path: Path, name: str, fault: Fault, said: str
) -> None:
    refused = refusal(tmp_path, name)
    assert (refused.role, refused.fault) == (Role.GLSLC, fault)
    assert said in refused.reason
    assert refused.cure == "apt glslc"


def test_several_faults_of_one_root_are_all_told(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "ubuntu22", tmp_path)
    (tmp_path / "usr/bin/glslc").unlink()
    (tmp_path / "usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake").unlink()
    refused = {s.role: s.fault for s in look(machine) if isinstance(s, Rejected)}
    assert refused == {
        Role.GLSLC: Fault.ABSENT,
        Role.VULKAN: Fault.TOO_OLD,
        Role.SPIRV: Fault.ABSENT,
    }


def test_headers_just_new_enough_for_our_patches_are_found(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    assert side(look(machine, dataclasses.replace(RULE, min_headers_patched=239)))
    stricter = look(machine, dataclasses.replace(RULE, min_headers_patched=None))
    (refused,) = (s for s in stricter if isinstance(s, Rejected))
    assert refused.fault is Fault.TOO_OLD
    assert "272" in refused.reason


def test_a_root_without_spirv_headers_is_found_and_the_lack_is_told(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "no-spirv", tmp_path))
    assert side(seen).fact(Fact.SPIRV_HEADERS_DIR) == ""
    (refused,) = (s for s in seen if isinstance(s, Rejected))
    assert (refused.role, refused.fault) == (Role.SPIRV, Fault.ABSENT)
    assert "SPIRV-HeadersConfig.cmake below" in refused.reason
    assert refused.cure == "apt spirv-headers"


def test_spirv_headers_outside_the_system_are_found_by_their_prefix(tmp_path: Path) -> None:
    found = side(look(stand_up("vulkan", "spirv-elsewhere", tmp_path)))
    prefix = tmp_path / "opt/spirv"
    assert found.fact(Fact.SPIRV_HEADERS_DIR) == str(prefix / "share/cmake/SPIRV-Headers")
    assert found.fact(Fact.SPIRV_INCLUDE_DIR) == str(prefix / "include")
    assert f"SPIRV-Headers from {prefix}" in found.fact("mixed")


def test_cmake_files_without_their_header_are_incomplete(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "spirv-half", tmp_path))
    (refused,) = (s for s in seen if isinstance(s, Rejected))
    assert (refused.role, refused.fault) == (Role.SPIRV, Fault.INCOMPLETE)


def test_an_sdk_over_old_system_headers_stays_one_root(tmp_path: Path) -> None:
    seen = look(stand_up("vulkan", "sdk-over-old-system", tmp_path))
    found = side(seen, "VULKAN_SDK")
    root = str(tmp_path / "sdk/1.4.321/x86_64")
    parts = (Fact.INCLUDE_DIR, Fact.LIBRARY, Fact.GLSLC, Fact.SPIRV_HEADERS_DIR)
    assert all(found.fact(p).startswith(root) for p in parts)
    assert found.fact("mixed") == ""
    (old,) = (s for s in seen if isinstance(s, Rejected))
    assert (old.where, old.fault) == ("system", Fault.TOO_OLD)


def test_a_shader_compiler_from_another_root_is_used_and_told(tmp_path: Path) -> None:
    found = side(look(stand_up("vulkan", "glslc-from-elsewhere", tmp_path)))
    other = tmp_path / "opt/shaderc/bin/glslc"
    assert found.fact(Fact.GLSLC) == str(other)
    assert found.fact("mixed") == f"headers from {tmp_path}/usr, glslc from {other}"


def test_nothing_installed_is_one_refusal(tmp_path: Path) -> None:
    refused = refusal(tmp_path, "bare")
    assert (refused.role, refused.fault, refused.path) == (Role.VULKAN, Fault.ABSENT, None)
    assert refused.cure == "apt vulkan"


def test_an_empty_variable_names_no_sdk(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    roots = list(vulkan.roots(machine.surroundings(VULKAN_SDK="  ")))
    assert [r.where for r in roots] == ["system"]


def test_local_headers_come_before_the_distributions(tmp_path: Path) -> None:
    machine = stand_up("vulkan", "debian12", tmp_path)
    local = tmp_path / "usr/local/include/vulkan"
    local.mkdir(parents=True)
    for name in ("vulkan_core.h", "vulkan.hpp"):
        (local / name).write_text((tmp_path / "usr/include/vulkan" / name).read_text())
    machine = dataclasses.replace(machine, about={"prefixes": ["usr/local", "usr"]})
    found = [s for s in look(machine) if isinstance(s, Found) and s.role is Role.VULKAN]
    assert [f.fact(Fact.INCLUDE_DIR) for f in found] == [
        str(tmp_path / "usr/local/include"),
        str(tmp_path / "usr/include"),
    ]
    assert "loader from" in found[0].fact("mixed")
