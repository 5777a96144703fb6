"""CUDA artifacts to prove, and machines with NVIDIA cards: both fakes, both as data."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import zstandard

from llamawright.digest import sha256_file
from llamawright.model.artifact import BinaryFacts
from llamawright.model.cuda import Companion, CudaFacts
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Check, Outcome, Verdict
from llamawright.process import Command, Ending, Result
from llamawright.verify.patterns_cuda import CUDA_VARIABLES
from verify_kit import ANSWERS, Bench, manifest, pack

SMI = Path(__file__).parent / "fakes" / "verify_nvidia_smi.py"
NVIDIA = Path(__file__).parent / "fakes" / "verify_nvidia.toml"
H200 = "NVIDIA H200"
H200_PCI = "0000:41:00.0"
NAME = "llama.cpp-0c1e57098-cuda-linux_x86_64"
COMPANION = "llama.cpp-0c1e57098-cuda-libraries-linux_x86_64.tar.zst"
CUDA_RULE = BackendRule(
    backend=Backend.CUDA, modules=("ggml-cuda",), targets=("ggml-cuda",), device_prefix="CUDA"
)


def cuda_facts(*codes: str, **changes: object) -> CudaFacts:
    """Return what the manifest of an artifact of CUDA 12.4 says of its code."""
    base = CudaFacts(
        toolkit="12.4.131", codes=codes or ("sm_90",), driver="525.60.13", driver_jit="550.54.14"
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def imports(*names: str) -> BinaryFacts:
    """Return the CUDA module's imports as an audit tells them."""
    return BinaryFacts(
        path="bin/libggml-cuda.so", format="ELF", machine="x86_64", imports=names, runpath=(),
        glibc="", glibcxx="",
    )  # fmt: skip


def nvidia_machine(name: str) -> dict[str, object]:
    """Return a machine with NVIDIA cards, as data."""
    found = tomllib.loads(NVIDIA.read_text(encoding="utf-8"))[name]
    return {"card": [], **found}


def smi_result(text: str, *, code: int = 0, ending: Ending = Ending.EXITED) -> Result:
    """Return a run of ``nvidia-smi`` that printed a text."""
    return Result(
        command=Command(argv=("/x",), cwd=Path("/")), returncode=code, ending=ending,
        seconds=10.0, output=text, stdout=text, tail=tuple(text.splitlines()), log=None,
    )  # fmt: skip


def check(verdict: Verdict, name: str) -> Check:
    """Return a verdict's check by its name."""
    return next(c for c in verdict.checks if c.name == name)


def outcome(verdict: Verdict, name: str) -> Outcome:
    """Return the outcome of a verdict's check."""
    return check(verdict, name).outcome


