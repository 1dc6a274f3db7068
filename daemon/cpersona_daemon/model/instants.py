"""Reading and writing time: every stamp names an instant, and a naive one means UTC.

Contract: time.utc.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_CREATED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

HOUR = 3600.0  # in seconds


def parse_instant(text: object) -> float | None:
    """Return the instant that an ISO-8601 text names in epoch seconds, or None if it names none."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


def iso_now(now: float) -> str:
    """Return an instant as ISO-8601 text with its offset, to the microsecond."""
    return datetime.fromtimestamp(now, UTC).isoformat()


def created_text(now: float) -> str:
    """Return an instant as `YYYY-MM-DD HH:MM:SS`, naive UTC: the form of every created_at."""
    return datetime.fromtimestamp(now, UTC).isoformat(" ", "seconds")[:19]


def normal_created(text: object) -> str | None:
    """Return any readable stamp in created_at's form, or None when it names no instant."""
    if isinstance(text, str) and _CREATED.fullmatch(text) and parse_instant(text) is not None:
        return text
    instant = parse_instant(text)
    return None if instant is None else created_text(instant)


def created_seconds(text: str) -> int:
    """Return a created_at as whole epoch seconds, the key that the vector scan orders by."""
    instant = parse_instant(text)
    return 0 if instant is None else int(instant)
