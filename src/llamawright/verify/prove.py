"""From a packed file to a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import DownloadError, NoDeviceError, PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.platform import Backend
from llamawright.model.ports import Reporter
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Device, Proof, State, Verdict
from llamawright.paths import remove_tree
from llamawright.store import Store, work_lock
from llamawright.verify import quarantine
from llamawright.verify.collect import Runs
from llamawright.verify.conclude import Attempt, conclude
from llamawright.verify.cuda_gate import Access
from llamawright.verify.cuda_setup import make_cuda
from llamawright.verify.device import ProvideDriver, choose_device
from llamawright.verify.draft import Draft, limits_of
from llamawright.verify.evidence import unmasked
from llamawright.verify.gguf_header import GgufHeader, read_header
from llamawright.verify.install import Install, lost_modules, missing_modules
from llamawright.verify.judge import Ruling, hint_of
from llamawright.verify.memory import MemoryWatch, watching
from llamawright.verify.opening import Opened, open_install
from llamawright.verify.operations import OperationRun, run_operations
from llamawright.verify.patterns_cuda import CUDA_VARIABLES
from llamawright.verify.setup import Setting, make_course, make_setting, make_sides
from llamawright.verify.supervise import Finished
from llamawright.verify.survey import Chosen, code_for
from llamawright.verify.types import TypeRuns, run_types

# What goes on with an artifact that was proved, while it is still unpacked.
Then = Callable[[Attempt, Verdict], None]
KEY_DIGITS = 9


def verify(
    request: VerifyRequest,
    *,
    store: Store,
    reporter: Reporter,
    provide_driver: ProvideDriver | None = None,
    then: Then | None = None,
) -> Proof:
    """Prove a packed artifact by inference; a failed proof is a verdict, not an exception.

    ``provide_driver`` may fetch a software driver and is only asked when there is no
    hardware device and ``request.driver`` is absent. ``then`` sees the runs and their verdict
    before the unpacked artifact is removed. Raises ``PackageError`` for a file that is no whole
    artifact, ``DownloadError`` or ``UsageError`` for a wrong model, ``NoDeviceError`` for a
    named device that isn't there, ``UsageError`` for an ambiguous name.
    """
    began = time.monotonic()
    header, model_sha256 = read_model(request)
    sha256 = sha256_file(request.artifact) if request.artifact.is_file() else ""
    draft = _draft(request, sha256, model_sha256, began)
    found = quarantine.freezes(store.journal, artifact=sha256)
    if found and not request.clear_quarantine:
        return Proof(verdict=draft.verdict(quarantine.ruling(found)))
    quarantine.lift(store.journal, found)
    return _in_its_own_folder(
        _Trial(
            request=request,
            header=header,
            draft=draft,
            store=store,
            reporter=reporter,
            provide_driver=provide_driver or (lambda: None),
            then=then or (lambda _attempt, _verdict: None),
        )
    )


def _draft(request: VerifyRequest, sha256: str, model_sha256: str, began: float) -> Draft:
    return Draft(
        artifact=request.artifact.name,
        artifact_sha256=sha256,
        model=request.model.name,
        model_sha256=model_sha256,
        limits=limits_of(request.verification),
        began=began,
    )


def _in_its_own_folder(trial: _Trial) -> Proof:
    """Prove in a folder that is emptied before and removed after.

    Not the system's temporary folder: that is often mounted noexec, or in memory.
    """
    store, draft = trial.store, trial.draft
    key = f"verify-{draft.artifact_sha256[:KEY_DIGITS] or 'absent'}"
    with store.lock(work_lock(key), reporter=trial.reporter, what=f"verify {draft.artifact}"):
        room = store.work(key)
        remove_tree(room)
        room.mkdir(parents=True)
        try:
            return trial.proof(room)
        finally:
            remove_tree(room)


def read_model(request: VerifyRequest) -> tuple[GgufHeader, str]:
    """Check the model before anything runs, and return its head and sha256."""
    path, pin = request.model, request.model_sha256
    actual = sha256_file(path) if path.is_file() else ""
    if pin and actual != pin:
        size = path.stat().st_size if actual else 0
        raise DownloadError(
            f"{path.name} is not the model that the recipe pins",
            why=f"its {size} bytes have the sha256 {actual or 'of no file'}; pinned are "
            f"{request.verification.model.size} bytes with {pin}",
            hint="remove the file: the next run fetches it again",
            kind="wrong-model",
        )
    return read_header(path), actual


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    request: VerifyRequest
    header: GgufHeader
    draft: Draft
    store: Store
    reporter: Reporter
    provide_driver: ProvideDriver
    then: Then

    def proof(self, room: Path) -> Proof:
        """Unpack, then run and judge; an archive that was tampered with has no manifest."""
        try:
            opened = open_install(self.request, room / "artifact")
        except PackageError as error:
            return Proof(verdict=self.draft.verdict(_tampered(error, self.request)))
        return Proof(verdict=self._verdict(opened, room), manifest=opened.manifest)

    def _verdict(self, opened: Opened, room: Path) -> Verdict:
        """Choose a device, run, judge."""
        manifest = opened.manifest
        request = with_limits(self.request, manifest.backend)
        draft = self._draft(manifest, request)
        install = Install(root=opened.root, platform=request.platform)
        if opened.refused is not None:
            return draft.verdict(opened.refused)
        missing = missing_modules(install, manifest, request.rules)
        if missing:
            return draft.verdict(_module_missing(", ".join(missing), "it is not there"))
        setting = make_setting(
            request,
            manifest,
            install,
            room=room,
            store=self.store,
            sha256=self.draft.artifact_sha256,
        )
        version = setting.stage.patterns.version
        if manifest.backend is Backend.CUDA:
            cuda = make_cuda(request, manifest, install, setting.scene.env)
            if isinstance(cuda, Ruling):
                return draft.verdict(cuda, patterns=version)
            setting = replace(setting, scene=replace(setting.scene, cuda=cuda))
        chosen = choose_device(setting, self.provide_driver)
        if isinstance(chosen, Ruling):
            return draft.verdict(chosen, patterns=version)
        if request.require_hardware and chosen.device.software:
            raise _no_hardware(chosen.device)
        self.reporter.info(f"device: {chosen.device.id} {chosen.device.name}")
        code = code_for(setting.scene, chosen)
        if isinstance(code, Ruling):
            return draft.verdict(code, device=chosen.device, patterns=version)
        attempt = self._attempt(setting, chosen, code)
        verdict = conclude(attempt, draft)
        self.then(attempt, verdict)
        return verdict

    def _draft(self, manifest: Manifest, request: VerifyRequest) -> Draft:
        own = CUDA_VARIABLES if manifest.backend is Backend.CUDA else ()
        return replace(self.draft, variables=own, limits=limits_of(request.verification))

    def _attempt(self, setting: Setting, chosen: Chosen, code: Access | None) -> Attempt:
        course = make_course(setting, chosen.device, jit=code is not None and code.jit)
        reference, device, told = make_sides(setting, chosen)
        meter = self.reporter.meter("verify", total=course.count, unit="runs")
        with meter as live, watching(chosen.device, cpu=setting.cpu) as watch:
            first = course.reference(reference, watch.reference, live)
            then: tuple[Finished, ...] = ()
            types: tuple[TypeRuns, ...] = ()
            tested: tuple[OperationRun, ...] = ()
            if all(run.clean for run in first):
                then = course.device(
                    device, watch.sampler, live, len(first), stop=lambda: _disguised(watch)
                )
            if then and all(run.clean for run in then) and not _disguised(watch):
                before = len(first) + len(then)
                types = run_types(course, (reference, device), watch.sampler, live, before)
                if all(run.clean for each in types for run in each.runs):
                    before += sum(len(each.runs) for each in types)
                    tested = run_operations(setting, course, device, live, before)
        return Attempt(
            setting=setting,
            chosen=chosen,
            course=course,
            header=self.header,
            runs=Runs(reference=first, device=then),
            watch=watch,
            told=told,
            code=code,
            types=types,
            sides=(reference, device),
            operations=tested,
        )


def _disguised(watch: MemoryWatch) -> bool:
    """Whether a card was seen to be a CPU: its verdict is known, and its runs take an hour."""
    return bool(unmasked(watch.sampler.threads, watch.device))


def with_limits(request: VerifyRequest, backend: Backend) -> VerifyRequest:
    """Return the request with the limits that the recipe has for this backend."""
    rule = next((r for r in request.rules if r.backend is backend), None)
    own = request.verification
    if rule is not None and rule.max_mean_kld is not None:
        own = replace(own, max_mean_kld=rule.max_mean_kld)
    if any(str(backend) in t.backends for t in own.types):
        own = replace(own, types=tuple(t.on(backend) for t in own.types))
    return request if own is request.verification else replace(request, verification=own)


def _tampered(error: PackageError, request: VerifyRequest) -> Ruling:
    """Turn an archive that is whole but not what its manifest says into a verdict."""
    if error.kind != "hash-mismatch":
        raise error
    lost = lost_modules(error, request.rules, request.platform)
    if lost:
        return _module_missing(lost, "the manifest names it and the archive does not hold it")
    return Ruling(
        state=State.FAILED,
        failure="hash-mismatch",
        why=f"{error.what}: {error.why}",
        hint=hint_of("hash-mismatch"),
    )


def _module_missing(names: str, why: str) -> Ruling:
    return Ruling(
        state=State.FAILED,
        failure="module-missing",
        why=f"the backend module {names} is missing from the archive: {why}",
        hint=hint_of("module-missing"),
    )


def _no_hardware(device: Device) -> NoDeviceError:
    return NoDeviceError(
        "there is no hardware device here",
        why=f"{device.name} is a software device, and --require-hardware was given",
        hint="install the hardware's driver, or leave --require-hardware out",
        kind="no-hardware-device",
    )
