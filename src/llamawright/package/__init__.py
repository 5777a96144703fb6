"""The package room: built trees to an audited, reproducible archive with a manifest."""

from llamawright.package.companion import companion_libraries
from llamawright.package.packing import pack, packed_before
from llamawright.package.placing import place, read_artifact
from llamawright.package.schema import manifest_schema

__all__ = [
    "companion_libraries",
    "manifest_schema",
    "pack",
    "packed_before",
    "place",
    "read_artifact",
]
