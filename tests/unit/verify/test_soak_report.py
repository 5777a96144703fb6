"""A soak for people: lines, the file, the page and its pictures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from llamawright import codec
from llamawright.model.soak import SoakReport, Tie
from llamawright.model.verdict import State
from llamawright.verify.soak_plot import BOTTOM, HEIGHT, LEFT, MOST_DOTS, RIGHT, TOP, WIDTH, plots
from llamawright.verify.soak_report import (
    length,
    render_soak,
    soak_lines,
    soak_schema,
    write_soak,
)
from soak_kit import event, series, soak_report, soak_round

ROUNDS = series(40)


def svgs(page: str) -> list[ET.Element]:
    found = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    return [ET.fromstring(text) for text in found]


def test_the_three_figures_are_drawn_over_time() -> None:
    assert [p.title for p in plots(ROUNDS)] == [
        "Generation speed (tok/s)",
        "Memory (MiB)",
        "Load time (s)",
    ]
    memory = plots(ROUNDS)[1]
    assert [c.name for c in memory.curves] == ["device, peak", "device, after", "program"]
    assert memory.told.startswith("device, peak: median 500 MiB, from 500 to 500")


def test_everything_is_drawn_inside_the_picture() -> None:
    for plot in plots(series(300, noise=0.1)):
        dots = [d for c in plot.curves for d in c.dots]
        assert all(LEFT <= d.x <= WIDTH - RIGHT for d in dots)
        assert all(TOP <= d.y <= HEIGHT - BOTTOM for d in dots)
        assert 2 <= len(plot.x_labels) <= 8
        assert plot.y_labels[0].text == "0"


def test_the_first_round_is_marked_and_so_is_a_failed_one() -> None:
    rounds = (*ROUNDS[:20], soak_round(21, failure="crashed"))
    marks = [d.mark for d in plots(rounds)[0].curves[0].dots]
    assert (marks[0], marks[1], marks[-1]) == ("first", "", "bad")


def test_a_line_shows_the_drift_of_the_steady_rounds() -> None:
    falling = plots(series(40, speed=lambda share: 1 - 0.5 * share))[0].curves[0].line
    assert falling is not None
    x1, y1, x2, y2 = falling
    assert x1 < x2
    assert y1 < y2
    assert plots(ROUNDS[:5])[0].curves[0].line is None


def test_a_break_stands_where_a_session_began() -> None:
    rounds = tuple(replace(r, session=1 if r.number <= 20 else 2) for r in ROUNDS)
    (at,) = plots(rounds)[0].breaks
    dots = plots(rounds)[0].curves[0].dots
    assert at == dots[19].x
    assert plots(ROUNDS)[0].breaks == ()


def test_a_figure_that_nobody_could_read_is_left_out() -> None:
    blind = tuple(
        replace(r, tps=None, memory_after=None, memory_peak=None, rss=None) for r in ROUNDS
    )
    assert [p.title for p in plots(blind)] == ["Load time (s)"]


def test_very_many_rounds_are_drawn_as_few_dots_and_odd_ones_stay() -> None:
    rounds = list(series(5000))
    rounds[2500] = soak_round(2501, failure="crashed")
    curve = plots(tuple(rounds))[0].curves[0]
    assert len(curve.dots) <= MOST_DOTS + 5
    assert [d.mark for d in curve.dots].count("bad") == 1


@pytest.mark.parametrize(
    ("seconds", "unit", "last"),
    [(50, "seconds", "50"), (1260, "minutes", "20"), (72 * 3600, "hours", "72")],
)
def test_the_scale_of_time_fits_its_length(seconds: int, unit: str, last: str) -> None:
    rounds = tuple(soak_round(n, at=n * seconds / 12) for n in range(1, 13))
    plot = plots(rounds)[0]
    assert plot.x_title == f"{unit} of the soak"
    assert plot.x_labels[-1].text == last


def test_lines_tell_rounds_time_drift_and_the_kernels_log() -> None:
    first, *rest = soak_lines(soak_report(ROUNDS))
    assert first == "✓ verified: 40 rounds in 7 min of 20 min on Imaginary GPU 9000"
    assert sum(": from " in line for line in rest) == 5
    assert rest[-1] == "  ✓ kernel's log (/dev/kmsg): 0 events of this device"


def test_lines_of_a_failure_name_class_reason_and_cure() -> None:
    bad = soak_report(ROUNDS, state=State.FAILED, failure="soak-slowed", why="W", hint="H")
    lines = list(soak_lines(bad))
    assert lines[0].startswith("✗ failed (soak-slowed): 40 rounds")
    assert lines[1:3] == ["  why: W", "  hint: H"]


def test_lines_tell_sessions_and_what_could_not_be_read() -> None:
    rounds = tuple(replace(r, session=1 + r.number // 20) for r in ROUNDS)
    told = soak_report(rounds, kernel_read=False, kernel_log="dmesg: not installed")
    lines = list(soak_lines(told))
    assert lines[0].endswith(", in 3 sessions")
    assert lines[-1] == "  ? kernel's log: unknown (dmesg: not installed)"


def test_events_of_others_are_counted_apart() -> None:
    told = soak_report(ROUNDS, events=(event(), event(Tie.OTHER)))
    assert list(soak_lines(told))[-1].endswith("1 events of this device, 1 of others")


def test_the_file_is_the_report_and_reads_back(tmp_path: Path) -> None:
    report = soak_report(ROUNDS, events=(event(),))
    data, page = write_soak(report, tmp_path / "dist")
    assert (data.name, page.name) == ("tiny-vulkan.soak.json", "tiny-vulkan.soak.html")
    assert codec.decode_text(SoakReport, data.read_text(), what="file") == report
    assert json.loads(data.read_text())["schema"].endswith("soak-1.json")


def test_the_schema_on_the_reference_page_is_the_types_own() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "soak.schema.json"
    assert page.read_text(encoding="utf-8") == soak_schema()
    assert "title" in json.loads(soak_schema())


def test_the_page_stands_alone_and_says_all_in_words() -> None:
    page = render_soak(soak_report(ROUNDS))
    assert "://" not in page
    assert "<script" not in page
    assert "Every answer was equal to the first one." in page
    for plot in plots(ROUNDS):
        assert plot.told in page
    assert "NaN" not in page
    assert len(svgs(page)) == 3 + 3 + 5


def test_a_failed_page_gives_the_reason_and_no_praise() -> None:
    bad = soak_report(
        ROUNDS, state=State.FAILED, failure="soak-answer-changed", why="round 6", hint="cure it"
    )
    page = render_soak(bad)
    assert "failed (soak-answer-changed)" in re.sub(r"\s+", " ", page)
    assert "cure it" in page
    assert "Every answer" not in page


def test_a_page_of_one_round_can_be_made() -> None:
    page = render_soak(soak_report(ROUNDS[:1]))
    assert "steady rounds, 10 are needed" in page


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (42.4, "42 s"), (119, "119 s"), (1260, "21 min"), (3900, "1 h 05 min"),
     (72 * 3600, "72 h 00 min")],
)  # fmt: skip
def test_lengths_are_readable(seconds: float, words: str) -> None:
    assert length(seconds) == words
