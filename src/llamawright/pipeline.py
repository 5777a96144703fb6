"""The only module that knows all rooms: one pass from a request to a verdict.

The rooms behind the plan are imported where they are entered: a conflict is told sooner.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from llamawright.config import (
    build_proof,
    build_request,
    load_recipe,
    load_toolchains,
    locate_recipe,
)
from llamawright.detect import cuda_notes, detect_platform, take_inventory, vulkan_notes
from llamawright.digest import sha256_file
from llamawright.errors import ToolMissingError
from llamawright.model.artifact import Artifact
from llamawright.model.built import BuiltTree, StageTiming
from llamawright.model.comparison import CompareRequest, Comparison
from llamawright.model.inventory import Inventory, Role
from llamawright.model.plan import PatchedTree, Plan, SourceTree
from llamawright.model.platform import Backend, Platform
from llamawright.model.ports import Reporter
from llamawright.model.recipe import Recipe, SourcePin
from llamawright.model.request import ProofRequest, Request, SoftwareDriver, VerifyRequest
from llamawright.model.soak import SoakReport
from llamawright.model.toolchain import Toolchains
from llamawright.model.verdict import Proof, Verdict
from llamawright.patching import Series, load_series, patch_tree, planned
from llamawright.paths import data_root
from llamawright.provide import SHELF, driver_environment, provide_set, provided_tools
from llamawright.resolve import pin_source, resolve, source_pin
from llamawright.store import Store

SETTINGS_FILE = "llamawright.toml"
CUDA_ROOT = "CUDAToolkit_ROOT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run ended with; ``verdict`` is ``None`` when no proof was asked for."""

    name: str
    artifact: Artifact | None
    verdict: Verdict | None
    reports: tuple[Path, ...]
    timings: tuple[StageTiming, ...]
    tools: tuple[Path, ...] = ()


