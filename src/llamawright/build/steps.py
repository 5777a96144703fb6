"""Configure, gate, compile, stage: the same four steps for the host and for a module."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright import codec
from llamawright.build import gates
from llamawright.build.abi import abi_digest
from llamawright.build.arguments import TUNING, configure_arguments, environment
from llamawright.build.backends import gate_of
from llamawright.build.cache import NONE, cache_for, without_launchers
from llamawright.build.fileapi import Reply, ask_for_reply, read_reply
from llamawright.build.history import Weights, merged, read_log
from llamawright.build.ninja import Compile, Failure, class_of, compile_targets, failed
from llamawright.build.staging import BIN, LICENSES, host_patterns, stage_files, stage_licenses
from llamawright.build.work import WorkFolder, check_room
from llamawright.errors import BuildError, ToolMissingError
from llamawright.model.built import (
    BuiltTree,
    CacheStats,
    CapabilityState,
    ConfiguredTree,
    StageTiming,
)
from llamawright.model.inventory import Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.platform import Backend
from llamawright.model.ports import Reporter
from llamawright.model.recipe import BackendRule, Option
from llamawright.paths import data_root
from llamawright.process import Command, Limits, base_environment, run
from llamawright.store import Store, work_lock

SHELF = "builds"
RECORD = "built"
CONFIGURE_S = 900.0


def build_host(plan: Plan, patched: PatchedTree, *, store: Store, reporter: Reporter) -> BuiltTree:
    """Return the host: programs, libraries and all CPU variants; built once per key.

    Raises ``BuildError`` with the failure's class.
    """
    rule = plan.recipe.rule(Backend.CPU)
    if rule is None:
        raise BuildError(
            f"the recipe {plan.recipe.name} has no cpu backend",
            hint="every artifact needs a CPU module: add [backends.cpu]",
            kind="no-cpu-backend",
        )
    programs = (*plan.recipe.programs, *(plan.recipe.test_programs if plan.with_tests else ()))

    def stage(build: Path, dest: Path) -> tuple[str, ...]:
        files = stage_files(build / BIN, dest / BIN, host_patterns(plan), "host")
        return files + stage_licenses(patched.root, dest / LICENSES, plan.recipe.licenses)

    part = _Part(
        label="host",
        key=plan.host_key,
        options=plan.host_options,
        targets=(*programs, *rule.targets),
        rule=rule,
        stage=stage,
    )
    return _Builder(plan, patched, store, reporter).built(part)


def build_module(
    plan: Plan, patched: PatchedTree, host: BuiltTree, *, store: Store, reporter: Reporter
) -> BuiltTree:
    """Return the backend's module, from the same tree, options and compiler as the host.

    It has a build folder of its own. Configuring the host's once more with the backend
    switched on would save compiling ggml-base again (ten files, 7 s; none with a compiler
    cache), but then a host's folder would depend on which backends were built before, two
    backends could not be built at once, a killed run would leave the host's folder in doubt,
    and equal ABI digests would prove nothing: here they compare two trees.
    """
    rule = plan.recipe.rule(plan.backend)
    if rule is None or plan.backend is Backend.CPU:
        raise BuildError(f"{plan.backend} has no module of its own", kind="no-module")
    names = tuple((plan.platform.module(m),) for m in rule.modules)

    def stage(build: Path, dest: Path) -> tuple[str, ...]:
        return stage_files(build / BIN, dest / BIN, names, f"{plan.backend} module")

    part = _Part(
        label=f"{plan.backend} module",
        key=plan.key,
        options=(*plan.host_options, *plan.module_options),
        targets=rule.targets,
        rule=rule,
        stage=stage,
    )
    built = _Builder(plan, patched, store, reporter).built(part)
    if built.abi != host.abi:
        raise BuildError(
            "host and module do not belong together",
            why=f"the host's ABI key is {host.abi[:12]}, the module's {built.abi[:12]}",
            hint="`llamawright gc --keep-days 0`, then run again: both are built anew",
            kind="abi-differs",
        )
    return built


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What distinguishes the host's build from a module's."""

    label: str
    key: str
    options: tuple[Option, ...]
    targets: tuple[str, ...]
    rule: BackendRule
    stage: Callable[[Path, Path], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """A tree that passed every gate, and what it shares with others of its ABI."""

    configured: ConfiguredTree
    abi: str


@dataclass(frozen=True, slots=True)
class _Builder:
    plan: Plan
    patched: PatchedTree
    store: Store
    reporter: Reporter

    def built(self, part: _Part) -> BuiltTree:
        """Return the staged tree from the store, made when it is not there."""

        def make(dest: Path) -> None:
            with self.store.lock(work_lock(part.key), reporter=self.reporter, what=part.label):
                record = self._make(part, self._folder(part), dest)
            # Inside the entry: the record is there whenever the stamp is.
            (dest / f"{RECORD}.json").write_text(codec.encode(record), encoding="utf-8")

        entry = self.store.materialise(
            SHELF, part.key, make=make, reporter=self.reporter, label=f"building {part.label}"
        )
        record = (entry.root / f"{RECORD}.json").read_text(encoding="utf-8")
        built = codec.decode_text(BuiltTree, record, what=f"the record of the {part.label}")
        if entry.fresh:
            # Only now: until the entry has its stamp, a killed run goes on from this folder.
            with self.store.lock(work_lock(part.key), reporter=self.reporter, what=part.label):
                self._folder(part).wipe()
        else:
            self.reporter.info(f"{part.label}: built before with the same key {part.key[:12]}")
        return replace(built, root=entry.root)

    def _folder(self, part: _Part) -> WorkFolder:
        return WorkFolder(root=self.store.work(part.key), key=part.key)

    def _make(self, part: _Part, work: WorkFolder, dest: Path) -> BuiltTree:
        start = time.monotonic()
        check_room(work.root, part.rule.backend, resumed=work.build.is_dir())
        tree = self._configure(part, work)
        middle = time.monotonic()
        inner, stats = self._compile(part, work, tree.configured)
        end = time.monotonic()
        if stats.hits + stats.misses:
            self.reporter.info(f"{stats.name}: {stats.hits} hits, {stats.misses} misses")
        return BuiltTree(
            root=self.store.shelf(SHELF, part.key),
            key=part.key,
            abi=tree.abi,
            files=part.stage(tree.configured.root, dest),
            effective=tree.configured.effective,
            capabilities=tree.configured.capabilities,
            cache=stats,
            timings=(
                StageTiming(stage=f"configure {part.label}", wall_s=middle - start),
                StageTiming(stage=f"compile {part.label}", wall_s=end - middle, inner_s=inner),
            ),
        )

    def _configure(self, part: _Part, work: WorkFolder) -> _Tree:
        """Configure and judge; a folder left by an earlier run gets one fresh start."""
        arguments = self._arguments(part, work)
        if work.whole_for(arguments):
            try:
                return self._configured(part, work, arguments)
            except BuildError as error:
                self.reporter.info(
                    f"{part.label}: the kept build folder is of no use: {error.what}"
                )
        work.wipe()
        tree = self._configured(part, work, arguments)
        work.mark(arguments)
        return tree

    def _arguments(self, part: _Part, work: WorkFolder) -> tuple[str, ...]:
        return configure_arguments(
            self._program(Role.CMAKE),
            work.source(self.patched.root),
            work.build,
            part.options,
            tuning=data_root() / TUNING,
            platform=self.plan.platform,
            backend=part.rule.backend,
        )

    def _configured(self, part: _Part, work: WorkFolder, arguments: tuple[str, ...]) -> _Tree:
        work.build.mkdir(parents=True, exist_ok=True)
        ask_for_reply(work.build)
        log = self._run_cmake(part, arguments, work)
        reply = read_reply(work.build)
        gate = gate_of(part.rule.backend)
        own = gate.faults(self.plan, part.rule, reply, log)
        gates.check_configured(self.plan, part.options, reply, log, more=own)
        configured = ConfiguredTree(
            root=work.build,
            source=work.source(self.patched.root),
            compiler=used.path if (used := reply.compiler("CXX")) else "",
            effective=gates.effective(part.options, reply),
            capabilities=self._capabilities(part.rule, reply),
            targets=gates.matching(reply, part.targets, part.label),
        )
        abi = abi_digest(self.plan, self.patched, reply, source=configured.source, build=work.build)
        return _Tree(configured=configured, abi=abi)

    def _run_cmake(self, part: _Part, arguments: tuple[str, ...], work: WorkFolder) -> str:
        log = work.log("configure")
        log.unlink(missing_ok=True)
        command = Command(argv=arguments, cwd=work.root, env=self._env({}))
        result = run(command, limits=Limits(total_s=CONFIGURE_S, stall_s=300.0), log=log)
        if not result.ok:
            raise failed(f"configuring the {part.label}", result, class_of(result))
        return result.output

    def _capabilities(self, rule: BackendRule, reply: Reply) -> tuple[CapabilityState, ...]:
        states = gates.capabilities(rule, reply)
        proved = gate_of(rule.backend).proved(self.plan)
        if proved is not None:
            for name in gates.cross_check(rule, states, proved):
                self.reporter.warn(f"CMake left out {name}, and the shader compiler has it")
        gates.required(rule, states)
        return states

    def _compile(
        self, part: _Part, work: WorkFolder, configured: ConfiguredTree
    ) -> tuple[float, CacheStats]:
        """Compile; a compiler cache that fails itself is left out and the rest compiled."""
        cache = cache_for(self.plan.tool(Role.CACHE), self.store.root, work.root)
        job = self._job(part, work, configured, cache.environment() if cache else {})
        before = cache.start() if cache else NONE
        outcome = compile_targets(job, jobs=self.plan.jobs, reporter=self.reporter)
        stats = cache.since(before) if cache else NONE
        if isinstance(outcome, Failure) and outcome.kind.uncached and cache:
            self.reporter.warn(f"{cache.tool.name} fails: the {part.label} is built without it")
            plain = replace(part, options=without_launchers(part.options))
            self._configured(plain, work, self._arguments(plain, work))
            outcome = compile_targets(job, jobs=self.plan.jobs, reporter=self.reporter)
        if isinstance(outcome, Failure):
            raise outcome.error
        self._remember(work)
        return outcome, stats

    def _job(
        self, part: _Part, work: WorkFolder, configured: ConfiguredTree, env: dict[str, str]
    ) -> Compile:
        log = work.log("compile")
        log.unlink(missing_ok=True)
        return Compile(
            ninja=self._program(Role.NINJA),
            build=configured.root,
            targets=configured.targets,
            env=self._env(env),
            log=log,
            label=f"compiling the {part.label}",
            weights=Weights(self._history()),
        )

    def _history(self) -> dict[str, float]:
        record = self.store.read_record(SHELF, self._history_key, "seconds") or {}
        return {n: float(s) for n, s in record.items() if isinstance(s, int | float)}

    def _remember(self, work: WorkFolder) -> None:
        log = work.build / ".ninja_log"
        if log.is_file():
            new = read_log(log.read_text(encoding="utf-8", errors="replace"))
            known = merged(self._history(), new)
            self.store.write_record(SHELF, self._history_key, "seconds", known)

    @property
    def _history_key(self) -> str:
        return f"{self.plan.recipe.name}-{self.plan.platform.tag}"

    def _program(self, role: Role) -> Path:
        tool = self.plan.tool(role)
        if tool is None:
            raise ToolMissingError(f"the plan names no {role}", kind="no-tool")
        return tool.path

    def _env(self, extra: dict[str, str]) -> dict[str, str]:
        programs = (self._program(Role.NINJA), self._program(Role.CMAKE), self._program(Role.CXX))
        own = environment(self.plan, programs, self.store.root)
        return base_environment({**own, **extra})
