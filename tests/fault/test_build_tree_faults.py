"""Build folders that were left by killed runs, and caches that fail: with a real compiler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from build_tiny import SOURCES, find, plan, tiny_source
from llamawright.build import build_host, build_module
from llamawright.digest import tree_digest
from llamawright.errors import BuildError, DiskError
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.recipe import Option
from llamawright.store import Store
from reporter_kit import Told


@pytest.fixture
def source(tmp_path: Path) -> PatchedTree:
    return tiny_source(tmp_path / "src")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def broken(source: PatchedTree) -> None:
    (source.root / "main.cpp").write_text("int main() { return nothing; }\n")


def cured(source: PatchedTree) -> None:
    (source.root / "main.cpp").write_text(SOURCES["main.cpp"])


def build_fails(store: Store, source: PatchedTree, wanted: Plan | None = None) -> BuildError:
    with pytest.raises(BuildError) as caught:
        build_host(wanted or plan(), source, store=store, reporter=Told())
    return caught.value


def work(store: Store) -> Path:
    return store.work(plan().host_key)


def objects(store: Store) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in work(store).rglob("*.o")}


def test_what_was_compiled_is_not_compiled_again(store: Store, source: PatchedTree) -> None:
    broken(source)
    build_fails(store, source)
    before = objects(store)
    assert "base.cpp.o" in before
    build_fails(store, source)
    after = objects(store)
    assert {n: after[n] for n in before} == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("build/CMakeCache.txt", "this is no cache\x00\n"),
        ("build/CMakeCache.txt", "CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n"),
        ("build/build.ninja", "rule\n  torn"),
        ("build/.ninja_deps", "torn"),
    ],
)
def test_a_folder_that_a_killed_run_left_torn_is_made_anew(
    store: Store, source: PatchedTree, name: str, content: str
) -> None:
    broken(source)
    build_fails(store, source)
    (work(store) / name).write_text(content)
    cured(source)
    host = build_host(plan(), source, store=store, reporter=Told())
    assert "bin/tiny-cli" in host.files


def test_a_finished_build_leaves_no_build_folder_and_keeps_its_logs(
    store: Store, source: PatchedTree
) -> None:
    build_host(plan(), source, store=store, reporter=Told())
    assert not (work(store) / "build").exists()
    assert (work(store) / "configure.log").is_file()
    assert (work(store) / "compile.log").is_file()


CHILD = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from build_tiny import plan, tiny_tree
from llamawright.build import build_host
from llamawright.store import Store
from reporter_kit import Told
build_host(plan(), tiny_tree(Path({source!r})), store=Store(Path({store!r})), reporter=Told())
"""


@pytest.mark.parametrize("seen", ["configure.log", "build/bin"])
def test_a_run_killed_at_any_point_is_gone_on_with_to_the_same_bytes(
    tmp_path: Path, source: PatchedTree, seen: str
) -> None:
    whole = build_host(plan(), source, store=Store(tmp_path / "one"), reporter=Told())
    store = Store(tmp_path / "two")
    code = CHILD.format(path=sys.path, source=str(source.root), store=str(store.root))
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], start_new_session=True)
    deadline = time.monotonic() + 20
    while not (work(store) / seen).exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    again = build_host(plan(), source, store=store, reporter=Told())
    assert tree_digest(again.root / "bin") == tree_digest(whole.root / "bin")


def cache(tmp_path: Path, name: str, script: str) -> Found:
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Found(
        role=Role.CACHE, name=name, path=program, version="4", where="PATH", sha256="0" * 64
    )


def cached(tool: Found) -> Plan:
    base = plan()
    launchers = tuple(
        Option(name=f"CMAKE_{x}_COMPILER_LAUNCHER", value=str(tool.path), type="FILEPATH")
        for x in ("C", "CXX")
    )
    options = (*base.host_options, *launchers)
    return replace(base, tools=(*base.tools, tool), host_options=options)


