"""Compiler caches: settings, own counters, and the way round a broken one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamawright.build.cache import (
    LAUNCHERS,
    Cache,
    cache_for,
    read_sccache,
    read_statslog,
    without_launchers,
)
from llamawright.model.built import CacheStats
from llamawright.model.inventory import Found, Role
from llamawright.model.recipe import Option


def tool(name: str, path: Path = Path("/c")) -> Found:
    return Found(role=Role.CACHE, name=name, path=path, version="4", where="PATH", sha256="0" * 64)


def cache(name: str, work: Path = Path("/store/work/k")) -> Cache:
    found = cache_for(tool(name), Path("/store"), work)
    assert found is not None
    return found


def test_ccache_hits_from_any_build_folder_of_the_store() -> None:
    env = cache("ccache").environment()
    assert env["CCACHE_DIR"] == "/store/compiler-cache/ccache"
    assert env["CCACHE_BASEDIR"] == "/store"
    assert env["CCACHE_NOHASHDIR"] == "1"
    assert env["CCACHE_COMPILERCHECK"] == "content"


def test_a_users_own_ccache_settings_do_not_leak_in() -> None:
    assert cache("ccache").environment()["CCACHE_CONFIGPATH"].startswith("/store/")
    assert cache("sccache").environment()["SCCACHE_CONF"].startswith("/store/")


def test_sccache_keeps_its_objects_in_the_store_too() -> None:
    assert cache("sccache").environment()["SCCACHE_DIR"] == "/store/compiler-cache/sccache"


def test_no_cache_is_no_cache() -> None:
    assert cache_for(None, Path("/store"), Path("/w")) is None


STATSLOG = """# /s/a.cpp
cache_miss
direct_cache_miss
preprocessed_cache_miss
local_storage_write
# /s/b.cpp
direct_cache_hit
local_storage_hit
# /s/cache_miss
preprocessed_cache_hit
called_for_link
"""


def test_counters_are_those_of_this_compile_only() -> None:
    assert read_statslog(STATSLOG) == CacheStats(name="ccache", hits=2, misses=1)
    assert read_statslog("") == CacheStats(name="ccache", hits=0, misses=0)


def test_an_earlier_count_is_forgotten_at_the_start(tmp_path: Path) -> None:
    own = cache("ccache", tmp_path)
    own.counts.write_text(STATSLOG)
    before = own.start()
    assert (before.hits, before.misses) == (0, 0)
    own.counts.write_text("# a\ndirect_cache_hit\n")
    assert own.since(before) == CacheStats(name="ccache", hits=1, misses=0)


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"stats": {}}', "3"])
def test_strange_answers_of_sccache_count_nothing(text: str) -> None:
    assert read_sccache(text) == CacheStats(name="sccache", hits=0, misses=0)


def test_sccache_counts_every_language() -> None:
    hits = {"counts": {"C/C++": 5, "CUDA": 2}}
    stats = {"cache_hits": hits, "cache_misses": {"counts": {"C/C++": 1}}}
    assert read_sccache(json.dumps({"stats": stats})) == CacheStats(
        name="sccache", hits=7, misses=1
    )


def test_sccaches_totals_are_told_as_differences(tmp_path: Path) -> None:
    program = tmp_path / "sccache"
    answer = '{"stats": {"cache_hits": {"counts": {"C/C++": 9}}, "cache_misses": {"counts": {}}}}'
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    own = Cache(
        tool=tool("sccache", program), folder=tmp_path, base=tmp_path, counts=tmp_path / "none"
    )
    before = own.start()
    assert before.hits == 9
    assert own.since(before) == CacheStats(name="sccache", hits=0, misses=0)


def test_a_broken_cache_is_taken_out_of_both_languages() -> None:
    given = (
        Option(name="CMAKE_C_COMPILER_LAUNCHER", value="/c", type="FILEPATH"),
        Option(name="CMAKE_CXX_COMPILER_LAUNCHER", value="/c", type="FILEPATH"),
        Option(name="GGML_CCACHE", value="OFF"),
    )
    after = {o.name: o.value for o in without_launchers(given)}
    assert after["GGML_CCACHE"] == "OFF"
    # Said as empty: what CMake's cache holds from before would count otherwise.
    assert [after[name] for name in LAUNCHERS if "CUDA" not in name] == ["", ""]
    assert len(without_launchers(given)) == 3
