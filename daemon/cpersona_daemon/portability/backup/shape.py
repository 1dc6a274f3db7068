"""The shape of a backup: one tar, compressed or not, that begins with a manifest of everything behind it.

`manifest.json` is `{manifest: {format, created_at, version, schema, rows, files: {name: {bytes, sha256}}}, sha256}`;
behind it stand the database as one SQLite file, and where there are any the calibration, the earlier calibration and
the settings.

Contract: backup.file, restore.checked.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import IO, Any

from ...calibration.previous import LARGEST_FILE
from ...errors import Refused
from ...model.instants import parse_instant
from ...shared import files
from . import travelling

FORMAT = "cpersona-backup/1"
MANIFEST, DATABASE, CALIBRATION, EARLIER, SETTINGS = (
    "manifest.json",
    "database.sqlite",
    "calibration.json",
    "calibration.previous",
    "settings.json",
)
KNOWN = (DATABASE, CALIBRATION, EARLIER, SETTINGS)
BLOCK = 1 << 20
LARGEST_MANIFEST = 1 << 20
LARGEST = {SETTINGS: travelling.MOST_BYTES, CALIBRATION: LARGEST_FILE, EARLIER: LARGEST_FILE}
LARGEST_END = 1 << 20  # zeros behind the last file
LEFT_FREE = 64 * 1024 * 1024  # of the disk that a backup is unpacked to
# A database with its vectors and postings packs to a third or so. What is larger than this, and this many times what it
# is packed to, is none.
BOMB_BYTES, BOMB_RATIO = 1 << 30, 200

Tell = Callable[[int, int], None]


def pack(
    handle: IO[bytes], compressed: bool, facts: dict[str, Any], parts: Mapping[str, str], mtime: float, tell: Tell
) -> None:
    """Write a backup of these files (name in the backup -> path) to an open file.

    ``tell(done, total)`` counts bytes.
    """
    listed: dict[str, dict[str, Any]] = {
        name: {"bytes": os.path.getsize(path), "sha256": digest_of(path)} for name, path in parts.items()
    }
    manifest = {"format": FORMAT, **facts, "files": listed}
    head = json.dumps({"manifest": manifest, "sha256": _digest(manifest)}, indent=1).encode() + b"\n"
    total, done = sum(entry["bytes"] for entry in listed.values()), 0
    with (
        tarfile.open(fileobj=handle, mode="w:gz", format=tarfile.GNU_FORMAT, compresslevel=1)
        if compressed
        else tarfile.open(fileobj=handle, mode="w", format=tarfile.GNU_FORMAT)
    ) as tar:
        _add(tar, MANIFEST, len(head), io.BytesIO(head), mtime)
        for name, path in parts.items():
            with open(path, "rb") as source:
                _add(tar, name, listed[name]["bytes"], source, mtime)
            done += listed[name]["bytes"]
            tell(done, total)


def _add(tar: tarfile.TarFile, name: str, size: int, source: IO[bytes], mtime: float) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, int(mtime)
    tar.addfile(entry, source)


def verify(path: str, extract_to: Mapping[str, str] | None = None) -> dict:
    """Read a backup to its end, compare every checksum, and return its manifest.

    Files named in ``extract_to`` (name -> path that does not exist yet) are written there, 0600, once it is known that
    there is room for them. Raises Refused for what is no backup, for a damaged one, and for one that a later version
    wrote.
    """
    wanted = extract_to or {}
    try:
        with _opened(path) as archive:
            manifest = _read_manifest(archive)
            parts, seen = manifest["files"], set()
            _check_sizes(archive, parts, wanted)
            while (entry := archive.next()) is not None:
                if entry.name not in parts or entry.name in seen:
                    raise archive.damaged(f"it holds {entry.name!r}, which its manifest does not name")
                if entry.size != parts[entry.name]["bytes"]:
                    raise archive.damaged(f"{entry.name} has another size than its manifest says")
                seen.add(entry.name)
                archive.extract(entry, parts[entry.name]["sha256"], wanted.get(entry.name))
            if missing := sorted(set(parts) - seen):
                raise archive.damaged(f"{missing[0]} is missing")
    except OSError as error:
        if error.errno is not None:
            raise Refused(f"{error.filename or path} cannot be read or written: {error.strerror}") from None
        raise _damaged(path, str(error)) from None  # gzip reports damage as an OSError without a number
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _damaged(path, str(error) or "it ends too early") from None
    return manifest


class _Archive:
    """The one shape of a tar that ``pack`` writes, read from its first byte to its last: plain files of known names.

    What a tar may hold beside that (sparse files, links, headers that announce headers) is refused before a byte of it
    is read.
    """

    def __init__(self, path: str, handle: IO[bytes] | gzip.GzipFile, packed_bytes: int | None) -> None:
        self.path, self._handle = path, handle
        self.packed_bytes = packed_bytes  # what a compressed one takes, None for one that is not

    def next(self, first: bool = False) -> tarfile.TarInfo | None:
        """Return the header of the next file, None at the end. Raises Refused."""
        block = self._handle.read(tarfile.BLOCKSIZE)
        if not first and len(block) == tarfile.BLOCKSIZE and not block.strip(b"\0"):
            self._check_end()
            return None
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError:
            if first:
                raise _foreign(self.path) from None
            whole = len(block) == tarfile.BLOCKSIZE
            raise self.damaged("a header in it cannot be read" if whole else "it ends too early") from None
        if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.size < 0:
            raise self.damaged(f"it holds {entry.name!r}, which is no plain file")
        return entry

    def _check_end(self) -> None:
        rest = self._handle.read(LARGEST_END + 1)
        if len(rest) > LARGEST_END or rest.strip(b"\0"):
            raise self.damaged("something stands behind its end")

    def extract(self, entry: tarfile.TarInfo, checksum: str, target: str | None) -> None:
        """Read a file, compare its checksum, and write it to ``target`` where one is given. Raises Refused."""
        digest = hashlib.sha256()
        with nullcontext() if target is None else _new_file(target) as sink:
            for block in self.read(entry):
                digest.update(block)
                if sink is not None:
                    sink.write(block)
            if sink is not None:
                sink.flush()
                os.fsync(sink.fileno())
        if digest.hexdigest() != checksum:
            raise self.damaged(f"{entry.name} has the wrong checksum")

    def read(self, entry: tarfile.TarInfo) -> Iterator[bytes]:
        """Yield the bytes of the file whose header was read last. Raises Refused where there are fewer."""
        left = entry.size
        while left:
            block = self._handle.read(min(left, BLOCK))
            if not block:
                raise self.damaged("it ends too early")
            left -= len(block)
            yield block
        self._handle.read(-entry.size % tarfile.BLOCKSIZE)

    def damaged(self, why: str) -> Refused:
        return _damaged(self.path, why)


def _new_file(path: str) -> IO[bytes]:
    """Open a private file of a name that nothing has yet. Raises OSError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb")


