"""A set on the store's shelf: downloaded, unpacked, proved, stamped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from llamawright.digest import plain
from llamawright.errors import LlamawrightError
from llamawright.model.ports import Reporter
from llamawright.model.toolchain import ProvidedSet, Toolchains
from llamawright.provide import cuda, debian, lunarg, wheel
from llamawright.provide.files import fetch_files
from llamawright.provide.tools import RECORD, SHELF, prove
from llamawright.store import Store


def provide_set(
    provided: ProvidedSet,
    *,
    store: Store,
    toolchains: Toolchains,
    offline: bool,
    reporter: Reporter,
    env: Mapping[str, str] | None = None,
) -> Path:
    """Return the root of the unpacked set; made and proved once, then found.

    Raises ``DownloadError`` (offline: naming all that is missing) or ``ToolMissingError``
    when what was unpacked does not do its job on this machine.
    """
    environment = os.environ if env is None else env

    def make(root: Path) -> None:
        blobs = fetch_files(
            provided,
            store=store,
            toolchains=toolchains,
            offline=offline,
            reporter=reporter,
            env=environment,
        )
        reporter.info(f"unpacking {provided.name}")
        unpack(provided, blobs, root)

    entry = store.materialise(
        SHELF,
        provided.digest,
        make=make,
        check=lambda root: _check(provided, root, reporter),
        reporter=reporter,
        label=provided.name,
    )
    if entry.fresh or store.read_record(SHELF, provided.digest, RECORD) is None:
        store.write_record(SHELF, provided.digest, RECORD, _as_record(provided))
    return entry.root


def unpack(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack the files of a set into ``root`` as its layout says."""
    match provided.layout:
        case "debian-prefix":
            debian.unpack_prefix(provided, blobs, root)
        case "debian-driver":
            debian.unpack_driver(provided, blobs, root)
        case "lunarg-tar":
            lunarg.unpack_tar(provided, blobs, root)
        case "lunarg-installer":
            lunarg.run_installer(provided, blobs, root)
        case "wheel":
            wheel.unpack_prefix(provided, blobs, root)
        case "cuda-wheels":
            cuda.unpack_wheels(provided, blobs, root)
        case "cuda-debian":
            cuda.unpack_debian(provided, blobs, root)
        case "cuda-redist":
            cuda.unpack_redist(provided, blobs, root)
        case _:
            raise LlamawrightError(f"the layout {provided.layout} has no code")


def _check(provided: ProvidedSet, root: Path, reporter: Reporter) -> None:
    prove(provided, root, unpacked_by=reporter)


def _as_record(provided: ProvidedSet) -> dict[str, object]:
    value = plain(provided)
    return dict(value) if isinstance(value, dict) else {}
