"""Evidence to a verdict: in doubt the answer is never ``verified``."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.model.verdict import Check, Numbers, Outcome, State
from llamawright.process import Ending
from llamawright.verify.evidence import Evidence, Kind
from llamawright.verify.judge import (
    CLAIMS,
    NEEDED,
    NUMBERS,
    OF_DEVICES,
    OF_THE_PINNED_MODEL,
    PHYSICAL,
    cut_off,
    hint_of,
    needed_kinds,
    rule,
    rule_failure,
    run_failure,
    signal_name,
)
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.supervise import Finished, Phase, PhaseLimits, Task

GOOD = Numbers(batch=1, mean_kld=0.003, top1=0.95, positions=126, per_chunk=(0.003,))
BROKEN = Numbers(batch=1, mean_kld=float("nan"), top1=0.0, positions=126, per_chunk=(0.1,))
DEVICE = needed_kinds(cpu=False, pinned=True)


def piece(
    kind: Kind, outcome: Outcome = Outcome.PASS, *, optional: bool = False, share: float = 1.0
) -> Evidence:
    check = Check(name=f"check {kind}", outcome=outcome, expected="e", seen="s", source="log")
    return Evidence(kind=kind, check=check, optional=optional, share=share)


def everything(**changed: Outcome) -> list[Evidence]:
    return [piece(k, changed.get(k.name, Outcome.PASS)) for k in Kind]


def verdict_of(evidence: list[Evidence], *, numbers: Numbers = GOOD) -> tuple[State, str]:
    ruling = rule(evidence, (numbers,), software=False, needed=DEVICE)
    return ruling.state, ruling.failure


def test_all_evidence_passes() -> None:
    assert verdict_of(everything()) == (State.VERIFIED, "")
    ruling = rule(everything(), (GOOD,), software=True, needed=DEVICE)
    assert ruling.state is State.VERIFIED_SOFTWARE


@pytest.mark.parametrize("kind", sorted(DEVICE))
def test_nothing_passes_by_absence(kind: Kind) -> None:
    evidence = [e for e in everything() if e.kind is not kind]
    assert verdict_of(evidence) == (State.FAILED, "evidence-missing")
    assert verdict_of([]) == (State.FAILED, "evidence-missing")


@pytest.mark.parametrize("kind", list(Kind))
def test_nothing_passes_unread(kind: Kind) -> None:
    state, failure = verdict_of(everything(**{kind.name: Outcome.UNKNOWN}))
    assert (state, failure) == (State.FAILED, "evidence-missing")


@pytest.mark.parametrize("kind", list(Kind))
def test_no_failed_piece_is_ever_verified(kind: Kind) -> None:
    for software in (False, True):
        evidence = everything(**{kind.name: Outcome.FAIL})
        ruling = rule(evidence, (GOOD,), software=software, needed=DEVICE)
        assert ruling.state is State.FAILED
        assert ruling.failure
        assert f"check {kind}" in ruling.why
        assert ruling.hint


@given(st.lists(st.sampled_from(list(Outcome)), min_size=len(Kind), max_size=len(Kind)))
def test_verified_means_that_every_piece_passed(outcomes: list[Outcome]) -> None:
    evidence = [piece(k, o) for k, o in zip(Kind, outcomes, strict=True)]
    state, failure = verdict_of(evidence)
    assert (state is State.VERIFIED) == all(o is Outcome.PASS for o in outcomes)
    assert bool(failure) == (state is not State.VERIFIED)


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.MODULE, Kind.DRIVER, Kind.IDENTITY])
def test_what_this_system_cannot_show_is_no_failure(kind: Kind) -> None:
    evidence = [e for e in everything() if e.kind is not kind]
    evidence.append(piece(kind, Outcome.UNKNOWN, optional=True))
    assert verdict_of(evidence) == (State.VERIFIED, "")


@pytest.mark.parametrize(
    ("changed", "failure"),
    [
        ({"LISTED": Outcome.FAIL}, "device-not-listed"),
        ({"REFERENCE": Outcome.FAIL}, "reference-not-cpu"),
        ({"ANSWER": Outcome.FAIL}, "wrong-answer"),
        ({"TOKENS": Outcome.FAIL}, "wrong-tokens"),
        ({"DIVERGENCE": Outcome.FAIL}, "wrong-numbers"),
        ({"AGREEMENT": Outcome.FAIL}, "wrong-numbers"),
        ({"ANSWER": Outcome.FAIL, "DIVERGENCE": Outcome.FAIL}, "wrong-answer"),
        ({"MEMORY": Outcome.FAIL}, "contradiction"),
        ({"MODULE": Outcome.FAIL}, "contradiction"),
        ({"IDENTITY": Outcome.FAIL, "ANSWER": Outcome.FAIL}, "contradiction"),
        ({"OFFLOADED": Outcome.FAIL}, "contradiction"),
        ({"WEIGHTS": Outcome.FAIL}, "contradiction"),
    ],
)
def test_what_each_failure_is_called(changed: dict[str, Outcome], failure: str) -> None:
    assert verdict_of(everything(**changed)) == (State.FAILED, failure)


@pytest.mark.parametrize(("share", "failure"), [(0.0, "silent-cpu"), (0.4, "partly-offloaded")])
def test_a_cpu_run_and_a_half_run_are_told_apart(share: float, failure: str) -> None:
    evidence = [e for e in everything() if e.kind not in CLAIMS]
    evidence += [piece(k, Outcome.FAIL, share=share) for k in CLAIMS]
    assert verdict_of(evidence) == (State.FAILED, failure)
    # The device's memory did not rise either: still one thing, not a contradiction.
    evidence.append(piece(Kind.MEMORY, Outcome.FAIL))
    assert verdict_of(evidence) == (State.FAILED, failure)


def test_numbers_that_are_none_have_their_own_name() -> None:
    evidence = everything(DIVERGENCE=Outcome.FAIL)
    assert verdict_of(evidence, numbers=BROKEN) == (State.FAILED, "not-a-number")


def test_a_cpu_artifact_needs_no_device_evidence() -> None:
    needed = needed_kinds(cpu=True, pinned=True)
    assert needed == NEEDED
    evidence = [e for e in everything() if e.kind not in OF_DEVICES | set(PHYSICAL)]
    assert rule(evidence, (GOOD,), software=False, needed=needed).state is State.VERIFIED


def test_a_model_of_ones_own_is_judged_by_its_probabilities() -> None:
    needed = needed_kinds(cpu=False, pinned=False)
    assert needed == DEVICE - OF_THE_PINNED_MODEL
    assert set(NUMBERS) <= needed
    evidence = [e for e in everything() if e.kind not in OF_THE_PINNED_MODEL]
    assert rule(evidence, (GOOD,), software=False, needed=needed).state is State.VERIFIED


def test_the_reason_names_at_most_four_checks() -> None:
    evidence = [piece(k, Outcome.FAIL) for k in Kind]
    ruling = rule(evidence, (GOOD,), software=False, needed=DEVICE)
    assert ruling.why.count("expected") == 4


def finished(
    code: int = 0,
    *,
    ending: Ending = Ending.EXITED,
    phase: Phase = Phase.DONE,
    overran: Phase | None = None,
    lines: tuple[str, ...] = (),
) -> Finished:
    limits = PhaseLimits(start_s=1, load_s=2, first_token_s=3, total_s=4, output_cap=5)
    task = Task(
        name="device prompt 1", argv=("/x",), cwd=Path("/"), env={}, log=Path("/x.log"),
        limits=limits, on_device=True,
    )  # fmt: skip
    return Finished(
        task=task, returncode=code, ending=ending, seconds=4.0, stdout="", lines=lines,
        phase=phase, overran=overran, marks={}, tokens=(),
    )  # fmt: skip


def test_a_clean_run_has_no_failure() -> None:
    assert run_failure(finished()) is None
    assert finished().clean
    assert not finished(1).clean
    assert not finished(ending=Ending.OUTPUT_CAP).clean


@pytest.mark.parametrize(
    ("run", "kind", "words"),
    [
        (finished(overran=Phase.LOAD, phase=Phase.LOAD, ending=Ending.STOPPED), "hang-at-load",
         "nothing after 2 s"),
        (finished(overran=Phase.DONE, ending=Ending.STOPPED), "hang-at-done", "4 s"),
        (finished(ending=Ending.TIMED_OUT, phase=Phase.START), "hang-at-start", "timed-out"),
        (finished(ending=Ending.STALLED, phase=Phase.LOAD), "hang-at-load", "stalled"),
        (finished(ending=Ending.OUTPUT_CAP), "endless-output", "5 bytes"),
        (finished(-11, phase=Phase.LOAD), "crashed", "SIGSEGV"),
        (finished(-6), "crashed", "SIGABRT"),
        (finished(-4), "illegal-instruction", "a program"),
        (finished(132), "illegal-instruction", "refuses"),
        (finished(0xC000001D), "illegal-instruction", "refuses"),
        (finished(0xC0000005), "crashed", "access violation"),
        (finished(0xC0000135), "library-missing", "could not start"),
        (finished(127, phase=Phase.START), "library-missing", "could not start"),
        (finished(3), "wrong-exit-status", "exit status 3"),
        (finished(3, phase=Phase.LOAD), "ended-early", "phase load"),
        (finished(1, lines=("x: error loading model: y",)), "model-refused", "error loading"),
        (finished(-6, lines=("vk::Queue::submit: ErrorDeviceLost",)), "device-lost", "Lost"),
        (finished(0, lines=("vk::Queue::submit: ErrorDeviceLost",)), "device-lost", "Lost"),
        (finished(-4, lines=(
            "0.0 I load_backend: loaded CPU backend from /opt/bin/libggml-cpu-sapphirerapids.so",
        )), "illegal-instruction", "libggml-cpu-sapphirerapids.so"),
    ],
)  # fmt: skip
def test_what_a_bad_end_is_called(run: Finished, kind: str, words: str) -> None:
    failure = run_failure(run)
    assert failure is not None
    assert failure[0] == kind
    assert words in failure[1]
    assert failure[1].startswith("device prompt 1 in phase ")
    assert hint_of(kind)


def test_words_that_only_matter_after_a_failure_are_ignored_before() -> None:
    assert run_failure(finished(0, lines=("invalid device: a test of words",))) is None


CLOSING = "0.00.386.236 I common_perf_print:    graphs reused =          2"


def spoken(program: str, *lines: str, phase: Phase = Phase.DONE, code: int = 0) -> Finished:
    run = finished(code, phase=phase, lines=lines)
    return replace(run, task=replace(run.task, argv=(f"/artifact/bin/{program}",)))


@pytest.mark.parametrize(
    "program", ["llama-completion", "llama-perplexity", "llama-completion.exe"]
)
@pytest.mark.parametrize("phase", [Phase.FIRST_TOKEN, Phase.DONE])
def test_a_run_that_computed_and_lost_its_last_words_is_no_evidence(
    program: str, phase: Phase
) -> None:
    """Upstream's log thread is not waited for: the text ends early, and the status is 0."""
    failure = cut_off(spoken(program, "n_remain: 3", phase=phase), BUILD_11312)
    assert failure is not None
    assert failure[0] == "output-cut-off"
    assert hint_of(failure[0])
    whole = spoken(program, "n_remain: 3", CLOSING, "more of the log", phase=phase)
    assert cut_off(whole, BUILD_11312) is None


