"""bootstrap.py and the lock files as texts: what a stranger's machine will meet."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib

import bootstrap
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SOURCE = (bootstrap.CHECKOUT / "bootstrap.py").read_text(encoding="utf-8")
OLD = "import sys; sys.version_info = ({}, {}, 0, 'final', 0); exec(open(sys.argv[1]).read())"


def pins(name: str) -> dict[str, list[Requirement]]:
    """Return the requirements of a lock file, by project."""
    text = (bootstrap.CHECKOUT / "requirements" / name).read_text(encoding="utf-8")
    found: dict[str, list[Requirement]] = {}
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            wanted = Requirement(line.removesuffix("\\").strip())
            found.setdefault(canonicalize_name(wanted.name), []).append(wanted)
    return found


def test_an_old_python_can_read_it() -> None:
    ast.parse(SOURCE, feature_version=(3, 6))


def test_it_uses_the_standard_library_only() -> None:
    names = set()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.Import):
            names |= {a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    assert names <= set(sys.stdlib_module_names) | {"msvcrt"}


@pytest.mark.parametrize("version", [(3, 10), (3, 9), (3, 6)])
def test_an_old_python_is_told_so_in_a_sentence(version: tuple[int, int]) -> None:
    code = OLD.format(*version)
    path = str(bootstrap.CHECKOUT / "bootstrap.py")
    run = subprocess.run(
        [sys.executable, "-c", code, path], check=False, text=True, capture_output=True
    )
    lines = run.stderr.splitlines()
    assert run.returncode == 4
    assert "needs Python 3.11 or newer" in lines[0]
    assert f"is {version[0]}.{version[1]}" in lines[0]
    assert lines[-1] == "llamawright: exit 4 (tool-missing: python-too-old)"


@pytest.mark.parametrize("name", ["tool.lock", "dev.lock"])
class TestLockFiles:
    def test_every_package_is_pinned_and_hashed(self, name: str) -> None:
        text = (bootstrap.CHECKOUT / "requirements" / name).read_text(encoding="utf-8")
        for block in re.split(r"\n(?=\S)", text.strip()):
            head, *hashes = [line.strip().rstrip("\\ ") for line in block.splitlines()]
            assert re.match(r"^[a-z0-9._-]+==[^=*]+", head), head
            assert hashes, head
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", h) for h in hashes), head

    def test_no_index_and_no_path_is_named(self, name: str) -> None:
        text = (bootstrap.CHECKOUT / "requirements" / name).read_text(encoding="utf-8")
        assert "://" not in text
        assert "index" not in text
        assert "\\\\" not in text
        assert str(bootstrap.CHECKOUT) not in text

    def test_it_fits_what_the_project_asks_for(self, name: str) -> None:
        project = tomllib.loads((bootstrap.CHECKOUT / "pyproject.toml").read_text("utf-8"))
        asked = [Requirement(r) for r in project["project"]["dependencies"]]
        if name == "dev.lock":
            asked += [Requirement(r) for r in project["dependency-groups"]["dev"]]
        found = pins(name)
        for wanted in asked:
            versions = [str(p.specifier).lstrip("=") for p in found[canonicalize_name(wanted.name)]]
            assert all(wanted.specifier.contains(v, prereleases=True) for v in versions), wanted

    def test_a_project_has_one_version_on_any_one_machine(self, name: str) -> None:
        for project, wanted in pins(name).items():
            here = [w for w in wanted if w.marker is None or w.marker.evaluate()]
            assert len(here) <= 1, project


def test_tests_run_with_the_very_versions_that_users_get() -> None:
    tool, dev = pins("tool.lock"), pins("dev.lock")
    for project, wanted in tool.items():
        assert sorted(map(str, wanted)) == sorted(map(str, dev[project]))


def test_the_command_line_starts_from_any_folder(tmp_path: os.PathLike[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import bootstrap; print(bootstrap.CHECKOUT)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(bootstrap.CHECKOUT)},
        text=True,
        capture_output=True,
        check=True,
    )
    assert run.stdout.strip() == str(bootstrap.CHECKOUT)
