"""Toolchain files: the shipped ones, and the refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from llamawright.config import load_toolchains
from llamawright.errors import UsageError
from llamawright.model.inventory import Role
from llamawright.model.toolchain import Fact, ProvidedSet, Registry, Toolchains
from llamawright.paths import data_root

SHA = "cd" * 32
SHIPPED = data_root() / "toolchains"
SET = f"""
[[set]]
name = "tools"
role = "vulkan"
version = "1.0"
layout = "debian-prefix"
platforms = ["linux_x86_64"]
licenses = ["MIT"]

[set.facts]
header_version = "309"

[[set.files]]
registry = "debian"
package = "tool"
version = "1.0-1"
location = "pool/main/t/tool/tool_1.0-1_amd64.deb"
size = 10
sha256 = "{SHA}"
"""


def load(folder: Path, text: str, name: str = "a.toml") -> Toolchains:
    (folder / name).write_text(text, encoding="utf-8")
    return load_toolchains(folder)


def refused(folder: Path, text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(folder, text)
    return caught.value


@pytest.fixture(scope="module")
def shipped() -> Toolchains:
    return load_toolchains(SHIPPED)


def by_name(toolchains: Toolchains, name: str) -> ProvidedSet:
    return next(s for s in toolchains.sets if s.name == name)


def test_a_set(tmp_path: Path) -> None:
    (provided,) = load(tmp_path, SET).sets
    assert provided.role is Role.VULKAN
    assert provided.size == 10
    assert provided.fact(Fact.HEADER_VERSION) == "309"
    assert provided.fact(Fact.LIBRARY) == ""
    assert provided.files[0].registry is Registry.DEBIAN
    assert re.fullmatch(r"[0-9a-f]{64}", provided.digest)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SHA, "ef" * 32),
        ("size = 10", "size = 11"),
        ('"309"', '"310"'),
        ("debian-prefix", "debian-driver"),
        ('name = "tools"', 'name = "others"'),
    ],
)
def test_the_digest_follows_everything_in_the_set(tmp_path: Path, old: str, new: str) -> None:
    first = load(tmp_path, SET).sets[0].digest
    assert load(tmp_path, SET.replace(old, new)).sets[0].digest != first


def test_the_digest_does_not_follow_the_layout_of_the_file(tmp_path: Path) -> None:
    first = load(tmp_path, SET).sets[0].digest
    again = load(tmp_path, f"# a comment\n{SET}".replace("size = 10", "size   =   10"))
    assert again.sets[0].digest == first


def test_files_of_a_folder_are_joined(tmp_path: Path) -> None:
    minimum = '[[minimum]]\nrole = "cmake"\nversion = "3.19"\nreason = "needed"\n'
    hint = '[[hint]]\nrole = "cmake"\nsystem = "debian"\ncommand = "apt"\n'
    (tmp_path / "b.toml").write_text(minimum, encoding="utf-8")
    (tmp_path / "c.toml").write_text(hint, encoding="utf-8")
    joined = load(tmp_path, SET)
    assert (len(joined.sets), len(joined.minimums), len(joined.hints)) == (1, 1, 1)
    assert joined.minimums[0].name == ""


def test_known_bad(tmp_path: Path) -> None:
    text = (
        '[[known_bad]]\nrole = "compiler cache"\nname = "ccache"\nversions = "==4.5.1"\n'
        'reason = "r"\nlink = "l"\n'
    )
    (bad,) = load(tmp_path, text).known_bad
    assert (bad.role, bad.name, bad.versions) == (Role.CACHE, "ccache", "==4.5.1")


def test_a_folder_without_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no toolchain file"):
        load_toolchains(tmp_path)


def test_a_set_twice(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(SET, encoding="utf-8")
    assert "'tools' is there twice" in refused(tmp_path, SET).what


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[set]]", "[[sets]]", "did you mean 'set'?"),
        ('layout = "debian-prefix"', 'layout = "debian-prefx"', "did you mean 'debian-prefix'?"),
        ('role = "vulkan"', 'role = "vulcan"', "did you mean 'vulkan'?"),
        ("header_version =", "headers_version =", "did you mean 'header_version'?"),
        ('registry = "debian"', 'registry = "debain"', "did you mean 'debian'?"),
        ("size = 10", "size = 0", "no size in bytes"),
        ("size = 10", "sise = 10", "did you mean 'size'?"),
        (f'sha256 = "{SHA}"', 'sha256 = ""', "no sha256"),
        (f'sha256 = "{SHA}"', 'sha256 = "abc"', "no sha256"),
        ('location = "pool', 'location = "../pool', "inside the tree"),
        ('location = "pool', 'location = "/pool', "inside the tree"),
        ('registry = "debian"', 'registry = "url"', "no address"),
        ('name = "tools"', 'name = "a/b"', "cannot be 'a/b'"),
        ("licenses = ", "licences = ", "did you mean 'licenses'?"),
    ],
)
def test_refusals(tmp_path: Path, old: str, new: str, said: str) -> None:
    error = refused(tmp_path, SET.replace(old, new))
    assert said in f"{error.what} {error.hint}"
    assert "a.toml:" in error.what


def test_a_set_without_files(tmp_path: Path) -> None:
    text = SET[: SET.index("[[set.files]]")].replace("[set.facts]", "files = []\n\n[set.facts]")
    assert "has no file" in refused(tmp_path, text).what


def test_an_empty_sha256_needs_the_vendors_statement(tmp_path: Path) -> None:
    text = SET.replace(f'sha256 = "{SHA}"', 'sha256 = ""\npublished = "https://a.invalid/x.json"')
    assert load(tmp_path, text).sets[0].files[0].published == "https://a.invalid/x.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[minimum]]\nrole = "cmake"\nversion = "new"\nreason = "r"', "'new' is no version"),
        (
            '[[known_bad]]\nrole = "cmake"\nversions = "4.5"\nreason = "r"\nlink = "l"',
            "names no versions",
        ),
        ('debian_archives = ["http://a.invalid"]', "no address"),
    ],
)
def test_more_refusals(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text).what


# --- the shipped files ----------------------------------------------------------------------


def test_every_shipped_file_is_pinned(shipped: Toolchains) -> None:
    for provided in shipped.sets:
        for file in provided.files:
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256), file.package
            if file.registry is Registry.DEBIAN:
                assert re.fullmatch(r"[0-9a-f]{40}", file.sha1), file.package
                assert not file.capped


def test_no_file_is_pinned_twice_in_a_set(shipped: Toolchains) -> None:
    for provided in shipped.sets:
        assert len({f.sha256 for f in provided.files}) == len(provided.files)


def test_shipped_debian_build_side(shipped: Toolchains) -> None:
    provided = by_name(shipped, "vulkan-debian13")
    packages = {f.package for f in provided.files}
    assert {"libvulkan-dev", "glslc", "libshaderc1", "spirv-headers", "libc6"} <= packages
    assert provided.platforms == ("linux_x86_64",)
    assert provided.size < 10_000_000
    assert provided.fact(Fact.GLSLC) == "bin/glslc"


def test_shipped_driver_leaves_the_c_library_to_the_machine(shipped: Toolchains) -> None:
    provided = by_name(shipped, "vulkan-driver-debian12")
    packages = {f.package for f in provided.files}
    assert {"mesa-vulkan-drivers", "libvulkan1", "libllvm15"} <= packages
    assert not packages & {"libc6", "libstdc++6", "libgcc-s1"}
    assert provided.glibc == "2.36"
    assert provided.role is Role.DRIVER


def test_shipped_sets_for_the_open_internet(shipped: Toolchains) -> None:
    for name, platform in (("linux", "linux_x86_64"), ("windows", "windows_x86_64")):
        provided = by_name(shipped, f"vulkan-lunarg-{name}")
        assert provided.platforms == (platform,)
        assert provided.files[0].location.startswith("https://sdk.lunarg.com/")
        assert provided.files[0].published.endswith(".json")
        for fact in (Fact.INCLUDE_DIR, Fact.LIBRARY, Fact.GLSLC, Fact.SPIRV_HEADERS_DIR):
            assert provided.fact(fact)


def test_the_debian_set_is_preferred_over_the_big_download(shipped: Toolchains) -> None:
    names = [s.name for s in shipped.sets if s.role is Role.VULKAN]
    assert names.index("vulkan-debian13") < names.index("vulkan-lunarg-linux")


def test_every_role_that_can_be_missing_has_a_hint(shipped: Toolchains) -> None:
    hinted = {(h.role, h.system) for h in shipped.hints}
    for role in (Role.CXX, Role.VULKAN, Role.GLSLC, Role.SPIRV):
        for system in ("debian", "ubuntu", "fedora", "arch", "alpine", "macos", "windows"):
            assert (role, system) in hinted


def test_shipped_minimums(shipped: Toolchains) -> None:
    least = {(m.role, m.name): m.version for m in shipped.minimums}
    assert least[(Role.CMAKE, "")] == "3.19"
    assert least[(Role.CXX, "gcc")] == "11"
    assert all(m.reason for m in shipped.minimums)


def test_no_mirror_is_named(shipped: Toolchains) -> None:
    hosts: set[str] = set()
    for path in SHIPPED.glob("*.toml"):
        hosts |= set(re.findall(r"https?://([^/\s\"<]+)", path.read_text(encoding="utf-8")))
    upstream = {
        "snapshot.debian.org",
        "sdk.lunarg.com",
        "developer.download.nvidia.com",
        "github.com",
    }
    assert hosts <= upstream


def test_sets_are_plain_values(shipped: Toolchains) -> None:
    provided = shipped.sets[0]
    assert replace(provided) == provided
    assert hash(provided) == hash(replace(provided))


def test_drivers_are_known_for_every_major_of_cuda(shipped: Toolchains) -> None:
    rows = {d.cuda: d for d in shipped.cuda_drivers}
    assert len(rows) == len(shipped.cuda_drivers)
    assert {"11", "12", "13"} <= set(rows)
    for name, row in rows.items():
        floor = rows[name.partition(".")[0]]
        assert Version(row.linux) >= Version(floor.linux)
        assert Version(row.windows) >= Version(floor.windows)


def test_bad_nvcc_builds_are_told_with_their_report(shipped: Toolchains) -> None:
    bad = [b for b in shipped.known_bad if b.role is Role.CUDA]
    assert bad
    assert all(b.link.startswith("https://github.com/ggml-org/llama.cpp/") for b in bad)
    assert {"IQ1_S", "IQ2_S", "IQ3_S"} <= {q for b in bad for q in b.quants}


def test_a_driver_row_needs_versions(tmp_path: Path) -> None:
    row = '[[cuda_driver]]\ncuda = "12"\nlinux = "525.60.13"\nwindows = "new"\n'
    assert "'new' is no version" in refused(tmp_path, row).what
