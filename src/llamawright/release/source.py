"""The stamped source: one archive of the pinned tree and its patches, the same bytes anywhere."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from llamawright import codec
from llamawright.digest import list_files, sha256_file, tree_digest
from llamawright.errors import PackageError

STAMP = "llamawright-source.json"
PATCHES = "llamawright-patches"
# As for the artifacts' own archives: see package/archive.py. One thread: the same anywhere.
_LEVEL = 10
_MODE, _RUN_MODE = 0o644, 0o755


def write_source(
    dest: Path,
    tree: Path,
    *,
    patches: Iterable[Path],
    stamp: dict[str, object],
    digest: str,
    date: int,
) -> None:
    """Write ``tree``, ``patches`` (files) and a stamp into the archive ``dest``.

    ``date`` in seconds since the epoch is every member's. Raises ``PackageError`` when the
    tree is not the one of ``digest``: the archive must not promise what it does not hold.
    """
    names = list_files(tree)
    seen = tree_digest(tree, names)
    if seen != digest:
        raise PackageError(
            "the source in the store is not the pinned one",
            why=f"its tree digest is {seen}, not {digest}",
            hint=f"remove {tree} and run the same command: it is fetched again",
            kind="source-changed",
        )
    top = dest.name.removesuffix(".tar.zst")
    files: dict[str, Path | bytes] = {name: tree / name for name in names}
    kept = {f"{PATCHES}/{p.name}": p for p in patches}
    told = {**stamp, "tree": digest, "patches": {n: sha256_file(p) for n, p in kept.items()}}
    files |= {**kept, STAMP: codec.encode(told).encode()}
    _write(dest, top, files, date)


def _write(dest: Path, top: str, files: dict[str, Path | bytes], date: int) -> None:
    import zstandard  # noqa: PLC0415 - takes 20 ms; a plan must not pay

    compressor = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, write_checksum=True
        )
    )
    with (
        dest.open("wb") as stream,
        compressor.stream_writer(stream, closefd=False) as squeezed,
        # PAX only where USTAR is too short: the same names give the same bytes.
        tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for folder in _folders(top, files):
            tar.addfile(_info(folder, date, tarfile.DIRTYPE, _RUN_MODE))
        for name in sorted(files):
            _add(tar, f"{top}/{name}", files[name], date)


def _add(tar: tarfile.TarFile, name: str, content: Path | bytes, date: int) -> None:
    if isinstance(content, bytes):
        info = _info(name, date, tarfile.REGTYPE, _MODE)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    elif content.is_symlink():
        info = _info(name, date, tarfile.SYMTYPE, 0o777)
        info.linkname = content.readlink().as_posix()
        tar.addfile(info)
    else:
        # The owner's bit alone: the others follow the umask of whoever unpacked it.
        executable = bool(content.stat().st_mode & 0o100)
        info = _info(name, date, tarfile.REGTYPE, _RUN_MODE if executable else _MODE)
        info.size = content.stat().st_size
        with content.open("rb") as stream:
            tar.addfile(info, stream)


def _info(name: str, date: int, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime, info.type, info.mode = date, kind, mode
    return info


def _folders(top: str, names: Iterable[str]) -> list[str]:
    parents = {p.as_posix() for n in names for p in PurePosixPath(top, n).parents}
    return sorted(parents - {"."})
