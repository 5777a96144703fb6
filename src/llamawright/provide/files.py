"""The pinned files of a set, from the store, the machine's mirrors or the vendor."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import assert_never
from urllib.parse import quote, urlsplit

from llamawright.errors import DownloadError
from llamawright.model.inventory import Role
from llamawright.model.ports import Reporter
from llamawright.model.recipe import IndexOrigin
from llamawright.model.toolchain import ProvidedFile, ProvidedSet, Registry, Toolchains
from llamawright.provide import cuda_redist
from llamawright.provide.mirrors import MIRROR_VARIABLE, debian_mirrors
from llamawright.store import Store
from llamawright.transfer import DownloadRequest, download, download_index_file

STATEMENT_SIZE = 1 << 16
SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch_files(
    provided: ProvidedSet,
    *,
    store: Store,
    toolchains: Toolchains,
    offline: bool,
    reporter: Reporter,
    env: Mapping[str, str],
) -> tuple[Path, ...]:
    """Return the blobs of every file of the set, in its order.

    Offline, all that is missing is named at once. Raises ``DownloadError``.
    """
    if offline:
        _need_all(provided, store)
    mirrors = (*debian_mirrors(env=env), *toolchains.debian_mirrors)
    return tuple(
        _fetch(f, mirrors=mirrors, store=store, offline=offline, reporter=reporter)
        for f in provided.files
    )


def addresses(file: ProvidedFile, mirrors: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of a Debian file, best first.

    An archive that keeps history has it by content (``/file/<sha1>``); a mirror has it by
    pool path as long as the version is current.
    """
    by_path = [f"{m}/{quote(file.location)}" for m in mirrors if not _keeps_history(m)]
    by_content = [f"{m}/file/{file.sha1}" for m in mirrors if _keeps_history(m) and file.sha1]
    return (*by_path, *by_content)


def published_sha256(text: str, file: ProvidedFile) -> str:
    """Return the sha256 of a vendor's JSON statement ``{"file": …, "sha": …}``."""
    problem = "it is not the expected JSON"
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if isinstance(said, dict):
        name, digest = str(said.get("file", "")), str(said.get("sha", "")).lower()
        problem = f"it says: {str(said)[:120]}"
        if SHA256.fullmatch(digest) and name in ("", file.location.rpartition("/")[2]):
            return digest
    raise DownloadError(
        f"the vendor publishes no sha256 of {file.package} {file.version}",
        why=f"{file.published}: {problem}",
        hint="pin size and sha256 in toolchains/ after checking the file yourself",
        kind="no-published-sha256",
    )


def _fetch(
    file: ProvidedFile,
    *,
    mirrors: tuple[str, ...],
    store: Store,
    offline: bool,
    reporter: Reporter,
) -> Path:
    match file.registry:
        case Registry.INDEX:
            origin = IndexOrigin(
                project=file.package,
                version=file.version,
                filename=file.location,
                size=file.size,
                sha256=file.sha256,
            )
            return download_index_file(origin, store, offline=offline, reporter=reporter)
        case Registry.DEBIAN:
            urls = addresses(file, mirrors)
        case Registry.URL:
            urls = (file.location,)
        case _:
            assert_never(file.registry)
    if not file.sha256:
        file = _stated(file, store=store, offline=offline, reporter=reporter)
    request = DownloadRequest(
        urls=urls,
        size=file.size,
        sha256=file.sha256,
        label=_label(file),
        exact_size=not file.capped,
    )
    try:
        return download(request, store, offline=offline, reporter=reporter)
    except DownloadError as error:
        raise _advised(error, file) from error


def _stated(file: ProvidedFile, *, store: Store, offline: bool, reporter: Reporter) -> ProvidedFile:
    """Return the file with the sha256, and from a manifest the exact size, its vendor states."""
    manifest = cuda_redist.is_manifest(file.published)
    request = DownloadRequest(
        urls=(file.published,),
        size=cuda_redist.MANIFEST_SIZE if manifest else STATEMENT_SIZE,
        sha256=None,
        label=f"sha256 of {_label(file)}",
        exact_size=False,
    )
    path = download(request, store, offline=offline, reporter=reporter)
    text = path.read_text(encoding="utf-8", errors="replace")
    if not manifest:
        return replace(file, sha256=published_sha256(text, file))
    said = cuda_redist.stated(text, file)
    return replace(file, sha256=said.sha256, size=said.size, capped=False)


def _need_all(provided: ProvidedSet, store: Store) -> None:
    missing = [
        f
        for f in provided.files
        if f.sha256 and not store.has_blob(f.sha256, None if f.capped else f.size)
    ]
    if missing:
        raise DownloadError(
            f"{provided.name} is not in the store, and --offline forbids to download it",
            why="\n".join(f"missing: {_label(f)}, {f.size} bytes, {f.sha256}" for f in missing),
            hint=f"run once without --offline, e.g. llamawright fetch {_backend(provided)}",
            kind="offline",
        )


def _backend(provided: ProvidedSet) -> str:
    return "cuda" if provided.role is Role.CUDA else "vulkan"


def _advised(error: DownloadError, file: ProvidedFile) -> DownloadError:
    if file.registry is not Registry.DEBIAN or error.kind in ("offline", "wrong-sha256"):
        return error
    return DownloadError(
        error.what,
        why=error.why,
        hint=f"{error.hint}; or name a Debian mirror that still has {file.version}: "
        f"{MIRROR_VARIABLE}=https://…/debian",
        kind=error.kind,
    )


def _keeps_history(address: str) -> bool:
    return (urlsplit(address).hostname or "").startswith("snapshot.")


def _label(file: ProvidedFile) -> str:
    return f"{file.package} {file.version}"
