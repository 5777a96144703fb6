"""A debugger and layers below a prefix: unpacked, led to, proved by running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from provide_fakes import LIB, deb, debian_set, write_blobs

from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Role
from llamawright.provide.debian import unpack_layers, unpack_program
from llamawright.provide.debugging import (
    debugger_of,
    layers_of,
    prove_debugger,
    prove_layers,
)

DESCRIBED = "usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"
LAYER = json.dumps({"layer": {"name": "VK_LAYER_KHRONOS_validation", "library_path": "libv.so"}})
GDB = "#!/bin/sh\n[ -n \"$LD_LIBRARY_PATH\" ] || exit 9\necho '$1 = 42'\n"


def layers(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    packages = {"pool/v/vulkan-validationlayers_1.3_amd64.deb": deb(files)}
    provided = debian_set(packages, name="layers", role=Role.LAYERS, layout="debian-layers")
    root = tmp_path / "layers"
    unpack_layers(provided, write_blobs(tmp_path / "blobs", packages), root)
    return root


def program(tmp_path: Path, text: str = GDB) -> Path:
    packages = {
        "pool/g/gdb-minimal_13.1_amd64.deb": deb(
            {"usr/bin/gdb": text, "etc/gdb/gdbinit": "shell rm -rf /"}
        ),
        "pool/x/libx_1_amd64.deb": deb(
            {f"{LIB}/libx.so.1": b"x", "usr/share/doc/libx/copyright": "MIT"}
        ),
    }
    provided = debian_set(packages, name="gdb", role=Role.DEBUGGER, layout="debian-program")
    root = tmp_path / "gdb"
    unpack_program(provided, write_blobs(tmp_path / "blobs", packages), root)
    (root / "usr/bin/gdb").chmod(0o755)
    return root


def test_a_layers_description_names_its_library_by_its_place(tmp_path: Path) -> None:
    root = layers(tmp_path, {DESCRIBED: LAYER, f"{LIB}/libv.so": b"x"})
    data = json.loads((root / DESCRIBED).read_text())
    library = root / DESCRIBED / ".." / data["layer"]["library_path"]
    assert not Path(data["layer"]["library_path"]).is_absolute()
    assert library.resolve() == (root / LIB / "libv.so").resolve()


def test_the_set_can_be_moved(tmp_path: Path) -> None:
    root = layers(tmp_path, {DESCRIBED: LAYER, f"{LIB}/libv.so": b"x"})
    moved = tmp_path / "another place"
    root.rename(moved)
    name, folder = layers_of(moved)
    assert name == "VK_LAYER_KHRONOS_validation"
    data = json.loads((folder / "VkLayer_khronos_validation.json").read_text())
    assert (folder / data["layer"]["library_path"]).exists()


@pytest.mark.parametrize("files", [{f"{LIB}/libv.so": b"x"}, {DESCRIBED: LAYER}])
def test_a_set_without_description_or_library_is_refused(
    tmp_path: Path, files: dict[str, str | bytes]
) -> None:
    with pytest.raises(ToolMissingError) as caught:
        layers(tmp_path, files)
    assert caught.value.kind == "incomplete-set"


def test_a_layer_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    root = layers(tmp_path, {DESCRIBED: LAYER, f"{LIB}/libv.so": b"no library"})
    with pytest.raises(ToolMissingError) as caught:
        prove_layers(root)
    assert caught.value.kind == "tool-unusable"
    assert "libv.so" in caught.value.why


def test_a_prefix_without_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError) as caught:
        layers_of(tmp_path)
    assert "0 layers" in caught.value.why


def test_a_debugger_runs_with_its_own_libraries(tmp_path: Path) -> None:
    root = program(tmp_path)
    assert prove_debugger(root) == str(root / "usr/bin/gdb")
    _, env = debugger_of(root)
    assert env == {"LD_LIBRARY_PATH": str(root / LIB)}


def test_no_configuration_of_the_package_is_unpacked(tmp_path: Path) -> None:
    assert not (program(tmp_path) / "etc").exists()


@pytest.mark.parametrize(
    "text",
    ["#!/bin/sh\necho hello\n", "#!/bin/sh\necho '$1 = 42'; exit 3\n", "#!/bin/sh\nkill -9 $$\n"],
)
def test_a_debugger_that_cannot_add_is_refused(tmp_path: Path, text: str) -> None:
    root = program(tmp_path, text)
    with pytest.raises(ToolMissingError) as caught:
        prove_debugger(root)
    assert caught.value.kind == "tool-unusable"
    assert "gdb" in caught.value.hint


def test_a_prefix_without_a_debugger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError):
        prove_debugger(tmp_path)
