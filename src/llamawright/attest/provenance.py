"""SLSA provenance, version 1: from what, how and by whom a file was built.

``buildDefinition`` is a pure function of the manifest inside the file, so that a checker can
make it again and compare; only ``runDetails`` tells what nothing else can confirm.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamawright.attest import strict
from llamawright.attest.materials import Material, is_sha256, materials
from llamawright.digest import Plain
from llamawright.model.artifact import Manifest

BUILD_TYPE = "https://llamawright.dev/build/v1"
LOCAL_BUILDER = "https://llamawright.dev/builder/own-machine/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Who built, and when: times as RFC 3339, empty when nobody told.

    ``byproducts`` are files beside the artifact (name, sha256): the result, the report.
    """

    builder: str = LOCAL_BUILDER
    invocation: str = ""
    started: str = ""
    finished: str = ""
    byproducts: tuple[tuple[str, str], ...] = ()


def provenance(manifest: Manifest, run: Invocation) -> dict[str, Plain]:
    """Return the predicate."""
    times = {"startedOn": run.started, "finishedOn": run.finished, "invocationId": run.invocation}
    metadata: dict[str, Plain] = {name: value for name, value in times.items() if value}
    made: list[Plain] = [
        {"name": name, "digest": {"sha256": digest}} for name, digest in run.byproducts
    ]
    tool, _, version = manifest.generator.partition(" ")
    return {
        "buildDefinition": definition(manifest),
        "runDetails": {
            "builder": {"id": run.builder, "version": {tool or "llamawright": version}},
            "metadata": metadata,
            "byproducts": made,
        },
    }


def definition(manifest: Manifest) -> dict[str, Plain]:
    """Return what was asked for, what was decided, and every input with its digest."""
    return {
        "buildType": BUILD_TYPE,
        "externalParameters": _request(manifest),
        "internalParameters": {
            "key": manifest.key,
            "abi": manifest.abi,
            "timestamp": manifest.timestamp,
            "options": {option.name: option.value for option in manifest.options},
            "inputs": {part.name: part.value for part in manifest.inputs},
        },
        "resolvedDependencies": [_source(manifest), *map(_dependency, materials(manifest))],
    }


def faults(predicate: dict[str, Plain], manifest: Manifest) -> tuple[str, ...]:
    """Return where a provenance and the manifest in the file disagree."""
    told = strict.fields(predicate, "the provenance", "buildDefinition", "runDetails")
    details = strict.fields(
        told["runDetails"], "runDetails", "builder", optional=("metadata", "byproducts")
    )
    builder = strict.fields(
        details["builder"], "the builder", "id", optional=("version", "builderDependencies")
    )
    strict.text(builder["id"], "the builder's id")
    said, expected = told["buildDefinition"], definition(manifest)
    if not isinstance(said, dict):
        return ("buildDefinition is no object",)
    names = sorted({*said, *expected})
    return tuple(
        f"{name} is not that of the manifest"
        for name in names
        if strict.compact(said.get(name)) != strict.compact(expected.get(name))
    )


def told_times(predicate: dict[str, Plain]) -> tuple[str, str]:
    """Return when the run started and ended, empty where it is not told."""
    details = predicate.get("runDetails")
    metadata = details.get("metadata") if isinstance(details, dict) else None
    if not isinstance(metadata, dict):
        return "", ""
    return tuple_of_texts(metadata.get("startedOn"), metadata.get("finishedOn"))


def builder_of(predicate: dict[str, Plain]) -> str:
    """Return the builder's id."""
    details = predicate.get("runDetails")
    builder = details.get("builder") if isinstance(details, dict) else None
    return str(builder.get("id", "")) if isinstance(builder, dict) else ""


def tuple_of_texts(first: Plain, second: Plain) -> tuple[str, str]:
    """Return two optional texts; anything else counts as not told."""
    return (first if isinstance(first, str) else "", second if isinstance(second, str) else "")


def _request(manifest: Manifest) -> dict[str, Plain]:
    codes: list[Plain] = list(manifest.cuda.codes) if manifest.cuda else []
    return {
        "upstream": f"https://github.com/{manifest.upstream}",
        "commit": manifest.commit,
        "backend": manifest.backend.value,
        "platform": manifest.platform.tag,
        "native": manifest.native,
        "archs": codes,
        "programs": list(manifest.programs),
    }


def _source(manifest: Manifest) -> Plain:
    return {
        "name": manifest.upstream,
        "uri": f"git+https://github.com/{manifest.upstream}@{manifest.commit}",
        "digest": {"gitCommit": manifest.commit},
        # Digests of trees, not of one file's bytes: they are no entry of a digest set.
        "annotations": {
            "sourceTree": manifest.source_digest,
            "patchedTree": manifest.patched_digest,
        },
    }


def _dependency(material: Material) -> Plain:
    notes = {"role": material.role, "version": material.version, "where": material.where}
    notes |= {"note": material.note}
    told: dict[str, Plain] = {
        "name": material.name,
        "annotations": {name: value for name, value in notes.items() if value},
    }
    if is_sha256(material.digest):
        told["digest"] = {"sha256": material.digest}
    if material.is_patch:
        told["uri"] = f"patches/{material.name}.patch"
    else:
        # A descriptor has a uri, a digest or content; some tools have no recorded digest.
        told["uri"] = f"tool:{material.role.replace(' ', '-')}/{material.name}@{material.version}"
    return told
