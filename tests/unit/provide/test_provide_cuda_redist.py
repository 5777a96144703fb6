"""NVIDIA's manifests: what they state is taken only when it means the very file of the set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cuda_fakes import (
    VERSIONS,
    manifest,
    manifest_text,
    redist_archives,
    redist_files,
    redist_set,
)
from provide_fakes import Silent, toolchains

from llamawright.config import load_toolchains
from llamawright.errors import DownloadError
from llamawright.model.toolchain import ProvidedFile, ProvidedSet
from llamawright.provide import cuda_proof, provide_set
from llamawright.provide import cuda_redist as room
from llamawright.provide.cuda_redist import Component, component, is_manifest, pins, stated
from llamawright.store import Store
from transfer_kit import Reply, Site, site

LINUX, WINDOWS = "linux-x86_64", "windows-x86_64"
BASE = "https://developer.download.nvidia.com/compute/cuda/redist"
ADDRESS = f"{BASE}/redistrib_12.9.1.json"
MANIFEST = "/redist/redistrib_12.9.1.json"


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave compiling to the tests of the proof."""
    monkeypatch.setattr(cuda_proof, "host_compiler", lambda _provided: None)


def offered(web: Site, platform: str = LINUX, *, cap: int = 1 << 20) -> tuple[ProvidedFile, ...]:
    """Let the server have a release and return files that rely on its manifest."""
    archives = redist_archives(platform)
    web.routes |= {f"/redist/{path}": Reply(body=data) for path, data in archives.items()}
    web.routes[MANIFEST] = Reply(body=manifest_text(archives).encode())
    return redist_files(archives, web.url("/redist"), cap=cap)


def changed(web: Site, name: str, **entry: object) -> None:
    """Let the server's manifest say something else of one component."""
    made = manifest(redist_archives(LINUX))
    part = made[name]
    assert isinstance(part, dict)
    part[LINUX].update(entry)
    web.routes[MANIFEST] = Reply(body=json.dumps(made).encode())


def provide(provided: ProvidedSet, store: Store, *, offline: bool = False) -> Path:
    return provide_set(
        provided,
        store=store,
        toolchains=toolchains(),
        offline=offline,
        reporter=Silent(),
        env={},
    )


def refused(provided: ProvidedSet, store: Store) -> DownloadError:
    with pytest.raises(DownloadError) as caught:
        provide(provided, store)
    assert not store.is_stamped("tools", provided.digest)
    assert not store.shelf("tools", provided.digest).exists()
    assert caught.value.hint
    return caught.value


# --- from a server --------------------------------------------------------------------------


def test_linux_toolkit_from_a_server(web: Site, store: Store) -> None:
    root = provide(redist_set(offered(web)), store)
    assert (root / "bin/nvcc").is_file()
    assert (root / "lib64/libcublas.so").is_file()


def test_windows_toolkit_from_a_server(web: Site, store: Store) -> None:
    root = provide(redist_set(offered(web, WINDOWS), windows=True), store)
    assert (root / "bin/nvcc.exe").is_file()
    assert (root / "lib/x64/cublas.lib").is_file()


def test_the_manifest_is_asked_for_once(web: Site, store: Store) -> None:
    provide(redist_set(offered(web)), store)
    assert web.paths().count(MANIFEST) == 1
    assert len(web.paths()) == 1 + len(VERSIONS)


def test_a_second_time_nothing_is_asked_for(web: Site, store: Store) -> None:
    provided = redist_set(offered(web))
    root = provide(provided, store)
    web.seen.clear()
    assert provide(provided, store, offline=True) == root
    store.forget("tools", provided.digest)
    assert provide(provided, store, offline=True) == root
    assert web.seen == []


def test_pinned_files_need_no_manifest(web: Site, store: Store) -> None:
    archives = redist_archives(LINUX)
    files = tuple(
        replace(file, sha256=hashlib.sha256(data).hexdigest(), size=len(data), capped=False)
        for file, data in zip(offered(web), archives.values(), strict=True)
    )
    del web.routes[MANIFEST]
    provide(redist_set(files), store)
    assert MANIFEST not in web.paths()


