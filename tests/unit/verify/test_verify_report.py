"""The verdict for people: lines, JSON, one page that holds everything and loads nothing."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from llamawright import codec
from llamawright.model.built import CapabilityState
from llamawright.model.verdict import (
    VERDICT_SCHEMA,
    Check,
    Device,
    Limit,
    Numbers,
    Outcome,
    RunRecord,
    Speed,
    State,
    Verdict,
)
from llamawright.verify.plot import divergence_chart, token_chart
from llamawright.verify.report import (
    OUTCOMES,
    STATES,
    artifact_stem,
    render,
    summary,
    write_report,
)
from llamawright.verify.schema import verdict_schema
from verify_kit import GPU, LINUX, manifest

ROOT = Path(__file__).resolve().parents[3]
SCHEMA_PAGE = ROOT / "docs" / "reference" / "verdict.schema.json"
NAME = "llama.cpp-0c1e57098-vulkan-linux_x86_64"
EVIL = "<script>alert('x')</script>\" onload=x {{ 7*7 }} </pre>"


def verdict(**changes: object) -> Verdict:
    device = Device(
        id="Vulkan0", name=GPU, backend="vulkan", memory=16 << 30, software=False,
        driver="NVIDIA 580.1", pci="0000:41:00.0",
    )  # fmt: skip
    base = Verdict(
        state=State.VERIFIED, failure="", why="", hint="", artifact=f"{NAME}.tar.zst",
        artifact_sha256="a" * 64, model="m.gguf", model_sha256="b" * 64, device=device,
        devices=(device,),
        checks=(
            Check(name="layers offloaded", outcome=Outcome.PASS, expected="31/31", seen="31/31",
                  source="log"),
            Check(name="device memory rose", outcome=Outcome.UNKNOWN, expected="by 90 MiB",
                  seen="nobody tells", source="none"),
        ),
        runs=(
            RunRecord(name="device prompt 1", command=("/x/llama-completion", "-p", "a b"),
                      returncode=0, seconds=2.6, phase="done", excerpt=("one", "two")),
        ),
        speed=Speed(prompt_tps=1234.5, generation_tps=67.8, load_s=0.3, first_token_s=2.1),
        kld_per_chunk=(0.003, 0.004), date="2026-12-01T02:31:30+00:00",
        host=(("system", "Linux 6.1"), ("cpu", "Some CPU")), seconds=29.5,
        numbers=(Numbers(batch=32, mean_kld=0.0035, top1=0.95, positions=126,
                         per_chunk=(0.003, 0.004)),),
        token_s=(0.1, 0.2), reference="the same archive without libggml-vulkan.so, on the CPU",
        limits=(Limit(name="mean KL divergence at most", value=0.02, reason="measured"),),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


class Page(HTMLParser):
    """Collects tags, addresses and text; fails on what is not closed."""

    VOID = frozenset({"meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "xlink:href", "action")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_is_whole_and_loads_nothing() -> None:
    text = render(verdict(), None)
    page = Page(text)
    assert page.open == []
    assert page.links == []
    assert page.handlers == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "viewport" in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_says_what_was_proved() -> None:
    text = Page(render(verdict(), None)).text
    for words in (
        NAME, "✓ verified", GPU, "0000:41:00.0", "NVIDIA 580.1", "67.8", "1234.5", "2.10 s",
        "layers offloaded", "31/31", "? unknown", "nobody tells", "a" * 64, "m.gguf",
        "the same archive without libggml-vulkan.so", "measured", "Some CPU", "status 0",
        "/x/llama-completion -p 'a b'", "one two", "KL divergence from the CPU",
    ):  # fmt: skip
        assert words in text, words


def test_everything_that_came_from_outside_is_escaped() -> None:
    device = Device(id=EVIL, name=EVIL, backend="v", memory=1, software=True, driver=EVIL, pci=EVIL)
    bad = verdict(
        state=State.FAILED, failure=EVIL, why=EVIL, hint=EVIL, artifact=EVIL, model=EVIL,
        device=device, devices=(device,), host=((EVIL, EVIL),), reference=EVIL,
        checks=(Check(name=EVIL, outcome=Outcome.FAIL, expected=EVIL, seen=EVIL, source=EVIL),),
        runs=(RunRecord(name=EVIL, command=(EVIL,), returncode=None, seconds=1.0, phase=EVIL,
                        excerpt=(EVIL,)),),
        limits=(Limit(name="divergence " + EVIL, value=1.0, reason=EVIL),),
    )  # fmt: skip
    text = render(bad, None)
    page = Page(text)
    assert "script" not in page.tags
    assert page.handlers == []
    assert "<script" not in text
    assert "{{ 7*7 }}" in page.text, "a template in the data stays data"


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_mark_a_word_and_a_sentence(state: State) -> None:
    mark, word, meaning = STATES[state]
    text = Page(render(verdict(state=state, failure="some-class", why="because"), None)).text
    for words in (mark, word, meaning, "some-class", "because"):
        assert words in text
    first = next(iter(summary(verdict(state=state, failure="some-class"))))
    assert first == f"{mark} {word} (some-class) on {GPU}"


def test_no_two_states_or_outcomes_look_alike_without_colour() -> None:
    assert len({word for _, word, _ in STATES.values()}) == len(State)
    assert len({mark for mark, _ in OUTCOMES.values()}) == len(Outcome)


def test_a_verdict_without_any_run_is_a_page_too() -> None:
    bare = verdict(
        state=State.UNVERIFIED, failure="no-device", why="no loader", hint="install one",
        device=None, devices=(), checks=(), runs=(), speed=Speed(), numbers=(), token_s=(),
        kld_per_chunk=(), reference="", limits=(),
    )  # fmt: skip
    page = Page(render(bare, None))
    assert "install one" in page.text
    assert "svg" not in page.tags


def test_what_the_manifest_knows_is_told(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    lost = CapabilityState(name="cooperative_matrix", present=False, cost="slower prompts")
    told = replace(manifest(tmp_path), capabilities=(lost,))
    text = Page(render(verdict(), told)).text
    assert "cooperative_matrix: slower prompts" in text
    assert "build 11312" in text


def test_files_are_written_beside_the_artifact_and_can_be_read_again(tmp_path: Path) -> None:
    data, page = write_report(verdict(), None, tmp_path / "dist")
    assert sorted(p.name for p in (tmp_path / "dist").iterdir()) == [
        f"{NAME}.report.html", f"{NAME}.verdict.json",
    ]  # fmt: skip
    record = json.loads(data.read_text(encoding="utf-8"))
    assert codec.decode(Verdict, record, what="x") == verdict()
    assert record["schema"] == VERDICT_SCHEMA
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert write_report(verdict(), None, tmp_path / "dist") == (data, page)


def test_the_same_verdict_gives_the_same_bytes() -> None:
    assert render(verdict(), None) == render(verdict(), None)
    assert codec.encode(verdict()) == codec.encode(verdict())


@pytest.mark.parametrize(
    ("file", "stem"),
    [(f"{NAME}.tar.zst", NAME), (f"{NAME}.zip", NAME), ("a.b.c", "a.b.c")],
)
def test_the_reports_name_is_the_artifacts(file: str, stem: str) -> None:
    assert artifact_stem(file) == stem


def test_the_summary_begins_with_what_speaks_against_it() -> None:
    bad = Check(name="divergence", outcome=Outcome.FAIL, expected="low", seen="high", source="x")
    lines = list(summary(verdict(state=State.FAILED, checks=(*verdict().checks, bad), why="w")))
    assert lines[2] == "  why: w"
    assert lines[3] == "  ✗ divergence: high (expected low)"
    assert lines[4].startswith("  ? ")
    assert lines[5] == "  ✓ layers offloaded: 31/31"
    assert lines[-1].startswith("  speed: prompt 1234.5 tok/s")


def test_a_chart_stands_on_its_base_and_under_its_limit() -> None:
    table = (
        Numbers(batch=1, mean_kld=0.003, top1=1.0, positions=1, per_chunk=(0.002, 0.004)),
        Numbers(batch=32, mean_kld=0.05, top1=1.0, positions=1, per_chunk=(0.05, math.nan)),
    )
    chart = divergence_chart(table, 0.02)
    assert chart is not None
    assert [b.label for b in chart.bars] == ["b1·1", "b1·2", "b32·1", "b32·2"]
    assert [b.over for b in chart.bars] == [False, False, True, True]
    assert [b.broken for b in chart.bars] == [False, False, False, True]
    assert chart.limit_y is not None
    for bar in chart.bars:
        assert bar.y + bar.height == pytest.approx(chart.base, abs=0.02)
        assert (bar.y < chart.limit_y) is bar.over
        assert chart.left <= bar.x
        assert bar.x + bar.width <= chart.right
    assert "0.0500" in chart.told


def test_charts_of_nothing_are_none() -> None:
    assert divergence_chart((), 0.02) is None
    assert token_chart(()) is None


def test_a_negative_divergence_has_no_bar_and_no_crash() -> None:
    table = (Numbers(batch=1, mean_kld=-0.1, top1=1.0, positions=1, per_chunk=(-0.1,)),)
    chart = divergence_chart(table, 0.02)
    assert chart is not None
    assert chart.bars[0].height == 0


def test_many_tokens_keep_their_labels_apart() -> None:
    chart = token_chart([0.01] * 100)
    assert chart is not None
    assert sum(1 for b in chart.bars if b.label) <= 24
    assert "10.0 ms" in chart.told
    assert len({b.x for b in chart.bars}) == 100


def test_the_schema_page_is_the_types_own() -> None:
    assert SCHEMA_PAGE.read_text(encoding="utf-8") == verdict_schema(), (
        "write it again: python -c 'from llamawright.verify.schema import verdict_schema; "
        f'print(verdict_schema(), end="")\' > {SCHEMA_PAGE.name}'
    )


def test_the_schema_forbids_nothing_that_is_written() -> None:
    schema = json.loads(verdict_schema())
    record = json.loads(codec.encode(verdict()))
    assert set(record) == set(schema["properties"])
    assert set(schema["required"]) <= set(record)
    assert re.fullmatch(r"https://\S+/verdict-\d+\.json", schema["$id"])
    assert LINUX.tag in NAME
