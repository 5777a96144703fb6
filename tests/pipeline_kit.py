"""The pipeline over rooms that only note how they were called."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cli_kit import artifact, verdict
from llamawright.cli.arguments import make_parser
from llamawright.config import build_proof
from llamawright.model.artifact import Manifest
from llamawright.model.inventory import Role
from llamawright.model.plan import PatchedTree, Plan, SourceTree
from llamawright.model.platform import Backend
from llamawright.model.request import ProofRequest, Request, SoftwareDriver, VerifyRequest
from llamawright.model.toolchain import ProvidedSet, Toolchains
from llamawright.model.verdict import Proof, Verdict
from llamawright.pipeline import Pipeline
from llamawright.store import Store
from package_kit import LINUX, plan, recipe
from reporter_kit import Told
from resolve_kit import NO_TOOLCHAINS

ROOM = "llamawright.pipeline"
# What the pipeline imports only where it is needed is replaced in its room.
LATE = {
    name: f"llamawright.{room}"
    for room, names in {
        "build": ("build_host", "build_module"),
        "fetch": ("fetch_source", "fetch_model"),
        "package": ("pack", "packed_before", "place"),
        "verify": ("verify", "write_report", "compare", "write_comparison"),
    }.items()
    for name in names
}


def provided(name: str, role: Role, platforms: tuple[str, ...] = ("linux_x86_64",)) -> ProvidedSet:
    return ProvidedSet(
        name=name, role=role, version="1", layout="wheel", platforms=platforms, files=()
    )  # fmt: skip


SETS = (
    provided("driver-mac", Role.DRIVER, ("macos_arm64",)),
    provided("vulkan-debian13", Role.VULKAN),
    provided("driver-linux", Role.DRIVER),
)


def proof_of(flags: Namespace) -> ProofRequest:
    """Return what the flags alone say of a proof."""
    return build_proof(vars(flags), env={}, settings_file=None)


@dataclass
class Rooms:
    """Every room replaced by one that notes its call; each test changes one of them."""

    root: Path
    patch: pytest.MonkeyPatch
    made: Plan = field(default_factory=plan)
    known: bool = False
    manifest: Manifest | None = None
    verdict: Verdict = field(default_factory=verdict)
    calls: list[str] = field(default_factory=list)
    offline: dict[str, bool] = field(default_factory=dict)
    proofs: list[VerifyRequest] = field(default_factory=list)
    drivers: list[Callable[[], SoftwareDriver | None] | None] = field(default_factory=list)
    built: list[Plan] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = SourceTree(root=self.root / "source", digest="d" * 64, origin="index")
        patched = PatchedTree(
            root=self.root, digest="p" * 64, source_digest="s" * 64, applied=(), retired=()
        )  # fmt: skip
        packed = artifact(self.root / "store")
        (self.root / "x.tar.zst").touch()
        self.manifest = packed.manifest
        self.say("load_series", "series")
        self.say("planned", ())
        self.say("take_inventory", "inventory")
        self.put("resolve", lambda *_a: self.made)
        self.say("provided_tools", ())
        self.say("fetch_source", source)
        self.say("fetch_model", self.root / "model.gguf")
        self.say("patch_tree", patched)
        self.say("build_host", "host")
        self.say("build_module", "module")
        self.say("pack", packed)
        self.put("packed_before", lambda *_a: packed if self.known else None)
        self.put("place", lambda a, dist: replace(a, path=dist / a.path.name))
        self.put("provide_set", self._provide)
        self.put("driver_environment", lambda root: {"VK_DRIVER_FILES": f"{root}/x.json"})
        self.put("verify", self._verify)
        self.put("write_report", lambda _v, _m, dest: (dest / "r.json", dest / "r.md"))

    def put(self, name: str, room: Callable[..., object]) -> None:
        def told(*given: object, **named: object) -> object:
            self.calls.append(name)
            if isinstance(offline := named.get("offline"), bool):
                self.offline[name] = offline
            self.built += [g for g in given if isinstance(g, Plan)]
            return room(*given) if name not in ("provide_set", "verify") else room(*given, **named)

        self.patch.setattr(f"{LATE.get(name, ROOM)}.{name}", told)

    def say(self, name: str, answer: object) -> None:
        self.put(name, lambda *_given: answer)

    def fail(self, name: str, error: BaseException) -> None:
        def refuse(*_given: object, **_named: object) -> None:
            raise error

        self.put(name, refuse)

    def open(self, *words: str, **wish: object) -> Pipeline:
        """Return a pipeline for a build line, its request changed as told."""
        flags = make_parser().parse_args(["build", "vulkan", *words])
        made = recipe(path=str(self.root / "tiny.toml"))
        proof = proof_of(flags)
        told = {k: wish.pop(k) for k in ("device", "model", "offline") if k in wish}
        base = Request(
            recipe=made, backend=Backend.VULKAN, platform=LINUX, dist=self.root / "dist",
            proof=replace(proof, **told),  # type: ignore[arg-type]
        )  # fmt: skip
        return self._pipeline(flags, replace(base, **wish))  # type: ignore[arg-type]

    def open_verify(self, *words: str) -> Pipeline:
        return self._pipeline(make_parser().parse_args(["verify", "x.tar.zst", *words]), None)

    @property
    def rooms(self) -> list[str]:
        """Return the rooms that work, in order, without those that only look."""
        looks = ("load_series", "planned", "take_inventory", "resolve", "packed_before")
        return [c for c in self.calls if c not in looks]

    def _pipeline(self, flags: Namespace, request: Request | None) -> Pipeline:
        toolchains: Toolchains = replace(NO_TOOLCHAINS, sets=SETS)
        return Pipeline(
            recipe=request.recipe if request else recipe(), request=request, platform=LINUX,
            wanted=request.proof if request else proof_of(flags),
            toolchains=toolchains, store=Store(self.root / "store"), reporter=Told(), flags=flags,
        )  # fmt: skip

    def _provide(self, wanted: ProvidedSet, **_named: object) -> Path:
        self.calls[-1] = f"provide {wanted.name}"
        return self.root / wanted.name

    def _verify(
        self,
        request: VerifyRequest,
        *,
        provide_driver: Callable[[], SoftwareDriver | None] | None = None,
        **_named: object,
    ) -> Proof:
        self.proofs.append(request)
        self.drivers.append(provide_driver)
        return Proof(verdict=self.verdict, manifest=self.manifest)
