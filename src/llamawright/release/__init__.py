"""The release room: every target once, one gate, one folder that appears by one rename."""

from llamawright.release.files import link_or_copy
from llamawright.release.notes import read_changes
from llamawright.release.plan import (
    SIDECAR,
    FileRole,
    PlannedFile,
    PlannedTarget,
    ReleasePlan,
    archive_files,
    shared_files,
    wheel_files,
)
from llamawright.release.record import ReleasedFile, ReleaseRecord, read_record
from llamawright.release.run import Released, ReleaseRun, draft_of
from llamawright.release.source import write_source
from llamawright.release.steps import Attested, Built, Opened, Proved, StampedSource, Steps

__all__ = [
    "SIDECAR",
    "Attested",
    "Built",
    "FileRole",
    "Opened",
    "PlannedFile",
    "PlannedTarget",
    "Proved",
    "ReleasePlan",
    "ReleaseRecord",
    "ReleaseRun",
    "Released",
    "ReleasedFile",
    "StampedSource",
    "Steps",
    "archive_files",
    "draft_of",
    "link_or_copy",
    "read_changes",
    "read_record",
    "shared_files",
    "wheel_files",
    "write_source",
]
