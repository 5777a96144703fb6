"""Two packed files compared byte for byte, every difference named by member and cause."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.errors import PackageError
from llamawright.model.repro import Cause, Compared, Differing
from llamawright.package.repro_content import classify
from llamawright.package.repro_members import (
    Header,
    changed_names,
    compare_headers,
    read_headers,
)

_ARCHIVES = (".zip", ".whl", ".tar", ".tar.zst", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")


def compare_files(a: Path, b: Path) -> Compared:
    """Compare two archives or wheels, or two single files.

    Raises ``PackageError`` when one is missing or is called an archive and is none.
    """
    for path in (a, b):
        if not path.is_file():
            raise PackageError(
                f"{path} is not there",
                hint="name two files: llamawright repro --files A B",
                kind="absent",
            )
    digests = sha256_file(a), sha256_file(b)
    packed = a.name.endswith(_ARCHIVES) and b.name.endswith(_ARCHIVES)
    ours = read_headers(a) if packed else ()
    found: tuple[Differing, ...] = ()
    if digests[0] != digests[1]:
        found = tuple(_archives(a, b, ours) if packed else classify(a.name, a, b))
    return Compared(
        a=a,
        b=b,
        sha256_a=digests[0],
        sha256_b=digests[1],
        members=len(ours) if packed else 1,
        differences=found,
    )


def _archives(a: Path, b: Path, ours: tuple[Header, ...]) -> Iterator[Differing]:
    theirs = read_headers(b)
    headers = tuple(compare_headers(ours, theirs))
    changed = changed_names(ours, theirs)
    yield from headers
    yield from _contents(a, b, changed)
    if not headers and not changed:
        detail = f"same members: {a.stat().st_size} | {b.stat().st_size} bytes"
        yield Differing(path="", cause=Cause.COMPRESSION, detail=detail)


def _contents(a: Path, b: Path, names: tuple[str, ...]) -> Iterator[Differing]:
    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
        sides = []
        for label, path in (("a", a), ("b", b)):
            spill = {name: Path(folder) / f"{label}{n}" for n, name in enumerate(names)}
            read_headers(path, spill)
            sides.append(spill)
        for name in names:
            yield from classify(name, sides[0][name], sides[1][name])
