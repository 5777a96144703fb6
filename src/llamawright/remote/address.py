"""``ssh://[user@]host[:port]``: a machine as the user names it. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from llamawright.errors import UsageError
from llamawright.model.remote import Host

SCHEME = "ssh"
# What a name or an alias of ~/.ssh/config is made of. A leading dash would be an option.
NAME = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+\\-]*")


def parse_address(text: str) -> Host:
    """Return the host of an address; raises ``UsageError`` for what is none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _bad(text, str(error)) from None
    if parts.scheme != SCHEME:
        raise _bad(text, "it does not begin with ssh://")
    if parts.password is not None:
        raise _bad(text, "a password does not belong into a command line: use a key or an agent")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _bad(text, "nothing may follow the host and the port")
    name, user = parts.hostname or "", parts.username or ""
    if not NAME.fullmatch(name):
        raise _bad(text, f"{name!r} is no name of a host")
    if user and not USER.fullmatch(user):
        raise _bad(text, f"{user!r} is no name of a user")
    # urlsplit makes a host lower case; an alias in ~/.ssh/config may not be.
    start = text.casefold().rfind(name.casefold())
    return Host(name=text[start : start + len(name)], user=user, port=port)


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        f"{text} is no machine that ssh reaches",
        why=why,
        hint="--on ssh://host, or ssh://user@host:2222",
        kind="bad-address",
    )
