"""Whatever fails, and in whatever order runs are broken off: a whole release or none."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamawright.errors import ExitCode, LlamawrightError, PackageError
from llamawright.model.verdict import State
from release_kit import NAME, TinySteps, release_run, tree_of, two_targets

STEPS = [f"{step} {name}" for step in ("build", "prove", "attest", "reopen")
         for name in ("cpu", "vulkan")]  # fmt: skip
GOOD = {"cpu": {State.VERIFIED}, "vulkan": {State.VERIFIED, State.VERIFIED_SOFTWARE}}
STATES = st.sampled_from(State)


class StoppedError(Exception):
    """A run that ends in the middle: what Ctrl-C or a bug do."""


class Stopping(TinySteps):
    """Steps that stop the whole run at the call of that number."""

    stop: int = 0

    def _call(self, call: str) -> None:
        super()._call(call)
        if len(self.calls) == self.stop:
            raise StoppedError


@settings(max_examples=20, deadline=None)
@given(
    failing=st.sets(st.sampled_from(STEPS), max_size=3),
    states=st.fixed_dictionaries({"cpu": STATES, "vulkan": STATES}),
)
def test_it_is_released_exactly_when_nothing_is_missing(
    failing: set[str], states: dict[str, State]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        fails = {name: PackageError(f"{name} failed") for name in failing}
        steps = TinySteps(states=states, fails=fails)
        complete = not failing and all(states[name] in good for name, good in GOOD.items())
        run = release_run(root, steps, wanted=two_targets())
        if not complete:
            with pytest.raises(LlamawrightError) as caught:
                run.make()
            assert caught.value.code in {ExitCode.PACKAGE, ExitCode.VERIFICATION}
            assert caught.value.kind == "not-covered"
            assert not (root / "dist" / NAME).exists()
            return
        told = {v.target: v.state for v in run.make().record.verdicts}
        assert told == states


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=12), max_size=5))
def test_however_often_it_is_stopped_the_bytes_are_the_same(stops: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        whole = tree_of(release_run(root / "whole", wanted=two_targets()).make().folder)
        for stop in stops:
            steps = Stopping()
            steps.stop = stop
            try:
                release_run(root / "stopped", steps, wanted=two_targets()).make()
            except StoppedError:
                assert not (root / "stopped" / "dist" / NAME).exists()
        released = release_run(root / "stopped", wanted=two_targets()).make()
        assert tree_of(released.folder) == whole
        assert [p.name for p in (root / "stopped" / "dist").iterdir()] == [NAME]
