"""CUDA toolkits, cards and drivers for the resolver's tests: no file, no process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llamawright.model.cuda import Gpu, Gpus, Presence
from llamawright.model.inventory import Available, Found, Inventory, Role
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, CudaRule, Option
from llamawright.model.request import Request
from llamawright.model.toolchain import CudaDriver, Fact, KnownBad, Toolchains
from resolve_kit import BASE, NO_TOOLCHAINS, RECIPE, found, inventory, request

CODES_11_8 = "35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90"
CODES_12_4 = "50 52 53 60 61 62 70 72 75 80 86 87 89 90"
CODES_12_9 = "50 52 53 60 61 62 70 72 75 80 86 87 89 90 100 101 103 120 121"
CODES_13_0 = "75 80 86 87 88 89 90 100 110 103 120 121"
RULE = BackendRule(
    backend=Backend.CUDA,
    options=(
        Option(name="GGML_CUDA", value="ON"),
        Option(name="GGML_CUDA_COMPRESSION_MODE", value="size", type="STRING"),
    ),
    targets=("ggml-cuda",),
    modules=("ggml-cuda",),
    device_prefix="CUDA",
    cuda=CudaRule(release=("61", "75", "89", "120", "90-virtual"), exact=(120, 121)),
)
CUDA_RECIPE = replace(RECIPE, backends=(*RECIPE.backends, RULE))
DRIVERS = (
    CudaDriver(cuda="11", linux="450.80.02", windows="452.39"),
    CudaDriver(cuda="12", linux="525.60.13", windows="527.41"),
    CudaDriver(cuda="12.4", linux="550.54.14", windows="551.61"),
    CudaDriver(cuda="13", linux="580.65.06", windows="580.88"),
    CudaDriver(cuda="13.0", linux="580.65.06", windows="580.88"),
)
BAD = (
    KnownBad(
        role=Role.CUDA, versions=">=13.2,<13.2.86", reason="miscompiles", link="https://x/1",
        quants=("IQ1_S",),
    ),
    KnownBad(
        role=Role.CUDA, versions=">=13.0,<13.1", reason="wrong numbers", link="https://x/2",
        codes=(120,),
    ),
)  # fmt: skip
TOOLCHAINS: Toolchains = replace(NO_TOOLCHAINS, cuda_drivers=DRIVERS, known_bad=BAD)


def toolkit(version: str, codes: str, *, root: str = "", gcc: int = 13, clang: int = 17) -> Found:
    """Return a toolkit as detection would have found it."""
    root = root or f"/usr/local/cuda-{version.rpartition('.')[0]}"
    major = version.partition(".")[0]
    facts: dict[str, str] = {
        Fact.CUDA_ROOT: root,
        Fact.NVCC: f"{root}/bin/nvcc",
        Fact.CUDA_CODES: codes,
        Fact.GCC_MAX: str(gcc),
        Fact.CLANG_MAX: str(clang),
        Fact.CUDART: f"{root}/lib64/libcudart.so.{major}",
        Fact.CUBLAS: f"{root}/lib64/libcublas.so.{major}",
        Fact.CUBLASLT: f"{root}/lib64/libcublasLt.so.{major}",
        Fact.LICENSE: f"{root}/EULA.txt",
    }
    tool = found(Role.CUDA, "cuda toolkit", version, root)
    return replace(tool, where="system", facts=tuple(facts.items()))


def cuda_set(version: str, codes: str, *, gcc: int = 13, present: bool = False) -> Available:
    """Return a toolkit that can be provided, of a gigabyte."""
    facts: dict[str, str] = {
        Fact.CUDA_ROOT: "cuda",
        Fact.NVCC: "cuda/bin/nvcc",
        Fact.CUDA_CODES: codes,
        Fact.GCC_MAX: str(gcc),
        Fact.CLANG_MAX: "17",
        Fact.CUDART: "cuda/lib64/libcudart.so",
        Fact.CUBLAS: "cuda/lib64/libcublas.so",
        Fact.CUBLASLT: "cuda/lib64/libcublasLt.so",
        Fact.CUDA_CCCL: "cuda/cccl",
    }
    return Available(
        role=Role.CUDA, name=f"cuda-{version}-set", version=version, digest=version[0] * 64,
        size=1_000_000_000, root=Path("/store/tools/cc"), present=present,
        facts=tuple(facts.items()),
    )  # fmt: skip


CUDA_11_8 = toolkit("11.8.89", CODES_11_8, gcc=13)
CUDA_12_4 = toolkit("12.4.131", CODES_12_4)
CUDA_12_9 = toolkit("12.9.86", CODES_12_9, gcc=14)
CUDA_13_0 = toolkit("13.0.88", CODES_13_0, gcc=15)
SET_12_4 = cuda_set("12.4.131", CODES_12_4)
SET_13_0 = cuda_set("13.0.88", CODES_13_0, gcc=15)


def cards(*capabilities: int, driver: str = "580.159.04", cuda: str = "13.0") -> Gpus:
    """Return a machine's cards by their capabilities (61, 89)."""
    return Gpus(
        presence=Presence.PRESENT,
        cards=tuple(
            Gpu(index=i, name=f"Card {c}", pci=f"0000:{i:02x}:00.0", capability=c, memory=8 << 30)
            for i, c in enumerate(capabilities, start=1)
        ),
        driver=driver,
        cuda=cuda,
        source="NVML",
    )


NO_CARDS = Gpus(presence=Presence.ABSENT, reason="there is no NVIDIA driver")


def machine(*tools: Found, sets: tuple[Available, ...] = (), gpus: Gpus = NO_CARDS) -> Inventory:
    """Return a machine with the usual tools and these toolkits."""
    return replace(inventory(*BASE, *tools, sets=sets), gpus=gpus)


def wanted(*archs: str, toolkit_from: str = "auto") -> Request:
    """Return a request for CUDA code."""
    base = request(backend=Backend.CUDA, recipe=CUDA_RECIPE)
    return replace(base, archs=archs, cuda_toolkit=toolkit_from)
