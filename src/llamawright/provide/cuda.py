"""CUDA toolkits without root: three kinds of files, one usual shape of the root.

``bin/nvcc`` with its ``nvcc.profile``, ``nvvm/bin/cicc``, ``nvvm/libdevice``, ``include``,
``lib`` (on Linux also as ``lib64``) and ``licenses``: what CMake's FindCUDAToolkit takes for
a toolkit, and where nvcc finds everything by its own place, so the store can be moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from llamawright.errors import ToolMissingError
from llamawright.model.toolchain import Fact, ProvidedFile, ProvidedSet
from llamawright.paths import remove_tree
from llamawright.provide.cuda_stub import driver_stub
from llamawright.transfer import UnpackLimits, unpack_archive

LIMITS = UnpackLimits(case_collisions=True, rebase_links=True)
LICENSES = "licenses"
LIBRARIES = (Fact.CUDART, Fact.CUBLAS, Fact.CUBLASLT)
STATIC = ("libcudart_static.a", "libcudadevrt.a", "cudart_static.lib", "cudadevrt.lib")
STUB = "lib/stubs/libcuda.so"
PROGRAM_SUFFIXES = ("", ".exe")

WHEEL_ROOT = "nvidia"
WHEEL_PARTS = ("bin", "include", "nvvm")

DEBIAN_SCRATCH = ".debian"
DEBIAN_LIB = "usr/lib/x86_64-linux-gnu"
DEBIAN_OWN = "usr/lib/nvidia-cuda-toolkit"
DEBIAN_PROGRAMS = (
    "__nvcc_device_query", "bin2c", "cudafe++", "cuobjdump", "fatbinary", "nvlink", "ptxas",
)  # fmt: skip
DEBIAN_MOVES = (
    *((f"usr/bin/{p}", f"bin/{p}") for p in DEBIAN_PROGRAMS),
    (f"{DEBIAN_OWN}/bin/nvcc", "bin/nvcc"),
    (f"{DEBIAN_OWN}/bin/crt", "bin/crt"),
    (f"{DEBIAN_OWN}/bin/cicc", "nvvm/bin/cicc"),
    (f"{DEBIAN_OWN}/libdevice", "nvvm/libdevice"),
    ("usr/include", "include"),
    (DEBIAN_LIB, "lib"),
    ("usr/share/doc", LICENSES),
)
DEBIAN_DEV = "nvidia-cuda-dev"
DEBIAN_DEV_LIBRARIES = (
    "libcudart.so", "libcublas.so", "libcublasLt.so", "libcudart_static.a", "libcudadevrt.a",
    "stubs/libcuda.so",
)  # fmt: skip
# Headers of the mathematics and image libraries that no kernel of ggml includes.
DEBIAN_UNUSED = (
    "cuda-gdb", "cufft*", "curand*", "cusolver*", "cusparse*", "npp*", "nvblas.h", "nvjpeg.h",
)  # fmt: skip
# Debian's own profile names places below /usr; this one goes by nvcc's place.
DEBIAN_PROFILE = """\
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
LD_LIBRARY_PATH += $(TOP)/lib:
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib/stubs" "-L$(TOP)/lib"
"""

REDIST_PARTS = ("bin", "include", "lib", "nvvm")
REDIST_LICENSE = "LICENSE"


def unpack_wheels(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack NVIDIA's Python packages: each holds a part of one ``nvidia/cu13``."""
    parts = (*WHEEL_PARTS, *(provided.fact(f) for f in LIBRARIES), *(f"lib/{n}" for n in STATIC))
    only = f"{WHEEL_ROOT}/cu{provided.version.partition('.')[0]}"
    for file, blob in _each(provided, blobs):
        what = _name(file)
        unpack_archive(blob, root, only=only, include=parts, limits=LIMITS, what=what)
        name, version = file.location.split("-")[:2]
        info = f"{name}-{version}.dist-info/licenses"
        unpack_archive(blob, _license(file, root), only=info, limits=LIMITS, what=what)
    arrange(provided, root)


