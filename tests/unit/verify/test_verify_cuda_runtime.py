"""CUDA's libraries: companion archive, the system's loader, a toolkit that nobody told it of."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.model.cuda import Companion
from llamawright.model.platform import Backend
from llamawright.model.verdict import Device, Outcome, State
from llamawright.process import base_environment
from llamawright.verify.cuda_evidence import capability, device_code, runtime
from llamawright.verify.cuda_gate import Access
from llamawright.verify.cuda_runtime import (
    Runtime,
    check_companion,
    missing_libraries,
    provide_runtime,
    toolkit_folder,
    wanted_libraries,
)
from llamawright.verify.cuda_setup import (
    CudaScene,
    not_listed,
    nothing_seen,
    run_variables,
    set_variables,
)
from llamawright.verify.install import Install
from llamawright.verify.judge import Ruling
from llamawright.verify.patterns_cuda import CUDA_VARIABLES
from llamawright.verify.witness import Sighting, Witness
from verify_cuda_kit import COMPANION, CudaBench, cuda, cuda_facts, imports
from verify_kit import LINUX, manifest

__all__ = ["cuda"]

CARD = Witness(index=0, name="NVIDIA H200", software=False, driver="NVIDIA 580.1", pci="",
               memory=1, capability=90)  # fmt: skip
DEVICE = Device(id="CUDA0", name="NVIDIA H200", backend="cuda", memory=1, software=False)


def install(root: Path, *names: str) -> Install:
    (root / "bin").mkdir(parents=True, exist_ok=True)
    for name in names:
        (root / "bin" / name).write_bytes(b"x")
    return Install(root=root, platform=LINUX)


def provide(
    companion: Companion | None, place: Install, folder: Path, *names: str
) -> Runtime | Ruling:
    told = manifest(place.root, backend=Backend.CUDA, binaries=(imports(*names),))
    env = base_environment()
    return provide_runtime(companion, place, told, folder=folder, env=env, seconds=20)


def test_a_companion_is_unpacked_and_its_names_are_kept(cuda: CudaBench, tmp_path: Path) -> None:
    companion = cuda.companion("libcudart.so.12", "LICENSE/cuda.txt")
    place = install(tmp_path / "a", "llama-bench")
    found = provide(companion, place, cuda.root, "libcudart.so.12")
    assert isinstance(found, Runtime)
    assert found.added == {"libcudart.so.12"}
    assert COMPANION in found.told
    assert (place.bin / "libcudart.so.12").is_file()
    assert (place.root / "LICENSE" / "cuda.txt").is_file()


def test_a_companion_that_would_overwrite_the_artifact_is_refused(
    cuda: CudaBench, tmp_path: Path
) -> None:
    companion = cuda.companion("llama-bench")
    place = install(tmp_path / "a", "llama-bench")
    found = provide(companion, place, cuda.root)
    assert isinstance(found, Ruling)
    assert (found.state, found.failure) == (State.FAILED, "companion-mismatch")
    assert (place.bin / "llama-bench").read_bytes() == b"x"


def test_a_companion_that_is_no_archive_is_refused(cuda: CudaBench, tmp_path: Path) -> None:
    companion = cuda.companion("libcudart.so.12")
    (cuda.root / COMPANION).write_bytes(b"<html>not found</html>")
    found = provide(companion, install(tmp_path / "a"), cuda.root)
    assert isinstance(found, Ruling)
    assert found.failure == "companion-mismatch"


def test_only_the_companion_of_the_same_build_is_taken(cuda: CudaBench) -> None:
    companion = cuda.companion("libcudart.so.12")
    assert check_companion(companion, cuda.root) is None
    assert check_companion(None, cuda.root) is None
    assert check_companion(replace(companion, file=""), cuda.root) is None
    assert check_companion(companion, cuda.root / "elsewhere") is None, "absent is another matter"
    ruling = check_companion(replace(companion, sha256="f" * 64), cuda.root)
    assert ruling is not None
    assert ruling.failure == "companion-mismatch"
    assert str(companion.size) in ruling.why


def test_what_is_needed_is_what_the_files_import_and_do_not_bring(tmp_path: Path) -> None:
    place = install(tmp_path, "libcublas.so.12")
    names = ("libcudart.so.12", "libcublas.so.12", "libcuda.so.1", "libc.so.6", "libggml-base.so")
    told = manifest(tmp_path, binaries=(imports(*names),))
    assert wanted_libraries(None, place, told) == ("libcudart.so.12",)
    companion = Companion(file="c", sha256="", size=1, libraries=("libcudart.so.13", "x.txt"))
    assert wanted_libraries(companion, place, told) == ("libcudart.so.12",)
    bare = manifest(tmp_path)
    assert wanted_libraries(companion, place, bare) == ("libcudart.so.13",)
    assert wanted_libraries(None, place, bare) == ()


def test_the_systems_loader_is_asked_in_a_child() -> None:
    env = base_environment()
    assert missing_libraries((), env, 20) == {}
    assert missing_libraries(("libc.so.6",), env, 20) == {}
    found = missing_libraries(("libcudart.so.99", "libc.so.6"), env, 20)
    assert list(found) == ["libcudart.so.99"]
    assert "cannot open" in found["libcudart.so.99"]


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print('[1, 2]')", "print('{')"])
def test_a_loader_that_dies_accuses_nobody(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr("llamawright.verify.cuda_runtime.LOAD", program)
    assert missing_libraries(("libcudart.so.99",), base_environment(), 20) == {}


def test_nothing_needed_is_nothing_missing(tmp_path: Path) -> None:
    found = provide(None, install(tmp_path), tmp_path, "libc.so.6")
    assert found == Runtime(told="none is imported")


def test_a_toolkit_folder_must_hold_all_of_them(tmp_path: Path) -> None:
    for version, names in (("12.4", ("a.so",)), ("12.9", ("a.so", "b.so")), ("13.0", ("c.so",))):
        folder = tmp_path / f"cuda-{version}" / "lib64"
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_bytes(b"")
    patterns = (f"{tmp_path}/cuda*/lib64",)
    assert toolkit_folder(["a.so"], patterns) == tmp_path / "cuda-12.9" / "lib64"
    assert toolkit_folder(["a.so", "c.so"], patterns) is None
    assert toolkit_folder(["a.so"], ()) is None


def scene(tmp_path: Path, sighting: Sighting | None = None, **changes: object) -> CudaScene:
    return CudaScene(
        facts=cuda_facts(**changes), sighting=sighting or Sighting(devices=(CARD,)), env={},
        folder=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "state", "failure"),
    [
        ("libcudart.so.12: cannot open shared object file: No such file", State.CANNOT_VERIFY,
         "runtime-missing"),
        ("libcublas.so.12: cannot open shared object file: No such file", State.CANNOT_VERIFY,
         "runtime-missing"),
        ("libcuda.so.1: cannot open shared object file: No such file", State.CANNOT_VERIFY,
         "driver-library-missing"),
        ("libggml-base.so: cannot open shared object file", State.FAILED, "module-not-loaded"),
        ("undefined symbol: ggml_abort", State.FAILED, "module-not-loaded"),
        ("invalid ELF header", State.FAILED, "module-not-loaded"),
    ],
)  # fmt: skip
def test_why_a_module_was_not_loaded(
    tmp_path: Path, reason: str, state: State, failure: str
) -> None:
    ruling = not_listed(scene(tmp_path), (), module="libggml-cuda.so", loaded=False, reason=reason)
    assert (ruling.state, ruling.failure) == (state, failure)
    assert ruling.hint
    if failure != "runtime-missing":
        assert reason in ruling.why
        assert "libggml-cuda.so" in ruling.why


def test_a_module_without_its_runtime_names_the_companion(tmp_path: Path) -> None:
    companion = Companion(file=COMPANION, sha256="", size=1, libraries=())
    ruling = not_listed(
        scene(tmp_path, companion=companion), (), module="m", loaded=False,
        reason="libcudart.so.12: cannot open shared object file",
    )  # fmt: skip
    assert COMPANION in ruling.hint
    assert str(tmp_path) in ruling.why


@pytest.mark.parametrize(
    ("words", "state", "failure"),
    [
        ("ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected",
         State.CANNOT_VERIFY, "device-hidden"),
        ("CUDA: system has unsupported display driver / cuda driver combination",
         State.CANNOT_VERIFY, "driver-mismatch"),
        ("nothing of interest", State.FAILED, "device-not-listed"),
    ],
)  # fmt: skip
def test_why_a_loaded_module_lists_nothing(
    tmp_path: Path, words: str, state: State, failure: str
) -> None:
    ruling = not_listed(scene(tmp_path), (words,), module="", loaded=True, reason="")
    assert (ruling.state, ruling.failure) == (state, failure)
    assert ruling.hint
    assert "Vulkan 1.2" not in ruling.hint


def test_a_machine_without_cards_is_told_by_its_kind() -> None:
    broken = nothing_seen(Sighting(problem="driver-broken", told="t", cure="c"), ())
    assert (broken.state, broken.failure, broken.hint) == (
        State.CANNOT_VERIFY, "driver-broken", "c",
    )  # fmt: skip
    absent = nothing_seen(Sighting(problem="no-driver", told="t"), ())
    assert (absent.state, absent.failure, absent.why) == (State.UNVERIFIED, "no-device", "t")
    assert "doctor" in absent.hint
    line = "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for x"
    assert nothing_seen(Sighting(problem="no-driver", told="t"), (line,)).failure == "no-device"
    unknown = nothing_seen(Sighting(problem="no-witness", told="t"), (line,))
    assert (unknown.state, unknown.failure) == (State.CANNOT_VERIFY, "driver-too-old")
    assert nothing_seen(Sighting(problem="no-witness", told="t"), ()).failure == "no-device"
    assert nothing_seen(Sighting(), ()).why


def test_only_cards_that_compile_make_the_list_slow(tmp_path: Path) -> None:
    sighting = Sighting(devices=(CARD,), driver="580.1")
    ptx = CudaScene(facts=cuda_facts("compute_61"), sighting=sighting, env={}, folder=tmp_path)
    assert ptx.may_jit
    assert not scene(tmp_path, sighting).may_jit
    assert not replace(ptx, facts=None).may_jit
    assert not replace(ptx, sighting=Sighting()).may_jit


def test_runs_count_as_nvidias_tools_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CUDA_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert set(run_variables(tmp_path)) == {
        "CUDA_DEVICE_ORDER", "CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE",
    }  # fmt: skip
    assert set_variables() == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "1")
    told = run_variables(tmp_path)
    assert told["CUDA_VISIBLE_DEVICES"] == ""
    assert told["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "CUDA_CACHE_DISABLE" not in told
    assert told["CUDA_CACHE_PATH"].startswith(os.fspath(tmp_path))
    assert set_variables() == ("CUDA_VISIBLE_DEVICES=",)


TAKEN = Access(card="NVIDIA H200", capability=90)


def test_a_capability_is_read_for_the_device_itself() -> None:
    cards = {0: ("NVIDIA H200", 90), 1: ("GTX 1080", 61)}
    assert capability(TAKEN, DEVICE, cards).check.outcome is Outcome.PASS
    other = replace(DEVICE, id="CUDA1", name="GTX 1080")
    assert capability(replace(TAKEN, capability=61), other, cards).check.outcome is Outcome.PASS
    wrong = capability(TAKEN, DEVICE, {0: ("NVIDIA H200", 80)})
    assert wrong.check.outcome is Outcome.FAIL
    assert (wrong.check.expected, wrong.check.seen) == ("NVIDIA H200, 9.0", "NVIDIA H200, 8.0")
    for unread in (
        capability(TAKEN, DEVICE, {}),
        capability(replace(TAKEN, capability=0), DEVICE, cards),
        capability(TAKEN, replace(DEVICE, id="CUDA"), cards),
    ):
        assert (unread.check.outcome, unread.optional) == (Outcome.UNKNOWN, True)


def test_code_that_is_not_known_is_no_failure() -> None:
    found = device_code(TAKEN, None, ())
    assert (found.check.outcome, found.optional) == (Outcome.UNKNOWN, True)
    assert "no manifest" in found.check.expected


def test_libraries_that_were_never_seen_are_no_failure() -> None:
    for settled, words in ((True, "not mapped"), (False, "not read in time")):
        found = runtime(None, ("/usr/lib/libc.so.6",), settled=settled)
        assert (found.check.outcome, found.optional) == (Outcome.UNKNOWN, True)
        assert words in found.check.seen
    system = runtime(Runtime(told="x"), ("/usr/lib/libcudart.so.12.4.127",), settled=True)
    assert system.check.seen == "libcudart.so.12.4.127 of /usr/lib"
    own = Runtime(told="x", added=frozenset({"libcudart.so.12.4.127", "libcudart.so.12"}))
    found = runtime(own, ("/w/artifact/bin/libcudart.so.12.4.127",), settled=True)
    assert found.check.seen == "libcudart.so.12.4.127 of the companion"
