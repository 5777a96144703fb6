"""What is packed together, and the names and key that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from llamawright import __version__
from llamawright.digest import digest_data
from llamawright.model.built import BuiltTree
from llamawright.model.plan import PatchedTree, Plan
from llamawright.package.archive import archive_suffix
from llamawright.package.companion import PackedCompanion

TESTS = "-tests"
_EPOCH = "SOURCE_DATE_EPOCH"
# 1980-01-01, the oldest date that a zip file can hold.
_OLDEST = 315_532_800
# Part of every key of the shelf: raise it when packing changes what it makes.
_PACKING = 1


def artifact_name(plan: Plan, *, tests: bool) -> str:
    """Return the name of a plan's artifact, or of the one with the test programs."""
    return f"{plan.name}{TESTS}" if tests else plan.name


def artifact_file(plan: Plan, *, tests: bool) -> str:
    """Return the archive's file name."""
    return f"{artifact_name(plan, tests=tests)}{archive_suffix(plan.platform)}"


def artifact_key(plan: Plan, *, tests: bool) -> str:
    """Return the key of a packed artifact: all that can change its bytes.

    The plan's own keys cover source, patches, options and tools, and with them the trees.
    """
    said = (artifact_name(plan, tests=tests), plan.recipe.digest, date_of(plan))
    return digest_data([_PACKING, __version__, plan.host_key, plan.key, *said, *_cuda(plan)])


def _cuda(plan: Plan) -> list[object]:
    """Return what the manifest says of CUDA and no build depends on; paths are not part of it."""
    cuda = plan.cuda
    if cuda is None:
        return []
    return [cuda.toolkit, cuda.codes, cuda.driver, cuda.driver_jit, cuda.compression, cuda.bundled]


def date_of(plan: Plan) -> int:
    """Return the date of every file in the archive: the plan's, in seconds since 1970."""
    said = dict(plan.environment).get(_EPOCH, "")
    value = int(said) if said.isdecimal() else plan.recipe.source.timestamp
    return max(value, _OLDEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """What goes into an artifact: the host's files, the module's, the patched source.

    ``companion`` is the archive with CUDA's runtime libraries that it goes with.
    """

    plan: Plan
    patched: PatchedTree
    host: BuiltTree
    module: BuiltTree | None
    tests: bool = False
    companion: PackedCompanion | None = None

    @property
    def name(self) -> str:
        """Return the artifact's name."""
        return artifact_name(self.plan, tests=self.tests)

    @property
    def file_name(self) -> str:
        """Return the archive's file name."""
        return artifact_file(self.plan, tests=self.tests)

    @property
    def key(self) -> str:
        """Return the key of the packed artifact."""
        return artifact_key(self.plan, tests=self.tests)

    @property
    def timestamp(self) -> int:
        """Return the date of every file in the archive, in seconds since 1970."""
        return date_of(self.plan)
