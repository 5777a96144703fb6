"""``recipes/<name>.toml`` to a ``Recipe``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from llamawright.config import checks
from llamawright.config.document import Place, load_document, suggestion
from llamawright.config.options import read_options
from llamawright.config.release_rules import check_release
from llamawright.config.type_rules import check_types
from llamawright.config.typed import read_table
from llamawright.digest import sha256_bytes
from llamawright.errors import UsageError
from llamawright.model.cuda import parse_code
from llamawright.model.platform import Backend
from llamawright.model.recipe import (
    ArchiveOrigin,
    BackendRule,
    Capability,
    CudaRule,
    GitOrigin,
    IndexOrigin,
    Origin,
    Recipe,
    SourcePin,
    Threshold,
    Verification,
)
from llamawright.model.release import ReleaseRule

ABOVE_ZERO = (
    "context", "chunks", "probe_s", "load_s", "first_token_s", "total_s", "output_cap",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    upstream: str
    commit: str
    build_number: int
    version: str
    timestamp: int
    tree: str
    include: tuple[str, ...]
    index: tuple[IndexOrigin, ...] = ()
    archive: tuple[ArchiveOrigin, ...] = ()
    git: tuple[GitOrigin, ...] = ()
    min_age_days: float = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Imports:
    linux: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    macos: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.linux, *self.windows, *self.macos)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    programs: tuple[str, ...]
    libraries: tuple[str, ...]
    licenses: tuple[str, ...]
    test_programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    targets: tuple[str, ...]
    modules: tuple[str, ...]
    device_prefix: str = ""
    min_headers: int | None = None
    min_headers_patched: int | None = None
    required_capabilities: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    allowed_imports: _Imports = _Imports()
    options: dict[str, object] = dataclasses.field(default_factory=dict)
    cuda: CudaRule | None = None
    max_mean_kld: Threshold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    name: str
    source: _Source
    options: dict[str, object]
    contents: _Contents
    allowed_imports: _Imports
    backends: dict[str, _Rule]
    verification: Verification
    test_options: dict[str, object] = dataclasses.field(default_factory=dict)
    patches: str = ""
    release: ReleaseRule | None = None


def locate_recipe(wanted: str, *, root: Path) -> Path:
    """Return the file of a recipe: a path to a ``.toml`` file, or a name below ``root``."""
    if wanted.endswith(".toml") or "/" in wanted or "\\" in wanted:
        return Path(wanted).expanduser().absolute()
    names = {p.stem: p for p in sorted(root.glob("*.toml"))}
    if wanted not in names:
        raise UsageError(
            f"there is no recipe '{wanted}'",
            why=f"the recipes in {root} are: {', '.join(names) or 'none'}",
            hint=suggestion(wanted, names) or "name a file: --recipe path/to/recipe.toml",
            kind="unknown-recipe",
        )
    return names[wanted]


def load_recipe(path: Path) -> Recipe:
    """Read and check a recipe; ``UsageError`` names the line and the nearest right word."""
    document = load_document(path)
    place = Place(document)
    file = read_table(_File, document.data, place)
    _check(file, place)
    return Recipe(
        name=file.name,
        path=path.as_posix(),
        digest=sha256_bytes(document.text.encode()),
        source=_pin(file.source, place.at("source")),
        options=read_options(file.options, place.at("options")),
        test_options=read_options(file.test_options, place.at("test_options")),
        programs=file.contents.programs,
        test_programs=file.contents.test_programs,
        libraries=file.contents.libraries,
        licenses=file.contents.licenses,
        allowed_imports=file.allowed_imports.all,
        backends=tuple(_rule(n, r, place.at("backends")) for n, r in file.backends.items()),
        verification=file.verification,
        patches=file.patches,
        release=file.release,
    )


def _check(file: _File, place: Place) -> None:
    checks.check_name(file.name, place.at("name"))
    if file.patches:
        checks.check_name(file.patches, place.at("patches"))
    for number, path in enumerate(file.contents.licenses):
        checks.check_relative(path, place.at("contents").at("licenses").at(number))
    for key in ("programs", "test_programs", "libraries"):
        names: tuple[str, ...] = getattr(file.contents, key)
        for number, name in enumerate(names):
            checks.check_name(name, place.at("contents").at(key).at(number))
    _check_verification(file.verification, place.at("verification"))
    if file.release is not None:
        check_release(file.release, file.backends, place.at("release"))


def _pin(source: _Source, place: Place) -> SourcePin:
    checks.check_commit(source.commit, place.at("commit"), full=False)
    checks.check_sha256(source.tree, place.at("tree"))
    for number, path in enumerate(source.include):
        checks.check_relative(path, place.at("include").at(number))
    for number, index in enumerate(source.index):
        _check_index(index, place.at("index").at(number))
    for number, archive in enumerate(source.archive):
        spot = place.at("archive").at(number)
        checks.check_url(archive.url, spot.at("url"))
        checks.check_size(archive.size, spot.at("size"))
        if archive.sha256 is not None:
            checks.check_sha256(archive.sha256, spot.at("sha256"))
    for number, git in enumerate(source.git):
        spot = place.at("git").at(number)
        checks.check_url(git.url, spot.at("url"))
        checks.check_commit(git.commit, spot.at("commit"), full=True)
    origins: tuple[Origin, ...] = (*source.index, *source.archive, *source.git)
    if not origins:
        raise place.refuse("the source has no origin", hint="add [[source.git]]", kind="no-origin")
    return SourcePin(
        upstream=source.upstream,
        commit=source.commit,
        build_number=source.build_number,
        version=source.version,
        include=source.include,
        tree=source.tree,
        origins=origins,
        timestamp=source.timestamp,
        min_age_days=source.min_age_days,
    )


def _check_index(origin: IndexOrigin, place: Place) -> None:
    checks.check_size(origin.size, place.at("size"))
    checks.check_sha256(origin.sha256, place.at("sha256"))
    checks.check_relative(origin.filename, place.at("filename"))
    if origin.subdir:
        checks.check_relative(origin.subdir, place.at("subdir"))


def _check_verification(verification: Verification, place: Place) -> None:
    model, spot = verification.model, place.at("model")
    _check_index(model.origin, spot.at("origin"))
    checks.check_relative(model.member, spot.at("member"))
    checks.check_size(model.size, spot.at("size"))
    checks.check_sha256(model.sha256, spot.at("sha256"))
    if not verification.prompts:
        raise place.refuse(
            "the verification has no prompt", hint="add [[verification.prompts]]", kind="bad-value"
        )
    for number, prompt in enumerate(verification.prompts):
        checks.check_positive(prompt.tokens, place.at("prompts").at(number).at("tokens"))
    for key in ABOVE_ZERO:
        value: float = getattr(verification, key)
        checks.check_positive(value, place.at(key))
    checks.check_positive(model.layers, spot.at("layers"))
    for name in ("max_mean_kld", "min_top1"):
        threshold: Threshold = getattr(verification, name)
        checks.check_positive(threshold.value, place.at(name).at("value"))
    check_types(verification, place)


def _rule(name: str, rule: _Rule, place: Place) -> BackendRule:
    words = [str(b) for b in Backend]
    if name not in words:
        raise place.at(name).refuse(
            f"there is no backend '{name}'", hint=suggestion(name, words), kind="unknown-key"
        )
    spot = place.at(name)
    _check_capabilities(rule, spot)
    if rule.max_mean_kld is not None:
        checks.check_positive(rule.max_mean_kld.value, spot.at("max_mean_kld").at("value"))
    if (rule.min_headers_patched or 0) > (rule.min_headers or 0):
        raise spot.at("min_headers_patched").refuse(
            "min_headers_patched is above min_headers",
            why="patches make older headers usable, so their minimum cannot be the newer one",
            kind="bad-value",
        )
    return BackendRule(
        backend=Backend(name),
        options=read_options(rule.options, spot.at("options")),
        targets=rule.targets,
        modules=rule.modules,
        device_prefix=rule.device_prefix,
        min_headers=rule.min_headers,
        min_headers_patched=rule.min_headers_patched,
        capabilities=rule.capabilities,
        required_capabilities=rule.required_capabilities,
        allowed_imports=rule.allowed_imports.all,
        cuda=_cuda(rule, spot, Backend(name)),
        max_mean_kld=rule.max_mean_kld,
    )


def _cuda(rule: _Rule, place: Place, backend: Backend) -> CudaRule | None:
    if rule.cuda is None:
        return CudaRule() if backend is Backend.CUDA else None
    if backend is not Backend.CUDA:
        raise place.at("cuda").refuse(f"{backend} has no CUDA code", kind="unknown-key")
    release = place.at("cuda").at("release")
    for number, word in enumerate(rule.cuda.release):
        if parse_code(word) is None:
            raise release.at(number).refuse(
                f"'{word}' is no CUDA device code",
                hint="e.g. 61, 89, 90-virtual, 120a",
                kind="bad-value",
            )
    return rule.cuda


def _check_capabilities(rule: _Rule, place: Place) -> None:
    known = [c.name for c in rule.capabilities]
    for number, capability in enumerate(rule.capabilities):
        spot = place.at("capabilities").at(number)
        checks.check_relative(capability.feature_test, spot.at("feature_test"))
        if known.count(capability.name) > 1:
            raise spot.at("name").refuse(
                f"the capability '{capability.name}' is there twice", kind="bad-value"
            )
    for wanted in rule.required_capabilities:
        if wanted not in known:
            raise place.at("required_capabilities").refuse(
                f"'{wanted}' is no capability of this backend",
                hint=suggestion(wanted, known),
                kind="unknown-capability",
            )
