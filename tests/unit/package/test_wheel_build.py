"""A wheel from a packed artifact, through scikit-build-core for real: contents, modes, bytes."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import PackageError, ToolMissingError
from llamawright.model.artifact import Artifact
from llamawright.model.wheel import BuiltWheel
from llamawright.package import pack
from llamawright.package.wheels import audit_wheel, build_wheel
from llamawright.package.wheels import build as build_module
from llamawright.package.wheels.canonical import rewrite
from llamawright.package.wheels.runpath import set_runpath
from llamawright.transfer.wheel import read_wheel
from package_kit import DATE, Bench

NAME = "llamawright_llama_cpp-0.0.7+vulkan-py3-none-manylinux_2_38_x86_64.whl"
INFO = "llamawright_llama_cpp-0.0.7+vulkan.dist-info"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the artifacts are Linux's")


@dataclass
class Made:
    bench: Bench
    artifact: Artifact
    wheel: BuiltWheel

    @property
    def zipped(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.wheel.path)

    def text(self, name: str) -> str:
        return self.zipped.read(name).decode()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("wheel")
    bench = Bench(root)
    patched, host, module = bench.trees()
    artifact = pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)
    wheel = build_wheel(artifact, root / "dist", store=bench.store, reporter=bench.told)
    return Made(bench, artifact, wheel)


def test_the_measured_tag_is_in_name_and_metadata(made: Made) -> None:
    assert made.wheel.path.name == NAME
    assert "Tag: py3-none-manylinux_2_38_x86_64\n" in made.text(f"{INFO}/WHEEL")
    assert "Root-Is-Purelib: false\n" in made.text(f"{INFO}/WHEEL")
    assert made.wheel.claim.glibc == "2.38"


def test_each_library_is_in_it_once_under_its_soname(made: Made) -> None:
    names = [n for n in made.zipped.namelist() if "/bin/" in n]
    assert [n.rpartition("/")[2] for n in names] == [
        "libggml-base.so.0", "libggml-cpu-haswell.so", "libggml-cpu-x64.so", "libggml-vulkan.so",
        "libtiny.so.0", "tiny-cli",
    ]  # fmt: skip


def test_only_programs_are_executable_and_all_dates_are_one(made: Made) -> None:
    modes = {m.filename: (m.external_attr >> 16) & 0o777 for m in made.zipped.infolist()}
    runs = {name for name, mode in modes.items() if mode == 0o755}
    assert runs == {"llamawright_llama_cpp/bin/tiny-cli"}
    assert set(modes.values()) == {0o755, 0o644}
    assert len({m.date_time for m in made.zipped.infolist()}) == 1


def test_files_are_sorted_and_record_comes_last(made: Made) -> None:
    names = made.zipped.namelist()
    own = [n for n in names if not n.startswith(INFO)]
    meta = names[len(own) :]
    assert own == sorted(own)
    assert meta[:-1] == sorted(meta[:-1])
    assert meta[-1] == f"{INFO}/RECORD"


def test_record_lists_every_file(made: Made) -> None:
    rows = list(csv.reader(io.StringIO(made.text(f"{INFO}/RECORD"))))
    assert [row[0] for row in rows] == made.zipped.namelist()
    assert rows[-1][1:] == ["", ""]


def test_licences_and_manifest_are_metadata(made: Made) -> None:
    names = made.zipped.namelist()
    assert f"{INFO}/licenses/licenses/LICENSE" in names
    assert f"{INFO}/licenses/licenses/vendor/other/LICENSE" in names
    assert f"{INFO}/llamawright/manifest.json" in names
    assert made.text(f"{INFO}/llamawright/manifest.json") == made.text(
        "llamawright_llama_cpp/manifest.json"
    )


def test_its_manifest_is_the_archives_but_for_the_files(made: Made) -> None:
    own, archive = made.wheel.contents.manifest, made.artifact.manifest
    assert own.name == "llamawright_llama_cpp-0.0.7+vulkan-linux_x86_64"
    assert (own.key, own.commit, own.patches, own.tools) == (
        archive.key, archive.commit, archive.patches, archive.tools,
    )  # fmt: skip
    assert not any(entry.link for entry in own.files)
    assert {e.path for e in own.files if e.executable} == {"bin/tiny-cli"}
    assert made.wheel.source_sha256 == made.artifact.sha256


def test_there_is_a_command_for_each_program(made: Made) -> None:
    assert made.wheel.contents.scripts == (
        ("tiny-cli", "llamawright_llama_cpp._programs:tiny_cli"),
    )
    assert made.wheel.contents.requires == ()


def test_the_sum_beside_it_is_its_own(made: Made) -> None:
    line = made.wheel.path.with_name(f"{NAME}.sha256").read_text()
    assert line == f"{sha256_file(made.wheel.path)}  {NAME}\n"
    assert made.wheel.sha256 == sha256_file(made.wheel.path)


def test_nothing_is_left_in_the_store_or_beside_the_wheel(made: Made) -> None:
    assert {p.name for p in made.wheel.path.parent.iterdir()} == {NAME, f"{NAME}.sha256"}
    assert not list((made.bench.store.root / "work").glob("wheel-*"))


def test_the_same_archive_gives_the_same_bytes(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere, at another date, with another umask and time zone."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(DATE + 86_400))
    before = os.umask(0o077)
    try:
        again = build_wheel(
            made.artifact, tmp_path, store=Bench(tmp_path / "b").store, reporter=made.bench.told
        )
    finally:
        os.umask(before)
    assert again.sha256 == made.wheel.sha256


def test_a_measured_wheel_is_the_same_as_a_built_one(made: Made) -> None:
    seen = audit_wheel(made.wheel.path, store=made.bench.store, reporter=made.bench.told)
    assert (seen.sha256, seen.claim, seen.contents) == (
        made.wheel.sha256, made.wheel.claim, made.wheel.contents,
    )  # fmt: skip
    assert seen.source_sha256 == ""


def test_a_wheel_that_claims_less_than_it_needs_is_refused(made: Made, tmp_path: Path) -> None:
    lower = tmp_path / NAME.replace("2_38", "2_28")
    rewrite(made.wheel.path, lower, platform_tag="manylinux_2_28_x86_64", date=DATE)
    assert read_wheel(lower).tags == ("py3-none-manylinux_2_28_x86_64",)
    with pytest.raises(PackageError, match="audit refuses") as caught:
        audit_wheel(lower, store=made.bench.store, reporter=made.bench.told)
    assert (caught.value.kind, int(caught.value.code)) == ("platform-claim", 9)


def test_a_failing_backend_is_told_with_its_log_and_leaves_nothing(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "CALL", "print('no cmake here'); raise SystemExit(3)")
    with pytest.raises(PackageError, match="scikit-build-core made no wheel") as caught:
        build_wheel(
            made.artifact, tmp_path / "dist", store=made.bench.store, reporter=made.bench.told
        )
    error = caught.value
    assert (error.kind, "ended with 3" in error.why) == ("wheel-backend", True)
    assert "no cmake here" in Path(error.log).read_text()
    assert not (tmp_path / "dist").exists()


class TestPython:
    """The module and the commands, as generated."""

    @pytest.fixture
    def site(self, made: Made, tmp_path: Path) -> Path:
        made.zipped.extractall(tmp_path)
        program = tmp_path / "llamawright_llama_cpp" / "bin" / "tiny-cli"
        program.write_text('#!/bin/sh\n[ "$1" = die ] && kill -TERM $$\necho "$0|$1|$2"\nexit 7\n')
        program.chmod(0o755)
        return tmp_path

    def python(self, site: Path, code: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *words], env={"PYTHONPATH": str(site)}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip

    CALL = "import sys; from llamawright_llama_cpp._programs import tiny_cli; sys.exit(tiny_cli())"

    def test_a_command_becomes_its_program(self, site: Path) -> None:
        seen = self.python(site, self.CALL, "one two", "*")
        program = site / "llamawright_llama_cpp" / "bin" / "tiny-cli"
        assert (seen.returncode, seen.stdout) == (7, f"{program}|one two|*\n")

    def test_a_signal_is_the_programs_own(self, site: Path) -> None:
        assert self.python(site, self.CALL, "die").returncode == -15

    def test_the_module_tells_paths_and_manifest(self, site: Path) -> None:
        code = (
            "import llamawright_llama_cpp as m; print(m.__version__, m.bin_dir().name,"
            " m.lib_dir().name, m.program('tiny-cli').name, m.manifest()['build_number'])"
        )
        assert self.python(site, code).stdout.split() == [
            "0.0.7+vulkan", "bin", "bin", "tiny-cli", "7",
        ]  # fmt: skip

    def test_a_program_that_is_not_there_is_named(self, site: Path) -> None:
        seen = self.python(site, "import llamawright_llama_cpp as m; m.program('llama-tea')")
        assert "FileNotFoundError" in seen.stderr
        assert "this wheel has no program llama-tea" in seen.stderr


class TestRunpath:
    PARTS = ("$ORIGIN", "$ORIGIN/../../nvidia/cu13/lib")
    READ = (
        "import lief, sys; elf = lief.parse(sys.argv[1]);"
        "print(elf.get(lief.ELF.DynamicEntry.TAG.RUNPATH).runpath)"
    )

    @pytest.fixture
    def library(self, tmp_path: Path) -> Path:
        real = Path("/usr/bin/env").resolve()
        place = tmp_path / "libx.so"
        place.write_bytes(real.read_bytes())
        return place

    def test_it_is_set_and_read_back(self, library: Path) -> None:
        set_runpath(library, self.PARTS)
        told = subprocess.run(
            [sys.executable, "-c", self.READ, str(library)],
            text=True,
            capture_output=True,
            check=True,
        ).stdout
        assert told.strip() == ":".join(self.PARTS)

    def test_what_is_no_library_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("no library")
        with pytest.raises(PackageError, match="could not be set") as caught:
            set_runpath(tmp_path / "x", self.PARTS)
        assert caught.value.kind == "runpath"

    def test_without_patchelf_the_cure_is_named(
        self, library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shutil.which", lambda *_words, **_more: None)
        with pytest.raises(ToolMissingError, match="patchelf is missing") as caught:
            set_runpath(library, self.PARTS)
        assert (caught.value.kind, int(caught.value.code)) == ("no-patchelf", 4)
