"""One run: phases, limits, marks, journal; with tiny programs of our own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llamawright.errors import ToolMissingError
from llamawright.process import Ending, base_environment
from llamawright.store import Journal
from llamawright.verify.patterns import BUILD_11312
from llamawright.verify.supervise import (
    EXCERPT_HEAD,
    MAX_LINE,
    Finished,
    Phase,
    PhaseLimits,
    Task,
    supervise,
)

LOAD = "0.00.101.510 I llama_model_loader: loaded meta data with 33 key-value pairs"
COMPUTE = "0.00.324.525 I generate: n_ctx = 256, n_batch = 2048, n_predict = 4, n_keep = 0"
TOKEN = "0.01.148.712 D n_remain: 3"
LIMITS = PhaseLimits(start_s=5, load_s=5, first_token_s=5, total_s=10, output_cap=1 << 20)


def run(
    root: Path, body: str, *, limits: PhaseLimits = LIMITS, seen: list[Phase] | None = None
) -> Finished:
    code = f"import sys, time\ndef say(t): print(t, file=sys.stderr, flush=True)\n{body}"
    task = Task(
        name="a run", argv=(sys.executable, "-IS", "-c", code), cwd=root,
        env=base_environment(), log=root / "a.log", limits=limits, on_device=True,
    )  # fmt: skip

    def sample(_pid: int, phase: Phase) -> None:
        if seen is not None:
            seen.append(phase)

    journal = Journal(root / "journal")
    facts = {"artifact": "abc", "device": "GPU"}
    return supervise(task, patterns=BUILD_11312, journal=journal, facts=facts, sample=sample)


def test_phases_follow_the_log(tmp_path: Path) -> None:
    seen: list[Phase] = []
    body = f"say({LOAD!r}); time.sleep(0.1); say({COMPUTE!r}); time.sleep(0.1)\n"
    body += f"say({TOKEN!r}); time.sleep(0.1); say({TOKEN!r}); print(' Paris.')"
    done = run(tmp_path, body, seen=seen)
    assert done.clean
    assert done.phase is Phase.DONE
    assert list(done.marks) == [Phase.LOAD, Phase.FIRST_TOKEN, Phase.DONE]
    assert len(done.tokens) == 2
    assert 0.05 < done.tokens[1] - done.tokens[0] < 2
    assert done.stdout == " Paris.\n"
    assert {Phase.LOAD, Phase.FIRST_TOKEN, Phase.DONE} <= set(seen)


def test_a_program_without_words_stays_in_its_first_phase(tmp_path: Path) -> None:
    done = run(tmp_path, "print('hello')")
    assert (done.phase, done.tokens, dict(done.marks)) == (Phase.START, (), {})


def test_tokens_before_the_load_are_no_phase(tmp_path: Path) -> None:
    assert run(tmp_path, f"say({TOKEN!r})").phase is Phase.START


def test_perplexity_is_done_when_its_first_pass_is(tmp_path: Path) -> None:
    body = "say('0.00.1.1 I x')\n"
    body += "say('0.00.510.484 I kl_divergence: computing over 2 chunks, n_ctx=64')\n"
    body += "time.sleep(0.1)\n"
    body += "sys.stderr.write('0.33.452.999 I kl_divergence: 33.00 seconds per pass - ETA ')\n"
    body += "print('1.08 minutes', flush=True); time.sleep(0.1)"
    done = run(tmp_path, body)
    assert done.phase is Phase.DONE


@pytest.mark.parametrize(
    ("said", "phase"),
    [((), Phase.START), ((LOAD,), Phase.LOAD), ((LOAD, COMPUTE), Phase.FIRST_TOKEN)],
)
def test_a_phase_that_takes_too_long_ends_the_run(
    tmp_path: Path, said: tuple[str, ...], phase: Phase
) -> None:
    limits = PhaseLimits(start_s=0.4, load_s=0.4, first_token_s=0.4, total_s=10, output_cap=1 << 20)
    body = "".join(f"say({line!r}); time.sleep(0.2)\n" for line in said) + "time.sleep(30)"
    done = run(tmp_path, body, limits=limits)
    assert (done.overran, done.phase, done.ending) == (phase, phase, Ending.STOPPED)
    assert done.seconds < 5
    assert not done.clean


def test_a_slow_first_phase_does_not_eat_the_next_ones_time(tmp_path: Path) -> None:
    limits = PhaseLimits(start_s=5, load_s=0.6, first_token_s=5, total_s=9, output_cap=1 << 20)
    body = f"time.sleep(0.8); say({LOAD!r}); time.sleep(0.2); say({COMPUTE!r})"
    assert run(tmp_path, body, limits=limits).clean


def test_each_phase_is_journaled_and_ended(tmp_path: Path) -> None:
    run(tmp_path, f"say({LOAD!r}); say({COMPUTE!r}); say({TOKEN!r})")
    records = list(Journal(tmp_path / "journal").records())
    begun = [r for r in records if "begin" in r]
    assert [r["phase"] for r in begun] == [
        "verify-start", "verify-load", "verify-first-token", "verify-done",
    ]  # fmt: skip
    assert {r["begin"] for r in begun} == {r["end"] for r in records if "end" in r}
    assert begun[0]["facts"] == {"artifact": "abc", "device": "GPU", "run": "a run"}


def test_a_program_that_cannot_start_leaves_no_open_phase(tmp_path: Path) -> None:
    task = Task(
        name="x", argv=(str(tmp_path / "absent"),), cwd=tmp_path, env={}, log=tmp_path / "x.log",
        limits=LIMITS, on_device=True,
    )  # fmt: skip
    journal = Journal(tmp_path / "journal")
    with pytest.raises(ToolMissingError):
        supervise(task, patterns=BUILD_11312, journal=journal, facts={})
    records = list(journal.records())
    assert {r["begin"] for r in records if "begin" in r} == {
        r["end"] for r in records if "end" in r
    }


def test_the_log_of_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("old words\n")
    run(tmp_path, "print('new words')")
    assert (tmp_path / "a.log").read_text() == "new words\n"


def test_the_record_keeps_what_matters_and_the_end(tmp_path: Path) -> None:
    body = "for i in range(300): say(f'line {i} ' + ('x' * 400 if i == 0 else ''))"
    done = run(tmp_path, body)
    record = done.record(lambda line: line.startswith(("line 0 ", "line 7 ")))
    assert record.excerpt[0].startswith("line 0 ")
    assert len(record.excerpt[0]) == MAX_LINE
    assert record.excerpt[1] == "line 7 "
    assert record.excerpt[2] == "…"
    assert record.excerpt[-1] == "line 299 "
    everything = done.record(lambda _line: True)
    assert len(everything.excerpt) <= EXCERPT_HEAD + 13
    assert (record.returncode, record.phase) == (0, "start")
    assert done.record(lambda _line: False).excerpt[0] == "line 288 "


def test_a_stopped_run_has_no_status(tmp_path: Path) -> None:
    limits = PhaseLimits(start_s=0.3, load_s=1, first_token_s=1, total_s=9, output_cap=1 << 20)
    done = run(tmp_path, "time.sleep(30)", limits=limits)
    assert done.record(lambda _line: True).returncode is None
