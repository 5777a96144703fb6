"""The verbs attest and keygen: statements about a packed file, and keys to sign them with."""

from __future__ import annotations

import json
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from llamawright import attest
from llamawright.console import Console
from llamawright.digest import Plain, sha256_file
from llamawright.errors import ExitCode, UsageError

ENDINGS = (".tar.zst", ".zip", ".whl")
RESULTS = (".result.json", ".report.html")


def run(flags: Namespace, store: Path, console: Console) -> int:
    """Make a pair of keys, or write and sign the statements about one file."""
    del store
    if flags.verb == "keygen":
        return _keygen(flags, console)
    path: Path = flags.file.absolute()
    _require_signer(flags)
    keys = tuple(attest.load_private(k, passphrase(flags)) for k in flags.key or ())
    keyless = attest.ambient_signer() if flags.sigstore else None
    with console.step("open"):
        subject = attest.open_subject(path)
    claim = _claim(flags, subject, console)
    with console.step("attest"):
        made = attest.attestation(subject, claim, _invocation(flags, path))
        files = attest.write(path, made, signers=keys, keyless=keyless)
    result = {
        "artifact": str(path),
        "sha256": subject.sha256,
        "files": [str(f) for f in files],
        "keys": [k.keyid for k in keys],
        "verdict": claim is not None,
    }
    if flags.json:
        sys.stdout.write(json.dumps(result, indent=2, sort_keys=True) + "\n")
    signers = [f"key {k.keyid[:16]}" for k in keys] + (["Sigstore"] if keyless else [])
    console.lines("", *_told(path, files, signers))
    console.lines(*(f"warning   {w}" for w in console.warnings))
    return int(ExitCode.OK)


def passphrase(flags: Namespace) -> bytes | None:
    """Return the key's passphrase: from a file, else from the environment, never from a flag."""
    file: Path | None = flags.passphrase_file
    if file is None:
        return os.environ.get(attest.PASSPHRASE_VARIABLE, "").encode() or None
    try:
        return file.read_bytes().rstrip(b"\r\n") or None
    except OSError as error:
        raise UsageError(
            f"there is no passphrase in {file}",
            why=error.strerror or str(error),
            hint=f"name a file that holds it, or set {attest.PASSPHRASE_VARIABLE}",
            kind="unreadable-file",
        ) from error


def _keygen(flags: Namespace, console: Console) -> int:
    secret = passphrase(flags)
    private, public = attest.generate(flags.folder.absolute(), secret)
    keyid = attest.load_public(public).keyid
    if flags.json:
        told = {"private": str(private), "public": str(public), "keyid": keyid}
        sys.stdout.write(json.dumps(told, indent=2, sort_keys=True) + "\n")
    console.lines(
        f"private   {private}  ({'encrypted' if secret else 'NOT encrypted'}; keep it to yourself)",
        f"public    {public}  (give it to everybody)",
        f"key id    {keyid}",
        f"sign      llamawright attest FILE --key {shlex.quote(str(private))}",
    )
    return int(ExitCode.OK)


def _require_signer(flags: Namespace) -> None:
    signs = bool(flags.key) or flags.sigstore
    if signs and flags.unsigned:
        raise UsageError(
            "--unsigned and a signer exclude each other", hint="drop one", kind="flags-conflict"
        )
    if not signs and not flags.unsigned:
        raise UsageError(
            "nobody was named to sign",
            why="statements without a signature prove nothing to anybody else",
            hint="--key FILE (llamawright keygen DIR makes one), --sigstore in hosted CI, or "
            "--unsigned",
            kind="no-signer",
        )


def _claim(flags: Namespace, subject: attest.Subject, console: Console) -> dict[str, Plain] | None:
    beside = flags.file.absolute().with_name(f"{stem(subject.name)}.verdict.json")
    place: Path = flags.verdict or beside
    if not place.is_file():
        if flags.verdict is not None:
            raise UsageError(
                f"there is no verdict {place}",
                hint=f"llamawright verify {shlex.quote(str(flags.file))} makes one",
                kind="missing-file",
            )
        console.warn(f"no verdict: {beside.name} is not there, so `check` will not accept it")
        return None
    return attest.read_claim(place.read_bytes(), subject, what=place.name)


def _invocation(flags: Namespace, path: Path) -> attest.Invocation:
    """Return what the caller tells of the run, and the files beside that tell of this file."""
    digest = sha256_file(path)
    beside = [path.with_name(f"{stem(path.name)}{suffix}") for suffix in RESULTS]
    mine = [p for p in beside if p.is_file() and digest.encode() in p.read_bytes()]
    return attest.Invocation(
        builder=flags.builder or attest.LOCAL_BUILDER,
        invocation=flags.invocation or "",
        started=flags.started or "",
        finished=flags.finished or "",
        byproducts=tuple((p.name, sha256_file(p)) for p in mine),
    )


def stem(name: str) -> str:
    """Return a packed file's name without its ending; a version's dots stay."""
    return next((name.removesuffix(e) for e in ENDINGS if name.endswith(e)), name)


def _told(path: Path, files: tuple[Path, ...], signers: list[str]) -> Iterator[str]:
    yield f"artifact  {path}"
    yield from (f"written   {file}" for file in files)
    yield f"signed    {', '.join(signers) or 'UNSIGNED: proves nothing to anybody else'}"
    yield f"check     llamawright check {shlex.quote(str(path))} --trust KEY.pub"
