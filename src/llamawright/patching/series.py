"""``patches/<upstream>/series.toml``: which patches there are, why, and for which source."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from llamawright import codec
from llamawright.digest import sha256_bytes
from llamawright.errors import PatchError
from llamawright.model.condition import fault
from llamawright.model.plan import PlannedPatch
from llamawright.model.recipe import SourcePin

SERIES = "series.toml"
TYPES = ("portability", "bugfix", "performance", "feature")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One file of a patch with the sha256 of its content before and after (empty: no file)."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One patch of ours.

    ``first_build`` and ``last_build`` bound the upstream build numbers it is for (0: no
    bound). ``needs`` are conditions such as ``vulkan-headers < 272``, all of which must hold.
    """

    name: str
    type: str
    reason: str
    upstream: str
    sha256: str
    targets: tuple[Target, ...]
    needs: tuple[str, ...] = ()
    first_build: int = 0
    last_build: int = 0

    @property
    def file(self) -> str:
        """Return the patch's file name."""
        return f"{self.name}.patch"

    def is_for(self, build_number: int) -> bool:
        """Whether the patch is meant for this upstream build."""
        early = build_number < self.first_build
        late = self.last_build and build_number > self.last_build
        return not early and not late


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """All patches of one upstream, in the order they are applied."""

    folder: Path
    patches: tuple[Patch, ...]

    def patch(self, name: str) -> Patch:
        """Return a patch by name; ``PatchError`` when the plan names another series'."""
        found = next((p for p in self.patches if p.name == name), None)
        if found is None:
            raise PatchError(f"the series has no patch {name}", kind="unknown-patch")
        return found

    def text(self, patch: Patch) -> bytes:
        """Return the patch's bytes, checked against the series' digest.

        Raises ``PatchError``: ``patch-missing``, ``patch-crlf`` or ``patch-changed``.
        """
        path = self.folder / patch.file
        if not path.is_file():
            raise PatchError(
                f"{path} is not there",
                why=f"the series names {patch.name}",
                hint="restore it from version control",
                kind="patch-missing",
            )
        data = path.read_bytes()
        if b"\r" in data:
            raise PatchError(
                f"{patch.file} has Windows line ends",
                why="its context can never match files with plain ones",
                hint="check it out again with core.autocrlf=false (.gitattributes says so), or "
                "convert it; the series' sha256 is over the file with plain line ends",
                kind="patch-crlf",
            )
        if sha256_bytes(data) != patch.sha256:
            raise PatchError(
                f"{patch.file} is not the file of the series",
                why=f"sha256 is {sha256_bytes(data)}, the series says {patch.sha256}",
                hint="after an edit on purpose: `llamawright patch refresh`",
                kind="patch-changed",
            )
        return data


def load_series(folder: Path, upstream: str) -> Series:
    """Read a series; an upstream without a folder has none. ``PatchError`` for a bad file."""
    path = folder / upstream / SERIES
    if not upstream or not path.parent.is_dir():
        return Series(folder=path.parent, patches=())
    if not path.is_file():
        raise _bad(path, "its folder is there, the file is not", kind="series-missing")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = table.pop("patch", [])
        patches = codec.decode(tuple[Patch, ...], rows, what=str(path))
    except ValueError as error:
        raise _bad(path, str(error)) from error
    faults = [f"{key}: unknown key; patches stand under [[patch]]" for key in sorted(table)]
    faults += _faults(patches)
    if faults:
        raise _bad(path, "\n".join(faults))
    return Series(folder=folder / upstream, patches=patches)


def _bad(path: Path, why: str, *, kind: str = "bad-series") -> PatchError:
    return PatchError(
        f"{path} cannot be used as a series",
        why=why,
        hint="restore it from version control, or correct it: docs/reference/patches.md",
        kind=kind,
    )


def _faults(patches: tuple[Patch, ...]) -> list[str]:
    faults = [f"{p.name}: type is {p.type}, not one of {TYPES}" for p in patches
              if p.type not in TYPES]  # fmt: skip
    faults += [f"{p.name}: {why}" for p in patches for n in p.needs if (why := fault(n))]
    faults += [f"{p.name}: a patch needs a reason" for p in patches if not p.reason.strip()]
    faults += [f"{p.name}: it changes no file" for p in patches if not p.targets]
    faults += [
        f"{p.name}: its name is no file name" for p in patches if Path(p.name).name != p.name
    ]
    names = [p.name for p in patches]
    return faults + [
        f"{n} stands there twice" for n in sorted({n for n in names if names.count(n) > 1})
    ]


def planned(series: Series, pin: SourcePin) -> tuple[PlannedPatch, ...]:
    """Return the patches that are meant for this source, as the plan takes them."""
    return tuple(
        PlannedPatch(name=p.name, sha256=p.sha256, type=p.type, reason=p.reason, needs=p.needs)
        for p in series.patches
        if p.is_for(pin.build_number)
    )
