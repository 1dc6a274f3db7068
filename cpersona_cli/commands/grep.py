"""`grep`: lines that hold a text as it is written, or that a regular expression matches.

The daemon hands texts out by the page, and looks itself for what is literal; an expression is matched here, so that one
without an end costs its caller alone.

Contract: grep.written, output.shapes.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import AXES, argument, command, option
from ..terminal.output import counted
from ..terminal.shaping import Shape, shape_options
from ._question import SOURCE_ID
from ._times import SINCE, UNTIL, between

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..session import Session

    Spans = list[tuple[int, int]]
    Finder = Callable[[str], Spans]

_FIELDS = ("ref", "line", "text", "match", "stored", "age", "id", "project", "channel")
_KINDS = ("mem", "ep")
LINE_SECONDS = 1.0  # that an expression may take for one line
TOO_LONG_ROWS = 3  # after which it is given up


@command(
    "grep",
    argument("pattern", "What a line must hold, as it is written; with -E a regular expression."),
    option("-E --regex", "Take it for a regular expression, as Python has them.", kind="flag", default=False),
    option("-i --ignore-case", "Whether letters are large or small does not matter.", kind="flag", default=False),
    option("-l --refs", "Print the refs of the rows alone.", kind="flag", default=False),
    option("-n --limit", "Rows at most.", kind="int", default=100, metavar="N", least=1),
    SOURCE_ID,
    SINCE,
    UNTIL,
    *shape_options(_FIELDS),
    common=AXES,
)
def grep(
    session: Session,
    pattern: str,
    regex: bool,
    ignore_case: bool,
    refs: bool,
    limit: int,
    source_id: str | None,
    **given: Any,
) -> int:
    """Print the lines of memories and episodes that hold a text as it is written. The newest row comes first.

    Columns: ref, number of the line, line. Nothing is folded, stemmed or ranked, and every row in scope is looked
    through; rows come as they are found. An episode's keywords are its last line. --since and --until compare when a
    row was stored. Exit 0 when a line was found and 3 when none was, as `exists` has it, so that 1 stays a failure;
    with -q nothing is printed. An expression that takes longer than 1 s for a line is given up, and its row named.

    Example:
      cpersona grep "rate_limit = "
      cpersona grep -E "ERR-[0-9]{4}" -i --since "last week"
      cpersona grep TODO -l | xargs cpersona get
    """
    shape, out = Shape.taken(_FIELDS, session.out, given), session.out
    if refs and (shape.chosen or out.as_json):
        raise exits.Usage("--refs prints refs alone; leave --fields, --format and --json out")
    finder = _finder(pattern, regex, ignore_case)
    params = {**session.axes(), "holds": "" if regex or ignore_case else pattern, **between(session, given)}
    if source_id is not None:
        params["source_id"] = source_id
    search = _Search(session, params, finder, 1 if out.quiet and not out.as_json else limit)
    shown = _Shown(session, shape, refs)
    for lines in search.rows():
        if not shown.row(lines):
            break
    shown.end(search)
    if search.too_long:
        out.warn(
            f"cpersona grep: not looked through to their end: {', '.join(search.too_long)}; the expression takes longer"
            f" than {LINE_SECONDS:g} s for a line"
        )
        return fields.EXIT_FAILED
    return fields.EXIT_OK if search.found else fields.EXIT_NOTHING


def _finder(pattern: str, regex: bool, ignore_case: bool) -> Finder:
    """Return what gives the (start, end) places of a line that match. Raises Usage for a pattern that cannot."""
    if not pattern:
        raise exits.Usage(
            "grep: the pattern is empty, and every line holds that; `cpersona list` shows the newest rows"
        )
    if "\n" in pattern:
        raise exits.Usage("grep: the pattern has a line break, and lines are looked through one by one")
    if not (regex or ignore_case):
        return lambda line: _places(line, pattern)
    import re

    try:
        compiled = re.compile(pattern if regex else re.escape(pattern), re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise exits.Usage(
            f"grep: -E {pattern!r} is no regular expression: {error}; without -E it is looked for as it is written"
        ) from None
    return _bounded(compiled) if regex else lambda line: _matches(compiled, line)


def _places(line: str, text: str) -> Spans:
    found, at = [], line.find(text)
    while at >= 0:
        found.append((at, at + len(text)))
        at = line.find(text, at + len(text))
    return found


def _matches(compiled: re.Pattern[str], line: str) -> Spans:
    return [match.span() for match in compiled.finditer(line)]


class _TooLong(Exception):
    """An expression takes too long for a text."""


def _bounded(compiled: re.Pattern[str]) -> Finder:
    """Return the finder of an expression that is given up after LINE_SECONDS: Python heeds signals while it matches."""
    import signal

    def over(*_: object) -> None:
        raise _TooLong

    signal.signal(signal.SIGALRM, over)

    def find(line: str) -> Spans:
        signal.setitimer(signal.ITIMER_REAL, LINE_SECONDS)
        try:
            return _matches(compiled, line)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    return find


class _Search:
    """Rows with a line that matches, newest first, up to a limit.

    ``found`` counts them, ``more`` tells that there is one beyond the limit, ``too_long`` are the rows that were given
    up.
    """

    def __init__(self, session: Session, params: dict, finder: Finder, limit: int) -> None:
        self._session, self._params, self._finder, self._limit = session, params, finder, limit
        self.found, self.more = 0, False
        self.too_long: list[str] = []

    def rows(self) -> Iterator[list[dict]]:
        """Yield the matching lines of each row: the row's fields with `line` (from 1), `text`, `start` and `end`."""
        from heapq import merge

        kinds = [self._texts(kind) for kind in _KINDS]
        for row in merge(*kinds, key=lambda row: row["created_at"], reverse=True):
            lines = self._lines(row)
            if not lines:
                continue
            if self.found == self._limit:
                self.more = True
                return
            self.found += 1
            yield lines

    def _texts(self, kind: str) -> Iterator[dict]:
        after = None
        while True:
            asked = {**self._params, "kind": kind, **({} if after is None else {"after": after})}
            answer = self._session.ask("scan_texts", asked).response
            yield from answer["rows"]
            after = answer["after"]
            if after is None:
                return

    def _lines(self, row: dict) -> list[dict]:
        text = row.pop("text")
        try:
            return [
                {**row, "line": number, "text": line, "start": spans[0][0], "end": spans[0][1], "spans": spans}
                for number, line in enumerate(text.split("\n"), 1)
                if (spans := self._finder(line))
            ]
        except _TooLong:
            self.too_long.append(row["ref"])
            if len(self.too_long) < TOO_LONG_ROWS:
                return []
            raise exits.Stop(
                f"grep: the expression takes longer than {LINE_SECONDS:g} s for a line of {', '.join(self.too_long)};"
                " repetitions within repetitions do that, write it without them"
            ) from None


