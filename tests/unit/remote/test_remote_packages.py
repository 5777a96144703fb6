"""Packages for a machine without an index: which, for what platform, and what pip is asked."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.tags import parse_tag

from llamawright.errors import ExitCode, LlamawrightError
from llamawright.model.remote import FarRun
from llamawright.remote.packages import (
    fetch_packages,
    index_of_folder,
    lacks_packages,
    pinned_for,
    platform_tags,
)
from remote_kit import HOST, machine

ROOT = Path(__file__).parents[3]
LOCK = """# made by a tool
every==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
linux-only==2.0 ; sys_platform == 'linux' \\
    --hash=sha256:cc
win==3.0 ; sys_platform == 'win32' \\
    --hash=sha256:dd
mac==4.0 ; sys_platform == 'darwin' and platform_machine == 'arm64' \\
    --hash=sha256:ee
# via something
old==5.0 ; python_full_version < '3.11.5' \\
    --hash=sha256:ff
old==6.0 ; python_full_version >= '3.11.5' \\
    --hash=sha256:ff
"""


def names(lines: tuple[str, ...]) -> list[str]:
    return [line.split(" ")[0] for line in lines]


def test_conditions_are_those_of_the_other_machine() -> None:
    on_linux = pinned_for(LOCK, machine())
    assert names(on_linux) == ["every==1.0", "linux-only==2.0", "old==6.0"]
    assert on_linux[0].split()[1:] == ["--hash=sha256:aa", "--hash=sha256:bb"]
    on_mac = pinned_for(LOCK, machine(system="macos", machine="arm64", python="3.11.2"))
    assert names(on_mac) == ["every==1.0", "mac==4.0", "old==5.0"]


@pytest.mark.parametrize("python", ["3.11.0", "3.13.2"])
def test_every_line_of_the_real_lock_is_one_pin_with_hashes(python: str) -> None:
    lines = pinned_for((ROOT / "requirements" / "tool.lock").read_text(), machine(python=python))
    found = [Requirement(line.split(" --hash")[0]) for line in lines]
    assert {"pydantic-core", "lief", "psutil", "zstandard", "nox"} <= {r.name for r in found}
    assert len({r.name for r in found}) == len(found)
    assert all(str(r.specifier).startswith("==") for r in found)
    assert all("--hash=sha256:" in line and ";" not in line for line in lines)


def test_wheels_for_an_older_c_library_run_and_for_a_newer_one_do_not() -> None:
    tags = platform_tags(machine(libc="glibc 2.28"))
    assert tags[0] == "manylinux_2_28_x86_64"
    assert {"manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64"} <= set(tags)
    assert "manylinux_2_29_x86_64" not in tags


@pytest.mark.parametrize(
    ("told", "tag"),
    [
        ({"libc": ""}, "musllinux_1_1_x86_64"),
        ({"libc": "glibc"}, "musllinux_1_1_x86_64"),
        ({"machine": "AMD64"}, "manylinux_2_36_x86_64"),
        ({"machine": "aarch64"}, "manylinux2014_aarch64"),
        ({"system": "macos", "machine": "arm64", "libc": "macos 14.4.1"}, "macosx_14_0_arm64"),
        ({"system": "macos", "machine": "arm64", "libc": ""}, "macosx_11_0_arm64"),
        ({"system": "windows", "machine": "AMD64", "libc": ""}, "win_amd64"),
    ],
)
def test_each_platform_has_its_tags(told: dict[str, object], tag: str) -> None:
    tags = platform_tags(machine(**told))
    assert tag in tags
    assert all(parse_tag(f"py3-none-{t}") for t in tags)


def test_only_a_failed_environment_asks_for_packages() -> None:
    ended = FarRun(code=6, files=(), last="llamawright: exit 6 (download: environment)")
    assert lacks_packages(ended)
    assert not lacks_packages(replace(ended, code=0))
    assert not lacks_packages(replace(ended, last="llamawright: exit 6 (download: refused)"))


def test_uv_and_pip_look_nowhere_else() -> None:
    chosen = index_of_folder("@ROOM@")
    assert chosen["PIP_NO_INDEX"] == chosen["UV_OFFLINE"] == "1"
    assert chosen["PIP_FIND_LINKS"] == chosen["UV_FIND_LINKS"] == "@ROOM@/packages"


def wheel(folder: Path, tag: str) -> str:
    """Write a wheel that pip takes and return its sha256."""
    folder.mkdir(exist_ok=True)
    path = folder / f"tiny-1.0-{tag}.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Python: >=3.12.4\n",
        )
        packed.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        packed.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pin a wheel that fits neither this Python nor this machine; pip sees that folder alone."""
    digest = wheel(tmp_path / "links", "cp312-cp312-manylinux_2_28_aarch64")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    path = tmp_path / "tool.lock"
    path.write_text(
        f"tiny==1.0 ; platform_machine == 'aarch64' \\\n    --hash=sha256:{digest}\n"
        "other==2.0 ; platform_machine == 'x86_64' \\\n    --hash=sha256:aa\n"
    )
    return path


def room(tmp_path: Path) -> Path:
    folder = tmp_path / "room"
    folder.mkdir()
    return folder


def test_pip_fetches_for_another_python_and_platform(lock: Path, tmp_path: Path) -> None:
    """The whole version counts: a package may ask for a later 3.12 than the first."""
    far = machine(machine="aarch64", python="3.12.4")
    (found,) = fetch_packages(lock, far, HOST, room(tmp_path))
    assert found.name == "packages/tiny-1.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert found.sha256 in lock.read_text()


@pytest.mark.parametrize(
    "far",
    [machine(machine="aarch64", python="3.12.3"), machine(machine="aarch64", libc="glibc 2.17")],
    ids=["older-python", "older-glibc"],
)
def test_what_the_index_here_has_not_got_is_told(lock: Path, tmp_path: Path, far: object) -> None:
    with pytest.raises(LlamawrightError) as caught:
        fetch_packages(lock, far, HOST, room(tmp_path))  # type: ignore[arg-type]
    assert (caught.value.kind, caught.value.code) == ("far-packages", ExitCode.DOWNLOAD)
    assert "tiny" in (caught.value.why or "")
    assert caught.value.hint


def test_other_bytes_than_the_locks_are_refused(lock: Path, tmp_path: Path) -> None:
    text = lock.read_text()
    digest = text.partition("sha256:")[2][:64]
    lock.write_text(text.replace(digest, "0" * 64))
    with pytest.raises(LlamawrightError) as caught:
        fetch_packages(lock, machine(machine="aarch64", python="3.12.4"), HOST, room(tmp_path))
    assert caught.value.kind == "far-packages"


def test_a_python_without_pip_is_told_so(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f"#!/bin/sh\necho '{bare}: No module named pip' >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(LlamawrightError) as caught:
        fetch_packages(lock, machine(), HOST, room(tmp_path))
    assert (caught.value.kind, caught.value.code) == ("no-pip", ExitCode.TOOL_MISSING)
    assert "bootstrap.py" in (caught.value.hint or "")
