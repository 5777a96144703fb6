"""Fake CUDA toolkits and NVIDIA drivers as data, beside what ``machine_kit`` writes.

A machine of ``fakes/cuda*.toml`` may also hold these lists:

``toolkit``: a whole toolkit below ``root``. ``version`` is nvcc's, ``layout`` one of
``nvidia``, ``debian``, ``conda`` and ``windows``; ``without`` names parts that are missing.
``nvcc``: one more nvcc. ``top`` is the root it tells (none: it tells no TOP, as Debian's).
``wrapper``: a script that only starts ``target``.
``smi``: an nvidia-smi, ``nvml``: a program in the place of the NVML child.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from llamawright.detect.surroundings import Surroundings
from llamawright.model.toolchain import Toolchains
from machine_kit import (
    FAKES,
    NO_TOOLCHAINS,
    Machine,
    Table,
    _placed,
    _rows,
    _with_bases,
    binary_head,
    stand_up,
    words,
    write_program,
)

CODES = {
    "11": "50 52 53 60 61 62 70 72 75 80 86 87 89 90",
    "12": "50 52 53 60 61 62 70 72 75 80 86 87 89 90",
    # As nvcc 13.0 prints them.
    "13": "75 80 86 87 88 89 90 100 110 103 120 121",
}
NVML = "nvml-child"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One row of ``toolkit`` with its defaults."""

    root: Path
    version: str
    layout: str
    machine: str
    headers: str
    cudart: str
    cublas: str
    cublas_header: str
    config: str
    codes: str
    without: tuple[str, ...]

    @property
    def major(self) -> str:
        return self.version.split(".")[0]

    @property
    def windows(self) -> bool:
        return self.layout == "windows"


def stand_up_cuda(name: str, root: Path, file: str = "cuda") -> Machine:
    """Write a machine of ``fakes/<file>.toml`` with its toolkits and drivers."""
    machine = stand_up(file, name, root)
    with (FAKES / f"{file}.toml").open("rb") as stream:
        tables = tomllib.load(stream)
    for table in _with_bases(tables, name):
        for row in _rows(table, "toolkit"):
            _toolkit(_parts(row, root))
        for row in _rows(table, "nvcc"):
            _nvcc(row, root)
        for row in _rows(table, "wrapper"):
            target = _placed(str(row["target"]), root)
            text = f'#!/bin/sh\nPATH=/nowhere\nexec {target} "$@"\n'
            write_program(root / str(row["path"]), text)
        for row in _rows(table, "smi"):
            write_program(root / str(row["path"]), _smi(row))
        for row in _rows(table, "nvml"):
            write_program(root / NVML, _answer(row))
        for gone in words(table.get("lose", [])):
            (root / gone).unlink()
    return machine


def around(
    machine: Machine,
    env: Mapping[str, str] = MappingProxyType({}),
    toolchains: Toolchains = NO_TOOLCHAINS,
) -> Surroundings:
    """Return a machine's surroundings; NVML is asked only where the machine has a child."""
    child = machine.root / NVML
    nvml = (str(child),) if child.exists() else ()
    return replace(machine.surroundings(toolchains, **env), nvml=nvml)


def host_config(release: str) -> str:
    """Return the lines of ``crt/host_config.h`` that one release has."""
    with (FAKES / "cuda-host-config.toml").open("rb") as stream:
        return str(tomllib.load(stream)[release]["text"])


def _parts(row: Table, root: Path) -> Parts:
    version = str(row["version"])
    major, minor, _ = version.split(".")
    blas = str(row.get("cublas", f"{version}.1"))
    return Parts(
        root=root / str(row["root"]),
        version=version,
        layout=str(row.get("layout", "nvidia")),
        machine=str(row.get("machine", "x86_64")),
        headers=str(row.get("headers", f"{major}.{minor}")),
        cudart=str(row.get("cudart", f"{major}.{minor}.99")),
        cublas=blas,
        cublas_header=str(row.get("cublas_header", blas)),
        config=str(row.get("config", f"{major}.{minor}")),
        codes=str(row.get("codes", CODES[major])),
        without=words(row.get("without", [])),
    )


