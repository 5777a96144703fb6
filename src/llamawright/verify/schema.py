"""The JSON schema of ``<name>.verdict.json``, for the reference pages and other programs."""

from __future__ import annotations

import json

from llamawright import codec
from llamawright.model.verdict import VERDICT_SCHEMA, Verdict

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def verdict_schema() -> str:
    """Return the schema as JSON text, the same for the same types."""
    schema = codec.schema(Verdict)
    whole = {**schema, "$id": VERDICT_SCHEMA, "$schema": _DRAFT, "title": "llamawright verdict"}
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
