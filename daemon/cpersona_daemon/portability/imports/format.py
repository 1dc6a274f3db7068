"""What a format of files that can be imported has to do. A new one is one new file, and a line in ``run.FORMATS``.

Contract: import.lines.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from ...shared.settings import Settings
from .records import BadRecord, Record

Key = tuple[int, str, int]  # the part of the file (1, 2, …), the kind and the id of a row in it


@dataclass(slots=True)
class Survey:
    """What the first pass found: so many ``lines``, or whatever the format counts and numbers its records by.

    ``wanted`` are the rows that associations name: only for these must the second pass remember which id they got.
    ``unit`` is what a number counts, as a complaint begins with it.
    """

    lines: int = 0
    wanted: set[Key] = field(default_factory=set)
    unit: str = "Line"

    def close(self) -> None:
        """End what the two passes had open."""


class Format(Protocol):
    """A format of files. A file is read twice from its start: surveyed, with nothing written, then taken in."""

    def survey(self, handle: BinaryIO, stop: threading.Event) -> Survey | None:
        """Return what a file of this format holds, None for a file of another one, which its content tells.

        ``handle.name`` is the path. Raises Refused for a file that is not whole or of an unknown version, ShuttingDown
        once ``stop`` is set.
        """
        ...

    def records(
        self, handle: BinaryIO, survey: Survey, target: str, settings: Settings
    ) -> Iterator[tuple[int, int, Record | BadRecord]]:
        """Yield (number of the line, its bytes, the record or what is wrong with it), no further than was surveyed.

        A record belongs to ``target`` unless that is ''. A NewPart says where ids begin to mean others.
        """
        ...
