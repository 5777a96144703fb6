from __future__ import annotations

from pathlib import Path

import package_kit
from llamawright.build.arguments import configure_arguments, environment, prefix_map
from llamawright.model.platform import Platform
from llamawright.model.recipe import Option

SOURCE, BUILD = Path("/s p/src"), Path("/w/build")


def arguments(platform: Platform = package_kit.LINUX) -> tuple[str, ...]:
    options = (Option(name="CMAKE_CUDA_ARCHITECTURES", value="61;89", type="STRING"),)
    return configure_arguments(
        Path("/t/cmake"), SOURCE, BUILD, options, tuning=Path("/t/host.cmake"), platform=platform
    )


def test_every_option_is_one_argument_and_nothing_is_quoted() -> None:
    argv = arguments()
    assert argv[:7] == ("/t/cmake", "-S", "/s p/src", "-B", "/w/build", "-G", "Ninja")
    assert "-DCMAKE_CUDA_ARCHITECTURES:STRING=61;89" in argv


def test_a_binary_looks_for_its_libraries_beside_itself() -> None:
    assert "-DCMAKE_INSTALL_RPATH:STRING=$ORIGIN" in arguments()
    assert "-DCMAKE_INSTALL_RPATH:STRING=@loader_path" in arguments(package_kit.MACOS)
    assert "-DCMAKE_BUILD_WITH_INSTALL_RPATH:BOOL=ON" in arguments()


def test_both_folders_are_mapped_away_for_c_and_cpp() -> None:
    flags = " ".join(prefix_map(SOURCE, BUILD))
    assert flags.split('" "') == [
        '"-ffile-prefix-map=/s p/src=.',
        "-ffile-prefix-map=/w/build=.",
        "-ffile-prefix-map=../../s p/src=.",
        '-ffile-prefix-map=/s p/src/vendor/nlohmann/..=./vendor"',
    ]
    assert f"-DCMAKE_C_FLAGS:STRING={flags}" in arguments()
    assert f"-DCMAKE_CXX_FLAGS:STRING={flags}" in arguments()


def test_msvc_has_no_such_flag() -> None:
    assert not [a for a in arguments(package_kit.WINDOWS) if "prefix-map" in a]


def test_the_chosen_programs_lead_path_and_git_finds_no_repository() -> None:
    plan = package_kit.plan()
    programs = (Path("/env/bin/ninja"), Path("/env/bin/cmake"), Path("/usr/bin/g++"))
    env = environment(plan, programs, Path("/store"))
    assert env["PATH"] == "/env/bin:/usr/bin:/bin"
    assert env["GIT_CEILING_DIRECTORIES"] == "/store"
    assert env["SOURCE_DATE_EPOCH"] == str(package_kit.DATE)


def test_a_build_that_tries_to_download_finds_nobody() -> None:
    env = environment(package_kit.plan(), (Path("/env/bin/ninja"),), Path("/store"))
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy"):
        assert env[name] == "http://127.0.0.1:9"
    assert env["no_proxy"] == ""


def test_what_the_plan_says_about_the_environment_counts() -> None:
    plan = package_kit.plan(environment=(("CC", "/usr/bin/gcc"), ("no_proxy", "x")))
    env = environment(plan, (), Path("/store"))
    assert (env["CC"], env["no_proxy"]) == ("/usr/bin/gcc", "x")


def test_windows_keeps_its_own_path() -> None:
    plan = package_kit.plan(package_kit.WINDOWS)
    assert "PATH" not in environment(plan, (Path("/env/bin/ninja"),), Path("/store"))


def test_no_argument_joins_two_options() -> None:
    assert all(a.count("=") >= 1 and a.startswith("-D") for a in arguments()[7:])
    assert len(set(arguments()[7:])) == len(arguments()[7:])
