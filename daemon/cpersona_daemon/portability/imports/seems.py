"""What a file that is no export seems to be, from its beginning alone, and which command takes such a one."""

from __future__ import annotations

import json
import re
import zlib
from typing import BinaryIO

from ...shared.header import APPLICATION_ID
from ..backup.shape import MANIFEST

LOOKED_AT = 65_536
_AS_LINES = "`cpersona store --jsonl -`"
_ONE_MEMORY = (
    "`cpersona store < FILE` keeps it as one memory, `jq -R . FILE | cpersona store --jsonl -` each line as one"
)
_PACKED = ((b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"))
_MARKDOWN = re.compile(r"^(#{1,6} \S|[-*] \S|> \S|```|---$|\[[^\]]+\]\()", re.MULTILINE)
_JSON_ARRAY = re.compile(r"\[\s*([\[{\"\]]|-?\d|true\b|false\b|null\b)")


def seems(handle: BinaryIO) -> str:
    """Return what the file seems to be and what to do with it, as the middle of a sentence.

    The file's name stands in it as FILE.
    """
    handle.seek(0)
    head = handle.read(LOOKED_AT)
    if not head.strip():
        return "it is empty; name a file that `cpersona export` wrote"
    return next((said for look in _LOOKS if (said := look(head)) is not None), None) or _of_text(_text_of(head) or "")


_BACKUP = (
    "it seems to be a backup; `cpersona restore FILE --check` verifies it, and `cpersona restore FILE` puts it in the"
    " place of the database"
)


def _database(head: bytes) -> str | None:
    if not head.startswith(b"SQLite format 3\0"):
        return None
    if int.from_bytes(head[68:72], "big") == APPLICATION_ID:
        return (
            "it seems to be a database of cpersona; `cpersona --db FILE export - --all-agents | cpersona import -`"
            " takes its rows over"
        )
    if b"CREATE TABLE memories" in head:
        return (
            "it seems to be a database of another program that keeps memories; export it there, and import the file"
            " that this writes"
        )
    return "it seems to be a SQLite database of another program, which no command reads"


def _compressed(head: bytes) -> str | None:
    if head.startswith(b"\x1f\x8b"):
        if _tar_of(_unpacked(head)) == MANIFEST:
            return _BACKUP
        return f"it seems to be compressed with gzip; {_unpacks('gzip')}"
    for magic, program in _PACKED:
        if head.startswith(magic):
            return f"it seems to be compressed with {program}; {_unpacks(program)}"
    return None


def _unpacks(program: str) -> str:
    return f"`{program} -dc FILE | cpersona import -` reads what is in it"


def _tar(head: bytes) -> str | None:
    first = _tar_of(head)
    if first is None:
        return None
    if first == MANIFEST:
        return _BACKUP
    return (
        "it seems to be a tar archive; `tar -xf FILE` unpacks it, and `cpersona import` takes an export that is in it"
    )


def _document(head: bytes) -> str | None:
    if head.startswith(b"%PDF"):
        return "it seems to be a PDF document; `pdftotext FILE - | cpersona store -` keeps its text as one memory"
    if head.startswith(b"PK\x03\x04"):
        return (
            "it seems to be a zip archive or an office document; `unzip FILE` unpacks the one, of the other store the"
            " text"
        )
    return None


def _no_utf8(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it seems to be text in UTF-16; `iconv -f UTF-16 -t UTF-8 FILE` makes it UTF-8"
    if b"\0" in head:
        return "it seems to be binary data, which no command reads"
    if _text_of(head) is None:
        return "it seems to be text that is not UTF-8; convert it first, as with `iconv -f LATIN1 -t UTF-8 FILE`"
    return None


_LOOKS = (_database, _compressed, _tar, _document, _no_utf8)


def _text_of(head: bytes) -> str | None:
    """Return the beginning of a text, None for what is not UTF-8; its last character may be cut."""
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < LOOKED_AT:
            return None
        return head[: error.start].decode("utf-8")


def _unpacked(head: bytes) -> bytes:
    """Return the beginning of what a gzip file holds, b'' where it cannot be read."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, LOOKED_AT)
    except zlib.error:
        return b""


def _tar_of(head: bytes) -> str | None:
    """Return the name of the first file of a tar archive, None for what is none."""
    return head[:100].rstrip(b"\0").decode("utf-8", "replace") if head[257:262] == b"ustar" else None


def _of_text(text: str) -> str:
    text = text.lstrip("\ufeff").strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if _JSON_ARRAY.match(text):
        return (
            "it seems to be a JSON array; `jq -c '.[]' FILE | cpersona store --jsonl -` stores each of its elements"
            f" ({_TAKEN})"
        )
    if text.startswith(("{", '"')):
        return _of_json(lines[0])
    if text.startswith("<"):
        return f"it seems to be HTML or XML; {_ONE_MEMORY}"
    if (table := _table(lines)) is not None:
        return f"it seems to be {table}; make each row a line of JSON for {_AS_LINES} ({_TAKEN})"
    if _MARKDOWN.search(text):
        return "it seems to be Markdown; `cpersona import --markdown FILE` keeps it, a long one section by section"
    return f"it seems to be plain text; {_ONE_MEMORY}"


def _of_json(line: str) -> str:
    """Return what JSON with this first line seems to be."""
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return (
            "it seems to be one JSON document over several lines; make each record a line of its own, as with"
            f" `jq -c . FILE`, for {_AS_LINES} ({_TAKEN})"
        )
    if isinstance(first, str) or "content" in first:
        return (
            "it seems to be lines of JSON to store, not the records of an export (which name their _type);"
            " `cpersona store --jsonl FILE` takes them"
        )
    return (
        "it seems to be lines of JSON, and none is a record of an export (which names its _type);"
        f" {_AS_LINES} takes others ({_TAKEN})"
    )


_TAKEN = 'a text, or an object like {"content": "…", "id": "…"}'


def _table(lines: list[str]) -> str | None:
    """Return what kind of table the lines are, None for what is none.

    Every line has as many columns as the first, which names them.
    """
    if len(lines) < 2:
        return None
    for separator, what in (
        ("\t", "a table with tabs between its columns"),
        (";", "a CSV table"),
        (",", "a CSV table"),
    ):
        names = lines[0].split(separator)
        if len(names) < 2 or any(not 0 < len(name.strip()) <= 40 or name.strip()[-1] in ".!?:" for name in names):
            continue
        if separator != "\t" and any(" " in name.strip().strip('"') and len(name.split()) > 4 for name in names):
            continue
        if all(len(_outside_quotes(line).split(separator)) == len(names) for line in lines[1:6]):
            return what
    return None


def _outside_quotes(line: str) -> str:
    return re.sub(r'"(?:[^"]|"")*"', "x", line)
