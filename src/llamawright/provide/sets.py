"""A set on the store's shelf: downloaded, unpacked, proved, stamped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from llamawright.digest import plain
from llamawright.errors import LlamawrightError
from llamawright.model.ports import Reporter
from llamawright.model.toolchain import ProvidedSet, Toolchains
from llamawright.provide import cuda, debian, host_compiler, lunarg, sysroot, wheel
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


UNPACKERS: Mapping[str, Callable[[ProvidedSet, tuple[Path, ...], Path], None]] = {
    "debian-prefix": debian.unpack_prefix,
    "debian-driver": debian.unpack_driver,
    "debian-layers": debian.unpack_layers,
    "debian-program": debian.unpack_program,
    "debian-compiler": host_compiler.unpack_compiler,
    "debian-sysroot": sysroot.unpack_sysroot,
    "lunarg-tar": lunarg.unpack_tar,
    "lunarg-installer": lunarg.run_installer,
    "wheel": wheel.unpack_prefix,
    "cuda-wheels": cuda.unpack_wheels,
    "cuda-debian": cuda.unpack_debian,
    "cuda-redist": cuda.unpack_redist,
}


def unpack(provided: ProvidedSet, blobs: tuple[Path, ...], root: Path) -> None:
    """Unpack the files of a set into ``root`` as its layout says."""
    if provided.layout not in UNPACKERS:
        raise LlamawrightError(f"the layout {provided.layout} has no code")
    UNPACKERS[provided.layout](provided, blobs, root)


def _check(provided: ProvidedSet, root: Path, reporter: Reporter) -> None:
    prove(provided, root, unpacked_by=reporter)


def _as_record(provided: ProvidedSet) -> dict[str, object]:
    value = plain(provided)
    return dict(value) if isinstance(value, dict) else {}
