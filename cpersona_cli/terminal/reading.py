"""Read what a command is given: text from an argument, `-` or a pipe; JSON; refs; NAME=VALUE pairs; input lines."""

import os
import sys

from cpersona_daemon.shared import fields

from ..exits import Stop, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .output import Output

_MEGABYTE = 1024 * 1024
_JSON_SPACE = " \t\n\r"


def announce(out: "Output") -> None:
    """Say that standard input is read from here on, where that is a terminal: a command that waits for it looks like
    one that hangs.
    """
    if sys.stdin.isatty():
        out.note("reading from this terminal until Ctrl-D")


def question(text: str, out: "Output") -> str:
    """Return the question of an argument; `-` means standard input, which must hold one. Raises Stop."""
    if text != "-":
        return text
    asked = read_text("-", out).strip("\n")
    if not asked.strip():
        raise Stop("standard input holds no question; give one as the argument")
    return asked


def text_or_stdin(text: str | None, what: str, out: "Output") -> str:
    """Return the text of an argument; `-`, or no argument at all behind a pipe, means standard input.

    Raises Usage, Stop.
    """
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise Usage(f"give the {what} as an argument, or - to read it from standard input")
    return read_text("-", out)


def read_text(name: str, out: "Output") -> str:
    """Return a whole file, or standard input for `-`, as text.

    Raises Stop when it is not UTF-8 or larger than a request may be.
    """
    shown = "standard input" if name == "-" else name
    if name == "-":
        announce(out)
    with sys.stdin.buffer if name == "-" else open(name, "rb") as handle:
        data = handle.read(fields.MAX_FRAME_BYTES + 1)
    if len(data) > fields.MAX_FRAME_BYTES:
        raise Stop(
            f"{shown} is larger than {fields.MAX_FRAME_BYTES // _MEGABYTE} MB, the most that one request carries; "
            "split it"
        )
    return decode(data, shown)


def decode(data: bytes, shown: str) -> str:
    """Return UTF-8 bytes as text; a byte order mark is dropped. Raises Stop that names the first bad byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(
            f"{shown} is not valid UTF-8 (byte {error.start + 1} is 0x{data[error.start]:02x}); convert it first, for "
            "instance with iconv"
        ) from None


def parse_json(text: str) -> "Any":
    """Return the value of strict JSON text (no NaN, no Infinity). Raises ValueError with a reason fit for one line."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON value")

    said = text.strip(_JSON_SPACE)
    try:
        value, end = _scanner(refuse)(said, 0)
        if end == len(said):
            return value
    except Exception:
        pass  # whatever is wrong with it is said by the whole parser, below
    import json

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno} column {error.colno}") from None


def _scanner(refuse: "Callable[[str], None]") -> "Callable[[str, int], tuple[Any, int]]":
    """Return the C half of json's decoder, which is what json.loads calls; the Python half around it costs as much as
    the interpreter's start.
    """
    from _json import make_scanner

    class Context:
        strict, object_hook, object_pairs_hook = True, None, None
        parse_float, parse_int, parse_constant = float, int, staticmethod(refuse)
        memo: dict[str, str] = {}

    return make_scanner(Context)  # type: ignore[arg-type]  # any object with these names will do


def json_argument(text: str, option: str, kind: type = dict) -> "Any":
    """Return the JSON value of an option, of the Python type ``kind``. Raises Usage."""
    try:
        value = parse_json(text)
    except ValueError as error:
        raise Usage(f"{option}: not JSON, {error}") from None
    if not isinstance(value, kind):
        raise Usage(f"{option}: not a JSON {'object' if kind is dict else 'array'}")
    return value


def json_objects(name: str, out: "Output") -> list[dict]:
    """Return the objects of a file (or of standard input for `-`): a JSON array, or one object a line. Raises Stop."""
    text, shown = read_text(name, out).strip(), "standard input" if name == "-" else name
    try:
        value = (
            parse_json(text)
            if text.startswith("[")
            else [parse_json(line) for line in text.splitlines() if line.strip()]
        )
    except ValueError as error:
        raise Stop(f"{shown} is not JSON: {error}") from None
    if not all(isinstance(item, dict) for item in value):
        raise Stop(f'{shown} must hold objects like {{"role": "user", "content": "hello"}}')
    return value


def ref(text: str) -> tuple[str, int]:
    """Return (kind, id) of `mem:12`, `ep:3` or a bare memory number. Raises Usage."""
    kind, colon, number = text.strip().rpartition(":")
    if (
        kind not in (("mem", "ep") if colon else ("",))
        or not (number.isascii() and number.isdigit() and len(number) <= 18)
        or number[0] == "0"
    ):
        raise Usage(f"{text!r} is no ref; give one like mem:12 or ep:3, as recall shows them")
    return kind or "mem", int(number)


def canonical(text: str) -> str:
    """Return a ref as the wire has it, `mem:12` for a bare number too. Raises Usage."""
    return "{}:{}".format(*ref(text))


def memory_id(text: str) -> int:
    """Return the number of a memory's ref. Raises Usage for an episode."""
    kind, number = ref(text)
    if kind != "mem":
        raise Usage(f"{text} is an episode; this command takes memories, like mem:12")
    return number


def pairs(settings: "Iterable[str]") -> dict[str, str]:
    """Return the NAME=VALUE texts of --set as a map. Raises Usage."""
    out = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise Usage(f"--set takes NAME=VALUE, for instance recall_mode=rsf, not {text!r}")
        out[name.strip().lower().removeprefix("cpersona_")] = value
    return out


class LineTooLong(ValueError):
    """One line of the input is more than a request can carry."""


class Lines:
    """The lines of a file descriptor, read as they arrive; it can be asked whether the next one is there yet."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self._buffer, self._ended = descriptor, bytearray(), False
        self.wait: Callable[[int], None] | None = None  # called with the descriptor before each read that may take long

    def ready(self) -> bool:
        """Tell whether ``next`` would return at once."""
        import select

        while not self._ended and b"\n" not in self._buffer and len(self._buffer) <= fields.MAX_FRAME_BYTES:
            if not select.select([self.descriptor], [], [], 0)[0]:
                return False
            self._fill()
        return True

    def next(self) -> bytes | None:
        """Return the next line as bytes without its end, or None after the last; waits for it.

        A line larger than a request may be is read over and raises LineTooLong; the next call goes on behind it.
        """
        while True:
            at = self._buffer.find(b"\n")
            if at >= 0:
                line = bytes(self._buffer[:at])
                del self._buffer[: at + 1]
                return line.removesuffix(b"\r")
            if len(self._buffer) > fields.MAX_FRAME_BYTES:
                self._skip_line()
                raise LineTooLong(
                    f"the line is larger than {fields.MAX_FRAME_BYTES // _MEGABYTE} MB, the most that one request "
                    "carries"
                )
            if self._ended:
                line = bytes(self._buffer)
                self._buffer.clear()
                return line or None
            self._fill()

    def _skip_line(self) -> None:
        while b"\n" not in self._buffer and not self._ended:
            self._buffer.clear()
            self._fill()
        del self._buffer[: self._buffer.find(b"\n") + 1 or None]

    def _fill(self) -> None:
        if self.wait is not None:
            self.wait(self.descriptor)
        data = os.read(self.descriptor, _MEGABYTE)
        self._ended = not data
        self._buffer += data
