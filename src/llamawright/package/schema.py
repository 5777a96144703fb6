"""The JSON schema of ``manifest.json``, for the reference pages and for other programs."""

from __future__ import annotations

import json

from llamawright import codec
from llamawright.model.artifact import MANIFEST_SCHEMA, Manifest

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def manifest_schema() -> str:
    """Return the schema as JSON text, the same for the same types."""
    schema = codec.schema(Manifest)
    whole = {**schema, "$id": MANIFEST_SCHEMA, "$schema": _DRAFT, "title": "llamawright manifest"}
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
