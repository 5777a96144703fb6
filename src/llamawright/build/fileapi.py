"""CMake's File API, read typed: what CMake decided, not what it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from llamawright.errors import BuildError

T = TypeVar("T")
CLIENT = "client-llamawright"
QUERY = {
    "requests": [
        {"kind": "codemodel", "version": 2},
        {"kind": "cache", "version": 2},
        {"kind": "toolchains", "version": 1},
        {"kind": "cmakeFiles", "version": 1},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Sources of one target that are compiled alike, in one language."""

    language: str
    flags: tuple[str, ...]
    defines: tuple[str, ...]
    includes: tuple[str, ...]
    standard: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target: its kind (``EXECUTABLE``, ``MODULE_LIBRARY`` …) and how it is compiled."""

    name: str
    type: str
    groups: tuple[Group, ...] = ()
    artifacts: tuple[str, ...] = ()

    @property
    def defines(self) -> frozenset[str]:
        """Return the names of all preprocessor definitions, without their values."""
        return frozenset(d.partition("=")[0] for g in self.groups for d in g.defines)

    @property
    def includes(self) -> frozenset[str]:
        """Return every include folder, as CMake wrote it."""
        return frozenset(i for g in self.groups for i in g.includes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The compiler of one language: path, CMake's id for it and its version."""

    language: str
    path: str
    id: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """All that a configure run decided. ``inputs`` are the CMake files it read."""

    targets: tuple[Target, ...]
    cache: tuple[tuple[str, str], ...]
    compilers: tuple[Compiler, ...]
    inputs: tuple[str, ...] = ()

    def entry(self, name: str) -> str | None:
        """Return a cache entry, or ``None`` when there is none of that name."""
        return dict(self.cache).get(name)

    def target(self, name: str) -> Target | None:
        """Return a target by name."""
        return next((t for t in self.targets if t.name == name), None)

    def compiler(self, language: str) -> Compiler | None:
        """Return the compiler of a language."""
        return next((c for c in self.compilers if c.language == language), None)


def ask_for_reply(build: Path) -> None:
    """Write the query that the next configure run answers."""
    folder = build / ".cmake" / "api" / "v1" / "query" / CLIENT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "query.json").write_text(json.dumps(QUERY), encoding="utf-8")


def read_reply(build: Path) -> Reply:
    """Read the newest reply; ``BuildError`` when CMake gave none, or not a whole one."""
    folder = build / ".cmake" / "api" / "v1" / "reply"
    indexes = sorted(folder.glob("index-*.json"))
    if not indexes:
        raise _no_answer(f"there is no reply in {folder}")
    try:
        index = _load(_Index, indexes[-1])
        answers = {r.kind: folder / r.jsonFile for r in index.reply[CLIENT]["query.json"].responses}
        return _reply(folder, answers)
    except (KeyError, ValueError, OSError) as error:
        raise _no_answer(f"{indexes[-1].name} is not what is expected: {error}") from error


# The shapes of CMake's JSON, field names as CMake writes them (cmake-file-api manual).
# Only what is read is named; CMake adds fields in every version.
@dataclass
class _Response:
    kind: str
    jsonFile: str  # noqa: N815 - CMake's spelling


@dataclass
class _Answers:
    responses: list[_Response]


@dataclass
class _Index:
    reply: dict[str, dict[str, _Answers]]


@dataclass
class _Named:
    name: str
    value: str


@dataclass
class _Cache:
    entries: list[_Named]


@dataclass
class _File:
    path: str


@dataclass
class _Inputs:
    inputs: list[_File]


@dataclass
class _CompilerFacts:
    path: str = ""
    id: str = ""
    version: str = ""


@dataclass
class _Toolchain:
    language: str
    compiler: _CompilerFacts


@dataclass
class _Toolchains:
    toolchains: list[_Toolchain]


@dataclass
class _TargetFile:
    jsonFile: str  # noqa: N815 - CMake's spelling


@dataclass
class _Configuration:
    targets: list[_TargetFile]


@dataclass
class _Codemodel:
    configurations: list[_Configuration]


@dataclass
class _Fragment:
    fragment: str


@dataclass
class _Define:
    define: str


@dataclass
class _Standard:
    standard: str = ""


@dataclass
class _CompileGroup:
    language: str
    compileCommandFragments: list[_Fragment] = field(default_factory=list)  # noqa: N815
    defines: list[_Define] = field(default_factory=list)
    includes: list[_File] = field(default_factory=list)
    languageStandard: _Standard = field(default_factory=_Standard)  # noqa: N815


@dataclass
class _TargetFacts:
    name: str
    type: str
    compileGroups: list[_CompileGroup] = field(default_factory=list)  # noqa: N815
    artifacts: list[_File] = field(default_factory=list)


def _reply(folder: Path, answers: dict[str, Path]) -> Reply:
    codemodel = _load(_Codemodel, answers["codemodel"])
    files = [folder / t.jsonFile for t in codemodel.configurations[0].targets]
    toolchains = _load(_Toolchains, answers["toolchains"]).toolchains
    return Reply(
        targets=tuple(_target(_load(_TargetFacts, f)) for f in files),
        cache=tuple((e.name, e.value) for e in _load(_Cache, answers["cache"]).entries),
        compilers=tuple(
            Compiler(
                language=t.language,
                path=t.compiler.path,
                id=t.compiler.id,
                version=t.compiler.version,
            )
            for t in toolchains
        ),
        inputs=tuple(i.path for i in _load(_Inputs, answers["cmakeFiles"]).inputs),
    )


def _target(facts: _TargetFacts) -> Target:
    groups = (
        Group(
            language=g.language,
            flags=tuple(f.fragment for f in g.compileCommandFragments),
            defines=tuple(d.define for d in g.defines),
            includes=tuple(i.path for i in g.includes),
            standard=g.languageStandard.standard,
        )
        for g in facts.compileGroups
    )
    artifacts = tuple(a.path for a in facts.artifacts)
    return Target(name=facts.name, type=facts.type, groups=tuple(groups), artifacts=artifacts)


def _load(kind: type[T], path: Path) -> T:
    return TypeAdapter(kind).validate_json(path.read_bytes(), extra="ignore")


def _no_answer(why: str) -> BuildError:
    return BuildError(
        "CMake's answer about the build cannot be read",
        why=why,
        hint="use CMake 3.24 or newer: --cmake FILE",
        kind="no-file-api",
    )
