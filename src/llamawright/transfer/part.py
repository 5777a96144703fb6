"""The part file: what came so far, and whether the rest may be appended to it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from llamawright.digest import sha256_file
from llamawright.store.files import flush_folder, move, read_json, write_json

_HTML_STARTS = (b"<!doctype html", b"<html")
_SNIFFED = 512


@dataclass(frozen=True, slots=True)
class Part:
    """A file that is being downloaded, beside the place where it will stand."""

    path: Path

    @property
    def size(self) -> int:
        """Return how many bytes are here."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def looks_like_html(self) -> bool:
        """Whether the bytes start as a web page does: a login or an error page."""
        with self.path.open("rb") as stream:
            start = stream.read(_SNIFFED).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return start.startswith(_HTML_STARTS)

    def validator(self, url: str) -> str:
        """Return the ETag or date these bytes had at that address, or nothing."""
        note = read_json(self._note)
        if note is None or note.get("address") != _mark(url):
            return ""
        return str(note.get("validator", ""))

    def begin(self, url: str, validator: str) -> IO[bytes]:
        """Start from nothing, and note what the bytes will be a part of."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        stream = self.path.open("wb")
        write_json(self._note, {"address": _mark(url), "validator": validator})
        return stream

    def resume(self) -> IO[bytes]:
        """Append to what is here."""
        return self.path.open("ab")

    def drop(self) -> None:
        """Keep nothing."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def sha256(self) -> str:
        """Return the sha256 of the bytes that are here."""
        return sha256_file(self.path)

    def settle(self, final: Path) -> None:
        """Flush the bytes to the disk and move them to their place by one rename."""
        with self.path.open("rb+") as stream:
            os.fsync(stream.fileno())
        final.parent.mkdir(parents=True, exist_ok=True)
        move(self.path, final)
        flush_folder(final.parent)
        self._note.unlink(missing_ok=True)

    @property
    def _note(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")


def _mark(url: str) -> str:
    # Addresses may hold passwords: only their digest goes to the disk.
    return hashlib.sha256(url.encode()).hexdigest()
