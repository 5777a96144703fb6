"""From built trees to the packed file: once, whole, the same again, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import DiskError, ExitCode, PackageError
from llamawright.model.artifact import Artifact
from llamawright.model.built import BuiltTree, Effective
from llamawright.model.platform import Backend
from llamawright.package import pack, packed_before
from llamawright.package.archive import write_archive
from llamawright.package.trees import artifact_key
from llamawright.transfer.opened import open_artifact
from package_binaries import AVX_FUNCTION, elf, pe
from package_kit import (
    MACOS,
    WINDOWS,
    Bench,
    linux_host,
    macos_host,
    plan,
    recipe,
    source,
    windows_host,
    windows_module,
)


def packed(bench: Bench) -> Artifact:
    patched, host, module = bench.trees()
    return pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)


def repacked(bench: Bench, host: BuiltTree, module: BuiltTree | None) -> Artifact:
    patched = source(bench.root / "source")
    return pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)


def changed(base: Mapping[str, bytes | str], **files: bytes | str | None) -> dict[str, bytes | str]:
    """Return a tree with files of ``bin/`` replaced, added, or (``None``) left out."""
    result = dict(base)
    for name, data in files.items():
        path = f"bin/{name}"
        if data is None:
            del result[path]
        else:
            result[path] = data
    return result


class TestPack:
    def test_what_comes_out(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path))
        assert artifact.path.name == "tiny-012345678-vulkan-linux_x86_64.tar.zst"
        assert artifact.path.is_relative_to(tmp_path / "store" / "artifacts")
        assert artifact.size == artifact.path.stat().st_size
        assert artifact.sha256 == sha256_file(artifact.path)
        assert artifact.tests is None
        sidecar = artifact.path.with_name(f"{artifact.path.name}.sha256")
        assert sidecar.read_text() == f"{artifact.sha256}  {artifact.path.name}\n"

    def test_it_opens_as_what_it_says(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path))
        assert open_artifact(artifact.path, tmp_path / "out") == artifact.manifest
        inside = sorted(p.name for p in (tmp_path / "out" / "bin").iterdir())
        assert inside == [
            "libggml-base.so", "libggml-base.so.0", "libggml-cpu-haswell.so", "libggml-cpu-x64.so",
            "libggml-vulkan.so", "libtiny.so", "libtiny.so.0", "tiny-cli",
        ]  # fmt: skip
        assert not (tmp_path / "out" / "bin" / "libtiny.so.0").is_symlink()

    def test_nothing_else_is_left_in_the_store(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path))
        assert sorted(p.name for p in artifact.path.parent.iterdir()) == [
            "manifest.json", artifact.path.name, f"{artifact.path.name}.sha256",
        ]  # fmt: skip
        assert [p.name for p in (tmp_path / "store" / "artifacts").iterdir()] == [
            artifact.path.parent.name
        ]

    def test_timings_and_progress_are_told(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        artifact = packed(bench)
        assert [t.stage for t in artifact.timings] == ["audit", "archive", "check"]
        label, done, total = bench.told.done[-1]
        assert "tiny-012345678" in label
        assert done == total

    def test_the_second_time_nothing_is_written(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        patched, host, module = bench.trees()
        first = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        before = first.path.stat().st_mtime_ns
        shutil.rmtree(host.root)
        again = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        assert replace(again, timings=()) == replace(first, timings=())
        assert again.timings == ()
        assert again.path.stat().st_mtime_ns == before

    def test_a_file_taken_out_of_the_store_is_made_again(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        patched, host, module = bench.trees()
        first = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        first.path.unlink()
        again = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        assert again.path.is_file()
        assert again.sha256 == first.sha256

    def test_two_stores_and_clones_give_the_same_bytes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = packed(Bench(tmp_path / "one"))
        mask = os.umask(0o077)
        monkeypatch.setenv("TZ", "America/Caracas")
        try:
            two = packed(Bench(tmp_path / "another" / "place"))
        finally:
            os.umask(mask)
        assert two.sha256 == one.sha256

    def test_settings_with_paths_do_not_change_the_bytes(self, tmp_path: Path) -> None:
        sums = []
        for name in ("one", "two"):
            bench = Bench(tmp_path / name)
            _, host, module = bench.trees()
            setting = Effective(name="INCLUDE", value=f"{bench.store.root}/tools/x/include")
            host = replace(host, effective=(*host.effective, setting))
            artifact = repacked(bench, host, module)
            assert Effective(name="INCLUDE", value="<store>/tools/x/include") in (
                artifact.manifest.options
            )
            sums.append(artifact.sha256)
        assert sums[0] == sums[1]


class TestOtherSystems:
    def test_windows_gets_a_zip(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path, plan(WINDOWS), windows_host(), windows_module()))
        assert artifact.path.suffix == ".zip"
        manifest = open_artifact(artifact.path, tmp_path / "out")
        assert manifest.toolset == "14.44"
        assert (tmp_path / "out" / "bin" / "ggml-vulkan.dll").is_file()

    def test_macos(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path, plan(MACOS, Backend.CPU), macos_host(), None))
        manifest = open_artifact(artifact.path, tmp_path / "out")
        assert manifest.min_os == "14.0"
        assert not (tmp_path / "out" / "bin" / "libtiny.0.dylib").is_symlink()

    def test_a_cpu_artifact(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path, plan(backend=Backend.CPU), linux_host(), None))
        assert artifact.manifest.capabilities == ()
        assert artifact.manifest.system_libraries == ("libc.so.6",)


class TestTestsArchive:
    def test_a_second_archive_with_the_test_programs(self, tmp_path: Path) -> None:
        artifact = packed(Bench(tmp_path, plan(with_tests=True)))
        assert artifact.tests is not None
        assert artifact.tests.manifest.name == f"{artifact.manifest.name}-tests"
        assert "tiny-test" not in artifact.manifest.programs
        assert artifact.tests.manifest.programs == ("tiny-cli", "tiny-test")
        open_artifact(artifact.tests.path, tmp_path / "out")
        assert (tmp_path / "out" / "bin" / "tiny-test").is_file()
        assert (tmp_path / "out" / "bin" / "libggml-base.so.0").is_file()

    def test_wanting_it_does_not_change_the_main_archive(self, tmp_path: Path) -> None:
        with_tests = packed(Bench(tmp_path / "1", plan(with_tests=True)))
        without = packed(Bench(tmp_path / "2"))
        assert with_tests.sha256 == without.sha256

    def test_its_programs_are_audited(self, tmp_path: Path) -> None:
        host = changed(linux_host(), **{"tiny-test": elf(needed=("libfancy.so",))})
        with pytest.raises(PackageError, match="tests"):
            packed(Bench(tmp_path, plan(with_tests=True), host))

    def test_without_them_they_do_not_matter(self, tmp_path: Path) -> None:
        host = changed(linux_host(), **{"tiny-test": elf(needed=("libfancy.so",))})
        assert packed(Bench(tmp_path, host=host))


class TestFit:
    def test_another_abi(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        _, host, module = bench.trees()
        assert module is not None
        other = replace(
            module, abi="b" * 64,
            effective=(*module.effective, Effective(name="GGML_AVAILABLE_BACKENDS", value="x")),
        )  # fmt: skip
        with pytest.raises(PackageError) as caught:
            repacked(bench, host, other)
        error = caught.value
        assert error.kind == "abi-mismatch"
        assert (
            "GGML_AVAILABLE_BACKENDS: host 'ggml-cpu-x64;ggml-cpu-haswell', module 'x'" in error.why
        )
        assert "GGML_VULKAN:" not in error.why

    def test_a_module_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, module=None))
        assert caught.value.kind == "module-missing"

    def test_a_module_too_many(self, tmp_path: Path) -> None:
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, plan(backend=Backend.CPU)))
        assert caught.value.kind == "module-unexpected"


class TestKey:
    def test_what_changes_the_bytes_changes_the_key(self) -> None:
        keys = {
            artifact_key(plan(), tests=False),
            artifact_key(plan(), tests=True),
            artifact_key(plan(key="x" * 64), tests=False),
            artifact_key(plan(host_key="x" * 64), tests=False),
            artifact_key(plan(recipe=recipe(digest="x" * 64)), tests=False),
            artifact_key(plan(environment=(("SOURCE_DATE_EPOCH", "1800000000"),)), tests=False),
            artifact_key(plan(name="other"), tests=False),
        }
        assert len(keys) == 7

    def test_what_does_not_does_not(self) -> None:
        other = plan(jobs=64, with_tests=True, source="git", warnings=("careful",))
        assert artifact_key(other, tests=False) == artifact_key(plan(), tests=False)


class TestPackedBefore:
    def test_nothing_yet(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        assert packed_before(bench.plan, bench.store) is None

    def test_it_is_what_was_packed(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        artifact = packed(bench)
        assert packed_before(bench.plan, bench.store) == replace(artifact, timings=())

    def test_tests_count_when_they_are_wanted(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        packed(bench)
        wanted = replace(bench.plan, with_tests=True)
        assert packed_before(wanted, bench.store) is None
        artifact = packed(Bench(tmp_path / "t", wanted))
        known = packed_before(wanted, Bench(tmp_path / "t").store)
        assert known is not None
        assert known.tests is not None
        assert artifact.tests is not None
        assert known.tests.sha256 == artifact.tests.sha256

    def test_a_folder_without_a_stamp_is_no_evidence(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        packed(bench)
        shutil.rmtree(bench.store.root / "stamps")
        assert packed_before(bench.plan, bench.store) is None

    def test_a_stamp_without_the_file_is_none_either(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        packed(bench).path.unlink()
        assert packed_before(bench.plan, bench.store) is None


class TestRefused:
    @pytest.mark.parametrize(
        ("files", "kind", "words"),
        [
            ({"tiny-cli": None}, "missing-file", "bin/tiny-cli"),
            ({"libggml-cpu-x64.so": None}, "missing-file", "libggml-cpu-x64.so"),
            ({"libggml-cuda.so": elf(payload=b"stale")}, "unexpected-file", "libggml-cuda.so"),
            ({"tiny-cli": elf(needed=("libfancy.so.1",))}, "foreign-import", "libfancy.so.1"),
            ({"tiny-cli": elf(runpath="/home/me/build")}, "runpath", "/home/me/build"),
            ({"tiny-cli": elf(runpath="$ORIGIN:")}, "runpath", "empty part"),
            ({"tiny-cli": elf(machine="aarch64")}, "foreign-machine", "aarch64"),
            ({"tiny-cli": pe()}, "foreign-machine", "pe file"),
            ({"tiny-cli": b"#!/bin/sh\n"}, "unreadable", "bin/tiny-cli"),
            ({"tiny-cli": elf()[:-20]}, "unreadable", "bin/tiny-cli"),
            ({"tiny-cli": b""}, "unreadable", "bin/tiny-cli"),
            ({"tiny-cli": elf(needed=("libc.musl-x86_64.so.1",))}, "musl", "glibc"),
            ({"tiny-cli": elf(stack="rwx")}, "executable-stack", "bin/tiny-cli"),
            ({"tiny-cli": elf(textrel=True)}, "text-relocations", "bin/tiny-cli"),
            ({"tiny-cli": elf(code=AVX_FUNCTION * 50)}, "illegal-instruction", "50 functions"),
            ({"libggml-cpu-x64.so": elf(code=AVX_FUNCTION * 50)}, "illegal-instruction", "x64"),
            ({"libtiny.so": "../../escape.so"}, "link", "escape.so"),
            ({"libtiny.so": "/usr/lib/libtiny.so"}, "link", "/usr/lib"),
        ],
    )
    def test_with_its_kind_and_nothing_left(
        self, tmp_path: Path, files: dict[str, bytes | str | None], kind: str, words: str
    ) -> None:
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, host=changed(linux_host(), **files)))
        error = caught.value
        assert error.code is ExitCode.PACKAGE
        assert error.kind == kind
        assert words in error.why
        assert error.hint
        assert not list((tmp_path / "store" / "artifacts").iterdir())

    def test_a_lost_module(self, tmp_path: Path) -> None:
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, module={"licenses/EXTRA": b"text"}))
        assert caught.value.kind == "missing-file"
        assert "libggml-vulkan.so" in caught.value.why

    def test_copies_where_links_should_be(self, tmp_path: Path) -> None:
        """A file system without links turns one library into three (cases P4)."""
        host = linux_host()
        copy = host["bin/libtiny.so.0.1.2"]
        host = changed(host, **{"libtiny.so": copy, "libtiny.so.0": copy})
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, host=host))
        assert caught.value.kind == "identical-files"

    def test_the_module_linked_into_a_program(self, tmp_path: Path) -> None:
        host = changed(linux_host(), **{"tiny-cli": elf(needed=("libvulkan.so.1", "libc.so.6"))})
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, host=host))
        assert caught.value.kind == "foreign-import"

    def test_the_stores_own_path_in_a_binary(self, tmp_path: Path) -> None:
        leak = f"\0{tmp_path}/store/work/src/ggml.c\0".encode()
        module = {"bin/libggml-vulkan.so": elf(payload=leak)}
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, module=dict(module)))
        assert caught.value.kind == "path-leak"
        assert "-ffile-prefix-map" in caught.value.hint

    def test_a_folder_with_a_longer_name_is_another_one(self, tmp_path: Path) -> None:
        other = f"\0{tmp_path}/store-of-others/ggml.c\0".encode()
        assert packed(Bench(tmp_path, module={"bin/libggml-vulkan.so": elf(payload=other)}))

    def test_on_windows_that_is_a_warning(self, tmp_path: Path) -> None:
        leak = f"\0{tmp_path}/store/work/src/ggml.c\0".encode()
        bench = Bench(tmp_path, plan(WINDOWS), windows_host(), windows_module())
        bench.host["bin/tiny.dll"] = pe(imports=("ggml-base.dll",), payload=leak)
        packed(bench)
        assert len(bench.told.warnings) == 1
        assert "bin/tiny.dll" in bench.told.warnings[0]

    def test_everything_at_once(self, tmp_path: Path) -> None:
        host = changed(
            linux_host(),
            **{"tiny-cli": elf(needed=("libfancy.so",), runpath="/x", stack="rwx"),
               "libggml-cpu-x64.so": None},
        )  # fmt: skip
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, host=host))
        error = caught.value
        assert error.kind == "audit"
        assert error.what.endswith("4 faults")
        for kind in ("missing-file", "foreign-import", "runpath", "executable-stack"):
            assert f"[{kind}]" in error.why
        assert len(error.hint.splitlines()) == 4

    def test_a_licence_text_that_nobody_has(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        patched, host, module = bench.trees()
        (patched.root / "vendor" / "other" / "LICENSE").unlink()
        with pytest.raises(PackageError) as caught:
            pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        assert caught.value.kind == "missing-licence"
        assert "vendor/other/LICENSE" in caught.value.why

    def test_staged_texts_are_enough(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        bench.host |= {"licenses/LICENSE": b"a", "licenses/vendor-other-LICENSE": b"b"}
        patched, host, module = bench.trees()
        shutil.rmtree(patched.root)
        artifact = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        texts = [f.path for f in artifact.manifest.files if f.path.startswith("licenses/")]
        assert texts == ["licenses/LICENSE", "licenses/vendor-other-LICENSE"]

    def test_a_required_capability(self, tmp_path: Path) -> None:
        rules = tuple(
            replace(r, required_capabilities=("bf16",)) if r.backend is Backend.VULKAN else r
            for r in recipe().backends
        )
        with pytest.raises(PackageError) as caught:
            packed(Bench(tmp_path, plan(recipe=recipe(backends=rules))))
        assert caught.value.kind == "missing-capability"


class TestBrokenOff:
    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_args: object, **_kwargs: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("llamawright.package.packing.write_archive", full)
        with pytest.raises(DiskError) as caught:
            packed(Bench(tmp_path))
        assert caught.value.kind == "disk-full"
        assert not list((tmp_path / "store" / "artifacts").iterdir())

    def test_what_was_written_wrongly_never_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def careless(dest: Path, *args: object, **kwargs: object) -> None:
            write_archive(dest, *args, **kwargs)  # type: ignore[arg-type]
            content = dest.read_bytes()
            dest.write_bytes(content[: len(content) // 2])

        monkeypatch.setattr("llamawright.package.packing.write_archive", careless)
        bench = Bench(tmp_path)
        patched, host, module = bench.trees()
        with pytest.raises(PackageError) as caught:
            pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        assert caught.value.kind == "truncated"
        assert not list((tmp_path / "store" / "artifacts").iterdir())
        monkeypatch.undo()
        assert pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)

    def test_what_a_killed_run_left_is_swept_away(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        patched, host, module = bench.trees()
        left = bench.store.shelf("artifacts", artifact_key(bench.plan, tests=False))
        beside = left.with_name(f".making-{left.name}")
        for folder in (left, beside):
            (folder / "opened").mkdir(parents=True)
            (folder / "half.tar.zst").write_bytes(b"half")
        artifact = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
        assert not beside.exists()
        assert not (left / "half.tar.zst").exists()
        assert open_artifact(artifact.path, tmp_path / "out")
