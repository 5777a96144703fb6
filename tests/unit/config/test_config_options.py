"""CMake options: names that CMake would ignore are refused with today's name (case V12)."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_fakes import line_of, tiny_recipe, write_recipe

from llamawright.config import load_recipe
from llamawright.config.option_names import DROPPED, RENAMED
from llamawright.errors import ExitCode, UsageError
from llamawright.model.recipe import Option

NATIVE = 'GGML_NATIVE = { value = false, reason = "portable" }'


def option(tmp_path: Path, line: str) -> Option:
    return tiny_recipe(tmp_path, NATIVE, line).options[0]


def refused(tmp_path: Path, line: str) -> UsageError:
    path = write_recipe(tmp_path, NATIVE, line)
    with pytest.raises(UsageError) as caught:
        load_recipe(path)
    return caught.value


@pytest.mark.parametrize(
    ("line", "argument"),
    [
        ("GGML_X = { value = true }", "-DGGML_X:BOOL=ON"),
        ("GGML_X = { value = false }", "-DGGML_X:BOOL=OFF"),
        ('GGML_X = { value = "ON" }', "-DGGML_X:BOOL=ON"),
        ("GGML_X = true", "-DGGML_X:BOOL=ON"),
        ("GGML_X = 4", "-DGGML_X:STRING=4"),
        ('GGML_X = "Release"', "-DGGML_X:STRING=Release"),
        ('GGML_X = { value = "", type = "FILEPATH" }', "-DGGML_X:FILEPATH="),
        ('GGML_X = { value = "a;b" }', "-DGGML_X:STRING=a;b"),
        ('GGML_X = { value = "C:/VulkanSDK", type = "PATH" }', "-DGGML_X:PATH=C:/VulkanSDK"),
        (r"GGML_X = 'C:\VulkanSDK\1.4'", r"-DGGML_X:STRING=C:\VulkanSDK\1.4"),
    ],
)
def test_argument(tmp_path: Path, line: str, argument: str) -> None:
    assert option(tmp_path, line).argument == argument


def test_reason_and_guard_are_kept(tmp_path: Path) -> None:
    read = option(tmp_path, 'GGML_X = { value = true, reason = "why", guard = true }')
    assert (read.reason, read.guard) == ("why", True)


def test_order_is_that_of_the_file(tmp_path: Path) -> None:
    names = [o.name for o in tiny_recipe(tmp_path).options]
    assert names == ["GGML_NATIVE", "CMAKE_BUILD_TYPE"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LLAMA_VULKAN", "GGML_VULKAN"),
        ("LLAMA_CUDA", "GGML_CUDA"),
        ("LLAMA_CUBLAS", "GGML_CUDA"),
        ("LLAMA_METAL", "GGML_METAL"),
        ("LLAMA_HIPBLAS", "GGML_HIP"),
        ("LLAMA_OPENBLAS", "GGML_BLAS"),
        ("LLAMA_NATIVE", "GGML_NATIVE"),
        ("LLAMA_BUILD_WEBUI", "LLAMA_BUILD_UI"),
        ("VULKAN_INCLUDE_DIRS", "Vulkan_INCLUDE_DIR"),
        ("GGML_SHADERS_GEN_TOOLCHAIN", "GGML_VULKAN_SHADERS_GEN_TOOLCHAIN"),
    ],
)
def test_renamed_option_names_the_right_one(tmp_path: Path, old: str, new: str) -> None:
    error = refused(tmp_path, f'{old} = {{ value = true, reason = "x" }}')
    assert error.code is ExitCode.USAGE
    assert int(error.code) == 2
    assert error.kind == "renamed-option"
    assert old in error.what
    assert new in error.hint
    assert "CMake ignores" in error.why


def test_the_line_of_a_renamed_option_is_named(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, NATIVE, "LLAMA_VULKAN = true")
    with pytest.raises(UsageError) as caught:
        load_recipe(path)
    assert caught.value.what.startswith(f"{path}:{line_of(path, 'LLAMA_VULKAN')}: ")


@pytest.mark.parametrize("value", ["true", '"ON"', '"1"', '{ value = "ON" }', "false"])
def test_renamed_option_is_refused_whatever_its_value(tmp_path: Path, value: str) -> None:
    assert refused(tmp_path, f"LLAMA_VULKAN = {value}").kind == "renamed-option"


def test_renamed_option_in_a_backend_is_refused(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, "GGML_VULKAN = {", "LLAMA_VULKAN = {")
    with pytest.raises(UsageError, match="LLAMA_VULKAN"):
        load_recipe(path)


def test_renamed_option_among_the_test_options_is_refused(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, "[contents]", "[test_options]\nLLAMA_CUDA = true\n\n[contents]")
    with pytest.raises(UsageError, match="LLAMA_CUDA"):
        load_recipe(path)


def test_dropped_option(tmp_path: Path) -> None:
    error = refused(tmp_path, "LLAMA_CURL = false")
    assert "dropped" in error.what
    assert "leave it out" in error.hint


def test_no_new_name_is_itself_renamed_or_dropped() -> None:
    assert not set(RENAMED.values()) & (set(RENAMED) | set(DROPPED))


def test_names_of_this_llama_cpp_are_not_refused(tmp_path: Path) -> None:
    # Names that upstream's CMakeLists.txt still declares with the LLAMA_ prefix.
    for name in ("LLAMA_OPENSSL", "LLAMA_BUILD_SERVER", "LLAMA_LLGUIDANCE", "LLAMA_SUBPROCESS"):
        assert option(tmp_path, f"{name} = false").name == name


@pytest.mark.parametrize(
    "name", ['"A B"', '"A=B"', '"-DX"', '"A;B"', '"9LIVES"', '"GGML_X:BOOL"', '""', '"A\\nB"']
)
def test_names_that_are_no_option(tmp_path: Path, name: str) -> None:
    error = refused(tmp_path, f"{name} = true")
    assert error.kind == "bad-value"
    assert "is no name of a CMake option" in error.what


@pytest.mark.parametrize(
    "value",
    ["1.5", "[]", "{ value = [1] }", '"two\\nlines"', '{ value = "a\\u0000b" }', "2020-01-01"],
)
def test_values_that_are_no_option(tmp_path: Path, value: str) -> None:
    assert refused(tmp_path, f"GGML_X = {value}").kind == "bad-value"


def test_table_without_value(tmp_path: Path) -> None:
    assert refused(tmp_path, 'GGML_X = { reason = "x" }').kind == "missing-key"


def test_unknown_key_of_an_option(tmp_path: Path) -> None:
    error = refused(tmp_path, 'GGML_X = { value = true, reson = "x" }')
    assert error.hint == "did you mean 'reason'?"


def test_unknown_cache_type(tmp_path: Path) -> None:
    error = refused(tmp_path, 'GGML_X = { value = true, type = "BOOLEAN" }')
    assert "BOOL, STRING, PATH, FILEPATH" in error.why
