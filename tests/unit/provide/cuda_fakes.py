"""Small CUDA toolkits as NVIDIA, Debian and the Python index pack them, and their nvcc."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from provide_fakes import deb, debian_set

from llamawright.model.inventory import Role
from llamawright.model.toolchain import ProvidedFile, ProvidedSet, Registry
from transfer_kit import tar_bytes, tar_info, zip_of

# Does what is asked of a real nvcc, by its own place: asks cicc beside it, writes what -o names.
NVCC = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
case " $* " in
*" --version "*)
    echo "nvcc: NVIDIA (R) Cuda compiler driver"
    echo "Cuda compilation tools, release @SHORT@, V@VERSION@" ;;
*" --list-gpu-arch "*)
    for code in @CODES@; do echo "compute_$code"; done ;;
*)
    "$here/../nvvm/bin/cicc" || exit 1
    echo "$*" >> "$here/asked"
    for word; do [ "$last" = -o ] && output=$word; last=$word; done
    printf '\\177ELF libcudart.so.@MAJOR@\\000libcublas.so.@MAJOR@\\000' > "$output" ;;
esac
"""
CODES = "90 75 80 120"
HOST_CONFIG = """\
#if defined(__GNUC__)
#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 20))
#endif
#if __GNUC__ > @GCC@
#error -- unsupported GNU version!
#endif
#if (__clang_major__ >= @CLANG@) || (__clang_major__ < 3)
#error -- unsupported clang version!
#endif
#if _MSC_VER < 1920 || _MSC_VER >= 1950
#endif
"""
CUDA_H = """\
#define cuMemAlloc cuMemAlloc_v2
typedef enum cudaError_enum { CUDA_SUCCESS = 0 } CUresult;
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr);
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal);
"""
DEBIAN_LIB = "usr/lib/x86_64-linux-gnu"
OWN = "usr/lib/nvidia-cuda-toolkit"


def nvcc(version: str = "13.0.88", codes: str = CODES) -> str:
    """Return a program that answers as the nvcc of that version does."""
    major, minor, _ = version.split(".")
    words = {"SHORT": f"{major}.{minor}", "VERSION": version, "CODES": codes, "MAJOR": major}
    return _filled(NVCC, words)


def host_config(gcc: int = 15, clang: int = 20) -> str:
    """Return a header that takes compilers up to these."""
    return _filled(HOST_CONFIG, {"GCC": str(gcc), "CLANG": str(clang + 1)})


def facts(major: int = 13) -> dict[str, str]:
    """Return what a set states before it is unpacked."""
    return {
        "cuda_root": ".",
        "nvcc": "bin/nvcc",
        "cuda_codes": "75 80 90 120",
        "gcc_max": "15",
        "clang_max": "20",
        "include_dir": "include",
        "cudart": f"lib/libcudart.so.{major}",
        "cublas": f"lib/libcublas.so.{major}",
        "cublaslt": f"lib/libcublasLt.so.{major}",
    }


def toolkit_set(
    files: tuple[ProvidedFile, ...],
    *,
    layout: str,
    version: str = "13.0.88",
    stated: Mapping[str, str] | None = None,
    platform: str = "linux_x86_64",
) -> ProvidedSet:
    """Return a set of the role CUDA."""
    return ProvidedSet(
        name=f"{layout}-fake",
        role=Role.CUDA,
        version=version,
        layout=layout,
        platforms=(platform,),
        files=files,
        facts=tuple((stated or facts(int(version.partition(".")[0]))).items()),
        digest=hashlib.sha256("".join(f.location for f in files).encode()).hexdigest(),
    )


# --- the Python index -----------------------------------------------------------------------


