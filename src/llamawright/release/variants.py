"""Wheel variants (PEP 825 and 850, drafts): one version, several wheels, the fitting one.

Only on demand: the drafts forbid their own use in production, and no released installer
reads them. The variants stand in an index folder of their own, so the others are not
touched; the null variant, which any machine runs, is always among them.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from packaging.version import Version

from llamawright.errors import PackageError, ToolMissingError
from llamawright.model.platform import Backend
from llamawright.model.release import ReleaseRule, VariantRule
from llamawright.release.wheels import WheelFacts, dist_info, read_wheel

NULL_LABEL = "null"
VARIANT_FILE = "variant.json"
_VERSION = re.compile(rb"^Version:[^\r\n]*", re.MULTILINE)


def write_variants(
    folder: Path, wheels: Iterable[tuple[Backend, Path]], rule: ReleaseRule
) -> tuple[tuple[WheelFacts, ...], tuple[Path, ...]]:
    """Write every variant that ``rule`` names into ``folder``, and the index-level files.

    Returns the facts of the wheels and the ``…-variants.json`` files. Raises
    ``ToolMissingError`` without variantlib, ``PackageError`` when no wheel can be the null
    variant.
    """
    _library("api")
    folder.mkdir(parents=True, exist_ok=True)
    made = [
        _relabelled(path, variant, rule, folder)
        for backend, path in wheels
        for variant in labels_of(backend, rule)
    ]
    if not any(f.file.endswith(f"-{NULL_LABEL}.whl") for f, _ in made):
        raise PackageError(
            "there is no wheel for the null variant",
            why=f"it is made of the {rule.null_variant} wheel, and the release has none",
            hint="add a runtime-wheel target of that backend, or leave out --variants",
            kind="no-null-variant",
        )
    return tuple(f for f, _ in made), _index_files(folder, made)


def labels_of(backend: Backend, rule: ReleaseRule) -> tuple[VariantRule, ...]:
    """Return the variants that a backend's wheels become."""
    null = VariantRule(label=NULL_LABEL, backend=backend, properties=())
    named = tuple(v for v in rule.variants if v.backend is backend)
    return (null, *named) if backend is rule.null_variant else named


def variant_name(wheel: str, label: str) -> str:
    """Return a variant's file name: the public version, and the label at the end."""
    name, version, *tags = wheel.removesuffix(".whl").split("-")
    return "-".join((name, Version(version).public, *tags, label)) + ".whl"


def _library(module: str) -> ModuleType:
    try:
        return importlib.import_module(f"variantlib.{module}")
    except ImportError as error:
        raise ToolMissingError(
            "wheel variants need the package variantlib",
            why="it holds the drafts' file format; it is not installed",
            hint="pip install 'llamawright[variants]', or leave out --variants",
            kind="no-variantlib",
        ) from error


def _relabelled(
    path: Path, variant: VariantRule, rule: ReleaseRule, folder: Path
) -> tuple[WheelFacts, str]:
    text = _variant_json(variant, rule)
    dest = folder / variant_name(path.name, variant.label)
    # A variant's name has one part more than a wheel's: it is checked under a wheel's name.
    plain = dest.with_name(dest.name.replace(f"-{variant.label}.whl", ".whl"))
    _rewrite(path, plain, text.encode())
    facts = read_wheel(plain)
    plain.replace(dest)
    return replace(facts, file=dest.name), text


def _variant_json(variant: VariantRule, rule: ReleaseRule) -> str:
    """Return a wheel's own ``variant.json``."""
    library, infos = _library("api"), _library("models.variant_info")
    providers = {p.namespace: infos.ProviderInfo(requires=list(p.requires)) for p in rule.providers}
    info = infos.VariantInfo(namespace_priorities=list(providers), providers=providers)
    properties = [library.VariantProperty.from_str(p) for p in variant.properties]
    described = library.VariantDescription(properties, label=variant.label)
    return str(library.make_variant_dist_info(described, info)) + "\n"


def _index_files(folder: Path, made: Iterable[tuple[WheelFacts, str]]) -> tuple[Path, ...]:
    """Write one index-level file for each version, all its variants joined."""
    read = _library("variant_dist_info").VariantDistInfo
    joined: dict[str, list[str]] = {}
    for facts, text in made:
        name = f"{'-'.join(facts.file.split('-')[:2])}-variants.json"
        joined.setdefault(name, []).append(text)
    for name, texts in joined.items():
        whole = read(texts[0])
        for text in texts[1:]:
            whole.merge(read(text))
        (folder / name).write_text(f"{whole.to_str()}\n", encoding="utf-8", newline="\n")
    return tuple(folder / name for name in sorted(joined))


def _rewrite(source: Path, dest: Path, variant: bytes) -> None:
    """Copy a wheel under its public version, with ``variant.json`` and a RECORD that fits."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(dest, "w") as new:
        before = dist_info(old.namelist())
        stem, version = before.removesuffix(".dist-info").rsplit("-", 1)
        public = Version(version).public
        after = f"{stem}-{public}.dist-info"
        rows: list[tuple[str, str, str]] = []
        for info in old.infolist():
            name = _moved(info.filename, f"{stem}-{version}.", f"{stem}-{public}.")
            if name in {f"{after}/RECORD", f"{after}/{VARIANT_FILE}"} or info.is_dir():
                continue
            data = old.read(info)
            if name == f"{after}/METADATA":
                data = _VERSION.sub(f"Version: {public}".encode(), data, count=1)
            rows.append(_put(new, info, name, data))
        like = old.getinfo(f"{before}/METADATA")
        rows.append(_put(new, like, f"{after}/{VARIANT_FILE}", variant))
        _put(new, like, f"{after}/RECORD", _record([*rows, (f"{after}/RECORD", "", "")]))


def _moved(name: str, before: str, after: str) -> str:
    """Return a member's name below the folder of the other version."""
    folders = (f"{before}dist-info/", f"{before}data/")
    return f"{after}{name.removeprefix(before)}" if name.startswith(folders) else name


def _put(
    wheel: zipfile.ZipFile, like: zipfile.ZipInfo, name: str, data: bytes
) -> tuple[str, str, str]:
    """Add a member with another's date and mode; return its row of RECORD."""
    info = zipfile.ZipInfo(name, like.date_time)
    info.external_attr, info.create_system = like.external_attr, like.create_system
    info.compress_type = like.compress_type
    wheel.writestr(info, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", str(len(data))


def _record(rows: Iterable[tuple[str, str, str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
