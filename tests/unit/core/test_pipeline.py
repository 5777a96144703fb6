from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli_kit import artifact
from llamawright.cli.arguments import make_parser
from llamawright.cli.touched import touched
from llamawright.errors import BuildError, ToolMissingError, UsageError
from llamawright.model.artifact import Artifact
from llamawright.model.inventory import Role
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend
from llamawright.model.request import SoftwareDriver
from llamawright.pipeline import SETTINGS_FILE, Outcome, Pipeline
from package_kit import LINUX, MACOS, plan, recipe
from pipeline_kit import ROOM, SETS, Rooms
from reporter_kit import Told
from resolve_kit import PROVIDED

STAGES = ["plan", "provide", "fetch", "patch", "compile host", "compile vulkan module", "package"]
DONE = ["place", "verify"]


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rooms:
    monkeypatch.chdir(tmp_path)
    return Rooms(tmp_path, monkeypatch)


def stages(outcome: Outcome) -> list[str]:
    return [t.stage for t in outcome.timings]


def test_a_build_goes_through_every_room_once_and_in_order(rooms: Rooms) -> None:
    outcome = rooms.open().build(prove=True)
    assert rooms.rooms == [
        "provided_tools", "fetch_source", "patch_tree", "build_host", "build_module", "pack",
        "place", "fetch_model", "verify", "write_report",
    ]  # fmt: skip
    assert stages(outcome) == [*STAGES, *DONE]
    assert all(t.wall_s >= 0 for t in outcome.timings)
    assert outcome.verdict is rooms.verdict
    assert outcome.reports == (rooms.root / "dist" / "r.json", rooms.root / "dist" / "r.md")
    assert outcome.tools == tuple(t.path for t in rooms.made.tools)


def test_each_stage_is_opened_for_the_reader_too(rooms: Rooms) -> None:
    pipeline = rooms.open()
    outcome = pipeline.build(prove=True)
    assert isinstance(pipeline.reporter, Told)
    assert pipeline.reporter.lines == stages(outcome)


def test_a_cpu_artifact_has_no_module(rooms: Rooms) -> None:
    rooms.made = plan(LINUX, Backend.CPU)
    outcome = rooms.open(backend=Backend.CPU).build(prove=False)
    assert "build_module" not in rooms.calls
    assert not [s for s in stages(outcome) if "module" in s]


def test_without_a_proof_nothing_is_run_and_no_model_is_fetched(rooms: Rooms) -> None:
    outcome = rooms.open().build(prove=False)
    assert rooms.rooms[-1] == "place"
    assert (outcome.verdict, outcome.reports) == (None, ())
    assert outcome.artifact is not None
    assert outcome.artifact.path.parent == rooms.root / "dist"
    assert outcome.tools


def test_what_was_packed_before_is_not_made_again_but_is_proved_again(rooms: Rooms) -> None:
    rooms.known = True
    pipeline = rooms.open()
    outcome = pipeline.build(prove=True)
    assert rooms.rooms == ["place", "fetch_model", "verify", "write_report"]
    assert stages(outcome) == ["plan", *DONE]
    assert isinstance(pipeline.reporter, Told)
    assert any("packed before" in t and "k" * 12 in t for t in pipeline.reporter.lines)


def test_warnings_of_the_plan_are_told(rooms: Rooms) -> None:
    rooms.made = plan(warnings=("old headers", "no bfloat16"))
    pipeline = rooms.open()
    pipeline.build(prove=False)
    assert isinstance(pipeline.reporter, Told)
    assert pipeline.reporter.warnings == ["old headers", "no bfloat16"]


def test_sets_of_the_plan_are_provided_before_the_tools_are_proved(rooms: Rooms) -> None:
    rooms.made = plan(provisions=(PROVIDED,))
    rooms.open().build(prove=False)
    assert rooms.rooms[:3] == ["provide vulkan-debian13", "provided_tools", "fetch_source"]


