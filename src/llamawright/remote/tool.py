"""llamawright itself as one file to send: the checkout's own bytes, the same for the same."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import UsageError
from llamawright.model.remote import Parcel

PARTS = ("src", "recipes", "patches", "toolchains", "requirements", "bootstrap.py", "noxfile.py")
LEFT_OUT = frozenset({"__pycache__"})


def pack_tool(checkout: Path, folder: Path) -> Parcel:
    """Write the tool below ``folder`` and return it; raises ``UsageError`` outside a checkout."""
    if not (checkout / "bootstrap.py").is_file():
        raise UsageError(
            "a proof on another machine starts from a checkout of llamawright",
            why="the installed package has not got bootstrap.py, which makes its environment there",
            hint="clone the repository and run it from there",
            kind="no-checkout",
        )
    path = folder / "llamawright-tool.tar.gz"
    with (
        path.open("wb") as stream,
        gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in _files(checkout):
            data = file.read_bytes()
            member = tarfile.TarInfo(file.relative_to(checkout).as_posix())
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return parcel_of(path)


def parcel_of(path: Path, *, name: str = "") -> Parcel:
    """Return a file as something to send."""
    return Parcel(
        path=path, name=name or path.name, size=path.stat().st_size, sha256=sha256_file(path)
    )


def _files(checkout: Path) -> Iterator[Path]:
    for part in PARTS:
        root = checkout / part
        found = [root] if root.is_file() else sorted(root.rglob("*"))
        yield from (f for f in found if f.is_file() and not LEFT_OUT & set(f.parts))
