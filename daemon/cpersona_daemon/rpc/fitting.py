"""An answer that no frame carries is given without the rows that keep it from that; each of them is named.

Only an answer that could not be sent comes here, so what it costs is paid by no other.

Contract: answer.fits.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..shared import fields

# The lists of rows in answers, and whether the last row is the best.
LISTS = {
    "messages": True,
    "memories": False,
    "episodes": False,
    "items": False,
    "canaries": False,
    "entities": False,
    "relations": False,
    "notes": False,
}
# The envelope, what else the answer says, and the names of what is left out
ROOM_FOR_THE_REST = 1 << 20
MOST_BYTES = fields.MAX_FRAME_BYTES - ROOM_FOR_THE_REST

_encode = msgspec.msgpack.Encoder().encode


def fit(response: dict) -> dict:
    """Return an answer without the rows that cannot be sent, and those that find no room in a frame.

    The best rows, or the first ones, are kept. ``left_out`` names the others as {ref, reason}, and a ref of
    get_contents stands in ``missing`` as well.
    """
    lists = {name: response[name] for name in LISTS if isinstance(response.get(name), list)}
    out, without = dict(response), list(response.get("left_out", ()))
    others = {name: value for name, value in response.items() if name not in lists}
    room = MOST_BYTES - _size(others)
    for name, rows in lists.items():
        kept, dropped, room = _kept(rows, LISTS[name], room)
        without += [{"ref": _name(row), "reason": reason} for row, reason in dropped]
        if dropped and isinstance(response.get("missing"), list):
            out["missing"] = [*response["missing"], *_names(rows, dropped)]
        if response.get("count") == len(rows):
            out["count"] = len(kept)
        out[name] = kept
    return {**out, "left_out": without} if without else out


def _kept(rows: list, last_is_best: bool, room: int) -> tuple[list, list[tuple[Any, str]], int]:
    """Return the rows that find room, the others with the reason, and the room that is left.

    Rows are kept in their order; the others come in that of their worth.
    """
    kept: list = []
    dropped: list[tuple[Any, str]] = []
    for row in reversed(rows) if last_is_best else rows:
        try:
            size = _size(row)
        except Exception:  # a number beyond 64 bits, half a surrogate pair: what JSON can hold and the wire cannot
            dropped.append((row, "it holds a number or a text that no answer carries"))
            continue
        if size <= room:
            room -= size
            kept.append(row)
        elif size > MOST_BYTES:
            more = f"it has {size} bytes, more than an answer carries"
            dropped.append((row, f"{more}; `cpersona export` writes it to a file"))
        else:
            dropped.append((row, "the answer is full without it; ask for fewer rows at a time"))
    if last_is_best:
        kept.reverse()
    return kept, dropped, room


def _names(rows: list, dropped: list[tuple[Any, str]]) -> list:
    """Return the names of rows that were dropped, in the order of the answer."""
    gone = {id(row) for row, _ in dropped}
    return [_name(row) for row in rows if id(row) in gone]


def _size(value: Any) -> int:
    return len(_encode(value))


def _name(row: Any) -> Any:
    """Return what a row is called in the answer."""
    return (
        next((row[key] for key in ("ref", "head_ref", "id", "note") if key in row), "a row")
        if isinstance(row, dict)
        else "a row"
    )
