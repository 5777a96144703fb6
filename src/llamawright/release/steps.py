"""What a release asks of the rest of the house, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from llamawright.model.verdict import State
from llamawright.release.plan import PlannedTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedSource:
    """The source archive's file name, and the digest of the tree inside."""

    file: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A target's files in the folder that it was given; ``artifact`` is the main one."""

    artifact: str
    companion: str = ""
    checksums: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """The verdict on an artifact: ``sha256`` is of the file that was run.

    ``verdict`` and ``reports`` are file names in the given folder.
    """

    state: State
    sha256: str
    verdict: str
    reports: tuple[str, ...] = ()
    device: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """Statements about an artifact (SBOM, provenance, verdict), in the given folder."""

    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a packed file says of itself when it is opened again, its audit included."""

    tree: str
    commit: str


class Steps(Protocol):
    """The work behind a release. Each writes only into the empty folder ``into``.

    The same inputs give the same bytes, but for a verdict, which tells of one run. All
    raise ``LlamawrightError``.
    """

    def stamp_source(self, into: Path) -> StampedSource:
        """Write the one source that every target is built from."""

    def build(self, target: PlannedTarget, source: Path, into: Path) -> Built:
        """Build, pack and audit a target; ``source`` is the stamped archive."""

    def prove(self, target: PlannedTarget, artifact: Path, into: Path) -> Proved:
        """Run the packed file on a device."""

    def attest(self, target: PlannedTarget, artifact: Path, verdict: Path, into: Path) -> Attested:
        """Write the statements about a proved artifact."""

    def reopen(self, target: PlannedTarget, artifact: Path) -> Opened:
        """Open a packed file strictly, as a user's tool would."""