def test_a_cache_that_fails_while_compiling_is_left_out(
    tmp_path: Path, store: Store, source: PatchedTree
) -> None:
    # It works when CMake tries the compiler, and fails from the first object on (case C19).
    script = 'case "$*" in *base.cpp*) echo "sccache: error: server gone" >&2; exit 1;; esac\n'
    told = Told()
    wanted = cached(cache(tmp_path, "sccache", f'{script}exec "$@"'))
    host = build_host(wanted, source, store=store, reporter=told)
    assert "bin/tiny-cli" in host.files
    assert any("sccache fails" in line for line in told.warnings)


def test_objects_of_ccache_are_the_compilers_own_and_all_hit_when_built_again(
    tmp_path: Path, source: PatchedTree
) -> None:
    ccache = find(Role.CACHE, "ccache", "ccache")
    plain = build_host(plan(), source, store=Store(tmp_path / "plain"), reporter=Told())
    one = Store(tmp_path / "one")
    inside = tiny_source(one.root / "patched" / "p")
    first = build_host(cached(ccache), inside, store=one, reporter=Told())
    assert (first.cache.hits, first.cache.misses) == (0, 4)
    assert tree_digest(first.root / "bin") == tree_digest(plain.root / "bin")
    one.forget("builds", plan().host_key)
    second = build_host(cached(ccache), inside, store=one, reporter=Told())
    assert (second.cache.hits, second.cache.misses) == (4, 0)
    assert tree_digest(second.root / "bin") == tree_digest(plain.root / "bin")


def test_the_module_hits_what_the_host_compiled(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    inside = tiny_source(store.root / "patched" / "p")
    wanted = cached(find(Role.CACHE, "ccache", "ccache"))
    host = build_host(wanted, inside, store=store, reporter=Told())
    module = build_module(wanted, inside, host, store=store, reporter=Told())
    # ggml-base is the host's own object again; only the module itself was compiled.
    assert (module.cache.hits, module.cache.misses) == (1, 1)


def test_a_module_option_that_changes_the_shared_library_is_refused(
    store: Store, source: PatchedTree
) -> None:
    base = plan()
    leak = Option(name="TINY_WIDE_NAMES", value="ON")
    wide = replace(base, module_options=(*base.module_options, leak))
    host = build_host(wide, source, store=store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(wide, source, host, store=store, reporter=Told())
    assert caught.value.kind == "abi-differs"


def test_a_compiler_that_is_swapped_under_the_plan_is_seen(
    tmp_path: Path, store: Store, source: PatchedTree
) -> None:
    base = plan()
    other = tmp_path / "g++"
    real = base.tool(Role.CXX)
    assert real is not None
    other.symlink_to(real.path)
    options = tuple(
        replace(o, value=str(other)) if o.name == "CMAKE_CXX_COMPILER" else o
        for o in base.host_options
    )
    error = build_fails(store, source, replace(base, host_options=options))
    assert error.kind == "configure-gate"
    assert f"CXX is compiled by {other}" in error.why


def test_a_project_that_downloads_while_it_is_configured_is_refused(
    store: Store, source: PatchedTree
) -> None:
    lists = source.root / "CMakeLists.txt"
    lists.write_text(f"{lists.read_text()}\ninclude(FetchContent)\n")
    assert "FetchContent.cmake" in build_fails(store, source).why


def test_a_download_in_the_build_finds_nobody(store: Store, source: PatchedTree) -> None:
    lists = source.root / "CMakeLists.txt"
    url = "http://example.invalid/ui.tar.gz"
    lists.write_text(
        f"{lists.read_text()}\nfile(DOWNLOAD {url} ${{CMAKE_BINARY_DIR}}/x STATUS s TIMEOUT 5)\n"
        'list(GET s 0 code)\nif(code)\n  message(FATAL_ERROR "no network: ${s}")\nendif()\n'
    )
    error = build_fails(store, source)
    assert any("no network" in line for line in error.tail)


def test_a_store_on_a_full_volume_is_told_before_anything_is_compiled(
    store: Store, source: PatchedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = os.statvfs("/")
    usage = type("Usage", (), {"total": status.f_blocks, "used": 0, "free": 1 << 20})
    monkeypatch.setattr("shutil.disk_usage", lambda _place: usage)
    with pytest.raises(DiskError) as caught:
        build_host(plan(), source, store=store, reporter=Told())
    assert caught.value.kind == "disk-full"
    assert not (work(store) / "compile.log").exists()
