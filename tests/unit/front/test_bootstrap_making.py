"""Making the environment: what is run, what is left behind, what is never done twice."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import bootstrap
import pytest

if TYPE_CHECKING:
    from front_kit import FakeUv

pytest_plugins = ("front_kit",)

ONE = "import bootstrap; bootstrap.PROOFS['tool'] = 'import json'; "
MAIN = ONE + "import sys; sys.exit(bootstrap.main(['llamawright', '--version']))"
MAKE = ONE + "print(bootstrap.ensure_environment('tool'))"


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=bootstrap.CHECKOUT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def eventually(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def folders(store: Path) -> list[str]:
    return sorted(p.name for p in (store / "env").glob("*") if p.is_dir())


def became_what(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    became: list[tuple[list[str], dict[str, str]]] = []

    def become(command: list[str], env: dict[str, str]) -> int:
        became.append((command, env))
        return 0

    monkeypatch.setattr(bootstrap, "_become", become)
    return became


def test_first_call_makes_and_second_only_looks(uv: FakeUv, store: Path) -> None:
    python = bootstrap.ensure_environment("tool")
    assert python.exists()
    assert folders(store) == [bootstrap.locate("tool").root.name]
    again = bootstrap.ensure_environment("tool")
    assert again == python
    assert uv.made == 1


def test_the_lock_file_is_installed_with_hashes_and_wheels_only(uv: FakeUv) -> None:
    bootstrap.ensure_environment("tool")
    _venv, sync = uv.argvs
    assert sync[:2] == ["pip", "sync"]
    assert "--require-hashes" in sync
    assert sync[sync.index("--only-binary") + 1] == ":all:"
    assert sync[-1] == str(bootstrap.CHECKOUT / "requirements" / "tool.lock")
    assert not any("://" in word for word in sync)


def test_settings_that_would_mislead_pip_and_uv_are_not_passed_on(
    uv: FakeUv, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_TARGET", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "PIP_CONSTRAINT"):
        monkeypatch.setenv(name, "/wrong")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///the/users/own")
    bootstrap.ensure_environment("tool")
    env = uv.calls[0].env
    assert "/wrong" not in env.values()
    assert env["PIP_USER"] == "0"
    assert env["PIP_EXTRA_INDEX_URL"] == "file:///the/users/own"


def test_progress_is_told_and_stdout_stays_clean(
    uv: FakeUv, store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bootstrap.ensure_environment("tool")
    out, err = capfd.readouterr()
    assert out == ""
    assert "once" in err
    assert "pinned packages" in err
    assert str(store) in err


def test_leftovers_without_stamp_are_no_environment(uv: FakeUv, store: Path) -> None:
    root = bootstrap.locate("tool").root
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (root / "half").write_text("left by a run that died")
    bootstrap.ensure_environment("tool")
    assert uv.made == 1
    assert not (root / "half").exists()


@pytest.mark.parametrize("stamp", ["", "{", "[]", "{}", '{"interpreter": "python2.7"}', "null"])
def test_a_stamp_that_does_not_fit_means_anew(uv: FakeUv, stamp: str) -> None:
    bootstrap.ensure_environment("tool")
    (bootstrap.locate("tool").root / bootstrap.STAMP).write_text(stamp)
    bootstrap.ensure_environment("tool")
    assert uv.made == 2


def test_a_system_upgrade_that_moved_python_means_anew(uv: FakeUv, tmp_path: Path) -> None:
    python = bootstrap.ensure_environment("tool")
    moved = tmp_path / "python3.99"
    moved.write_text("#!/bin/sh\n")
    python.unlink()
    python.symlink_to(moved)
    assert not bootstrap.locate("tool").ready
    bootstrap.ensure_environment("tool")
    assert uv.made == 2


def test_a_python_that_is_gone_means_anew(uv: FakeUv, tmp_path: Path) -> None:
    python = bootstrap.ensure_environment("tool")
    python.unlink()
    python.symlink_to(tmp_path / Path(os.path.realpath(sys.executable)).name)
    bootstrap.ensure_environment("tool")
    assert uv.made == 2


class TestFailures:
    @pytest.mark.parametrize("step", ["venv", "pip sync"])
    def test_uv_failing_lets_pip_try(
        self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        uv.plan(fails=step, says="no route to the index")
        tried = []

        def with_pip(environment: bootstrap.Environment, *, only: bool) -> bool:
            assert not only
            assert not environment.root.exists()
            tried.append(environment)
            environment.python.parent.mkdir(parents=True)
            environment.python.symlink_to(os.path.realpath(sys.executable))
            return True

        monkeypatch.setattr(bootstrap, "_with_pip", with_pip)
        bootstrap.ensure_environment("tool")
        assert len(tried) == 1

    def test_both_failing_leaves_nothing(
        self, uv: FakeUv, store: Path, monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        uv.plan(fails="pip sync", says="hash mismatch")
        monkeypatch.setattr(bootstrap, "_with_pip", lambda _e, only: only)
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert caught.value.code == 6
        assert "proxy" in caught.value.hint
        assert "hash mismatch" in capfd.readouterr().err
        assert folders(store) == []

    def test_uv_failing_without_a_venv_module_is_no_missing_package(
        self, uv: FakeUv, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uv.plan(fails="pip sync")
        monkeypatch.setattr(bootstrap, "_pip_way", lambda: "")
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert (caught.value.code, caught.value.kind) == (6, "environment")
        assert folders(store) == []

    def test_a_user_without_a_home_is_told_to_name_a_store(
        self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def homeless() -> Path:
            raise RuntimeError("Could not determine home directory.")

        def refuse(path: Path, **_flags: object) -> None:
            assert path.parts[1] == "nonexistent"
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.delenv("LLAMAWRIGHT_STORE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", homeless)
        monkeypatch.setattr(Path, "mkdir", refuse)
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert "LLAMAWRIGHT_STORE" in caught.value.hint

    def test_no_uv_and_no_venv_module(
        self, no_uv: Path, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bootstrap, "_pip_way", lambda: "")
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert (caught.value.code, caught.value.kind) == (4, "venv-missing")
        assert "venv" in caught.value.hint
        assert folders(store) == []

    def test_pip_of_this_python_serves_an_environment_without_one(
        self, no_uv: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commands: list[list[str]] = []

        def run(command: list[str]) -> bool:
            commands.append(command)
            return True

        monkeypatch.setattr(bootstrap, "_run", run)
        monkeypatch.setattr(bootstrap, "_pip_way", lambda: "pip")
        assert bootstrap._with_pip(bootstrap.locate("tool"), only=True)
        venv, install = commands
        assert "--without-pip" in venv
        assert install[:4] == [sys.executable, "-m", "pip", "--python"]
        assert "--require-hashes" in install

    def test_an_environment_that_does_not_work_here_is_removed(
        self, uv: FakeUv, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bootstrap, "PROOFS", {"tool": "import not_there_at_all"})
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert (caught.value.code, caught.value.kind) == (4, "environment-broken")
        assert folders(store) == []

    def test_too_little_space_is_said_before_anything_is_fetched(
        self, uv: FakeUv, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usage = shutil.disk_usage("/")._replace(free=20 << 20)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert caught.value.code == 13
        assert "400 MiB" in str(caught.value)
        assert uv.calls == []

    def test_a_read_only_store_is_a_sentence(
        self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_arguments: object, **_flags: object) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(Path, "mkdir", refuse)
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool")
        assert caught.value.code == 13
        assert "LLAMAWRIGHT_STORE" in caught.value.hint


class TestOffline:
    def test_without_uv_it_is_refused(self, no_uv: Path, store: Path) -> None:
        with pytest.raises(bootstrap.BootstrapError) as caught:
            bootstrap.ensure_environment("tool", offline=True)
        assert (caught.value.code, caught.value.kind) == (6, "environment-missing")
        assert folders(store) == []

    def test_uv_may_have_all_in_its_cache(self, uv: FakeUv) -> None:
        bootstrap.ensure_environment("tool", offline=True)
        assert "--offline" in uv.argvs[1]

    def test_pip_is_never_tried(self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch) -> None:
        uv.plan(fails="pip sync")
        monkeypatch.setattr(bootstrap, "_with_pip", lambda *_a, **_k: pytest.fail("pip was run"))
        with pytest.raises(bootstrap.BootstrapError):
            bootstrap.ensure_environment("tool", offline=True)

    def test_a_ready_environment_needs_nobody(
        self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        python = bootstrap.ensure_environment("tool")
        monkeypatch.setenv("PATH", "/nowhere")
        assert bootstrap.ensure_environment("tool", offline=True) == python


class TestAtOnce:
    def test_two_processes_make_it_once(self, uv: FakeUv) -> None:
        uv.plan(sleep=0.3)
        runs = [start(MAKE), start(MAKE)]
        outputs = [run.communicate(timeout=30) for run in runs]
        assert [run.returncode for run in runs] == [0, 0]
        assert outputs[0][0] == outputs[1][0]
        assert uv.made == 1
        assert sum("waiting for another process" in err for _, err in outputs) == 1

    def test_killed_in_the_middle_the_next_run_makes_it(self, uv: FakeUv, store: Path) -> None:
        uv.plan(sleep=0.4)
        run = start(MAKE)
        eventually(lambda: len(uv.calls) == 2)
        run.kill()
        run.communicate()
        assert folders(store)
        assert not bootstrap.locate("tool").ready
        uv.plan()
        bootstrap.ensure_environment("tool")
        assert uv.made == 2
        assert bootstrap.locate("tool").ready

    def test_interrupted_it_leaves_nothing(self, uv: FakeUv, store: Path) -> None:
        uv.plan(sleep=0.5)
        run = start(MAIN)
        eventually(lambda: len(uv.calls) == 2)
        run.send_signal(signal.SIGINT)
        _out, err = run.communicate(timeout=20)
        assert run.returncode == 130
        assert err.splitlines()[-1] == "llamawright: exit 130 (interrupted: interrupted)"
        assert folders(store) == []


class TestKeeping:
    def test_used_is_noted_once_a_day(self, uv: FakeUv) -> None:
        bootstrap.ensure_environment("tool")
        stamp = bootstrap.locate("tool").root / bootstrap.STAMP
        hour_ago = time.time() - 3600
        os.utime(stamp, (hour_ago, hour_ago))
        bootstrap.ensure_environment("tool")
        assert stamp.stat().st_mtime == pytest.approx(hour_ago, abs=1)
        os.utime(stamp, (hour_ago - 86_400, hour_ago - 86_400))
        bootstrap.ensure_environment("tool")
        assert stamp.stat().st_mtime == pytest.approx(time.time(), abs=60)

    def test_long_unused_ones_go_when_a_new_one_comes(self, uv: FakeUv, store: Path) -> None:
        for name, days in (("tool-old", 61), ("tool-young", 5)):
            other = store / "env" / name
            other.mkdir(parents=True)
            (other / bootstrap.STAMP).write_text("{}")
            then = time.time() - days * 86_400
            os.utime(other / bootstrap.STAMP, (then, then))
        (store / "env" / "tool-somebodys").mkdir()
        bootstrap.ensure_environment("tool")
        kept = folders(store)
        assert "tool-old" not in kept
        assert {"tool-young", "tool-somebodys"} <= set(kept)


class TestMain:
    def test_llamawright_runs_the_command_line_itself(
        self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        became = became_what(monkeypatch)
        assert bootstrap.main(["llamawright", "verify", "x", "--json"]) == 0
        ((command, env),) = became
        assert command[1:] == ["-P", "-m", "llamawright", "verify", "x", "--json"]
        assert env["PYTHONPATH"].endswith("src")

    def test_sessions_go_to_nox(self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch) -> None:
        became = became_what(monkeypatch)
        bootstrap.main(["build-vulkan", "--jobs", "2"])
        ((command, _env),) = became
        noxfile = str(bootstrap.CHECKOUT / "noxfile.py")
        tail = ["-s", "build-vulkan", "--", "--jobs", "2"]
        assert command[1:] == ["-P", "-m", "nox", "-f", noxfile, *tail]

    def test_a_relative_store_means_the_folder_of_the_call(
        self, uv: FakeUv, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        became = became_what(monkeypatch)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("LLAMAWRIGHT_STORE", "near")
        bootstrap.main(["doctor"])
        ((_command, env),) = became
        assert env["LLAMAWRIGHT_STORE"] == str(tmp_path / "near")

    def test_a_failure_ends_with_code_and_class(
        self, no_uv: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert bootstrap.main(["build-vulkan", "--offline"]) == 6
        last = capsys.readouterr().err.splitlines()[-1]
        assert last == "llamawright: exit 6 (download: environment-missing)"
