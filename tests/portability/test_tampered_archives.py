"""A backup that is another archive than ours: refused before it takes room on the disk.

Contract: restore.checked.
"""

import gzip
import json
import os
import shutil
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from backup_kit import parts_of, refused

from cpersona_daemon.errors import Refused
from cpersona_daemon.portability.backup import restore, shape


def entry(name, size, kind=tarfile.REGTYPE, **more):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mode = size, kind, 0o600
    for key, value in more.items():
        setattr(info, key, value)
    return info


def archive(backed_up, *, extra=None, header=None, tail=b"\0" * 1024):
    """Return the backup as bytes, with blocks put before the database, its header replaced, or another end."""
    files, facts = parts_of(backed_up)
    with tarfile.open(backed_up) as tar:
        manifest = tar.extractfile("manifest.json").read()
    out = [_blocks(entry("manifest.json", len(manifest)), manifest), *(extra or [])]
    for name, data in files.items():
        info = header(name, data) if header and name == "database.sqlite" else entry(name, len(data))
        out.append(_blocks(info, data))
    return b"".join(out) + tail


def _blocks(info, data):
    return info.tobuf(tarfile.GNU_FORMAT) + data + b"\0" * (-len(data) % 512)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "what",
    [
        "sparse",
        "pax",
        "global pax",
        "long name",
        "directory",
        "link",
        "hard link",
        "twice",
        "smaller",
        "larger",
        "unknown",
        "outside",
        "garbage behind",
    ],
)
def test_an_archive_of_another_shape_than_ours_is_refused_and_takes_no_room(place, backed_up, tmp_path, what, packed):
    head, tail, extra = None, b"\0" * 1024, []
    if what == "sparse":

        def head(name, data):
            return entry(name, len(data), tarfile.GNUTYPE_SPARSE)
    elif what in ("pax", "global pax"):
        kind = tarfile.XHDTYPE if what == "pax" else tarfile.XGLTYPE
        extra = [_blocks(entry("bomb", 200_000_000, kind), b"")]
    elif what == "long name":
        extra = [_blocks(entry("././@LongLink", 200_000_000, tarfile.GNUTYPE_LONGNAME), b"")]
    elif what == "directory":
        extra = [_blocks(entry("settings.json", 0, tarfile.DIRTYPE), b"")]
    elif what in ("link", "hard link"):
        extra = [
            _blocks(
                entry(
                    "settings.json", 0, tarfile.SYMTYPE if what == "link" else tarfile.LNKTYPE, linkname="/etc/passwd"
                ),
                b"",
            )
        ]
    elif what == "twice":
        settings = parts_of(backed_up)[0]["settings.json"]
        extra = [_blocks(entry("settings.json", len(settings)), settings)]
    elif what in ("smaller", "larger"):

        def head(name, data):
            return entry(name, len(data) - 512 if what == "smaller" else 1 << 40)
    elif what == "unknown":
        extra = [_blocks(entry("more", 3), b"abc")]
    elif what == "outside":
        extra = [_blocks(entry("../settings.json", 3), b"abc")]
    else:
        tail = b"\0" * 1024 + b"x" * 1024
    data = archive(backed_up, extra=extra, header=head, tail=tail)
    path = tmp_path / "odd.tar"
    path.write_bytes(gzip.compress(data) if packed else data)
    began = time.monotonic()
    refused(place, str(path), "nothing was changed")
    assert time.monotonic() - began < 10


def test_the_archive_that_this_kit_writes_is_taken(place, backed_up, tmp_path):
    path = tmp_path / "plain.tar"
    path.write_bytes(archive(backed_up))
    assert place.restore(str(path))["memories"] == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_backup_that_is_larger_than_the_room_there_is_is_refused_before_a_byte_is_written(
    place, backed_up, tmp_path, monkeypatch, packed
):
    path = tmp_path / "b.tar"
    path.write_bytes(gzip.compress(Path(backed_up).read_bytes()) if packed else Path(backed_up).read_bytes())
    monkeypatch.setattr(shutil, "disk_usage", lambda directory: SimpleNamespace(total=10**9, used=0, free=100_000))
    monkeypatch.setattr(os, "fsync", lambda descriptor: pytest.fail("something was written"))
    refused(place, str(path), "free")


def test_a_database_that_hardly_takes_room_when_packed_is_taken_for_a_bomb(place, rebuilt, monkeypatch):
    monkeypatch.setattr(shape, "BOMB_BYTES", 1_000_000)

    def bomb(files, facts):
        files["database.sqlite"] = files["database.sqlite"][:100] + bytes(50_000_000)

    refused(place, rebuilt(change=bomb, name="bomb.tgz"), "packed")
    assert restore.check(rebuilt(name="sound.tgz"))["memories"] == 2


@pytest.mark.parametrize("name", ["settings.json", "calibration.json"])
def test_a_small_part_that_is_huge_is_refused(place, rebuilt, name, monkeypatch):
    monkeypatch.setitem(shape.LARGEST, name, 1000)
    refused(place, rebuilt(change=lambda files, facts: files.update({name: b" " * 2000})), name)


MANIFESTS = [[], {}, {"format": "cpersona-backup/1"}, "text", 7, None]


@pytest.mark.parametrize(
    "manifest",
    MANIFESTS
    + [
        {"files": {}},
        {"files": {"database.sqlite": 7}},
        {"files": {"database.sqlite": {"bytes": "many", "sha256": 1}}},
        {"schema": True},
        {"schema": "9"},
        {"rows": []},
        {"rows": {"memories": -1}},
        {"created_at": "\x1b[31m"},
        {"version": ["1"]},
        {"version": "\x1b]0;x\a"},
    ],
)
def test_a_manifest_of_another_shape_is_refused(place, backed_up, tmp_path, manifest):
    with tarfile.open(backed_up) as tar:
        sound = json.loads(tar.extractfile("manifest.json").read())["manifest"]
    body = {**sound, **manifest} if isinstance(manifest, dict) and manifest and manifest not in MANIFESTS else manifest
    head = json.dumps({"manifest": body, "sha256": shape._digest(body)}).encode()
    files, _ = parts_of(backed_up)
    path = tmp_path / "odd.tar"
    path.write_bytes(
        b"".join(_blocks(entry(name, len(data)), data) for name, data in {"manifest.json": head, **files}.items())
        + b"\0" * 1024
    )
    refused(place, str(path))


def test_a_manifest_that_nests_without_end_is_refused(place, tmp_path):
    path = tmp_path / "deep.tar"
    head = b'{"manifest": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    path.write_bytes(_blocks(entry("manifest.json", len(head)), head) + b"\0" * 1024)
    refused(place, str(path))


def test_a_named_pipe_is_not_waited_for(place, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused):
        restore.check(str(tmp_path / "pipe"))