class _Shown:
    """Where the lines go: as they come, but for JSON, which is one object at the end."""

    def __init__(self, session: Session, shape: Shape, refs: bool) -> None:
        self._session, self._out, self._shape, self._refs = session, session.out, shape, refs
        self._left = shape.max_chars
        self._all: list[dict] = []

    def row(self, lines: list[dict]) -> bool:
        """Show the lines of one row; false where no more are to come."""
        if self._out.quiet and not self._out.as_json:
            return False
        if self._refs:
            self._out.write(lines[0]["ref"] + ("\0" if self._shape.null else "\n"))
            return True
        for line in lines:
            if self._left is not None and len(line["text"]) > self._left:
                if self._left == self._shape.max_chars:  # the first, which is cut
                    self._line({**line, "text": line["text"][: self._left]})
                self._out.note("--max-chars left lines out")
                return False
            self._left = None if self._left is None else self._left - len(line["text"])
            self._line(line)
        return True

    def _line(self, line: dict) -> None:
        if self._out.as_json:
            self._all.append(line)
        elif self._out.draws and not (self._shape.chosen or self._shape.null):
            from ..terminal import render

            render.marked_line(self._out, f"{line['ref']}:{line['line']}: ", line["text"].rstrip("\r"), line["spans"])
        else:
            self._shape.print(self._out, [line], _field, ("ref", "line", "text"))

    def end(self, search: _Search) -> None:
        """Say what is to be said once all lines were shown."""
        out = self._out
        if out.as_json:
            told = [{name: value for name, value in line.items() if name != "spans"} for line in self._all]
            answer = {"matches": told, "rows": search.found, "more": search.more, "order": "newest_first"}
            out.json({**answer, **self._shape.chosen_json("matches", self._all, _field)})
        elif search.more and not out.quiet:
            out.note(f"{counted(search.found, 'rows')} shown, and there are more; -n shows as many as you like")
        elif not search.found:
            out.note(f"no line of agent {self._session.agent!r} in scope holds it")


def _field(row: dict, name: str) -> str:
    """Return one field of a matching line as text."""
    if name == "match":
        return str(row["text"][row["start"] : row["end"]])
    if name == "text":
        return str(row["text"]).rstrip("\r")
    if name == "age":
        from ..terminal import ages

        return ages.age(row["created_at"])
    keys = {"stored": "created_at", "project": "project_id"}
    return str(row.get(keys.get(name, name)) or "")


COMMANDS = (grep,)