def unpinned() -> Plan:
    made = plan(source="path:/x")
    return replace(made, recipe=recipe(source=replace(made.recipe.source, tree=None)))


@pytest.mark.parametrize("known", [False, True])
def test_an_unpinned_source_is_measured_before_the_key_is_believed(
    rooms: Rooms, known: bool
) -> None:
    rooms.made, rooms.known = unpinned(), known
    pinned = replace(rooms.made, key="n" * 64, name="pinned")
    digests: list[object] = []

    def pin(_plan: Plan, digest: str) -> Plan:
        digests.append(digest)
        return pinned

    rooms.put("pin_source", pin)
    outcome = rooms.open().build(prove=False)
    assert digests == ["d" * 64]
    assert outcome.name == "pinned"
    assert rooms.calls.count("fetch_source") == 1
    assert rooms.calls.index("pin_source") < rooms.calls.index("packed_before")
    assert {p.key for p in rooms.built[1:]} == {"n" * 64}
    assert ("pack" in rooms.calls) is not known


def test_a_pinned_source_is_never_measured_anew(rooms: Rooms) -> None:
    rooms.fail("pin_source", AssertionError("not for a pinned source"))
    rooms.open().build(prove=False)


@pytest.mark.parametrize("stage", ["patch_tree", "build_host", "build_module", "pack", "place"])
def test_a_room_that_fails_ends_the_run_there(rooms: Rooms, stage: str) -> None:
    rooms.fail(stage, BuildError("no"))
    with pytest.raises(BuildError):
        rooms.open().build(prove=True)
    assert rooms.calls[-1] == stage
    assert "verify" not in rooms.calls


@pytest.mark.parametrize("words", [(), ("--require-hardware",)], ids=["any", "hardware"])
@pytest.mark.parametrize("verb", ["build", "verify"])
def test_a_software_driver_is_no_offer_where_hardware_is_required(
    rooms: Rooms, verb: str, words: tuple[str, ...]
) -> None:
    packed = artifact(rooms.root, backend=Backend.VULKAN)
    rooms.say("pack", packed)
    packed.path.touch()
    if verb == "build":
        rooms.open(*words).build(prove=True)
    else:
        rooms.open_verify(*words).verify_file(packed.path)
    (driver,) = rooms.drivers
    assert (driver is None) is bool(words)
    assert rooms.proofs[0].require_hardware is bool(words)
    assert rooms.proofs[0].driver is None
    assert not [c for c in rooms.calls if c.startswith("provide driver")]


@pytest.mark.parametrize("words", [(), ("--clear-quarantine",)], ids=["kept", "cleared"])
def test_a_quarantine_is_lifted_by_the_flag_alone(rooms: Rooms, words: tuple[str, ...]) -> None:
    rooms.open_verify(*words).verify_file(rooms.root / "x.tar.zst")
    assert rooms.proofs[0].clear_quarantine is bool(words)


def test_an_artifact_that_could_not_be_opened_still_gets_its_verdict(rooms: Rooms) -> None:
    rooms.manifest = None
    outcome = rooms.open_verify().verify_file(rooms.root / "x.tar.zst")
    assert outcome.artifact is None
    assert outcome.verdict is rooms.verdict
    assert outcome.name == "x.tar.zst"


def offered_driver(rooms: Rooms, pipeline: Pipeline) -> SoftwareDriver | None:
    pipeline.build(prove=True)
    (provide,) = rooms.drivers
    assert provide is not None
    return provide()


def test_the_driver_is_this_platform_s_and_comes_with_its_environment(rooms: Rooms) -> None:
    root = rooms.root / "driver-linux"
    assert offered_driver(rooms, rooms.open()) == SoftwareDriver(
        name="driver-linux", env=(("VK_DRIVER_FILES", f"{root}/x.json"),), root=root
    )


