"""Which files an artifact must hold on each system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamawright.model.built import Effective
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import BackendRule, Option
from llamawright.package.expected import (
    expected_files,
    extra_programs,
    is_native,
    library_patterns,
    matches,
)
from package_kit import LINUX, MACOS, WINDOWS, plan, recipe

SAID = (Effective(name="GGML_AVAILABLE_BACKENDS", value="ggml-cpu-x64;ggml-cpu-zen4;ggml-rpc"),)


def options(**values: str) -> tuple[Option, ...]:
    return tuple(Option(name=n, value=v) for n, v in values.items())


class TestNames:
    def test_linux(self) -> None:
        seen = expected_files(plan(LINUX), SAID, tests=False)
        assert seen.programs == ("tiny-cli",)
        assert seen.needed == (
            "tiny-cli", "libggml-cpu-x64.so", "libggml-cpu-zen4.so", "libggml-vulkan.so",
        )  # fmt: skip
        assert seen.device == ("libggml-vulkan.so",)

    def test_windows(self) -> None:
        seen = expected_files(plan(WINDOWS), SAID, tests=False)
        assert seen.needed == (
            "tiny-cli.exe", "ggml-cpu-x64.dll", "ggml-cpu-zen4.dll", "ggml-vulkan.dll",
        )  # fmt: skip
        assert ("tiny.dll", "libtiny.dll") in seen.one_of

    def test_macos_modules_end_in_so(self) -> None:
        said = (Effective(name="GGML_AVAILABLE_BACKENDS", value="ggml-cpu-apple_m1"),)
        seen = expected_files(plan(MACOS), said, tests=False)
        assert "libggml-cpu-apple_m1.so" in seen.needed
        assert matches("libtiny.0.9.dylib", seen.allowed)
        assert not matches("libtiny.so.0", seen.allowed)

    def test_tests_bring_their_programs(self) -> None:
        assert "tiny-test" not in expected_files(plan(), SAID, tests=False).allowed
        assert "tiny-test" in expected_files(plan(), SAID, tests=True).needed
        assert extra_programs(plan(WINDOWS)) == ("tiny-test.exe",)

    def test_a_cpu_artifact_has_no_device_module(self) -> None:
        seen = expected_files(plan(backend=Backend.CPU), SAID, tests=False)
        assert seen.device == ()
        assert not matches("libggml-vulkan.so", seen.allowed)

    def test_other_backends_of_the_recipe_are_not_allowed(self) -> None:
        assert not matches("libggml-cuda.so", expected_files(plan(), SAID, tests=False).allowed)

    def test_a_module_pattern_needs_one_match(self) -> None:
        rules = (BackendRule(backend=Backend.VULKAN, modules=("ggml-vulkan-*",)),)
        changed = plan(recipe=recipe(backends=rules))
        seen = expected_files(changed, SAID, tests=False)
        assert ("libggml-vulkan-*.so",) in seen.one_of
        assert not any("*" in n for n in seen.needed)

    def test_a_backend_without_a_rule(self) -> None:
        changed = plan(backend=Backend.METAL)
        assert expected_files(changed, SAID, tests=False).device == ()


class TestCpuVariants:
    def test_without_cmakes_word_the_baseline_is_needed(self) -> None:
        seen = expected_files(plan(), (), tests=False)
        assert ("libggml-cpu-x64.so",) in seen.one_of
        assert not any("cpu" in n for n in seen.needed)

    @pytest.mark.parametrize(
        ("platform", "names"),
        [
            (MACOS, {"libggml-cpu-apple_m1.so", "libggml-cpu-armv8.0_1.so"}),
            (
                Platform(System.LINUX, "aarch64"),
                {"libggml-cpu-armv8.0_1.so", "libggml-cpu-android_armv8.0_1.so",
                 "libggml-cpu-apple_m1.so"},
            ),
            (Platform(System.LINUX, "riscv64"), {"libggml-cpu-*.so"}),
        ],
    )  # fmt: skip
    def test_baselines_of_other_machines(self, platform: Platform, names: set[str]) -> None:
        seen = expected_files(plan(platform), (), tests=False)
        assert names in [set(group) for group in seen.one_of]

    def test_one_cpu_module_when_the_variants_are_off(self) -> None:
        changed = plan(host_options=options(GGML_CPU_ALL_VARIANTS="OFF", GGML_NATIVE="ON"))
        seen = expected_files(changed, SAID, tests=False)
        assert "libggml-cpu.so" in seen.needed
        assert len(seen.one_of) == len(recipe().libraries)

    def test_later_options_win(self) -> None:
        pair = (*options(GGML_NATIVE="OFF"), *options(GGML_NATIVE="on"))
        assert is_native(plan(host_options=pair))
        assert not is_native(plan(host_options=tuple(reversed(pair))))
        assert not is_native(replace(plan(), host_options=()))


class TestLibraryPatterns:
    @pytest.mark.parametrize(
        ("platform", "name", "good"),
        [
            (LINUX, "libggml.so", True),
            (LINUX, "libggml.so.0", True),
            (LINUX, "libggml.so.0.9.4", True),
            (LINUX, "libggml.so.bak", False),
            (LINUX, "libggml-base.so", False),
            (LINUX, "ggml.dll", False),
            (WINDOWS, "ggml.dll", True),
            (WINDOWS, "libggml.dll", True),
            (WINDOWS, "ggml.lib", False),
            (MACOS, "libggml.dylib", True),
            (MACOS, "libggml.0.9.4.dylib", True),
            (MACOS, "libggml.so", False),
        ],
    )
    def test_names(self, platform: Platform, name: str, good: bool) -> None:
        assert matches(name, library_patterns(platform, "ggml")) is good
