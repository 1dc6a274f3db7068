"""Where a service is: its address, checked without loading what asks it.

A start says at once what is wrong.

Contract: embedding.http, rerank.asks, services.keys.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from ..errors import SettingsConflict
from ..shared.addresses import FOLDER, masked_address
from ..shared.settings import Settings
from .key import Key

EMBEDDING, RERANK, QDRANT = "embedding", "rerank", "qdrant"
_EXAMPLES = {
    EMBEDDING: "http://localhost:8000/embed",
    RERANK: "http://localhost:8080/rerank",
    QDRANT: "http://localhost:6333, or path:/a/folder",
}


def asked_for(settings: Settings) -> list[str]:
    """Return which services the settings name: some of ``EMBEDDING``, ``RERANK`` and ``QDRANT``."""
    named = {
        EMBEDDING: settings.embedding_mode == "http",
        RERANK: bool(settings.rerank_url),
        QDRANT: settings.vector_search_mode == QDRANT and not settings.qdrant_url.startswith(FOLDER),
    }
    return [what for what, wanted in named.items() if wanted]


def checked(settings: Settings, what: str) -> tuple[SplitResult, Key]:
    """Return the parts of a service's http address, and its key. Raises SettingsConflict for an address that is none
    and for two ways of saying who asks; it never quotes what is secret.
    """
    url, variable = getattr(settings, f"{what}_url"), variable_of(what)
    parts = _parts(url, variable, _EXAMPLES[what])
    key = _key(settings, what)
    if key.given and parts.username is not None:
        raise SettingsConflict(
            f"{variable} has a user name and {key.variable} is set too; a request carries one of them: remove the other"
        )
    return parts, key


def variable_of(what: str) -> str:
    """Return the environment variable that holds a service's address."""
    return f"CPERSONA_{what.upper()}_URL"


def _key(settings: Settings, what: str) -> Key:
    """Return the key of a service, from the environment or a file; one that is empty where none is given."""
    return Key(
        f"CPERSONA_{what.upper()}_API_KEY",
        getattr(settings, f"{what}_api_key"),
        getattr(settings, f"{what}_api_key_file"),
    )


def _parts(url: str, variable: str, example: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # its text quotes the user name and password
        usable = False
    if not usable:
        raise SettingsConflict(f"{variable} is not an http address ({masked_address(url)}); give one like {example}")
    try:
        parts.port  # noqa: B018
    except ValueError:
        raise SettingsConflict(
            f"{variable} has a port that is no port number; a / ? # or @ in a password is written %2F %3F %23 %40"
        ) from None
    return parts
