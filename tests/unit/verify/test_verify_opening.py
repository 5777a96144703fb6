"""A wheel is proved where pip puts it: in a fresh environment, without the network."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.platform import Backend, Platform
from llamawright.model.verdict import State
from llamawright.model.wheel import WHEEL_PACKAGE
from llamawright.verify.cuda_runtime import Runtime, installed_libraries, provide_runtime
from llamawright.verify.install import Install
from llamawright.verify.opening import open_install
from package_kit import WINDOWS
from verify_kit import LINUX, PROGRAMS, Bench, bench, manifest
from wheel_kit import TAG, Edits, facts, write_dependency, write_wheel

__all__ = ["bench"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wheels are Linux's")
PROGRAM = f"{WHEEL_PACKAGE}/_programs.py"


def told(bench: Bench, platform: Platform) -> Manifest:
    name = "llamawright_llama_cpp-0.0.11312+vulkan-linux_x86_64"
    return manifest(bench.tree, name=name, programs=PROGRAMS, platform=platform)


def wheel(
    bench: Bench,
    edits: Edits | None = None,
    *,
    tag: str = TAG,
    requires: tuple[str, ...] = (),
    platform: Platform = LINUX,
) -> Path:
    """Write the wheel of the fake programs, which behave as a good device."""
    bench.artifact()
    (bench.root / "dist").mkdir(exist_ok=True)
    return write_wheel(
        bench.root / "dist", bench.tree, told(bench, platform), tag=tag, edits=edits,
        scratch=Path(mkdtemp(dir=bench.root)), requires=requires,
    )  # fmt: skip


def test_a_wheel_is_proved_like_an_archive_and_bound_to_its_own_sum(bench: Bench) -> None:
    path = wheel(bench)
    verdict = bench.verify(path)
    assert (verdict.state, verdict.failure) == (State.VERIFIED, "")
    assert verdict.artifact == path.name
    assert verdict.artifact_sha256 == sha256_file(path)
    assert any(c.name == "module mapped" for c in verdict.checks)


def test_the_programs_are_those_that_were_installed_whatever_pips_settings_say(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONSTRAINT", "/nowhere/constraints.txt")
    monkeypatch.setenv("PIP_TARGET", str(bench.root / "elsewhere"))
    monkeypatch.setenv("PYTHONPATH", str(bench.root))
    opened = open_install(bench.request(wheel(bench)), bench.root / "venv")
    assert opened.refused is None
    assert opened.root.name == WHEEL_PACKAGE
    assert opened.root.parent.name == "site-packages"
    assert (bench.root / "venv").resolve() in opened.root.parents
    assert (bench.root / "venv" / "bin" / "llama-completion").is_file()
    assert not (bench.root / "elsewhere").exists()


def test_a_wheel_without_its_module_fails_as_an_archive_does(bench: Bench) -> None:
    path = wheel(bench, {f"{WHEEL_PACKAGE}/bin/libggml-vulkan.so": None})
    verdict = bench.verify(path)
    assert (verdict.state, verdict.failure) == (State.FAILED, "module-missing")
    assert "libggml-vulkan.so" in verdict.why


def test_a_changed_library_fails_before_anything_is_installed(bench: Bench) -> None:
    path = wheel(bench, {f"{WHEEL_PACKAGE}/bin/libggml-vulkan.so": b"other"})
    verdict = bench.verify(path)
    assert (verdict.state, verdict.failure) == (State.FAILED, "hash-mismatch")


def test_a_command_that_does_not_become_its_program_fails(bench: Bench) -> None:
    code = "import sys\n" + "".join(
        f"def {name.replace('-', '_')}():\n    print('something else'); return 0\n"
        for name in PROGRAMS
    )
    verdict = bench.verify(wheel(bench, {PROGRAM: code.encode()}))
    assert (verdict.state, verdict.failure) == (State.FAILED, "console-script")
    assert "llama-completion --version" in verdict.why
    assert verdict.hint


def test_a_tag_that_this_machine_is_too_old_for_cannot_be_proved_here(bench: Bench) -> None:
    verdict = bench.verify(wheel(bench, tag="manylinux_2_99_x86_64"))
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "not-installable")
    assert "not a supported wheel on this platform" in verdict.why


def test_a_wheel_of_another_platform_is_not_installed(bench: Bench) -> None:
    verdict = bench.verify(wheel(bench, platform=WINDOWS))
    assert (verdict.state, verdict.failure) == (State.CANNOT_VERIFY, "other-platform")


def test_an_archive_of_another_platform_neither(bench: Bench) -> None:
    verdict = bench.verify(bench.artifact(), platform=WINDOWS)
    assert verdict.failure == "other-platform"


def test_a_wheel_that_is_not_whole_is_an_error(bench: Bench) -> None:
    path = wheel(bench)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(PackageError) as caught:
        bench.verify(path)
    assert caught.value.kind == "truncated"


class TestDependencies:
    CUDART = "nvidia/cu13/lib/libcudart.so.13"

    def test_what_lies_beside_the_wheel_is_installed_too(self, bench: Bench) -> None:
        path = wheel(bench, requires=("nvidia-cuda-runtime~=13.0",))
        write_dependency(path.parent, "nvidia-cuda-runtime", "13.0.48", {self.CUDART: b"cudart"})
        opened = open_install(bench.request(path), bench.root / "venv")
        assert (opened.root.parent / self.CUDART).read_bytes() == b"cudart"

    def test_another_folder_can_be_named(self, bench: Bench) -> None:
        path = wheel(bench, requires=("nvidia-cuda-runtime~=13.0",))
        shelf = bench.root / "shelf"
        shelf.mkdir()
        write_dependency(shelf, "nvidia-cuda-runtime", "13.5.37", {self.CUDART: b"newer"})
        opened = open_install(bench.request(path, find_links=(shelf,)), bench.root / "venv")
        assert (opened.root.parent / self.CUDART).read_bytes() == b"newer"

    def test_without_one_that_fits_the_wheel_is_installed_alone(self, bench: Bench) -> None:
        """Then the proof itself says which library is missing."""
        path = wheel(bench, requires=("nvidia-cuda-runtime~=13.0",))
        write_dependency(path.parent, "nvidia-cuda-runtime", "14.0.1", {self.CUDART: b"wrong"})
        opened = open_install(bench.request(path), bench.root / "venv")
        assert opened.refused is None
        assert not (opened.root.parent / "nvidia").exists()


class TestRunPath:
    """Libraries that a module's own run path leads to are found, whatever the loader knows."""

    def install(self, root: Path, *names: str) -> tuple[Install, Manifest]:
        package, shelf = root / WHEEL_PACKAGE, root / "nvidia" / "cu13" / "lib"
        (package / "bin").mkdir(parents=True)
        shelf.mkdir(parents=True)
        for name in names:
            (shelf / name).write_bytes(b"x")
        module = facts(
            "libggml-cuda.so",
            imports=("libcudart.so.13", "libcublas.so.13", "libcuda.so.1"),
            runpath=("$ORIGIN", "$ORIGIN/../../nvidia/cu13/lib"),
        )
        told = manifest(package, backend=Backend.CUDA, binaries=(module,))
        return Install(root=package, platform=LINUX), told

    def runtime(self, root: Path, *names: str) -> Runtime | object:
        install, told = self.install(root, *names)
        return provide_runtime(None, install, told, folder=root, env={}, seconds=20)

    def test_both_are_found_and_told(self, tmp_path: Path) -> None:
        install, told = self.install(tmp_path, "libcudart.so.13", "libcublas.so.13")
        assert installed_libraries(install, told) == ("libcublas.so.13", "libcudart.so.13")
        found = provide_runtime(None, install, told, folder=tmp_path, env={}, seconds=20)
        assert found == Runtime(told="libcublas.so.13, libcudart.so.13 installed beside the wheel")

    def test_one_that_is_missing_is_named_alone(self, tmp_path: Path) -> None:
        ruling = self.runtime(tmp_path, "libcudart.so.13")
        assert getattr(ruling, "failure", "") == "runtime-missing"
        assert "libcublas.so.13" in getattr(ruling, "why", "")
        assert "libcudart.so.13" not in getattr(ruling, "why", "")

    def test_a_run_path_to_the_artifact_itself_is_not_meant(self, tmp_path: Path) -> None:
        install, told = self.install(tmp_path)
        (install.bin / "libcudart.so.13").write_bytes(b"x")
        assert installed_libraries(install, told) == ()
