"""Runtime wheels: a packed artifact as a Python distribution, audited and reproducible."""

from llamawright.package.wheels.build import audit_wheel, build_wheel

__all__ = ["audit_wheel", "build_wheel"]
