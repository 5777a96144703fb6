"""How the pipeline asks for a comparison: the model, the limits, the driver, the flags."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from compare_kit import comparison
from llamawright.cli.arguments import make_parser
from llamawright.model.comparison import CompareRequest, Comparison
from llamawright.model.request import SoftwareDriver
from pipeline_kit import Rooms
from reporter_kit import Told

Provide = Callable[[], SoftwareDriver | None]


class Asked:
    """Takes the place of the room's own entry and of the page's writer."""

    def __init__(self) -> None:
        self.requests: list[CompareRequest] = []
        self.drivers: list[Provide | None] = []
        self.dests: list[Path] = []

    def compare(
        self, request: CompareRequest, *, provide_driver: Provide | None, **_named: object
    ) -> Comparison:
        self.requests.append(request)
        self.drivers.append(provide_driver)
        return comparison()

    def write(self, _found: Comparison, dest: Path) -> tuple[Path, Path]:
        self.dests.append(dest)
        return dest / "x.json", dest / "x.html"


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rooms:
    monkeypatch.chdir(tmp_path)
    return Rooms(tmp_path, monkeypatch)


@pytest.fixture
def asked(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr("llamawright.verify.compare", made.compare)
    monkeypatch.setattr("llamawright.verify.write_comparison", made.write)
    return made


def flags(*words: str) -> Namespace:
    return make_parser().parse_args(["compare", "a", "b", *words])


def test_the_recipes_model_and_limits_are_taken(rooms: Rooms, asked: Asked) -> None:
    pipeline = rooms._pipeline(flags(), None)
    found, pages = pipeline.compare(Path("a"), Path("b"), Path("dist"))
    (request,) = asked.requests
    assert found == comparison()
    assert pages == (Path("dist/x.json"), Path("dist/x.html"))
    assert (request.first.artifact, request.other) == (Path("a"), Path("b"))
    assert request.first.model == rooms.root / "model.gguf"
    assert request.first.model_sha256 == pipeline.recipe.verification.model.sha256
    assert (request.rounds, request.contexts, request.min_ratio) == (None, (), None)


def test_flags_reach_the_room(rooms: Rooms, asked: Asked) -> None:
    words = ("--rounds", "9", "--context", "64", "--context", "8", "--device", "Vulkan1")
    rooms._pipeline(flags(*words), None).compare(Path("a"), Path("b"), Path("d"), min_ratio=0.9)
    (request,) = asked.requests
    assert (request.rounds, request.contexts, request.min_ratio) == (9, (64, 8), 0.9)
    assert request.first.device == "Vulkan1"


def test_an_own_model_is_not_pinned_and_nothing_is_fetched(rooms: Rooms, asked: Asked) -> None:
    pipeline = rooms._pipeline(flags("--model", "mine.gguf"), None)
    pipeline.compare(Path("a"), Path("b"), Path("d"))
    assert asked.requests[0].first.model.name == "mine.gguf"
    assert asked.requests[0].first.model_sha256 == ""
    assert "fetch_model" not in rooms.calls


@pytest.mark.parametrize(("words", "software"), [((), True), (("--require-hardware",), False)])
def test_a_software_driver_only_where_it_would_do(
    rooms: Rooms, asked: Asked, words: tuple[str, ...], software: bool
) -> None:
    rooms._pipeline(flags(*words), None).compare(Path("a"), Path("b"), Path("d"))
    assert (asked.drivers[0] is not None) == software


def test_the_gate_of_verify_has_no_contexts_and_takes_its_rounds(
    rooms: Rooms, asked: Asked
) -> None:
    words = ["verify", "x.tar.zst", "--against", "r", "--rounds", "6"]
    pipeline = rooms._pipeline(make_parser().parse_args(words), None)
    pipeline.compare(Path("r"), Path("x.tar.zst"), Path("d"), min_ratio=0.95)
    assert (asked.requests[0].rounds, asked.requests[0].contexts) == (6, ())


def test_it_is_a_stage_with_its_time(rooms: Rooms, asked: Asked) -> None:
    pipeline = rooms._pipeline(flags(), None)
    pipeline.compare(Path("a"), Path("b"), Path("d"))
    assert [t.stage for t in pipeline.timings] == ["compare"]
    assert isinstance(pipeline.reporter, Told)
    assert "compare" in pipeline.reporter.lines
