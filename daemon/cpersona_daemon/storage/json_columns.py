"""What the columns hold that are JSON text: a row's source and its metadata, as they are read back.

Contract: rows.shape, store.source.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

_LONG_NUMBER = re.compile("[0-9]{19}")
_BEYOND = re.compile("NaN|Infinity|[0-9][eE][+]?[0-9]{3}|[0-9]{300}")  # what may be no finite number


def source_id(source: str) -> str | None:
    """Return `source.id` as text, or None where the JSON is malformed or names none; a number compares as text."""
    try:
        value = json.loads(source)
    except (ValueError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    if isinstance(found, bool) or found is None or isinstance(found, (dict, list)):
        return None
    return found if isinstance(found, str) else json.dumps(found)


def load_json(text: str) -> Any:
    """Return what a JSON column holds, or the text itself where an import brought something malformed.

    A whole number of more digits than an answer carries is the nearest number that it does; exports keep every digit.
    """
    try:
        return loads_finite(text, parse_int=_carried if _LONG_NUMBER.search(text) else None)
    except (ValueError, RecursionError):
        return text


def loads_finite(text: str, parse_int: Callable[[str], Any] | None = None) -> Any:
    """Return what a text of JSON says. Raises ValueError also for NaN and Infinity, by name or by size, which no JSON
    can say again.
    """
    if _BEYOND.search(text) is None:
        return json.loads(text, parse_int=parse_int)
    return json.loads(text, parse_int=parse_int, parse_constant=_finite, parse_float=_finite)


def load_source(text: str) -> dict:
    """Return the source that a JSON column holds; one that is malformed, or no map, is shown as none."""
    source = load_json(text)
    return source if isinstance(source, dict) else {}


def _finite(number: str) -> float:
    found = float(number)
    if not math.isfinite(found):
        raise ValueError(f"{number} is no number of JSON")
    return found


def _carried(digits: str) -> int | float | str:
    number = int(digits) if len(digits) < 400 else None
    if number is None:
        return digits
    return number if -(1 << 63) <= number < 1 << 63 else float(number) if abs(number) < 10**300 else digits
