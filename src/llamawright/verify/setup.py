"""What a proof is made of, once the artifact lies unpacked: scene, stage, course, reference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.model.artifact import Manifest
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule, ModelType, TypeSource
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Device
from llamawright.store import Store
from llamawright.verify.commands import Target
from llamawright.verify.cuda_setup import JIT_S, run_variables
from llamawright.verify.install import (
    Install,
    Reference,
    clean_environment,
    reference_with_baseline,
    reference_without_modules,
    rule_of,
)
from llamawright.verify.patterns import patterns_for
from llamawright.verify.runs import (
    Course,
    Side,
    Stage,
    compiling_limits,
    run_limits,
    thread_count,
)
from llamawright.verify.survey import Chosen, Scene
from llamawright.verify.synthetic import write_synthetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An unpacked artifact and all that its runs need."""

    request: VerifyRequest
    manifest: Manifest
    install: Install
    rule: BackendRule
    scene: Scene
    stage: Stage
    room: Path

    @property
    def cpu(self) -> bool:
        """Whether the artifact has no device but the CPU."""
        return self.manifest.backend is Backend.CPU

    @property
    def modules(self) -> tuple[Path, ...]:
        """Return the module files of the artifact's backend."""
        return self.install.modules(self.rule.modules)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """Return the names of the backends that a reference must not load."""
        rules = self.request.rules
        return tuple(r.device_prefix for r in rules if r.backend is not Backend.CPU)


def make_setting(
    request: VerifyRequest,
    manifest: Manifest,
    install: Install,
    *,
    room: Path,
    store: Store,
    sha256: str,
) -> Setting:
    """Prepare folders and limits; ``sha256`` is the artifact's own sha256."""
    rule = rule_of(request.rules, manifest.backend)
    patterns = patterns_for(manifest.build_number)
    own = run_variables(room) if manifest.backend is Backend.CUDA else {}
    modules = install.modules(rule.modules)
    scene = Scene(
        install=install,
        backend=manifest.backend,
        prefix=rule.device_prefix,
        module=modules[0] if modules else None,
        env=clean_environment(room, own),
        patterns=patterns,
        probe_s=request.verification.probe_s,
    )
    stage = Stage(
        scratch=room,
        logs=store.logs(f"verify-{manifest.name}"),
        patterns=patterns,
        journal=store.journal,
        limits=run_limits(request.verification, request.model),
        facts={"artifact": sha256, "name": manifest.name},
    )
    return Setting(
        request=request,
        manifest=manifest,
        install=install,
        rule=rule,
        scene=scene,
        stage=stage,
        room=room,
    )


def make_course(setting: Setting, device: Device, *, jit: bool = False) -> Course:
    """Return the runs on a device; on a CPU as few as on a software device.

    ``jit``: the driver compiles first, which takes minutes and is measured by one run more.
    """
    verification = setting.request.verification
    text = setting.room / "text.txt"
    text.write_text(verification.text, encoding="utf-8")
    slow = device.software or setting.cpu
    facts = {**setting.stage.facts, "device": device.name, "driver": device.driver}
    limits = setting.stage.limits
    return Course(
        stage=replace(
            setting.stage, facts=facts, limits=compiling_limits(limits, JIT_S) if jit else limits
        ),
        model=setting.request.model.absolute(),
        verification=verification,
        work=verification.workload(software=slow),
        base=setting.room / "reference.kld",
        text=text,
        bench=not slow,
        again=jit,
        types=_types(setting, slow=slow),
        synthetic=_synthetic(setting),
        software=device.software,
    )


def _types(setting: Setting, *, slow: bool) -> tuple[ModelType, ...]:
    """Return the types that are proved: an own model is not made anew."""
    pinned = bool(setting.request.model_sha256) and not slow
    types = setting.request.verification.types
    return tuple(t for t in types if pinned or t.source is TypeSource.SYNTHETIC)


def _synthetic(setting: Setting) -> Path | None:
    """Write our own tiny model, when a type is made from it."""
    types = setting.request.verification.types
    if not any(t.source is TypeSource.SYNTHETIC for t in types):
        return None
    return write_synthetic(setting.room / "synthetic.gguf")


def make_sides(setting: Setting, chosen: Chosen) -> tuple[Side, Side, str]:
    """Return the reference, the device, and what the reference is in words."""
    dest, rules = setting.room / "reference", setting.request.rules
    made: Reference
    if setting.cpu:
        baselines = setting.request.verification.baselines
        made = reference_with_baseline(setting.install, dest, rules, baselines)
    else:
        cuda = setting.scene.cuda
        libraries = cuda.runtime.added if cuda and cuda.runtime else frozenset()
        made = reference_without_modules(setting.install, dest, rules, leave_out=libraries)
    threads = thread_count()
    plain = Target(threads=threads, plain=made.same_modules)
    device = "" if setting.cpu else chosen.device.id
    return (
        Side(install=made.install, env=setting.scene.env, target=plain),
        Side(
            install=setting.install,
            env={**setting.scene.env, **chosen.env},
            target=Target(device=device, threads=threads),
        ),
        made.told,
    )
