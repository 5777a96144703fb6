"""The attest room: Artifact and Verdict to signed statements, and back to what they prove."""

from llamawright.attest.check import Trust, check
from llamawright.attest.claim import VerdictRule, read_claim
from llamawright.attest.findings import Demand, Finding, Part, Standing, conclude
from llamawright.attest.keyless import IdentityReader, ambient_signer, require_library
from llamawright.attest.keys import PASSPHRASE_VARIABLE, generate, load_private, load_public
from llamawright.attest.making import BUNDLES, SBOM, STATEMENTS, attestation, write
from llamawright.attest.opening import Subject, open_subject
from llamawright.attest.provenance import LOCAL_BUILDER, Invocation

__all__ = [
    "BUNDLES",
    "LOCAL_BUILDER",
    "PASSPHRASE_VARIABLE",
    "SBOM",
    "STATEMENTS",
    "Demand",
    "Finding",
    "IdentityReader",
    "Invocation",
    "Part",
    "Standing",
    "Subject",
    "Trust",
    "VerdictRule",
    "ambient_signer",
    "attestation",
    "check",
    "conclude",
    "generate",
    "load_private",
    "load_public",
    "open_subject",
    "read_claim",
    "require_library",
    "write",
]
