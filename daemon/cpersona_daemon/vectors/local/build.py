"""Making an index: from its files where they stand at the database's generation, else from the rows of the database.

Contract: vectors.exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...model.changes import Change, VectorPut
from ...storage import generations
from ...storage import vectors as rows
from ...storage.generations import NOTHING, Generation
from .files import Unusable
from .index import Index
from .names import FRESH
from .part import Part

_SAMPLE = 4


class Abandoned(Exception):
    """The engine closes while an index is being rebuilt."""


class Source(NamedTuple):
    """The database that an index is of: where it stands, and the 16 bytes that tell it from every other one."""

    path: str
    store_id: bytes


def opened(part: Part, source: Source) -> tuple[Index, str]:
    """Return the index of a kind and where it came from (file, or empty without vectors). Raises Unusable and more.

    Whatever a foreign file provokes is raised: the index is then built.
    """
    with rows.reader(source.path) as conn:
        conn.execute("BEGIN")
        generation, changed = generations.current(conn)
        sample = rows.latest(conn, part.kind, _SAMPLE)
        touched = list(dict.fromkeys(row_id for kind, row_id in changed if kind == part.kind))
        puts = rows.with_vectors(conn, part.kind, np.array(touched, np.int64))
    if not sample:
        index = Index(part.kind, part.path, source.store_id, generation)
        part.put_in_place(index)  # removes files that speak of rows no longer there
        return index, "empty"
    index = Index.load(part.kind, part.path, source.store_id, generation)
    try:
        if index.generation.number < generation.number:  # killed between its last commit and the index
            index.apply(puts, touched, generation)
        if index.differing(sample):
            raise Unusable("vectors differ from the database's")
    except BaseException:
        index.close(tidy=False)
        raise
    index.hide(part.hidden)
    return index, "file"


def built(part: Part, source: Source, width: int | None, abandoned: Callable[[], bool]) -> Index:
    """Read the database in scan order, oldest first, into new files beside the old ones.

    ``width`` is the one of most rows where that is known; else the newest row decides. Commits of the meantime are
    still to be brought in. Raises Abandoned, OSError, CPersonaError; nothing is left behind then.
    """
    with rows.reader(source.path) as conn:
        generation, _ = generations.current(conn)
        width = width or rows.width_of_newest(conn, part.kind)
        fresh = Index(part.kind, part.path + FRESH, source.store_id, generation)
        try:
            if width is None:
                return fresh
            fresh.fix_width(width)
            order = rows.scan_order(conn, part.kind)[::-1]
            part.total = len(order)
            for at in range(0, len(order), rows.CHUNK):
                if abandoned():
                    raise Abandoned
                found = rows.in_bulk(conn, part.kind, order[at : at + rows.CHUNK])
                if found is not None:
                    fresh.apply(found, (), NOTHING)
                part.done = min(at + rows.CHUNK, len(order))
            fresh.apply((), (), generation)
        except BaseException:
            fresh.discard()
            raise
    return fresh


def bring_in(index: Index, latest: dict[int, Change], reached: Generation) -> None:
    """Bring a commit into an index that has not seen it. Raises Unusable where one between them is missing."""
    stands = index.generation
    if reached.number <= stands.number:
        return
    if not reached.is_after(stands.number, stands.stamp):
        raise Unusable(f"a commit is missing between {stands.number} and {reached.number}")
    index.apply((change for change in latest.values() if isinstance(change, VectorPut)), latest, reached)
