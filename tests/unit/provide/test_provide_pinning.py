"""Pins come from an archive's own index and from files that are exactly those."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import tomllib
from pathlib import Path

import pytest
from provide_fakes import build_side, deb

from llamawright.config import load_toolchains
from llamawright.errors import UsageError
from llamawright.provide import pinning

DATA = deb({"./usr/bin/tool": "#!/bin/sh\n"})


def index_text(*rows: tuple[str, str, bytes]) -> str:
    return "\n".join(
        f"Package: {name}\nVersion: {version}\nDescription: a tool\n of two lines\n"
        f"Filename: pool/main/t/{name}_{version}_amd64.deb\nSize: {len(data)}\n"
        f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
        for name, version, data in rows
    )


def folder_with(tmp_path: Path, *rows: tuple[str, str, bytes]) -> Path:
    folder = tmp_path / "debs"
    folder.mkdir()
    for name, version, data in rows:
        (folder / f"{name}_{version}_amd64.deb").write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_index_forms(tmp_path: Path, suffix: str, pack: type[bytes]) -> None:
    path = tmp_path / f"Packages{suffix}"
    path.write_bytes(pack(index_text(("tool", "1.0-1", DATA), ("other", "2", b"x")).encode()))
    tool, other = pinning.read_index(path)
    assert (tool.name, tool.version, tool.size) == ("tool", "1.0-1", len(DATA))
    assert tool.location == "pool/main/t/tool_1.0-1_amd64.deb"
    assert other.sha256 == hashlib.sha256(b"x").hexdigest()


def test_stanzas_without_a_file_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_text("Package: virtual\n\n" + index_text(("tool", "1", DATA)), encoding="utf-8")
    assert [p.name for p in pinning.read_index(path)] == ["tool"]


def test_pins_are_toml_with_all_digests(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_text(index_text(("tool", "1.0-1", DATA)), encoding="utf-8")
    folder = folder_with(tmp_path, ("tool", "1.0-1", DATA))
    text = "[[set]]\n" + pinning.pins(pinning.read_index(path), ["tool"], folder)
    (pin,) = tomllib.loads(text)["set"][0]["files"]
    assert pin == {
        "registry": "debian",
        "package": "tool",
        "version": "1.0-1",
        "location": "pool/main/t/tool_1.0-1_amd64.deb",
        "size": len(DATA),
        "sha256": hashlib.sha256(DATA).hexdigest(),
        "sha1": hashlib.sha1(DATA, usedforsecurity=False).hexdigest(),
    }


def test_without_a_folder_there_is_no_sha1(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_text(index_text(("tool", "1", DATA)), encoding="utf-8")
    assert "sha1" not in pinning.pins(pinning.read_index(path), ["tool"], None)


def test_unknown_and_ambiguous_packages(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_text(index_text(("tool", "1", DATA), ("tool", "2", DATA)), encoding="utf-8")
    packages = pinning.read_index(path)
    with pytest.raises(UsageError, match="holds 2 versions of tool"):
        pinning.pins(packages, ["tool"], None)
    with pytest.raises(UsageError, match="holds 0 versions of tol"):
        pinning.pins(packages, ["tol"], None)


def test_a_file_that_is_not_the_pinned_one(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_text(index_text(("tool", "1", DATA)), encoding="utf-8")
    folder = folder_with(tmp_path, ("tool", "1", DATA[:-1] + b"!"))
    with pytest.raises(UsageError, match="does not hold tool 1") as caught:
        pinning.pins(pinning.read_index(path), ["tool"], folder)
    assert "tool_1_amd64.deb" in caught.value.why
    assert "apt-get download tool=1" in caught.value.hint


def test_the_right_one_of_two_files_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_text(index_text(("tool", "2", DATA)), encoding="utf-8")
    folder = folder_with(tmp_path, ("tool", "1", b"older"), ("tool", "2", DATA))
    sha1 = hashlib.sha1(DATA, usedforsecurity=False).hexdigest()
    assert sha1 in pinning.pins(pinning.read_index(path), ["tool"], folder)


def test_printed_pins_are_read_back_by_the_loader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(Path(p).name.split("_")[0], "1", d) for p, d in build_side().items()]
    index = tmp_path / "Packages"
    index.write_text(index_text(*rows), encoding="utf-8")
    folder = folder_with(tmp_path, *rows)
    names = [r[0] for r in rows]
    assert pinning.main([str(index), str(folder), *names]) == 0
    head = (
        '[[set]]\nname = "x"\nrole = "vulkan"\nversion = "1"\nlayout = "debian-prefix"\n'
        'platforms = ["linux_x86_64"]\nlicenses = []\n\n'
    )
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x.toml").write_text(head + capsys.readouterr().out, encoding="utf-8")
    (provided,) = load_toolchains(tmp_path / "t").sets
    assert [f.package for f in provided.files] == names
