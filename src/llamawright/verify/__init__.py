"""Artifact x device to verdict: the packed file, unpacked elsewhere, infers on a device."""

from llamawright.model.request import SoftwareDriver, VerifyRequest
from llamawright.verify.compare import compare
from llamawright.verify.compare_report import comparison_lines, write_comparison
from llamawright.verify.investigate_report import investigation_lines, write_investigation
from llamawright.verify.investigate_run import Attachment, investigate
from llamawright.verify.investigate_tools import Offers
from llamawright.verify.prove import verify
from llamawright.verify.quarantine import quarantined
from llamawright.verify.report import summary, write_report
from llamawright.verify.soak_report import soak_lines, write_soak
from llamawright.verify.soak_run import soak

__all__ = [
    "Attachment",
    "Offers",
    "SoftwareDriver",
    "VerifyRequest",
    "compare",
    "comparison_lines",
    "investigate",
    "investigation_lines",
    "quarantined",
    "soak",
    "soak_lines",
    "summary",
    "verify",
    "write_comparison",
    "write_investigation",
    "write_report",
    "write_soak",
]
