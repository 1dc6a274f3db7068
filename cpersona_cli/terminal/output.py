"""Where words go: data on stdout, everything else on stderr; plain and one record a line off a terminal.

Contract: output.streams.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Control characters and line separators -> their escapes, for str.translate.
_ESCAPES = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    0x2028: "\\u2028",
    0x2029: "\\u2029",
    0x0A: "\\n",
    0x09: "\\t",
    0x0D: "\\r",
}


def one_line(text: str) -> str:
    """Return text as part of one line: line breaks, tabs and control characters as escapes, all else as it is."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def without_controls(text: str) -> str:
    """Return text for a terminal: line breaks and tabs stay, other control characters (ANSI codes) become escapes."""
    return text if text.isprintable() else text.translate({**_ESCAPES, 0x0A: "\n", 0x09: "\t"})


def counted(count: object, things: str) -> str:
    """Return a number with the name of what it counts, given in its plural: `1 memory`, `1,204 memories`."""
    one = things[:-3] + "y" if things.endswith("ies") else things[:-1]
    return f"{count:,} {one if count == 1 else things}" if isinstance(count, int) else f"{count} {things}"


def to_json(value: object) -> str:
    """Return a value as one line of JSON, in UTF-8 unless it holds what UTF-8 cannot say."""
    text = _encoded(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        import json

        return json.dumps(value)
    return text


def _encoded(value: object) -> str:
    """Return what json.dumps(value, ensure_ascii=False) returns, from the C half alone where the interpreter has it."""
    try:
        from _json import encode_basestring, make_encoder

        encode = make_encoder({}, _refuse, encode_basestring, None, ": ", ", ", False, False, True)
    except (ImportError, TypeError):  # pragma: no cover - an interpreter without it, or with another form of it
        import json

        return json.dumps(value, ensure_ascii=False)
    return "".join(encode(value, 0))


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is no JSON value")


def folded(text: str, width: int, indent: str = "  ") -> list[str]:
    """Return text as lines of at most so many characters, broken at spaces alone: a flag, a ref or a path is never cut
    in two.
    """
    first, *words = text.lstrip(" ").split(" ")
    lines, line = [], " " * (len(text) - len(text.lstrip(" "))) + first
    for word in words:
        if len(line) + 1 + len(word) <= width:
            line = f"{line} {word}"
        elif word:
            lines.append(line.rstrip())
            line = indent + word
    return [*lines, line.rstrip()]


def to_stderr(text: str) -> None:
    """Say one thing on stderr: on one line, and on a terminal in lines that are broken at spaces alone."""
    lines = [one_line(text)]
    if sys.stderr.isatty():
        lines = folded(lines[0], _columns())
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def _columns() -> int:
    """Return the width to draw for; COLUMNS wins over the terminal, which may be that of stderr alone."""
    import shutil

    if "COLUMNS" not in os.environ and not sys.stdout.isatty() and sys.stderr.isatty():
        return max(20, os.get_terminal_size(sys.stderr.fileno()).columns or 80)
    return max(20, shutil.get_terminal_size((80, 24)).columns)


def flush() -> None:
    """Hand everything written so far to whoever reads stdout."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _named(error) from None


def _named(error: "OSError") -> "OSError":
    return error if isinstance(error, BrokenPipeError) else OSError(error.errno, error.strerror, "standard output")


class Output:
    """The two streams of one command.

    ``draws`` tells whether tables may be drawn: a terminal, and no JSON asked for.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.terminal = sys.stdout.isatty()
        self.draws = self.terminal and not as_json

    def use_json(self) -> None:
        """Print JSON from here on, as --json does."""
        self.as_json, self.draws = True, False

    def write(self, data: str | bytes) -> None:
        """Write text or bytes to stdout: as they are into a pipe or file, without control sequences on a terminal.

        An unpaired surrogate is written as its escape.
        """
        if self.terminal:
            data = without_controls(data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data)
        try:
            sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise _named(error) from None

    def line(self, text: str) -> None:
        self.write(text + "\n")

    def wrapped(self, text: str, indent: str = "  ") -> None:
        """Write text in lines that fit the terminal, broken at spaces alone; what goes on is indented."""
        for line in folded(text, self.columns(), indent):
            self.line(line)

    def record(self, values: "Iterable[object]", end: str = "\n") -> None:
        """Write one record: fields between tabs, each on one line, an empty one as `-`.

        With NUL as the end, text stays as it is.
        """
        shown = [str(v) if v not in (None, "") else "-" for v in values]
        self.write("\t".join(shown if end == "\0" else map(one_line, shown)) + end)

    def records(self, rows: "Iterable[Iterable[object]]") -> None:
        """Write a few records that belong together: as ``record`` does, with their columns aligned on a terminal."""
        lines = [[one_line(str(v)) if v not in (None, "") else "-" for v in row] for row in rows]
        widths: dict[int, int] = {}
        for line in lines:
            for at, cell in enumerate(line[:-1]):
                widths[at] = max(widths.get(at, 0), len(cell))
        for line in lines:
            cells = [cell.ljust(widths[at]) for at, cell in enumerate(line[:-1])] + line[-1:] if self.draws else line
            self.line(("  " if self.draws else "\t").join(cells))

    def json(self, value: object) -> None:
        self.line(to_json(value))

    def begin_screen(self) -> None:
        """Clear the terminal, so that what comes stands where the last did."""
        self.flush()
        sys.stdout.buffer.write(b"\x1b[H\x1b[2J")

    def flush(self) -> None:
        flush()

    def note(self, text: str) -> None:
        """Say something useful on stderr, unless the user asked for quiet."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Say on stderr what must not be missed."""
        self.flush()
        to_stderr(text)

    def columns(self) -> int:
        """Return the width to draw for."""
        return _columns()

    def rows(self) -> int:
        """Return the height of the screen; LINES wins over the terminal."""
        import shutil

        return shutil.get_terminal_size((80, 24)).lines

    def colours(self) -> bool:
        return self.draws and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")