def test_a_platform_without_a_driver_set_has_none(rooms: Rooms) -> None:
    pipeline = rooms.open()
    pipeline.toolchains = replace(pipeline.toolchains, sets=SETS[1:2])
    assert offered_driver(rooms, pipeline) is None


def test_a_driver_that_cannot_be_had_is_a_warning_not_the_end(rooms: Rooms) -> None:
    pipeline = rooms.open()
    rooms.fail("provide_set", ToolMissingError("no driver", why="glibc is too old"))
    assert offered_driver(rooms, pipeline) is None
    assert isinstance(pipeline.reporter, Told)
    (warning,) = pipeline.reporter.warnings
    assert "no driver" in warning
    assert "glibc is too old" in warning


def test_the_pinned_model_is_held_to_its_digest(rooms: Rooms) -> None:
    rooms.open().build(prove=True)
    (proof,) = rooms.proofs
    assert (proof.model, proof.model_sha256) == (rooms.root / "model.gguf", "m" * 64)
    assert proof.device is None


def test_a_model_and_device_of_the_settings_reach_the_proof(rooms: Rooms) -> None:
    """They may come from the environment or the settings file: no flag says them here."""
    own = rooms.root / "mine.gguf"
    rooms.open(model=own, device="Vulkan1").build(prove=True)
    (proof,) = rooms.proofs
    assert (proof.model, proof.model_sha256, proof.device) == (own, "", "Vulkan1")
    assert "fetch_model" not in rooms.calls


def test_flags_of_verify_reach_the_proof(rooms: Rooms) -> None:
    pipeline = rooms.open_verify("--model", "mine.gguf", "--device", "0000:01:00.0")
    outcome = pipeline.verify_file(rooms.root / "x.tar.zst")
    (proof,) = rooms.proofs
    assert (proof.model, proof.device) == (Path.cwd() / "mine.gguf", "0000:01:00.0")
    assert proof.artifact == rooms.root / "x.tar.zst"
    assert stages(outcome) == ["verify"]
    assert outcome.reports[0].parent == rooms.root
    assert rooms.rooms == ["verify", "write_report"]


@pytest.mark.parametrize("offline", [False, True])
def test_every_room_that_could_download_is_told_whether_it_may(rooms: Rooms, offline: bool) -> None:
    rooms.made = plan(provisions=(PROVIDED,))
    rooms.open(offline=offline).fetch_all(rooms.made)
    assert rooms.offline == dict.fromkeys(("provide_set", "fetch_source", "fetch_model"), offline)


@pytest.mark.parametrize(("words", "offline"), [((), False), (("--offline",), True)])
def test_a_proof_alone_is_offline_when_its_flag_says_so(
    rooms: Rooms, words: tuple[str, ...], offline: bool
) -> None:
    pipeline = rooms.open_verify(*words)
    pipeline.verify_file(rooms.root / "x.tar.zst")
    assert rooms.offline == {"fetch_model": offline}


@pytest.mark.parametrize("backend", [Backend.CPU, Backend.VULKAN])
def test_fetching_ahead_leaves_nothing_for_later(rooms: Rooms, backend: Backend) -> None:
    rooms.made = plan(LINUX, backend, provisions=(PROVIDED,))
    paths = rooms.open().fetch_all(rooms.made)
    assert paths["source"] == rooms.root / "source"
    assert paths["model"] == rooms.root / "model.gguf"
    assert ("driver" in paths) is (backend is Backend.VULKAN)
    assert "provide vulkan-debian13" in rooms.calls
    assert "build_host" not in rooms.calls


def test_all_that_a_run_read_and_wrote_is_watched(rooms: Rooms) -> None:
    own = rooms.root / "mine.gguf"
    pipeline = rooms.open(model=own)
    outcome = pipeline.build(prove=True)
    seen = set(touched(pipeline, outcome))
    assert isinstance(outcome.artifact, Artifact)
    wanted = {
        own, outcome.artifact.path, pipeline.result_file, rooms.root / SETTINGS_FILE,
        rooms.root / "tiny.toml", *outcome.reports, *outcome.tools,
    }  # fmt: skip
    assert wanted <= seen
    names = {p.name for p in seen}
    assert {"series.toml", "llama.cpp.toml", "vulkan-driver.toml", "pipeline.py"} <= names
    assert not [p for p in seen if "__pycache__" in p.parts]


