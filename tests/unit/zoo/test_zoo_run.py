"""Which mutants run, what is known already, how the table is told."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from zoo import run
from zoo.base import Base
from zoo.catalogue import read_catalogue
from zoo.drive import Keeper
from zoo.honest import plan
from zoo.model import Mutant, Named, Result
from zoo.report import as_json, line, page, totals
from zoo.run import chosen, main, prepared
from zoo_kit import good_base, mutant, result

WRONG = Named(state="verified", failure="", exit=0)


def base(backend: str) -> Base:
    return Base(
        archive=Path("a"), tree=Path("t"), name="n", backend=backend, sha256="0", module="m.so"
    )


BOTH = {"cpu": base("cpu"), "vulkan": base("vulkan")}


def test_a_general_mutant_is_made_from_the_cheapest_artifact() -> None:
    ((_, taken),) = chosen([mutant()], BOTH, backend=None, only=None)
    assert taken.backend == "cpu"


def test_a_backend_leaves_out_what_belongs_to_another() -> None:
    some = [mutant("a"), mutant("b", on="vulkan"), mutant("c", on="cpu")]
    pairs = list(chosen(some, BOTH, backend="vulkan", only=None))
    assert [(m.name, b.backend) for m, b in pairs] == [("a", "vulkan"), ("b", "vulkan")]


def test_only_named_mutants_run_and_a_mistyped_name_is_told() -> None:
    some = [mutant("a"), mutant("b")]
    assert [m.name for m, _ in chosen(some, BOTH, backend=None, only=["b"])] == ["b"]
    with pytest.raises(SystemExit, match="no mutant 'z'"):
        list(chosen(some, BOTH, backend=None, only=["z"]))


def test_an_artifact_that_is_not_there_leaves_its_mutants_out() -> None:
    assert not list(chosen([mutant(on="cuda")], BOTH, backend=None, only=None))


def test_a_general_mutant_on_vulkan_gets_a_device_and_softwares_verdict() -> None:
    good = mutant(expect=Named(state="verified", failure="", exit=0))
    ready = prepared(good, BOTH["vulkan"], device="")
    assert ready.flags == ("--device", "llvmpipe")
    assert ready.expect.state == "verified-software"
    hardware = prepared(good, BOTH["vulkan"], device="NVIDIA H200")
    assert (hardware.flags[-1], hardware.expect.state) == ("NVIDIA H200", "verified")
    assert prepared(good, BOTH["cpu"], device="") == good


class Counted:
    """Stands for the keeper: every mutant gets the result that is planned for it."""

    def __init__(self, seen: dict[str, Named]) -> None:
        self.seen = seen
        self.tried: list[str] = []

    def __call__(self, _keeper: Keeper, mutant: Mutant, base: Base, key: str) -> Result:
        self.tried.append(mutant.name)
        seen = self.seen.get(mutant.name, mutant.expect)
        return Result(
            name=mutant.name, backend=base.backend, expect=mutant.expect, seen=seen,
            seconds=1.0, key=key,
        )  # fmt: skip


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counted:
    fake = Counted({})
    monkeypatch.setattr(Keeper, "try_mutant", lambda *words: fake(*words))  # noqa: PLW0108 - a method takes self
    monkeypatch.setattr(
        run, "read_catalogue", lambda: (mutant("a"), mutant("b"), mutant("c", on="cuda"))
    )
    monkeypatch.setattr(run, "PAGE", tmp_path / "zoo.md")
    return fake


def words(tmp_path: Path, *more: str) -> list[str]:
    archive = tmp_path / "good.tar.zst"
    if not archive.exists():
        archive = good_base(tmp_path).archive
    return ["--store", str(tmp_path / "store"), "--artifact", str(archive), *more]


def test_all_right_is_zero_and_the_second_time_nothing_is_tried(
    counted: Counted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = words(tmp_path, "--json", str(tmp_path / "zoo.json"), "--docs")
    assert main(argv) == 0
    assert sorted(counted.tried) == ["a", "b"]
    assert "2 of 2 called by their names" in capsys.readouterr().out
    assert json.loads((tmp_path / "zoo.json").read_text())["results"][0]["right"] is True
    assert "| `c` |" in (tmp_path / "zoo.md").read_text()
    assert main(argv) == 0
    assert len(counted.tried) == 2
    assert main([*argv, "--again"]) == 0
    assert len(counted.tried) == 4


def test_a_wrong_name_fails_and_is_tried_again(
    counted: Counted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted.seen["b"] = WRONG
    argv = words(tmp_path)
    assert main(argv) == 1
    assert "WRONG b" in capsys.readouterr().out
    counted.seen.clear()
    assert main(argv) == 0
    assert counted.tried.count("b") == 2
    assert counted.tried.count("a") == 1


def test_a_kept_result_that_is_torn_is_tried_again(counted: Counted, tmp_path: Path) -> None:
    argv = words(tmp_path)
    main(argv)
    for place in (tmp_path / "store" / "zoo" / "results").iterdir():
        place.write_text('{"name": "a"')
    main(argv)
    assert len(counted.tried) == 4


def test_without_an_artifact_the_zoo_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "CHECKOUT", tmp_path)
    assert main(["--store", str(tmp_path / "store")]) == 2
    assert "--artifact FILE" in capsys.readouterr().err


def test_an_interrupted_zoo_keeps_what_is_done(
    counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_futures: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "as_completed", stop)
    with pytest.raises(SystemExit) as caught:
        main(words(tmp_path))
    assert caught.value.code == 130


def test_a_result_is_right_only_when_all_of_it_is() -> None:
    good = result()
    assert good.right
    assert not replace(good, seen=replace(good.seen, exit=10)).right
    assert not replace(good, seen=replace(good.seen, failure="damaged")).right
    assert not replace(good, fault="1 process outlived the tool").right
    assert not replace(good, skipped="no compiler").right


def test_lines_name_what_was_expected_and_what_was_left() -> None:
    assert line(result()).startswith("  ok ")
    wrong = line(result(seen=WRONG, why="all is well"))
    assert "WRONG" in wrong
    assert "expected refused (truncated), exit 9: all is well" in wrong
    assert "outlived" in line(result(fault="1 process outlived the tool"))
    assert "not tried, no compiler" in line(result(skipped="no compiler"))


def test_totals_count_what_was_tried() -> None:
    some = [result(), result("b", seen=WRONG), result("c", skipped="no compiler")]
    assert totals(some) == "1 of 2 called by their names, 1 not tried"


def test_the_page_has_a_row_for_each_mutant_with_or_without_result() -> None:
    some = [mutant("a"), mutant("b", tells="a | b"), mutant("c")]
    text = page(some, [result("a"), result("b", seen=WRONG)], "2026-01-01", "Linux")
    assert "| `a` | cut in half | refused (truncated), exit 9 | vulkan | as it must |" in text
    assert "**verified, exit 0**" in text
    assert "a / b" in text
    assert "| `c` | cut in half | refused (truncated), exit 9 | device | not tried |" in text
    assert "1 of 2 called by their names" in text


def test_the_page_holds_every_group_of_the_real_catalogue() -> None:
    mutants = read_catalogue()
    text = page(mutants, [], "2026-01-01", "Linux")
    assert all(f"\n| `{m.name}` |" in text for m in mutants)


def test_json_is_whole() -> None:
    told = json.loads(as_json([result()]))
    assert told["results"][0] == {**asdict(result()), "right": True}


@pytest.mark.parametrize(
    ("names", "hardware", "slow"),
    [(("cpu", "vulkan"), False, 2), (("cpu", "vulkan"), True, 10), (("vulkan",), False, 20)],
)
def test_honest_runs_take_software_seldom(
    names: tuple[str, ...], hardware: bool, slow: int
) -> None:
    order = plan({n: base(n) for n in names}, 20, hardware=hardware)
    assert len(order) == 20
    assert order.count("vulkan") == slow


def test_honest_runs_count_false_alarms_and_leave_other_cages_alone(
    counted: Counted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "store" / "zoo" / "cages" / "another"
    other.mkdir(parents=True)
    argv = words(tmp_path, "--honest", "2")
    assert main(argv) == 0
    assert counted.tried == ["honest-vulkan", "honest-vulkan"]
    assert other.is_dir()
    counted.seen["honest-vulkan"] = Named(state="failed", failure="crashed", exit=10)
    assert main(argv) == 1
    assert "2 false alarms in 2 honest runs" in capsys.readouterr().out
    kept = json.loads((tmp_path / "store" / "zoo" / "honest.json").read_text())
    assert (kept["runs"], kept["alarms"]) == (2, 2)
