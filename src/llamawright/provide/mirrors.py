"""Which Debian mirrors this machine uses, read from its own apt sources.

No mirror is named in our files: a machine inside a company has its own, and it is the one
that answers. ``LLAMAWRIGHT_DEBIAN_MIRROR`` names further ones, separated by blanks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from llamawright.provide.deb822 import stanzas

MIRROR_VARIABLE = "LLAMAWRIGHT_DEBIAN_MIRROR"
SUITES = frozenset({
    "stable", "oldstable", "oldoldstable", "testing", "unstable", "sid",
    "buster", "bullseye", "bookworm", "trixie", "forky", "duke",
})  # fmt: skip
COMPONENT = "main"


def debian_mirrors(*, env: Mapping[str, str], root: Path = Path("/")) -> tuple[str, ...]:
    """Return the base addresses of Debian archives, the user's own first, without doubles.

    Sources that cannot be read, are disabled, or belong to another vendor are passed over.
    """
    named = env.get(MIRROR_VARIABLE, "").split()
    found = [m.rstrip("/") for m in (*named, *_configured(root)) if _usable(m)]
    return tuple(dict.fromkeys(found))


def _configured(root: Path) -> Iterator[str]:
    folder = root / "etc" / "apt"
    parts = folder / "sources.list.d"
    for path in (folder / "sources.list", *sorted(parts.glob("*.list"))):
        yield from _expanded(_one_line(_text(path)), root)
    for path in sorted(parts.glob("*.sources")):
        yield from _expanded(_deb822(_text(path)), root)


def _one_line(text: str) -> Iterator[str]:
    """Yield the addresses of ``deb [options] address suite component …`` lines."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        if len(words) > 1 and words[1].startswith("["):
            closing = next((i for i, w in enumerate(words) if w.endswith("]")), len(words))
            del words[1 : closing + 1]
        if _is_debian(words[2:3], words[3:]):
            yield words[1]


def _deb822(text: str) -> Iterator[str]:
    """Yield the addresses of ``Types: deb`` stanzas."""
    for stanza in stanzas(text):
        fields = {k.lower(): v.split() for k, v in stanza.items()}
        enabled = fields.get("enabled", ["yes"])[:1] not in (["no"], ["false"], ["0"])
        types = fields.get("types", [])
        suites, components = fields.get("suites", []), fields.get("components", [])
        if enabled and "deb" in types and _is_debian(suites, components):
            yield from fields.get("uris", [])


def _is_debian(suites: list[str], components: list[str]) -> bool:
    bases = {s.partition("-")[0].partition("/")[0] for s in suites}
    return COMPONENT in components and bool(bases & SUITES)


def _expanded(addresses: Iterator[str], root: Path) -> Iterator[str]:
    """Follow ``mirror+file:/path``: a list of mirrors, one a line, as cloud images have it."""
    for address in addresses:
        scheme, _, rest = address.partition(":")
        if scheme == "mirror+file":
            lines = _text(root / rest.lstrip("/")).splitlines()
            yield from (line.split()[0] for line in lines if line.strip())
        else:
            yield address


def _usable(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https", "file"} and bool(parts.hostname or parts.path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
