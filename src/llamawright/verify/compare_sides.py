"""The two that are compared, each unpacked and led to the same device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import (
    LlamawrightError,
    NoDeviceError,
    PackageError,
    UsageError,
    VerificationError,
)
from llamawright.model.artifact import MANIFEST_SCHEMA, Manifest
from llamawright.model.comparison import Entrant, Letter
from llamawright.model.platform import Backend
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Device, State
from llamawright.store import Store
from llamawright.transfer.opened import open_artifact
from llamawright.verify import quarantine
from llamawright.verify.cuda_setup import make_cuda
from llamawright.verify.device import ProvideDriver, choose_device
from llamawright.verify.install import Install, missing_modules
from llamawright.verify.judge import Ruling
from llamawright.verify.setup import Setting, make_setting
from llamawright.verify.survey import Chosen, code_for

PROGRAMS = ("llama-completion", "llama-bench")
# Where upstream's archives and build trees keep their programs.
PLACES = (".", "bin", "build/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """One side, ready to run; ``jit``: its driver compiles PTX first, which takes minutes."""

    entrant: Entrant
    setting: Setting
    chosen: Chosen
    jit: bool = False

    @property
    def env(self) -> Mapping[str, str]:
        """Return the environment of its runs."""
        return {**self.setting.scene.env, **self.chosen.env}

    @property
    def device(self) -> Device:
        """Return where it computes."""
        return self.chosen.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What both sides are opened with."""

    store: Store
    provide_driver: ProvideDriver

    def both(self, a: VerifyRequest, b: VerifyRequest, room: Path) -> tuple[Ready, Ready]:
        """Unpack both and find one device; a folder needs an artifact to be compared with.

        Raises what a failed proof of either would say.
        """
        if not a.artifact.is_dir():
            first = self._artifact(Letter.A, a, room / "a")
            return first, self._second(Letter.B, first, b, room / "b")
        if b.artifact.is_dir():
            raise UsageError(
                "two folders cannot be compared",
                why="nothing says which backend they are of",
                hint="name a packed artifact as one of the two",
                kind="two-folders",
            )
        last = self._artifact(Letter.B, b, room / "b")
        return self._second(Letter.A, last, a, room / "a"), last

    def _artifact(self, letter: Letter, request: VerifyRequest, room: Path) -> Ready:
        return self.ready(letter, request, *unpacked(letter, request, room))

    def _second(self, letter: Letter, first: Ready, request: VerifyRequest, room: Path) -> Ready:
        """Open the other side, and lead it to the device that the first one has."""
        if request.artifact.is_dir():
            manifest, install = linked(request, room, first.setting.manifest)
        else:
            manifest, install = unpacked(letter, request, room)
        device = selector_for(first, str(manifest.backend), request.device)
        return self.ready(letter, replace(request, device=device), manifest, install)

    def ready(
        self, letter: Letter, request: VerifyRequest, manifest: Manifest, install: Install
    ) -> Ready:
        """Find the device of an install; raises what a failed proof would say."""
        setting = self._setting(letter, request, manifest, install)
        chosen = choose_device(setting, self.provide_driver)
        if isinstance(chosen, Ruling):
            raise refusal(letter, chosen)
        code = code_for(setting.scene, chosen)
        if isinstance(code, Ruling):
            raise refusal(letter, code)
        packed = request.artifact.is_file()
        entrant = Entrant(
            letter=letter,
            name=manifest.name,
            file=request.artifact.name,
            sha256=setting.stage.facts["artifact"],
            backend=str(manifest.backend),
            device=chosen.device,
            source=f"{manifest.upstream} {manifest.commit[:9]}"
            if packed
            else "a folder of binaries",
        )
        return Ready(
            entrant=entrant, setting=setting, chosen=chosen, jit=code is not None and code.jit
        )

    def _setting(
        self,
        letter: Letter,
        request: VerifyRequest,
        manifest: Manifest,
        install: Install,
    ) -> Setting:
        room = install.root.parent
        sha256 = sha256_file(request.artifact) if request.artifact.is_file() else ""
        self._require_no_freeze(letter, request, sha256)
        setting = make_setting(
            request, manifest, install, room=room, store=self.store, sha256=sha256
        )
        # Both may have one name: their logs must not take each other's place.
        logs = self.store.logs(f"compare-{letter.lower()}-{manifest.name}")
        setting = replace(setting, stage=replace(setting.stage, logs=logs))
        if manifest.backend is not Backend.CUDA:
            return setting
        cuda = make_cuda(request, manifest, install, setting.scene.env)
        if isinstance(cuda, Ruling):
            raise refusal(letter, cuda)
        return replace(setting, scene=replace(setting.scene, cuda=cuda))

    def _require_no_freeze(self, letter: Letter, request: VerifyRequest, sha256: str) -> None:
        """Refuse what froze the machine before, unless it was told to try again."""
        found = quarantine.freezes(self.store.journal, artifact=sha256) if sha256 else ()
        if found and not request.clear_quarantine:
            raise refusal(letter, quarantine.ruling(found))
        quarantine.lift(self.store.journal, found)


