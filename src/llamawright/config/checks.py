"""Rules on single values: digests, commits, addresses, names and paths."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from llamawright.config.document import Place

SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{7,40}")
FULL_COMMIT = re.compile(r"[0-9a-f]{40}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check_sha256(value: str, place: Place) -> None:
    """Refuse anything but 64 lower-case hex digits."""
    if not SHA256.fullmatch(value):
        raise place.refuse(
            f"{place.name} is no sha256",
            why=f"a sha256 has 64 lower-case hex digits, this has {len(value)} characters",
            hint="copy the output of sha256sum",
            kind="bad-value",
        )


def check_commit(value: str, place: Place, *, full: bool) -> None:
    """Refuse branch names and, when ``full``, abbreviated commits."""
    pattern, text = (FULL_COMMIT, "40") if full else (COMMIT, "7 to 40")
    if not pattern.fullmatch(value):
        raise place.refuse(
            f"{place.name} must be a commit of {text} hex digits",
            why=f"{value!r} can mean another commit tomorrow, or is no commit at all",
            hint="take the full id: git rev-parse HEAD",
            kind="bad-value",
        )


def check_size(value: int, place: Place) -> None:
    """Refuse sizes (bytes) that no file has."""
    if not 0 < value < 1 << 40:
        raise place.refuse(f"{place.name} is no size in bytes: {value}", kind="bad-value")


def check_positive(value: float, place: Place) -> None:
    """Refuse zero and less: limits and counts."""
    if value <= 0:
        raise place.refuse(f"{place.name} must be above zero, not {value}", kind="bad-value")


def check_name(value: str, place: Place) -> None:
    """Refuse names that cannot be part of a file name on every system."""
    if not NAME.fullmatch(value) or value.endswith("."):
        raise place.refuse(
            f"{place.name} cannot be {value!r}",
            why="it becomes part of file names",
            hint="letters, digits, . _ + - only, at most 64 of them",
            kind="bad-value",
        )


def check_relative(value: str, place: Place) -> None:
    """Refuse paths that lead out of the tree they are in."""
    path = PurePosixPath(value)
    if not value or "\\" in value or ":" in value or path.is_absolute() or ".." in path.parts:
        raise place.refuse(
            f"{place.name} must be a path inside the tree, with forward slashes: {value!r}",
            kind="bad-value",
        )


def check_url(value: str, place: Place) -> None:
    """Refuse addresses without transport security, except on this machine itself."""
    parts = urlsplit(value)
    secure = parts.scheme == "https" and parts.hostname
    local = parts.scheme == "http" and parts.hostname in LOOPBACK
    if not (secure or local) or parts.username or parts.password:
        raise place.refuse(
            f"{place.name} is no address that can be used: {value!r}",
            why="it must start with https:// and hold no password",
            kind="bad-value",
        )
