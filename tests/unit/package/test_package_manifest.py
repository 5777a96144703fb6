"""What an artifact says about itself: every field filled, nothing of this machine in it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from llamawright import __version__, codec
from llamawright.model.artifact import MANIFEST_SCHEMA, Manifest
from llamawright.model.built import Effective
from llamawright.model.platform import Backend
from llamawright.package.examine import examine
from llamawright.package.manifest import in_effect, manifest_of, neutral
from llamawright.package.schema import manifest_schema
from llamawright.package.trees import Trees
from llamawright.transfer.opened import read_manifest
from package_kit import (
    DATE,
    MACOS,
    WINDOWS,
    Bench,
    capability,
    macos_host,
    plan,
    recipe,
    source,
    tree,
    windows_host,
    windows_module,
)

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "package"
SCHEMA_PAGE = ROOT / "docs" / "reference" / "manifest.schema.json"


def manifest(bench: Bench, *, tests: bool = False) -> Manifest:
    patched, host, module = bench.trees()
    trees = Trees(plan=bench.plan, patched=patched, host=host, module=module, tests=tests)
    examined = examine(trees, private=())
    private = {bench.root: "<store>"}
    return manifest_of(trees, subject=examined.subject, measured=examined.measured, private=private)


class TestFields:
    def test_where_it_comes_from(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        assert seen.schema == MANIFEST_SCHEMA
        assert seen.name == "tiny-012345678-vulkan-linux_x86_64"
        assert (seen.upstream, seen.commit, seen.build_number) == (
            "someone/tiny",
            "0123456789" * 4,
            7,
        )
        assert (seen.version, seen.key, seen.abi) == ("1.2", "k" * 64, "a" * 64)
        assert (seen.source_digest, seen.patched_digest) == ("s" * 64, "p" * 64)
        assert [p.name for p in seen.inputs] == ["tree", "cxx"]
        assert seen.timestamp == DATE
        assert seen.generator == f"llamawright {__version__}"

    def test_only_applied_patches_count_and_retired_ones_are_named(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        assert [p.name for p in seen.patches] == ["0001-a"]
        assert seen.retired == ("0002-b",)

    def test_tools_have_digests_and_the_cache_is_none(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        assert [(t.role, t.name, t.version) for t in seen.tools] == [
            ("c++ compiler", "gcc", "1.0"), ("ninja", "ninja", "1.0"),
        ]  # fmt: skip
        assert all(len(t.sha256) == 64 and t.where for t in seen.tools)

    def test_capabilities_gained_and_lost(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        patched, host, module = bench.trees()
        assert module is not None
        states = (capability("coopmat", present=True), capability("bf16", present=False))
        trees = Trees(
            plan=bench.plan, patched=patched, host=host, module=replace(module, capabilities=states)
        )
        examined = examine(trees, private=())
        seen = manifest_of(trees, subject=examined.subject, measured=examined.measured, private={})
        assert [(c.name, c.present, c.cost) for c in seen.capabilities] == [
            ("coopmat", True, "slow without coopmat"), ("bf16", False, "slow without bf16"),
        ]  # fmt: skip

    def test_modules_and_programs(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        assert seen.modules == (
            "libggml-cpu-haswell.so", "libggml-cpu-x64.so", "libggml-vulkan.so",
        )  # fmt: skip
        assert seen.programs == ("tiny-cli",)
        assert manifest(Bench(tmp_path / "t"), tests=True).programs == ("tiny-cli", "tiny-test")

    def test_floors_are_the_highest_of_all_files(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        assert (seen.glibc, seen.glibcxx, seen.cxxabi) == ("2.38", "3.4.30", "1.3.13")
        assert (seen.toolset, seen.min_os) == ("", "")

    def test_floors_of_windows(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path, plan(WINDOWS), windows_host(), windows_module())
        seen = manifest(bench)
        assert (seen.toolset, seen.glibc) == ("14.44", "")
        assert seen.system_libraries == ("KERNEL32.dll", "vulkan-1.dll")

    def test_floors_of_macos(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path, plan(MACOS, Backend.CPU), macos_host(), None)
        seen = manifest(bench)
        assert (seen.min_os, seen.capabilities) == ("14.0", ())

    def test_files_have_everything_and_links_the_content_behind_them(self, tmp_path: Path) -> None:
        seen = {f.path: f for f in manifest(Bench(tmp_path)).files}
        assert list(seen) == sorted(seen)
        library, link = seen["bin/libtiny.so.0"], seen["bin/libtiny.so"]
        assert (library.link, link.link) == ("", "libtiny.so.0")
        assert (link.sha256, link.size) == (library.sha256, library.size)
        assert library.executable
        assert not link.executable
        assert seen["licenses/vendor/other/LICENSE"].size == 19

    def test_every_binary_and_no_link_is_among_the_binaries(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        files = [f.path for f in seen.files if f.path.startswith("bin/") and not f.link]
        assert sorted(b.path for b in seen.binaries) == files

    def test_native_artifacts_say_so(self, tmp_path: Path) -> None:
        options = tuple(
            replace(o, value="ON") if o.name == "GGML_NATIVE" else o for o in plan().host_options
        )
        assert manifest(Bench(tmp_path, plan(host_options=options))).native
        assert not manifest(Bench(tmp_path / "n")).native

    def test_no_field_is_left_empty(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        foreign = {"toolset", "min_os", "native", "cuda"}
        empty = {f.name for f in fields(seen) if not getattr(seen, f.name)}
        assert empty == foreign


class TestOptions:
    def test_the_modules_own_entries_count(self, tmp_path: Path) -> None:
        host = tree(tmp_path, {}, key="h", effective=(e("B", "1"), e("A", "OFF")))
        module = replace(host, effective=(e("A", "ON"), e("C", "3")))
        assert in_effect(host, module, {}) == (e("A", "ON"), e("B", "1"), e("C", "3"))

    def test_folders_of_this_machine_are_replaced(self, tmp_path: Path) -> None:
        host = tree(tmp_path, {}, key="h", effective=(e("DIR", "/home/me/store/tools/x"),))
        private = {Path("/home/me"): "~", Path("/home/me/store"): "<store>"}
        assert in_effect(host, None, private) == (e("DIR", "<store>/tools/x"),)

    def test_the_deepest_folder_wins(self) -> None:
        private = {Path("/a"): "<a>", Path("/a/b/c"): "<c>", Path("/a/b"): "<b>"}
        assert neutral("/a/b/c/x;/a/b/y;/a/z;/q", private) == "<c>/x;<b>/y;<a>/z;/q"

    @pytest.mark.parametrize(
        ("text", "seen"),
        [("/root", "~"), ("/rootless", "/rootless"), ("/root.old/x", "/root.old/x"),
         ("-I/root;/root:/root", "-I~;~:~"), ("/usr/bin", "/usr/bin")],
    )  # fmt: skip
    def test_only_whole_names_count(self, text: str, seen: str) -> None:
        assert neutral(text, {Path("/root"): "~", Path("/"): "never"}) == seen


def e(name: str, value: str) -> Effective:
    return Effective(name=name, value=value)


class TestDates:
    @pytest.mark.parametrize(
        ("said", "pinned", "date"),
        [("1700000123", 5, 1_700_000_123), ("", DATE, DATE), ("tomorrow", DATE, DATE),
         ("0", DATE, 315_532_800), ("", 0, 315_532_800)],
    )  # fmt: skip
    def test_plan_then_recipe_but_never_before_1980(
        self, tmp_path: Path, said: str, pinned: int, date: int
    ) -> None:
        changed = recipe(source=replace(recipe().source, timestamp=pinned))
        named = (("SOURCE_DATE_EPOCH", said),) if said else ()
        host = tree(tmp_path / "h", {}, key="h")
        trees = Trees(
            plan=plan(recipe=changed, environment=named), patched=source(tmp_path / "s"),
            host=host, module=None,
        )  # fmt: skip
        assert trees.timestamp == date


class TestText:
    def test_it_reads_back_as_it_was(self, tmp_path: Path) -> None:
        seen = manifest(Bench(tmp_path))
        (tmp_path / "manifest.json").write_text(codec.encode(seen), encoding="utf-8")
        assert read_manifest(tmp_path, what="it") == seen

    @pytest.mark.parametrize("system", ["linux", "windows", "macos"])
    def test_golden(self, tmp_path: Path, system: str) -> None:
        """Whoever changes the manifest sees here what readers of it will see."""
        bench = {
            "linux": Bench(tmp_path),
            "windows": Bench(tmp_path, plan(WINDOWS), windows_host(), windows_module()),
            "macos": Bench(tmp_path, plan(MACOS, Backend.CPU), macos_host(), None),
        }[system]
        text = codec.encode(replace(manifest(bench), generator="llamawright"))
        golden = GOLDEN / f"manifest-{system}.json"
        assert text == golden.read_text(encoding="utf-8")


class TestSchema:
    def test_the_reference_page_is_up_to_date(self) -> None:
        assert SCHEMA_PAGE.read_text(encoding="utf-8") == manifest_schema(), (
            "write it again: llamawright.package.manifest_schema()"
        )

    def test_it_describes_every_field(self) -> None:
        schema = json.loads(manifest_schema())
        assert schema["$id"] == MANIFEST_SCHEMA
        assert set(schema["properties"]) == {f.name for f in fields(Manifest)}
        assert {"schema", "name", "key", "files", "glibc"} <= set(schema["required"])
