"""Where an embedding service is: its address, checked without loading what asks it, because a start says at once what is wrong.

Contract: contracts.md §12.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from ..errors import SettingsConflict


def checked(url: str) -> SplitResult:
    """Return the parts of an http address. Raises SettingsConflict for one that is none; it never quotes a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsConflict(f"CPERSONA_EMBEDDING_URL is not an http address: {parts.scheme or '(no scheme)'}://{parts.hostname or '(no host)'}")
    try:
        parts.port  # noqa: B018
    except ValueError:
        raise SettingsConflict("CPERSONA_EMBEDDING_URL has a port that is no port number") from None
    return parts
