"""The package room: built trees to an audited, reproducible archive with a manifest."""

from llamawright.package.pack import pack
from llamawright.package.placing import place, read_artifact

__all__ = ["pack", "place", "read_artifact"]
