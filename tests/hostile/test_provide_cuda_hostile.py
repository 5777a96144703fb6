"""Manifests and packages that were damaged or made to do harm: refused, nothing written."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path

import pytest

from llamawright.errors import DownloadError, LlamawrightError
from llamawright.model.inventory import Role
from llamawright.model.toolchain import ProvidedFile, ProvidedSet, Registry
from llamawright.provide.cuda_redist import component, stated
from llamawright.provide.cuda_stub import driver_stub
from llamawright.provide.sets import unpack

BASE = "https://vendor.invalid/redist"
PATH = "cuda_nvcc/linux-x86_64/cuda_nvcc-linux-x86_64-12.9.86-archive.tar.xz"
FILE = ProvidedFile(
    registry=Registry.URL,
    package="cuda_nvcc",
    version="12.9.86",
    location=f"{BASE}/{PATH}",
    size=1 << 20,
    sha256="",
    capped=True,
    published=f"{BASE}/redistrib_12.9.1.json",
)


def manifest(**entry: object) -> str:
    archive = {"relative_path": PATH, "sha256": "ab" * 32, "md5": "", "size": "1000", **entry}
    part = {"name": "CUDA NVCC", "version": "12.9.86", "linux-x86_64": archive}
    return json.dumps({"release_product": "cuda", "cuda_nvcc": part})


def refused(text: str) -> str:
    with pytest.raises(DownloadError, match="does not vouch for") as caught:
        stated(text, FILE)
    assert caught.value.kind == "no-published-sha256"
    assert caught.value.hint
    assert FILE.published in caught.value.why
    return caught.value.why


def test_the_honest_one_is_believed() -> None:
    assert stated(manifest(), FILE).size == 1000


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "cuda_nvcc/linux-x86_64/../../../evil.tar.xz",
        "/etc/passwd",
        "https://evil.invalid/cuda_nvcc.tar.xz",
        "//evil.invalid/x",
        "cuda_nvcc/windows-x86_64/cuda_nvcc-windows-x86_64-12.9.86-archive.zip",
        "libcublas/linux-x86_64/libcublas.tar.xz",
        "cuda_nvcc\\linux-x86_64\\x",
        PATH + "\u0000",
        PATH + "?x=1",
        PATH.upper(),
        "",
        7,
        None,
        ["a"],
        {},
    ],
)
def test_paths_that_lead_elsewhere(path: object) -> None:
    refused(manifest(relative_path=path))


@pytest.mark.parametrize(
    "size",
    ["", "0", "-1", "1e3", "1000.0", " 1000", "0x10", "1_000", "\u0661\u0662", "9" * 400, None,
     True, [], {}, 1 << 21, "1048577"],
)  # fmt: skip
def test_sizes_that_are_none(size: object) -> None:
    refused(manifest(size=size))


@pytest.mark.parametrize(
    "digest", ["", "ab" * 31, "ab" * 33, "zz" * 32, "ab" * 32 + "\n", None, 0, ["ab" * 32], {}]
)
def test_digests_that_are_none(digest: object) -> None:
    refused(manifest(sha256=digest))


def test_digest_in_capitals_is_the_same() -> None:
    assert stated(manifest(sha256="AB" * 32), FILE).sha256 == "ab" * 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        '"cuda"',
        "{}",
        "<!doctype html>",
        "\ufeff{}",
        "{" * 5000,
        "[" * 100_000,
        '{"release_product": "cudnn"}',
        '{"release_product": ["cuda"]}',
        '{"release_product": "cuda"}',
        '{"release_product": "cuda", "cuda_nvcc": []}',
        '{"release_product": "cuda", "cuda_nvcc": {}}',
        '{"release_product": "cuda", "cuda_nvcc": {"linux-x86_64": "x"}}',
        '{"release_product": "cuda", "cuda_nvcc": {"linux-x86_64": {}}}',
        '{"release_product": "cuda", "cuda_nvcc": {"version": "1", "linux-x86_64": [1]}}',
        "\x00\xff",
    ],
)
def test_texts_that_are_no_manifest(text: str) -> None:
    refused(text)


def test_every_cut_of_a_manifest() -> None:
    text = manifest()
    for end in range(len(text)):
        refused(text[:end])


def test_every_byte_changed() -> None:
    """A changed byte is refused, or changes nothing but digest or size: the content decides."""
    text = manifest()
    for at in range(len(text)):
        try:
            found = stated(text[:at] + "#" + text[at + 1 :], FILE)
        except DownloadError:
            continue
        assert f"{BASE}/{found.path}" == FILE.location
        assert found.version == FILE.version


def test_what_it_has_is_told_without_flooding() -> None:
    part = {"version": "1" * 10_000, "linux-x86_64": json.loads(manifest())["cuda_nvcc"]}
    part["linux-x86_64"] = json.loads(manifest())["cuda_nvcc"]["linux-x86_64"]
    text = json.dumps({"release_product": "cuda", "cuda_nvcc": part})
    assert len(refused(text)) < 500


def test_names_of_python_are_no_components() -> None:
    for name in ("__class__", "keys", "release_product"):
        with pytest.raises(ValueError, match="no component"):
            component(manifest(), name, "linux-x86_64")


# --- packages -------------------------------------------------------------------------------


def wheel_of(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def one_wheel(data: bytes) -> ProvidedSet:
    file = ProvidedFile(
        registry=Registry.INDEX,
        package="nvidia-cuda-nvcc",
        version="13.0.88",
        location="nvidia_cuda_nvcc-13.0.88-py3-none-any.whl",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    return ProvidedSet(
        name="evil",
        role=Role.CUDA,
        version="13.0.88",
        layout="cuda-wheels",
        platforms=("linux_x86_64",),
        files=(file,),
    )


@pytest.mark.parametrize("layout", ["cuda-wheels", "cuda-debian", "cuda-redist"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 cut",
        b"!<arch>\ncut",
        b"<!doctype html><title>Log in</title>",
        b"\xfd7zXZ\x00cut",
        bytes(4096),
    ],
    ids=["empty", "zip", "deb", "html", "xz", "zeros"],
)
def test_packages_that_are_none(tmp_path: Path, layout: str, data: bytes) -> None:
    from dataclasses import replace

    blob = tmp_path / "blob"
    blob.write_bytes(data)
    with pytest.raises(LlamawrightError) as caught:
        unpack(replace(one_wheel(data), layout=layout), (blob,), tmp_path / "in" / "root")
    assert caught.value.hint
    assert sorted(p.name for p in tmp_path.iterdir()) in (["blob"], ["blob", "in"])


@pytest.mark.parametrize(
    "name",
    [
        "nvidia/cu13/bin/../../../../escape",
        "/escape",
        "nvidia/cu13\\..\\..\\escape",
        "C:/escape",
        "nvidia/cu13/bin/nvcc/under",
    ],
)
def test_wheels_that_climb_out_write_nothing(tmp_path: Path, name: str) -> None:
    data = wheel_of(
        {
            "nvidia/cu13/bin/nvcc": b"#!/bin/sh\n",
            name: b"x",
            "nvidia_cuda_nvcc-13.0.88.dist-info/licenses/License.txt": b"EULA",
        }
    )
    blob = tmp_path / "blob"
    blob.write_bytes(data)
    with pytest.raises(DownloadError, match="was not unpacked"):
        unpack(one_wheel(data), (blob,), tmp_path / "in" / "root")
    assert not list(tmp_path.rglob("escape"))
    assert not (tmp_path / "in" / "root").exists()


def test_headers_with_any_bytes_make_a_stub() -> None:
    noise = bytes(range(256)).decode("latin-1") * 50 + "cuInit(" + "\ud800"
    stub = driver_stub(noise + "cu" + "A" * 10_000)
    assert stub.startswith(b"\x7fELF")
    assert len(stub) < sys.maxsize
