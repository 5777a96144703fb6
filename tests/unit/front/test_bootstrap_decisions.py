"""What bootstrap.py decides: places, names, arguments, sentences."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath

import bootstrap
import platformdirs.macos
import platformdirs.unix
import platformdirs.windows
import pytest

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'
UBUNTU = 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n'
MINT = 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'
FEDORA = "ID=fedora\n"
HOME = Path("/home/ann")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("-l", ["-l"]),
        ("-s tests -- -k x", ["-s", "tests", "--", "-k", "x"]),
        ("build-vulkan", ["-s", "build-vulkan"]),
        ("lint types tests", ["-s", "lint", "types", "tests"]),
        ("build-vulkan --jobs 4", ["-s", "build-vulkan", "--", "--jobs", "4"]),
        ("build-vulkan -- --jobs 4", ["-s", "build-vulkan", "--", "--jobs", "4"]),
        ("verify -- a", ["-s", "verify", "--", "a"]),
        ("verify dist/x.tar.zst", ["-s", "verify", "--", "dist/x.tar.zst"]),
        ("verify x.zip --json", ["-s", "verify", "--", "x.zip", "--json"]),
        (r"verify C:\x\y", ["-s", "verify", "--", r"C:\x\y"]),
        ("tests --", ["-s", "tests"]),
        ("build-cpu --json -- --quiet", ["-s", "build-cpu", "--", "--json", "--", "--quiet"]),
    ],
)
def test_short_lines_become_nox_lines(line: str, expected: list[str]) -> None:
    assert bootstrap.nox_arguments(line.split()) == expected


def test_json_after_a_session_is_never_taken_by_nox() -> None:
    # nox has a --json of its own (for --list); without the separator it would swallow ours.
    line = bootstrap.nox_arguments(["doctor", "--json"])
    assert line.index("--") < line.index("--json")


class TestStoreRoot:
    def test_named_store_wins(self) -> None:
        env = {"LLAMAWRIGHT_STORE": "/data/store", "XDG_CACHE_HOME": "/xdg"}
        assert bootstrap.store_root(env, "linux", HOME) == Path("/data/store")

    def test_named_store_is_made_absolute(self) -> None:
        assert bootstrap.store_root({"LLAMAWRIGHT_STORE": "rel"}, "linux", HOME).is_absolute()

    def test_home_sign_is_understood(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/bob")
        root = bootstrap.store_root({"LLAMAWRIGHT_STORE": "~/s"}, "linux", HOME)
        assert root == Path("/home/bob/s")

    def test_empty_name_is_none(self) -> None:
        env = {"LLAMAWRIGHT_STORE": ""}
        assert bootstrap.store_root(env, "linux", HOME) == HOME / ".cache" / "llamawright"

    @pytest.mark.parametrize("xdg", [None, "/xdg", "relative", ""])
    def test_linux_agrees_with_platformdirs(
        self, monkeypatch: pytest.MonkeyPatch, xdg: str | None
    ) -> None:
        env = self._home(monkeypatch, xdg)
        theirs = platformdirs.unix.Unix("llamawright").user_cache_path
        assert bootstrap.store_root(env, "linux", HOME) == theirs

    @pytest.mark.parametrize("xdg", [None, "/xdg", "relative"])
    def test_macos_agrees_with_platformdirs(
        self, monkeypatch: pytest.MonkeyPatch, xdg: str | None
    ) -> None:
        env = self._home(monkeypatch, xdg)
        theirs = platformdirs.macos.MacOS("llamawright").user_cache_path
        assert bootstrap.store_root(env, "darwin", HOME) == theirs

    def test_windows_agrees_with_platformdirs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        local = "/users/ann/AppData/Local"
        monkeypatch.setenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", "C:" + local.replace("/", "\\"))
        theirs = platformdirs.windows.Windows("llamawright").user_cache_dir
        ours = bootstrap.store_root({"LOCALAPPDATA": local}, "win32", HOME)
        parts = theirs.replace("\\", "/").removeprefix("C:")
        assert PurePosixPath(ours) == PurePosixPath(parts)

    def test_windows_without_the_variable_still_has_a_place(self) -> None:
        root = bootstrap.store_root({}, "win32", Path("/u"))
        assert root == Path("/u/AppData/Local/llamawright/llamawright/Cache")

    def test_the_package_means_the_same_store(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from llamawright.paths import store_root

        monkeypatch.delenv("LLAMAWRIGHT_STORE", raising=False)
        assert bootstrap.store_root(os.environ, sys.platform, Path.home()) == store_root()
        monkeypatch.setenv("LLAMAWRIGHT_STORE", "~/elsewhere")
        assert bootstrap.store_root(os.environ, sys.platform, Path.home()) == store_root()

    def _home(self, monkeypatch: pytest.MonkeyPatch, xdg: str | None) -> dict[str, str]:
        monkeypatch.setenv("HOME", str(HOME))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if xdg is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", xdg)
        return {} if xdg is None else {"XDG_CACHE_HOME": xdg}


class TestTheOnePackageToAdd:
    def test_debian_12(self) -> None:
        assert "apt install python3.11-venv" in bootstrap.venv_hint(DEBIAN, "3.11")

    def test_ubuntu_24_04(self) -> None:
        assert "apt install python3.12-venv" in bootstrap.venv_hint(UBUNTU, "3.12")

    def test_their_kin(self) -> None:
        assert "python3.12-venv" in bootstrap.venv_hint(MINT, "3.12")

    def test_a_newer_python_beside_the_systems_own(self) -> None:
        assert "python3.13-venv" in bootstrap.venv_hint(DEBIAN, "3.13")

    @pytest.mark.parametrize("release", [FEDORA, "", "nonsense\n=\n", 'NAME="like debian"\n'])
    def test_no_apt_where_there_is_none(self, release: str) -> None:
        assert bootstrap.venv_hint(release, "3.12") == ""


class TestLocation:
    def test_same_lock_same_place(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("LLAMAWRIGHT_STORE", str(tmp_path))
        assert bootstrap.locate("tool").root == bootstrap.locate("tool").root
        assert bootstrap.locate("tool").root.parent == tmp_path / "env"

    def test_tool_and_dev_live_apart(self) -> None:
        assert bootstrap.locate("tool").root != bootstrap.locate("dev").root

    def test_another_lock_another_place(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        before = bootstrap.locate("tool").root.name
        (tmp_path / "requirements").mkdir()
        (tmp_path / "requirements" / "tool.lock").write_text("nox==1\n")
        monkeypatch.setattr(bootstrap, "CHECKOUT", tmp_path)
        assert bootstrap.locate("tool").root.name != before

    def test_the_running_python_is_no_part_of_the_name(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = bootstrap.locate("tool").root
        monkeypatch.setattr(sys, "executable", "/opt/other/bin/python3.14")
        assert bootstrap.locate("tool").root == before

    def test_another_c_library_another_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = bootstrap.locate("tool").root
        monkeypatch.setattr(os, "confstr", lambda _name: "glibc 2.17", raising=False)
        assert bootstrap.locate("tool").root != before

    def test_musl_does_not_know_the_question(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_name: str) -> str:
            raise ValueError("unrecognized configuration name")

        monkeypatch.setattr(os, "confstr", refuse, raising=False)
        assert bootstrap.locate("tool").root.name.startswith("tool-")


class TestChildEnvironment:
    def test_the_checkout_comes_first_and_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONPATH", "/somewhere/else")
        monkeypatch.setenv("PYTHONHOME", "/nowhere")
        env = bootstrap.child_environment()
        assert env["PYTHONPATH"] == str(bootstrap.CHECKOUT / "src")
        assert "PYTHONHOME" not in env

    def test_everything_else_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VULKAN_SDK", "/sdk")
        assert bootstrap.child_environment()["VULKAN_SDK"] == "/sdk"


class TestPipWay:
    def test_this_python_has_a_way(self) -> None:
        assert bootstrap._pip_way() in {"venv", "pip"}

    @pytest.mark.parametrize(
        ("present", "pip", "way"),
        [
            ({"venv", "ensurepip", "pip"}, "23.0.1", "venv"),
            ({"venv", "pip"}, "23.0.1", "pip"),
            ({"venv", "pip"}, "22.3", "pip"),
            ({"venv", "pip"}, "22.2.2", ""),
            ({"venv"}, "", ""),
            ({"ensurepip", "pip"}, "23.0.1", ""),
            (set(), "", ""),
        ],
    )
    def test_by_what_is_there(
        self, monkeypatch: pytest.MonkeyPatch, present: set[str], pip: str, way: str
    ) -> None:
        import importlib.metadata
        import importlib.util
        from importlib.machinery import ModuleSpec

        def find(name: str) -> ModuleSpec | None:
            return ModuleSpec(name, None, origin="file") if name in present else None

        monkeypatch.setattr(importlib.util, "find_spec", find)
        monkeypatch.setattr(importlib.metadata, "version", lambda _name: pip)
        assert bootstrap._pip_way() == way

    def test_an_empty_folder_is_no_ensurepip(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Debian's venv package removed, its folder left behind: importable, and useless.
        import importlib.util
        from importlib.machinery import ModuleSpec

        def find(name: str) -> ModuleSpec:
            return ModuleSpec(name, None, origin=None if name == "ensurepip" else "file")

        monkeypatch.setattr(importlib.util, "find_spec", find)
        monkeypatch.setattr("importlib.metadata.version", lambda _name: "1.0")
        assert bootstrap._pip_way() == ""


class TestErrors:
    def test_the_last_line_is_the_command_lines_own(self) -> None:
        from llamawright.errors import ExitCode

        for code, kind in ((4, "venv-missing"), (6, "x"), (12, "y"), (13, "disk")):
            line = bootstrap.BootstrapError(code, kind, "what", "hint").last_line
            name = ExitCode(code).name.lower().replace("_", "-")
            assert line == f"llamawright: exit {code} ({name}: {kind})"

    def test_tell_names_the_cure(self, capsys: pytest.CaptureFixture[str]) -> None:
        bootstrap.BootstrapError(4, "k", "it broke", "mend it").tell()
        assert capsys.readouterr().err == "error: it broke\nhint: mend it\n"
