"""Artifacts to prove: packed from any folder of programs, or of fakes that misbehave."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import psutil
import pytest
import zstandard

from llamawright import codec
from llamawright.config import load_recipe
from llamawright.digest import sha256_file
from llamawright.model.artifact import MANIFEST_NAME, MANIFEST_SCHEMA, FileEntry, Manifest
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import Prompt, Recipe, Threshold, Verification, Workload
from llamawright.model.request import SoftwareDriver, VerifyRequest
from llamawright.model.verdict import Verdict
from llamawright.paths import data_root
from llamawright.process import Command, Ending, Result
from llamawright.store import Store
from llamawright.verify import verify
from llamawright.verify.sampling import ProcSampler
from llamawright.verify.supervise import Phase
from llamawright.verify.witness import Sighting, read_vulkan
from reporter_kit import Told

LINUX = Platform(System.LINUX, "x86_64")
NAME = "llama.cpp-0c1e57098-vulkan-linux_x86_64"
GPU = "Imaginary GPU 9000"
PCI = "0000:41:00.0"
LLVMPIPE = "llvmpipe (LLVM 15.0.6, 256 bits)"
FAKE = Path(__file__).parent / "fakes" / "verify_llama.py"
GOLDEN = Path(__file__).parent / "golden" / "verify"
PROGRAMS = ("llama-completion", "llama-perplexity", "llama-bench", "llama-quantize")
PROMPTS = (
    Prompt(text="The capital of France is", tokens=4, expect="Paris"),
    Prompt(text="One, two,", tokens=3, expect="three"),
)
ANSWERS = {PROMPTS[0].text: " Paris.", PROMPTS[1].text: " three, four"}


def left_running() -> list[psutil.Process]:
    """Return the living children of this process; the guard of long ones stays as long as we."""
    return [
        p
        for p in psutil.Process().children(recursive=True)
        if "process_guard.py" not in " ".join(p.cmdline())
    ]


@cache
def recipe() -> Recipe:
    """Return the real recipe: the tests hold for what users get."""
    return load_recipe(data_root() / "recipes" / "llama.cpp.toml")


def verification(**changes: object) -> Verification:
    """Return the real recipe's table with a workload and limits that fit a test."""
    quick = {
        "prompts": PROMPTS,
        "hardware": Workload(context=8, chunks=2, batches=(1, 32), prompts=(256, 4)),
        "software": Workload(context=8, chunks=2, batches=(32,), prompts=(256,)),
        "max_mean_kld": Threshold(value=0.02, reason="a test"),
        "min_top1": Threshold(value=0.75, reason="a test"),
        "probe_s": 10.0,
        "load_s": 10.0,
        "first_token_s": 10.0,
        "total_s": 30.0,
        "output_cap": 1 << 20,
        "types": (),
        "max_repeat": None,
        "operations": (),
    }
    return replace(recipe().verification, **{**quick, **changes})  # type: ignore[arg-type]


def gguf(
    path: Path, *, layers: int = 30, weights: int = 1 << 18, embeddings: int = 1 << 12,
    extra: Mapping[str, int] | None = None, cut: int = 0, version: int = 3, kind: int = 0,
) -> Path:  # fmt: skip
    """Write a model of two tensors; ``weights`` and ``embeddings`` are counts of floats."""
    facts = {"llama.block_count": layers, **(extra or {})}
    out = struct.pack("<4sIQQ", b"GGUF", version, 2, 2 + len(facts))
    out += _text("general.architecture") + struct.pack("<I", 8) + _text("llama")
    out += _text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + _text("a") + _text("b")
    for key, value in facts.items():
        out += _text(key) + struct.pack("<II", 4, value)
    out += _text("token_embd.weight") + struct.pack("<IQIQ", 1, embeddings, kind, 0)
    out += _text("blk.0.weight") + struct.pack("<IQIQ", 1, weights, kind, embeddings * 4)
    out += b"\0" * (-len(out) % 32) + b"\0" * (4 * (weights + embeddings))
    path.write_bytes(out[: len(out) - cut] if cut else out)
    return path


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def manifest(root: Path, *, name: str = NAME, backend: Backend = Backend.VULKAN,
             platform: Platform = LINUX, **more: object) -> Manifest:  # fmt: skip
    """Return a manifest that tells the truth about the files below ``root``."""
    files = []
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.name != MANIFEST_NAME):
        data = path.read_bytes()
        files.append(
            FileEntry(
                path=path.relative_to(root).as_posix(),
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                executable=bool(path.stat().st_mode & stat.S_IXUSR) and not path.is_symlink(),
                link=path.readlink().as_posix() if path.is_symlink() else "",
            )
        )
    told = Manifest(
        schema=MANIFEST_SCHEMA, name=name, key="k" * 64, abi="a" * 64,
        upstream="ggml-org/llama.cpp", commit="0c1e57098", build_number=11312,
        source_digest="s" * 64, patched_digest="p" * 64, backend=backend, platform=platform,
        patches=(), retired=(), tools=(), options=(), capabilities=(), inputs=(), modules=(),
        programs=(), files=tuple(files), binaries=(), system_libraries=(), glibc="", glibcxx="",
    )  # fmt: skip
    return replace(told, **more)  # type: ignore[arg-type]


