"""Wheels that somebody made to do harm, and bytes that are none: refused, never a crash."""

from __future__ import annotations

import contextlib
import random
import zipfile
from pathlib import Path

import pytest

from llamawright.errors import PackageError
from llamawright.model.wheel import WHEEL_PACKAGE
from llamawright.transfer.wheel import read_wheel
from verify_kit import manifest
from wheel_kit import DIST_INFO, Edits, write_wheel


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "llama-completion").write_bytes(b"program" * 100)
    return root


def made(tree: Path, edits: Edits, links: tuple[str, ...] = ()) -> Path:
    told = manifest(tree, programs=("llama-completion",))
    return write_wheel(tree.parent, tree, told, scratch=tree.parent / "s", edits=edits, links=links)


def kind(path: Path) -> tuple[str, str]:
    with pytest.raises(PackageError) as caught:
        read_wheel(path)
    assert int(caught.value.code) == 9
    assert caught.value.hint
    return caught.value.kind, caught.value.why


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x", "../outside.py", f"{WHEEL_PACKAGE}/../../x.py", "C:/x.py",
        f"{WHEEL_PACKAGE}\\bin\\x", f"{WHEEL_PACKAGE}/BIN/../bin/x",
    ],
)  # fmt: skip
def test_no_name_may_lead_outside(tree: Path, name: str) -> None:
    assert kind(made(tree, {name: b"x"}))[0] in {"unsafe-archive", "hash-mismatch"}


@pytest.mark.parametrize(
    "name",
    [
        "sitecustomize.py", "evil.pth", "pip/__init__.py", "nvidia/cu13/lib/libcudart.so.13",
        "llamawright_llama_cpp-0.0.11312+vulkan.data/scripts/python",
        "llamawright_llama_cpp-0.0.11312+vulkan.data/purelib/x.py",
    ],
)  # fmt: skip
def test_nothing_may_be_installed_beside_the_package(tree: Path, name: str) -> None:
    """A .pth file or a script runs with the installer's own rights, long before the proof."""
    told = kind(made(tree, {name: b"import os\n"}))
    assert told[0] == "unsafe-archive"
    assert "beside its own package" in told[1]


def test_a_link_is_refused(tree: Path) -> None:
    name = f"{WHEEL_PACKAGE}/bin/libx.so"
    told = kind(made(tree, {name: b"/etc/passwd"}, links=(name,)))
    assert told == ("unsafe-archive", f"'{name}' is a link: wheels have none")


def test_two_names_that_one_disk_takes_for_one_are_refused(tree: Path) -> None:
    told = kind(made(tree, {f"{WHEEL_PACKAGE}/BIN/llama-completion": b"other"}))
    assert "is in it twice" in told[1]


def test_two_metadata_folders_are_refused(tree: Path) -> None:
    told = kind(made(tree, {"other-1.dist-info/METADATA": b"Name: other\n"}))
    assert told == ("no-wheel", "it has 2 .dist-info folders, a wheel has one")


@pytest.mark.parametrize("text", [b"a,b\n", b"\xff\xfe", b"x" * 100 + b"\n"])
def test_a_record_that_cannot_be_read(tree: Path, text: bytes) -> None:
    path = made(tree, {})
    told = manifest(tree, programs=("llama-completion",))
    path = write_wheel(
        tree.parent, tree, told, scratch=tree.parent / "s2",
        late_edits={f"{DIST_INFO}/RECORD": text},
    )  # fmt: skip
    assert kind(path)[0] in {"bad-record", "damaged"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[]", "bad-manifest"),
        (b"{", "bad-manifest"),
        (b"{}", "bad-manifest"),
        (b'{"schema": "https://llamawright.dev/schema/manifest-99.json"}', "unknown-schema"),
        (b"\xff\xfe\x00", "damaged"),
        (b"[" * 100_000, "bad-manifest"),
    ],
)
def test_a_manifest_that_is_none(tree: Path, text: bytes, expected: str) -> None:
    names = (f"{DIST_INFO}/llamawright/manifest.json", f"{WHEEL_PACKAGE}/manifest.json")
    assert kind(made(tree, dict.fromkeys(names, text)))[0] == expected


@pytest.mark.parametrize(
    "text", [b"[console_scripts\n", b"no section = 1\n", b"[a]\nx = 1\n[a]\ny = 2\n"]
)
def test_entry_points_that_cannot_be_read(tree: Path, text: bytes) -> None:
    told = kind(made(tree, {f"{DIST_INFO}/entry_points.txt": text}))
    assert told[0] == "unsafe-archive"
    assert "entry points" in told[1]


def test_a_wheel_that_would_unpack_to_more_than_any_artifact(tree: Path) -> None:
    path = made(tree, {})
    with zipfile.ZipFile(path, "a", compression=zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(f"{WHEEL_PACKAGE}/zeros", bytes(80 << 20))
    assert kind(path)[0] == "archive-bomb"


def test_no_damage_of_a_few_bytes_is_a_crash(tree: Path) -> None:
    """Whatever is flipped: read as before, or refused with a class of ours."""
    path = made(tree, {})
    data = path.read_bytes()
    truth = read_wheel(path)
    chance = random.Random(11312)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        with contextlib.suppress(PackageError):
            assert read_wheel(path).manifest == truth.manifest
