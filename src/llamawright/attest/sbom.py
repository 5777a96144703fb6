"""The CycloneDX bill of materials, version 1.6: a pure function of the packed file.

The same artifact gives the same bytes: its serial number comes from the digest, its time is
the one that every file in the archive has.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from llamawright.attest import strict
from llamawright.attest.materials import Material, is_sha256, materials
from llamawright.attest.opening import Subject
from llamawright.digest import Plain
from llamawright.model.artifact import FileEntry, Manifest

if TYPE_CHECKING:
    from cyclonedx.model import HashType, Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, Pedigree
    from cyclonedx.model.license import DisjunctiveLicense

PREFIX = "llamawright:"
# What the first lines of a licence say, the more special words first (spdx.org/licenses).
_LICENSES = (
    ("BSD 2-Clause", "BSD-2-Clause"),
    ("BSD 3-Clause", "BSD-3-Clause"),
    ("MIT License", "MIT"),
    ("Apache License", "Apache-2.0"),
    ("Boost Software License", "BSL-1.0"),
)
_HEAD_LINES = 8
_LICENSE_WORDS = ("LICENSE", "LICENCE", "COPYING", "EULA")


def sbom(subject: Subject) -> str:
    """Return the SBOM of a packed file as JSON text."""
    from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415 - heavy

    return JsonV1Dot6(_bom(subject)).output_as_string(indent=2) + "\n"


def claims(document: Plain) -> frozenset[tuple[str, str, str]]:
    """Return what an SBOM says that can be compared: kind, name, digest or version.

    Raises ``ValueError`` when it is no SBOM of this form.
    """
    try:
        return frozenset(_claims(document))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"it is no CycloneDX SBOM of llamawright's form ({error})") from error


def faults(document: Plain, subject: Subject) -> tuple[str, ...]:
    """Return where an SBOM and the packed file disagree; empty when they do not."""
    found, expected = claims(document), claims(strict.load(sbom(subject).encode()))
    left_out = [f"{kind} {name} is left out or changed" for kind, name, _ in expected - found]
    added = [f"{kind} {name[:60]} is not in the file so" for kind, name, _ in found - expected]
    return (*sorted(left_out), *sorted(added))


def _bom(subject: Subject) -> Bom:
    from cyclonedx.model.bom import Bom, BomMetaData  # noqa: PLC0415 - heavy
    from cyclonedx.model.tool import ToolRepository  # noqa: PLC0415 - heavy

    manifest = subject.manifest
    root, source = _root(subject), _source(subject)
    parts = [_file(entry, manifest) for entry in manifest.files if not entry.link]
    tools = [_material(m) for m in materials(manifest) if not m.is_patch]
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{subject.sha256}"),
        metadata=BomMetaData(
            component=root,
            tools=ToolRepository(components=[*tools, _generator(manifest)]),
            timestamp=datetime.fromtimestamp(manifest.timestamp, UTC),
        ),
        components=[source, *parts],
    )
    bom.register_dependency(root, [source, *parts])
    return bom


def _root(subject: Subject) -> Component:
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - heavy

    manifest = subject.manifest
    needs = [_property("needs", name) for name in manifest.system_libraries]
    floors = {"glibc": manifest.glibc, "glibcxx": manifest.glibcxx, "min-os": manifest.min_os}
    return Component(
        type=ComponentType.APPLICATION,
        name=subject.name,
        version=_version(manifest),
        bom_ref="artifact",
        hashes=_hashes(subject.sha256),
        properties=[
            _property("name", manifest.name),
            _property("backend", manifest.backend.value),
            _property("platform", manifest.platform.tag),
            _property("key", manifest.key),
            _property("size", str(subject.size)),
            *needs,
            *(_property(name, value) for name, value in floors.items() if value),
        ],
    )


def _source(subject: Subject) -> Component:
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - heavy
    from packageurl import PackageURL  # noqa: PLC0415 - heavy

    manifest = subject.manifest
    group, _, name = manifest.upstream.rpartition("/")
    return Component(
        type=ComponentType.APPLICATION,
        name=name,
        group=group or None,
        version=manifest.commit,
        bom_ref="source",
        purl=PackageURL("github", group or None, name, manifest.commit),
        licenses=[_license(path, text) for path, text in subject.licenses if _is_license(path)],
        pedigree=_pedigree(manifest),
        properties=[
            _property("source-tree", manifest.source_digest),
            _property("patched-tree", manifest.patched_digest),
            *(_property(f"patch:{p.name}", p.sha256) for p in manifest.patches),
        ],
    )


def _pedigree(manifest: Manifest) -> Pedigree:
    from cyclonedx.model import XsUri  # noqa: PLC0415 - heavy
    from cyclonedx.model.component import (  # noqa: PLC0415 - heavy
        Commit,
        Diff,
        Patch,
        PatchClassification,
        Pedigree,
    )
    from cyclonedx.model.issue import IssueClassification as Kind  # noqa: PLC0415 - heavy
    from cyclonedx.model.issue import IssueType  # noqa: PLC0415 - heavy

    kinds = {"bugfix": Kind.DEFECT, "security": Kind.SECURITY}
    patches = [
        Patch(
            type=PatchClassification.UNOFFICIAL,
            diff=Diff(url=XsUri(f"patches/{p.name}.patch#sha256={p.sha256}")),
            resolves=[
                IssueType(type=kinds.get(p.type, Kind.ENHANCEMENT), id=p.name, description=p.reason)
            ],
        )
        for p in manifest.patches
    ]
    url = XsUri(f"https://github.com/{manifest.upstream}/commit/{manifest.commit}")
    return Pedigree(commits=[Commit(uid=manifest.commit, url=url)], patches=patches)


def _file(entry: FileEntry, manifest: Manifest) -> Component:
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - heavy

    facts = next((b for b in manifest.binaries if b.path == entry.path), None)
    library = facts is not None and entry.path.rpartition("/")[2] not in manifest.programs
    kind = ComponentType.LIBRARY if library else ComponentType.FILE
    imports = [_property("needs", name) for name in facts.imports] if facts else []
    return Component(
        type=kind,
        name=entry.path,
        bom_ref=f"file:{entry.path}",
        version=_version(manifest) if facts else None,
        hashes=_hashes(entry.sha256),
        properties=[_property("size", str(entry.size)), *imports],
    )


def _material(material: Material) -> Component:
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - heavy

    return Component(
        type=ComponentType.APPLICATION,
        name=material.name,
        version=material.version or None,
        bom_ref=f"tool:{material.role}",
        hashes=_hashes(material.digest),
        properties=[
            _property("role", material.role),
            *([_property("from", material.where)] if material.where else []),
        ],
    )


def _generator(manifest: Manifest) -> Component:
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - heavy

    name, _, version = manifest.generator.partition(" ")
    return Component(
        type=ComponentType.APPLICATION,
        name=name or "llamawright",
        version=version or None,
        bom_ref="tool:generator",
        properties=[_property("role", "generator")],
    )


def _license(path: str, text: str) -> DisjunctiveLicense:
    from cyclonedx.model.license import DisjunctiveLicense  # noqa: PLC0415 - heavy

    known, where = license_id(text), [_property("file", path)]
    if known:
        return DisjunctiveLicense(id=known, properties=where, bom_ref=f"licence:{path}")
    return DisjunctiveLicense(name=f"see {path}", properties=where, bom_ref=f"licence:{path}")


def license_id(text: str) -> str:
    """Return the SPDX identifier that a licence's own title names; empty when it names none."""
    head = "\n".join(text.splitlines()[:_HEAD_LINES])
    return next((spdx for title, spdx in _LICENSES if title in head), "")


