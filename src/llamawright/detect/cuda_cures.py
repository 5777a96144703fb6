"""What to do about a CUDA root that cannot be used: the next command of a stranger."""

from __future__ import annotations

import re

from llamawright.detect.cuda_parts import Flaw, Part, debian_prefix
from llamawright.detect.cuda_roots import COMPILER, CONDA, NAMED, VERSIONED, Place
from llamawright.detect.nvcc import Nvcc, resolved
from llamawright.detect.probe import Problem
from llamawright.detect.surroundings import Surroundings
from llamawright.model.inventory import Fault, Role

# By part: Debian's packages, and those of NVIDIA's repository before the release.
PACKAGES = {
    Part.COMPILER: ("nvidia-cuda-toolkit", "cuda-nvcc"),
    Part.HEADERS: ("nvidia-cuda-dev", "cuda-cudart-dev"),
    Part.CCCL: ("libcu++-dev libcub-dev libthrust-dev", "cuda-cccl"),
    Part.CUDART: ("nvidia-cuda-dev", "cuda-cudart-dev"),
    Part.CUBLAS: ("nvidia-cuda-dev", "libcublas-dev"),
}
APT = "sudo apt-get install"
INSTALLERS = {
    "debian": APT,
    "ubuntu": APT,
    "fedora": "sudo dnf install",
    "rhel": "sudo dnf install",
    "opensuse": "sudo zypper install",
}
DOWNLOADS = "https://developer.nvidia.com/cuda-downloads"
_RELEASE = re.compile(r"cuda-(\d{1,2})\.(\d)$")


def absent_cure(around: Surroundings) -> str:
    """Return how this system gets a toolkit at all."""
    return around.cure(Role.CUDA) or f"install the CUDA Toolkit: {DOWNLOADS}"


def cure_of_parts(place: Place, nvcc: Nvcc, flaws: list[Flaw], around: Surroundings) -> str:
    """Return how to get the parts that a root lacks."""
    if any(f.part is Part.MIXED for f in flaws):
        return "install one toolkit into one root only, or let CUDAToolkit_ROOT name a whole one"
    if place.where == CONDA or (nvcc.root / "conda-meta").is_dir():
        return f"conda install -c nvidia cuda-toolkit={nvcc.release}"
    debian = debian_prefix(nvcc.root) is not None
    suffix = "" if debian else "-" + nvcc.release.replace(".", "-")
    packages = [PACKAGES[p][not debian] + suffix for p in dict.fromkeys(f.part for f in flaws)]
    installer = _installer(around)
    if installer:
        return f"{installer} {' '.join(dict.fromkeys(packages))}"
    words = " and ".join(dict.fromkeys(f.part for f in flaws))
    return f"install the {words} of CUDA {nvcc.release} into {nvcc.root}"


def cure_of_place(place: Place, problem: Problem, around: Surroundings) -> str:
    """Return what to do about a place where no usable nvcc is."""
    if place.where in (*NAMED, COMPILER) or VERSIONED.fullmatch(place.where):
        return f"let {place.where} name a whole toolkit of this machine, or unset it"
    return _cure_of_fault(place, problem.fault, around)


def _cure_of_fault(place: Place, fault: Fault, around: Surroundings) -> str:
    program = around.platform.program("nvcc")
    nvcc = place.path if place.compiler else place.path / "bin" / program
    match fault:
        case Fault.DANGLING if place.path.is_symlink():
            return f"sudo rm {place.path}"
        case Fault.NOT_EXECUTABLE:
            return f"sudo chmod +x {nvcc}"
        case Fault.INCOMPLETE:
            return _missing_compiler(place, around)
        case Fault.UNSUPPORTED:
            return f"take {nvcc.parent} off PATH"
        case Fault.WRONG_MACHINE | Fault.TOO_OLD:
            return f"remove {nvcc}; {absent_cure(around)}"
        case _:
            return f"see what `{nvcc} --version` says, and install that toolkit again"


def _missing_compiler(place: Place, around: Surroundings) -> str:
    installer, release = _installer(around), _RELEASE.search(resolved(place.path).name)
    if place.path.parts[-2:] == ("lib", "cuda") and installer == APT:
        return f"{APT} nvidia-cuda-toolkit"
    if installer and release:
        return f"{installer} cuda-nvcc-{release[1]}-{release[2]}"
    return absent_cure(around)


def _installer(around: Surroundings) -> str:
    return next((INSTALLERS[s] for s in around.systems if s in INSTALLERS), "")
