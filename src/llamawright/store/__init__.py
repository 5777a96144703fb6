"""The content store: blobs by sha256, stamped entries, locks, journal, garbage collection."""

from llamawright.store.content import Entry, Store, work_lock
from llamawright.store.files import scratch_beside
from llamawright.store.gc import GcReport, Removal
from llamawright.store.guard import DISK_ERRORS, disk_guard
from llamawright.store.journal import Journal, Unfinished
from llamawright.store.locks import Holder

__all__ = [
    "DISK_ERRORS",
    "Entry",
    "GcReport",
    "Holder",
    "Journal",
    "Removal",
    "Store",
    "Unfinished",
    "disk_guard",
    "scratch_beside",
    "work_lock",
]
