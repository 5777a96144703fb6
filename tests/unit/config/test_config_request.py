"""Requests: flag beats variable beats file beats default, and each origin is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from config_fakes import tiny_recipe

from llamawright.config import build_proof, build_request
from llamawright.errors import ExitCode, UsageError
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import Recipe
from llamawright.model.request import CacheChoice, ProofRequest, Request, VulkanChoice

LINUX = Platform(System.LINUX, "x86_64")
HERE = Path("/here")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return tiny_recipe(tmp_path_factory.mktemp("recipe"))


def build(
    recipe: Recipe,
    flags: Mapping[str, object] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Request:
    given = {"backend": "vulkan", **(flags or {})}
    return build_request(
        given, env=env or {}, settings_file=file, recipe=recipe, platform=LINUX, cwd=HERE
    )


def refused(
    recipe: Recipe,
    flags: Mapping[str, object] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> UsageError:
    with pytest.raises(UsageError) as caught:
        build(recipe, flags, env=env, file=file)
    assert caught.value.code is ExitCode.USAGE
    return caught.value


def settings(folder: Path, text: str) -> Path:
    path = folder / "llamawright.toml"
    path.write_text(text, encoding="utf-8")
    return path


def origin(request: Request, name: str) -> str:
    return next(s.origin for s in request.settings if s.name == name)


def test_defaults(recipe: Recipe) -> None:
    request = build(recipe)
    assert request.backend is Backend.VULKAN
    assert request.vulkan is VulkanChoice.AUTO
    assert request.cache is CacheChoice.AUTO
    assert (request.compiler, request.cmake, request.ninja) == ("auto", "auto", "auto")
    assert (request.native, request.with_tests, request.proof.offline) == (False, False, False)
    assert (request.jobs, request.proof.device, request.proof.model) == (None, None, None)
    assert request.source == "auto"
    assert request.dist == Path("dist")
    assert origin(request, "vulkan") == "default"
    assert origin(request, "backend") == "command line"


def test_every_setting_is_told_with_value_and_origin(recipe: Recipe) -> None:
    told = {s.name: (s.value, s.origin) for s in build(recipe, {"native": True}).settings}
    assert told["native"] == ("on", "--native")
    assert told["offline"] == ("off", "default")
    assert told["jobs"] == ("auto", "default")
    assert told["dist"] == ("dist", "default")
    assert set(told) >= {"backend", "vulkan", "compiler", "cache", "source", "device", "model"}


def test_none_means_not_given(recipe: Recipe) -> None:
    assert build(recipe, {"vulkan": None, "jobs": None}) == build(recipe)


def test_flags_of_the_command_line_itself_are_passed_over(recipe: Recipe) -> None:
    assert build(recipe, {"json": True, "verb": "build", "store": Path("/s")}) == build(recipe)


def test_precedence(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, 'vulkan = "system"\ncache = "off"\njobs = 2\n')
    env = {"LLAMAWRIGHT_VULKAN": "sdk", "LLAMAWRIGHT_CACHE": "ccache"}
    request = build(recipe, {"vulkan": "provided"}, env=env, file=file)
    assert request.vulkan is VulkanChoice.PROVIDED
    assert request.cache is CacheChoice.CCACHE
    assert request.jobs == 2
    assert origin(request, "vulkan") == "--vulkan"
    assert origin(request, "cache") == "$LLAMAWRIGHT_CACHE"
    assert origin(request, "jobs") == "llamawright.toml:3"


def test_absent_settings_file(recipe: Recipe, tmp_path: Path) -> None:
    assert build(recipe, file=tmp_path / "absent.toml") == build(recipe)


def test_unknown_key_in_the_settings_file(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, 'cache = "off"\nvulcan = "sdk"\n')
    error = refused(recipe, file=file)
    assert f"{file}:2: unknown key 'vulcan'" in error.what
    assert error.hint == "did you mean 'vulkan'?"


def test_bad_value_in_the_settings_file_names_the_line(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, '\n\nvulkan = "systm"\n')
    error = refused(recipe, file=file)
    assert error.what.startswith(f"{file}:3: vulkan cannot be 'systm'")
    assert error.hint == "did you mean 'system'?"


def test_empty_variable_is_not_given(recipe: Recipe) -> None:
    assert build(recipe, env={"LLAMAWRIGHT_VULKAN": ""}) == build(recipe)


def test_variable_with_a_typing_error(recipe: Recipe) -> None:
    error = refused(recipe, env={"LLAMAWRIGHT_VULCAN": "sdk"})
    assert error.kind == "unknown-key"
    assert error.hint == "did you mean LLAMAWRIGHT_VULKAN?"


@pytest.mark.parametrize(
    "name", ["LLAMAWRIGHT_STORE", "LLAMAWRIGHT_DEBIAN_MIRROR", "LLAMAWRIGHT_SOMETHING_ELSE", "PATH"]
)
def test_other_variables_are_passed_over(recipe: Recipe, name: str) -> None:
    assert build(recipe, env={name: "x"}) == build(recipe)


def test_bad_value_of_a_variable_names_it(recipe: Recipe) -> None:
    error = refused(recipe, env={"LLAMAWRIGHT_OFFLINE": "maybe"})
    assert error.what.startswith("$LLAMAWRIGHT_OFFLINE: ")


# --- backend --------------------------------------------------------------------------------


def test_no_backend(recipe: Recipe) -> None:
    error = refused(recipe, {"backend": None})
    assert error.kind == "no-backend"
    assert "cpu, vulkan" in error.hint


def test_unknown_backend(recipe: Recipe) -> None:
    error = refused(recipe, {"backend": "vulcan"})
    assert error.hint == "did you mean 'vulkan'?"


def test_backend_without_a_rule(recipe: Recipe) -> None:
    error = refused(recipe, {"backend": "cuda"})
    assert "no rule for cuda" in error.what
    assert "cpu, vulkan" in error.why


def test_backend_from_a_variable(recipe: Recipe) -> None:
    request = build(recipe, {"backend": None}, env={"LLAMAWRIGHT_BACKEND": "cpu"})
    assert request.backend is Backend.CPU


# --- single values --------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "jobs"), [("1", 1), (" 16 ", 16), (4, 4), ("auto", None)])
def test_jobs(recipe: Recipe, text: object, jobs: int | None) -> None:
    assert build(recipe, {"jobs": text}).jobs == jobs


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "1025", "٣", "", "0x10", True, [1]])
def test_bad_jobs(recipe: Recipe, text: object) -> None:
    assert refused(recipe, {"jobs": text}).what.startswith("--jobs: jobs ")


@pytest.mark.parametrize(
    ("word", "value"),
    [("1", True), ("true", True), ("ON", True), ("yes", True), ("0", False), ("Off", False)],
)
def test_switches(recipe: Recipe, word: str, value: bool) -> None:
    assert build(recipe, env={"LLAMAWRIGHT_NATIVE": word}).native is value


def test_switch_from_the_file(recipe: Recipe, tmp_path: Path) -> None:
    assert build(recipe, file=settings(tmp_path, "offline = true")).proof.offline


@pytest.mark.parametrize("word", ["auto", "gcc", "clang"])
def test_compiler_words(recipe: Recipe, word: str) -> None:
    assert build(recipe, {"compiler": word}).compiler == word


@pytest.mark.parametrize(
    ("text", "path"),
    [("/usr/bin/g++-13", "/usr/bin/g++-13"), ("./bin/cxx", "/here/bin/cxx")],
)
def test_compiler_paths(recipe: Recipe, text: str, path: str) -> None:
    assert build(recipe, {"compiler": text}).compiler == path


def test_compiler_path_of_the_settings_file(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, 'compiler = "./cxx"')
    assert build(recipe, file=file).compiler == (tmp_path / "cxx").as_posix()


@pytest.mark.parametrize(
    ("text", "hint"),
    [("gc", "did you mean 'gcc'?"), ("g++-13", "/usr/bin/g++-13"), ("clnag", "'clang'")],
)
def test_unknown_compiler(recipe: Recipe, text: str, hint: str) -> None:
    assert hint in refused(recipe, {"compiler": text}).hint


@pytest.mark.parametrize("name", ["cmake", "ninja"])
def test_tools(recipe: Recipe, name: str) -> None:
    request = build(recipe, {name: f"/opt/{name}"})
    assert getattr(request, name) == f"/opt/{name}"
    assert "name its path" in refused(recipe, {name: "system"}).hint


@pytest.mark.parametrize("word", ["auto", "index", "archive", "git"])
def test_source_words(recipe: Recipe, word: str) -> None:
    assert build(recipe, {"source": word}).source == word


def test_source_folder(recipe: Recipe) -> None:
    assert build(recipe, {"source": "path:llama"}).source == "path:/here/llama"
    assert build(recipe, {"source": "path:/abs/llama"}).source == "path:/abs/llama"


def test_source_git(recipe: Recipe) -> None:
    text = f"git+https://github.com/someone/fork@{COMMIT}"
    assert build(recipe, {"source": text}).source == text
    local = f"git+file:///srv/llama@{COMMIT}"
    assert build(recipe, {"source": local}).source == local


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("git+https://a.invalid/x@main", "no full commit"),
        (f"git+https://a.invalid/x@{COMMIT[:9]}", "no full commit"),
        ("git+https://a.invalid/x", "no git source"),
        (f"git+ssh://a.invalid/x@{COMMIT}", "no git source"),
        (f"git+--upload-pack=x@{COMMIT}", "no git source"),
        ("./llama", "path:./llama"),
        ("..", "path:.."),
        ("https://a.invalid/x.git", "git+https://"),
        ("git@github.com:a/b.git", "git+https://"),
        ("indx", "did you mean 'index'?"),
    ],
)
def test_bad_sources(recipe: Recipe, text: str, said: str) -> None:
    error = refused(recipe, {"source": text})
    assert said in f"{error.what} {error.hint}"


def test_paths(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, 'dist = "out"\n')
    assert build(recipe, file=file).dist == tmp_path / "out"
    assert build(recipe, {"dist": Path("out")}).dist == HERE / "out"
    assert build(recipe, {"model": Path("/m.gguf")}).proof.model == Path("/m.gguf")


def test_home_folder(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("USERPROFILE", "/home/someone")
    assert build(recipe, {"dist": "~/out"}).dist == Path("/home/someone/out")


def test_unknown_home_folder(recipe: Recipe) -> None:
    error = refused(recipe, {"dist": "~nobody-of-that-name/out"})
    assert "no such home folder" in error.what


def test_device_is_kept_as_written(recipe: Recipe) -> None:
    assert build(recipe, {"device": "NVIDIA H200"}).proof.device == "NVIDIA H200"


@pytest.mark.parametrize("value", ["", "  ", "a\nb", "a\0b", True, 1.5])
def test_values_that_are_no_word(recipe: Recipe, value: object) -> None:
    assert "needs one word" in refused(recipe, {"device": value}).what


def test_settings_file_that_is_no_toml(recipe: Recipe, tmp_path: Path) -> None:
    assert refused(recipe, file=settings(tmp_path, "vulkan = sdk")).kind == "bad-toml"


def test_cuda_code_is_said_in_many_ways_and_once_is_enough(recipe: Recipe) -> None:
    made = build(recipe, {"archs": ["sm_61", "89, 90-virtual", "SM_61"]})
    assert made.archs == ("sm_61", "89", "90-virtual")
    assert build(recipe, env={"LLAMAWRIGHT_ARCHS": "6.1;8.9"}).archs == ("6.1", "8.9")
    assert build(recipe).archs == ()


def test_the_settings_file_may_hold_numbers_for_code(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, 'archs = ["native", 61, 8.9]\n')
    assert build(recipe, file=file).archs == ("native", "61", "8.9")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("compute_No CUDA devices found.", "nvidia-smi"),
        ("nativ", "did you mean native?"),
        ("[N/A]", "compute_cap"),
        ("all", "all-major"),
        ("1300", "release"),
        ("", "arch"),
    ],
)
def test_garbage_for_code_is_refused_with_the_way_to_ask_the_card(
    recipe: Recipe, word: str, hint: str
) -> None:
    error = refused(recipe, {"archs": [word]})
    assert hint in error.hint + error.what
    assert error.what.startswith("--arch: ")


@pytest.mark.parametrize("word", ["auto", "system", "provided", "12", "12.4", "12.4.131"])
def test_a_toolkit_is_named_by_place_or_version(recipe: Recipe, word: str) -> None:
    assert build(recipe, {"cuda_toolkit": word}).cuda_toolkit == word


def test_a_toolkit_may_be_a_folder(recipe: Recipe) -> None:
    assert build(recipe, {"cuda_toolkit": "./cuda"}).cuda_toolkit == str(HERE / "cuda")
    assert build(recipe, {"cuda_toolkit": "/opt/cuda"}).cuda_toolkit == "/opt/cuda"


@pytest.mark.parametrize("word", ["newest", "12.x", "v12.4", "cuda-12.4"])
def test_no_toolkit_is_guessed(recipe: Recipe, word: str) -> None:
    assert "folder" in refused(recipe, {"cuda_toolkit": word}).hint


def test_hardware_may_be_required_by_the_environment(recipe: Recipe) -> None:
    made = build(recipe, env={"LLAMAWRIGHT_REQUIRE_HARDWARE": "1"})
    assert made.proof.require_hardware
    assert not made.proof.clear_quarantine


def test_a_proof_alone_reads_the_same_three_places(tmp_path: Path) -> None:
    file = settings(tmp_path, 'device = "Vulkan1"\nvulkan = "system"\n')
    proof = build_proof(
        {"model": Path("m.gguf"), "clear_quarantine": True},
        env={"LLAMAWRIGHT_OFFLINE": "yes"},
        settings_file=file,
        cwd=HERE,
    )
    assert proof == ProofRequest(
        device="Vulkan1", model=HERE / "m.gguf", offline=True, clear_quarantine=True
    )


def test_a_quarantine_cannot_be_lifted_for_good(recipe: Recipe, tmp_path: Path) -> None:
    file = settings(tmp_path, "clear_quarantine = true\n")
    assert "clear_quarantine" in refused(recipe, file=file).what
