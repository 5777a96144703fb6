"""A software renderer that is called a card: no proof of a card, and no crash of one."""

from __future__ import annotations

import pytest

from llamawright.model.verdict import State
from llamawright.verify import sampling
from verify_kit import Bench, bench

__all__ = ["bench"]


@pytest.fixture
def renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every program of the artifact show the threads of llvmpipe."""
    names = frozenset({"llama-completio", "llvmpipe-0", "llvmpipe-1"})
    monkeypatch.setattr(sampling, "thread_names", lambda _folder: set(names))


@pytest.mark.usefixtures("renderer")
def test_right_numbers_do_not_make_a_card_of_it(bench: Bench) -> None:
    verdict = bench.prove()
    assert (verdict.state, verdict.failure) == (State.FAILED, "contradiction")
    assert "llvmpipe-0, llvmpipe-1" in verdict.why
    assert verdict.hint


@pytest.mark.usefixtures("renderer")
def test_its_crash_is_not_called_a_cards(bench: Bench) -> None:
    verdict = bench.prove({"at_first_token": "signal:11"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "contradiction")


@pytest.mark.usefixtures("renderer")
def test_nothing_more_is_run_once_it_is_seen(bench: Bench) -> None:
    names = [run.name for run in bench.prove().runs if run.name.startswith("device")]
    assert names == ["device list", "device prompt 1"]


def test_without_such_threads_a_crash_is_a_crash(bench: Bench) -> None:
    verdict = bench.prove({"at_first_token": "signal:11"})
    assert (verdict.state, verdict.failure) == (State.FAILED, "crashed")


@pytest.mark.usefixtures("renderer")
def test_a_device_that_says_it_is_software_may_compute_in_software(bench: Bench) -> None:
    assert bench.prove_in_software().state is State.VERIFIED_SOFTWARE


def test_an_honest_card_is_verified(bench: Bench) -> None:
    assert bench.prove().state is State.VERIFIED
