"""What is packed together, and the names and key that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from llamawright import __version__
from llamawright.digest import digest_data
from llamawright.model.built import BuiltTree
from llamawright.model.plan import PatchedTree, Plan
from llamawright.package.archive import archive_suffix

TESTS = "-tests"
_EPOCH = "SOURCE_DATE_EPOCH"
# 1980-01-01, the oldest date that a zip file can hold.
_OLDEST = 315_532_800
# Part of every key of the shelf: raise it when packing changes what it makes.
_PACKING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """What goes into an artifact: the host's files, the module's, the patched source."""

    plan: Plan
    patched: PatchedTree
    host: BuiltTree
    module: BuiltTree | None
    tests: bool = False

    @property
    def name(self) -> str:
        """Return the artifact's name."""
        return f"{self.plan.name}{TESTS}" if self.tests else self.plan.name

    @property
    def file_name(self) -> str:
        """Return the archive's file name."""
        return f"{self.name}{archive_suffix(self.plan.platform)}"

    @property
    def key(self) -> str:
        """Return the key of the packed artifact: all that can change its bytes."""
        inputs = (self.plan.key, self.host.key, self.module.key if self.module else "")
        said = (self.plan.recipe.digest, self.patched.digest, self.name, self.timestamp)
        return digest_data([_PACKING, __version__, *inputs, *said])

    @property
    def timestamp(self) -> int:
        """Return the date of every file in the archive: the plan's, in seconds since 1970."""
        said = dict(self.plan.environment).get(_EPOCH, "")
        value = int(said) if said.isdecimal() else self.plan.recipe.source.timestamp
        return max(value, _OLDEST)