@dataclass
class Pipeline:
    """The rooms joined for one command line; each stage's wall time is kept."""

    recipe: Recipe
    request: Request | None
    wanted: ProofRequest
    platform: Platform
    toolchains: Toolchains
    store: Store
    reporter: Reporter
    flags: Namespace
    timings: list[StageTiming] = field(default_factory=list)

    @classmethod
    def open(cls, flags: Namespace, store: Path, reporter: Reporter) -> Pipeline:
        """Read the recipe, toolchains, settings and flags; ``UsageError`` names what is wrong."""
        data = data_root()
        wanted = getattr(flags, "recipe", None) or "llama.cpp"
        recipe = load_recipe(locate_recipe(wanted, root=data / "recipes"))
        platform = detect_platform()
        settings = Path.cwd() / SETTINGS_FILE
        said = settings if settings.is_file() else None
        request = None
        if getattr(flags, "backend", None):
            request = build_request(
                vars(flags),
                env=os.environ,
                settings_file=said,
                recipe=recipe,
                platform=platform,
            )
        return cls(
            recipe=recipe,
            request=request,
            wanted=request.proof
            if request
            else build_proof(vars(flags), env=os.environ, settings_file=said),
            platform=platform,
            toolchains=load_toolchains(data / "toolchains"),
            store=Store(store),
            reporter=reporter,
            flags=flags,
        )

    @property
    def wish(self) -> Request:
        """Return the request of a verb that has one."""
        if self.request is None:
            raise AssertionError("this verb has no build request")
        return self.request

    @property
    def result_file(self) -> Path:
        """Return where the result is kept, known before anything is resolved."""
        return self.wish.dist / f"{self._name()}.result.json"

    def _name(self) -> str:
        commit = self.recipe.source.commit[:9]
        return f"{self.recipe.name}-{commit}-{self.wish.backend}-{self.platform.tag}"

    @cached_property
    def series(self) -> Series:
        """Return the recipe's patch series."""
        return load_series(data_root() / "patches", self.recipe.patches)

    def inventory(self, *, everything: bool = False) -> Inventory:
        """Look at the machine: for what is wished, or for every backend."""
        env = dict(os.environ)
        if Path(self.wish.cuda_toolkit).is_absolute():
            # The toolkit that was named is looked at wherever it stands.
            env[CUDA_ROOT] = self.wish.cuda_toolkit
        return take_inventory(
            self.wish,
            self.toolchains,
            store_tools=self.store.root / SHELF,
            env=env,
            everything=everything,
        )

    def health(self, seen: Inventory) -> tuple[str, ...]:
        """Return what a reader of ``doctor`` should know beyond the tools."""
        from llamawright.verify import quarantined  # noqa: PLC0415

        return (
            *quarantined(self.store.journal),
            *vulkan_notes(os.environ, self.platform),
            *cuda_notes(os.environ, seen),
        )

    def plan(self, seen: Inventory | None = None) -> Plan:
        """Return the plan for what was ``seen``, or raise every conflict with its cures."""
        patches = planned(self.series, self.recipe.source)
        return resolve(self.wish, seen or self.inventory(), self.toolchains, patches)

    def fetch_all(self, plan: Plan) -> dict[str, Path]:
        """Fill the store with all that ``plan`` and its verification need."""
        self._provide(plan)
        source = self._fetched(plan.recipe.source, plan.source)
        paths = {"source": source.root, "model": self._model()}
        driver = self._driver() if plan.backend is Backend.VULKAN else None
        return {**paths, "driver": driver.root} if driver else paths

    def build(self, *, prove: bool) -> Outcome:
        """Run every stage that is not finished yet, then the proof."""
        from llamawright.package import place  # noqa: PLC0415

        with self._stage("plan"):
            plan = self.plan()
        for warning in plan.warnings:
            self.reporter.warn(warning)
        plan, source = self._pinned(plan)
        artifact = self._artifact(plan, source)
        with self._stage("place"):
            artifact = place(artifact, self.wish.dist)
        tools = tuple(t.path for t in plan.tools)
        if not prove:
            return self._outcome(plan.name, artifact, None, (), tools)
        proof, reports = self._prove(artifact.path)
        return self._outcome(plan.name, artifact, proof.verdict, reports, tools)

    def verify_file(self, path: Path) -> Outcome:
        """Prove one packed file, whoever made it; what was tampered with gets a verdict too."""
        return self._of_file(path, *self._prove(path))

    def soak_file(
        self, path: Path, seconds: float
    ) -> tuple[Outcome, SoakReport | None, tuple[Path, ...]]:
        """Prove one packed file, then run it for so long; the pages go beside it."""
        from llamawright.verify import soak, write_report, write_soak  # noqa: PLC0415

        with self._stage("verify and soak"):
            proof, soaked = soak(
                self.proof_request(path),
                seconds,
                store=self.store,
                reporter=self.reporter,
                provide_driver=self.provider,
            )
        reports = write_report(proof.verdict, proof.manifest, path.parent)
        pages = write_soak(soaked, path.parent) if soaked else ()
        return self._of_file(path, proof, reports), soaked, pages

    def _of_file(self, path: Path, proof: Proof, reports: tuple[Path, ...]) -> Outcome:
        manifest, verdict = proof.manifest, proof.verdict
        artifact = None
        if manifest is not None:
            size, sha256 = path.stat().st_size, verdict.artifact_sha256
            artifact = Artifact(path=path, size=size, sha256=sha256, manifest=manifest)
        return self._outcome(path.name, artifact, verdict, reports, ())

    def compare(
        self, a: Path, b: Path, dest: Path, *, min_ratio: float | None = None
    ) -> tuple[Comparison, tuple[Path, ...]]:
        """Compare two builds on one device and write the page; ``min_ratio`` is a speed gate."""
        from llamawright.verify import compare, write_comparison  # noqa: PLC0415

        flags = self.flags
        with self._stage("compare"):
            request = CompareRequest(
                first=self.proof_request(a),
                other=b,
                rounds=flags.rounds,
                contexts=tuple(getattr(flags, "contexts", None) or ()),
                min_ratio=min_ratio,
            )
            found = compare(
                request, store=self.store, reporter=self.reporter, provide_driver=self.provider
            )
        return found, write_comparison(found, dest)

    def _pinned(self, plan: Plan) -> tuple[Plan, SourceTree | None]:
        """Give the plan of an unpinned source, such as a folder, its digest of this moment."""
        if plan.recipe.source.tree is not None:
            return plan, None
        with self._stage("fetch"):
            source = self._fetched(plan.recipe.source, plan.source)
        return pin_source(plan, source.digest), source

    def _artifact(self, plan: Plan, source: SourceTree | None) -> Artifact:
        from llamawright.package import pack, packed_before  # noqa: PLC0415

        known = packed_before(plan, self.store)
        if known is not None:
            self.reporter.info(f"{plan.name}: packed before with the same key {plan.key[:12]}")
            return known
        with self._stage("provide"):
            self._provide(plan)
        if source is None:
            with self._stage("fetch"):
                source = self._fetched(plan.recipe.source, plan.source)
        with self._stage("patch"):
            patched = patch_tree(
                source, self.series, plan.patches, store=self.store, reporter=self.reporter
            )
        host, module = self._compile(plan, patched)
        with self._stage("package"):
            return pack(plan, patched, host, module, store=self.store, reporter=self.reporter)

    def _compile(self, plan: Plan, patched: PatchedTree) -> tuple[BuiltTree, BuiltTree | None]:
        from llamawright.build import build_host, build_module  # noqa: PLC0415

        with self._stage("compile host"):
            host = build_host(plan, patched, store=self.store, reporter=self.reporter)
        if plan.backend is Backend.CPU:
            return host, None
        with self._stage(f"compile {plan.backend} module"):
            module = build_module(plan, patched, host, store=self.store, reporter=self.reporter)
        return host, module

    def _provide(self, plan: Plan) -> None:
        for item in plan.provisions:
            self._provide_named(item.name)
        provided_tools(plan, self.store)

    def _provide_named(self, name: str) -> Path:
        wanted = next(s for s in self.toolchains.sets if s.name == name)
        return provide_set(
            wanted,
            store=self.store,
            toolchains=self.toolchains,
            offline=self.wanted.offline,
            reporter=self.reporter,
        )

    def _fetched(self, pin: SourcePin, source: str) -> SourceTree:
        from llamawright.fetch import fetch_source  # noqa: PLC0415

        return fetch_source(
            pin,
            source=source,
            store=self.store,
            offline=self.wanted.offline,
            reporter=self.reporter,
        )

    def source_root(self) -> Path:
        """Return the unpacked source, for the maintainers' verbs: they need no compiler."""
        with self._stage("fetch"):
            return self._fetched(source_pin(self.wish), self.wish.source).root

    def _model(self) -> Path:
        from llamawright.fetch import fetch_model  # noqa: PLC0415

        pin = self.recipe.verification.model
        return fetch_model(
            pin, store=self.store, offline=self.wanted.offline, reporter=self.reporter
        )

    def _pinned_model(self) -> bool:
        """Whether the model of the proof is the recipe's, also when it was named as a file."""
        named, pin = self.wanted.model, self.recipe.verification.model
        if named is None:
            return True
        sized = named.is_file() and named.stat().st_size == pin.size
        return sized and sha256_file(named) == pin.sha256

    @property
    def provider(self) -> Callable[[], SoftwareDriver | None] | None:
        """Return what brings a software driver when the machine has no device of its own."""
        return None if self.wanted.require_hardware else self._driver

    def _driver(self) -> SoftwareDriver | None:
        tag = self.platform.tag
        sets = [s for s in self.toolchains.sets if s.role is Role.DRIVER and tag in s.platforms]
        if not sets:
            return None
        try:
            root = self._provide_named(sets[0].name)
        except ToolMissingError as error:
            self.reporter.warn(f"no software Vulkan driver: {error.what} ({error.why})")
            return None
        env = tuple(driver_environment(root).items())
        return SoftwareDriver(name=sets[0].name, env=env, root=root)

    def _prove(self, path: Path) -> tuple[Proof, tuple[Path, ...]]:
        """Prove a packed file and write the report beside it."""
        from llamawright.verify import verify, write_report  # noqa: PLC0415

        with self._stage("verify"):
            request = self.proof_request(path)
            proof = verify(
                request, store=self.store, reporter=self.reporter, provide_driver=self.provider
            )
        return proof, write_report(proof.verdict, proof.manifest, path.parent)

    def proof_request(self, path: Path) -> VerifyRequest:
        """Return the proof of ``path`` as the flags wish it; may fetch the pinned model."""
        wanted, verification = self.wanted, self.recipe.verification
        return VerifyRequest(
            artifact=path,
            model=wanted.model or self._model(),
            model_sha256=verification.model.sha256 if self._pinned_model() else "",
            verification=verification,
            rules=self.recipe.backends,
            platform=self.platform,
            device=wanted.device,
            require_hardware=wanted.require_hardware,
            clear_quarantine=wanted.clear_quarantine,
            find_links=wanted.find_links,
        )

    def _outcome(
        self,
        name: str,
        artifact: Artifact | None,
        verdict: Verdict | None,
        reports: tuple[Path, ...],
        tools: tuple[Path, ...],
    ) -> Outcome:
        return Outcome(
            name=name,
            artifact=artifact,
            verdict=verdict,
            reports=reports,
            timings=tuple(self.timings),
            tools=tools,
        )

    @contextmanager
    def _stage(self, title: str) -> Iterator[None]:
        start = time.monotonic()
        with self.reporter.step(title):
            yield
        self.timings.append(StageTiming(stage=title, wall_s=time.monotonic() - start))
