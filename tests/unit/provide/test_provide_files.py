"""Files of a set: mirrors in order, the archive that keeps history last, offline told at once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from provide_fakes import Silent, debian_file, serve, toolchains, vulkan_set, write_pool

from llamawright.errors import DownloadError
from llamawright.model.toolchain import ProvidedFile, ProvidedSet, Registry
from llamawright.provide import files as room
from llamawright.provide.files import addresses, fetch_files, published_sha256
from llamawright.provide.mirrors import debian_mirrors
from llamawright.store import Store

SHA = hashlib.sha256(b"sdk").hexdigest()
FILE = ProvidedFile(
    registry=Registry.URL,
    package="sdk",
    version="1.4.1.0",
    location="https://vendor.invalid/download/sdk.tar.xz",
    size=100,
    sha256="",
    capped=True,
    published="https://vendor.invalid/sha/sdk.tar.xz.json",
)


@pytest.fixture(autouse=True)
def no_machine_mirrors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep this machine's own apt sources out of the tests."""
    monkeypatch.setattr(
        room, "debian_mirrors", lambda *, env: debian_mirrors(env=env, root=tmp_path)
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def fetch(
    provided: ProvidedSet, store: Store, *archives: str, mirror: str = "", offline: bool = False
) -> tuple[Path, ...]:
    return fetch_files(
        provided,
        store=store,
        toolchains=toolchains(*archives),
        offline=offline,
        reporter=Silent(),
        env={"LLAMAWRIGHT_DEBIAN_MIRROR": mirror},
    )


def one(file: ProvidedFile) -> ProvidedSet:
    return replace(vulkan_set()[0], files=(file,))


def test_addresses_by_path_and_by_content() -> None:
    file = debian_file("pool/main/g/gcc/libstdc++6_1%2_amd64.deb", b"x")
    found = addresses(file, ("http://a.invalid/debian", "https://snapshot.debian.org"))
    assert found == (
        "http://a.invalid/debian/pool/main/g/gcc/libstdc%2B%2B6_1%252_amd64.deb",
        f"https://snapshot.debian.org/file/{file.sha1}",
    )


def test_addresses_without_sha1_skip_the_history() -> None:
    file = replace(debian_file("pool/a_1_amd64.deb", b"x"), sha1="")
    assert addresses(file, ("https://snapshot.debian.org",)) == ()


def test_files_come_in_the_order_of_the_set(store: Store, tmp_path: Path) -> None:
    provided, packages = vulkan_set()
    blobs = fetch(provided, store, mirror=write_pool(tmp_path / "pool", packages))
    assert [b.name for b in blobs] == [f.sha256 for f in provided.files]
    assert [b.read_bytes() for b in blobs] == list(packages.values())


def test_a_second_time_nothing_is_asked_for(store: Store, tmp_path: Path) -> None:
    provided, packages = vulkan_set()
    first = fetch(provided, store, mirror=write_pool(tmp_path / "pool", packages))
    assert fetch(provided, store, offline=True) == first


def test_the_next_mirror_is_tried_when_one_has_dropped_the_version(store: Store) -> None:
    provided, packages = vulkan_set()
    file = provided.files[0]
    data = packages[file.location]
    with serve({}) as old, serve({f"/{file.location}": data}) as new:
        (blob,) = fetch(one(file), store, mirror=f"{old.address} {new.address}")
    assert blob.read_bytes() == data
    assert old.asked == [f"/{file.location}"]


def test_names_with_a_plus_are_found(store: Store) -> None:
    provided, packages = vulkan_set()
    file = next(f for f in provided.files if "+" in f.location)
    path = f"/{file.location.replace('+', '%2B')}"
    with serve({path: packages[file.location]}) as web:
        fetch(one(file), store, mirror=web.address)
    assert web.asked == [path]


def test_no_mirror_has_it(store: Store) -> None:
    provided, _ = vulkan_set()
    with serve({}) as web, pytest.raises(DownloadError) as caught:
        fetch(one(provided.files[0]), store, mirror=web.address)
    assert caught.value.kind == "absent"
    assert "LLAMAWRIGHT_DEBIAN_MIRROR" in caught.value.hint
    assert web.address in caught.value.why


def test_another_file_under_the_same_name(store: Store) -> None:
    provided, packages = vulkan_set()
    file = provided.files[0]
    other = bytes([packages[file.location][0] ^ 1]) + packages[file.location][1:]
    with serve({f"/{file.location}": other}) as web, pytest.raises(DownloadError) as caught:
        fetch(one(file), store, mirror=web.address)
    assert caught.value.kind == "wrong-sha256"
    assert not store.has_blob(file.sha256)


def test_offline_names_everything_that_is_missing(store: Store, tmp_path: Path) -> None:
    provided, packages = vulkan_set()
    mirror = write_pool(tmp_path / "pool", packages)
    fetch(replace(provided, files=provided.files[:2]), store, mirror=mirror)
    with pytest.raises(DownloadError) as caught:
        fetch(provided, store, mirror=mirror, offline=True)
    assert caught.value.kind == "offline"
    told = caught.value.why.splitlines()
    assert len(told) == len(provided.files) - 2
    assert told[0].startswith(f"missing: {provided.files[2].package} {provided.files[2].version}")
    assert "without --offline" in caught.value.hint


# --- the vendor's own statement -------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f'{{"file": "sdk.tar.xz", "sha": "{SHA}"}}',
        f'{{"file": "sdk.tar.xz", "sha": "{SHA.upper()}", "version": "1.4.1.0"}}',
        f'{{"sha": "{SHA}"}}',
    ],
)
def test_published_sha256(text: str) -> None:
    assert published_sha256(text, FILE) == SHA


