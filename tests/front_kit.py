"""A store with stand-ins: a uv that only writes down what it was told, a ready environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bootstrap
import pytest

UV = """#!/bin/sh
{{
    echo call
    for word in "$@"; do echo "arg=$word"; done
    env | sed 's/^/env=/'
}} >> '{log}'
step="$1"
[ "$1" = pip ] && step="pip $2"
sleep "${{FAKE_SLEEP:-0}}"
if [ "$step" = "${{FAKE_FAILS:-}}" ]; then
    echo "fake uv: ${{FAKE_SAYS:-no}}" >&2
    exit 1
fi
if [ "$step" = venv ]; then
    for root in "$@"; do :; done
    mkdir -p "$root/bin" && ln -s '{python}' "$root/bin/python"
fi
exit 0
"""


@dataclass(frozen=True)
class Call:
    """One run of the stand-in."""

    argv: list[str]
    env: dict[str, str]


@dataclass
class FakeUv:
    """A uv on PATH, and what it was asked."""

    log: Path
    monkeypatch: pytest.MonkeyPatch

    def plan(self, *, fails: str = "", says: str = "no", sleep: float = 0) -> None:
        self.monkeypatch.setenv("FAKE_FAILS", fails)
        self.monkeypatch.setenv("FAKE_SAYS", says)
        self.monkeypatch.setenv("FAKE_SLEEP", str(sleep))

    @property
    def calls(self) -> list[Call]:
        text = self.log.read_text() if self.log.exists() else ""
        found = []
        for block in text.split("call\n")[1:]:
            argv = [x.removeprefix("arg=") for x in block.splitlines() if x.startswith("arg=")]
            env = [x.removeprefix("env=") for x in block.splitlines() if x.startswith("env=")]
            pairs = (x.partition("=") for x in env)
            found.append(Call(argv, {k: v for k, _, v in pairs}))
        return found

    @property
    def argvs(self) -> Sequence[list[str]]:
        return [call.argv for call in self.calls]

    @property
    def made(self) -> int:
        return sum(argv[0] == "venv" for argv in self.argvs)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "st ore"
    monkeypatch.setenv("LLAMAWRIGHT_STORE", str(root))
    monkeypatch.setattr(bootstrap, "PROOFS", {"tool": "import json", "dev": "import json"})
    return root


@pytest.fixture
def uv(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    log = tmp_path / "uv.log"
    program.write_text(UV.format(python=os.path.realpath(sys.executable), log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return FakeUv(log, monkeypatch)


@pytest.fixture
def no_uv(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    return empty


INTERPRETER = """#!/bin/sh
echo "pwd=$(pwd)" > "$FAKE_OUT"
echo "path=$PYTHONPATH" >> "$FAKE_OUT"
for word in "$@"; do echo "word=$word" >> "$FAKE_OUT"; done
[ -n "$FAKE_LAST" ] && [ -n "$NOX_LLAMAWRIGHT_LAST_LINE" ] && \
    echo "$FAKE_LAST" > "$NOX_LLAMAWRIGHT_LAST_LINE"
exit "${FAKE_CODE:-0}"
"""


@dataclass
class FakePython:
    """An environment that stands already; its interpreter writes down what it was told."""

    out: Path
    monkeypatch: pytest.MonkeyPatch

    def ends(self, code: int, last: str = "") -> None:
        self.monkeypatch.setenv("FAKE_CODE", str(code))
        self.monkeypatch.setenv("FAKE_LAST", last)

    def _said(self, name: str) -> list[str]:
        lines = self.out.read_text().splitlines()
        return [x.partition("=")[2] for x in lines if x.startswith(f"{name}=")]

    @property
    def words(self) -> list[str]:
        return self._said("word")

    @property
    def folder(self) -> Path:
        return Path(self._said("pwd")[0])

    @property
    def path(self) -> str:
        return self._said("path")[0]


@pytest.fixture
def fake_python(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePython:
    for kind in ("tool", "dev"):
        environment = bootstrap.locate(kind)
        environment.python.parent.mkdir(parents=True)
        environment.python.write_text(INTERPRETER)
        environment.python.chmod(0o755)
        stamp = json.dumps({"interpreter": environment.python.name})
        (environment.root / bootstrap.STAMP).write_text(stamp)
    out = tmp_path / "said.txt"
    monkeypatch.setenv("FAKE_OUT", str(out))
    return FakePython(out, monkeypatch)