def unpacked(letter: Letter, request: VerifyRequest, room: Path) -> tuple[Manifest, Install]:
    """Unpack a packed artifact; ``PackageError`` when it is none that runs here."""
    manifest = open_artifact(request.artifact, room / "artifact")
    if manifest.platform != request.platform:
        raise PackageError(
            f"{letter} cannot run here: {request.artifact.name}",
            why=f"it is for {manifest.platform.tag}, this is {request.platform.tag}",
            hint="compare artifacts that were built for this machine",
            kind="other-platform",
        )
    install = Install(root=(room / "artifact").resolve(), platform=request.platform)
    missing = missing_modules(install, manifest, request.rules)
    if missing:
        raise PackageError(
            f"{letter} has no {', '.join(missing)}: {request.artifact.name}",
            hint="build or fetch it again",
            kind="module-missing",
        )
    return manifest, install


def linked(request: VerifyRequest, room: Path, like: Manifest) -> tuple[Manifest, Install]:
    """Lead to a folder of upstream's own binaries, of the same backend as the artifact's."""
    programs = find_programs(request.artifact, request)
    root = room / "artifact"
    root.mkdir(parents=True)
    (root / "bin").symlink_to(programs.resolve(), target_is_directory=True)
    return stand_in(request, like), Install(root=root, platform=request.platform)


def find_programs(folder: Path, request: VerifyRequest) -> Path:
    """Return the folder that holds upstream's programs; ``PackageError`` says what is missing."""
    names = [request.platform.program(p) for p in PROGRAMS]
    for place in PLACES:
        if all((folder / place / n).is_file() for n in names):
            return folder / place
    raise PackageError(
        f"{folder} holds no build of llama.cpp to compare with",
        why=f"{' and '.join(names)} must be in it, in its bin or its build/bin",
        hint="name the folder that an upstream archive unpacks to",
        kind="no-programs",
    )


def stand_in(request: VerifyRequest, like: Manifest) -> Manifest:
    """Return what a folder's manifest would say, as far as its runs need one."""
    return Manifest(
        schema=MANIFEST_SCHEMA, name=request.artifact.resolve().name, key="", abi="", upstream="",
        commit="", build_number=like.build_number, source_digest="", patched_digest="",
        backend=like.backend, platform=request.platform, patches=(), retired=(), tools=(),
        options=(), capabilities=(), inputs=(), modules=(), programs=(), files=(), binaries=(),
        system_libraries=(), glibc="", glibcxx="",
    )  # fmt: skip


def selector_for(first: Ready, backend: str, device: str | None) -> str | None:
    """Return how the other side finds the device of the first.

    ggml's ids and orders differ between backends: a card is then named by its place, or by
    its name.
    """
    if first.setting.cpu or first.device.software or backend == first.entrant.backend:
        return device
    return first.device.pci or first.device.name


def require_one_device(a: Ready, b: Ready) -> str:
    """Refuse two devices; return a note where one side is the CPU, which is meant then."""
    if a.setting.cpu or b.setting.cpu:
        same = a.setting.cpu and b.setting.cpu
        return "" if same else f"A computes on {a.device.name}, B on {b.device.name}"
    here, there = a.device, b.device
    if here.pci and there.pci:
        same = here.pci == there.pci
    else:
        same = here.name.casefold() == there.name.casefold()
    if not same:
        raise NoDeviceError(
            "the two would run on different devices",
            why=f"A takes {here.id} {here.name} {here.pci}, B takes {there.id} {there.name} "
            f"{there.pci}",
            hint="name one device by its PCI place: --device 0000:01:00.0",
            kind="different-devices",
        )
    return ""


def refusal(letter: Letter, found: Ruling) -> LlamawrightError:
    """Return what the command line ends with when a side cannot be run on a device."""
    failed = found.state in (State.FAILED, State.QUARANTINED)
    kind = VerificationError if failed else NoDeviceError
    return kind(
        f"{letter} cannot be measured here",
        why=found.why,
        hint=found.hint or "llamawright verify FILE tells what is wrong with it",
        kind=found.failure or str(found.state),
    )
