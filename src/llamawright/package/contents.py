"""Audit rules about which files are there: missing, strange, doubled, links, texts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from llamawright.package.expected import matches
from llamawright.package.findings import Finding
from llamawright.package.layout import BIN, LICENSES, resolve_link
from llamawright.package.subject import Subject

_AGAIN = "build again: `llamawright gc`, then the same command"


def missing_rules(subject: Subject) -> Iterator[Finding]:
    """Require every program, library and module of the recipe."""
    names = {f.name for f in subject.in_bin()}
    wanted: list[tuple[str, tuple[str, ...]]] = [
        (name, (name,)) for name in subject.expected.needed
    ]
    wanted += [(group[0], group) for group in subject.expected.one_of]
    for shown, group in dict(wanted).items():
        if not any(matches(name, group) for name in names):
            yield Finding(
                kind="missing-file",
                path=f"{BIN}/{shown}",
                what="it is missing: the recipe promises it",
                cure="look whether the build made it (`llamawright build` prints the log's path), "
                "or take it out of the recipe",
            )


def strange_rules(subject: Subject) -> Iterator[Finding]:
    """Refuse what the recipe does not name: a stale module would be loaded."""
    for file in subject.files:
        known = (
            matches(file.name, subject.expected.allowed)
            if file.folder == BIN
            else file.path.startswith(f"{LICENSES}/")
        )
        if not known:
            yield Finding(
                kind="unexpected-file",
                path=file.path,
                what="no recipe names it; it may be left from another build",
                cure=f"{_AGAIN}; or name it in the recipe",
            )


def double_rules(subject: Subject) -> Iterator[Finding]:
    """Refuse one library under two names: it would be loaded twice (cases P4)."""
    groups: dict[str, list[str]] = defaultdict(list)
    for file in subject.in_bin():
        if not file.link:
            groups[subject.digests[file.path]].append(file.path)
    for paths in groups.values():
        if len(paths) > 1:
            yield Finding(
                kind="identical-files",
                path=paths[0],
                what=f"it is the same file as {', '.join(paths[1:])}",
                cure="stage every library once, under its SONAME, and links for other names",
            )


def link_rules(subject: Subject) -> Iterator[Finding]:
    """Require every link to lead to a file of the artifact."""
    for file in subject.files:
        if file.link and not resolve_link(file, subject.files):
            yield Finding(
                kind="link",
                path=file.path,
                what=f"the link leads to {file.link}, and no file of the artifact is there",
                cure=_AGAIN,
            )


def licence_rules(subject: Subject) -> Iterator[Finding]:
    """Require every licence text that the recipe names."""
    for text in subject.licences_missing:
        yield Finding(
            kind="missing-licence",
            path=text,
            what="this licence text is neither staged nor in the source tree",
            cure="name the text's new place in the recipe's contents.licenses",
        )


def capability_rules(subject: Subject) -> Iterator[Finding]:
    """Require the capabilities that the recipe insists on."""
    present = {c.name for c in subject.capabilities if c.present}
    for name in subject.required_capabilities:
        if name not in present:
            yield Finding(
                kind="missing-capability",
                path=name,
                what="the recipe requires this capability, and the shader compiler lacks it",
                cure="use a newer toolchain (`--vulkan provided`), or do not require it",
            )
