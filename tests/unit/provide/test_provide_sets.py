"""Sets on the store's shelf: made once, proved, stamped; anything else is no evidence."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from provide_fakes import (
    GLSLC,
    HEADER,
    Silent,
    driver_set,
    serve,
    tar_xz,
    toolchains,
    vulkan_set,
    write_pool,
)

from llamawright.errors import DownloadError, LlamawrightError, ToolMissingError
from llamawright.model.inventory import Available, Found, Role
from llamawright.model.plan import Plan
from llamawright.model.toolchain import Fact, ProvidedFile, ProvidedSet, Registry
from llamawright.provide import driver as driver_room
from llamawright.provide import files as files_room
from llamawright.provide import provide_set, provided_tools
from llamawright.provide.mirrors import debian_mirrors
from llamawright.provide.sets import unpack
from llamawright.provide.tools import SHELF, header_version, prove
from llamawright.store import Store


@pytest.fixture(autouse=True)
def no_machine_mirrors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep this machine's own apt sources out of the tests."""
    monkeypatch.setattr(
        files_room, "debian_mirrors", lambda *, env: debian_mirrors(env=env, root=tmp_path)
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def provide(
    provided: ProvidedSet, store: Store, mirror: str = "", *, offline: bool = False
) -> Path:
    return provide_set(
        provided,
        store=store,
        toolchains=toolchains(),
        offline=offline,
        reporter=Silent(),
        env={"LLAMAWRIGHT_DEBIAN_MIRROR": mirror},
    )


def standing(tmp_path: Path, store: Store) -> tuple[ProvidedSet, Path]:
    provided, packages = vulkan_set()
    return provided, provide(provided, store, write_pool(tmp_path / "pool", packages))


def plan_with(*provisions: Available) -> Plan:
    """Return what ``provided_tools`` reads of a plan."""

    class Part:
        def __init__(self) -> None:
            self.provisions = provisions

    return cast("Plan", Part())


def available(provided: ProvidedSet, store: Store) -> Available:
    return Available(
        role=provided.role,
        name=provided.name,
        version=provided.version,
        digest=provided.digest,
        size=provided.size,
        root=store.shelf(SHELF, provided.digest),
        present=store.is_stamped(SHELF, provided.digest),
    )


def by_role(tools: tuple[Found, ...]) -> dict[Role, Found]:
    return {t.role: t for t in tools}


def test_root_is_on_the_shelf_by_the_sets_digest(tmp_path: Path, store: Store) -> None:
    provided, root = standing(tmp_path, store)
    assert root == store.shelf("tools", provided.digest)
    assert store.is_stamped("tools", provided.digest)


def test_second_time_needs_neither_network_nor_pool(tmp_path: Path, store: Store) -> None:
    provided, root = standing(tmp_path, store)
    (root / "mark").touch()
    assert provide(provided, store, offline=True) == root
    assert (root / "mark").exists()


def test_offline_from_downloaded_files_alone(tmp_path: Path, store: Store) -> None:
    provided, root = standing(tmp_path, store)
    store.forget("tools", provided.digest)
    assert not root.exists()
    assert provide(provided, store, offline=True) == root


def test_offline_with_an_empty_store(store: Store) -> None:
    provided, _ = vulkan_set()
    with pytest.raises(DownloadError) as caught:
        provide(provided, store, offline=True)
    assert caught.value.kind == "offline"
    assert len(caught.value.why.splitlines()) == len(provided.files)
    assert not store.is_stamped("tools", provided.digest)


def test_a_folder_without_a_stamp_is_made_again(tmp_path: Path, store: Store) -> None:
    provided, packages = vulkan_set()
    half = store.shelf("tools", provided.digest)
    (half / "usr/bin").mkdir(parents=True)
    (half / "usr/bin/glslc").write_text("half")
    root = provide(provided, store, write_pool(tmp_path / "pool", packages))
    assert (root / "usr/bin/glslc").read_text() == GLSLC


def test_a_set_that_fails_its_proof_is_not_stamped(tmp_path: Path, store: Store) -> None:
    provided, packages = vulkan_set()
    facts = tuple((k, "310" if k == "header_version" else v) for k, v in provided.facts)
    wrong = replace(provided, facts=facts)
    with pytest.raises(ToolMissingError, match="not what its pins say") as caught:
        provide(wrong, store, write_pool(tmp_path / "pool", packages))
    assert "its headers are 309, not 310" in caught.value.why
    assert not store.is_stamped("tools", wrong.digest)
    assert not store.shelf("tools", wrong.digest).exists()


def test_two_at_once_unpack_once(tmp_path: Path, store: Store) -> None:
    provided, packages = vulkan_set()
    mirror = write_pool(tmp_path / "pool", packages)
    reporters = [Silent(), Silent()]
    roots: list[Path] = []

    def work(reporter: Silent) -> None:
        root = provide_set(
            provided,
            store=Store(tmp_path / "store"),
            toolchains=toolchains(),
            offline=False,
            reporter=reporter,
            env={"LLAMAWRIGHT_DEBIAN_MIRROR": mirror},
        )
        roots.append(root)

    threads = [threading.Thread(target=work, args=(r,)) for r in reporters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(roots)) == 1
    unpacked = [t for r in reporters for t in r.infos if t.startswith("unpacking")]
    assert len(unpacked) == 1


def test_unknown_layout_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(LlamawrightError, match="has no code"):
        unpack(replace(vulkan_set()[0], layout="rpm"), (), tmp_path)


# --- tools ----------------------------------------------------------------------------------


def test_tools_of_a_build_side(tmp_path: Path, store: Store) -> None:
    provided, root = standing(tmp_path, store)
    tools = by_role(provided_tools(plan_with(available(provided, store)), store))
    vulkan, glslc = tools[Role.VULKAN], tools[Role.GLSLC]
    assert vulkan.path == root
    assert vulkan.where == "provided"
    assert vulkan.sha256 == provided.digest
    assert vulkan.fact(Fact.HEADER_VERSION) == "309"
    assert Path(vulkan.fact(Fact.LIBRARY)) == root / "usr/lib/x86_64-linux-gnu/libvulkan.so"
    assert Path(vulkan.fact(Fact.SPIRV_HEADERS_DIR)).is_dir()
    assert glslc.path == root / "bin/glslc"
    assert glslc.version == "2025.2"


def test_tools_are_proved_each_time(tmp_path: Path, store: Store) -> None:
    provided, root = standing(tmp_path, store)
    (root / "usr/bin/glslc").write_text("#!/bin/sh\nexit 139\n")
    with pytest.raises(ToolMissingError) as caught:
        provided_tools(plan_with(available(provided, store)), store)
    assert caught.value.kind == "glslc-unusable"


@pytest.mark.parametrize(
    "part",
    [
        "usr/lib/x86_64-linux-gnu/libvulkan.so",
        "usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake",
        "usr/include/vulkan/vulkan_core.h",
        "bin/glslc",
    ],
)
def test_a_part_that_was_removed_since(tmp_path: Path, store: Store, part: str) -> None:
    provided, root = standing(tmp_path, store)
    (root / part).unlink()
    if part.endswith(".cmake"):
        (root / part).parent.rmdir()
    with pytest.raises(ToolMissingError) as caught:
        provided_tools(plan_with(available(provided, store)), store)
    assert caught.value.kind == "incomplete-set"
    assert "gc" in caught.value.hint


def test_a_set_that_was_never_provided(store: Store) -> None:
    provided, _ = vulkan_set()
    with pytest.raises(ToolMissingError, match="does not stand in the store") as caught:
        provided_tools(plan_with(available(provided, store)), store)
    assert caught.value.kind == "not-provided"


def test_a_plan_without_provisions(store: Store) -> None:
    assert provided_tools(plan_with(), store) == ()


def test_driver_tool(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text('print(\'[{"type": 4, "name": "llvmpipe", "api": "1.3.230"}]\')')
    monkeypatch.setattr(driver_room, "PROBE", probe)
    provided, packages = driver_set()
    root = provide(provided, store, write_pool(tmp_path / "pool", packages))
    (tool,) = provided_tools(plan_with(available(provided, store)), store)
    assert tool.role is Role.DRIVER
    assert tool.path == root
    assert tool.fact("device") == "llvmpipe"


def test_driver_that_does_not_work_here_is_not_stamped(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text("raise SystemExit(1)")
    monkeypatch.setattr(driver_room, "PROBE", probe)
    provided, packages = driver_set()
    with pytest.raises(ToolMissingError):
        provide(provided, store, write_pool(tmp_path / "pool", packages))
    assert not store.is_stamped("tools", provided.digest)


def test_a_role_nobody_uses(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError, match="which nothing uses"):
        prove(replace(vulkan_set()[0], role=Role.GIT), tmp_path)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (HEADER, 309),
        ("// Version\n#define VK_HEADER_VERSION 204\n#define VK_HEADER_VERSION_COMPLETE X\n", 204),
        ("#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, 4, 309)\n", None),
        ("", None),
    ],
)
def test_header_version(tmp_path: Path, text: str, version: int | None) -> None:
    (tmp_path / "vulkan").mkdir()
    (tmp_path / "vulkan/vulkan_core.h").write_text(text)
    assert header_version(tmp_path) == version


def test_header_version_without_headers(tmp_path: Path) -> None:
    assert header_version(tmp_path) is None


# --- LunarG and wheels ----------------------------------------------------------------------

SDK = {
    "1.4.1.0/x86_64/bin/glslc": GLSLC,
    "1.4.1.0/x86_64/bin/vkconfig": "#!/bin/sh\n",
    "1.4.1.0/x86_64/include/vulkan/vulkan_core.h": HEADER,
    "1.4.1.0/x86_64/lib/libvulkan.so": "loader",
    "1.4.1.0/x86_64/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake": "# config",
    "1.4.1.0/source/big.c": "x",
}
SDK_FACTS = {
    "header_version": "309",
    "include_dir": "include",
    "library": "lib/libvulkan.so",
    "glslc": "bin/glslc",
    "spirv_headers_dir": "share/cmake/SPIRV-Headers",
}


def vendor_set(
    location: str, data: bytes, *, layout: str, facts: Mapping[str, str] = SDK_FACTS
) -> ProvidedSet:
    file = ProvidedFile(
        registry=Registry.URL,
        package="sdk",
        version="1.4.1.0",
        location=location,
        size=1 << 20,
        sha256=hashlib.sha256(data).hexdigest(),
        capped=True,
    )
    return ProvidedSet(
        name=layout,
        role=Role.VULKAN,
        version="1.4.309",
        layout=layout,
        platforms=("linux_x86_64",),
        files=(file,),
        facts=tuple(facts.items()),
        digest=hashlib.sha256(f"{layout}{location}".encode() + data).hexdigest(),
    )


def test_lunarg_archive_from_a_server(store: Store) -> None:
    data = tar_xz(SDK)
    with serve({"/sdk.tar.xz": data}) as web:
        provided = vendor_set(f"{web.address}/sdk.tar.xz", data, layout="lunarg-tar")
        root = provide(provided, store)
    assert (root / "bin/glslc").is_file()
    assert not (root / "bin/vkconfig").exists()
    assert not (root / "source").exists()
    tools = by_role(provided_tools(plan_with(available(provided, store)), store))
    assert tools[Role.GLSLC].path == root / "bin/glslc"


def test_lunarg_archive_of_another_machine(store: Store) -> None:
    data = tar_xz({name.replace("x86_64", "aarch64"): text for name, text in SDK.items()})
    with serve({"/sdk.tar.xz": data}) as web:
        provided = vendor_set(f"{web.address}/sdk.tar.xz", data, layout="lunarg-tar")
        with pytest.raises(DownloadError, match="was not unpacked"):
            provide(provided, store)


INSTALLER = (
    """#!/bin/sh
[ "$1" = --root ] || exit 9
root=$2
shift 2
[ "$*" = "--accept-licenses --default-answer --confirm-command install copy_only=1" ] || exit 8
case $0 in *.exe) ;; *) exit 7 ;; esac
mkdir -p "$root/bin" "$root/lib" "$root/include/vulkan" "$root/share/cmake/SPIRV-Headers"
echo "#define VK_HEADER_VERSION 309" > "$root/include/vulkan/vulkan_core.h"
echo loader > "$root/lib/libvulkan.so"
cat > "$root/bin/glslc" <<'END'
"""
    + GLSLC
    + """END
chmod +x "$root/bin/glslc"
"""
)


def test_lunarg_installer_copies_without_administrator(store: Store) -> None:
    data = INSTALLER.encode()
    with serve({"/sdk.exe": data}) as web:
        provided = vendor_set(f"{web.address}/sdk.exe", data, layout="lunarg-installer")
        root = provide(provided, store)
    assert (root / "lib/libvulkan.so").is_file()
    assert [t.role for t in prove(provided, root)] == [Role.VULKAN, Role.GLSLC]


def test_lunarg_installer_that_fails(store: Store) -> None:
    data = b"#!/bin/sh\necho 'it needs an administrator' >&2\nexit 5\n"
    with serve({"/sdk.exe": data}) as web:
        provided = vendor_set(f"{web.address}/sdk.exe", data, layout="lunarg-installer")
        with pytest.raises(ToolMissingError, match="installer of sdk") as caught:
            provide(provided, store)
    assert caught.value.kind == "installer-failed"
    assert caught.value.tail == ("it needs an administrator",)
    assert "status 5" in caught.value.why
    assert "VULKAN_SDK" in caught.value.hint
    assert not store.is_stamped("tools", provided.digest)


def test_lunarg_installer_is_not_run_with_the_wrong_sha256(store: Store, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    data = f"#!/bin/sh\ntouch {mark}\n".encode()
    with serve({"/sdk.exe": data + b"#"}) as web:
        provided = vendor_set(f"{web.address}/sdk.exe", data, layout="lunarg-installer")
        with pytest.raises(DownloadError) as caught:
            provide(provided, store)
    assert caught.value.kind == "wrong-sha256"
    assert not mark.exists()


def test_spirv_headers_wheel(store: Store, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("cmeel.prefix/include/spirv/unified1/spirv.hpp", "namespace spv {}")
        archive.writestr("cmeel.prefix/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake", "#")
        archive.writestr("x-1.dist-info/RECORD", "")
    data = out.getvalue()
    facts = {"include_dir": "include", "spirv_headers_dir": "share/cmake/SPIRV-Headers"}
    with serve({"/x.whl": data}) as web:
        location = f"{web.address}/x.whl"
        provided = replace(vendor_set(location, data, layout="wheel", facts=facts), role=Role.SPIRV)
        root = provide(provided, store)
    (tool,) = prove(provided, root)
    assert tool.role is Role.SPIRV
    assert Path(tool.fact(Fact.SPIRV_HEADERS_DIR)).is_dir()
    assert not (root / "x-1.dist-info").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["vulkan-debian13", "vulkan-driver-debian12", "spirv-headers-wheel"]
)
def test_shipped_sets_for_real(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from llamawright.config import load_toolchains
    from llamawright.paths import data_root

    monkeypatch.undo()
    known = load_toolchains(data_root() / "toolchains")
    provided = next(s for s in known.sets if s.name == name)
    store = Store(tmp_path / "store")
    root = provide_set(
        provided,
        store=store,
        toolchains=known,
        offline=False,
        reporter=Silent(),
        env=os.environ,
    )
    assert prove(provided, root)
