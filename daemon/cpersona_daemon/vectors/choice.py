"""Which engine the settings ask for, and which files it keeps beside the database.

An engine is imported only when it is opened, and what an extra brings only in its mode.

Contract: files.private, qdrant.extra.
"""

from __future__ import annotations

import hashlib
import os
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import SettingsConflict
from ..shared.addresses import FOLDER
from ..shared.settings import Settings
from .local import names

if TYPE_CHECKING:
    from .fallback import WithFallback
    from .qdrant.client import Client

PORT = 6333  # of a Qdrant whose address names none, as its client has it
LOCAL, QDRANT, REMOTE = "local", "qdrant", "remote"


def check(settings: Settings) -> None:
    """Raise SettingsConflict where the engine that the settings ask for cannot be opened."""
    mode = settings.vector_search_mode
    if mode not in (LOCAL, QDRANT, REMOTE):
        raise SettingsConflict(f"CPERSONA_VECTOR_SEARCH_MODE={mode}: nothing of this name searches vectors")
    if mode != QDRANT:
        return
    url = settings.qdrant_url
    if not url:
        raise SettingsConflict(
            "CPERSONA_VECTOR_SEARCH_MODE=qdrant needs CPERSONA_QDRANT_URL: an http address, or path: and a folder"
        )
    if "@" in url and not url.startswith(FOLDER):
        raise SettingsConflict(
            "CPERSONA_QDRANT_URL holds a user name, which Qdrant does not take; its key goes into"
            " CPERSONA_QDRANT_API_KEY or a file that CPERSONA_QDRANT_API_KEY_FILE names"
        )
    if url.startswith(FOLDER) and not os.path.isabs(_folder(url)):
        raise SettingsConflict(f"CPERSONA_QDRANT_URL={url} names no folder from the root on; write path:/a/folder")
    package = "qdrant_edge" if url.startswith(FOLDER) else "qdrant_client"
    if find_spec(package) is None:
        raise SettingsConflict(
            "CPERSONA_VECTOR_SEARCH_MODE=qdrant needs packages that are not installed:"
            " `pip install 'cpersona-cli[qdrant]'` brings them"
        )


def backend(settings: Settings, places: names.IndexPlaces, clock: Any) -> WithFallback:
    """Return the engine that the settings ask for, with the database behind it. Raises SettingsConflict."""
    check(settings)
    from . import fallback

    if settings.vector_search_mode == QDRANT:
        return _qdrant(settings, places, clock)
    if settings.vector_search_mode == REMOTE:
        from . import ahead
        from .remote.engine import RemoteEngine
        from .remote.service import Service

        engine = RemoteEngine(places, clock, Service(settings))
        return fallback.WithFallback(engine, ahead.Asking(engine))
    from .local.engine import LocalEngine

    return fallback.WithFallback(LocalEngine(places, clock))


def _qdrant(settings: Settings, places: names.IndexPlaces, clock: Any) -> WithFallback:
    from . import ahead, fallback
    from .qdrant.engine import QdrantEngine

    owner = hashlib.sha256(f"{socket.gethostname()} {os.path.realpath(places.db)}".encode()).hexdigest()[:16]
    always_exact = settings.qdrant_exact or settings.qdrant_url.startswith(FOLDER)
    engine = QdrantEngine(qdrant(settings), settings.qdrant_collection, owner, clock, always_exact)
    return fallback.WithFallback(engine, ahead.Asking(engine))


def qdrant(settings: Settings) -> Client:
    """Return what asks the Qdrant that the settings name. Raises SettingsConflict."""
    check(settings)
    if settings.qdrant_url.startswith(FOLDER):
        from .qdrant.hosted import Hosted

        return Hosted(_folder(settings.qdrant_url))
    from ..services import address
    from .qdrant.client import Served

    parts, key = address.checked(settings, address.QDRANT)
    return Served(settings.qdrant_url, f"{parts.hostname}:{parts.port or PORT}", key)


def _folder(url: str) -> str:
    return os.path.expanduser(url.removeprefix(FOLDER))


def files_of(places: names.IndexPlaces) -> tuple[str, ...]:
    """Return every file beside the database that is derived from its vectors; each may be missing or removed."""
    return names.files_of(places)
