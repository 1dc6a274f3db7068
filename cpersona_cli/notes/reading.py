"""A file of notes as memories: their texts, ids and what is known of them beside.

Contract: import.markdown, import.ids.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cpersona_daemon.shared import fields, files

from . import basic_memory, front_matter, outline

LARGEST_FILE = 1 << 20  # bytes; what is larger was made by a program
_LONGEST_ID = 256  # characters
_FILE_ID, _NAME_ID = 140, 40  # of it for the path, and for the directory's name
_DIGEST = 16  # hexadecimal digits
_FORMAT = "1"  # of what is made of a file: another one has every file read as changed
_ROOM = 700  # of the metadata's length, for what stands beside path and front matter
MARKDOWN = "markdown"
# What a file may be, and what is read of a text beside it.
FORMATS: dict[str, Callable[[str], dict[str, Any]]] = {MARKDOWN: lambda text: {}, "basic-memory": basic_memory.said}
_UNNAMED = ("readme", "index", "_index")


class NotRead(Exception):
    """A file that holds no notes that could be taken; the message says why."""


class Directory:
    """A directory of notes: where it is, and how the ids of its notes begin.

    Its real path decides, so that two directories of one name have nothing in common. ``path`` is what was typed.
    """

    def __init__(self, path: str) -> None:
        self.path, self.real = path, os.path.realpath(path)
        self.name = _clean(os.path.basename(self.real) or "/")
        self.prefix = f"md:{self.name[:_NAME_ID]}-{_digest(_clean(self.real))[:10]}:"

    def file_id(self, path: str) -> str:
        """Return the id of a file's note; those of its sections go on with `#` and their headings."""
        return self.prefix + _within(path.replace("%", "%25").replace("#", "%23"), _FILE_ID)

    def file_of(self, id: str) -> str:
        """Return the file's id that the id of a note of this directory begins with."""
        return self.prefix + id[len(self.prefix) :].partition("#")[0]

    def path_of(self, file_id: str) -> str:
        """Return the path that a file's id stands for; of a very long one only its beginning is right."""
        return file_id[len(self.prefix) :].replace("%23", "#").replace("%25", "%")


class Limits(NamedTuple):
    """How much of a text and of metadata the store keeps, in characters."""

    content: int
    metadata: int


def read(
    directory: Directory, path: str, limits: Limits, follow: bool = False, format: str = MARKDOWN
) -> list[dict[str, Any]]:
    """Return the notes of a file in order, each as replace_notes takes it. Raises NotRead.

    ``path`` is relative to the directory, ``follow`` for a file that a person named, ``format`` a key of FORMATS.
    """
    try:
        with open(files.opened(os.path.join(directory.path, path), follow=follow), "rb") as handle:
            changed = os.fstat(handle.fileno()).st_mtime
            data = handle.read(LARGEST_FILE + 1)
    except files.InTheWay as error:
        raise NotRead(str(error.strerror).partition(",")[0]) from None
    except OSError as error:
        raise NotRead(error.strerror or str(error)) from None
    return notes(directory, path, decoded(path, data), changed, limits, format)


def decoded(path: str, data: bytes) -> str:
    """Return what a file holds as text with `\\n` line ends and without a byte order mark. Raises NotRead."""
    if len(data) > LARGEST_FILE:
        raise NotRead(f"it is larger than {LARGEST_FILE >> 20} MiB; split it")
    try:
        path.encode("utf-8")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotRead(f"it is no UTF-8 (byte {error.start:,}); convert it first, for instance with iconv") from None
    except UnicodeEncodeError:
        raise NotRead("its name is no UTF-8; rename it") from None
    if "\0" in text:
        raise NotRead("it holds NUL characters, and is no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def notes(
    directory: Directory, path: str, text: str, changed: float, limits: Limits, format: str = MARKDOWN
) -> list[dict[str, Any]]:
    """Return the notes of a file's text, none of a blank one; ``changed`` is when the file was.

    The digest in a note's metadata is of all that the file says, and not of when it was written.
    """
    front, body = front_matter.split(text)
    title = _title(directory, path, front)
    pieces = outline.pieces(body, title, fields.LONG_BYTES, limits.content)
    said = front_matter.instant(front, os.path.basename(path))
    about = _about(directory, path, front, limits.metadata)
    file_id, seen, made = directory.file_id(path), dict[str, int](), []
    for piece in pieces:
        section = " > ".join(piece.path)
        own = section if len(piece.path) > 1 else ""
        seen[own] = seen.get(own, 0) + 1
        if seen[own] > 1:
            own = f"{own} ({seen[own]})"
        note: dict[str, Any] = {
            "id": f"{file_id}#{_within(own, _LONGEST_ID - len(file_id) - 1)}" if own else file_id,
            "content": f"{section}\n\n{piece.text}",
            "source": {"type": "File", "id": f"{directory.name}/{path}", "name": title[:200]},
            "metadata": {**about, "section": section[:500]} if len(piece.path) > 1 else dict(about),
        }
        _add(note["metadata"], FORMATS[format](piece.text), limits.metadata)
        note["metadata"]["digest"] = _digest(json.dumps([_FORMAT, note, said], sort_keys=True))[:_DIGEST]
        note["timestamp"] = said or _stamp(changed)
        made.append(note)
    return made


def _title(directory: Directory, path: str, front: dict[str, Any]) -> str:
    """Return what a file is called: as its front matter says, by its name, or by the directory's."""
    if isinstance(front.get("title"), str) and front["title"].strip():
        return " ".join(front["title"].split())
    above, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    return (os.path.basename(above) or directory.name) if stem.lower() in _UNNAMED else stem


def _about(directory: Directory, path: str, front: dict[str, Any], room: int) -> dict[str, Any]:
    """Return what all notes of a file have beside their texts; front matter that has no room is left out and said."""
    about: dict[str, Any] = {"path": path, "directory": _clean(directory.real)}
    if tags := front_matter.tags(front):
        about["tags"] = tags
    if isinstance(front.get("title"), str):
        about["title"] = front["title"]
    if rest := {key: value for key, value in front.items() if key not in about}:
        about["front_matter"] = rest
    for name in ("front_matter", "tags", "title"):
        if name in about and not _fits(about, room - _ROOM):
            del about[name]
            about["metadata_cut"] = True
    return about


def _add(metadata: dict[str, Any], said: dict[str, Any], room: int) -> None:
    """Add what a format has beside the text; tags join those that are there, what has no room is left out."""
    for name, values in said.items():
        more = {name: [*metadata.get(name, []), *(value for value in values if value not in metadata.get(name, []))]}
        if _fits(metadata | more, room - _ROOM):
            metadata |= more
        else:
            metadata["metadata_cut"] = True


def _fits(value: Any, room: int) -> bool:
    try:
        return len(json.dumps(value, ensure_ascii=False)) <= room and _depth(value) < fields.MAX_VALUE_NESTING
    except RecursionError:
        return False


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside), default=0)


def _stamp(changed: float) -> str:
    """Return when a file was changed as a timestamp, '' (now) for what lies ahead."""
    moment = datetime.fromtimestamp(changed, UTC)
    return moment.isoformat(timespec="seconds") if moment <= datetime.now(UTC) else ""


def _within(text: str, length: int) -> str:
    """Return a text as it is, or of a longer one the beginning and a digest of all of it."""
    return text if len(text) <= length else f"{text[: length - _DIGEST - 1]}~{_digest(text)[:_DIGEST]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _clean(path: str) -> str:
    """Return a path as text that can be stored, whatever bytes it has."""
    return path.encode("utf-8", "backslashreplace").decode()