def _is_license(path: str) -> bool:
    return any(word in path.rpartition("/")[2].upper() for word in _LICENSE_WORDS)


def _hashes(digest: str) -> list[HashType]:
    from cyclonedx.model import HashAlgorithm, HashType  # noqa: PLC0415 - heavy

    return [HashType(alg=HashAlgorithm.SHA_256, content=digest)] if is_sha256(digest) else []


def _property(name: str, value: str) -> Property:
    from cyclonedx.model import Property  # noqa: PLC0415 - heavy

    return Property(name=f"{PREFIX}{name}", value=value)


def _version(manifest: Manifest) -> str:
    return f"b{manifest.build_number}"


def _claims(document: Plain) -> Iterator[tuple[str, str, str]]:
    if not isinstance(document, dict) or document["bomFormat"] != "CycloneDX":
        raise ValueError("it is no CycloneDX SBOM")
    yield "format", "specVersion", str(document["specVersion"])
    metadata = _object(document["metadata"])
    yield from _component("file", metadata["component"])
    for tool in _list(_object(metadata["tools"])["components"]):
        yield from _component("tool", tool)
    for component in _list(document["components"]):
        yield from _component("component", component)


def _component(kind: str, value: Plain) -> Iterator[tuple[str, str, str]]:
    told = _object(value)
    name = strict.text(told["name"], "a component's name")
    yield kind, name, str(told.get("version", ""))
    for item in map(_object, _list(told.get("hashes", []))):
        yield f"{kind} digest of", name, f"{item['alg']}:{item['content']}"
    for item in map(_object, _list(told.get("properties", []))):
        yield f"{kind} {item['name']} of", name, str(item["value"])


def _object(value: Plain) -> dict[str, Plain]:
    if not isinstance(value, dict):
        raise TypeError("an object is missing")
    return value


def _list(value: Plain) -> list[Plain]:
    if not isinstance(value, list):
        raise TypeError("a list is missing")
    return value
