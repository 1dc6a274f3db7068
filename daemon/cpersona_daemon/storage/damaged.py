"""Reading rows of which one may be damaged or of a size or shape that no answer carries: each costs itself alone.

SQLite hands out bytes that are no UTF-8 as they are, whether a disk flipped them or another program wrote them. A
statement read here goes on behind such a row: ``rows`` says which one it was, ``texts`` shows what can be read of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from ..shared import fields

NOT_UTF8 = "its text is damaged: it is not valid UTF-8"
_SIGNIFICANT = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
# Above so many characters a row is measured; below, even four bytes each leave room for all else in a frame.
_SURELY_FITS = fields.MAX_FRAME_BYTES // 8


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that is there and cannot be given out; ``reason`` says why in words that follow its ref."""

    id: int
    reason: str


def rows(conn: apsw.Connection, sql: str, params: tuple = ()) -> Iterator[tuple | Unreadable]:
    """Yield what a statement returns, with an Unreadable for each row that is not valid UTF-8.

    Its first column is named id.
    """
    cursor, place, ids = conn.execute(sql, params), 0, None
    while True:
        try:
            row = next(cursor)
        except StopIteration:
            return
        except UnicodeDecodeError:
            if ids is None:
                ids = [i for (i,) in conn.execute(f"SELECT id FROM ({sql})", params)]
            row = Unreadable(ids[place], NOT_UTF8)
        yield row
        place += 1


def readable(cursor: Iterator[tuple]) -> Iterator[tuple | None]:
    """Yield what a statement returns, None for each row that is not valid UTF-8."""
    while True:
        try:
            yield next(cursor)
        except StopIteration:
            return
        except UnicodeDecodeError:
            yield None


def texts(conn: apsw.Connection, sql: str, params: tuple = ()) -> list[tuple]:
    """Return what a statement returns; of a text that is not valid UTF-8 with a mark for each byte that cannot be read.

    For what weighs, embeds or compares a row and shows nothing of it. Every column has a name of its own.
    """
    cursor = conn.execute(sql, params)
    try:
        return cursor.fetchall()
    except UnicodeDecodeError:
        columns = ", ".join(
            f'typeof("{name}"), iif(typeof("{name}") = \'text\', CAST("{name}" AS BLOB), "{name}")'
            for name, _ in conn.execute(sql, params).getdescription()
        )
    return [
        tuple(
            value.decode("utf-8", "replace") if kind == "text" else value
            for kind, value in zip(row[::2], row[1::2], strict=True)
        )
        for row in conn.execute(f"SELECT {columns} FROM ({sql})", params)
    ]


def unfit(content: str, *values: str) -> str | None:
    """Return why no answer carries a row with this text and these values in JSON, None where one does."""
    for value in values:
        if nests_deeper(value, fields.MAX_NESTING):
            return f"its source or metadata nests deeper than {fields.MAX_NESTING} levels"
    return oversized(content, *values)


def oversized(*texts: str) -> str | None:
    """Return why no answer carries the texts of a row together, None where one does."""
    if sum(map(len, texts)) <= _SURELY_FITS:
        return None
    size = sum(len(text.encode()) for text in texts)
    return (
        f"it has {size} bytes, more than an answer carries; `cpersona export` writes it to a file"
        if size > fields.MAX_FRAME_BYTES - 65_536
        else None
    )


def nests_deeper(text: str, most: int) -> bool:
    """Tell whether lists and maps stand inside one another more than ``most`` levels deep in a text of JSON."""
    if text.count("[") + text.count("{") <= most:
        return False
    depth = 0
    for sign in _SIGNIFICANT.finditer(text):
        if sign[0] in "[{":
            depth += 1
            if depth > most:
                return True
        elif sign[0] in "]}":
            depth -= 1
    return False
