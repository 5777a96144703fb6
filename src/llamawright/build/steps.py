"""Configure, gate, compile, stage: the same four steps for the host and for a module."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.build import gates
from llamawright.build.arguments import TUNING, configure_arguments, environment
from llamawright.build.cache import cache_environment, cache_stats, since
from llamawright.build.failures import classify
from llamawright.build.fileapi import Reply, ask_for_reply, read_reply
from llamawright.build.ninja import Compile, compile_targets, failed
from llamawright.build.staging import BIN, LICENSES, host_patterns, stage_files, stage_licenses
from llamawright.digest import digest_data
from llamawright.errors import BuildError, ToolMissingError
from llamawright.model.built import BuiltTree, CapabilityState, ConfiguredTree, StageTiming
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.platform import Backend
from llamawright.model.ports import Reporter
from llamawright.model.recipe import BackendRule, Option
from llamawright.paths import data_root, remove_tree
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

    It has a build folder of its own: a second configure of the host's would make the host
    depend on which backend was built first. What is compiled twice is ggml-base, ten files.
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


def abi_key(plan: Plan, patched: PatchedTree) -> str:
    """Return the digest of all that host and module must share."""
    compiler = plan.tool(Role.CXX)
    options = {o.name: o.value for o in plan.host_options if o.type not in ("FILEPATH", "PATH")}
    identity = (compiler.name, compiler.version, compiler.sha256) if compiler else ()
    return digest_data([patched.digest, options, identity, plan.platform])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What distinguishes the host's build from a module's."""

    label: str
    key: str
    options: tuple[Option, ...]
    targets: tuple[str, ...]
    rule: BackendRule
    stage: Callable[[Path, Path], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Builder:
    plan: Plan
    patched: PatchedTree
    store: Store
    reporter: Reporter

    def built(self, part: _Part) -> BuiltTree:
        """Return the staged tree from the store, made when it is not there."""
        made: list[BuiltTree] = []

        def make(dest: Path) -> None:
            with self.store.lock(work_lock(part.key), reporter=self.reporter, what=part.label):
                made.append(self._make(part, dest))
            # Inside the entry: the record is there whenever the stamp is.
            (dest / f"{RECORD}.json").write_text(codec.encode(made[0]), encoding="utf-8")

        entry = self.store.materialise(
            SHELF, part.key, make=make, reporter=self.reporter, label=f"building {part.label}"
        )
        record = (entry.root / f"{RECORD}.json").read_text(encoding="utf-8")
        built = codec.decode_text(BuiltTree, record, what=f"the record of the {part.label}")
        if not entry.fresh:
            self.reporter.info(f"{part.label}: built before with the same key {part.key[:12]}")
        return built

    def _make(self, part: _Part, dest: Path) -> BuiltTree:
        work = self.store.work(part.key)
        cache = self.plan.tool(Role.CACHE)
        cache_env = cache_environment(cache, self.store.root)
        start = time.monotonic()
        configured = self._configure(part, work)
        middle = time.monotonic()
        before = cache_stats(cache, cache_env)
        inner = self._compile(part, work, configured, cache_env)
        stats = since(before, cache_stats(cache, cache_env))
        end = time.monotonic()
        if stats.hits + stats.misses:
            self.reporter.info(f"{stats.name}: {stats.hits} hits, {stats.misses} misses")
        files = part.stage(configured.root, dest)
        return BuiltTree(
            root=self.store.shelf(SHELF, part.key),
            key=part.key,
            abi=abi_key(self.plan, self.patched),
            files=files,
            effective=configured.effective,
            capabilities=configured.capabilities,
            cache=stats,
            timings=(
                StageTiming(stage=f"configure {part.label}", wall_s=middle - start),
                StageTiming(stage=f"compile {part.label}", wall_s=end - middle, inner_s=inner),
            ),
        )

    def _configure(self, part: _Part, work: Path) -> ConfiguredTree:
        build = work / "build"
        arguments = configure_arguments(
            self._program(Role.CMAKE),
            self.patched.root,
            build,
            part.options,
            tuning=data_root() / TUNING,
            platform=self.plan.platform,
        )
        mark = work / "configured.txt"
        text = "\n".join(arguments)
        if not (mark.is_file() and mark.read_text(encoding="utf-8") == text):
            # Another command line, or a configure that was cut short: nothing of it counts.
            remove_tree(build)
        mark.unlink(missing_ok=True)
        build.mkdir(parents=True, exist_ok=True)
        ask_for_reply(build)
        log = self._run_cmake(part, arguments, work)
        reply = read_reply(build)
        gates.check_configured(self.plan, part.options, reply, log)
        states = self._capabilities(part.rule, reply)
        mark.write_text(text, encoding="utf-8")
        return ConfiguredTree(
            root=build,
            source=self.patched.root,
            compiler=dict(reply.compilers).get("CXX", ""),
            effective=gates.effective(part.options, reply),
            capabilities=states,
            targets=gates.matching(reply, part.targets, part.label),
        )

    def _run_cmake(self, part: _Part, arguments: tuple[str, ...], work: Path) -> str:
        log = work / "configure.log"
        log.unlink(missing_ok=True)
        command = Command(argv=arguments, cwd=work, env=self._env({}))
        result = run(command, limits=Limits(total_s=CONFIGURE_S, stall_s=300.0), log=log)
        if not result.ok:
            raise failed(f"configuring the {part.label}", result, classify(result.output))
        return result.output

    def _capabilities(self, rule: BackendRule, reply: Reply) -> tuple[CapabilityState, ...]:
        states = gates.capabilities(rule, reply)
        glslc = self.plan.tool(Role.GLSLC)
        if glslc is not None and states:
            gates.cross_check(states, frozenset(glslc.fact("capabilities").split()))
            gates.required(rule, states)
        return states

    def _compile(
        self, part: _Part, work: Path, configured: ConfiguredTree, cache_env: dict[str, str]
    ) -> float:
        log = work / "compile.log"
        log.unlink(missing_ok=True)
        job = Compile(
            ninja=self._program(Role.NINJA),
            build=configured.root,
            targets=configured.targets,
            env=self._env(cache_env),
            log=log,
            label=f"compiling the {part.label}",
        )
        return compile_targets(job, jobs=self.plan.jobs, reporter=self.reporter)

    def _program(self, role: Role) -> Path:
        return self._tool(role).path

    def _tool(self, role: Role) -> Found:
        tool = self.plan.tool(role)
        if tool is None:
            raise ToolMissingError(f"the plan names no {role}", kind="no-tool")
        return tool

    def _env(self, extra: dict[str, str]) -> dict[str, str]:
        programs = (self._program(Role.NINJA), self._program(Role.CMAKE), self._program(Role.CXX))
        own = environment(self.plan, programs, self.store.root)
        return base_environment({**own, **extra})