def _toolkit(parts: Parts) -> None:
    prefix = parts.root.parent.parent
    debian = parts.layout == "debian"
    folders = {
        "nvidia": (
            parts.root / "targets/x86_64-linux/include",
            parts.root / "targets/x86_64-linux/lib",
        ),
        "conda": (
            parts.root / "targets/x86_64-linux/include",
            parts.root / "targets/x86_64-linux/lib",
        ),
        "debian": (prefix / "include", prefix / "lib/x86_64-linux-gnu"),
        "windows": (parts.root / "include", parts.root / "lib/x64"),
    }
    include, libraries = folders[parts.layout]
    if parts.layout == "nvidia":
        parts.root.mkdir(parents=True, exist_ok=True)
        (parts.root / "include").symlink_to("targets/x86_64-linux/include")
        (parts.root / "lib64").symlink_to("targets/x86_64-linux/lib")
    suffix = ".exe" if parts.windows else ""
    if "nvcc" not in parts.without:
        told = "" if debian else str(parts.root)
        row = {"version": parts.version, "codes": parts.codes}
        write_program(parts.root / f"bin/nvcc{suffix}", nvcc_text(row, told, include, libraries))
    programs = {
        "cicc": parts.root / ("bin" if debian else "nvvm/bin"),
        "ptxas": prefix / "bin" if debian else parts.root / "bin",
    }
    for name, folder in programs.items():
        if name not in parts.without:
            write_program(folder / f"{name}{suffix}", f"#!/bin/sh\n# {name} {parts.version}\n")
    _headers(parts, include)
    _libraries(parts, libraries)
    notice = (
        prefix / "share/doc/nvidia-cuda-toolkit/copyright" if debian else parts.root / "EULA.txt"
    )
    if "license" not in parts.without:
        _file(notice, "End User License Agreement")


def _headers(parts: Parts, include: Path) -> None:
    major, minor = parts.headers.split(".")
    blas = dict(zip(("MAJOR", "MINOR", "PATCH"), parts.cublas_header.split("."), strict=False))
    texts = {
        "cuda_runtime.h": "// runtime\n",
        "cuda_runtime_api.h": f"#define CUDART_VERSION  {int(major) * 1000 + int(minor) * 10}\n",
        "crt/host_config.h": host_config(parts.config),
    }
    if "headers" not in parts.without:
        for name, text in texts.items():
            _file(include / name, text)
    if "cublas" not in parts.without and "cublas-header" not in parts.without:
        lines = [f"#define CUBLAS_VER_{k} {v}" for k, v in blas.items()]
        _file(include / "cublas_api.h", "\n".join([*lines, ""]))
    inner = include / "cccl" if parts.major == "13" else include
    if "cccl" not in parts.without:
        _file(inner / "nv/target", "")
        _file(inner / "cub/cub.cuh", "")


def _libraries(parts: Parts, folder: Path) -> None:
    stubs = folder / "stubs"
    for stem, version in (
        ("cudart", parts.cudart),
        ("cublas", parts.cublas),
        ("cublasLt", parts.cublas),
    ):
        if parts.windows:
            _windows_library(parts, folder, stem)
            continue
        if stem.removesuffix("Lt") in parts.without:
            continue
        if f"{stem}-stub" in parts.without:
            _library(stubs / f"lib{stem}.so", parts.machine)
            continue
        name = f"lib{stem}.so"
        _library(folder / f"{name}.{version}", parts.machine)
        if f"{stem}-link" not in parts.without:
            (folder / name).symlink_to(f"{name}.{version}")
    if not parts.windows:
        _library(stubs / "libcuda.so", parts.machine)


def _windows_library(parts: Parts, folder: Path, stem: str) -> None:
    if stem.removesuffix("Lt") in parts.without:
        return
    _file(folder / f"{stem}.lib", "!<arch>\n")
    dlls = parts.root / ("bin/x64" if parts.major == "13" else "bin")
    number = "110" if (stem, parts.major) == ("cudart", "11") else parts.major
    if f"{stem}-dll" not in parts.without:
        dlls.mkdir(parents=True, exist_ok=True)
        (dlls / f"{stem}64_{number}.dll").write_bytes(binary_head("x86_64", "pe"))