def pack(root: Path, dest: Path, told: Manifest) -> Path:
    """Write a folder and its manifest as an artifact; ``told`` may lie."""
    (root / MANIFEST_NAME).write_text(codec.encode(told), encoding="utf-8")
    path = dest / f"{told.name}.tar.zst"
    with (
        path.open("wb") as sink,
        zstandard.ZstdCompressor(level=1).stream_writer(sink) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        tar.add(root, arcname=told.name)
    return path


@dataclass(slots=True)
class Bench:
    """A machine, an artifact and a store, each test changing one thing.

    ``hardware`` are the devices that the fake Vulkan driver of the machine shows.
    """

    root: Path
    patch: pytest.MonkeyPatch
    told: Told = field(default_factory=Told)
    hardware: tuple[tuple[str, int], ...] = ((GPU, 2),)
    probe_exit: str = ""

    def __post_init__(self) -> None:
        self.tree.joinpath("bin").mkdir(parents=True)
        shebang = f"#!{sys.executable} -IS\n"
        for name in PROGRAMS:
            program = self.tree / "bin" / name
            program.write_text(shebang + FAKE.read_text(encoding="utf-8"), encoding="utf-8")
            program.chmod(0o755)
        for name in ("libggml-vulkan.so", "libggml-cpu-x64.so"):
            (self.tree / "bin" / name).write_bytes(name.encode() * 300)
        for name in ("libGLX_fake.so", "libvulkan_lvp.so", "libGLX_nvidia.so.1"):
            (self.root / name).write_bytes(name.encode() * 300)
        self._smi()
        self._seen()
        # Thirty waits for the disk in each proof are the journal's own tests' business.
        self.patch.setattr(os, "fsync", lambda _handle: None)

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def store(self) -> Store:
        return Store(self.root / "store")

    def artifact(
        self, behaviour: Mapping[str, object] | None = None, backend: Backend = Backend.VULKAN
    ) -> Path:
        """Pack the fakes with a behaviour; ``name: value`` pairs of the fake program."""
        spec = {
            "answers": ANSWERS,
            "devices": [["Vulkan0", GPU, 16000]],
            "software_devices": [["Vulkan0", LLVMPIPE, 2048]],
            "using_pci": PCI,
            "driver": str(self.root / "libGLX_nvidia.so.1"),
            **(behaviour or {}),
        }
        (self.tree / "bin" / "behaviour.json").write_text(json.dumps(spec), encoding="utf-8")
        name = f"llama.cpp-0c1e57098-{backend}-linux_x86_64"
        return pack(self.tree, self.root, manifest(self.tree, name=name, backend=backend))

    def driver(self) -> SoftwareDriver:
        library = self.root / "libvulkan_lvp.so"
        env = (("VK_DRIVER_FILES", str(self.root / "lvp.json")), ("FAKE_DRIVER", str(library)))
        return SoftwareDriver(name="llvmpipe of a test", env=env, root=self.root)

    def request(self, artifact: Path, **changes: object) -> VerifyRequest:
        model = self.root / "model.gguf"
        if not model.exists():
            gguf(model)
        base = VerifyRequest(
            artifact=artifact,
            model=model,
            model_sha256=sha256_file(model),
            verification=verification(),
            rules=recipe().backends,
            platform=LINUX,
        )
        return replace(base, **changes)  # type: ignore[arg-type]

    def verify(self, artifact: Path, **changes: object) -> Verdict:
        """Prove the artifact on the fake machine."""
        self._probe()
        return verify(
            self.request(artifact, **changes), store=self.store, reporter=self.told
        ).verdict

    def prove(self, behaviour: Mapping[str, object] | None = None) -> Verdict:
        """Pack a behaviour and prove it on the hardware device."""
        return self.verify(self.artifact(behaviour))

    def prove_in_software(self, behaviour: Mapping[str, object] | None = None) -> Verdict:
        """Pack a behaviour and prove it through the software driver, with no hardware there."""
        self.hardware = ()
        return self.verify(
            self.artifact({"devices": [], **(behaviour or {})}), driver=self.driver()
        )

    def _probe(self) -> None:
        rows = [_probed(i, name, kind) for i, (name, kind) in enumerate(self.hardware)]
        software = [_probed(0, LLVMPIPE, 4)]
        probe = self.root / "probe.py"
        probe.write_text(
            "import json, os, signal, sys\n"
            f"{self.probe_exit or 'pass'}\n"
            f"rows = {rows!r}\n"
            f"software = {software!r}\n"
            "print(json.dumps(software if os.environ.get('FAKE_DRIVER') else rows))\n"
        )
        self.patch.setattr("llamawright.verify.witness.PROBE", probe)
        if not self.probe_exit:
            # The same answer without a child: the probe's own tests start it.
            self.patch.setattr("llamawright.verify.survey.look", _look(rows, software))

    def _smi(self) -> None:
        """Put a fake nvidia-smi on the PATH; the fakes' FAKE_BUSY file makes memory rise."""
        folder = self.root / "path"
        folder.mkdir()
        busy = self.root / "busy"
        program = folder / "nvidia-smi"
        program.write_text(
            f"#!{sys.executable} -IS\n"
            "import sys, time\nfrom pathlib import Path\n"
            "while True:\n"
            f"    used = 300 if Path({str(busy)!r}).exists() else 4\n"
            f"    print('0000{PCI}, {GPU}, %d, 16000, 580.1' % used, flush=True)\n"
            "    if '-lms' not in sys.argv: break\n"
            "    time.sleep(0.02)\n"
        )
        program.chmod(0o755)
        self.patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        self.patch.setattr(
            "llamawright.verify.install.DRIVER_VARIABLES",
            ("VK_DRIVER_FILES", "FAKE_BUSY", "FAKE_SEEN"),
        )
        self.patch.setenv("FAKE_BUSY", str(busy))

    def _seen(self) -> None:
        """Leave a note for a fake that it was looked at, as ``wait_to_be_seen`` expects."""
        folder = self.root / "seen"
        folder.mkdir()
        look = ProcSampler.__call__

        def noting(sampler: ProcSampler, pid: int, phase: Phase) -> None:
            look(sampler, pid, phase)
            if phase.has_backends:
                (folder / str(pid)).touch()

        self.patch.setattr(ProcSampler, "__call__", noting)
        self.patch.setenv("FAKE_SEEN", str(folder))


def _look(
    rows: list[dict[str, object]], software: list[dict[str, object]]
) -> Callable[..., Sighting]:
    def look(_backend: Backend, env: Mapping[str, str], *, seconds: float) -> Sighting:
        text = json.dumps(software if "FAKE_DRIVER" in env else rows)
        command = Command(argv=("probe",), cwd=Path("/"))
        return read_vulkan(
            Result(
                command=command,
                returncode=0,
                ending=Ending.EXITED,
                seconds=seconds,
                output=text,
                stdout=text,
                tail=(),
                log=None,
            )
        )

    return look


def _probed(index: int, name: str, kind: int) -> dict[str, object]:
    return {
        "index": index, "name": name, "type": kind, "vendor": 1, "api": "1.3.0",
        "driver_id": 13 if kind == 4 else 4, "driver_name": "fake", "driver_info": "1.0",
        "uuid": "0" * 32, "pci": "" if kind == 4 else f"0000:{0x41 + index:02x}:00.0",
        "memory": 1 << 30, "storage16": True,
    }  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A machine with one imaginary GPU and an artifact made of fakes."""
    return Bench(tmp_path, monkeypatch)
