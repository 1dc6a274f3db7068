"""The format of our own exports: an object a line, see ``survey`` for the first pass and ``lines`` for one line.

Contract: import.lines.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import BinaryIO

from ...shared.settings import Settings
from . import lines
from . import survey as first_pass
from .format import Survey
from .records import BadRecord, NewPart, Record


class ExportFile:
    """Implements Format. Files may be joined: each header begins a new part."""

    def survey(self, handle: BinaryIO, stop: threading.Event) -> Survey | None:
        return first_pass.survey(handle, stop)

    def records(
        self, handle: BinaryIO, survey: Survey, target: str, settings: Settings
    ) -> Iterator[tuple[int, int, Record | BadRecord]]:
        owner = ""  # whom the last header named
        # Not beyond the lines that were surveyed: a file that still grows is read as far as it was checked.
        for number, raw in zip(range(1, survey.lines + 1), first_pass.read_lines(handle), strict=False):
            if raw is None:
                yield number, 0, BadRecord("longer than any line of an export")
            elif raw:
                record: Record | BadRecord
                try:
                    record = lines.parse(raw, target, settings, owner)
                    if type(record) is NewPart:
                        owner = record.agent_id
                except BadRecord as error:
                    record = error
                yield number, len(raw), record
