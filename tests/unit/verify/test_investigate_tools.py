"""Which instruments can be had: the machine's, the provided ones, none."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from llamawright.errors import DownloadError
from llamawright.verify import investigate_layers
from llamawright.verify.investigate_layers import LAYER, Layers
from llamawright.verify.investigate_tools import (
    Absent,
    Debugger,
    Offers,
    find_debugger,
    find_layers,
)

GNU = "GNU gdb (Debian 13.1-3) 13.1"


def gdb(folder: Path, said: str = GNU, status: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "gdb"
    program.write_text(f"#!{sys.executable} -IS\nprint({said!r})\nraise SystemExit({status})\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any instrument."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(investigate_layers, "FOLDERS", (str(tmp_path / "usr"),))
    return tmp_path


def no_network() -> tuple[Path, Mapping[str, str]]:
    raise DownloadError("gdb-debian12 is not in the store", why="missing: gdb\nmissing: x")


def test_the_machines_own_debugger_goes_first(nowhere: Path) -> None:
    program = gdb(nowhere / "path")
    found = find_debugger(Offers(debugger=no_network))
    assert found == Debugger(program=program, env=(), version="13.1", where="machine")


def test_without_one_the_provided_one_is_taken(nowhere: Path) -> None:
    program = gdb(nowhere / "set")
    found = find_debugger(Offers(debugger=lambda: (program, {"LD_LIBRARY_PATH": "/set/lib"})))
    assert isinstance(found, Debugger)
    assert (found.where, found.env) == ("provided", (("LD_LIBRARY_PATH", "/set/lib"),))


@pytest.mark.parametrize(("said", "status"), [("lldb 15.0", 0), (GNU, 3), ("GNU gdb", 0), ("", 0)])
def test_a_debugger_that_is_broken_is_as_good_as_none(
    nowhere: Path, said: str, status: int
) -> None:
    gdb(nowhere / "path", said, status)
    good = gdb(nowhere / "set")
    found = find_debugger(Offers(debugger=lambda: (good, {})))
    assert isinstance(found, Debugger)
    assert found.where == "provided"


def test_a_debugger_that_cannot_be_started_is_as_good_as_none(nowhere: Path) -> None:
    gdb(nowhere / "path").write_text("#!/no/such/interpreter\n")
    assert isinstance(find_debugger(Offers()), Absent)


def test_without_any_the_package_is_named(nowhere: Path) -> None:
    found = find_debugger(Offers())
    assert isinstance(found, Absent)
    assert "install the package gdb" in found.told


def test_why_it_cannot_be_provided_is_told_in_one_line(nowhere: Path) -> None:
    found = find_debugger(Offers(debugger=no_network))
    assert isinstance(found, Absent)
    assert "is not in the store: missing: gdb)" in found.told
    assert "\n" not in found.told
    assert "install the package gdb" in found.told


def test_a_provided_debugger_that_does_not_start_is_told(nowhere: Path) -> None:
    found = find_debugger(Offers(debugger=lambda: (nowhere / "gone", {})))
    assert isinstance(found, Absent)
    assert "does not start here" in found.told


def layer(folder: Path, name: str = LAYER) -> Path:
    folder.mkdir(parents=True)
    described = {"layer": {"name": name, "library_path": "x.so", "api_version": "1.3.239"}}
    (folder / "VkLayer_khronos_validation.json").write_text(json.dumps(described))
    return folder


def test_the_machines_own_layers_go_first(nowhere: Path) -> None:
    layer(nowhere / "usr" / "vulkan" / "explicit_layer.d")
    found = find_layers(Offers(), env={})
    assert isinstance(found, Layers)
    assert found.where == "machine"


def test_provided_layers_are_named_by_their_folder(nowhere: Path) -> None:
    folder = layer(nowhere / "set")
    found = find_layers(Offers(layers=lambda: folder), env={})
    assert isinstance(found, Layers)
    assert (found.where, found.folder) == ("provided", str(folder))


def test_without_layers_the_packages_are_named(nowhere: Path) -> None:
    found = find_layers(Offers(), env={})
    assert isinstance(found, Absent)
    assert "vulkan-validationlayers" in found.told


def test_layers_that_cannot_be_provided_are_told(nowhere: Path) -> None:
    def fails() -> Path:
        raise DownloadError("no network", why="offline")

    found = find_layers(Offers(layers=fails), env={})
    assert isinstance(found, Absent)
    assert "no network: offline" in found.told


def test_a_set_without_the_layer_is_told(nowhere: Path) -> None:
    folder = layer(nowhere / "set", "another")
    assert isinstance(find_layers(Offers(layers=lambda: folder), env={}), Absent)