@pytest.mark.parametrize(
    "run",
    [
        spoken("llama-bench", "no log at all"),
        spoken("llama-quantize", "size"),
        spoken("llama-completion", phase=Phase.LOAD),
        spoken("llama-completion", phase=Phase.DONE, code=1),
    ],
)
def test_what_never_speaks_so_is_not_blamed(run: Finished) -> None:
    assert cut_off(run, BUILD_11312) is None


def test_what_is_the_machines_fault_fails_nobody() -> None:
    full = rule_failure("out-of-device-memory", "w", of_reference=False)
    assert full.state is State.CANNOT_VERIFY
    assert rule_failure("driver-too-old", "w", of_reference=False).state is State.CANNOT_VERIFY
    # A reference uses no device, so there it is a failure of the artifact.
    assert rule_failure("out-of-device-memory", "w", of_reference=True).state is State.FAILED


def test_a_failed_reference_has_its_own_name_and_the_same_hint() -> None:
    ruling = rule_failure("crashed", "w", of_reference=True)
    assert (ruling.state, ruling.failure) == (State.FAILED, "reference-crashed")
    assert ruling.hint == hint_of("crashed")


def test_signals_without_a_name_are_numbered() -> None:
    assert signal_name(-9) == "SIGKILL"
    assert signal_name(-200) == "signal 200"


def test_every_phase_has_a_limit_and_a_hint() -> None:
    limits = finished().task.limits
    assert [limits.of(p) for p in Phase] == [1, 2, 3, 4]
    hints = {hint_of(f"hang-at-{p}") for p in Phase}
    assert len(hints) == 1
    assert hint_of("no such class") == ""


def test_the_kinds_are_split_without_overlap() -> None:
    for a, b in itertools.combinations((set(CLAIMS), set(PHYSICAL), set(NUMBERS)), 2):
        assert not a & b
