"""An opened artifact: every byte as the manifest says, and again after a while."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright import codec
from llamawright.digest import sha256_bytes
from llamawright.errors import ExitCode, PackageError
from llamawright.model.artifact import MANIFEST_NAME, MANIFEST_SCHEMA, FileEntry, Manifest
from llamawright.model.platform import Backend, Platform, System
from llamawright.package.archive import Packed, write_archive
from llamawright.transfer.opened import FileFault, Harm, open_artifact, read_manifest, recheck

LINUX = Platform(System.LINUX, "x86_64")
WINDOWS = Platform(System.WINDOWS, "x86_64")
NAME = "tiny-012345678-vulkan-linux_x86_64"
CONTENT = {
    "bin/program": b"program" * 500,
    "bin/libx.so.0": b"library" * 800,
    "licenses/L": b"text",
}


def manifest(**changes: object) -> Manifest:
    """Return a manifest of three files and a link."""
    files = [
        FileEntry(
            path=path, size=len(data), sha256=sha256_bytes(data), executable=path.startswith("bin/")
        )
        for path, data in CONTENT.items()
    ]
    library = CONTENT["bin/libx.so.0"]
    files.append(
        FileEntry(
            path="bin/libx.so", size=len(library), sha256=sha256_bytes(library), executable=False,
            link="libx.so.0",
        )
    )  # fmt: skip
    good = Manifest(
        schema=MANIFEST_SCHEMA, name=NAME, key="k", abi="a", upstream="u", commit="c",
        build_number=1, source_digest="s", patched_digest="p", backend=Backend.VULKAN,
        platform=LINUX, patches=(), retired=(), tools=(), options=(), capabilities=(), inputs=(),
        modules=(), programs=("program",), files=tuple(files), binaries=(), system_libraries=(),
        glibc="2.34", glibcxx="3.4.30",
    )  # fmt: skip
    return replace(good, **changes)  # type: ignore[arg-type]


def archive(
    folder: Path, *, text: str | None = None, platform: Platform = LINUX, name: str = "",
    extra: tuple[Packed, ...] = (), without: str = "",
) -> Path:  # fmt: skip
    """Write an artifact; ``text`` replaces its manifest, ``extra`` and ``without`` its files."""
    suffix = ".zip" if platform is WINDOWS else ".tar.zst"
    path = folder / (name or f"{NAME}{suffix}")
    members = [
        Packed(path=p, content=data, executable=p.startswith("bin/"))
        for p, data in CONTENT.items()
        if p != without
    ]
    members.append(Packed(path="bin/libx.so", link="libx.so.0"))
    written = codec.encode(manifest()) if text is None else text
    if written:
        members.append(Packed(path=MANIFEST_NAME, content=written.encode()))
    write_archive(
        path, NAME, [*members, *extra], platform=platform, date=1_700_000_000,
        progress=lambda _: None,
    )  # fmt: skip
    return path


def refused(path: Path, dest: Path) -> PackageError:
    """Return the error of opening; nothing may be left of it."""
    with pytest.raises(PackageError) as caught:
        open_artifact(path, dest)
    assert caught.value.code is ExitCode.PACKAGE
    assert caught.value.why
    assert caught.value.hint
    assert not dest.exists()
    return caught.value


@pytest.mark.parametrize("platform", [LINUX, WINDOWS])
class TestOpen:
    def test_the_archives_folder_becomes_dest(self, tmp_path: Path, platform: Platform) -> None:
        seen = open_artifact(archive(tmp_path, platform=platform), tmp_path / "out")
        assert seen == manifest()
        assert (tmp_path / "out" / "bin" / "program").read_bytes() == CONTENT["bin/program"]
        assert os.access(tmp_path / "out" / "bin" / "program", os.X_OK)

    def test_an_empty_folder_will_do(self, tmp_path: Path, platform: Platform) -> None:
        (tmp_path / "out").mkdir()
        assert open_artifact(archive(tmp_path, platform=platform), tmp_path / "out")

    def test_a_folder_with_content_is_a_bug(self, tmp_path: Path, platform: Platform) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_bytes(b"mine")
        with pytest.raises(ValueError, match="not empty"):
            open_artifact(archive(tmp_path, platform=platform), tmp_path / "out")
        assert (tmp_path / "out" / "mine").is_file()

    def test_a_missing_file(self, tmp_path: Path, platform: Platform) -> None:
        path = archive(tmp_path, platform=platform, without="bin/program")
        error = refused(path, tmp_path / "out")
        assert error.kind == "hash-mismatch"
        assert "bin/program: missing" in error.why

    def test_a_file_too_many(self, tmp_path: Path, platform: Platform) -> None:
        extra = (Packed(path="bin/libggml-cuda.so", content=b"planted"),)
        error = refused(archive(tmp_path, platform=platform, extra=extra), tmp_path / "out")
        assert error.kind == "hash-mismatch"
        assert "bin/libggml-cuda.so: not in the manifest" in error.why

    def test_another_content(self, tmp_path: Path, platform: Platform) -> None:
        files = [
            replace(f, sha256="0" * 64) if f.path == "licenses/L" else f for f in manifest().files
        ]
        text = codec.encode(manifest(files=tuple(files)))
        error = refused(archive(tmp_path, platform=platform, text=text), tmp_path / "out")
        assert error.kind == "hash-mismatch"
        assert f"expected sha256 {'0' * 64}" in error.why
        assert "(1 of 4 files)" in error.what


class TestManifest:
    def test_none(self, tmp_path: Path) -> None:
        error = refused(archive(tmp_path, text=""), tmp_path / "out")
        assert error.kind == "no-manifest"
        assert "no artifact of llamawright" in error.what

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "no JSON"),
            ("[]\n", "manifest.json"),
            ("{}\n", "manifest.json"),
            ('"text"', "manifest.json"),
        ],
    )
    def test_nonsense(self, tmp_path: Path, text: str, words: str) -> None:
        error = refused(archive(tmp_path, text=text), tmp_path / "out")
        assert error.kind == "bad-manifest"
        assert words in error.why

    def test_an_unknown_field(self, tmp_path: Path) -> None:
        text = codec.encode(manifest()).replace("{", '{"surprise": 1,', 1)
        error = refused(archive(tmp_path, text=text), tmp_path / "out")
        assert error.kind == "bad-manifest"
        assert "surprise" in error.why

    def test_a_newer_schema(self, tmp_path: Path) -> None:
        text = codec.encode(manifest(schema=MANIFEST_SCHEMA.replace("-1", "-2")))
        error = refused(archive(tmp_path, text=text), tmp_path / "out")
        assert error.kind == "unknown-schema"
        assert "newer" in error.hint

    @pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "bin/../../x", "bin\\x", ""])
    def test_a_path_that_leads_out(self, tmp_path: Path, path: str) -> None:
        files = (*manifest().files, replace(manifest().files[0], path=path))
        text = codec.encode(manifest(files=files))
        assert refused(archive(tmp_path, text=text), tmp_path / "out").kind == "bad-manifest"

    def test_a_link_in_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "real.json").write_text(codec.encode(manifest()))
        (tmp_path / MANIFEST_NAME).symlink_to("real.json")
        with pytest.raises(PackageError) as caught:
            read_manifest(tmp_path, what="it")
        assert caught.value.kind == "no-manifest"


class TestName:
    @pytest.mark.parametrize("name", [f"{NAME}.tar.zst", f"{NAME} (1).tar.zst", f"{NAME}.zip.part"])
    def test_tails_do_not_matter(self, tmp_path: Path, name: str) -> None:
        assert open_artifact(archive(tmp_path, name=name), tmp_path / "out")

    @pytest.mark.parametrize("name", ["tiny-012345678-cuda-linux_x86_64.tar.zst", "x.tar.zst"])
    def test_another_artifacts_name(self, tmp_path: Path, name: str) -> None:
        error = refused(archive(tmp_path, name=name), tmp_path / "out")
        assert error.kind == "renamed"
        assert f"rename it to {NAME}.tar.zst" in error.hint


class TestSidecar:
    def path(self, tmp_path: Path, text: Callable[[str], str]) -> Path:
        path = archive(tmp_path)
        beside = path.with_name(f"{path.name}.sha256")
        beside.write_text(text(sha256_bytes(path.read_bytes())))
        return path

    @pytest.mark.parametrize("form", ["{}  name\n", "{}\n", "{} *name"])
    def test_it_fits(self, tmp_path: Path, form: str) -> None:
        path = self.path(tmp_path, form.format)
        assert open_artifact(path, tmp_path / "out")

    def test_capital_digits_are_digits(self, tmp_path: Path) -> None:
        assert open_artifact(self.path(tmp_path, str.upper), tmp_path / "out")

    @pytest.mark.parametrize("text", ["0" * 64, "", "not a sum\n"])
    def test_it_does_not(self, tmp_path: Path, text: str) -> None:
        error = refused(self.path(tmp_path, lambda _: text), tmp_path / "out")
        assert error.kind == "sidecar-mismatch"
        assert ".sha256" in error.hint

    def test_a_sum_over_the_short_file_proves_nothing(self, tmp_path: Path) -> None:
        """Cut first and summed afterwards: the sum fits, the file is not whole (cases P7)."""
        path = archive(tmp_path)
        short = path.read_bytes()[:-50]
        path.write_bytes(short)
        path.with_name(f"{path.name}.sha256").write_text(sha256_bytes(short))
        assert refused(path, tmp_path / "out").kind == "truncated"


class TestRecheck:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        open_artifact(archive(tmp_path), tmp_path / "out")
        return tmp_path / "out"

    def only(self, root: Path) -> FileFault:
        faults = recheck(root, manifest())
        assert len(faults) == 1
        assert faults[0].told.startswith(faults[0].path)
        return faults[0]

    def test_untouched(self, root: Path) -> None:
        assert recheck(root, manifest()) == ()

    def test_a_file_taken_away(self, root: Path) -> None:
        """Antivirus software removes single files after unpacking (cases W12)."""
        (root / "bin" / "program").unlink()
        fault = self.only(root)
        assert (fault.path, fault.harm) == ("bin/program", Harm.MISSING)

    def test_a_target_taken_away_takes_its_links_along(self, root: Path) -> None:
        (root / "bin" / "libx.so.0").unlink()
        faults = recheck(root, manifest())
        assert [(f.path, f.harm) for f in faults] == [
            ("bin/libx.so.0", Harm.MISSING), ("bin/libx.so", Harm.LINK),
        ]  # fmt: skip

    def test_another_byte(self, root: Path) -> None:
        path = root / "bin" / "program"
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        assert self.only(root).harm is Harm.CHANGED

    def test_another_size(self, root: Path) -> None:
        (root / "licenses" / "L").write_bytes(b"")
        fault = self.only(root)
        assert fault.harm is Harm.CHANGED
        assert "4 bytes" in fault.told

    def test_a_link_instead_of_a_file(self, root: Path) -> None:
        path = root / "bin" / "program"
        path.rename(root / "moved")
        path.symlink_to("../moved")
        assert "a link to ../moved" in self.only(root).told

    def test_a_folder_instead_of_a_file(self, root: Path) -> None:
        (root / "licenses" / "L").unlink()
        (root / "licenses" / "L").mkdir()
        assert self.only(root).harm is Harm.MISSING

    @pytest.mark.parametrize("target", ["program", "gone", "../licenses/L"])
    def test_a_link_that_leads_elsewhere(self, root: Path, target: str) -> None:
        link = root / "bin" / "libx.so"
        link.unlink()
        link.symlink_to(target)
        fault = self.only(root)
        assert (fault.harm, fault.expected) == (Harm.LINK, "libx.so.0")

    def test_a_copy_in_a_links_place_is_fine(self, root: Path) -> None:
        """Where the system allows no links, unpacking makes copies."""
        link = root / "bin" / "libx.so"
        link.unlink()
        link.write_bytes(CONTENT["bin/libx.so.0"])
        assert recheck(root, manifest()) == ()

    def test_another_file_in_a_links_place_is_not(self, root: Path) -> None:
        link = root / "bin" / "libx.so"
        link.unlink()
        link.write_bytes(b"other")
        assert "other content" in self.only(root).told

    @pytest.mark.skipif(os.name == "nt", reason="Windows knows no run bit")
    def test_a_program_that_may_not_run(self, root: Path) -> None:
        (root / "bin" / "program").chmod(0o644)
        assert self.only(root).harm is Harm.MODE

    def test_files_of_others_are_no_fault(self, root: Path) -> None:
        (root / "bin" / "core").write_bytes(b"")
        assert recheck(root, manifest()) == ()
