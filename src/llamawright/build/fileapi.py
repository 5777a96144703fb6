"""CMake's File API, read typed: what CMake decided, not what it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import BuildError

CLIENT = "client-llamawright"
QUERY = {
    "requests": [
        {"kind": "codemodel", "version": 2},
        {"kind": "cache", "version": 2},
        {"kind": "toolchains", "version": 1},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target: its kind (``EXECUTABLE``, ``MODULE_LIBRARY`` …) and its definitions."""

    name: str
    type: str
    defines: tuple[str, ...]
    artifacts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """All that a configure run decided."""

    targets: tuple[Target, ...]
    cache: tuple[tuple[str, str], ...]
    compilers: tuple[tuple[str, str], ...]

    def entry(self, name: str) -> str | None:
        """Return a cache entry, or ``None`` when there is none of that name."""
        return dict(self.cache).get(name)

    def target(self, name: str) -> Target | None:
        """Return a target by name."""
        return next((t for t in self.targets if t.name == name), None)


def ask_for_reply(build: Path) -> None:
    """Write the query that the next configure run answers."""
    folder = build / ".cmake" / "api" / "v1" / "query" / CLIENT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "query.json").write_text(json.dumps(QUERY), encoding="utf-8")


def read_reply(build: Path) -> Reply:
    """Read the newest reply; ``BuildError`` when CMake gave none."""
    folder = build / ".cmake" / "api" / "v1" / "reply"
    indexes = sorted(folder.glob("index-*.json"))
    if not indexes:
        raise BuildError(
            "CMake answered no File API query",
            why=f"there is no reply in {folder}",
            hint="use CMake 3.24 or newer: --cmake FILE",
            kind="no-file-api",
        )
    index = json.loads(indexes[-1].read_text(encoding="utf-8"))
    answers = index["reply"][CLIENT]["query.json"]["responses"]
    named = {a["kind"]: json.loads((folder / a["jsonFile"]).read_text("utf-8")) for a in answers}
    return Reply(
        targets=_targets(folder, named["codemodel"]),
        cache=tuple((e["name"], e["value"]) for e in named["cache"]["entries"]),
        compilers=tuple(
            (t["language"], t["compiler"].get("path", ""))
            for t in named["toolchains"]["toolchains"]
        ),
    )


def _targets(
    folder: Path, codemodel: dict[str, list[dict[str, list[dict[str, str]]]]]
) -> tuple[Target, ...]:
    rows = codemodel["configurations"][0]["targets"]
    return tuple(_target(json.loads((folder / r["jsonFile"]).read_text("utf-8"))) for r in rows)


def _target(record: dict[str, object]) -> Target:
    groups = record.get("compileGroups", [])
    defines: dict[str, None] = {}
    for group in groups if isinstance(groups, list) else []:
        defines |= {d["define"]: None for d in group.get("defines", [])}
    artifacts = record.get("artifacts", [])
    return Target(
        name=str(record["name"]),
        type=str(record["type"]),
        defines=tuple(defines),
        artifacts=tuple(a["path"] for a in artifacts) if isinstance(artifacts, list) else (),
    )