def wheels(**changes: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """Return NVIDIA's Python packages by file name; ``changes`` by package, None removes."""
    root = "nvidia/cu13"
    content: dict[str, dict[str, bytes | str]] = {
        "nvidia_cuda_nvcc": {
            f"{root}/bin/nvcc": nvcc().encode(),
            f"{root}/bin/ptxas": b"#!/bin/sh\n",
            f"{root}/bin/nvcc.profile": b"TOP = $(_HERE_)/..\n",
            f"{root}/bin/crt/link.stub": b"stub",
        },
        "nvidia_nvvm": {
            f"{root}/nvvm/bin/cicc": b"#!/bin/sh\n",
            f"{root}/nvvm/libdevice/libdevice.10.bc": b"BC",
            f"{root}/lib/libnvvm.so.4": b"not needed",
        },
        "nvidia_cuda_crt": {f"{root}/include/crt/host_config.h": host_config().encode()},
        "nvidia_cuda_runtime": {
            f"{root}/include/cuda.h": CUDA_H.encode(),
            f"{root}/include/cuda_runtime.h": b"",
            f"{root}/lib/libcudart.so.13": b"cudart",
            f"{root}/lib/libcudart_static.a": b"static",
            f"{root}/lib/libcudadevrt.a": b"devrt",
        },
        "nvidia_cuda_cccl": {
            f"{root}/include/cccl/cub/cub.cuh": b"",
            f"{root}/.metadata/provenance.txt": b"not needed",
        },
        "nvidia_cublas": {
            f"{root}/include/cublas_v2.h": b"",
            f"{root}/lib/libcublas.so.13": b"cublas",
            f"{root}/lib/libcublasLt.so.13": b"cublaslt",
            f"{root}/lib/libnvblas.so.13": b"not needed",
        },
    }
    packed = {}
    for package, members in content.items():
        members[f"{package}-13.0.88.dist-info/licenses/License.txt"] = b"EULA"
        members[f"{package}-13.0.88.dist-info/RECORD"] = b""
        changed = {**members, **changes.get(package, {})}
        kept = {name: data for name, data in changed.items() if data is not None}
        packed[f"{package}-13.0.88-py3-none-manylinux2014_x86_64.whl"] = zip_of(kept)
    return packed


def wheel_set(files: Mapping[str, bytes], **changes: str) -> ProvidedSet:
    """Return the set of some wheels."""
    own = {"cuda_cccl": "include/cccl", "license": "licenses/nvidia-cuda-nvcc/License.txt"}
    stated = {**facts(), **own, **changes}
    pinned = tuple(_index_file(name, data) for name, data in files.items())
    return toolkit_set(pinned, layout="cuda-wheels", stated=stated)


def _index_file(name: str, data: bytes) -> ProvidedFile:
    return ProvidedFile(
        registry=Registry.INDEX,
        package=name.partition("-")[0].replace("_", "-"),
        version="13.0.88",
        location=name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


# --- Debian ---------------------------------------------------------------------------------


def debian_packages() -> dict[str, bytes]:
    """Return Debian's packages of a toolkit by pool path: nvcc, cicc and headers apart."""
    pool = "pool/non-free/n/nvidia-cuda-toolkit"
    toolkit: dict[str, str | bytes] = {
        "./etc/nvcc.profile": "PATH += /usr/lib/nvidia-cuda-toolkit/bin:\n",
        "./usr/bin/nvcc": "#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc\n",
        "./usr/bin/nvdisasm": "#!/bin/sh\n# not needed\n",
        "./usr/include/nvvm.h": "",
        f"./{OWN}/bin/nvcc": nvcc("12.4.131", "50 61 89 90"),
        f"./{OWN}/bin/cicc": "#!/bin/sh\n",
        f"./{OWN}/bin/g++": "#!/bin/sh\n# not needed\n",
        f"./{OWN}/bin/crt/link.stub": "stub",
        f"./{OWN}/libdevice/libdevice.10.bc": "BC",
        f"./{OWN}/compute-sanitizer/sanitizer": "not needed",
        "./usr/share/doc/nvidia-cuda-toolkit/copyright": "EULA",
        "./usr/share/doc/nvidia-cuda-toolkit/README.Debian": "not needed",
    }
    programs = (
        "__nvcc_device_query", "bin2c", "cudafe++", "cuobjdump", "fatbinary", "nvlink", "ptxas",
    )  # fmt: skip
    toolkit |= {f"./usr/bin/{p}": "#!/bin/sh\n" for p in programs}
    names = ("cudart", "cublas", "cublasLt")
    return {
        f"{pool}/nvidia-cuda-toolkit_12.4.131_amd64.deb": deb(
            toolkit, links={f"./{OWN}/bin/nvcc.profile": "/etc/nvcc.profile"}
        ),
        f"{pool}/nvidia-cuda-dev_12.4.127_amd64.deb": deb(
            {
                "./usr/include/cuda.h": CUDA_H,
                "./usr/include/crt/host_config.h": host_config(13, 17),
                "./usr/include/nppi.h": "not needed",
                "./usr/include/curand.h": "not needed",
                "./usr/include/cuda-gdb/x.h": "not needed",
                f"./{DEBIAN_LIB}/libcudart_static.a": "static",
                f"./{DEBIAN_LIB}/libcudadevrt.a": "devrt",
                f"./{DEBIAN_LIB}/libcublas_static.a": "not needed",
                f"./{DEBIAN_LIB}/stubs/libcuda.so": "NVIDIA's stub",
                f"./{DEBIAN_LIB}/stubs/libcublas.so": "not needed",
            },
            links={
                **{f"./{DEBIAN_LIB}/lib{n}.so": f"lib{n}.so.12" for n in names},
                f"./{DEBIAN_LIB}/libnppc.so": "libnppc.so.12",
            },
        ),
        **{
            f"{pool}/lib{n.lower()}12_12.4_amd64.deb": deb(
                {f"./{DEBIAN_LIB}/lib{n}.so.12.4.5": n},
                links={f"./{DEBIAN_LIB}/lib{n}.so.12": f"lib{n}.so.12.4.5"},
            )
            for n in names
        },
        "pool/main/c/cccl/libcub-dev_2.3.2_all.deb": deb(
            {
                "./usr/include/cub/cub.cuh": "",
                "./usr/share/doc/libcub-dev/copyright": "BSD",
                "./usr/share/cmake/cub/cub-config.cmake": "not needed",
            }
        ),
    }


def debian_toolkit(packages: Mapping[str, bytes], **changes: str) -> ProvidedSet:
    """Return the set of some Debian packages."""
    files = debian_set(packages, name="x", role=Role.CUDA, layout="cuda-debian").files
    own = {
        "cuda_codes": "50 61 89 90",
        "gcc_max": "13",
        "clang_max": "17",
        "license": "licenses/nvidia-cuda-toolkit/copyright",
    }
    stated = {**facts(12), **own, **changes}
    return toolkit_set(files, layout="cuda-debian", version="12.4.131", stated=stated)


# --- NVIDIA's redistributable archives ------------------------------------------------------

VERSIONS = {
    "cuda_nvcc": "12.9.86", "cuda_cudart": "12.9.79", "cuda_cccl": "12.9.27",
    "libcublas": "12.9.1.4",
}  # fmt: skip


def redist_archives(platform: str) -> dict[str, bytes]:
    """Return the archives of 12.9.1 by their path in a manifest."""
    windows = platform.startswith("windows")
    content = _windows_content() if windows else _linux_content()
    suffix = "zip" if windows else "tar.xz"
    packed = {}
    for name, members in content.items():
        top = f"{name}-{platform}-{VERSIONS[name]}-archive"
        named = {f"{top}/{path}": data for path, data in members.items()}
        named[f"{top}/LICENSE"] = b"EULA"
        packed[f"{name}/{platform}/{top}.{suffix}"] = zip_of(named) if windows else _tar(named)
    return packed


def _linux_content() -> dict[str, dict[str, bytes | str]]:
    return {
        "cuda_nvcc": {
            "bin/nvcc": nvcc("12.9.86", "61 89 121").encode(),
            "bin/nvcc.profile": b"TOP = $(_HERE_)/..\n",
            "nvvm/bin/cicc": b"#!/bin/sh\n",
            "include/crt/host_config.h": host_config(14, 19).encode(),
        },
        "cuda_cudart": {
            "include/cuda.h": CUDA_H.encode(),
            "lib/libcudart.so.12.9.79": b"cudart",
            "lib/libcudart.so.12": "libcudart.so.12.9.79",
            "lib/libcudart.so": "libcudart.so.12",
            "lib/libcudart_static.a": b"static",
            "lib/stubs/libcuda.so": b"NVIDIA's stub",
            "pkg-config/cudart.pc": b"not needed",
        },
        "cuda_cccl": {"include/cub/cub.cuh": b"", "lib/cmake/cub/cub-config.cmake": b""},
        "libcublas": {
            "include/cublas_v2.h": b"",
            "lib/libcublas.so.12.9.1.4": b"cublas",
            "lib/libcublas.so.12": "libcublas.so.12.9.1.4",
            "lib/libcublasLt.so.12": b"cublaslt",
            "lib/libcublas_static.a": b"not needed",
        },
    }


def _windows_content() -> dict[str, dict[str, bytes | str]]:
    return {
        "cuda_nvcc": {
            "bin/nvcc.exe": nvcc("12.9.86", "61 89 121").encode(),
            "nvvm/bin/cicc.exe": b"#!/bin/sh\n",
            "include/crt/host_config.h": host_config(14, 19).encode(),
        },
        "cuda_cudart": {
            "bin/cudart64_12.dll": b"cudart",
            "include/cuda.h": CUDA_H.encode(),
            "lib/x64/cuda.lib": b"driver",
            "lib/x64/cudart.lib": b"cudart",
            "lib/x64/cudart_static.lib": b"static",
        },
        "cuda_cccl": {"include/cub/cub.cuh": b""},
        "libcublas": {
            "bin/cublas64_12.dll": b"cublas",
            "include/cublas_v2.h": b"",
            "lib/x64/cublas.lib": b"cublas",
            "lib/x64/cublasLt.lib": b"cublaslt",
        },
    }


def manifest(*archives: Mapping[str, bytes]) -> dict[str, object]:
    """Return a manifest in NVIDIA's shape (sizes are decimal text there)."""
    made: dict[str, object] = {
        "release_date": "2025-06-05",
        "release_label": "12.9.1",
        "release_product": "cuda",
    }
    for path, data in [pair for group in archives for pair in group.items()]:
        name, platform, _ = path.split("/")
        entry = made.setdefault(
            name,
            {
                "name": f"CUDA {name}",
                "license": "CUDA Toolkit",
                "license_path": f"{name}/LICENSE.txt",
                "version": VERSIONS[name],
            },
        )
        assert isinstance(entry, dict)
        entry[platform] = {
            "relative_path": path,
            "sha256": hashlib.sha256(data).hexdigest(),
            "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
            "size": str(len(data)),
        }
    return made


def manifest_text(*archives: Mapping[str, bytes]) -> str:
    """Return the manifest as NVIDIA's server sends it."""
    return json.dumps(manifest(*archives), indent=4)


def redist_files(
    archives: Mapping[str, bytes], address: str, *, cap: int = 1 << 20
) -> tuple[ProvidedFile, ...]:
    """Return files that leave sha256 and size to the manifest below ``address``."""
    return tuple(
        ProvidedFile(
            registry=Registry.URL,
            package=path.partition("/")[0],
            version=VERSIONS[path.partition("/")[0]],
            location=f"{address}/{path}",
            size=cap,
            sha256="",
            capped=True,
            published=f"{address}/redistrib_12.9.1.json",
        )
        for path in archives
    )


def redist_set(files: tuple[ProvidedFile, ...], *, windows: bool = False) -> ProvidedSet:
    """Return the set of 12.9.1."""
    own = {
        "cuda_codes": "61 89 121",
        "gcc_max": "14",
        "clang_max": "19",
        "license": "licenses/cuda_nvcc/LICENSE",
    }
    places = {
        "nvcc": "bin/nvcc.exe",
        "cudart": "lib/x64/cudart.lib",
        "cublas": "lib/x64/cublas.lib",
        "cublaslt": "lib/x64/cublasLt.lib",
        "cuda_dlls": "bin",
    }
    return toolkit_set(
        files,
        layout="cuda-redist",
        version="12.9.86",
        stated={**facts(12), **own, **(places if windows else {})},
        platform="windows_x86_64" if windows else "linux_x86_64",
    )


def _tar(files: Mapping[str, bytes | str]) -> bytes:
    members = []
    for name, data in files.items():
        if isinstance(data, str):
            members.append((tar_info(name, type=b"2", linkname=data), b""))
        else:
            mode = 0o755 if data.startswith(b"#!") else 0o644
            members.append((tar_info(name, mode=mode), data))
    return tar_bytes(members, mode="w:xz")


# --- compilers ------------------------------------------------------------------------------


def write_compiler(folder: Path, name: str, version: str, *, banner: str = "") -> Path:
    """Write a C++ compiler that tells its version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    told = banner or f"{name} (Debian {version}) {version}"
    path.write_text(
        f'#!/bin/sh\ncase $1 in --version) echo "{told}" ;; -dumpversion) echo {version} ;; esac\n'
    )
    path.chmod(0o755)
    return path


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    return text
