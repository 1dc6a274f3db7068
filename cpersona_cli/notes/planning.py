"""What the store has of a directory beside what the directory holds: what is new, changed, the same, gone. Pure.

Contract: import.markdown, import.prune.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .reading import Directory


class Plan(NamedTuple):
    """Notes to store and to update; ids of sections that their file no longer has (``replaced``), and of files that are
    gone, and of notes that are the same; and the refs of locked rows that something would happen to.
    """

    new: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    replaced: list[str]
    gone: list[str]
    same: list[str]
    locked: list[str]


def plan(
    directory: Directory, notes: Sequence[dict[str, Any]], kept: Sequence[dict[str, Any]], unread: Callable[[str], bool]
) -> Plan:
    """Compare the notes of a directory with what find_notes answered of its ids.

    ``unread(path)`` tells whether a file may be there that could not be read: nothing of it counts as gone.
    """
    known, files = {row["id"]: row for row in kept}, {directory.file_of(note["id"]) for note in notes}
    made = Plan([], [], [], [], [], [])
    for note in notes:
        row = known.pop(note["id"], None)
        if row is None:
            made.new.append(note)
        elif row.get("digest") == note["metadata"]["digest"]:
            made.same.append(row["id"])
        elif row["locked"]:
            made.locked.append(row["ref"])
        else:
            made.changed.append(note)
    for id, row in known.items():
        file_id = directory.file_of(id)
        if not row["own"] or unread(directory.path_of(file_id)):
            continue
        if row["locked"]:
            made.locked.append(row["ref"])
        else:
            (made.replaced if file_id in files else made.gone).append(id)
    return made