def test_a_download_that_was_cut_goes_on(web: Site, store: Store) -> None:
    files = offered(web)
    place = f"/redist/{files[0].location.partition('/redist/')[2]}"
    whole = web.routes[place]
    assert isinstance(whole, Reply)
    web.routes[place] = (replace(whole, cut=len(whole.body) // 2), whole)
    assert (provide(redist_set(files), store) / "bin/nvcc").is_file()


def test_offline_without_anything(store: Store) -> None:
    files = redist_files(redist_archives(LINUX), BASE)
    with pytest.raises(DownloadError) as caught:
        provide(redist_set(files), store, offline=True)
    assert caught.value.kind == "offline"


def test_offline_names_what_is_missing_of_a_pinned_set(store: Store) -> None:
    files = redist_files(redist_archives(LINUX), BASE)
    pinned = tuple(replace(f, sha256="0" * 64, capped=False) for f in files)
    with pytest.raises(DownloadError) as caught:
        provide(redist_set(pinned), store, offline=True)
    assert len(caught.value.why.splitlines()) == len(files)
    assert "llamawright fetch cuda" in caught.value.hint


# --- manifests that must not be believed ----------------------------------------------------


def test_manifest_that_is_not_there(web: Site, store: Store) -> None:
    files = offered(web)
    del web.routes[MANIFEST]
    assert refused(redist_set(files), store).kind == "absent"


def test_manifest_that_is_a_login_page(web: Site, store: Store) -> None:
    files = offered(web)
    page = b"<!DOCTYPE html><title>Log in</title>"
    web.routes[MANIFEST] = Reply(body=page, headers={"Content-Type": "text/html"})
    assert refused(redist_set(files), store).kind == "html-page"


def test_manifest_that_was_cut_and_not_noticed(web: Site, store: Store) -> None:
    files = offered(web)
    body = manifest_text(redist_archives(LINUX)).encode()
    web.routes[MANIFEST] = Reply(body=body[: len(body) // 2])
    error = refused(redist_set(files), store)
    assert error.kind == "no-published-sha256"
    assert "not whole JSON" in error.why
    assert web.url(MANIFEST) in error.why


def test_manifest_for_other_platforms(web: Site, store: Store) -> None:
    files = offered(web)
    web.routes[MANIFEST] = Reply(body=manifest_text(redist_archives(WINDOWS)).encode())
    error = refused(redist_set(files), store)
    assert "it has cuda_nvcc for windows-x86_64, not for linux-x86_64" in error.why


def test_manifest_that_lies_about_the_content(web: Site, store: Store) -> None:
    files = offered(web)
    changed(web, "libcublas", sha256="0" * 64)
    error = refused(redist_set(files), store)
    assert error.kind == "wrong-sha256"
    assert "libcublas" in error.what


@pytest.mark.parametrize("by", [-1, 1])
def test_manifest_that_lies_about_the_size(web: Site, store: Store, by: int) -> None:
    files = offered(web)
    size = len(redist_archives(LINUX)[files[0].location.partition("/redist/")[2]])
    changed(web, "cuda_nvcc", size=str(size + by))
    assert refused(redist_set(files), store).kind in ("size-mismatch", "network")


def test_archive_that_was_replaced(web: Site, store: Store) -> None:
    files = offered(web)
    place = f"/redist/{files[1].location.partition('/redist/')[2]}"
    honest = web.routes[place]
    assert isinstance(honest, Reply)
    other = bytes([honest.body[0] ^ 1]) + honest.body[1:]
    web.routes[place] = Reply(body=other)
    assert refused(redist_set(files), store).kind == "wrong-sha256"


def test_manifest_of_endless_length(web: Site, store: Store) -> None:
    files = offered(web)
    web.routes[MANIFEST] = Reply(body=b" " * (room.MANIFEST_SIZE + 1))
    assert refused(redist_set(files), store).kind == "too-large"


def test_manifest_of_another_release(web: Site, store: Store) -> None:
    files = tuple(replace(f, version="12.8.93") for f in offered(web))
    error = refused(redist_set(files), store)
    assert "it has cuda_nvcc 12.9.86, not 12.8.93" in error.why


def test_manifest_that_has_the_file_elsewhere(web: Site, store: Store) -> None:
    files = offered(web)
    changed(web, "cuda_nvcc", relative_path="cuda_nvcc/linux-x86_64/other.tar.xz")
    error = refused(redist_set(files), store)
    assert "it has cuda_nvcc at cuda_nvcc/linux-x86_64/other.tar.xz" in error.why


def test_manifest_over_the_sets_cap(web: Site, store: Store) -> None:
    files = offered(web, cap=10)
    error = refused(redist_set(files), store)
    assert "bytes, and 10 are pinned" in error.why
    assert web.paths() == [MANIFEST]


# --- the text alone -------------------------------------------------------------------------


def test_component() -> None:
    archives = redist_archives(LINUX)
    path, data = next(iter(archives.items()))
    assert component(manifest_text(archives), "cuda_nvcc", LINUX) == Component(
        name="cuda_nvcc",
        version="12.9.86",
        platform=LINUX,
        path=path,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


@pytest.mark.parametrize(
    ("name", "platform", "why"),
    [
        ("cuda_crt", LINUX, "no component cuda_crt"),
        ("cuda_nvcc", "linux-sbsa", "for linux-x86_64, windows-x86_64, not for linux-sbsa"),
        ("release_date", LINUX, "no component release_date"),
        ("cuda_nvcc", "version", "not for version"),
        ("cuda_nvcc", "", "not for "),
    ],
)
def test_what_a_manifest_does_not_have(name: str, platform: str, why: str) -> None:
    text = manifest_text(redist_archives(LINUX), redist_archives(WINDOWS))
    with pytest.raises(ValueError, match=why):
        component(text, name, platform)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (ADDRESS, True),
        (f"{BASE}/redistrib_13.0.2.json", True),
        ("https://sdk.lunarg.com/sdk/sha/1.4.357.0/linux/vulkansdk.tar.xz.json", False),
        (f"{BASE}/redistrib_12.9.1.json.html", False),
        (f"{BASE}/xredistrib_12.9.1.json", False),
        ("", False),
    ],
)
def test_which_statement_is_a_manifest(address: str, expected: object) -> None:
    assert is_manifest(address) is expected


def test_a_file_outside_the_manifests_folder() -> None:
    archives = redist_archives(LINUX)
    file = replace(redist_files(archives, BASE)[0], location="https://elsewhere.invalid/x.tar.xz")
    with pytest.raises(DownloadError, match="does not vouch for cuda_nvcc"):
        stated(manifest_text(archives), file)


# --- pins for maintainers -------------------------------------------------------------------


def parsed(text: str) -> list[dict[str, object]]:
    import tomllib

    tables = tomllib.loads(text)["set"]["files"] if "[[set]]" not in text else []
    assert isinstance(tables, list)
    return tables


def test_pins_are_what_the_set_needs() -> None:
    archives = redist_archives(LINUX)
    tables = parsed(pins(manifest_text(archives, redist_archives(WINDOWS)), ADDRESS, LINUX))
    assert [t["package"] for t in tables] == ["cuda_nvcc", "cuda_cudart", "cuda_cccl", "libcublas"]
    for table, (path, data) in zip(tables, archives.items(), strict=True):
        assert table["location"] == f"{BASE}/{path}"
        assert table["size"] == len(data)
        assert table["sha256"] == hashlib.sha256(data).hexdigest()
        assert table["published"] == ADDRESS
        assert table["registry"] == "url"


def test_pins_from_13_on_have_the_parts_that_nvcc_lost() -> None:
    made = manifest(redist_archives(LINUX))
    nvcc = json.loads(json.dumps(made["cuda_nvcc"]).replace("12.9.86", "13.0.88"))
    made["cuda_nvcc"] = nvcc
    for name in ("cuda_crt", "libnvvm"):
        made[name] = json.loads(json.dumps(nvcc).replace("cuda_nvcc", name))
    tables = parsed(pins(json.dumps(made), ADDRESS, LINUX))
    assert [t["package"] for t in tables][-2:] == ["cuda_crt", "libnvvm"]


def test_pins_of_a_release_that_lacks_a_part() -> None:
    made = manifest(redist_archives(LINUX))
    del made["libcublas"]
    with pytest.raises(ValueError, match="no component libcublas"):
        pins(json.dumps(made), ADDRESS, LINUX)


def test_pins_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(manifest_text(redist_archives(LINUX)))
    assert room.main([ADDRESS, str(path), LINUX]) == 0
    assert len(parsed(capsys.readouterr().out)) == 4


# --- the shipped sets -----------------------------------------------------------------------


def test_shipped_sets_agree_with_their_manifest_form(toolchain_folder: Path) -> None:
    known = load_toolchains(toolchain_folder)
    redist = [s for s in known.sets if s.layout == "cuda-redist"]
    assert {s.platforms for s in redist} == {("linux_x86_64",), ("windows_x86_64",)}
    for provided in redist:
        platform = provided.platforms[0].replace("_", "-", 1)
        for file in provided.files:
            path = f"{file.package}/{platform}/"
            assert file.location.startswith(f"{BASE}/{path}")
            assert file.published == ADDRESS
            assert not file.capped
            # Its manifest, in NVIDIA's own shape, vouches for exactly this file.
            entry = {
                "relative_path": file.location.removeprefix(f"{BASE}/"),
                "sha256": file.sha256,
                "size": str(file.size),
            }
            part = {"version": file.version, platform: entry}
            text = json.dumps({"release_product": "cuda", file.package: part})
            assert stated(text, file).sha256 == file.sha256


@pytest.fixture
def toolchain_folder() -> Path:
    from llamawright.paths import data_root

    return data_root() / "toolchains"


def test_shipped_sets_state_what_the_resolver_asks_for(toolchain_folder: Path) -> None:
    sets = [s for s in load_toolchains(toolchain_folder).sets if s.layout.startswith("cuda-")]
    assert len(sets) == 4
    for provided in sets:
        for fact in (
            "cuda_codes", "gcc_max", "clang_max", "nvcc", "cuda_root", "cudart", "cublas",
            "cublaslt", "include_dir", "license",
        ):  # fmt: skip
            assert provided.fact(fact), f"{provided.name}: {fact}"
        assert provided.licenses
        assert all(f.size and not f.capped for f in provided.files)


def test_a_shipped_set_that_nobody_tried_says_so(toolchain_folder: Path) -> None:
    for provided in load_toolchains(toolchain_folder).sets:
        assert bool(provided.fact("untried")) is (provided.layout == "cuda-redist")


@pytest.mark.parametrize("card", ["61", "89"])
def test_a_shipped_set_serves_old_and_new_cards(toolchain_folder: Path, card: str) -> None:
    sets = {s.name: s for s in load_toolchains(toolchain_folder).sets}
    for name in ("cuda-12.4-debian13", "cuda-12.9-redist-linux", "cuda-12.9-redist-windows"):
        assert card in sets[name].fact("cuda_codes").split()
    assert "61" not in sets["cuda-13.0-wheels"].fact("cuda_codes").split()