def install_smi(folder: Path, machine: Mapping[str, object]) -> Path:
    """Put a fake ``nvidia-smi`` of a machine into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "machine.json").write_text(json.dumps(machine), encoding="utf-8")
    program = folder / "nvidia-smi"
    program.write_text(
        f"#!{sys.executable} -IS\n" + SMI.read_text(encoding="utf-8"), encoding="utf-8"
    )
    program.chmod(0o755)
    return program


class CudaBench(Bench):
    """A machine with NVIDIA cards and a CUDA artifact; each test changes one thing.

    ``codes`` is what the manifest says of the artifact's code, ``binaries`` what its files
    import, ``companion`` the archive that the manifest names.
    """

    codes: CudaFacts | None
    binaries: tuple[BinaryFacts, ...]
    machine: dict[str, object]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.codes, self.binaries, self.machine = cuda_facts(), (), {}
        (self.tree / "bin" / "libggml-vulkan.so").unlink()
        (self.tree / "bin" / "libggml-cuda.so").write_bytes(b"libggml-cuda.so" * 300)
        (self.root / "libcuda.so.580.159.04").write_bytes(b"libcuda" * 300)
        for name in CUDA_VARIABLES:
            self.patch.delenv(name, raising=False)
        self.patch.setattr("llamawright.verify.cuda_cards.KERNEL_DRIVER", self.root / "no-driver")
        self.patch.setattr("llamawright.verify.cuda_runtime.TOOLKIT_FOLDERS", ())
        self.has("h200")

    def has(self, name: str, **changes: object) -> None:
        """Make the machine another one of the data file."""
        self.machine = {**nvidia_machine(name), "busy": str(self.root / "busy"), **changes}
        install_smi(self.root / "path", self.machine)

    def has_no_nvidia(self) -> None:
        """Take ``nvidia-smi`` away, whatever the real machine has."""
        (self.root / "path" / "nvidia-smi").unlink()
        self.patch.setenv("PATH", str(self.root / "path"))

    def cards(self) -> list[Mapping[str, str]]:
        """Return the cards of the machine."""
        return cast("list[Mapping[str, str]]", self.machine["card"])

    def cuda_artifact(self, behaviour: Mapping[str, object] | None = None) -> Path:
        """Pack the fakes as a CUDA artifact that sees all cards of the machine."""
        cards = self.cards()
        lines = [f"ggml_cuda_init: found {len(cards)} CUDA devices (Total VRAM: 9 MiB):"]
        lines += [
            f"  Device {i}: {c['name']}, compute capability {c['capability']}, VMM: yes, "
            "VRAM: 9 MiB"
            for i, c in enumerate(cards)
        ]
        spec = {
            "answers": ANSWERS,
            "module": "libggml-cuda.so",
            "backend": "CUDA",
            "devices": [[f"CUDA{i}", c["name"], 9000] for i, c in enumerate(cards)],
            "init_lines": lines,
            "driver": str(self.root / "libcuda.so.580.159.04"),
            "using_pci": H200_PCI,
            **(behaviour or {}),
        }
        (self.tree / "bin" / "behaviour.json").write_text(json.dumps(spec), encoding="utf-8")
        told = manifest(
            self.tree, name=NAME, backend=Backend.CUDA, cuda=self.codes, binaries=self.binaries
        )
        return pack(self.tree, self.root, told)

    def request(self, artifact: Path, **changes: object) -> VerifyRequest:
        others = tuple(r for r in super().request(artifact).rules if r.backend != Backend.CUDA)
        return super().request(artifact, **{"rules": (*others, CUDA_RULE), **changes})

    def prove_cuda(
        self, behaviour: Mapping[str, object] | None = None, **changes: object
    ) -> Verdict:
        """Pack a behaviour and prove it on the machine's cards."""
        return self.verify(self.cuda_artifact(behaviour), **changes)

    def companion(
        self, *names: str, top: str = "libraries", where: Path | None = None
    ) -> Companion:
        """Write a companion archive beside the artifact and return what a manifest says of it."""
        place = (where or self.root) / COMPANION
        with (
            place.open("wb") as sink,
            zstandard.ZstdCompressor(level=1).stream_writer(sink) as packed,
            tarfile.open(fileobj=packed, mode="w|") as tar,
        ):
            for name in names:
                data = name.encode() * 100
                entry = tarfile.TarInfo(f"{top}/bin/{name}" if "/" not in name else f"{top}/{name}")
                entry.size, entry.mode = len(data), 0o755
                tar.addfile(entry, io.BytesIO(data))
        return Companion(
            file=COMPANION,
            sha256=sha256_file(place),
            size=place.stat().st_size,
            libraries=names,
        )

    def ran(self) -> set[str]:
        """Return the names of the programs' logs: what was really run."""
        return {p.stem for p in (self.root / "store" / "logs").rglob("*.log")}

    def log(self, name: str) -> str:
        """Return the whole log of a run."""
        return next((self.root / "store" / "logs").rglob(f"{name}.log")).read_text()


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CudaBench:
    """A machine with one H200 and an artifact with machine code for it."""
    return CudaBench(tmp_path, monkeypatch)
