"""A wheel's bytes made to depend on nothing but its content.

scikit-build-core fixes dates and modes; the order of the metadata files is the file
system's, and the tag is known for good only after the finished wheel was measured.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import stat
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

from llamawright.package.wheels.naming import PYTHON_TAG
from llamawright.transfer.wheel import record_digest

_RUN = 0o755
_PLAIN = 0o644
_UNIX = 3
# zlib's own default: 9 takes twice the time for less than 1 %.
_LEVEL = 6


def rewrite(source: Path, dest: Path, *, platform_tag: str, date: int) -> None:
    """Write the members of ``source`` to ``dest``: sorted, one date, modes 644 and 755.

    The metadata comes last, as the specification recommends, RECORD at the very end.
    ``date`` is in seconds since 1970, and not before 1980.
    """
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(dest, "w") as new:
        members = [m for m in old.infolist() if not m.is_dir()]
        record = next(m.filename for m in members if m.filename.endswith(".dist-info/RECORD"))
        rows: list[tuple[str, str, str]] = []
        for member in sorted(members, key=lambda m: (_is_metadata(m.filename), m.filename)):
            if member.filename == record:
                continue
            data = old.read(member)
            if member.filename == record.replace("RECORD", "WHEEL"):
                data = _retagged(data, platform_tag)
            runs = bool((member.external_attr >> 16) & stat.S_IXUSR)
            _add(new, member.filename, data, _RUN if runs else _PLAIN, date)
            digest = record_digest(hashlib.sha256(data).digest())
            rows.append((member.filename, digest, str(len(data))))
        _add(new, record, _record([*rows, (record, "", "")]), _PLAIN, date)


def _is_metadata(name: str) -> bool:
    return name.partition("/")[0].endswith(".dist-info")


def _retagged(wheel: bytes, platform_tag: str) -> bytes:
    line = f"Tag: {PYTHON_TAG}-{platform_tag}"
    return re.sub(rb"^Tag: .*$", line.encode(), wheel, flags=re.MULTILINE)


def _record(rows: Iterable[tuple[str, str, str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _add(new: zipfile.ZipFile, name: str, data: bytes, mode: int, date: int) -> None:
    info = zipfile.ZipInfo(name, time.gmtime(date)[:6])
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFREG | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    new.writestr(info, data, compresslevel=_LEVEL)