def test_the_runtime_libraries_are_watched_with_the_artifact(rooms: Rooms) -> None:
    """Without them a CUDA artifact does not start: a repeat must not call that finished."""
    companion = rooms.root / "dist" / "cuda-runtime.tar.zst"
    packed = artifact(rooms.root / "store")
    rooms.put("place", lambda _a, _dist: replace(packed, companion=companion))
    pipeline = rooms.open()
    assert companion in set(touched(pipeline, pipeline.build(prove=True)))


def test_an_unproved_run_watches_neither_model_nor_reports(rooms: Rooms) -> None:
    pipeline = rooms.open()
    seen = {p.name for p in touched(pipeline, pipeline.build(prove=False))}
    assert not seen & {"r.json", "r.md", "model.gguf"}


def test_an_own_source_folder_is_watched_file_by_file(rooms: Rooms) -> None:
    """Else an edited source would be taken as unchanged, and the run as done."""
    folder = rooms.root / "checkout"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "a.cpp").write_text("int a;")
    (folder / "notes.txt").write_text("no part of the build")
    pipeline = rooms.open(source=f"path:{folder}")
    outcome = Outcome(name="x", artifact=None, verdict=None, reports=(), timings=())
    seen = set(touched(pipeline, outcome))
    assert {folder / "src", folder / "src" / "deep", folder / "src" / "deep" / "a.cpp"} <= seen
    assert folder / "notes.txt" not in seen
    pinned = set(touched(rooms.open(source="index"), outcome))
    assert not [p for p in pinned if p.is_relative_to(folder)]


def test_the_result_file_is_known_before_anything_is_resolved(rooms: Rooms) -> None:
    path = rooms.open().result_file
    assert path == rooms.root / "dist" / "tiny-012345678-vulkan-linux_x86_64.result.json"
    assert rooms.calls == []
    pipeline = rooms.open(backend=Backend.CPU)
    pipeline.platform = MACOS
    assert pipeline.result_file.name == "tiny-012345678-cpu-macos_arm64.result.json"


def test_a_verb_without_a_request_has_no_wish(rooms: Rooms) -> None:
    with pytest.raises(AssertionError, match="no build request"):
        _ = rooms.open_verify().wish


def test_the_source_alone_is_a_stage_of_its_own(rooms: Rooms) -> None:
    pipeline = rooms.open()
    assert pipeline.source_root() == rooms.root / "source"
    assert [t.stage for t in pipeline.timings] == ["fetch"]


def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Pipeline:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{ROOM}.detect_platform", lambda: LINUX)
    return Pipeline.open(make_parser().parse_args(words), tmp_path / "store", Told())


def test_opening_reads_the_default_recipe_and_the_settings_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMAWRIGHT_DEVICE", "Vulkan3")
    (tmp_path / SETTINGS_FILE).write_text("jobs = 3\n")
    pipeline = opened(tmp_path, monkeypatch, "build", "vulkan", "--source", "git")
    wish = pipeline.wish
    assert pipeline.recipe.name == "llama.cpp"
    assert (wish.proof.device, wish.jobs, wish.source) == ("Vulkan3", 3, "git")
    assert {Role.DRIVER, Role.VULKAN} <= {s.role for s in pipeline.toolchains.sets}
    assert pipeline.store.root == tmp_path / "store"
    assert pipeline.series.patches


def test_opening_for_a_recipe_that_is_not_there_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="nobody"):
        opened(tmp_path, monkeypatch, "plan", "cpu", "--recipe", "nobody")
