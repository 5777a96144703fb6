"""The whole way from two packed files to a comparison, with programs whose speed is data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_verify_freeze import power_cut

from compare_kit import A_TPS, folder_of, measure_of, pair, play
from llamawright import codec
from llamawright.digest import sha256_file
from llamawright.errors import (
    NoDeviceError,
    PackageError,
    UsageError,
    VerificationError,
)
from llamawright.model.comparison import Comparison, Finding, GateOutcome
from llamawright.model.platform import Backend
from llamawright.verify import comparison_lines, write_comparison
from llamawright.verify.compare_runs import Contest
from llamawright.verify.supervise import Phase, _Watch
from verify_kit import GPU, PCI, Bench, bench, left_running, verification

__all__ = ["bench"]
SOFTWARE: dict[str, object] = {"devices": []}


def test_two_equal_builds_show_no_difference_in_speed(bench: Bench) -> None:
    found = play(bench, *pair(bench, {"prompt_tps": A_TPS}, {"prompt_tps": A_TPS[::-1]}))
    prompt = measure_of(found, "prompt")
    assert prompt.finding is Finding.SAME
    assert prompt.rounds_needed == 0
    assert prompt.a == tuple(A_TPS[1:6])  # the first one only prepared
    assert measure_of(found, "generation").ratio == 1.0


def test_a_faster_build_is_called_faster_and_only_where_it_is(bench: Bench) -> None:
    fast = [v * 1.1 for v in A_TPS]
    found = play(bench, *pair(bench, {"prompt_tps": A_TPS}, {"prompt_tps": fast}))
    prompt = measure_of(found, "prompt")
    assert prompt.finding is Finding.FASTER
    assert prompt.ratio == pytest.approx(1.1, abs=0.01)
    assert prompt.p == pytest.approx(2 / 252, abs=1e-5)
    assert measure_of(found, "generation").finding is Finding.SAME
    assert found.gate is None


def test_noise_that_hides_a_difference_says_how_many_rounds_it_needs(bench: Bench) -> None:
    noisy = {"generation_tps": [50.0, 90.0, 70.0, 110.0, 60.0]}
    found = play(bench, *pair(bench, noisy, {"generation_tps": [55.0, 95.0, 75.0, 99.0, 66.0]}))
    generation = measure_of(found, "generation")
    assert generation.finding is Finding.SAME
    assert generation.rounds_needed > 5
    assert any("too noisy, needs" in line for line in comparison_lines(found))


def test_a_slow_load_a_slow_prompt_and_slow_shaders_are_each_found(bench: Bench) -> None:
    slow = {"load_s": 0.2, "token_s": 0.03, "shader_s": 0.4}
    found = play(bench, *pair(bench, {}, slow), rounds=5, contexts=(6, 12))
    assert measure_of(found, "load-warm").finding is Finding.SLOWER
    assert measure_of(found, "load-cold").finding is Finding.SLOWER
    first = [m for m in found.measures if m.metric.name.startswith("first-token")]
    assert [m.finding for m in first] == [Finding.SLOWER] * 2
    short, long = (m.median_b or 0 for m in first)
    assert long - short > 0.08
    assert [m.metric.tokens for m in first] == [
        5,
        9,
    ]  # what the program counted, not what was asked
    compiling = measure_of(found, "first-run")
    assert compiling.finding is Finding.SLOWER
    assert compiling.median_b == pytest.approx(0.4, abs=0.2)


def test_processor_time_and_device_memory_are_seen(bench: Bench) -> None:
    found = play(bench, *pair(bench, {"bench_s": 0.4}, {"burn_s": 0.4}), rounds=5, contexts=(4,))
    cpu = measure_of(found, "cpu")
    assert cpu.finding is Finding.MORE
    assert (cpu.median_b or 0) > (cpu.median_a or 0)
    memory = measure_of(found, "memory")
    assert memory.a
    assert "nvidia-smi" in memory.note


def test_the_runs_are_interleaved_and_each_has_a_log(bench: Bench) -> None:
    found = play(bench, *pair(bench), rounds=2)
    assert found.order == ("AB", "BA")
    assert [r.name for r in found.runs[:4]] == [
        "A round 1 fresh", "B round 1 fresh", "A round 1 warm", "B round 1 warm",
    ]  # fmt: skip
    logs = {p.name for p in (bench.root / "store").rglob("*round-*.log")}
    assert {"A-round-1-bench.log", "B-round-2-bench.log"} <= logs
    assert bench.told.notes[-1] == "compare 26 A round 2 bench"


def test_each_side_runs_its_own_programs_on_the_one_device(bench: Bench) -> None:
    found = play(bench, *pair(bench), rounds=1)
    folders = {r.name[0]: Path(r.command[0]).parts[-4] for r in found.runs}
    assert folders == {"A": "a", "B": "b"}
    assert found.a.device == found.b.device
    assert (found.b.device.name, found.b.device.pci) == (GPU, PCI)
    assert found.a.sha256 != found.b.sha256


def test_nothing_is_left_behind_and_nothing_still_runs(bench: Bench) -> None:
    play(bench, *pair(bench), rounds=1)
    assert not list((bench.root / "store" / "work").glob("compare-*"))
    assert not left_running()
    assert bench.store.journal.unfinished() == ()


def test_two_comparisons_with_one_side_in_common_have_folders_of_their_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[str] = []
    start = Contest._start

    def noting(contest: Contest, *given: object) -> object:
        rooms.append(contest.folder.name)
        return start(contest, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Contest, "_start", noting)
    a, b = pair(bench)
    for other in (a, b, folder_of(bench)):
        play(bench, a, other, min_ratio=0.5, rounds=1)
    assert len(set(rooms)) == 3


def test_ctrl_c_in_the_middle_leaves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair(bench, {"load_s": 20.0})

    def interrupted(watch: _Watch, _pid: int) -> None:
        if watch.phase is Phase.LOAD:
            raise KeyboardInterrupt

    monkeypatch.setattr("llamawright.verify.supervise._Watch.tick", interrupted)
    with pytest.raises(BaseException, match="interrupted"):
        play(bench, a, b, rounds=1)
    assert not list((bench.root / "store" / "work").glob("compare-*"))
    assert not left_running()


def test_the_same_file_twice_is_told_as_noise(bench: Bench) -> None:
    a, _b = pair(bench)
    found = play(bench, a, a, rounds=1)
    assert any("the same file" in note for note in found.notes)


def test_it_survives_json_and_becomes_a_page(bench: Bench, tmp_path: Path) -> None:
    found = play(bench, *pair(bench), rounds=2)
    data, page = write_comparison(found, tmp_path / "out")
    again = codec.decode(Comparison, json.loads(data.read_text(encoding="utf-8")), what="it")
    assert again == found
    # Both have one name here, so their digests tell them apart.
    assert found.b.sha256[:9] in data.name
    assert f"-against-{found.a.sha256[:9]}" in page.name
    assert "<svg" in page.read_text(encoding="utf-8")


def test_the_cold_load_is_honest_about_the_page_cache(bench: Bench) -> None:
    found = play(bench, *pair(bench), rounds=1)
    (note,) = [n for n in found.notes if n.startswith("cold load")]
    assert "only be emptied by root" in note


class TestGate:
    def test_a_slow_build_is_too_slow(self, bench: Bench) -> None:
        slow = [v * 0.2 for v in A_TPS]
        found = play(
            bench, *pair(bench, {"prompt_tps": A_TPS}, {"prompt_tps": slow}), min_ratio=0.95
        )
        assert found.gate is not None
        assert found.gate.outcome is GateOutcome.TOO_SLOW
        assert "prompt" in found.gate.why
        assert "generation" not in found.gate.why

    def test_an_equal_build_passes_and_nothing_but_speed_is_measured(self, bench: Bench) -> None:
        found = play(
            bench, *pair(bench, {"prompt_tps": A_TPS}, {"prompt_tps": A_TPS}), min_ratio=0.95
        )
        assert found.gate is not None
        assert found.gate.outcome is GateOutcome.PASS
        assert [m.metric.name for m in found.measures] == ["prompt", "generation"]
        assert {r.name.split()[-1] for r in found.runs} == {"bench"}

    def test_a_gate_in_the_noise_is_undecided(self, bench: Bench) -> None:
        noisy = [700.0, 1300.0, 1000.0, 800.0, 1200.0]
        found = play(
            bench, *pair(bench, {"prompt_tps": noisy}, {"prompt_tps": noisy}), min_ratio=0.95
        )
        assert found.gate is not None
        assert found.gate.outcome is GateOutcome.UNDECIDED


class TestFolders:
    def test_a_folder_of_upstreams_binaries_is_a_side(self, bench: Bench) -> None:
        folder = folder_of(bench, {"prompt_tps": [v * 2 for v in A_TPS]})
        a, _b = pair(bench, {"prompt_tps": A_TPS})
        found = play(bench, a, folder)
        assert measure_of(found, "prompt").finding is Finding.FASTER
        assert (found.b.name, found.b.sha256) == ("upstream-b1234", "")
        assert found.b.source == "a folder of binaries"
        assert (folder / "build" / "bin" / "llama-bench").is_file()

    def test_it_may_be_what_the_other_is_measured_against(self, bench: Bench) -> None:
        folder = folder_of(bench, {"prompt_tps": [v * 2 for v in A_TPS]})
        _a, b = pair(bench, {}, {"prompt_tps": A_TPS})
        found = play(bench, folder, b, min_ratio=0.95)
        assert found.gate is not None
        assert found.gate.outcome is GateOutcome.TOO_SLOW
        assert found.a.source == "a folder of binaries"

    def test_two_folders_say_no_backend(self, bench: Bench) -> None:
        folder = folder_of(bench)
        with pytest.raises(UsageError, match="two folders"):
            play(bench, folder, folder)

    def test_a_folder_without_programs_is_refused(self, bench: Bench, tmp_path: Path) -> None:
        a, _b = pair(bench)
        empty = tmp_path / "empty"
        empty.mkdir()
        with pytest.raises(PackageError) as caught:
            play(bench, a, empty)
        assert caught.value.kind == "no-programs"
        assert "llama-bench" in caught.value.why


class TestDevices:
    def test_in_software_fewer_tokens_and_the_processs_own_memory(self, bench: Bench) -> None:
        bench.hardware = ()
        a, b = pair(bench, SOFTWARE, SOFTWARE)
        found = play(bench, a, b, driver=bench.driver(), rounds=1, contexts=())
        assert found.b.device.software
        assert measure_of(found, "prompt").metric.tokens == 8
        assert "own memory" in measure_of(found, "memory").note

    def test_two_devices_are_no_comparison(self, bench: Bench) -> None:
        other = {"devices": [["Vulkan0", "Another GPU", 8000]], "using_pci": "0000:42:00.0"}
        bench.hardware = ((GPU, 2), ("Another GPU", 2))
        a, b = pair(bench, {}, other)
        with pytest.raises(NoDeviceError) as caught:
            play(bench, a, b)
        assert caught.value.kind == "different-devices"
        assert "Another GPU" in caught.value.why

    def test_a_named_device_is_taken_by_both(self, bench: Bench) -> None:
        two = {"devices": [["Vulkan0", GPU, 16000], ["Vulkan1", "Another GPU", 8000]]}
        bench.hardware = ((GPU, 2), ("Another GPU", 2))
        found = play(bench, *pair(bench, two, two), device="Another", rounds=1)
        assert (found.a.device.id, found.b.device.id) == ("Vulkan1", "Vulkan1")

    def test_no_device_at_all(self, bench: Bench) -> None:
        bench.hardware = ()
        with pytest.raises(NoDeviceError) as caught:
            play(bench, *pair(bench, SOFTWARE, SOFTWARE))
        assert caught.value.kind == "no-device"
        assert caught.value.what.startswith("A cannot")

    def test_a_cpu_artifact_is_compared_with_a_card_and_the_page_says_so(
        self, bench: Bench
    ) -> None:
        a, b = pair(bench, backends=(Backend.VULKAN, Backend.CPU))
        found = play(bench, a, b, rounds=1)
        assert found.b.device.id == "CPU"
        assert any(f"A computes on {GPU}" in note for note in found.notes)
        assert found.b.name != found.a.name


class TestFailures:
    @pytest.mark.parametrize(
        ("behaviour", "kind"),
        [
            ({"at_load": "signal:11"}, "crashed"),
            ({"at_load": "exit:3"}, "ended-early"),
            ({"at_first_token": "lost"}, "device-lost"),
            ({"at_bench": "exit:1"}, "ended-early"),
            ({"offloaded": "0/31", "assigned": {"CPU": 31}}, "silent-cpu"),
            ({"offloaded": "12/31"}, "partly-offloaded"),
            ({"offloaded": ""}, "silent-cpu"),
        ],
    )
    def test_figures_of_a_side_that_fails_are_none(
        self, bench: Bench, behaviour: dict[str, object], kind: str
    ) -> None:
        with pytest.raises(VerificationError) as caught:
            play(bench, *pair(bench, {}, behaviour), rounds=1)
        assert caught.value.kind == kind
        assert caught.value.what.startswith("B ")
        assert caught.value.hint
        assert Path(caught.value.log).is_file()

    def test_a_side_that_hangs_is_stopped_in_its_phase(self, bench: Bench) -> None:
        with pytest.raises(VerificationError) as caught:
            play(
                bench,
                *pair(bench, {}, {"at_load": "hang"}),
                rounds=1,
                verification=verification(load_s=0.6),
            )
        assert caught.value.kind == "hang-at-load"
        assert not left_running()

    def test_a_benchmark_without_a_rate_is_no_figure(self, bench: Bench) -> None:
        found = play(bench, *pair(bench, {}, {"prompt_tps": 0.0}), rounds=1)
        prompt = measure_of(found, "prompt")
        assert (prompt.finding, prompt.ratio) == (Finding.UNKNOWN, None)
        assert prompt.note.startswith("not read from B")

    @pytest.mark.parametrize(
        ("changes", "kind"),
        [
            ({"rounds": 0}, "bad-rounds"),
            ({"rounds": 10_000}, "bad-rounds"),
            ({"contexts": (0,)}, "bad-context"),
            ({"min_ratio": 0.0}, "bad-ratio"),
            ({"min_ratio": float("nan")}, "bad-ratio"),
        ],
    )
    def test_counts_without_sense_are_refused_before_anything_runs(
        self, bench: Bench, changes: dict[str, object], kind: str
    ) -> None:
        a, b = pair(bench)
        with pytest.raises(UsageError) as caught:
            play(bench, a, b, **changes)
        assert caught.value.kind == kind
        assert not (bench.root / "store" / "work").exists()

    def test_a_file_that_is_absent_or_tampered_with(self, bench: Bench) -> None:
        a, b = pair(bench)
        with pytest.raises(PackageError) as caught:
            play(bench, a, bench.root / "nowhere.tar.zst")
        assert caught.value.kind == "absent"
        b.write_bytes(b.read_bytes()[:-200])
        with pytest.raises(PackageError):
            play(bench, a, b)


class TestFreshRuns:
    def test_a_driver_that_compiles_for_minutes_is_asked_once(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("llamawright.verify.compare_runs.MOST_FRESH_S", 0.2)
        found = play(bench, *pair(bench, {}, {"shader_s": 0.4}), rounds=3, contexts=(4,))
        assert len(measure_of(found, "first-run").b) == 1
        assert len(measure_of(found, "load-warm").b) == 3
        assert any("only the first round" in note for note in found.notes)

    def test_each_side_has_a_driver_cache_of_its_own(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        caches: dict[str, str] = {}
        start = Contest._start

        def noting(contest: Contest, turn: object, *given: object) -> object:
            side = contest.sides[turn.letter]  # type: ignore[attr-defined]
            caches[str(turn.letter)] = side.env["XDG_CACHE_HOME"]  # type: ignore[attr-defined]
            return start(contest, turn, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(Contest, "_start", noting)
        play(bench, *pair(bench), rounds=1)
        assert caches["A"] != caches["B"]


class TestFreezes:
    """A comparison runs what may freeze the machine, so it keeps the same book as a proof."""

    def test_each_phase_is_in_the_journal_with_its_device(self, bench: Bench) -> None:
        play(bench, *pair(bench), rounds=1)
        records = [r for r in bench.store.journal.records() if "begin" in r]
        phases = {r["phase"] for r in records}
        assert {"verify-start", "verify-load", "verify-first-token"} <= phases
        assert records[-1]["facts"]["device"] == GPU  # type: ignore[index]

    def test_what_froze_the_machine_is_not_measured_until_told_so(self, bench: Bench) -> None:
        a, b = pair(bench)
        power_cut(bench.store.root / "journal", artifact=sha256_file(b))
        with pytest.raises(VerificationError) as caught:
            play(bench, a, b, rounds=1)
        assert caught.value.what.startswith("B ")
        found = play(bench, a, b, rounds=1, clear_quarantine=True)
        assert found.rounds == 1
