"""How long ago a stored stamp is, in one short word.

Every row that a recall shows has one, so the usual stamp is read without loading datetime.

Contract: output.shapes, speed.client.
"""

import time

_UNITS = (("s", 1, 60), ("m", 60, 3_600), ("h", 3_600, 86_400), ("d", 86_400, 86_400 * 365))


def age(stamp: str, now: float | None = None) -> str:
    """Return how long ago a stored stamp is (`3m`, `5h`, `12d`, `2y`), or '' when it names no instant."""
    moment = _usual(stamp)
    if moment is None:
        moment = _unusual(stamp)
    if moment is None:
        return ""
    passed = (time.time() if now is None else now) - moment
    if passed < 0:
        return "ahead"
    for unit, length, limit in _UNITS:
        if passed < limit:
            return f"{int(passed // length)}{unit}"
    return f"{passed / (86_400 * 365.25):.1f}y"


def _usual(stamp: object) -> float | None:
    """Return the epoch seconds of a stamp as the store writes it; None leaves it to datetime."""
    parts = _parts(stamp)
    if parts is None:
        return None
    year, month, day, hour, minute, second, fraction = parts
    # How many days a month has is datetime's to know.
    if not (year and 1 <= month <= 12 and 1 <= day <= 28 and hour < 24 and minute < 60 and second < 60):
        return None
    if month < 3:  # years that begin in March have their leap day at the end
        year, month = year - 1, month + 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719_469
    return ((days * 24 + hour) * 60 + minute) * 60 + second + fraction / 1e6


def _parts(stamp: object) -> "list[int] | None":
    """Return the seven numbers of `YYYY-MM-DDThh:mm:ss[.ffffff]+00:00`, None of any other form."""
    if not isinstance(stamp, str) or stamp[-6:] != "+00:00" or stamp[4:19:3] != "--T::":
        return None
    whole, _, part = stamp[:-6].partition(".")
    digits = whole[:4], whole[5:7], whole[8:10], whole[11:13], whole[14:16], whole[17:], f"{part:0<6}"
    if len(whole) != 19 or len(part) > 6 or not all(piece.isascii() and piece.isdigit() for piece in digits):
        return None
    return [int(piece) for piece in digits]


def _unusual(stamp: object) -> float | None:
    """Return the epoch seconds of any instant that datetime reads; one without a zone is UTC."""
    from .times import UTC, datetime

    try:
        moment = datetime.fromisoformat(stamp.strip())  # type: ignore[attr-defined]  # what is no text is none
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, AttributeError):
        return None
