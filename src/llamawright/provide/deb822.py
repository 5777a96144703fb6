"""The paragraph format of Debian's control files, package indexes and apt sources."""

from __future__ import annotations

from collections.abc import Iterator


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """Yield the paragraphs of a text; continuation lines are joined by newlines."""
    fields: dict[str, str] = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line.startswith("#"):
            continue
        elif line[0] in " \t":
            fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
