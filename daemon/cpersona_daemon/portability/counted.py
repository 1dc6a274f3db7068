"""How answers count associations."""

from __future__ import annotations

from collections.abc import Mapping


def associations(counts: Mapping[str, int]) -> dict[str, int] | None:
    """Return how many of each there are, from counts by kind of line; None where there are none at all."""
    found = {"entities": counts["entity"], "mentions": counts["mention"], "relations": counts["relation"]}
    return found if any(found.values()) else None
