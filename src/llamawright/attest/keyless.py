"""Sigstore: signing without a key of one's own, in a hosted CI that vouches for its jobs.

The library is an extra (``llamawright[sigstore]``): it brings a dozen packages, and only a
release in hosted CI needs it. Signing reaches Sigstore's servers; checking does not.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

from llamawright.attest import dsse
from llamawright.errors import DownloadError, ToolMissingError, UsageError

EXTRA = "llamawright[sigstore]"


class BundleSigner(Protocol):
    """What turns a statement into a Sigstore bundle, as JSON text."""

    def bundle(self, payload: bytes) -> str:
        """Sign the statement's bytes."""


class BundleReader(Protocol):
    """What checks a Sigstore bundle and returns the statement's bytes."""

    @property
    def signer(self) -> str:
        """Return the identity that a bundle must be signed by."""

    def payload(self, bundle: str) -> bytes:
        """Return what was signed; raises ``ValueError`` when it was not."""


@dataclass(frozen=True, slots=True)
class AmbientSigner:
    """Signs with the identity that the CI gives to the job."""

    token: str

    def bundle(self, payload: bytes) -> str:
        """Sign, and have it written into the transparency log; needs the network."""
        models, sign = _library("models"), _library("sign")
        try:
            context = sign.SigningContext.from_trust_config(models.ClientTrustConfig.production())
            with context.signer(_library("oidc").IdentityToken(self.token)) as signer:
                return str(signer.sign_dsse(_library("dsse").Statement(payload)).to_json())
        except Exception as error:  # the library has no tree of errors of its own
            raise DownloadError(
                "Sigstore did not sign",
                why=f"{type(error).__name__}: {error}",
                hint="try again; or sign with a key of your own: --key FILE",
                kind="sigstore",
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReader:
    """Checks that a bundle was signed by ``identity``, vouched for by ``issuer``.

    ``root`` is a file with Sigstore's own keys; without one, those in the library are taken.
    """

    identity: str
    issuer: str
    root: Path | None = None

    @property
    def signer(self) -> str:
        """Return who must have signed."""
        return f"{self.identity} (by {self.issuer})"

    def payload(self, bundle: str) -> bytes:
        """Return the signed statement; offline."""
        models, verify = _library("models"), _library("verify")
        policy = _library("verify.policy").Identity(identity=self.identity, issuer=self.issuer)
        try:
            if self.root is None:
                verifier = verify.Verifier.production(offline=True)
            else:
                root = models.TrustedRoot.from_file(str(self.root))
                verifier = verify.Verifier(trusted_root=root)
            kind, payload = verifier.verify_dsse(models.Bundle.from_json(bundle), policy)
        except Exception as error:  # the library has no tree of errors of its own
            raise ValueError(f"Sigstore refuses it: {type(error).__name__}: {error}") from error
        if kind != dsse.PAYLOAD_TYPE:
            raise ValueError(f"it signs {str(kind)[:60]!r}, not {dsse.PAYLOAD_TYPE}")
        return bytes(payload)


def ambient_signer() -> AmbientSigner:
    """Return the signer of this CI job; refused where nobody vouches for the caller."""
    oidc = _library("oidc")
    try:
        token = oidc.detect_credential()
    except Exception as error:  # the library has no tree of errors of its own
        raise _no_identity(f"{type(error).__name__}: {error}") from error
    if not token:
        raise _no_identity("this is no job of GitHub Actions, GitLab or Buildkite with a token")
    return AmbientSigner(str(token))


def require_library() -> None:
    """Raise ``ToolMissingError`` when the extra is not installed."""
    _library("models")


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"sigstore.{name}")
    except ImportError as error:
        raise ToolMissingError(
            "Sigstore needs a library that is not installed",
            why=str(error),
            hint=f"pip install '{EXTRA}'",
            kind="no-sigstore",
        ) from error


def _no_identity(why: str) -> UsageError:
    return UsageError(
        "there is no identity to sign with",
        why=why,
        hint="in GitHub Actions: `permissions: id-token: write`; elsewhere: --key FILE",
        kind="no-identity",
    )
