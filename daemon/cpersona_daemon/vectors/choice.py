"""Which engine the settings ask for, and which files it keeps beside the database.

An engine is imported only when it is opened.

Contract: files.private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SettingsConflict
from .local import names

if TYPE_CHECKING:
    from .backend import VectorBackend

LOCAL = "local"


def backend(mode: str, places: names.IndexPlaces, clock: Any) -> VectorBackend:
    """Return the engine of a `vector_search_mode`, with the database behind it. Raises SettingsConflict."""
    if mode != LOCAL:
        raise SettingsConflict(
            f"CPERSONA_VECTOR_SEARCH_MODE={mode}: so far vectors are searched by this daemon alone (local)"
        )
    from .fallback import WithFallback
    from .local.engine import LocalEngine

    return WithFallback(LocalEngine(places, clock))


def files_of(places: names.IndexPlaces) -> tuple[str, ...]:
    """Return every file beside the database that is derived from its vectors; each may be missing or removed."""
    return names.files_of(places)
