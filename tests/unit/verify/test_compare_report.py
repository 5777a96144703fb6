"""A comparison for people: words, pictures, a page that loads nothing, JSON with a schema."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_verify_report import Page

from compare_kit import comparison, entrant, measure, metric
from llamawright import codec
from llamawright.model.comparison import (
    COMPARISON_SCHEMA,
    Comparison,
    Finding,
    Gate,
    GateOutcome,
    Letter,
    Measure,
    MetricKind,
)
from llamawright.model.verdict import Device, RunRecord
from llamawright.verify.compare_plot import (
    TICKS,
    Dot,
    Plot,
    advantage,
    by_length,
    by_round,
    overview,
    scale,
)
from llamawright.verify.compare_report import (
    comparison_lines,
    comparison_schema,
    pair_name,
    render_comparison,
    write_comparison,
)
from llamawright.verify.compare_words import (
    FINDINGS,
    GATES,
    figure,
    finding_words,
    gate_words,
    headline,
    p_words,
    ratio_words,
)
from verify_kit import GPU, NAME

ROOT = Path(__file__).resolve().parents[3]
SCHEMA_PAGE = ROOT / "docs" / "reference" / "comparison.schema.json"
EVIL = "<script>alert('x')</script>\" onload=x {{ 7*7 }} </pre>"
UNKNOWN = measure(
    metric=metric("memory", MetricKind.AMOUNT), a=(), b=(), median_a=None, median_b=None,
    ratio=None, low=None, high=None, p=None, finding=Finding.UNKNOWN, note="nobody tells",
)  # fmt: skip
SLOW_LOAD = measure(
    metric=metric("load-warm", MetricKind.TIME, title="load, warm"), a=(1.0, 1.1, 1.0),
    b=(2.0, 2.1, 2.0), median_a=1.0, median_b=2.0, ratio=2.0, low=1.9, high=2.1,
    finding=Finding.SLOWER,
)  # fmt: skip
NOISY = measure(
    ratio=1.1,
    low=0.8,
    high=1.5,
    p=0.4,
    finding=Finding.SAME,
    rounds_needed=42,
    a=(90.0, 100.0, 110.0, 95.0, 105.0),
    b=(99.0, 110.0, 121.0, 104.0, 116.0),
)
SLOW_GATE = Gate(min_ratio=0.95, outcome=GateOutcome.TOO_SLOW, why="prompt: 0.5")


def lengths(*tokens: int) -> list[Measure]:
    return [
        replace(
            SLOW_LOAD,
            metric=metric(f"first-token-{n}", MetricKind.TIME, title="first token", tokens=n),
        )
        for n in tokens
    ]


class TestWords:
    @pytest.mark.parametrize(
        ("value", "unit", "words"),
        [
            (None, "s", "-"),
            (0.1234, "s", "0.123 s"),
            (12.345, "s", "12.35 s"),
            (217.4 * (1 << 20), "bytes", "217 MiB"),
            (5000 * (1 << 20), "bytes", "5,000 MiB"),
            (133.4, "%", "133 %"),
            (5.628, "tok/s", "5.63 tok/s"),
            (12345.6, "tok/s", "12346 tok/s"),
        ],
    )
    def test_figures_have_their_unit(self, value: float | None, unit: str, words: str) -> None:
        assert figure(value, unit) == words

    def test_every_finding_and_gate_has_a_mark_and_a_word(self) -> None:
        assert set(FINDINGS) == set(Finding)
        assert set(GATES) == set(GateOutcome)
        assert all(mark and word for mark, word in (*FINDINGS.values(), *GATES.values()))

    @pytest.mark.parametrize(
        ("p", "words"), [(None, "-"), (0.0001, "< 0.001"), (0.00794, "0.008"), (1.0, "1.000")]
    )
    def test_p_is_never_nought(self, p: float | None, words: str) -> None:
        assert p_words(p) == words

    def test_noise_is_told_with_its_remedy(self) -> None:
        assert finding_words(NOISY) == "= no difference seen: too noisy, needs 42 rounds"
        few = replace(NOISY, a=(1.0,), b=(1.1,), low=None, high=None, rounds_needed=5)
        assert finding_words(few) == "= no difference seen: too few rounds, needs 5"
        assert ratio_words(few) == "1.100"
        assert finding_words(SLOW_LOAD) == "▼ slower"
        assert ratio_words(NOISY) == "1.100 (0.800 to 1.500)"
        assert ratio_words(UNKNOWN) == "-"

    def test_what_the_interval_sees_and_the_test_doubts_is_told_as_a_doubt(self) -> None:
        doubt = replace(NOISY, ratio=1.716, low=1.614, high=2.24)
        assert finding_words(doubt) == "? perhaps a difference: too noisy, needs 42 rounds"

    def test_a_ratio_by_next_to_nothing_is_not_told_to_the_last_digit(self) -> None:
        far = replace(NOISY, ratio=296.596, low=37.379, high=3405661603.0)
        assert ratio_words(far) == "297 (37.379 to more than 1000)"

    def test_a_headline_names_what_differs(self) -> None:
        less = measure(metric=metric("memory", title="device memory"), finding=Finding.LESS)
        told = headline(comparison(measure(), SLOW_LOAD, less, NOISY))
        assert told == "B is faster in prompt; is slower in load, warm; takes less device memory."
        assert headline(comparison(NOISY)) == "No difference between A and B was found."

    def test_a_gate_in_words(self) -> None:
        assert gate_words(SLOW_GATE) == "✗ too slow: prompt: 0.5"


class TestLines:
    def test_both_sides_the_table_the_notes(self) -> None:
        lines = list(comparison_lines(comparison(measure(), UNKNOWN)))
        assert lines[0].startswith(f"A  {NAME}  (vulkan, {GPU})")
        assert lines[2].split() == ["A", "B", "B/A", "(95", "%", "interval)", "p", "B", "is"]
        assert "1.100 (1.080 to 1.120)" in lines[3]
        assert "? not measured" in lines[4]
        assert "note: something to know" in lines
        assert lines[-1].startswith("B is faster in prompt")

    def test_columns_stand_below_each_other(self) -> None:
        rows = list(comparison_lines(comparison(measure(), SLOW_LOAD, NOISY)))[3:6]
        assert len({row.index("(") for row in rows}) == 1

    def test_a_gate_is_the_last_word(self) -> None:
        lines = list(comparison_lines(comparison(gate=SLOW_GATE)))
        assert lines[-1].startswith("✗ too slow")


class TestPictures:
    @pytest.mark.parametrize(
        ("kind", "better"),
        [(MetricKind.RATE, 2.0), (MetricKind.TIME, 0.5), (MetricKind.AMOUNT, 0.5)],
    )
    def test_right_is_always_better(self, kind: MetricKind, better: float) -> None:
        found = advantage(measure(metric=metric(kind=kind), ratio=2.0, low=1.6, high=2.5))
        assert found is not None
        assert found[0] == better
        assert found[1] < found[0] < found[2]

    def test_a_dot_lies_in_its_interval_and_on_its_side(self) -> None:
        made = overview(comparison(measure(), SLOW_LOAD, NOISY, UNKNOWN))
        assert made is not None
        assert len(made.marks) == 3  # what was not measured has no place
        faster, slower, noisy = made.marks
        assert made.middle < faster.low <= faster.x <= faster.high
        assert slower.high < made.middle
        assert noisy.low < made.middle < noisy.high
        assert [m.tone for m in made.marks] == ["good", "bad", "even"]
        assert all(made.left <= v <= made.right for m in made.marks for v in (m.low, m.x, m.high))
        assert "B is better in 1, worse in 1" in made.told

    def test_a_tone_is_the_findings_and_not_the_intervals(self) -> None:
        few = measure(finding=Finding.SAME, rounds_needed=5)
        made = overview(comparison(few))
        assert made is not None
        assert made.marks[0].tone == "even"

    @pytest.mark.parametrize("wild", [(1e9, 1e8, 1e10), (1e-9, 1e-10, 1e-8)])
    def test_a_wild_ratio_stays_inside(self, wild: tuple[float, float, float]) -> None:
        ratio, low, high = wild
        made = overview(comparison(measure(ratio=ratio, low=low, high=high)))
        assert made is not None
        (mark,) = made.marks
        assert made.left <= mark.low <= mark.high <= made.right

    def test_nothing_measured_has_no_picture(self) -> None:
        assert overview(comparison(UNKNOWN)) is None
        assert advantage(measure(ratio=1.0, low=0.0, high=2.0)) is None
        assert by_length(comparison()) is None
        assert by_round(UNKNOWN) is None

    @pytest.mark.parametrize("span", [1.01, 1.09, 1.3, 2.0, 5.0, 100.0])
    def test_a_scale_is_round_numbers_around_one(self, span: float) -> None:
        made = scale(span)
        assert 1.0 in made
        assert list(made) == sorted(made)
        assert len(made) % 2 == 1
        assert all(1 / span * 0.99 <= t <= span for t in made)

    def test_time_over_length_has_a_dot_for_each_sample_and_a_line_for_each_side(self) -> None:
        plot = by_length(comparison(*lengths(8, 512)))
        assert plot is not None
        assert len(plot.dots) == 2 * 2 * 3
        assert [side for side, _ in plot.lines] == ["a", "b"]
        assert [label.text for label in plot.x_labels] == ["8", "512"]
        assert "512 tokens: A 1.00 s, B 2.00 s" in plot.told
        assert self.lowest(plot, "b") < self.lowest(plot, "a")  # higher up is less y

    def test_one_length_alone_is_drawn_in_the_middle(self) -> None:
        plot = by_length(comparison(*lengths(8)))
        assert plot is not None
        assert all(plot.left < d.x < plot.right for d in plot.dots)

    def test_rounds_are_drawn_in_their_order(self) -> None:
        plot = by_round(measure(a=tuple(map(float, range(50, 90))), b=(70.0,) * 40))
        assert plot is not None
        xs = [d.x for d in plot.dots if d.side == "a"]
        assert xs == sorted(xs)
        assert len(plot.x_labels) <= 20
        assert len(plot.y_labels) == TICKS + 1

    def test_everything_lies_inside_the_drawing(self) -> None:
        for plot in (by_length(comparison(*lengths(1, 8, 4096))), by_round(SLOW_LOAD)):
            assert plot is not None
            assert all(0 <= d.x <= plot.width and 0 <= d.y <= plot.base for d in plot.dots)

    def test_a_scale_has_round_steps(self) -> None:
        plot = by_round(measure(a=(5.63, 5.4), b=(5.9, 6.2), median_a=5.5, median_b=6.0))
        assert plot is not None
        assert [label.text for label in plot.y_labels] == ["0", "2", "4", "6", "8"]

    def lowest(self, plot: Plot, side: str) -> float:
        dots: list[Dot] = [d for d in plot.dots if d.side == side]
        return max(d.y for d in dots)


class TestPage:
    whole = comparison(measure(), SLOW_LOAD, NOISY, UNKNOWN, *lengths(8, 512))

    def test_it_is_whole_and_loads_nothing(self) -> None:
        text = render_comparison(self.whole)
        page = Page(text)
        assert page.open == []
        assert page.links == []
        assert page.handlers == []
        assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
        assert "url(" not in text
        assert "@import" not in text
        assert "default-src 'none'" in text
        assert "prefers-color-scheme: dark" in text

    def test_it_says_what_was_found(self) -> None:
        text = Page(render_comparison(self.whole)).text
        for words in (
            "B against A", GPU, "▲ faster", "▼ slower", "too noisy, needs 42", "? not measured",
            "nobody tells", "something to know", "1.100 (1.080 to 1.120)", "AB BA AB", "a" * 64,
            "b" * 12, "/x/llama-bench -p 'a b'", "one two", "Some CPU", "1 min 35 s", "p ≤ 0.01",
            "How many times better B is", "Time to the first token",
        ):  # fmt: skip
            assert words in text, words

    def test_the_gate_stands_on_top(self) -> None:
        text = Page(render_comparison(comparison(gate=SLOW_GATE))).text
        assert text.index("too slow") < text.index("Measures")
        assert "too slow" not in Page(render_comparison(self.whole)).text

    def test_no_meaning_by_colour_alone(self) -> None:
        text = render_comparison(self.whole)
        assert '<circle class="a"' in text
        assert '<rect class="b"' in text

    def test_everything_that_came_from_outside_is_escaped(self) -> None:
        device = Device(
            id=EVIL, name=EVIL, backend=EVIL, memory=1, software=True, driver=EVIL, pci=EVIL
        )  # fmt: skip
        bad = dict.fromkeys(("name", "file", "sha256", "backend", "source"), EVIL)
        run = RunRecord(
            name=EVIL, command=(EVIL,), returncode=None, seconds=1.0, phase=EVIL, excerpt=(EVIL,)
        )  # fmt: skip
        evil = comparison(
            measure(note=EVIL, metric=metric(EVIL, title=EVIL)),
            a=entrant(Letter.A, device=device, **bad),
            b=entrant(Letter.B, device=device, **bad),
            model=EVIL, notes=(EVIL,), runs=(run,), host=((EVIL, EVIL),), date=EVIL,
            gate=replace(SLOW_GATE, why=EVIL),
        )  # fmt: skip
        text = render_comparison(evil)
        page = Page(text)
        assert "<script" not in text
        assert page.handlers == []
        assert "{{ 7*7 }}" in page.text
        assert page.open == []


class TestFiles:
    def test_json_comes_back_as_it_was(self, tmp_path: Path) -> None:
        made = comparison(measure(), UNKNOWN, gate=SLOW_GATE)
        data, page = write_comparison(made, tmp_path / "new" / "folder")
        record = json.loads(data.read_text(encoding="utf-8"))
        assert codec.decode(Comparison, record, what="it") == made
        assert record["schema"] == COMPARISON_SCHEMA
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
        assert not list(data.parent.glob(".*"))

    @pytest.mark.parametrize(
        ("a", "b", "name"),
        [
            (entrant(Letter.A, name="x-cuda"), entrant(Letter.B, name="x-vulkan"),
             "x-vulkan-against-x-cuda"),
            (entrant(Letter.A), entrant(Letter.B), f"{NAME}-bbbbbbbbb-against-aaaaaaaaa"),
            (entrant(Letter.A), entrant(Letter.B, sha256=""), f"{NAME}-folder-against-aaaaaaaaa"),
        ],
    )  # fmt: skip
    def test_a_pair_has_a_name_of_its_own(self, a: object, b: object, name: str) -> None:
        assert pair_name(comparison(a=a, b=b)) == name
        assert re.fullmatch(r"[\w.-]+", name)

    def test_the_schema_page_is_the_schema(self) -> None:
        assert SCHEMA_PAGE.read_text(encoding="utf-8") == comparison_schema()
        assert json.loads(comparison_schema())["$id"] == COMPARISON_SCHEMA
