"""The JSON schema of ``release.json``, for the reference pages and other programs."""

from __future__ import annotations

import json

from llamawright import codec
from llamawright.release.record import RECORD_SCHEMA, ReleaseRecord

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def release_schema() -> str:
    """Return the schema as JSON text, the same for the same types."""
    schema = codec.schema(ReleaseRecord)
    whole = {**schema, "$id": RECORD_SCHEMA, "$schema": _DRAFT, "title": "llamawright release"}
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
