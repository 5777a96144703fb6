from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli_kit import DEVICE, artifact, check, verdict
from llamawright.cli.render import artifact_lines, plan_lines, verdict_lines
from llamawright.model.built import CapabilityState
from llamawright.model.verdict import Outcome, Speed, State
from package_kit import plan
from resolve_kit import PROVIDED

WORDS = {
    State.VERIFIED: "VERIFIED",
    State.VERIFIED_SOFTWARE: "VERIFIED IN SOFTWARE (no hardware was proved)",
    State.UNVERIFIED: "UNVERIFIED: built, and run on no device",
    State.CANNOT_VERIFY: "CANNOT VERIFY HERE",
    State.FAILED: "FAILED",
    State.QUARANTINED: "QUARANTINED",
}


@pytest.mark.parametrize("state", State)
def test_each_state_is_loud_in_the_first_line(state: State) -> None:
    first = next(iter(verdict_lines(verdict(state))))
    assert first == f"verdict   {WORDS[state]} on {DEVICE.name}  (3.0 s)"


@pytest.mark.parametrize("state", [s for s in State if s is not State.VERIFIED])
def test_nothing_but_a_proof_on_hardware_reads_like_one(state: State) -> None:
    first = next(iter(verdict_lines(verdict(state, device=None))))
    assert not first.startswith("verdict   VERIFIED  ")
    assert " on Imaginary" not in first


def test_a_failure_is_named_and_explained() -> None:
    told = verdict(State.FAILED, "wrong-numbers", why="too far", hint="report it")
    first, *rest = verdict_lines(told)
    assert "FAILED (wrong-numbers) on" in first
    assert rest == ["  why: too far", "  hint: report it"]


@pytest.mark.parametrize(
    ("outcome", "mark"), [(Outcome.PASS, "ok  "), (Outcome.FAIL, "FAIL"), (Outcome.UNKNOWN, "?   ")]
)
def test_what_was_expected_is_said_only_where_it_was_not_seen(outcome: Outcome, mark: str) -> None:
    _first, line = verdict_lines(verdict(checks=(check(outcome),)))
    assert line.startswith(f"  {mark} check-{outcome}: a sight")
    assert ("(expected a wish)" in line) is (outcome is not Outcome.PASS)


def test_speed_is_told_once_it_was_measured() -> None:
    fast = Speed(prompt_tps=1234.56, generation_tps=98.76, first_token_s=0.25)
    assert len(list(verdict_lines(verdict()))) == 1
    line = list(verdict_lines(verdict(speed=fast)))[1]
    assert "prompt 1234.6 tok/s" in line
    assert "generation 98.8 tok/s" in line


def test_an_artifact_says_what_it_needs_and_what_it_lacks(tmp_path: Path) -> None:
    text = list(artifact_lines(artifact(tmp_path)))
    assert text[0] == f"artifact  {artifact(tmp_path).path}  (2.0 KiB)"
    assert f"  sha256  {'c' * 64}" in text
    assert "  needs   glibc 2.38, libc.so.6, libm.so.6" in text
    assert "  with    coopmat" in text
    assert "  without bfloat16: slow BF16" in text


def test_an_artifact_without_any_capability_says_so(tmp_path: Path) -> None:
    lost = (CapabilityState(name="coopmat", present=False, cost="slow prompts"),)
    text = list(artifact_lines(artifact(tmp_path, capabilities=lost)))
    assert "  with    none" in text
    bare = "\n".join(artifact_lines(artifact(tmp_path, capabilities=(), glibc="")))
    assert not [w for w in ("with", "needs") if f"  {w} " in bare]


def test_a_plan_names_every_tool_patch_option_and_warning() -> None:
    made = plan(warnings=("mind the gap",), provisions=(PROVIDED, replace(PROVIDED, present=False)))
    text = "\n".join(plan_lines(made))
    for tool in made.tools:
        assert f"{tool.role}: {tool.name} {tool.version}  {tool.path}" in text
    for patch in made.patches:
        assert f"{patch.name} ({patch.type}): {patch.reason}" in text
    for option in made.host_options:
        assert f"  option    {option.name}={option.value}" in text
    for option in made.module_options:
        assert f"  module    {option.name}={option.value}" in text
    assert "  warning   mind the gap" in text
    assert "1.4.309  (in the store)" in text
    assert "1.4.309  (8.0 MiB to download)" in text


def test_a_plan_begins_with_its_name_keys_and_source() -> None:
    made = plan()
    name, keys, source, jobs, *_rest = plan_lines(made)
    assert name == made.name
    assert "k" * 16 in keys
    assert "h" * 16 in keys
    assert f"someone/tiny {made.recipe.source.commit}  [index]" in source
    assert jobs.split() == ["jobs", "2"]
