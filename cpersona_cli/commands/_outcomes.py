"""What is said of each line of a file while its memories are stored.

JSON for a program; for a person a bar and the faults.

Contract: store.lines, output.streams.
"""

from __future__ import annotations

import os
import stat

from ..terminal import progress
from ..terminal.output import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from ..terminal.output import Output

# Faults that are said line by line where a person watches; the others are counted.
FAULTS_SHOWN = 5
_READ_BYTES = 1 << 20


class _Watched:
    """Outcomes that are counted by a bar, or by lines on stderr, where there is one."""

    def __init__(self, out: Output, descriptor: int, watched: bool, lines: bool) -> None:
        self._out = out
        self._bar = progress.shown(out, "store", lines) if watched else None
        self._total = None if self._bar is None else _lines_of(descriptor)
        self._done = 0

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)

    def _count(self) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar({"done": self._done, "total": self._total, "stage": "storing"})


class Printed(_Watched):
    """Outcomes for a program: one line of JSON each; how far they are, where that is asked for."""

    def __init__(self, out: Output, descriptor: int, lines: bool) -> None:
        super().__init__(out, descriptor, lines, lines)

    def outcome(self, outcome: dict) -> None:
        self._out.line(to_json(outcome))
        self._count()


class Drawn(_Watched):
    """Outcomes for a person: a bar, and in words only what went wrong. Lines that are typed are answered one by one."""

    def __init__(self, out: Output, descriptor: int, lines: bool) -> None:
        self._typed = os.isatty(descriptor)
        super().__init__(out, descriptor, not self._typed, lines)
        self._faults = 0

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._faults > FAULTS_SHOWN:
            self._out.warn(
                f"cpersona store: {self._faults:,} were rejected, the first {FAULTS_SHOWN} are shown;"
                " with --json every line says its reason"
            )

    def outcome(self, outcome: dict) -> None:
        where = f"line {outcome['line']}" + (f", row {outcome['row']}" if "row" in outcome else "")
        if outcome["result"] == "rejected":
            self._faults += 1
            if self._typed or self._faults <= FAULTS_SHOWN:
                self._out.warn(f"cpersona store: {where}: rejected: {outcome['reason']}")
        elif self._typed:
            reason = f" ({outcome['reason']})" if "reason" in outcome else ""
            self._out.line(f"{where}: {outcome['result']}{reason}" + (f" {outcome['ref']}" if "ref" in outcome else ""))
        for found in outcome.get("secrets", ()):
            self._out.warn(
                f"cpersona store: {where}: what looks like a secret is in the {found.get('in', 'text')},"
                f" {found.get('kind')}"
                + (f"; `cpersona delete {outcome['ref']}` removes it" if "ref" in outcome else "")
            )
        self._count()


def _lines_of(descriptor: int) -> int | None:
    """Count the lines of a file that can be read again from its beginning, None for another kind of input."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    count, last = 0, b"\n"
    while data := os.pread(descriptor, _READ_BYTES, at):
        at += len(data)
        count += data.count(b"\n")
        last = data[-1:]
    return count + (last != b"\n")
