"""``toolchains/*.toml`` to ``Toolchains``: limits, known-bad versions, hints, provided sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from llamawright.config import checks
from llamawright.config.document import Place, load_document, suggestion
from llamawright.config.typed import read_table, refuse_unknown
from llamawright.digest import digest_data
from llamawright.errors import UsageError
from llamawright.model.inventory import Role
from llamawright.model.toolchain import (
    CudaDriver,
    Fact,
    Hint,
    KnownBad,
    Minimum,
    ProvidedFile,
    ProvidedSet,
    Registry,
    Toolchains,
)

LAYOUTS = (
    "debian-prefix", "debian-driver", "lunarg-tar", "lunarg-installer", "wheel", "cuda-wheels",
    "cuda-debian", "cuda-redist", "debian-layers", "debian-program",
    "debian-compiler", "debian-sysroot",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    name: str
    role: Role
    version: str
    layout: str
    platforms: tuple[str, ...]
    files: tuple[ProvidedFile, ...]
    licenses: tuple[str, ...]
    facts: dict[str, str] = field(default_factory=dict)
    glibc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    minimum: tuple[Minimum, ...] = ()
    known_bad: tuple[KnownBad, ...] = ()
    hint: tuple[Hint, ...] = ()
    set: tuple[_Set, ...] = ()
    debian_archives: tuple[str, ...] = ()
    cuda_driver: tuple[CudaDriver, ...] = ()


def load_toolchains(folder: Path) -> Toolchains:
    """Read every file of the folder; ``UsageError`` names file and line."""
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise UsageError(f"{folder} holds no toolchain file", kind="unreadable-file")
    files = [_load(path) for path in paths]
    sets = tuple(_provided(s) for f in files for s in f.set)
    names = [s.name for s in sets]
    doubled = next((n for n in names if names.count(n) > 1), None)
    if doubled:
        raise UsageError(f"{folder}: the set '{doubled}' is there twice", kind="bad-value")
    return Toolchains(
        minimums=tuple(m for f in files for m in f.minimum),
        known_bad=tuple(b for f in files for b in f.known_bad),
        hints=tuple(h for f in files for h in f.hint),
        sets=sets,
        debian_mirrors=tuple(a for f in files for a in f.debian_archives),
        digest=digest_data(files),
        cuda_drivers=tuple(d for f in files for d in f.cuda_driver),
    )


def _load(path: Path) -> _File:
    document = load_document(path)
    place = Place(document)
    file = read_table(_File, document.data, place)
    for number, minimum in enumerate(file.minimum):
        _check_version(minimum.version, place.at("minimum").at(number).at("version"))
    for number, bad in enumerate(file.known_bad):
        _check_versions(bad.versions, place.at("known_bad").at(number).at("versions"))
    for number, archive in enumerate(file.debian_archives):
        checks.check_url(archive, place.at("debian_archives").at(number))
    for number, driver in enumerate(file.cuda_driver):
        for key in ("cuda", "linux", "windows"):
            _check_version(getattr(driver, key), place.at("cuda_driver").at(number).at(key))
    for number, provided in enumerate(file.set):
        _check_set(provided, place.at("set").at(number))
    return file


def _provided(given: _Set) -> ProvidedSet:
    provided = ProvidedSet(
        name=given.name,
        role=given.role,
        version=given.version,
        layout=given.layout,
        platforms=given.platforms,
        files=given.files,
        facts=tuple(sorted(given.facts.items())),
        licenses=given.licenses,
        glibc=given.glibc,
    )
    return replace(provided, digest=digest_data(provided))


def _check_set(given: _Set, place: Place) -> None:
    checks.check_name(given.name, place.at("name"))
    if given.layout not in LAYOUTS:
        raise place.at("layout").refuse(
            f"there is no layout '{given.layout}'",
            hint=suggestion(given.layout, LAYOUTS),
            kind="bad-value",
        )
    if not given.files:
        raise place.refuse(f"the set '{given.name}' has no file", kind="bad-value")
    refuse_unknown(given.facts, [str(f) for f in Fact], place.at("facts"))
    for number, file in enumerate(given.files):
        _check_file(file, place.at("files").at(number))


def _check_file(file: ProvidedFile, place: Place) -> None:
    checks.check_size(file.size, place.at("size"))
    if file.sha256 or not file.published:
        checks.check_sha256(file.sha256, place.at("sha256"))
    if file.published:
        checks.check_url(file.published, place.at("published"))
    if file.registry is Registry.URL:
        checks.check_url(file.location, place.at("location"))
    else:
        checks.check_relative(file.location, place.at("location"))


def _check_version(text: str, place: Place) -> None:
    try:
        Version(text)
    except InvalidVersion as error:
        raise place.refuse(f"'{text}' is no version", kind="bad-value") from error


def _check_versions(text: str, place: Place) -> None:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise place.refuse(
            f"'{text}' names no versions", hint="e.g. ==13.2.51 or >=1.0,<1.2", kind="bad-value"
        ) from error
