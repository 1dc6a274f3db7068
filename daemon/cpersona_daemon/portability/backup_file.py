"""The shape of a backup: one tar, compressed or not, that begins with a manifest of everything behind it.

`manifest.json` is `{manifest: {format, created_at, version, schema, rows, files: {name: {bytes, sha256}}}, sha256}`; behind it
stand the database as one SQLite file, and where there are any the calibration, the earlier calibration and the settings.

Contract: issue "A tool to live in" (backup and restore: one verified file).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Any

import apsw

from ..errors import Refused

FORMAT = "cpersona-backup/1"
MANIFEST, DATABASE, CALIBRATION, EARLIER, SETTINGS = "manifest.json", "database.sqlite", "calibration.json", "calibration.previous", "settings.json"
KNOWN = (DATABASE, CALIBRATION, EARLIER, SETTINGS)
BLOCK = 1 << 20
LARGEST_MANIFEST = 1 << 20

Tell = Callable[[int, int], None]


def pack(handle: IO[bytes], compressed: bool, facts: dict, files: Mapping[str, str], mtime: float, tell: Tell) -> None:
    """Write a backup of these files (name in the backup -> path) to an open file. ``tell(done, total)`` counts bytes."""
    listed = {name: {"bytes": os.path.getsize(path), "sha256": digest_of(path)} for name, path in files.items()}
    manifest = {"format": FORMAT, **facts, "files": listed}
    head = json.dumps({"manifest": manifest, "sha256": _digest(manifest)}, indent=1).encode() + b"\n"
    total, done = sum(entry["bytes"] for entry in listed.values()), 0
    with tarfile.open(fileobj=handle, mode="w:gz" if compressed else "w", format=tarfile.GNU_FORMAT, **({"compresslevel": 1} if compressed else {})) as tar:
        _add(tar, MANIFEST, len(head), io.BytesIO(head), mtime)
        for name, path in files.items():
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

    Files named in ``extract_to`` (name -> path that does not exist yet) are written there, 0600. Raises Refused for what is
    no backup, for a damaged one, and for one that a later version wrote.
    """
    wanted = extract_to or {}
    try:
        with open(path, "rb") as handle, _opened(path, handle) as tar:
            manifest = _read_manifest(path, tar)
            files, seen = manifest["files"], set()
            while (entry := tar.next()) is not None:
                if entry.name not in files or entry.name in seen or not entry.isfile():
                    raise _damaged(path, f"it holds {entry.name!r}, which its manifest does not name")
                seen.add(entry.name)
                _check(path, tar, entry, files[entry.name], wanted.get(entry.name))
            if missing := sorted(set(files) - seen):
                raise _damaged(path, f"{missing[0]} is missing")
    except OSError as error:
        if error.errno is not None:
            raise Refused(f"{error.filename or path} cannot be read or written: {error.strerror}") from None
        raise _damaged(path, str(error)) from None  # gzip reports damage as an OSError without a number
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _damaged(path, str(error) or "it ends too early") from None
    return manifest


def _opened(path: str, handle: IO[bytes]) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=handle, mode="r:*")
    except tarfile.TarError:
        raise _foreign(path) from None


def _read_manifest(path: str, tar: tarfile.TarFile) -> dict:
    entry = tar.next()
    if entry is None or entry.name != MANIFEST or not entry.isfile() or entry.size > LARGEST_MANIFEST:
        raise _foreign(path)
    try:
        head = json.loads(tar.extractfile(entry).read())
        manifest, recorded = head["manifest"], head["sha256"]
        kind = manifest["format"]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise _damaged(path, "its manifest cannot be read") from None
    if isinstance(kind, str) and kind.startswith("cpersona-backup/") and kind != FORMAT:
        raise Refused(f"{path} is a backup of the format {kind}, this version reads {FORMAT}; upgrade cpersona")
    if recorded != _digest(manifest) or kind != FORMAT:
        raise _damaged(path, "its manifest has the wrong checksum")
    files = manifest.get("files")
    if not isinstance(files, dict) or DATABASE not in files or not set(files) <= set(KNOWN) or not all(isinstance(entry, dict) for entry in files.values()):
        raise _damaged(path, "its manifest names no database, or files that are none of ours")
    return manifest


def _check(path: str, tar: tarfile.TarFile, entry: tarfile.TarInfo, listed: dict, target: str | None) -> None:
    digest, left, source = hashlib.sha256(), entry.size, tar.extractfile(entry)
    sink = None if target is None else os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb")
    try:
        while block := source.read(BLOCK):
            digest.update(block)
            left -= len(block)
            if sink is not None:
                sink.write(block)
        if sink is not None:
            sink.flush()
            os.fsync(sink.fileno())
    finally:
        if sink is not None:
            sink.close()
    if left or entry.size != listed.get("bytes") or digest.hexdigest() != listed.get("sha256"):
        raise _damaged(path, f"{entry.name} has the wrong checksum")


def _foreign(path: str) -> Refused:
    return Refused(f"{path} is no backup of cpersona, or cut off at its very beginning; name a file that `cpersona backup` wrote")


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


def look_at_database(path: str) -> tuple[int, dict[str, int], list[str]]:
    """Return the schema's version, the rows by table and what SQLite finds wrong. Raises apsw.Error for what is no database."""
    conn = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        damage = [text for (text,) in conn.execute("PRAGMA quick_check(20)") if text != "ok"]
        (version,) = conn.execute("SELECT max(version) FROM schema_migrations").fetchone()
        rows = {name: _count(conn, name) for name in ("memories", "episodes", "profiles")}
    finally:
        conn.close()
    return version or 0, rows, damage


def _count(conn: apsw.Connection, table: str) -> Any:
    return conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
