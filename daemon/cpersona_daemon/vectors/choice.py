"""Which engine the settings ask for, and which files it keeps beside the database.

An engine is imported only when it is opened.

Contract: files.private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SettingsConflict
from ..shared.settings import Settings
from .local import names

if TYPE_CHECKING:
    from .fallback import WithFallback

LOCAL, REMOTE = "local", "remote"


def backend(settings: Settings, places: names.IndexPlaces, clock: Any) -> WithFallback:
    """Return the engine that the settings ask for, with the database behind it. Raises SettingsConflict."""
    from . import fallback

    mode = settings.vector_search_mode
    if mode == LOCAL:
        from .local.engine import LocalEngine

        return fallback.WithFallback(LocalEngine(places, clock))
    if mode == REMOTE:
        from . import ahead
        from .remote.engine import RemoteEngine
        from .remote.service import Service

        engine = RemoteEngine(places, clock, Service(settings))
        return fallback.WithFallback(engine, ahead.Asking(engine))
    raise SettingsConflict(f"CPERSONA_VECTOR_SEARCH_MODE={mode}: vectors are searched by local or remote")


def files_of(places: names.IndexPlaces) -> tuple[str, ...]:
    """Return every file beside the database that is derived from its vectors; each may be missing or removed."""
    return names.files_of(places)
