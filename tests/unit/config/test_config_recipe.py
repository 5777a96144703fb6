"""Recipes: the shipped one, and every way another can be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from config_fakes import COMMIT, SHA, line_of, tiny_recipe, write_recipe

from llamawright.config import load_recipe, locate_recipe
from llamawright.digest import sha256_file
from llamawright.errors import UsageError
from llamawright.model.cuda import parse_code
from llamawright.model.platform import Backend
from llamawright.model.recipe import ArchiveOrigin, GitOrigin, IndexOrigin, Recipe
from llamawright.paths import data_root

SHIPPED = data_root() / "recipes" / "llama.cpp.toml"


@pytest.fixture(scope="module")
def shipped() -> Recipe:
    return load_recipe(SHIPPED)


def refused(tmp_path: Path, old: str, new: str) -> UsageError:
    path = write_recipe(tmp_path, old, new)
    with pytest.raises(UsageError) as caught:
        load_recipe(path)
    assert str(path) in caught.value.what
    return caught.value


def test_tiny_recipe(tmp_path: Path) -> None:
    recipe = tiny_recipe(tmp_path)
    assert recipe.name == "tiny"
    assert recipe.source.commit == COMMIT
    assert recipe.source.tree == SHA
    assert recipe.source.timestamp == 1_700_000_000
    assert recipe.allowed_imports == ("libc.so.6", "KERNEL32.dll")
    assert [r.backend for r in recipe.backends] == [Backend.CPU, Backend.VULKAN]
    assert recipe.verification.text == "One line = not a key.\n"
    assert recipe.verification.probe_s == 10.0
    assert recipe.digest == sha256_file(tmp_path / "tiny.toml")


def test_origins_are_in_the_order_they_are_tried(tmp_path: Path) -> None:
    kinds = [type(o) for o in tiny_recipe(tmp_path).source.origins]
    assert kinds == [IndexOrigin, ArchiveOrigin, GitOrigin]


def test_digest_follows_the_bytes(tmp_path: Path) -> None:
    first = tiny_recipe(tmp_path).digest
    assert tiny_recipe(tmp_path, "portable", "for all").digest != first


def test_rule_of_a_backend_the_recipe_lacks(tmp_path: Path) -> None:
    assert tiny_recipe(tmp_path).rule(Backend.CUDA) is None


@pytest.mark.parametrize(
    ("old", "new", "said", "kind"),
    [
        ('name = "tiny"', 'nmae = "tiny"', "did you mean 'name'?", "unknown-key"),
        ("build_number = 7", "build_nubmer = 7", "did you mean 'build_number'?", "unknown-key"),
        ("[contents]", "[content]", "did you mean 'contents'?", "unknown-key"),
        ("[[source.git]]", "[[source.gti]]", "did you mean 'git'?", "unknown-key"),
        ("windows = ", "window = ", "did you mean 'windows'?", "unknown-key"),
        ("min_headers = 300", "min_header = 300", "did you mean 'min_headers'?", "unknown-key"),
        ("layers = 2", "layer = 2", "did you mean 'layers'?", "unknown-key"),
        ("cost = ", "costs = ", "did you mean 'cost'?", "unknown-key"),
        ("tokens = 4", "token = 4", "did you mean 'tokens'?", "unknown-key"),
        ("[backends.cpu]", "[backends.vulcan]", "did you mean 'vulkan'?", "unknown-key"),
        ("build_number = 7", 'build_number = "7"', "a whole number", "bad-value"),
        ("targets = [", "targets = 3 #[", "a list", "bad-value"),
    ],
)
def test_wrong_keys_and_types(tmp_path: Path, old: str, new: str, said: str, kind: str) -> None:
    error = refused(tmp_path, old, new)
    assert said in f"{error.what} {error.hint}"
    assert error.kind == kind


def test_the_line_is_that_of_the_wrong_key(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, "tokens = 4", "token = 4")
    with pytest.raises(UsageError) as caught:
        load_recipe(path)
    assert caught.value.what.startswith(f"{path}:{line_of(path, 'token = 4')}:")


@pytest.mark.parametrize(
    "section",
    ["[source]", "[options]", "[contents]", "[verification]", "[verification.model]"],
)
def test_missing_section(tmp_path: Path, section: str) -> None:
    path = write_recipe(tmp_path)
    text = path.read_text(encoding="utf-8")
    inner = re.escape(section[1:-1])
    cut = re.sub(rf"(?ms)^\[+{inner}[.\]].*?(?=^\[(?!\[?{inner}[.\]]))", "", f"{text}\n[end]\n")
    path.write_text(cut.replace("[end]\n", ""), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_recipe(path)
    assert caught.value.kind == "missing-key"
    assert section[1:-1].rpartition(".")[2] in caught.value.what


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (f'commit = "{COMMIT}"', 'commit = "master"', "source.commit"),
        (f'commit = "{COMMIT}"', f'commit = "{COMMIT[:6]}"', "source.commit"),
        (f'commit = "{COMMIT}"', f'commit = "{COMMIT.upper()}"', "source.commit"),
        (f'tree = "{SHA}"', 'tree = ""', "source.tree"),
        (f'tree = "{SHA}"', f'tree = "{SHA[:-1]}"', "source.tree"),
        (f'tree = "{SHA}"', f'tree = "{SHA.upper()}"', "source.tree"),
        ('include = ["CMakeLists.txt", ', 'include = ["../x", ', "source.include[0]"),
        ('"src"]', '"/etc"]', "source.include[1]"),
        ('"src"]', '"a\\\\b"]', "source.include[1]"),
        ('"src"]', '""]', "source.include[1]"),
        ("size = 1000", "size = 0", "source.index[0].size"),
        ("size = 1000", "size = -1", "source.index[0].size"),
        ("size = 5000", "size = 99999999999999", "source.archive[0].size"),
        ('subdir = "vendor/tiny"', 'subdir = "../tiny"', "source.index[0].subdir"),
        ('filename = "tiny-1.0', 'filename = "../tiny-1.0', "source.index[0].filename"),
        ('url = "https://example.invalid/tiny.tar', 'url = "http://a.b/tiny.tar', "archive[0].url"),
        ('url = "https://example.invalid/tiny.tar', 'url = "ftp://a.b/tiny.tar', "archive[0].url"),
        ('url = "https://example.invalid/tiny.tar', 'url = "https://u:p@a.b/t.tar', "[0].url"),
        ('url = "https://example.invalid/tiny"', 'url = "tiny"', "source.git[0].url"),
        ('licenses = ["LICENSE"]', 'licenses = ["../LICENSE"]', "contents.licenses[0]"),
        ('programs = ["tiny-cli"]', 'programs = ["../tiny"]', "contents.programs[0]"),
        ('libraries = ["tiny"]', 'libraries = ["a b"]', "contents.libraries[0]"),
        ('name = "tiny"', 'name = "../tiny"', "name"),
        ('name = "tiny"', 'name = ""', "name"),
        ('patches = "tiny"', 'patches = "a/b"', "patches"),
        ('member = "tiny/', 'member = "../', "verification.model.member"),
        ("tokens = 4", "tokens = 0", "verification.prompts[1].tokens"),
        ("context = 64", "context = 0", "verification.context"),
        ("chunks = 1", "chunks = -1", "verification.chunks"),
        ("load_s = 20", "load_s = 0", "verification.load_s"),
        ("output_cap = 1000", "output_cap = 0", "verification.output_cap"),
        ("layers = 2", "layers = 0", "verification.model.layers"),
        ("value = 0.95", "value = 0.0", "verification.min_top1.value"),
        ('feature_test = "tests/', 'feature_test = "/tests/', "capabilities[0].feature_test"),
    ],
)
def test_bad_values_name_their_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    error = refused(tmp_path, old, new)
    assert error.kind == "bad-value"
    assert place in error.what


def test_git_origin_needs_a_full_commit(tmp_path: Path) -> None:
    end = f'invalid/tiny"\ncommit = "{COMMIT}"'
    error = refused(tmp_path, end, f'invalid/tiny"\ncommit = "{COMMIT[:9]}"')
    assert "source.git[0].commit must be a commit of 40 hex digits" in error.what
    assert "git rev-parse" in error.hint


def test_source_commit_may_be_short(tmp_path: Path) -> None:
    recipe = tiny_recipe(tmp_path, f'commit = "{COMMIT}"', f'commit = "{COMMIT[:9]}"')
    assert recipe.source.commit == COMMIT[:9]


def test_source_without_origin(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    text = path.read_text(encoding="utf-8")
    start, end = text.index("[[source.index]]"), text.index("[options]")
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    with pytest.raises(UsageError, match="no origin"):
        load_recipe(path)


def test_loopback_address_is_allowed_without_tls(tmp_path: Path) -> None:
    address = "https://example.invalid/tiny.tar.gz"
    recipe = tiny_recipe(tmp_path, address, "http://127.0.0.1:8080/tiny.tar.gz")
    archive = recipe.source.origins[1]
    assert isinstance(archive, ArchiveOrigin)
    assert archive.url.startswith("http://127.0.0.1")


def test_required_capability_must_exist(tmp_path: Path) -> None:
    error = refused(
        tmp_path, "min_headers = 300", 'required_capabilities = ["coop_matrix"]\nmin_headers = 300'
    )
    assert error.kind == "unknown-capability"
    assert "did you mean 'cooperative_matrix'?" in error.hint


def test_required_capability(tmp_path: Path) -> None:
    wanted = 'required_capabilities = ["cooperative_matrix"]\nmin_headers = 300'
    rule = tiny_recipe(tmp_path, "min_headers = 300", wanted).rule(Backend.VULKAN)
    assert rule is not None
    assert rule.required_capabilities == ("cooperative_matrix",)


def test_capability_twice(tmp_path: Path) -> None:
    row = (
        '[[backends.vulkan.capabilities]]\nname = "cooperative_matrix"\ndefine = "D"\n'
        'feature_test = "t"\ncost = "c"\n\n[verification]\n'
    )
    error = refused(tmp_path, "[verification]\n", row)
    assert "is there twice" in error.what


def test_patched_minimum_cannot_be_the_newer_one(tmp_path: Path) -> None:
    error = refused(tmp_path, "min_headers_patched = 239", "min_headers_patched = 301")
    assert "above min_headers" in error.what


def test_no_prompt(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    text = path.read_text(encoding="utf-8")
    cut = re.sub(r"(?s)\[\[verification\.prompts\]\].*?(?=\[)", "", text)
    path.write_text(cut.replace("[verification]", "[verification]\nprompts = []"), "utf-8")
    with pytest.raises(UsageError, match="no prompt"):
        load_recipe(path)


def test_a_key_twice_is_no_toml(tmp_path: Path) -> None:
    assert refused(tmp_path, "chunks = 1", "chunks = 1\nchunks = 2").kind == "bad-toml"


# --- locating -------------------------------------------------------------------------------


def test_locate_by_name(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    assert locate_recipe("tiny", root=tmp_path) == path


def test_locate_by_file(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    assert locate_recipe(str(path), root=tmp_path / "elsewhere") == path


def test_locate_suggests_the_nearest(tmp_path: Path) -> None:
    write_recipe(tmp_path)
    with pytest.raises(UsageError) as caught:
        locate_recipe("tinny", root=tmp_path)
    assert caught.value.hint == "did you mean 'tiny'?"
    assert caught.value.kind == "unknown-recipe"


def test_locate_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recipe 'x'") as caught:
        locate_recipe("x", root=tmp_path)
    assert "none" in caught.value.why
    assert "--recipe" in caught.value.hint


# --- the shipped recipe ---------------------------------------------------------------------


def test_shipped_source_is_pinned_everywhere(shipped: Recipe) -> None:
    index, archive, git = shipped.source.origins
    assert isinstance(index, IndexOrigin)
    assert isinstance(archive, ArchiveOrigin)
    assert isinstance(git, GitOrigin)
    assert git.commit == shipped.source.commit
    assert git.commit in archive.url
    assert len(git.commit) == 40
    assert index.size == 76_589_250


def test_shipped_options_say_why(shipped: Recipe) -> None:
    rules = [o for r in shipped.backends for o in r.options]
    for option in (*shipped.options, *shipped.test_options, *rules):
        assert option.reason, option.name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BUILD_SHARED_LIBS", "ON"),
        ("GGML_BACKEND_DL", "ON"),
        ("GGML_CPU_ALL_VARIANTS", "ON"),
        ("GGML_NATIVE", "OFF"),
        ("GGML_CCACHE", "OFF"),
        ("GGML_OPENMP", "OFF"),
        ("LLAMA_OPENSSL", "OFF"),
        ("LLAMA_USE_PREBUILT_UI", "OFF"),
        ("LLAMA_BUILD_UI", "OFF"),
        ("LLAMA_LLGUIDANCE", "OFF"),
        ("GGML_CPU_KLEIDIAI", "OFF"),
        ("GGML_OPENMP_FETCH", "OFF"),
        ("FETCHCONTENT_FULLY_DISCONNECTED", "ON"),
        ("CMAKE_BUILD_RPATH_USE_ORIGIN", "ON"),
    ],
)
def test_shipped_options_are_explicit(shipped: Recipe, name: str, value: str) -> None:
    assert {o.name: o.value for o in shipped.options}[name] == value


def test_only_entries_the_project_may_not_read_are_guards(shipped: Recipe) -> None:
    guards = {o.name for o in shipped.options if o.guard}
    assert guards == {"FETCHCONTENT_FULLY_DISCONNECTED", "CMAKE_FIND_USE_PACKAGE_REGISTRY"}


def test_test_options_replace_options_of_the_host(shipped: Recipe) -> None:
    assert {o.name for o in shipped.test_options} <= {o.name for o in shipped.options}


def test_shipped_capabilities(shipped: Recipe) -> None:
    rule = shipped.rule(Backend.VULKAN)
    assert rule is not None
    assert [c.name for c in rule.capabilities] == [
        "cooperative_matrix",
        "cooperative_matrix2",
        "cooperative_matrix_decode_vector",
        "integer_dot_product",
        "bfloat16",
        "float_e2m1",
        "float_e4m3",
    ]
    for capability in rule.capabilities:
        assert capability.extension.startswith("GL_")
        assert capability.define.startswith("GGML_VULKAN_")
        assert capability.define.endswith("_GLSLC_SUPPORT")
        assert capability.cost


def test_shipped_vulkan_rule(shipped: Recipe) -> None:
    rule = shipped.rule(Backend.VULKAN)
    assert rule is not None
    assert rule.modules == ("ggml-vulkan",)
    assert rule.device_prefix == "Vulkan"
    assert rule.min_headers_patched == 239
    assert "libvulkan.so.1" in rule.allowed_imports
    assert "libvulkan.so.1" not in shipped.allowed_imports


def test_shipped_imports_hold_no_openmp_and_no_driver(shipped: Recipe) -> None:
    names = " ".join(shipped.allowed_imports)
    for foreign in ("gomp", "libomp", "cuda", "vulkan", "ssl"):
        assert foreign not in names


def test_shipped_verification(shipped: Recipe) -> None:
    check = shipped.verification
    assert check.prompts[0].expect == "Paris"
    assert any(not p.expect for p in check.prompts)
    assert len(check.text.split()) > 200
    assert check.model.size == 98_362_432
    assert check.model.layers == 30
    assert check.max_mean_kld.reason
    assert check.min_top1.reason


def test_shipped_names_no_registry() -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    hosts = set(re.findall(r"https?://([^/\s\"]+)", text))
    assert hosts == {"github.com"}


def test_shipped_cuda_is_explicit_and_never_takes_what_the_machine_has(shipped: Recipe) -> None:
    rule = shipped.rule(Backend.CUDA)
    assert rule is not None
    values = {o.name: o.value for o in rule.options}
    assert values["GGML_CUDA"] == "ON"
    assert {values[n] for n in ("GGML_CUDA_NCCL", "GGML_CUDA_CUB_3DOT2")} == {"OFF"}
    assert values["CMAKE_CUDA_RUNTIME_LIBRARY"] == "Shared"
    assert all(o.reason for o in rule.options)
    assert rule.cuda is not None
    codes = [parse_code(w) for w in rule.cuda.release]
    assert all(codes)
    assert sum(c.ptx for c in codes if c) == 1
    assert "libcuda.so.1" in rule.allowed_imports


def test_only_cuda_has_cuda_code(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    text = recipe.read_text() + '\n[backends.cpu.cuda]\nrelease = ["61"]\n'
    recipe.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_recipe(recipe)
    assert "has no CUDA code" in caught.value.what


def test_release_code_must_be_code(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    section = '\n[backends.cuda]\ntargets = ["c"]\nmodules = ["c"]\n'
    recipe.write_text(recipe.read_text() + section + '[backends.cuda.cuda]\nrelease = ["sm61"]\n')
    with pytest.raises(UsageError) as caught:
        load_recipe(recipe)
    assert "'sm61' is no CUDA device code" in caught.value.what
