"""Artifact x device to verdict: the packed file, unpacked elsewhere, infers on a device."""

from llamawright.model.request import SoftwareDriver, VerifyRequest
from llamawright.verify.prove import verify
from llamawright.verify.report import summary, write_report

__all__ = ["SoftwareDriver", "VerifyRequest", "summary", "verify", "write_report"]
