from __future__ import annotations

from pathlib import Path

import package_kit
from llamawright.build.arguments import configure_arguments, environment, prefix_map
from llamawright.build.cache import _ccache as read_ccache
from llamawright.build.cache import _sccache as read_sccache
from llamawright.build.cache import cache_environment, since
from llamawright.model.built import CacheStats
from llamawright.model.inventory import Found, Role
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
    flags = prefix_map(SOURCE, BUILD)
    assert flags == '"-ffile-prefix-map=/s p/src=." "-ffile-prefix-map=/w/build=."'
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


def cache(name: str) -> Found:
    return Found(
        role=Role.CACHE, name=name, path=Path("/c"), version="4", where="PATH", sha256="0" * 64
    )


def test_ccache_hits_from_any_folder_below_the_store() -> None:
    env = cache_environment(cache("ccache"), Path("/store"))
    assert env["CCACHE_DIR"] == "/store/compiler-cache/ccache"
    assert env["CCACHE_BASEDIR"] == "/store"
    assert env["CCACHE_NOHASHDIR"] == "1"
    assert env["CCACHE_COMPILERCHECK"] == "content"


def test_no_cache_needs_no_settings() -> None:
    assert cache_environment(None, Path("/store")) == {}


def test_sccache_keeps_its_objects_in_the_store_too() -> None:
    env = cache_environment(cache("sccache"), Path("/store"))
    assert env["SCCACHE_DIR"] == "/store/compiler-cache/sccache"


def test_hits_are_read_from_the_caches_own_counters() -> None:
    text = "direct_cache_hit\t7\npreprocessed_cache_hit\t2\ncache_miss\t3\nmax\tx\n"
    assert read_ccache(text) == CacheStats(name="ccache", hits=9, misses=3)
    json = '{"stats": {"cache_hits": {"counts": {"C/C++": 5}}, "cache_misses": {"counts": {}}}}'
    assert read_sccache(json) == CacheStats(name="sccache", hits=5, misses=0)
    assert read_sccache("no json") == CacheStats(name="sccache", hits=0, misses=0)


def test_one_compile_is_the_difference_of_two_counts() -> None:
    before = CacheStats(name="ccache", hits=10, misses=4)
    after = CacheStats(name="ccache", hits=391, misses=4)
    assert since(before, after) == CacheStats(name="ccache", hits=381, misses=0)
    assert since(after, before) == CacheStats(name="ccache", hits=0, misses=0)
