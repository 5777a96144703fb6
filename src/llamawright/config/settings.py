"""Where a setting was said: command line, environment, settings file, default."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llamawright.config.document import Place, load_document
from llamawright.config.typed import refuse_unknown
from llamawright.errors import UsageError

PREFIX = "LLAMAWRIGHT_"
SETTINGS_NAME = "llamawright.toml"
OTHER_VARIABLES = ("STORE", "DEBIAN_MIRROR", "STOPPED_BY")
"""Variables of ours that are no part of a request."""
NEAR = 0.75
POSITIONAL = {"backend": "command line", "archs": "--arch"}


@dataclass(frozen=True, slots=True)
class Said:
    """One value as it was written, where, and how to complain about it."""

    name: str
    value: object
    origin: str
    base: Path
    place: Place | None = None

    def refuse(self, problem: str, *, why: str = "", hint: str = "") -> UsageError:
        """Return the error that names the setting and where it was said."""
        if self.place is not None:
            return self.place.refuse(problem, why=why, hint=hint, kind="bad-value")
        return UsageError(f"{self.origin}: {problem}", why=why, hint=hint, kind="bad-value")


def gather(
    names: tuple[str, ...],
    flags: Mapping[str, object],
    *,
    env: Mapping[str, str],
    settings_file: Path | None,
    cwd: Path,
) -> dict[str, Said]:
    """Return what was said about each setting: flags first, then environment, then file.

    Flags that are no settings (``--json``) belong to the command line and are skipped. A
    variable of ours that is nearly a setting's name is refused: a typing error there
    would otherwise be ignored without a word.
    """
    said = _file(names, settings_file)
    said.update(_environment(names, env, cwd))
    for name in names:
        value = flags.get(name)
        if value is not None:
            said[name] = Said(name, value, POSITIONAL.get(name) or _flag(name), cwd)
    return said


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _file(names: tuple[str, ...], path: Path | None) -> dict[str, Said]:
    if path is None or not path.is_file():
        return {}
    document = load_document(path)
    place = Place(document)
    refuse_unknown(document.data, names, place)
    return {
        n: Said(n, v, f"{path.name}:{document.line_of((n,))}", path.parent, place.at(n))
        for n, v in document.data.items()
    }


def _environment(names: tuple[str, ...], env: Mapping[str, str], cwd: Path) -> dict[str, Said]:
    said: dict[str, Said] = {}
    known = {PREFIX + n.upper(): n for n in names}
    others = {PREFIX + n for n in OTHER_VARIABLES}
    for variable, value in env.items():
        if variable in known and value:
            said[known[variable]] = Said(known[variable], value, f"${variable}", cwd)
        elif variable.startswith(PREFIX) and variable not in {*known, *others}:
            near = difflib.get_close_matches(variable, [*known, *others], n=1, cutoff=NEAR)
            if near:
                raise UsageError(
                    f"${variable} is no setting",
                    why="a variable with a typing error would be ignored without a word",
                    hint=f"did you mean {near[0]}?",
                    kind="unknown-key",
                )
    return said