def _library(path: Path, machine: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(binary_head(machine))


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _nvcc(row: Table, root: Path) -> None:
    path = root / str(row["path"])
    top = _placed(str(row.get("top", "")), root)
    write_program(path, nvcc_text(row, top, Path(top) / "include", Path(top) / "lib64"))


def nvcc_text(row: Table, top: str, include: Path, libraries: Path) -> str:
    """Return an nvcc as a script. ``needs_host``: without g++ on PATH its dry run fails."""
    version = str(row["version"])
    release = ".".join(version.split(".")[:2])
    codes = str(row.get("codes", CODES[version.split(".", maxsplit=1)[0]])).split()
    told = [
        "#$ _NVVM_BRANCH_=nvvm",
        "#$ _HERE_='\"$here\"'",
        *([f"#$ TOP={top}/bin/.."] if top else []),
        *([f'#$ INCLUDES="-I{include}"  '] if top else []),
        *([f'#$ SYSTEM_INCLUDES="-isystem" "{include}/cccl"  '] if top and "13" in release else []),
        f"#$ LIBRARIES=  -L{libraries}/stubs -L{libraries}",
        '#$ gcc -E "x.cu"',
    ]
    dry = "\n".join(told)
    says = "nvcc: NVIDIA (R) Cuda compiler driver\n"
    says += f"Cuda compilation tools, release {release}, V{version}"
    listed = "\n".join(f"compute_{c}" for c in codes)
    if not row.get("lists", True):
        listed, status = "nvcc fatal   : Unknown option '--list-gpu-arch'", 1
    else:
        status = 0
    fails = "nvcc fatal   : Failed to preprocess host compiler properties."
    host = (
        '[ -x "${PATH%%:*}/g++" ] || { echo "' + fails + '" >&2; exit 1; }'
        if row.get("needs_host")
        else ":"
    )
    return "\n".join(
        [
            "#!/bin/sh",
            "here=${0%/*}",
            'case " $* " in',
            f"*' --version '*) printf '%s\\n' {shlex.quote(says)}; exit 0;;",
            f"*' --list-gpu-arch '*) printf '%s\\n' {shlex.quote(listed)}; exit {status};;",
            f"*' --dryrun '*) {host}",
            f"printf '%s\\n' '{dry}' >&2; exit 0;;",
            "esac",
            "exit 1",
            "",
        ]
    )


def _smi(row: Table) -> str:
    """Return an nvidia-smi that knows the fields of its row, or answers one thing always."""
    if "fields" not in row:
        return _answer(row)
    known = words(row["fields"])
    lines = [
        "#!/bin/sh",
        'query=; for a; do case "$a" in --query-gpu=*) query=${a#*=};; esac; done',
    ]
    lines += ['IFS=,; for f in $query; do case "$f" in', f"{'|'.join(known)}) ;;"]
    lines += ['*) echo "Field \\"$f\\" is not a valid field to query."; exit 2;; esac; done']
    for card in _rows(row, "card"):
        lines.append('sep=; line=; for f in $query; do case "$f" in')
        lines += [f"{name}) v={shlex.quote(str(card[name]))};;" for name in known]
        lines.append('esac; line="$line$sep$v"; sep=", "; done; printf "%s\\n" "$line"')
    return "\n".join([*lines, ""])


def _answer(row: Table) -> str:
    lines = ["#!/bin/sh"]
    if row.get("hangs"):
        lines.append("exec /bin/sleep 600")
    if row.get("signal"):
        lines.append(f"kill -{row['signal']} $$")
    if "json" in row:
        lines.append(f"printf '%s\\n' {shlex.quote(json.dumps(row['json']))}")
    if "says" in row:
        lines.append(f"printf '%s\\n' {shlex.quote(str(row['says']))}")
    if "complains" in row:
        lines.append(f"printf '%s\\n' {shlex.quote(str(row['complains']))} >&2")
    return "\n".join([*lines, f"exit {row.get('exit', 0)}", ""])


def machines(file: str = "cuda") -> Iterator[str]:
    """Yield the machines of a file."""
    with (FAKES / f"{file}.toml").open("rb") as stream:
        yield from tomllib.load(stream)
