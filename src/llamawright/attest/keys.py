"""Ed25519 keys in PEM files: made, read, named.

The ``cryptography`` package does the arithmetic. It is imported on demand: it takes 60 ms.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llamawright.attest.strict import read_limited
from llamawright.digest import sha256_bytes
from llamawright.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PRIVATE_NAME = "llamawright.key"
PUBLIC_NAME = "llamawright.pub"
PASSPHRASE_VARIABLE = "LLAMAWRIGHT_KEY_PASSPHRASE"  # noqa: S105 - a variable's name
_PASSPHRASE_HINT = f"set {PASSPHRASE_VARIABLE}, or name a file that holds it: --passphrase-file"


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A key that signs."""

    key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        """Return the half that checks."""
        return PublicKey(self.key.public_key())

    @property
    def keyid(self) -> str:
        """Return the name that signatures carry."""
        return self.public.keyid

    def sign(self, data: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self.key.sign(data)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that checks; ``name`` is the file it came from."""

    key: Ed25519PublicKey
    name: str = ""

    @property
    def keyid(self) -> str:
        """Return the sha256 of the key in DER (SubjectPublicKeyInfo)."""
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - heavy
            Encoding,
            PublicFormat,
        )

        return sha256_bytes(self.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))

    def fits(self, signature: bytes, data: bytes) -> bool:
        """Whether the signature over ``data`` is this key's."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - heavy

        try:
            self.key.verify(signature, data)
        except InvalidSignature:
            return False
        return True


def generate(folder: Path, passphrase: bytes | None) -> tuple[Path, Path]:
    """Write a new pair of keys; an existing file is never touched.

    The private key is readable by its owner only, and encrypted when there is a passphrase.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - heavy
        Ed25519PrivateKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - heavy
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    private, public = folder / PRIVATE_NAME, folder / PUBLIC_NAME
    for path in (private, public):
        if path.exists() or path.is_symlink():
            raise _exists(path)
    key = Ed25519PrivateKey.generate()
    hidden = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    folder.mkdir(parents=True, exist_ok=True)
    _write_new(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden), mode=0o600)
    data = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    try:
        _write_new(public, data, mode=0o644)
    except BaseException:
        private.unlink()
        raise
    return private, public


def load_private(path: Path, passphrase: bytes | None) -> PrivateKey:
    """Read a private key (PEM, PKCS8, Ed25519); raises ``UsageError``."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - heavy
        Ed25519PrivateKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - heavy
        load_pem_private_key,
    )

    data = _read(path, "llamawright keygen DIR")
    if b"PUBLIC KEY" in data:
        raise _wrong(path, "it is a public key", f"name the private one beside it: {PRIVATE_NAME}")
    encrypted = b"ENCRYPTED" in data
    if encrypted and not passphrase:
        raise UsageError(
            f"the key {path} is encrypted", hint=_PASSPHRASE_HINT, kind="key-encrypted"
        )
    try:
        key = load_pem_private_key(data, passphrase if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if encrypted:
            raise UsageError(
                f"the key {path} cannot be decrypted",
                why="the passphrase is another one, or the file is damaged",
                hint=_PASSPHRASE_HINT,
                kind="wrong-passphrase",
            ) from error
        raise _bad(path, error) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _wrong(path, f"it is a {type(key).__name__}", "llamawright keygen DIR makes one")
    return PrivateKey(key)


def load_public(path: Path) -> PublicKey:
    """Read a public key (PEM, Ed25519); raises ``UsageError``."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - heavy
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - heavy
        load_pem_public_key,
    )

    data = _read(path, "ask the one who signed for the public key")
    if b"PRIVATE KEY" in data:
        raise _wrong(path, "it is a private key", f"trust the public one: {PUBLIC_NAME}")
    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _bad(path, error) from error
    if not isinstance(key, Ed25519PublicKey):
        raise _wrong(path, f"it is a {type(key).__name__}", "trust an Ed25519 key")
    return PublicKey(key, path.name)


def _read(path: Path, hint: str) -> bytes:
    try:
        return read_limited(path)
    except OSError as error:
        raise UsageError(
            f"there is no key {path}", why=error.strerror or str(error), hint=hint, kind="no-key"
        ) from error
    except ValueError as error:
        raise _bad(path, error) from error


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        raise _exists(path) from error
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _exists(path: Path) -> UsageError:
    return UsageError(
        f"{path} is there already",
        why="a key that was lost under another one cannot be made again",
        hint="name another folder, or move it away",
        kind="key-exists",
    )


def _wrong(path: Path, why: str, hint: str) -> UsageError:
    return UsageError(
        f"{path} is no key for this: an Ed25519 key in PEM is needed",
        why=why,
        hint=hint,
        kind="wrong-key-type",
    )


def _bad(path: Path, error: Exception) -> UsageError:
    return UsageError(
        f"{path} is no key in PEM",
        why=str(error).splitlines()[0] if str(error) else type(error).__name__,
        hint="llamawright keygen DIR makes a pair",
        kind="bad-key",
    )