def unpack_debian(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack Debian's packages, which keep nvcc, cicc and the headers apart, and join them.

    Of the 2.5 GB of ``nvidia-cuda-dev`` the headers, the stubs and two small static libraries
    are kept: the other static libraries are for programs that link cuBLAS into themselves.
    """
    scratch = root / DEBIAN_SCRATCH
    for file, blob in _each(provided, blobs):
        parts = _debian_parts(file.package)
        unpack_archive(blob, scratch, include=parts, limits=LIMITS, what=_name(file))
    for source, target in DEBIAN_MOVES:
        if not (scratch / source).exists():
            raise _lacks(provided, source)
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (scratch / source).rename(root / target)
    remove_tree(scratch)
    for pattern in DEBIAN_UNUSED:
        for path in (root / "include").glob(pattern):
            remove_tree(path)
    (root / "bin/nvcc.profile").write_text(DEBIAN_PROFILE, encoding="ascii", newline="\n")
    arrange(provided, root)


def unpack_redist(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack components of NVIDIA's redistributable archives, tar on Linux, zip on Windows.

    The licence is the same in all of them; it is taken from the first, which is a small one.
    """
    for number, (file, blob) in enumerate(_each(provided, blobs)):
        what = _name(file)
        unpack_archive(blob, root, strip=1, include=REDIST_PARTS, limits=LIMITS, what=what)
        if number == 0:
            place = _license(file, root)
            unpack_archive(
                blob, place, strip=1, include=(REDIST_LICENSE,), limits=LIMITS, what=what
            )
    for path in [*root.glob("lib/**/*.a"), *root.glob("lib/**/*_static*.lib")]:
        if path.name not in STATIC:
            remove_tree(path)
    arrange(provided, root)


def arrange(provided: ProvidedSet, root: Path) -> None:
    """Give an unpacked root what linking and CMake look for; links are relative."""
    for program in [*root.glob("bin/*"), *root.glob("nvvm/bin/*")]:
        if program.is_file() and program.suffix in PROGRAM_SUFFIXES:
            # Wheels do not carry the run bits of all their programs over.
            program.chmod(0o755)
    lib = root / "lib"
    for library, plain in _plain_names(lib):
        plain.symlink_to(library.name)
    if any(lib.glob("lib*.so")):
        _add_lib64(root)
        _add_stub(provided, root)


def _plain_names(lib: Path) -> Iterator[tuple[Path, Path]]:
    """Yield ``libcudart.so.13`` and the name ``libcudart.so`` where that is not there yet."""
    found: dict[Path, Path] = {}
    for library in sorted(lib.glob("lib*.so.*"), key=lambda p: (len(p.name), p.name)):
        plain = library.with_name(f"{library.name.partition('.so.')[0]}.so")
        if not plain.is_symlink() and not plain.exists():
            found.setdefault(plain, library)
    yield from ((library, plain) for plain, library in found.items())


def _add_lib64(root: Path) -> None:
    """Let ``lib64`` be ``lib``: NVIDIA's nvcc.profile looks there, its archives have ``lib``."""
    lib64 = root / "lib64"
    if not lib64.exists():
        lib64.symlink_to("lib")


def _add_stub(provided: ProvidedSet, root: Path) -> None:
    """Write what the driver's library is linked by, where the packages do not bring it.

    ggml-cuda links the driver, and a machine that only builds has none.
    """
    stub = root / STUB
    if stub.exists():
        return
    header = root / "include/cuda.h"
    if not header.is_file():
        raise _lacks(provided, "include/cuda.h")
    stub.parent.mkdir(exist_ok=True)
    stub.write_bytes(driver_stub(header.read_text(encoding="utf-8", errors="replace")))


def _debian_parts(package: str) -> tuple[str, ...]:
    common = ("usr/include", f"usr/share/doc/{package}/copyright")
    if package == DEBIAN_DEV:
        return (*common, *(f"{DEBIAN_LIB}/{name}" for name in DEBIAN_DEV_LIBRARIES))
    programs = (f"usr/bin/{p}" for p in DEBIAN_PROGRAMS)
    own = (f"{DEBIAN_OWN}/{p}" for p in ("bin/nvcc", "bin/crt", "bin/cicc", "libdevice"))
    return (*common, *programs, *own, DEBIAN_LIB)


def _each(provided: ProvidedSet, blobs: tuple[Path, ...]) -> Iterator[tuple[ProvidedFile, Path]]:
    return zip(provided.files, blobs, strict=True)


def _license(file: ProvidedFile, root: Path) -> Path:
    return root / LICENSES / file.package


def _name(file: ProvidedFile) -> str:
    return f"{file.package} {file.version}"


def _lacks(provided: ProvidedSet, what: str) -> ToolMissingError:
    return ToolMissingError(
        f"the set {provided.name} lacks {what}",
        why="its files unpacked without an error, but it is not in them",
        hint="its pins in toolchains/ do not belong together: renew all of them",
        kind="incomplete-set",
    )
