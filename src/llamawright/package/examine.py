"""Reading everything the audit and the manifest need from the built trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamawright.digest import sha256_file
from llamawright.model.built import BuiltTree
from llamawright.model.cuda import CudaPlan
from llamawright.model.recipe import BackendRule
from llamawright.package.companion import PackedCompanion
from llamawright.package.expected import (
    Expected,
    expected_files,
    extra_programs,
    is_native,
    matches,
)
from llamawright.package.fatbin import read_device_code
from llamawright.package.layout import (
    BIN,
    LICENSES,
    Placed,
    by_soname,
    join,
    licence_files,
    staged,
)
from llamawright.package.manifest import Measured
from llamawright.package.reading import Reading, read_binary
from llamawright.package.subject import CudaSubject, Subject
from llamawright.package.trees import Trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """An artifact's files, read once: what the rules judge, sizes and digests."""

    subject: Subject
    measured: Mapping[str, Measured]


def examine(trees: Trees, *, private: tuple[str, ...]) -> Examined:
    """Read all files of an artifact; ``private`` are folder names no file may hold.

    Raises ``PackageError``
    (``bad-fatbin``) when the device code of a CUDA module cannot be read.
    """
    plan, module = trees.plan, trees.module
    placed = _gather(trees)
    readings = {
        f.source: read_binary(f.source, name=f.path, private=private) for f in _bins(placed)
    }
    sonames = {f.path: r.facts.soname for f in placed if (r := readings.get(f.source))}
    files = by_soname(placed, sonames)
    measured = {f.path: _measure(f.source) for f in files if not f.link}
    rule = plan.recipe.rule(plan.backend)
    expected = expected_files(plan, trees.host.effective, tests=trees.tests)
    readable = [f for f in _bins(files) if readings[f.source]]
    subject = Subject(
        platform=plan.platform,
        expected=expected,
        files=files,
        digests={path: content.sha256 for path, content in measured.items()},
        readings=_under_new_names(files, readings),
        unreadable=tuple(f.path for f in _bins(files) if readings[f.source] is None),
        allowed=plan.recipe.allowed_imports,
        device_allowed=rule.allowed_imports if rule else (),
        licences_missing=_missing_licences(plan.recipe.licenses, trees.patched.root, files),
        capabilities=module.capabilities if module else (),
        required_capabilities=_required(rule, module),
        native=is_native(plan),
        cuda=_cuda(plan.cuda, readable, expected, trees.companion) if plan.cuda else None,
    )
    return Examined(subject=subject, measured=measured)


def _cuda(
    cuda: CudaPlan, files: Iterable[Placed], expected: Expected, companion: PackedCompanion | None
) -> CudaSubject:
    modules = [f for f in files if matches(f.name, expected.device)]
    return CudaSubject(
        toolkit=cuda.toolkit,
        planned=cuda.codes,
        code={f.path: read_device_code(f.source) for f in modules},
        companion=companion.facts.libraries if companion else None,
    )


def _gather(trees: Trees) -> tuple[Placed, ...]:
    plan, module, texts = trees.plan, trees.module, trees.plan.recipe.licenses
    own = staged(trees.host, what="host build")
    theirs = staged(module, what=f"{plan.backend.value} build") if module else ()
    left_out = () if trees.tests else extra_programs(plan)
    kept = [f for f in join(own, theirs) if not (f.folder == BIN and f.name in left_out)]
    there = [f for f in kept if f.path.startswith(f"{LICENSES}/")]
    return (*kept, *licence_files(texts, trees.patched.root, there))


def _measure(path: Path) -> Measured:
    return Measured(size=path.stat().st_size, sha256=sha256_file(path))


def _bins(placed: Iterable[Placed]) -> list[Placed]:
    return [f for f in placed if f.folder == BIN and not f.link]


def _under_new_names(
    files: Sequence[Placed], readings: Mapping[Path, Reading | None]
) -> tuple[Reading, ...]:
    return tuple(
        replace(reading, facts=replace(reading.facts, path=f.path))
        for f in _bins(files)
        if (reading := readings[f.source])
    )


def _missing_licences(
    texts: Iterable[str], source: Path, files: Sequence[Placed]
) -> tuple[str, ...]:
    """Return the texts that neither the source has nor a built tree staged, flat or not."""
    staged_texts = {f.path.removeprefix(f"{LICENSES}/") for f in files if f.folder != BIN}
    gone = [t for t in texts if not (source / t).is_file()]
    return tuple(t for t in gone if not {t, t.replace("/", "-")} & staged_texts)


def _required(rule: BackendRule | None, module: BuiltTree | None) -> tuple[str, ...]:
    return rule.required_capabilities if rule and module else ()
