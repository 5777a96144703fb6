"""From two builds to a comparison: unpacked side by side, run in turns, judged by samples."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import sha256_bytes, sha256_file
from llamawright.errors import PackageError, UsageError
from llamawright.model.comparison import CompareRequest, Comparison, Letter
from llamawright.model.ports import Reporter
from llamawright.paths import remove_tree
from llamawright.store import Store, work_lock
from llamawright.verify.collect import records
from llamawright.verify.compare_measures import gate, measures, notes
from llamawright.verify.compare_plan import MOST_ROUNDS, effort, orders, turns
from llamawright.verify.compare_runs import Contest, Observation
from llamawright.verify.compare_sides import (
    Opening,
    Ready,
    require_one_device,
)
from llamawright.verify.compare_statistics import ALPHA, CONFIDENCE
from llamawright.verify.device import ProvideDriver
from llamawright.verify.draft import host_facts
from llamawright.verify.patterns_cuda import CUDA_VARIABLES
from llamawright.verify.prove import read_model

KEY_DIGITS = 8
SHORTEST = 1


def compare(
    request: CompareRequest,
    *,
    store: Store,
    reporter: Reporter,
    provide_driver: ProvideDriver | None = None,
) -> Comparison:
    """Compare two builds on one device.

    Raises ``UsageError`` for counts that make no sense, ``PackageError`` for a file that is
    no artifact, ``NoDeviceError`` when there is not one device for both, and
    ``VerificationError`` when a side fails: there are no figures of half a comparison.
    """
    require_sense(request)
    began = time.monotonic()
    _header, model_sha256 = read_model(request.first)
    opening = Opening(store=store, provide_driver=provide_driver or (lambda: None))
    match_ = _Match(
        request=request,
        opening=opening,
        reporter=reporter,
        model_sha256=model_sha256,
        began=began,
    )
    key = f"compare-{_pair_digits(request.first.artifact, request.other)}"
    with store.lock(work_lock(key), reporter=reporter, what="compare"):
        room = store.work(key)
        remove_tree(room)
        room.mkdir(parents=True)
        try:
            return match_.play(room.resolve())
        finally:
            remove_tree(room)


def require_sense(request: CompareRequest) -> None:
    """Refuse what cannot be measured before anything is unpacked."""
    if request.rounds is not None and not 1 <= request.rounds <= MOST_ROUNDS:
        raise UsageError(
            f"{request.rounds} rounds make no comparison",
            hint=f"say between 1 and {MOST_ROUNDS}; from 5 rounds on a difference can be told",
            kind="bad-rounds",
        )
    if any(tokens < SHORTEST for tokens in request.contexts):
        raise UsageError(
            "a prompt has at least one token", hint="--context 512", kind="bad-context"
        )
    if request.min_ratio is not None and not request.min_ratio > 0:
        raise UsageError(
            f"{request.min_ratio:g} is no ratio of two speeds",
            hint="say how much of the reference's speed is enough: --min-ratio 0.95",
            kind="bad-ratio",
        )
    if not request.other.exists():
        raise PackageError(
            f"there is no {request.other}",
            hint="name an archive in dist/, or a folder with --against-folder",
            kind="absent",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Match:
    request: CompareRequest
    opening: Opening
    reporter: Reporter
    model_sha256: str
    began: float

    def play(self, room: Path) -> Comparison:
        """Open both, take all turns, judge."""
        first = self.request.first
        a, b = self.opening.both(first, replace(first, artifact=self.request.other), room)
        note = require_one_device(a, b)
        self.reporter.info(f"device: {b.device.id} {b.device.name}")
        slow = any(s.device.software or s.setting.cpu for s in (a, b))
        work = effort(software=slow, rounds=self.request.rounds, contexts=self.request.contexts)
        contest = Contest(
            sides={Letter.A: a, Letter.B: b},
            model=self.request.first.model.absolute(),
            verification=self.request.first.verification,
            effort=work,
            folder=room,
        )
        only = self.request.min_ratio is not None
        every = tuple(turns(work, speed_only=only))
        with self.reporter.meter("compare", total=len(every), unit="runs") as meter:
            seen = tuple(contest.run(every, meter))
        return self._judged((a, b), seen, contest, note)

    def _judged(
        self, sides: tuple[Ready, Ready], seen: Sequence[Observation], contest: Contest, note: str
    ) -> Comparison:
        a, b = sides
        request, only = self.request, self.request.min_ratio is not None
        found = measures(seen, contest.effort, seed=request.seed, speed_only=only)
        same = bool(a.entrant.sha256) and a.entrant.sha256 == b.entrant.sha256
        first = [s.run for s in seen if s.turn.round == 1]
        cuda = any(s.setting.scene.cuda is not None for s in sides)
        return Comparison(
            a=a.entrant,
            b=b.entrant,
            model=request.first.model.name,
            model_sha256=self.model_sha256,
            rounds=contest.effort.rounds,
            order=orders(contest.effort.rounds),
            seed=request.seed,
            confidence=CONFIDENCE,
            alpha=ALPHA,
            measures=found,
            notes=notes(seen, skipped=contest.skipped, same=same, device_note=note),
            runs=records(first, a.setting.stage.patterns),
            date=dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
            host=host_facts(CUDA_VARIABLES if cuda else ()),
            seconds=round(time.monotonic() - self.began, 2),
            gate=None if request.min_ratio is None else gate(found, request.min_ratio),
        )


def _pair_digits(*paths: Path) -> str:
    """Return digits of both sides: the store keeps sixteen letters of a work folder's name."""
    told = (sha256_file(p) if p.is_file() else str(p.resolve()) for p in paths)
    return sha256_bytes("\n".join(told).encode())[:KEY_DIGITS]
