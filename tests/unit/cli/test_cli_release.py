"""The verb release: its plan, its refusals, and real tiny archives through the real steps."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cli_kit import Line, last_line, line, verdict
from github_kit import REPO, TOKEN, FakeGitHub, github
from llamawright.cli.release import wanted_place
from llamawright.digest import sha256_file, tree_digest
from llamawright.errors import ExitCode, ToolchainConflictError, UsageError
from llamawright.model.artifact import Artifact, Manifest
from llamawright.model.inventory import Role
from llamawright.model.plan import Plan
from llamawright.model.platform import Backend, Platform
from llamawright.model.recipe import Recipe
from llamawright.model.release import (
    Accepted,
    Exemption,
    ReleaseRule,
    ReleaseTarget,
    TargetKind,
)
from llamawright.model.request import Request
from llamawright.model.toolchain import ProvidedSet
from llamawright.model.verdict import State
from llamawright.model.wheel import BuiltWheel, PlatformClaim
from llamawright.package import pack, place, read_artifact
from llamawright.paths import remove_tree
from llamawright.pipeline import Outcome
from llamawright.release.github_api import API
from llamawright.store import Store
from llamawright.transfer.opened import open_artifact
from llamawright.transfer.wheel import is_wheel, read_wheel
from llamawright.verify import write_report
from package_kit import LINUX, Bench, plan, recipe, source
from pipeline_kit import provided
from reporter_kit import Told
from wheel_kit import TAG, VERSION, write_wheel

__all__ = ["line"]

VULKAN = ReleaseTarget(
    name="vulkan",
    backend=Backend.VULKAN,
    kind=TargetKind.ARCHIVE,
    accept=(Exemption(state=Accepted.VERIFIED_SOFTWARE, reason="no GPU in this room"),),
)
NAME = "tiny-012345678"
STEM = f"{NAME}-vulkan-linux_x86_64"


@dataclass
class TinySeries:
    """A series of one patch, as far as a release looks."""

    folder: Path


@dataclass
class TinyPipeline:
    """A pipeline that packs real tiny trees and says the verdict that it is told."""

    root: Path
    recipe: Recipe
    request: Request | None = None
    state: State = State.VERIFIED
    conflict: ToolchainConflictError | None = None
    native: bool = False
    platform: Platform = LINUX
    calls: list[str] = field(default_factory=list)
    reporter: Told = field(default_factory=Told)

    def open(self, flags: Namespace, *_given: object) -> TinyPipeline:
        backend = Backend(flags.backend) if flags.backend else Backend.CPU
        request = Request(recipe=self.recipe, backend=backend, platform=LINUX)
        return replace(self, request=replace(request, source=flags.source or "auto"))

    @property
    def wish(self) -> Request:
        assert self.request is not None
        return self.request

    @property
    def store(self) -> Store:
        return Store(self.root / "store")

    @property
    def series(self) -> TinySeries:
        folder = self.root / "patches"
        folder.mkdir(exist_ok=True)
        (folder / "series.toml").write_text("")
        (folder / "0001-a.patch").write_text("--- a\n")
        return TinySeries(folder)

    def plan(self) -> Plan:
        if self.conflict is not None:
            raise self.conflict
        return replace(plan(backend=self.wish.backend), recipe=self.recipe)

    def source_root(self) -> Path:
        return source(self.root / "source").root

    def build(self, *, prove: bool) -> Outcome:
        assert not prove
        self.calls.append("build")
        bench = Bench(self.root / f"bench{len(self.calls)}", plan=self.plan())
        patched, host, module = bench.trees()
        patched = replace(patched, source_digest=str(self.recipe.source.tree))
        packed = pack(bench.plan, patched, host, module, store=self.store, reporter=Told())
        artifact = place(packed, self.wish.dist)
        manifest = replace(artifact.manifest, native=self.native)
        return self._outcome(replace(artifact, manifest=manifest), ())

    def verify_file(self, path: Path) -> Outcome:
        self.calls.append("verify")
        said = verdict(self.state, artifact=path.name, artifact_sha256=sha256_file(path))
        manifest = read_wheel(path).manifest if is_wheel(path) else read_artifact(path).manifest
        reports = write_report(said, manifest, path.parent)
        return replace(self._outcome(None, reports), verdict=said)

    def _outcome(self, artifact: Artifact | None, reports: tuple[Path, ...]) -> Outcome:
        return Outcome(name=STEM, artifact=artifact, verdict=None, reports=reports, timings=())


def tiny_recipe(root: Path, *targets: ReleaseTarget) -> Recipe:
    tree = tree_digest(source(root / "source").root)
    made = recipe(release=ReleaseRule(targets=targets) if targets else None)
    return replace(made, source=replace(made.source, tree=tree))


@pytest.fixture
def tiny(line: Line, monkeypatch: pytest.MonkeyPatch) -> TinyPipeline:
    made = TinyPipeline(line.root, tiny_recipe(line.root, VULKAN))
    monkeypatch.setattr("llamawright.cli.release_plan.Pipeline", made)
    monkeypatch.setattr("llamawright.cli.release_plan.source_pin", lambda w: w.recipe.source)
    return made


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setattr("llamawright.release.github.BETWEEN_CHANGES_S", 0.0)
    with github() as opened:
        yield opened


def test_the_plan_lists_every_file_and_builds_nothing(line: Line, tiny: TinyPipeline) -> None:
    assert line("release", "--plan-only", "--json") == 0
    told = json.loads(line.out)
    assert [f["name"] for f in told["targets"][0]["files"]] == [
        f"{STEM}.tar.zst", f"{STEM}.tar.zst.sha256", f"{STEM}.verdict.json", f"{STEM}.report.html",
    ]  # fmt: skip
    assert [f["name"] for f in told["files"]] == [
        f"{NAME}-source.tar.zst", "RELEASE.md", "release.json", "SHA256SUMS",
    ]  # fmt: skip
    assert told["targets"][0]["accept"][0]["reason"] == "no GPU in this room"
    assert told["targets"][0]["command"] == "llamawright build vulkan"
    assert told["source_tree"] == tiny.recipe.source.tree
    assert tiny.calls == []
    assert not (line.root / "dist").exists()


def test_the_plan_reads_well_too(line: Line, tiny: TinyPipeline) -> None:
    assert line("release", "--plan-only", "--tag", "v7") == 0
    assert line.out.startswith("v7: someone/tiny ")
    assert "verdict verified, or verified-software (no GPU in this room)" in line.out
    assert f"{STEM}.tar.zst" in line.out


def test_a_release_makes_exactly_what_the_plan_lists(line: Line, tiny: TinyPipeline) -> None:
    assert line("release", "--plan-only", "--json") == 0
    told = json.loads(line.out)
    listed = {f["name"] for t in (told, *told["targets"]) for f in t["files"]}
    assert line("release") == 0, line.err
    assert {p.name for p in (line.root / "dist" / NAME).iterdir()} == listed
    assert f"release   {line.root}/dist/{NAME}" in line.err


def test_a_second_run_changes_nothing(line: Line, tiny: TinyPipeline) -> None:
    line("release")
    tiny.calls.clear()
    assert line("release", "--json") == 0
    assert tiny.calls == []
    assert "(made before, unchanged)" in line.err
    told = json.loads(line.out)
    assert told["page"] is None
    assert told["release"]["verdicts"][0]["state"] == "verified"


def test_the_artifact_is_proved_as_it_is_packed(line: Line, tiny: TinyPipeline) -> None:
    assert line("release") == 0, line.err
    assert tiny.calls == ["build", "verify"]
    folder = line.root / "dist" / NAME
    said = json.loads((folder / f"{STEM}.verdict.json").read_text())
    assert said["artifact_sha256"] == sha256_file(folder / f"{STEM}.tar.zst")
    assert read_artifact(folder / f"{STEM}.tar.zst").manifest.name == STEM


def test_a_missing_verdict_ends_it_with_the_command(line: Line, tiny: TinyPipeline) -> None:
    tiny.state = State.UNVERIFIED
    assert line("release") == ExitCode.VERIFICATION
    assert line.last == last_line(ExitCode.VERIFICATION, "not-covered")
    assert "its verdict is unverified" in line.err
    report = line.root / "dist" / f".{NAME}.draft" / "vulkan.prove" / f"{STEM}.report.html"
    assert f"report: {report}" in line.err
    assert report.is_file()
    assert "llamawright build vulkan" in line.err
    assert not (line.root / "dist" / NAME).exists()


def test_software_is_accepted_with_the_recipes_reason(line: Line, tiny: TinyPipeline) -> None:
    tiny.state = State.VERIFIED_SOFTWARE
    assert line("release") == 0
    assert "(accepted: no GPU in this room)" in line.err
    assert "no GPU in this room" in (line.root / "dist" / NAME / "RELEASE.md").read_text()


def test_a_conflict_ends_it_before_anything_is_built(line: Line, tiny: TinyPipeline) -> None:
    tiny.conflict = ToolchainConflictError("no glslc fits", hint="take another")
    assert line("release") == ExitCode.TOOLS_CONFLICT
    assert tiny.calls == []


def test_a_native_build_is_not_for_others(line: Line, tiny: TinyPipeline) -> None:
    tiny.native = True
    assert line("release") == ExitCode.PACKAGE
    assert "SIGILL" in line.err or "native" in line.err


def test_a_floor_is_applied_and_the_artifact_is_held_to_it(
    line: Line, tiny: TinyPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.recipe = tiny_recipe(line.root, replace(VULKAN, floor="manylinux_2_28"))
    seen: list[str] = []
    floor = provided("sysroot", Role.SYSROOT)

    def apply(flags: Namespace, *_given: object) -> ProvidedSet:
        seen.append(flags.floor)
        return floor

    def require(manifest: Manifest, wanted: ProvidedSet) -> None:
        assert wanted is floor
        seen.append(manifest.name)

    monkeypatch.setattr("llamawright.cli.release_plan.apply_floor", apply)
    monkeypatch.setattr("llamawright.cli.release_steps.require_floor", require)
    assert line("release", "--json", "--plan-only") == 0
    command = json.loads(line.out)["targets"][0]["command"]
    assert command == "llamawright build vulkan --floor manylinux_2_28"
    assert line("release") == 0, line.err
    assert seen == ["manylinux_2_28", "manylinux_2_28", STEM]


def test_a_recipe_without_targets_is_told_so(line: Line, tiny: TinyPipeline) -> None:
    tiny.recipe = tiny_recipe(line.root)
    assert line("release") == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "no-release-targets")


def test_an_unpinned_source_is_not_released(line: Line, tiny: TinyPipeline) -> None:
    tiny.recipe = replace(tiny.recipe, source=replace(tiny.recipe.source, tree=None))
    assert line("release", "--source", "path:here") == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "unpinned-release")


def test_variants_that_the_recipe_does_not_name(line: Line, tiny: TinyPipeline) -> None:
    assert line("release", "--variants") == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "no-variants")


@pytest.mark.parametrize(
    "address", ["host/files", "ftp://host", "https://", "https://h/x?y", "a b"]
)
def test_what_is_no_address_of_wheels(line: Line, tiny: TinyPipeline, address: str) -> None:
    assert line("release", "--files-at", address) == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "bad-address")


@pytest.mark.parametrize("kind", [TargetKind.RUNTIME_WHEEL])
def test_a_wheels_files_are_planned_by_version(
    line: Line, tiny: TinyPipeline, kind: TargetKind
) -> None:
    wheel = replace(VULKAN, name="wheel", kind=kind)
    tiny.recipe = tiny_recipe(line.root, wheel)
    assert line("release", "--plan-only", "--json") == 0
    told = json.loads(line.out)
    names = [f["name"] for f in told["targets"][0]["files"]]
    assert names[0] == "llamawright_llama_cpp-0.0.7+vulkan-py3-none-*.whl"
    assert "index/vulkan/llamawright-llama-cpp/index.html" in [f["name"] for f in told["files"]]
    assert told["targets"][0]["command"] == (
        f"llamawright build vulkan && llamawright wheel dist/{STEM}.tar.zst && "
        "llamawright verify dist/llamawright_llama_cpp-0.0.7+vulkan-py3-none-*.whl"
    )


def tiny_wheel(artifact: Artifact, dist: Path, **_given: object) -> BuiltWheel:
    """Make the wheel of an archive without its build backend."""
    scratch = dist / "scratch"
    opened = scratch / "opened"
    manifest = open_artifact(artifact.path, opened)
    kept = tuple(f for f in manifest.files if f.path.startswith("bin/") and not f.link)
    manifest = replace(manifest, files=kept)
    path = write_wheel(dist, opened, manifest, scratch=scratch)
    remove_tree(scratch)
    sum_ = path.with_name(f"{path.name}.sha256")
    sum_.write_text(f"{sha256_file(path)}  {path.name}\n")
    return BuiltWheel(
        path=path, size=path.stat().st_size, sha256=sha256_file(path),
        source_sha256=artifact.sha256, version=VERSION, claim=PlatformClaim(claimed=TAG),
        contents=read_wheel(path),
    )  # fmt: skip


@pytest.fixture
def both(tiny: TinyPipeline, monkeypatch: pytest.MonkeyPatch) -> TinyPipeline:
    """A recipe of an archive and its wheel."""
    wheel = replace(VULKAN, name="wheel", kind=TargetKind.RUNTIME_WHEEL)
    made = tiny_recipe(tiny.root, VULKAN, wheel)
    tiny.recipe = replace(made, source=replace(made.source, build_number=11312))
    monkeypatch.setattr("llamawright.cli.release_steps.build_wheel", tiny_wheel)
    return tiny


WHEEL = f"llamawright_llama_cpp-{VERSION}-py3-none-{TAG}"


def test_an_archive_and_its_wheel_are_proved_apart(line: Line, both: TinyPipeline) -> None:
    assert line("release", "--json") == 0, line.err
    folder = line.root / "dist" / NAME
    verdicts = {p.name: json.loads(p.read_text()) for p in folder.glob("*.verdict.json")}
    assert set(verdicts) == {f"{STEM}.verdict.json", f"{WHEEL}.verdict.json"}
    for name, said in verdicts.items():
        file = name.removesuffix(".verdict.json") + (".whl" if WHEEL in name else ".tar.zst")
        assert said["artifact_sha256"] == sha256_file(folder / file)
    assert both.calls.count("verify") == 2
    roles = {f["name"]: f["role"] for f in json.loads(line.out)["release"]["files"]}
    assert roles[f"{WHEEL}.whl"] == "artifact"
    assert roles[f"{WHEEL}.whl.sha256"] == "checksum"
    assert roles[f"{WHEEL}.whl.metadata"] == "wheel metadata"


def test_the_wheels_archive_is_no_file_of_its_target(line: Line, both: TinyPipeline) -> None:
    both.state = State.FAILED
    assert line("release") == ExitCode.VERIFICATION
    step = line.root / "dist" / f".{NAME}.draft" / "wheel.build"
    assert {p.name for p in step.iterdir() if not p.name.startswith(".")} == {
        f"{WHEEL}.whl", f"{WHEEL}.whl.sha256",
    }  # fmt: skip


def test_the_index_of_a_release_lists_the_wheel(line: Line, both: TinyPipeline) -> None:
    assert line("release") == 0, line.err
    folder = line.root / "dist" / NAME
    for channel in ("vulkan", "all"):
        page = folder / "index" / channel / "llamawright-llama-cpp" / "index.json"
        file = json.loads(page.read_text())["files"][0]
        assert file["filename"] == f"{WHEEL}.whl"
        assert (page.parent / file["url"].replace("%2B", "+")).resolve().is_file()


def test_a_wheel_of_another_machine_is_taken_too(line: Line, both: TinyPipeline) -> None:
    assert line("release") == 0, line.err
    made = (line.root / "dist" / NAME).rename(line.root / "elsewhere")
    both.calls.clear()
    both.conflict = ToolchainConflictError("this machine cannot build it")
    assert line("release", "--from", made) == 0, line.err
    assert both.calls == []
    for name in (f"{WHEEL}.whl", f"{WHEEL}.verdict.json", f"{STEM}.tar.zst"):
        assert (line.root / "dist" / NAME / name).read_bytes() == (made / name).read_bytes()


def test_a_wheel_of_another_archive_is_not_taken(line: Line, both: TinyPipeline) -> None:
    assert line("release") == 0, line.err
    made = (line.root / "dist" / NAME).rename(line.root / "elsewhere")
    wheel = made / f"{WHEEL}.whl"
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"?")
    both.conflict = ToolchainConflictError("this machine cannot build it")
    assert line("release", "--from", made) == ExitCode.TOOLS_CONFLICT


def test_what_another_machine_made_is_taken_with_its_verdict(
    line: Line, tiny: TinyPipeline
) -> None:
    elsewhere = line.root / "elsewhere"
    there = replace(tiny.open(Namespace(backend="vulkan", source=None)))
    built = replace(there, request=replace(there.wish, dist=elsewhere)).build(prove=False)
    assert built.artifact is not None
    there.verify_file(built.artifact.path)
    tiny.calls.clear()
    tiny.conflict = ToolchainConflictError("this machine cannot build it")
    assert line("release", "--from", elsewhere) == 0, line.err
    assert tiny.calls == []
    folder = line.root / "dist" / NAME
    for name in (f"{STEM}.tar.zst", f"{STEM}.verdict.json", f"{STEM}.report.html"):
        assert (folder / name).read_bytes() == (elsewhere / name).read_bytes()


@pytest.mark.parametrize("wrong", ["bytes", "verdict", "commit", "floor"])
def test_what_does_not_fit_is_not_taken(
    line: Line, tiny: TinyPipeline, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    elsewhere = line.root / "elsewhere"
    there = replace(tiny.open(Namespace(backend="vulkan", source=None)))
    built = replace(there, request=replace(there.wish, dist=elsewhere)).build(prove=False)
    assert built.artifact is not None
    there.verify_file(built.artifact.path)
    match wrong:
        case "bytes":
            built.artifact.path.write_bytes(built.artifact.path.read_bytes() + b"\0")
        case "floor":
            # The tiny programs ask for glibc 2.34.
            tiny.recipe = tiny_recipe(line.root, replace(VULKAN, floor="manylinux_2_28"))
            monkeypatch.setattr("llamawright.cli.release_plan.apply_floor", lambda *_a: None)
        case "verdict":
            (elsewhere / f"{STEM}.verdict.json").write_text("{}")
        case _:
            pin = replace(tiny.recipe.source, commit="f" * 40)
            tiny.recipe = replace(tiny.recipe, source=pin)
    tiny.conflict = ToolchainConflictError("this machine cannot build it")
    assert line("release", "--from", elsewhere) == ExitCode.TOOLS_CONFLICT


def test_a_folder_that_is_none_is_told(line: Line, tiny: TinyPipeline) -> None:
    assert line("release", "--from", "nowhere") == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "no-folder")


def test_a_release_is_published_with_every_file(
    line: Line, tiny: TinyPipeline, hub: FakeGitHub
) -> None:
    arguments = ("--github", REPO, "--github-api", hub.url, "--tag", "v7", "--commitish", "main")
    assert line("release", "--json", *arguments) == 0, line.err
    folder = line.root / "dist" / NAME
    release = hub.public[0]
    there = {a.name: a.data for a in release.assets}
    assert there == {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "RELEASE.md"}
    assert release.body.startswith("# v7\n")
    assert json.loads(line.out)["page"] == f"https://github.com/{REPO}/releases/tag/v7"
    assert "page      https://github.com" in line.err


def test_nothing_is_published_when_the_gate_holds(
    line: Line, tiny: TinyPipeline, hub: FakeGitHub
) -> None:
    tiny.state = State.FAILED
    assert line("release", "--github", REPO, "--github-api", hub.url) == ExitCode.VERIFICATION
    assert hub.log == []


def test_a_refused_token_leaves_the_release_on_disk(
    line: Line, tiny: TinyPipeline, hub: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrong")
    assert line("release", "--github", REPO, "--github-api", hub.url) == ExitCode.DOWNLOAD
    assert line.last == last_line(ExitCode.DOWNLOAD, "bad-token")
    assert "ghp_wrong" not in line.err + line.out
    assert (line.root / "dist" / NAME / "SHA256SUMS").is_file()


def test_a_missing_token_ends_it_before_the_work(
    line: Line, tiny: TinyPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert line("release", "--github", REPO) == ExitCode.USAGE
    assert line.last == last_line(ExitCode.USAGE, "no-token")
    assert tiny.calls == []


@pytest.mark.parametrize("repo", ["tiny", "a/b/c", "https://github.com/a/b", "a b/c", "-a/b", "a/"])
def test_what_is_no_repository(repo: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted_place(Namespace(github=repo, github_api=None), {"GITHUB_TOKEN": "t"})
    assert caught.value.kind == "bad-repository"


@pytest.mark.parametrize(
    ("env", "token"),
    [
        ({"GITHUB_TOKEN": "one", "GH_TOKEN": "two"}, "one"),
        ({"GITHUB_TOKEN": " ", "GH_TOKEN": " two\n"}, "two"),
    ],
)
def test_the_token_comes_from_the_environment(env: dict[str, str], token: str) -> None:
    place = wanted_place(Namespace(github="a/b.c", github_api=None), env)
    assert place is not None
    assert (place.token, place.api) == (token, API)
    assert wanted_place(Namespace(github=None), env) is None
