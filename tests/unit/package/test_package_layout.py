"""Which file goes into the artifact under which name."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.errors import ExitCode, PackageError
from llamawright.package.layout import (
    Placed,
    by_soname,
    join,
    licence_files,
    resolve_link,
    staged,
)
from package_kit import LICENSE, VENDORED, linux_host, macos_host, tree


def file(path: str, *, executable: bool = True) -> Placed:
    return Placed(path=path, source=Path("/built") / path, executable=executable)


def link(path: str, target: str) -> Placed:
    return Placed(path=path, source=Path("/built") / path, link=target)


def shape(placed: tuple[Placed, ...]) -> dict[str, str]:
    """Return path -> link target, or the name of the file it is made from."""
    return {f.path: f"-> {f.link}" if f.link else f.source.name for f in placed}


class TestStaged:
    def test_files_links_and_run_bits(self, tmp_path: Path) -> None:
        content: dict[str, bytes | str] = {"bin/a": b"1", "bin/a.so": "a", "licenses/L": b"text"}
        seen = staged(tree(tmp_path, content, key="h"), what="host build")
        assert [(p.path, p.link, p.executable) for p in seen] == [
            ("bin/a", "", True),
            ("bin/a.so", "a", False),
            ("licenses/L", "", False),
        ]

    def test_a_text_marked_executable_is_still_a_text(self, tmp_path: Path) -> None:
        built = tree(tmp_path, {"licenses/L": b"text"}, key="h")
        (tmp_path / "licenses" / "L").chmod(0o777)
        assert not staged(built, what="host build")[0].executable

    def test_what_the_tree_does_not_list_stays_out(self, tmp_path: Path) -> None:
        built = tree(tmp_path, {"bin/a": b"1"}, key="h")
        (tmp_path / "bin" / "stale.so").write_bytes(b"old")
        assert [p.path for p in staged(built, what="host build")] == ["bin/a"]

    def test_a_vanished_file_is_told(self, tmp_path: Path) -> None:
        built = tree(tmp_path, {"bin/a": b"1", "bin/libggml-cpu-x64.so": b"2"}, key="h")
        (tmp_path / "bin" / "libggml-cpu-x64.so").unlink()
        with pytest.raises(PackageError) as caught:
            staged(built, what="host build")
        assert caught.value.code is ExitCode.PACKAGE
        assert caught.value.kind == "staged-file-missing"
        assert "libggml-cpu-x64.so of the host build is gone" in caught.value.what
        assert "antivirus" in caught.value.why


class TestJoin:
    def test_module_comes_beside_the_host(self) -> None:
        joined = join([file("bin/b")], [file("bin/a")])
        assert [p.path for p in joined] == ["bin/a", "bin/b"]

    def test_a_library_both_made_alike_counts_once(self, tmp_path: Path) -> None:
        one = staged(tree(tmp_path / "h", {"bin/l.so": b"same"}, key="h"), what="host")
        two = staged(tree(tmp_path / "m", {"bin/l.so": b"same"}, key="m"), what="module")
        assert join(one, two) == one

    @pytest.mark.parametrize(("ours", "theirs"), [(b"one", b"two"), ("a", b"one"), ("a", "b")])
    def test_a_library_made_differently_is_refused(
        self, tmp_path: Path, ours: bytes | str, theirs: bytes | str
    ) -> None:
        host, module = {"bin/a": b"x", "bin/l": ours}, {"bin/b": b"x", "bin/l": theirs}
        one = staged(tree(tmp_path / "h", host, key="h"), what="host")
        two = staged(tree(tmp_path / "m", module, key="m"), what="module")
        with pytest.raises(PackageError) as caught:
            join(one, two)
        assert caught.value.kind == "host-module-mismatch"
        assert "bin/l" in caught.value.what


class TestBySoname:
    def test_the_file_gets_the_name_that_programs_import(self) -> None:
        placed = (
            link("bin/libx.so", "libx.so.1"),
            link("bin/libx.so.1", "libx.so.1.2"),
            file("bin/libx.so.1.2"),
            file("bin/program"),
        )
        assert shape(by_soname(placed, {"bin/libx.so.1.2": "libx.so.1"})) == {
            "bin/libx.so": "-> libx.so.1",
            "bin/libx.so.1": "libx.so.1.2",
            "bin/program": "program",
        }

    def test_names_of_macos(self) -> None:
        placed = (
            link("bin/libx.0.dylib", "libx.0.9.dylib"),
            link("bin/libx.dylib", "libx.0.dylib"),
            file("bin/libx.0.9.dylib"),
        )
        assert shape(by_soname(placed, {"bin/libx.0.9.dylib": "libx.0.dylib"})) == {
            "bin/libx.0.dylib": "libx.0.9.dylib",
            "bin/libx.dylib": "-> libx.0.dylib",
        }

    def test_a_library_without_a_version_stays(self) -> None:
        placed = (file("bin/libx.so"), file("bin/liby.so"))
        assert by_soname(placed, {"bin/libx.so": "libx.so"}) == placed

    def test_the_name_is_right_even_when_the_link_was_not_staged(self) -> None:
        seen = by_soname((file("bin/libx.so.1.2"),), {"bin/libx.so.1.2": "libx.so.1"})
        assert shape(seen) == {"bin/libx.so.1": "libx.so.1.2"}

    def test_a_copy_under_the_import_name_is_left_for_the_audit(self) -> None:
        placed = (file("bin/libx.so.1"), file("bin/libx.so.1.2"))
        names = {p.path: "libx.so.1" for p in placed}
        assert by_soname(placed, names) == placed

    def test_an_import_name_with_a_folder_moves_nothing(self) -> None:
        placed = (file("bin/libx.so"),)
        assert by_soname(placed, {"bin/libx.so": "../libx.so.1"}) == placed

    def test_links_between_folders_follow_the_file(self) -> None:
        placed = (link("licenses/x", "../bin/libx.so.1.2"), file("bin/libx.so.1.2"))
        seen = by_soname(placed, {"bin/libx.so.1.2": "libx.so.1"})
        assert shape(seen)["licenses/x"] == "-> ../bin/libx.so.1"

    def test_a_dead_link_is_kept_for_the_audit(self) -> None:
        placed = (link("bin/a", "gone"), link("bin/b", "/usr/lib/libc.so.6"))
        assert by_soname(placed, {}) == placed

    def test_no_program_of_the_kits_trees_needs_a_link(self, tmp_path: Path) -> None:
        for content, name in ((linux_host(), "libtiny.so.0"), (macos_host(), "libtiny.0.dylib")):
            built = tree(tmp_path / name, content, key="h")
            placed = staged(built, what="host build")
            long = next(p.path for p in placed if "1.2" in p.path)
            assert not next(
                p for p in by_soname(placed, {long: name}) if p.path == f"bin/{name}"
            ).link


class TestResolveLink:
    def test_through_a_chain(self) -> None:
        placed = (link("bin/a", "b"), link("bin/b", "../lib/c"), file("lib/c"))
        assert resolve_link(placed[0], placed) == "lib/c"

    @pytest.mark.parametrize("target", ["gone", "a", "b", "../../etc/passwd", "/bin/file", "."])
    def test_nowhere(self, target: str) -> None:
        placed = (link("bin/a", target), link("bin/b", "a"), file("bin/file"))
        assert resolve_link(placed[0], placed) == ""


class TestLicenceFiles:
    def source(self, root: Path) -> Path:
        (root / "licenses").mkdir(parents=True)
        (root / "vendor").mkdir()
        (root / "LICENSE").write_bytes(LICENSE)
        (root / "licenses" / "LICENSE-json").write_bytes(b"json")
        (root / "vendor" / "LICENSE").write_bytes(VENDORED)
        return root

    def test_texts_keep_their_folders(self, tmp_path: Path) -> None:
        texts = ("LICENSE", "licenses/LICENSE-json", "vendor/LICENSE")
        seen = licence_files(texts, self.source(tmp_path), ())
        assert [p.path for p in seen] == [
            "licenses/LICENSE",
            "licenses/LICENSE-json",
            "licenses/vendor/LICENSE",
        ]
        assert seen[2].source.read_bytes() == VENDORED

    def test_what_is_staged_under_any_name_is_not_added_again(self, tmp_path: Path) -> None:
        source = self.source(tmp_path / "source")
        built = tree(tmp_path / "host", {"licenses/other-LICENSE": VENDORED}, key="h")
        there = staged(built, what="host build")
        seen = licence_files(("LICENSE", "vendor/LICENSE"), source, there)
        assert [p.path for p in seen] == ["licenses/LICENSE"]

    def test_one_text_named_twice_goes_in_once(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        (source / "COPYING").write_bytes(LICENSE)
        assert len(licence_files(("LICENSE", "COPYING"), source, ())) == 1

    def test_a_missing_text_is_left_to_the_audit(self, tmp_path: Path) -> None:
        assert licence_files(("NOTHING",), self.source(tmp_path), ()) == ()
