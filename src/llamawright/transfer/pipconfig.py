"""Which Python index the user means: pip's configuration, and uv's variables.

The order of authority is pip's: environment, then ``$PIP_CONFIG_FILE``, site, user and
global files; in each file ``[download]`` over ``[global]``. uv's variables stand between
pip's variables and pip's files.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import PlatformDirs

from llamawright.errors import UsageError
from llamawright.transfer.request import HttpSettings

_FILE_NAMES = ("pip.conf", "pip.ini")
_SECTIONS = ("global", "download")
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
_DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Where to look for a Python package's file, and how to connect.

    ``indexes`` are simple-API roots, the main one first; empty main means the library's
    default. ``find_links`` are folders, files or pages that list files.
    """

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    http: HttpSettings = field(default_factory=HttpSettings)


def index_settings(env: Mapping[str, str], files: Iterable[Path]) -> IndexSettings:
    """Read the settings from an environment and configuration files, least important first."""
    merged = {**_from_files(files), **_from_uv(env), **_from_pip(env)}
    extra = merged.get("extra-index-url", "").split()
    main = [merged.get("index-url", "")]
    no_index = merged.get("no-index", "").lower() in _TRUE
    return IndexSettings(
        indexes=() if no_index else (*main, *extra),
        find_links=tuple(merged.get("find-links", "").split()),
        http=HttpSettings(
            cert=merged.get("cert", ""),
            client_cert=merged.get("client-cert", ""),
            proxy=merged.get("proxy", ""),
            trusted_hosts=tuple(merged.get("trusted-host", "").split()),
            timeout_s=_seconds(merged.get("timeout") or merged.get("default-timeout")),
        ),
    )


def user_settings() -> IndexSettings:
    """Return the settings in effect for this user on this machine."""
    return index_settings(os.environ, config_files(os.environ))


def config_files(env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the places of pip's configuration files, least important first."""
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    dirs = PlatformDirs("pip", appauthor=False, roaming=True, multipath=True)
    home = Path.home()
    # What pip calls global, then user, then site.
    folders = [Path(p) for p in dirs.site_config_dir.split(os.pathsep)]
    folders += [Path("/etc"), home / ".pip", home / "pip", home / ".config" / "pip"]
    folders += [dirs.user_config_path, Path(sys.prefix)]
    if env.get("VIRTUAL_ENV"):
        folders.append(Path(env["VIRTUAL_ENV"]))
    for folder in dict.fromkeys(folders):
        yield from (folder / name for name in _FILE_NAMES)
    if named:
        yield Path(named).expanduser()


def _from_files(files: Iterable[Path]) -> dict[str, str]:
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for path in files:
        for section, values in _sections(path):
            found[section].update(values)
    return {**found["global"], **found["download"]}


def _sections(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"), source=str(path))
    except OSError:
        return
    except (configparser.Error, UnicodeDecodeError) as error:
        raise UsageError(
            f"pip's configuration file {path} cannot be read",
            why=str(error).replace("\n", " "),
            hint="correct the file, or point PIP_CONFIG_FILE at another one",
            kind="pip-configuration",
        ) from error
    for section in _SECTIONS:
        if parser.has_section(section):
            items = parser.items(section)
            yield section, {_normal(k): v.strip() for k, v in items if v and v.strip()}


def _from_pip(env: Mapping[str, str]) -> dict[str, str]:
    return {
        _normal(name.removeprefix("PIP_")): value.strip()
        for name, value in env.items()
        if name.startswith("PIP_") and value.strip()
    }


def _from_uv(env: Mapping[str, str]) -> dict[str, str]:
    main = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL") or ""
    extra = " ".join(env.get(n, "") for n in ("UV_INDEX", "UV_EXTRA_INDEX_URL"))
    found = {
        "index-url": _address(main),
        "extra-index-url": " ".join(_address(part) for part in extra.split()),
        "find-links": env.get("UV_FIND_LINKS", "").replace(",", " "),
    }
    return {name: value.strip() for name, value in found.items() if value.strip()}


def _address(entry: str) -> str:
    """Return the address of a uv index entry, which may be ``name=address``."""
    name, sign, rest = entry.strip().partition("=")
    return rest if sign and "/" not in name and ":" not in name else entry.strip()


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").lstrip("-")


def _seconds(text: str | None) -> float:
    try:
        return max(1.0, float(text)) if text else _DEFAULT_TIMEOUT_S
    except ValueError:
        return _DEFAULT_TIMEOUT_S
