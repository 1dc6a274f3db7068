"""Where an embedding service is: its address, checked without loading what asks it.

A start says at once what is wrong.

Contract: embedding.http.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from ..errors import SettingsConflict
from ..shared.addresses import masked_address


def checked(url: str) -> SplitResult:
    """Return the parts of an http address. Raises SettingsConflict for one that is none; it never quotes what is secret
    of it.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # its text quotes the user name and password
        usable = False
    if not usable:
        raise SettingsConflict(
            f"CPERSONA_EMBEDDING_URL is not an http address ({masked_address(url)});"
            " give one like http://localhost:8000/embed"
        )
    try:
        parts.port  # noqa: B018
    except ValueError:
        raise SettingsConflict(
            "CPERSONA_EMBEDDING_URL has a port that is no port number;"
            " a / ? # or @ in a password is written %2F %3F %23 %40"
        ) from None
    return parts
