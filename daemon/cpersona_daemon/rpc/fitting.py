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
ROOM_FOR_THE_REST = 1 << 20  # the envelope, what else the answer says, and the names of what is left out

_encode = msgspec.msgpack.Encoder().encode


def fit(response: dict) -> dict:
    """Return an answer without the rows that cannot be sent, and those that find no room in a frame.

    The best rows, or the first ones, are kept. ``left_out`` names the others as {ref, reason}, and a ref of get_contents
    stands in ``missing`` as well.
    """
    lists = {name: response[name] for name in LISTS if isinstance(response.get(name), list)}
    out, without = dict(response), list(response.get("left_out", ()))
    room = (
        fields.MAX_FRAME_BYTES
        - ROOM_FOR_THE_REST
        - _size({name: value for name, value in response.items() if name not in lists})
    )
    for name, rows in lists.items():
        kept, last_is_best = [], LISTS[name]
        for row in reversed(rows) if last_is_best else rows:
            try:
                size = _size(row)
            except Exception:  # a number beyond 64 bits, half a surrogate pair: what JSON can hold and the wire cannot
                without.append({"ref": _name(row), "reason": "it holds a number or a text that no answer carries"})
                continue
            if size <= room:
                room -= size
                kept.append(row)
            elif size > fields.MAX_FRAME_BYTES - ROOM_FOR_THE_REST:
                without.append(
                    {
                        "ref": _name(row),
                        "reason": f"it has {size} bytes, more than an answer carries; `cpersona export` writes it to a file",
                    }
                )
            else:
                without.append(
                    {"ref": _name(row), "reason": "the answer is full without it; ask for fewer rows at a time"}
                )
        if last_is_best:
            kept.reverse()
        if len(kept) < len(rows) and isinstance(response.get("missing"), list):
            out["missing"] = [
                *response["missing"],
                *(_name(row) for row in rows if not any(row is one for one in kept)),
            ]
        if response.get("count") == len(rows):
            out["count"] = len(kept)
        out[name] = kept
    return {**out, "left_out": without} if without else out


def _size(value: Any) -> int:
    return len(_encode(value))


def _name(row: Any) -> Any:
    """Return what a row is called in the answer."""
    return (
        next((row[key] for key in ("ref", "head_ref", "id", "note") if key in row), "a row")
        if isinstance(row, dict)
        else "a row"
    )
