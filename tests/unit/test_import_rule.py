"""The shape of the house, read from the syntax trees: who imports whom, sizes, names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "llamawright"
FOUNDATION = {"model", "process", "store", "transfer", "errors", "digest", "codec", "paths"}
ROOMS = {
    "config", "detect", "resolve", "provide", "fetch", "patching", "build", "package", "verify",
    "release", "remote", "upstream", "attest",
}  # fmt: skip
KNOWS_ALL = {"pipeline", "cli", "console", "stamp", "__main__", "__init__"}
MAY_IMPORT = {
    "model": set[str](),
    "errors": set[str](),
    "digest": set[str](),
    "paths": set[str](),
    "codec": {"digest"},
    "process": {"errors", "model"},
    "process_guard": set[str](),
    "store": {"model", "errors", "digest", "codec", "paths", "process"},
    "transfer": {"model", "errors", "digest", "codec", "paths", "process", "store"},
    "stamp": {"model", "errors", "digest", "codec", "paths"},
    "console": {"model", "errors"},
    **dict.fromkeys(ROOMS, FOUNDATION),
}
SYSTEM_KNOWERS = {"detect", "process", "paths"}
BANNED_NAMES = {"manager", "helper", "helpers", "util", "utils", "misc", "common", "base"}
MODULE_LINES = 400
MEDIAN_LINES = 150
FUNCTION_LINES = 40
TEST_RATIO = 1.3

MODULES = sorted(PACKAGE.rglob("*.py"))
FRONT = [ROOT / "noxfile.py", ROOT / "bootstrap.py", *sorted((ROOT / "docs").glob("*.py"))]
FRONT += sorted((ROOT / "bench").glob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def top(path: Path) -> str:
    """Return the room or foundation module that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Yield what a module imports of ours: the part after ``llamawright``, and the line."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names=names):
                modules = [n.name for n in names]
            case ast.ImportFrom(level=0, module=str(module), names=names):
                whole = module == "llamawright"
                modules = [f"{module}.{n.name}" for n in names] if whole else [module]
            case ast.ImportFrom():
                pytest.fail(f"{path}:{node.lineno}: relative import")
            case _:
                continue
        for name in modules:
            parts = name.split(".")
            if parts[0] == "llamawright" and len(parts) > 1:
                yield parts[1], getattr(node, "lineno", 0)


def ids(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_imports_only_what_the_rule_allows(path: Path) -> None:
    own = top(path)
    if own in KNOWS_ALL - MAY_IMPORT.keys():
        return
    assert own in MAY_IMPORT, f"{own} is no room: add it to the map in CONTRIBUTING.md and here"
    allowed = MAY_IMPORT[own] | {own, "__version__"}
    wrong = [f"line {line}: {name}" for name, line in imported(path) if name not in allowed]
    assert not wrong


def test_the_rule_sees_a_forbidden_import(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(
        "def f():\n    from llamawright.verify import report\n    import llamawright.cli\n"
    )
    assert list(imported(sample)) == [("verify", 2), ("cli", 3)]


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_module_is_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


def test_half_of_the_modules_are_tiny() -> None:
    sizes = sorted(len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES)
    assert sizes[len(sizes) // 2] <= MEDIAN_LINES


@pytest.mark.parametrize("path", [*MODULES, *FRONT], ids=ids)
def test_functions_are_short(path: Path) -> None:
    functions = [n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef)]
    sizes = {f"{f.name}:{f.lineno}": (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions}
    assert not {name: size for name, size in sizes.items() if size > FUNCTION_LINES}


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_only_three_places_ask_for_the_system(path: Path) -> None:
    if top(path) in SYSTEM_KNOWERS:
        return
    asked = [
        n.lineno
        for n in ast.walk(tree(path))
        if isinstance(n, ast.Attribute)
        and isinstance(n.value, ast.Name)
        and (n.value.id, n.attr) in {("sys", "platform"), ("os", "name"), ("os", "uname")}
    ]
    assert not asked, "pass the Platform in, or ask in detect/"


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_names_say_what_is_inside(path: Path) -> None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    assert not {word for part in parts for word in part.split("_")} & BANNED_NAMES


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_only_the_process_room_starts_processes(path: Path) -> None:
    # The second is no part of this program: it is sent, and runs alone on another machine.
    if top(path) == "process" or path == PACKAGE / "remote" / "far_side.py":
        return
    started = [
        n.lineno
        for n in ast.walk(tree(path))
        if isinstance(n, ast.Import) and any(a.name == "subprocess" for a in n.names)
    ]
    assert not started, "use llamawright.process"


def test_no_module_level_state_is_mutable() -> None:
    found = []
    for path in MODULES:
        for node in tree(path).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            names = node.targets if isinstance(node, ast.Assign) else []
            names_only = [n.id for n in names if isinstance(n, ast.Name)]
            constant = all(n == "__all__" or n.strip("_").isupper() for n in names_only)
            if isinstance(value, ast.List | ast.Dict | ast.Set) and not constant:
                found.append(f"{ids(path)}:{node.lineno}")
    assert not found


def test_tests_outweigh_the_source() -> None:
    source = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES)
    tests = [p for p in (ROOT / "tests").rglob("*") if p.suffix in (".py", ".toml")]
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in tests)
    assert lines >= TEST_RATIO * source


def test_test_modules_have_names_of_their_own() -> None:
    names = [p.name for p in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