@contextmanager
def _opened(path: str) -> Iterator[_Archive]:
    with open(files.opened(path, follow=True), "rb") as handle:
        magic = handle.read(2)
        handle.seek(0)
        if magic != b"\x1f\x8b":
            yield _Archive(path, handle, None)
            return
        with gzip.GzipFile(fileobj=handle) as plain:
            yield _Archive(path, plain, os.fstat(handle.fileno()).st_size)


def _read_manifest(archive: _Archive) -> dict:
    entry = archive.next(first=True)
    if entry is None or entry.name != MANIFEST or entry.size > LARGEST_MANIFEST:
        raise _foreign(archive.path)
    try:
        head = json.loads(b"".join(archive.read(entry)))
        manifest, recorded = head["manifest"], head["sha256"]
        kind, checksum = manifest["format"], _digest(manifest)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise archive.damaged("its manifest cannot be read") from None
    if isinstance(kind, str) and re.fullmatch(r"cpersona-backup/\d{1,9}", kind) and kind != FORMAT:
        raise Refused(f"{archive.path} is a backup of the format {kind}, this version reads {FORMAT}; upgrade cpersona")
    if recorded != checksum or kind != FORMAT:
        raise archive.damaged("its manifest has the wrong checksum")
    if (wrong := _misshapen(manifest)) is not None:
        raise archive.damaged(f"its manifest says no {wrong} that could be one")
    return manifest


def _misshapen(manifest: dict) -> str | None:
    """Return what in a manifest is not of its kind, None where all of it is."""
    return next((what for what, fits in _KINDS if not fits(manifest)), None)


def _lists_files(manifest: dict) -> bool:
    parts = manifest.get("files")
    return isinstance(parts, dict) and DATABASE in parts and set(parts) <= set(KNOWN)


def _measures_files(manifest: dict) -> bool:
    return all(
        isinstance(part, dict) and _is_count(part.get("bytes")) and isinstance(part.get("sha256"), str)
        for part in manifest["files"].values()
    )


def _counts_rows(manifest: dict) -> bool:
    rows = manifest.get("rows")
    return isinstance(rows, dict) and all(isinstance(name, str) and _is_count(n) for name, n in rows.items())


def _names_version(manifest: dict) -> bool:
    version = manifest.get("version")
    return isinstance(version, str) and re.fullmatch(r"[\w.+-]{1,64}", version) is not None


def _names_time(manifest: dict) -> bool:
    time = manifest.get("created_at")
    return isinstance(time, str) and len(time) <= 64 and parse_instant(time) is not None


# What a manifest says, and how one tells that it does; each relies on those before it.
_KINDS: tuple[tuple[str, Callable[[dict], bool]], ...] = (
    ("list of files", _lists_files),
    ("size or checksum of a file", _measures_files),
    ("schema", lambda manifest: _is_count(manifest.get("schema"))),
    ("number of rows", _counts_rows),
    ("version", _names_version),
    ("time", _names_time),
)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _check_sizes(archive: _Archive, parts: dict[str, dict], wanted: Mapping[str, str]) -> None:
    """Raise Refused for sizes that no backup has, and where there is no room for what is to be written."""
    for name, most in LARGEST.items():
        if name in parts and parts[name]["bytes"] > most:
            raise archive.damaged(f"{name} has {parts[name]['bytes']} bytes, at most {most} are read")
    total = sum(part["bytes"] for part in parts.values())
    if archive.packed_bytes is not None and total > max(BOMB_BYTES, BOMB_RATIO * archive.packed_bytes):
        raise archive.damaged(
            f"it is packed to {archive.packed_bytes} bytes and would unpack to {total}, more than a database does"
        )
    need = sum(parts[name]["bytes"] for name in wanted if name in parts)
    for directory in {os.path.dirname(target) for target in wanted.values()}:
        free = shutil.disk_usage(directory).free
        if need + LEFT_FREE > free:
            raise Refused(
                f"{archive.path} needs {need} bytes in {directory}, and {free} are free there, of which"
                f" {LEFT_FREE} stay free; nothing was changed, free some disk space"
            )


def _foreign(path: str) -> Refused:
    return Refused(
        f"{path} is no backup of cpersona, or cut off at its very beginning; nothing was changed, name a file that"
        " `cpersona backup` wrote"
    )


def _damaged(path: str, why: str) -> Refused:
    return Refused(f"{path} is damaged or not a backup of cpersona ({why}); nothing was changed, use another backup")


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _digest(manifest: dict) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
