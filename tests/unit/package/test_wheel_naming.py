"""Names of wheels: no two backends may share one, and pip must order them rightly."""

from __future__ import annotations

import pytest
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from cli_kit import manifest
from llamawright.errors import PackageError
from llamawright.model.cuda import CudaFacts
from llamawright.model.platform import Backend
from llamawright.package.wheels.naming import local_label, wheel_stem, wheel_version


def facts(toolkit: str) -> CudaFacts:
    return CudaFacts(toolkit=toolkit, codes=("sm_61",), driver="525.60", driver_jit="550.54")


@pytest.mark.parametrize(
    ("toolkit", "label"),
    [("12.4.131", "cu124"), ("13.0.48", "cu130"), ("11.8", "cu118"), ("13.10.1", "cu1310")],
)
def test_a_cuda_label_is_that_of_the_toolkit(toolkit: str, label: str) -> None:
    assert local_label(manifest(backend=Backend.CUDA, cuda=facts(toolkit))) == label


@pytest.mark.parametrize("backend", [Backend.CPU, Backend.VULKAN, Backend.METAL])
def test_other_labels_are_the_backends(backend: Backend) -> None:
    assert local_label(manifest(backend=backend)) == backend.value


@pytest.mark.parametrize("toolkit", ["", "12", "new"])
def test_a_toolkit_without_a_version_is_refused(toolkit: str) -> None:
    with pytest.raises(PackageError) as caught:
        wheel_version(manifest(backend=Backend.CUDA, cuda=facts(toolkit)))
    assert (caught.value.kind, int(caught.value.code)) == ("no-toolkit", 9)


def test_a_cuda_artifact_that_says_nothing_of_cuda_is_refused() -> None:
    with pytest.raises(PackageError, match="which CUDA"):
        local_label(manifest(backend=Backend.CUDA))


def test_a_newer_build_is_a_newer_version() -> None:
    versions = [wheel_version(manifest(build_number=n)) for n in (999, 11312, 11313, 100000)]
    assert versions[1] == "0.0.11312+vulkan"
    assert sorted(versions, key=Version) == versions


def test_a_wheel_with_a_label_answers_a_request_without_one() -> None:
    wanted = Version("0.0.11312")
    assert Version(wheel_version(manifest(build_number=11312))).public == str(wanted)


def test_the_file_name_is_a_wheels() -> None:
    stem = wheel_stem("0.0.7+cu124", "manylinux_2_28_x86_64")
    name, version, build, tags = parse_wheel_filename(f"{stem}.whl")
    assert (name, str(version), build) == ("llamawright-llama-cpp", "0.0.7+cu124", ())
    assert {str(t) for t in tags} == {"py3-none-manylinux_2_28_x86_64"}