@pytest.mark.parametrize(
    "text",
    [
        '{"ok": false, "title": "Not Found"}',
        f'{{"file": "other.tar.xz", "sha": "{SHA}"}}',
        '{"file": "sdk.tar.xz", "sha": "abc"}',
        f'["{SHA}"]',
        f"{SHA}  sdk.tar.xz",
        "<!doctype html>",
        "",
        "null",
    ],
)
def test_statements_that_say_nothing(text: str) -> None:
    with pytest.raises(DownloadError, match="publishes no sha256") as caught:
        published_sha256(text, FILE)
    assert caught.value.kind == "no-published-sha256"
    assert FILE.published in caught.value.why


def vendor_file(address: str, **changes: str) -> ProvidedFile:
    file = replace(
        FILE,
        location=f"{address}/download/sdk.tar.xz",
        published=f"{address}/sha/sdk.tar.xz.json",
    )
    return replace(file, sha256=changes.get("sha256", ""))


def test_vendor_file_without_a_pin(store: Store) -> None:
    statement = f'{{"file": "sdk.tar.xz", "sha": "{SHA}"}}'.encode()
    pages = {"/download/sdk.tar.xz": b"sdk", "/sha/sdk.tar.xz.json": statement}
    with serve(pages) as web:
        (blob,) = fetch(one(vendor_file(web.address)), store)
    assert blob.read_bytes() == b"sdk"
    assert web.asked == ["/sha/sdk.tar.xz.json", "/download/sdk.tar.xz"]
    assert all(a.startswith("llamawright/") for a in web.agents)


def test_vendor_file_with_a_pin_does_not_ask_for_the_statement(store: Store) -> None:
    with serve({"/download/sdk.tar.xz": b"sdk"}) as web:
        fetch(one(vendor_file(web.address, sha256=SHA)), store)
    assert web.asked == ["/download/sdk.tar.xz"]


def test_vendor_file_that_differs_from_its_statement(store: Store) -> None:
    statement = f'{{"sha": "{"0" * 64}"}}'.encode()
    pages = {"/download/sdk.tar.xz": b"sdk", "/sha/sdk.tar.xz.json": statement}
    with serve(pages) as web, pytest.raises(DownloadError) as caught:
        fetch(one(vendor_file(web.address)), store)
    assert caught.value.kind == "wrong-sha256"


def test_vendor_file_over_its_cap(store: Store) -> None:
    with serve({"/download/sdk.tar.xz": b"x" * 101}) as web, pytest.raises(DownloadError) as caught:
        fetch(one(vendor_file(web.address, sha256=SHA)), store)
    assert caught.value.kind == "too-large"


def test_vendor_that_has_no_statement(store: Store) -> None:
    with serve({"/download/sdk.tar.xz": b"sdk"}) as web, pytest.raises(DownloadError) as caught:
        fetch(one(vendor_file(web.address)), store)
    assert caught.value.kind == "absent"
    assert "LLAMAWRIGHT_DEBIAN_MIRROR" not in caught.value.hint


def test_offline_without_the_statement(store: Store) -> None:
    with pytest.raises(DownloadError) as caught:
        fetch(one(FILE), store, offline=True)
    assert caught.value.kind == "offline"


def test_index_files_come_through_the_configured_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def index(origin: object, _store: Store, *, offline: bool, reporter: object) -> Path:
        asked.append((origin, offline))
        return Path("/blob")

    monkeypatch.setattr(room, "download_index_file", index)
    file = replace(FILE, registry=Registry.INDEX, location="sdk-1-py3-none-any.whl", sha256=SHA)
    assert fetch(one(file), store) == (Path("/blob"),)
    ((origin, offline),) = asked
    assert getattr(origin, "filename") == "sdk-1-py3-none-any.whl"  # noqa: B009 - a plain object
    assert getattr(origin, "sha256") == SHA  # noqa: B009
    assert offline is False
