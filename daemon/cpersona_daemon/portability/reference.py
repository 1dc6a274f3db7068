"""Records of an export as the reference implementation takes them.

It knows two who declare an association, and metadata that is an object; fields that it does not know do no harm there.

Contract: export.reference.
"""

from __future__ import annotations

import msgspec

from ..shared import fields
from .imports.lines import DECLARED_AS

_KNOWN = ("agent", "operator")


def fit(record: dict) -> dict:
    """Return a record that the reference takes; what had to change in it stands beside it, where an import here finds
    it.
    """
    by = record.get("declared_by")
    if by is not None and by not in _KNOWN:
        return {**record, "declared_by": "operator" if by == fields.OWNER else "agent", DECLARED_AS: by}
    if "metadata" in record and not isinstance(record["metadata"], dict):
        return {**record, "metadata": {}, "metadata_text": msgspec.json.encode(record["metadata"]).decode()}
    return record
