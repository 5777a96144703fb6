"""CUDA toolkits: whole, partial, old, mixed and phantom roots (cases C1, C2, C10, C11, C17)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_kit import around, machines, stand_up_cuda
from llamawright.detect import cuda, survey
from llamawright.detect.candidates import Sighting
from llamawright.model.cuda import Presence
from llamawright.model.inventory import Fault, Found, Inventory, Rejected, Role
from llamawright.model.platform import Backend
from llamawright.model.toolchain import Fact, Hint, KnownBad, Minimum
from machine_kit import NO_TOOLCHAINS
from resolve_kit import request

HINT = Hint(role=Role.CUDA, system="*", command="see the manual")
TOOLCHAINS = replace(NO_TOOLCHAINS, hints=(HINT,))


def look(root: Path, name: str, **env: str) -> tuple[Sighting, ...]:
    return cuda.survey(around(stand_up_cuda(name, root), env, TOOLCHAINS))


def found(root: Path, name: str, **env: str) -> Found:
    (seen,) = look(root, name, **env)
    assert isinstance(seen, Found), seen
    return seen


def refused(root: Path, name: str) -> Rejected:
    (seen,) = look(root, name)
    assert isinstance(seen, Rejected), seen
    return seen


def test_a_whole_toolkit_is_found_with_absolute_paths(tmp_path: Path) -> None:
    seen = found(tmp_path, "cuda124")
    root = tmp_path / "usr/local/cuda-12.4"
    library = root / "targets/x86_64-linux/lib"
    assert (seen.role, seen.name, seen.version) == (Role.CUDA, "cuda", "12.4.131")
    assert (seen.path, seen.where) == (root, "system")
    assert seen.fact(Fact.NVCC) == str(root / "bin/nvcc")
    assert seen.fact(Fact.CUDA_ROOT) == str(root)
    assert seen.fact(Fact.INCLUDE_DIR) == str(root / "targets/x86_64-linux/include")
    assert seen.fact(Fact.CUDART) == str(library / "libcudart.so")
    assert seen.fact(Fact.CUBLAS) == str(library / "libcublas.so")
    assert seen.fact(Fact.CUBLASLT) == str(library / "libcublasLt.so")
    assert seen.fact(Fact.LICENSE) == str(root / "EULA.txt")
    assert seen.fact(Fact.CUDA_CCCL) == ""
    assert (seen.fact(Fact.GCC_MAX), seen.fact(Fact.CLANG_MAX)) == ("13", "17")
    assert (seen.fact(Fact.MSC_MIN), seen.fact(Fact.MSC_MAX)) == ("1910", "1949")


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("cuda118", {"50", "61", "89", "90"}, {"100", "120"}),
        ("cuda124", {"50", "61", "89", "90"}, {"100", "120"}),
        ("cuda130", {"75", "90", "103", "120", "121"}, {"50", "61", "70"}),
    ],
)
def test_the_codes_are_nvccs_own_sorted_by_number(
    tmp_path: Path, name: str, has: set[str], lacks: set[str]
) -> None:
    codes = found(tmp_path, name).fact(Fact.CUDA_CODES).split()
    assert codes == sorted(codes, key=int)
    assert has <= set(codes)
    assert not lacks & set(codes)


@pytest.mark.parametrize(
    ("name", "version"), [("cuda118", "11.8.89"), ("cuda124", "12.4.131"), ("cuda130", "13.0.88")]
)
def test_cublas_has_minor_versions_of_its_own(tmp_path: Path, name: str, version: str) -> None:
    assert found(tmp_path, name).version == version


def test_many_ways_to_one_root_are_one_candidate(tmp_path: Path) -> None:
    seen = found(tmp_path, "every-way")
    assert seen.where == "CUDAToolkit_ROOT"
    assert seen.path == tmp_path / "usr/local/cuda-12.4"


def test_a_root_of_the_users_own_is_found_by_its_variable(tmp_path: Path) -> None:
    assert found(tmp_path, "named").where == "CUDA_PATH"
    quoted = f'"{tmp_path}/b/opt/own"'
    assert found(tmp_path / "b", "named", CUDA_PATH=quoted).path == tmp_path / "b/opt/own"


def test_variables_with_versions_come_newest_first(tmp_path: Path) -> None:
    seen = look(tmp_path, "versioned")
    assert [s.where for s in seen] == ["CUDA_PATH_V12_4", "CUDA_PATH_V11_8"]
    assert all(isinstance(s, Found) for s in seen)


def test_an_old_nvcc_first_on_path_does_not_hide_the_newer_ones(tmp_path: Path) -> None:
    seen = [s for s in look(tmp_path, "several") if isinstance(s, Found)]
    assert [(s.version, s.where) for s in seen] == [
        ("11.8.89", "PATH"),
        ("12.4.131", "system"),
        ("13.0.88", "system"),
        ("12.9.86", "system"),
    ]


def test_two_toolkits_each_keep_their_own_headers_and_libraries(tmp_path: Path) -> None:
    old, new = (s for s in look(tmp_path, "debian-and-vendor") if isinstance(s, Found))
    assert (old.version, new.version) == ("11.8.89", "12.4.131")
    assert old.fact(Fact.INCLUDE_DIR) == str(tmp_path / "usr/include")
    vendor = str(tmp_path / "usr/local/cuda-12.4")
    assert new.fact(Fact.INCLUDE_DIR).startswith(vendor)
    assert new.fact(Fact.CUDART).startswith(vendor)


@pytest.mark.parametrize("name", ["wrapper", "linked-nvcc"])
def test_a_wrapper_or_link_leads_to_the_real_root(tmp_path: Path, name: str) -> None:
    seen = found(tmp_path, name)
    assert (seen.path, seen.where) == (tmp_path / "srv/toolkit", "PATH")
    assert seen.fact(Fact.NVCC) == str(tmp_path / "srv/toolkit/bin/nvcc")


def test_a_wrapper_is_followed_by_its_text_when_nvcc_tells_nothing(tmp_path: Path) -> None:
    seen = found(tmp_path, "no-host-compiler")
    assert seen.path == tmp_path / "usr/local/cuda-12.4"


def test_a_bad_wrapper_does_not_spoil_the_good_root(tmp_path: Path) -> None:
    bad, good = look(tmp_path, "broken-wrapper")
    assert isinstance(bad, Rejected)
    assert bad.reason.endswith("exit status 1: error: no licence")
    assert isinstance(good, Found)


@pytest.mark.parametrize(
    ("name", "where"),
    [("debian13", "PATH"), ("usr-as-home", "CUDA_HOME"), ("debian-with-phantom", "PATH")],
)
def test_debians_packages_are_one_root_spread_over_usr(
    tmp_path: Path, name: str, where: str
) -> None:
    seen = found(tmp_path, name)
    usr = tmp_path / "usr"
    assert (seen.path, seen.where) == (usr / "lib/nvidia-cuda-toolkit", where)
    assert seen.fact(Fact.NVCC) == str(usr / "lib/nvidia-cuda-toolkit/bin/nvcc")
    assert seen.fact(Fact.INCLUDE_DIR) == str(usr / "include")
    assert seen.fact(Fact.CUBLAS) == str(usr / "lib/x86_64-linux-gnu/libcublas.so")
    assert seen.fact(Fact.LICENSE) == str(usr / "share/doc/nvidia-cuda-toolkit/copyright")


def test_conda_is_found_only_where_it_holds_an_nvcc(tmp_path: Path) -> None:
    assert found(tmp_path, "conda").path == tmp_path / "conda"
    empty = refused(tmp_path / "b", "conda-bare")
    assert empty.path is None
    assert empty.fault is Fault.ABSENT


def test_windows_layouts_are_found_by_variable_registry_and_folder(tmp_path: Path) -> None:
    machine = stand_up_cuda("windows", tmp_path)
    recorded = (("v12.9", f"{tmp_path}/D/CUDA"), ("v12.4", machine.env["CUDA_PATH"]))
    seen = cuda.survey(around(machine), registry=lambda: recorded)
    assert [(s.where, s.version) for s in seen if isinstance(s, Found)] == [
        ("CUDA_PATH", "12.4.131"),
        ("registry", "12.9.86"),
        ("system", "13.0.88"),
        ("system", "11.8.89"),
    ]
    facts = [s for s in seen if isinstance(s, Found)]
    assert facts[0].fact(Fact.CUDART).endswith("v12.4/lib/x64/cudart.lib")
    assert facts[0].fact(Fact.CUDA_DLLS).endswith("CUDA/v12.4/bin")
    assert facts[2].fact(Fact.CUDA_DLLS).endswith("CUDA/v13.0/bin/x64")


def test_the_registry_is_not_asked_on_linux(tmp_path: Path) -> None:
    def never() -> tuple[tuple[str, str], ...]:
        raise AssertionError

    machine = stand_up_cuda("cuda124", tmp_path)
    assert len(cuda.survey(around(machine), registry=never)) == 1


@pytest.mark.parametrize(
    ("name", "fault", "said", "cure"),
    [
        ("bare", Fault.ABSENT, "no toolkit in the usual places, no nvcc", "see the manual"),
        ("phantom", Fault.INCOMPLETE, "an empty root", "apt-get install nvidia-cuda-toolkit"),
        ("dangling", Fault.DANGLING, "usr/local/cuda-12.2, which does not exist", "sudo rm "),
        ("variable-nowhere", Fault.ABSENT, "it does not exist", "let CUDA_PATH name"),
        ("variable-file", Fault.FAILED, "it is a file, no folder", "let CUDA_HOME name"),
        ("only-libraries", Fault.INCOMPLETE, "no nvcc: ", "apt-get install cuda-nvcc-12-4"),
        ("not-executable", Fault.NOT_EXECUTABLE, "it is not executable", "sudo chmod +x "),
        ("hangs", Fault.HUNG, "it gave no answer within 0.6 s", "see what `"),
        ("crashes", Fault.CRASHED, "it crashed with SIGSEGV", "see what `"),
        ("foreign-nvcc", Fault.WRONG_MACHINE, "is made for aarch64, this", "remove "),
        ("no-nvcc-at-all", Fault.FAILED, "does not call itself nvcc: hello", "see what `"),
        ("old-nvcc", Fault.TOO_OLD, "11.0.194: it does not know --list-gpu-arch", "remove "),
        ("lists-nothing", Fault.FAILED, "names no compute capability", "see what `"),
        ("cached-nvcc", Fault.UNSUPPORTED, "is a link to ccache", "off PATH"),
        ("no-headers", Fault.INCOMPLETE, "no cuda_runtime.h below", "cuda-cudart-dev-12-4"),
        ("no-cublas", Fault.INCOMPLETE, "no libcublas.so below", "libcublas-dev-13-0"),
        ("no-cublas-header", Fault.INCOMPLETE, "cublas_api.h", "libcublas-dev-13-0"),
        ("no-cudart", Fault.INCOMPLETE, "no libcudart.so below", "cuda-cudart-dev-13-0"),
        ("no-cicc", Fault.INCOMPLETE, "nvcc cannot compile device code", "cuda-nvcc-13-0"),
        ("no-cccl", Fault.INCOMPLETE, "no nv/target and cub/cub.cuh", "cuda-cccl-13-0"),
        ("stub-only", Fault.INCOMPLETE, "only the stub ", "libcublas-dev-12-4"),
        ("linked-stub", Fault.INCOMPLETE, "libcublas.so leads to a stub", "libcublas-dev-12-4"),
        ("only-runtime-file", Fault.INCOMPLETE, "the link libcublas.so for building is not",
         "libcublas-dev-12-4"),
        ("dangling-library", Fault.DANGLING, "a link to libcudart.so.12.4.127, which does not",
         "cuda-cudart-dev-12-4"),
        ("foreign-library", Fault.WRONG_MACHINE, "is made for aarch64, not for x86_64",
         "cuda-cudart-dev-12-4 libcublas-dev-12-4"),
        ("debian-without-cublas", Fault.INCOMPLETE, "no libcublas.so below",
         "sudo apt-get install nvidia-cuda-dev"),
        ("debian-without-dev", Fault.INCOMPLETE, "the link libcudart.so for building is not",
         "nvidia-cuda-dev libcu++-dev libcub-dev libthrust-dev"),
        ("conda-without-cublas", Fault.INCOMPLETE, "no libcublas.so below",
         "conda install -c nvidia cuda-toolkit=12.4"),
        ("windows-without-dll", Fault.INCOMPLETE, "no cublasLt64_12.dll in",
         "install the cuBLAS of CUDA 12.4 into "),
    ],
)  # fmt: skip
def test_every_incomplete_root_has_its_own_reason_and_cure(
    tmp_path: Path, name: str, fault: Fault, said: str, cure: str
) -> None:
    seen = refused(tmp_path, name)
    assert (seen.role, seen.fault) == (Role.CUDA, fault)
    assert said in seen.reason
    assert cure in seen.cure


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mixed-headers", "are of CUDA 12.1, nvcc is 12.0"),
        ("mixed-runtime", "libcudart.so is version 12.4.127, nvcc is 13.0"),
        ("mixed-runtime-minor", "libcudart.so is version 12.0.107, nvcc is 12.4"),
        ("mixed-cublas", "libcublas.so is version 11.11.3.6, nvcc is 12.4"),
        ("mixed-cublas-header", "libcublas.so is version 12.1.3.1, its header is 12.4.5"),
    ],
)
def test_parts_of_two_toolkits_in_one_root_are_refused(
    tmp_path: Path, name: str, said: str
) -> None:
    seen = refused(tmp_path, name)
    assert seen.fault is Fault.UNSUPPORTED
    assert seen.fault.misfit
    assert said in seen.reason
    assert "CUDAToolkit_ROOT" in seen.cure


@pytest.mark.parametrize("name", list(machines()))
def test_every_sighting_is_whole(tmp_path: Path, name: str) -> None:
    seen = look(tmp_path, name)
    assert seen
    assert len({s.path for s in seen}) == len(seen)
    for sighting in seen:
        if isinstance(sighting, Rejected):
            assert sighting.reason
            assert sighting.cure
            continue
        paths = (Fact.NVCC, Fact.CUDA_ROOT, Fact.INCLUDE_DIR, Fact.CUDART, Fact.CUBLAS)
        for fact in (*paths, Fact.CUBLASLT, Fact.LICENSE):
            path = Path(sighting.fact(fact))
            assert path.is_absolute()
            assert path.exists()


def test_a_notice_is_looked_for_with_the_toolkit_and_its_packages(tmp_path: Path) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    (tmp_path / "usr/local/cuda-12.4/EULA.txt").unlink()
    (seen,) = cuda.survey(around(machine))
    assert isinstance(seen, Found)
    assert seen.fact(Fact.LICENSE) == ""
    packaged = tmp_path / "usr/share/doc/cuda-cudart-12-4/copyright"
    packaged.parent.mkdir(parents=True)
    packaged.write_text("notice of the package")
    (seen,) = cuda.survey(around(machine))
    assert isinstance(seen, Found)
    assert seen.fact(Fact.LICENSE) == str(packaged)
    notice = tmp_path / "usr/local/cuda-12.4/dist-info/nvidia_cuda_runtime-1/licenses/License.txt"
    notice.parent.mkdir(parents=True)
    notice.write_text("notice")
    (seen,) = cuda.survey(around(machine))
    assert isinstance(seen, Found)
    assert seen.fact(Fact.LICENSE) == str(notice)


def test_the_digest_is_of_what_compiles_and_not_of_its_place(tmp_path: Path) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    (first,) = cuda.survey(around(machine))
    moved = tmp_path / "opt/own"
    moved.parent.mkdir()
    shutil.copytree(tmp_path / "usr/local/cuda-12.4", moved, symlinks=True)
    where = {"CUDA_PATH": str(moved)}
    seen = [s for s in cuda.survey(around(machine, where)) if isinstance(s, Found)]
    assert isinstance(first, Found)
    assert {s.sha256 for s in seen} == {first.sha256}
    (tmp_path / "usr/local/cuda-12.4/bin/ptxas").write_text("another build")
    (again,) = cuda.survey(around(machine))
    assert isinstance(again, Found)
    assert again.sha256 != first.sha256


def test_a_known_bad_build_and_a_minimum_are_refused_by_the_data(tmp_path: Path) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    bad = KnownBad(role=Role.CUDA, versions="==12.4.131", reason="miscompiles", link="https://x")
    (seen,) = cuda.survey(around(machine, {}, replace(TOOLCHAINS, known_bad=(bad,))))
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.KNOWN_BAD
    least = Minimum(role=Role.CUDA, version="12.9", reason="too old for it")
    (seen,) = cuda.survey(around(machine, {}, replace(TOOLCHAINS, minimums=(least,))))
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.TOO_OLD


def test_nvcc_is_asked_in_a_clean_environment(tmp_path: Path) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    nvcc = tmp_path / "usr/local/cuda-12.4/bin/nvcc"
    text = nvcc.read_text()
    check = '#!/bin/sh\n[ -z "$NVCC_APPEND_FLAGS$NVCC_PREPEND_FLAGS" ] || exit 9\n'
    nvcc.write_text(text.replace("#!/bin/sh\n", check))
    (seen,) = cuda.survey(around(machine, {"NVCC_APPEND_FLAGS": "-x"}))
    assert isinstance(seen, Found)


def whole(root: Path, name: str, backend: Backend, *, everything: bool = False) -> Inventory:
    machine = stand_up_cuda(name, root)
    seen = around(machine, {}, TOOLCHAINS)
    wanted = request(backend=backend)
    return survey.survey(wanted, seen, store_tools=root / "tools", everything=everything)


def test_the_inventory_holds_toolkits_and_cards_for_cuda_only(tmp_path: Path) -> None:
    seen = whole(tmp_path / "a", "cuda124", Backend.CUDA)
    assert [t.version for t in seen.having(Role.CUDA)] == ["12.4.131"]
    assert seen.gpus.presence is Presence.ABSENT
    other = whole(tmp_path / "b", "cuda124", Backend.CPU)
    assert not other.having(Role.CUDA)
    assert not other.without(Role.CUDA)
    assert other.gpus.presence is Presence.UNKNOWN


def test_doctor_sees_everything_whatever_the_backend(tmp_path: Path) -> None:
    seen = whole(tmp_path, "cuda124", Backend.CPU, everything=True)
    assert seen.having(Role.CUDA)
    assert {r.role for r in seen.rejected} >= {Role.VULKAN}
    assert seen.gpus.presence is Presence.ABSENT


def test_two_looks_give_the_same(tmp_path: Path) -> None:
    machine = stand_up_cuda("several", tmp_path)
    assert cuda.survey(around(machine)) == cuda.survey(around(machine))
