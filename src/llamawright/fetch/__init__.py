"""Pinned bytes from the index, an archive, git or a folder, as one and the same source tree."""

from llamawright.fetch.measure import TreeFacts, digest_of
from llamawright.fetch.model import fetch_model
from llamawright.fetch.source import fetch_source

__all__ = ["TreeFacts", "digest_of", "fetch_model", "fetch_source"]
