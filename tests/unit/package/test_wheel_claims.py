"""Platform truth: a tag that promises more than the files keep is refused."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cli_kit import manifest
from llamawright.errors import PackageError
from llamawright.model.artifact import BinaryFacts
from llamawright.model.platform import Platform, System
from llamawright.model.wheel import WheelContents
from llamawright.package.wheels.claims import (
    Policy,
    auditwheel_policy,
    binary_facts,
    judge,
    platform_tag,
    require_claim,
)
from package_binaries import elf
from package_kit import LINUX, MACOS, WINDOWS, names
from wheel_kit import entry, facts, write_wheel

ARM = Platform(System.LINUX, "aarch64")
UNASKED = Policy(name="")
OLD = Policy(name="manylinux_2_17_x86_64")


def kinds(
    tag: str, *read: BinaryFacts, platform: Platform = LINUX, policy: Policy = OLD
) -> list[str]:
    return names(list(judge(tag, platform, read, policy)))


class TestTag:
    def test_the_highest_glibc_of_any_file_decides(self) -> None:
        read = (facts(glibc="2.9"), facts("libm.so", glibc="2.34"), facts(glibc="2.17"))
        assert platform_tag(LINUX, read, UNASKED) == "manylinux_2_34_x86_64"

    def test_libstdcxx_may_ask_for_a_newer_system_than_glibc_does(self) -> None:
        """As with gcc 12 on Debian 12: glibc 2.34, but GLIBCXX_3.4.30."""
        policy = Policy(name="manylinux_2_35_x86_64")
        assert platform_tag(LINUX, (facts(glibc="2.34"),), policy) == "manylinux_2_35_x86_64"

    def test_an_older_policy_does_not_lower_what_was_measured(self) -> None:
        assert platform_tag(LINUX, (facts(glibc="2.38"),), OLD) == "manylinux_2_38_x86_64"

    def test_a_glibc_between_two_policies_has_a_tag_too(self) -> None:
        """PEP 600 names any version; installers compare the numbers."""
        assert platform_tag(LINUX, (facts(glibc="2.29"),), UNASKED) == "manylinux_2_29_x86_64"

    def test_the_machine_is_in_it(self) -> None:
        assert platform_tag(ARM, (facts(glibc="2.28"),), UNASKED) == "manylinux_2_28_aarch64"

    @pytest.mark.parametrize(
        ("min_os", "tag"),
        [
            ("11.0", "macosx_11_0_arm64"),
            ("13.3", "macosx_14_0_arm64"),
            ("10.15", "macosx_10_15_arm64"),
            ("", "macosx_11_0_arm64"),
        ],
    )
    def test_macos_tags_have_no_minor_versions_since_11(self, min_os: str, tag: str) -> None:
        assert platform_tag(MACOS, (facts(min_os=min_os),), UNASKED) == tag

    def test_windows_has_no_version(self) -> None:
        assert platform_tag(WINDOWS, (facts(toolset="14.44"),), UNASKED) == "win_amd64"
        arm = Platform(System.WINDOWS, "arm64")
        assert platform_tag(arm, (), UNASKED) == "win_arm64"


class TestJudge:
    def test_a_true_claim_has_no_findings(self) -> None:
        assert kinds("manylinux_2_17_x86_64", facts(glibc="2.17"), facts(glibc="2.2.5")) == []
        assert kinds("manylinux_2_28_x86_64", facts(glibc="2.17")) == []

    def test_a_claim_lower_than_a_file_needs_is_refused(self) -> None:
        """Cases P1: an ELF file that needs 2.32, tagged manylinux_2_17."""
        found = list(judge("manylinux_2_17_x86_64", LINUX, [facts(glibc="2.32")], OLD))
        assert [f.kind for f in found] == ["platform-claim"]
        assert (found[0].path, "2.32" in found[0].what) == ("bin/libx.so", True)

    @pytest.mark.parametrize(("tag", "glibc"), [("manylinux2014", "2.17"), ("manylinux1", "2.5")])
    def test_the_old_names_are_understood(self, tag: str, glibc: str) -> None:
        policy = Policy(name="manylinux_2_5_x86_64")
        assert kinds(f"{tag}_x86_64", facts(glibc=glibc), policy=policy) == []
        assert kinds(f"{tag}_x86_64", facts(glibc="2.18"), policy=policy) == ["platform-claim"]

    def test_a_plain_linux_tag_says_nothing_and_is_refused(self) -> None:
        """Cases P2: py3-none-linux_x86_64 is installed anywhere."""
        assert kinds("linux_x86_64", facts(glibc="2.17")) == ["platform-claim"]

    def test_a_claim_lower_than_auditwheels_is_refused(self) -> None:
        policy = Policy(name="manylinux_2_35_x86_64")
        assert kinds("manylinux_2_34_x86_64", facts(glibc="2.34"), policy=policy) == [
            "platform-claim"
        ]

    def test_a_library_that_no_policy_knows_is_named(self) -> None:
        policy = Policy(name="linux_x86_64", foreign=("libomp.so.5",))
        found = list(judge("manylinux_2_28_x86_64", LINUX, [facts()], policy))
        assert [f.kind for f in found] == ["foreign-import"]
        assert "libomp.so.5" in found[0].what

    @pytest.mark.parametrize(
        "name", ["libcuda-984fdb42.so.570", "libcuda.so.1", "libvulkan-01234567.so.1"]
    )
    def test_a_grafted_driver_is_found_under_its_new_name(self, name: str) -> None:
        """Cases P3: 71 MB of libcuda, renamed with a hash by auditwheel repair."""
        read = replace(facts(), path=f"x.libs/{name}")
        assert kinds("manylinux_2_17_x86_64", read) == ["driver-library"]

    def test_musl_in_a_wheel_for_glibc_is_refused(self) -> None:
        assert kinds("manylinux_2_17_x86_64", facts(imports=("libc.musl-x86_64.so.1",))) == ["musl"]

    def test_another_machine_than_the_tags_is_refused(self) -> None:
        read = facts(machine="aarch64", glibc="2.17")
        assert kinds("manylinux_2_17_x86_64", read) == ["platform-claim"]

    def test_macos_floors_count(self) -> None:
        """Cases P17: a dylib for macOS 26 in a wheel for 11."""
        read = facts(min_os="26.0")
        assert kinds("macosx_11_0_arm64", read, platform=MACOS) == ["platform-claim"]
        assert kinds("macosx_26_0_arm64", read, platform=MACOS) == []
        assert kinds("any", read, platform=MACOS) == ["platform-claim"]

    def test_windows_tags_are_the_machines(self) -> None:
        assert kinds("win_amd64", facts(), platform=WINDOWS, policy=UNASKED) == []
        assert kinds("win32", facts(), platform=WINDOWS, policy=UNASKED) == ["platform-claim"]


class TestWheels:
    def wheel(self, tmp_path: Path, data: bytes, tag: str) -> tuple[Path, WheelContents]:
        tree = tmp_path / "tree"
        (tree / "bin").mkdir(parents=True)
        (tree / "bin" / "libx.so").write_bytes(data)
        told = manifest(files=(entry("bin/libx.so", data),), programs=())
        path = write_wheel(tmp_path, tree, told, scratch=tmp_path / "scratch", tag=tag)
        return path, WheelContents(
            dist_info="", version="", tags=(f"py3-none-{tag}",), requires=(), scripts=(),
            manifest=told,
        )  # fmt: skip

    def test_what_is_in_the_file_counts_not_what_the_manifest_says(self, tmp_path: Path) -> None:
        data = elf(versions={"libc.so.6": ("GLIBC_2.32",)})
        path, contents = self.wheel(tmp_path, data, "manylinux_2_17_x86_64")
        with pytest.raises(PackageError, match="1 fault") as caught:
            require_claim(path, contents, tmp_path / "room")
        assert (caught.value.kind, int(caught.value.code)) == ("platform-claim", 9)
        assert "glibc 2.32" in caught.value.why

    def test_a_true_claim_is_returned_with_what_was_measured(self, tmp_path: Path) -> None:
        data = elf(versions={"libc.so.6": ("GLIBC_2.32",)})
        path, contents = self.wheel(tmp_path, data, "manylinux_2_32_x86_64")
        claim = require_claim(path, contents, tmp_path / "room")
        assert (claim.claimed, claim.glibc) == ("manylinux_2_32_x86_64", "2.32")

    def test_a_renamed_wheel_is_refused(self, tmp_path: Path) -> None:
        path, contents = self.wheel(tmp_path, elf(), "manylinux_2_38_x86_64")
        lower = path.with_name(path.name.replace("2_38", "2_17"))
        path.rename(lower)
        with pytest.raises(PackageError, match="another platform") as caught:
            require_claim(lower, contents, tmp_path / "room")
        assert caught.value.kind == "platform-claim"

    @pytest.mark.skipif(sys.platform != "linux", reason="auditwheel reads ELF files")
    def test_auditwheel_judges_a_real_module_that_nothing_imports(self, tmp_path: Path) -> None:
        """A module that is only loaded at run time escapes a walk over imports (cases P3)."""
        real = Path(shutil.which("env") or "/usr/bin/env").resolve()
        path, contents = self.wheel(tmp_path, real.read_bytes(), "linux_x86_64")
        policy = auditwheel_policy(path, ())
        assert policy.name.startswith("manylinux_2_")
        read = binary_facts(tmp_path / "tree", ["bin/libx.so"])
        assert platform_tag(LINUX, read, policy).startswith("manylinux_2_")
        with pytest.raises(PackageError, match="1 fault"):
            require_claim(path, contents, tmp_path / "room")

    def test_texts_are_no_binaries(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text("x = 1\n")
        assert binary_facts(tmp_path, ["a.py"]) == ()
