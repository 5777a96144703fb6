"""From a failed proof to all that could be found about it, in a bounded time.

The verdict was made before and is never touched; whatever goes wrong in here is a sentence in
the result.
"""

from __future__ import annotations

import datetime as dt
import getpass
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.errors import InterruptedRunError
from llamawright.model.artifact import Manifest
from llamawright.model.investigation import Investigation, Trial
from llamawright.model.ports import Reporter
from llamawright.model.request import VerifyRequest
from llamawright.model.verdict import Proof, State, Verdict
from llamawright.paths import remove_tree
from llamawright.store import Store, work_lock
from llamawright.verify.conclude import Attempt
from llamawright.verify.device import ProvideDriver
from llamawright.verify.investigate_case import case_of
from llamawright.verify.investigate_early import early_case, runs_nothing
from llamawright.verify.investigate_probe import Findings, Subject, begin, probe
from llamawright.verify.investigate_result import Named, compose, nothing_run
from llamawright.verify.investigate_scrub import Scrubber, scrubber
from llamawright.verify.investigate_tools import Offers
from llamawright.verify.prove import verify

DEFAULT_LIMIT_S = 300.0
# Verdicts that say something of the artifact, the driver or the device as it runs.
LOOKED_INTO = frozenset({State.FAILED, State.CANNOT_VERIFY, State.QUARANTINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A finished investigation, and the log files that go with it, by their names."""

    found: Investigation
    logs: tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """One ``verify --investigate``: its time, its instruments, and what came out."""

    request: VerifyRequest
    limit_s: float
    store: Store
    reporter: Reporter
    provide_driver: ProvideDriver | None
    offers: Offers
    result: Attachment | None = None
    began: bool = field(default=False)

    def then(self, attempt: Attempt, verdict: Verdict) -> None:
        """Look into a proof that ran and failed, while its artifact is still unpacked."""
        if verdict.state not in LOOKED_INTO:
            return
        case = case_of(attempt, verdict)
        if case is None:
            self._nothing(verdict, attempt.setting.manifest, "no run of the proof shows it")
            return
        subject = Subject.of(attempt, case)
        self._guarded(verdict, attempt.setting.manifest, lambda: self._look(subject, verdict))

    def early(self, proof: Proof) -> None:
        """Look into a proof that came to no run on the device, in a folder of its own."""
        verdict = proof.verdict
        if self.result is not None or self.began or verdict.state not in LOOKED_INTO:
            return
        nothing = runs_nothing(verdict)
        if nothing or proof.manifest is None:
            self._nothing(verdict, proof.manifest, nothing or "the archive cannot be opened")
            return
        self._guarded(verdict, proof.manifest, lambda: self._look_early(verdict))

    def _look_early(self, verdict: Verdict) -> Attachment:
        key = f"investigate-{verdict.artifact_sha256[:9]}"
        with self.store.lock(work_lock(key), reporter=self.reporter, what="an investigation"):
            room = self.store.work(key)
            remove_tree(room)
            room.mkdir(parents=True)
            try:
                subject = early_case(
                    self.request, verdict, room, store=self.store, driver=self.provide_driver
                )
                return self._look(subject, verdict)
            finally:
                remove_tree(room)

    def _look(self, subject: Subject, verdict: Verdict) -> Attachment:
        told = f"investigate: {subject.case.name} again and again, for {self.limit_s:.0f} s at most"
        self.reporter.info(told)
        with self.reporter.meter("investigate", total=None, unit="runs") as meter:
            found = begin(subject, limit_s=self.limit_s, meter=meter)
            try:
                probe(found, offers=self.offers, artifact=self.request.artifact)
            except (InterruptedRunError, KeyboardInterrupt):
                found.lab.skip("it was interrupted: what follows was not done")
            except Exception as error:  # noqa: BLE001 - whatever it is, the verdict stands
                self.reporter.warn(f"the investigation ended early: {error!r}")
                found.lab.skip(f"it ended early: {error!r}")
        scrub = self._scrubber(subject)
        named = self._named(verdict, subject.setting.manifest)
        result = scrub.value(compose(found, named, limit_s=self.limit_s, date=_now()))
        return Attachment(found=result, logs=_logs(found, result.trials, subject, scrub))

    def _guarded(
        self, verdict: Verdict, manifest: Manifest | None, look: Callable[[], Attachment]
    ) -> None:
        """Keep every failure of the looking itself away from the verdict."""
        self.began = True
        try:
            self.result = look()
        except (InterruptedRunError, KeyboardInterrupt):
            self._nothing(verdict, manifest, "it was interrupted")
        except Exception as error:  # noqa: BLE001 - whatever it is, the verdict stands
            self.reporter.warn(f"the investigation failed: {error!r}")
            self._nothing(verdict, manifest, f"the investigation failed: {error!r}")

    def _nothing(self, verdict: Verdict, manifest: Manifest | None, why: str) -> None:
        named = self._named(verdict, manifest)
        result = nothing_run(named, why, limit_s=self.limit_s, date=_now())
        self.result = Attachment(found=self._scrubber(None).value(result), logs=())

    def _named(self, verdict: Verdict, manifest: Manifest | None) -> Named:
        artifact, model = self.request.artifact, self.request.model
        return Named(verdict=verdict, manifest=manifest, artifact=artifact.name, model=model.name)

    def _scrubber(self, subject: Subject | None) -> Scrubber:
        model, artifact = self.request.model, self.request.artifact
        places = [
            (str(model), model.name), (str(model.absolute()), model.name),
            (str(artifact.absolute()), artifact.name),
            (str(artifact.absolute().parent), "DIST"), (str(self.store.root), "STORE"),
            (os.getcwd(), "."),  # noqa: PTH109 - Path.cwd() resolves links, logs may not
        ]  # fmt: skip
        if subject is not None:
            places += subject.places
        return scrubber(places, user=_user(), host=socket.gethostname(), home=str(Path.home()))


def investigate(
    request: VerifyRequest,
    *,
    limit_s: float,
    store: Store,
    reporter: Reporter,
    offers: Offers,
    provide_driver: ProvideDriver | None = None,
) -> tuple[Proof, Attachment | None]:
    """Prove, and look into a proof that fails; ``None`` when it passed or proved nothing.

    Raises what ``verify`` raises, before any verdict. After it nothing is raised.
    """
    inquiry = Inquiry(
        request=request, limit_s=limit_s, store=store, reporter=reporter, offers=offers,
        provide_driver=provide_driver,
    )  # fmt: skip
    proof = verify(
        request, store=store, reporter=reporter, provide_driver=provide_driver, then=inquiry.then
    )
    inquiry.early(proof)
    return proof, inquiry.result


def _logs(
    found: Findings, trials: tuple[Trial, ...], subject: Subject, scrub: Scrubber
) -> tuple[tuple[str, str], ...]:
    """Return the scrubbed text of every log: the failed run's own, each trial's, the tools'."""
    folder = subject.setting.stage.logs
    first = [subject.case.log] if subject.case.log else []
    paths = [*first, *(folder / t.log for t in trials)]
    texts = [(p.name, _text(p)) for p in paths]
    texts += [(name, text) for name, text in found.files]
    return tuple((name, scrub.text(text)) for name, text in texts if text)


MOST_LOG = 2 << 20


def _text(path: Path) -> str:
    """Return a log; of a huge one both ends."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    half = MOST_LOG // 2
    if len(text) <= MOST_LOG:
        return text
    return f"{text[:half]}\n[… {len(text) - MOST_LOG} characters left out …]\n{text[-half:]}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _now() -> str:
    return dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
