"""A backup that somebody made or changed: everything is checked before anything is replaced, and no check fills the
disk.

Contract: restore.checked.
"""

import gzip
import json
import os
import shutil
import sqlite3
import tarfile
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from house_kit import House, memory

from cpersona_daemon.errors import Refused, StorageFailure
from cpersona_daemon.life import ownership
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.portability.backup import make, restore, shape
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import former, schema
from cpersona_daemon.text.terms import parse_query


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory):
    """The path of a sound backup: two memories, an episode, a vector."""
    root = tmp_path_factory.mktemp("sound")
    house = House(root)
    try:
        rows = [
            memory("one", id=1, msg_id="m1", embedding_b64="AACAPwAAAAA=", embedding_model="kit"),
            memory("two", id=2),
            {"_type": "episode", "agent_id": "a", "summary": "e"},
        ]
        assert house.ask("import_memories", input_path=house.write("in.jsonl", *rows))["imported_memories"] == 2
        assert house.ask("backup_database", output_path=str(root / "b.tar"))["ok"]
    finally:
        house.close()
    return str(root / "b.tar")


def parts_of(path):
    with tarfile.open(path) as tar:
        files = {entry.name: tar.extractfile(entry).read() for entry in tar}
    head = json.loads(files.pop("manifest.json"))["manifest"]
    return files, {name: value for name, value in head.items() if name not in ("format", "files")}


@pytest.fixture
def rebuilt(backed_up, tmp_path):
    """Write the backup again with its files, facts or database changed, a manifest that agrees, and return its path."""

    def rebuild(sql="", change=lambda files, facts: None, name="tampered.tar"):
        files, facts = parts_of(backed_up)
        if sql:
            work = tmp_path / "work.db"
            work.write_bytes(files["database.sqlite"])
            conn = apsw.Connection(str(work))
            conn.execute("PRAGMA foreign_keys = OFF")
            conn.execute(sql).fetchall()
            facts["rows"] = {
                table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("memories", "episodes", "profiles")
            }
            conn.close()
            files["database.sqlite"] = work.read_bytes()
        change(files, facts)
        listed = {}
        for part, data in files.items():
            listed[part] = str(tmp_path / f"part-{part}")
            (tmp_path / f"part-{part}").write_bytes(data)
        with open(tmp_path / name, "wb") as handle:
            shape.pack(handle, name.endswith("gz"), facts, listed, 0, lambda done, total: None)
        return str(tmp_path / name)

    return rebuild


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A store with a row and a calibration, and what is needed to restore over it."""
    root = tmp_path / "home"
    (root / "db").mkdir(parents=True)
    for name, value in (("HOME", root), ("XDG_CONFIG_HOME", root / "config"), ("TMPDIR", root / "tmp")):
        monkeypatch.setenv(name, str(value))
    (root / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    environ = {"HOME": str(root), "CPERSONA_DB_PATH": str(root / "db" / "t.db")}
    settings = load(environ)
    places = paths.places(settings, environ)
    (root / "db" / "t.db").write_bytes(b"the store that is there")
    (root / "db" / "t.db.calibration.json").write_bytes(b"its calibration")
    return SimpleNamespace(
        root=root,
        settings=settings,
        places=places,
        restore=lambda path, **more: restore.restore(path, settings, places, ownership.held, **more),
    )


def untouched(place):
    """Assert that the store is as it was and that nothing else lies about."""
    assert (place.root / "db" / "t.db").read_bytes() == b"the store that is there"
    assert (place.root / "db" / "t.db.calibration.json").read_bytes() == b"its calibration"
    assert {p.name for p in (place.root / "db").iterdir()} <= {"t.db", "t.db.calibration.json", "t.db.lock"}
    assert not (place.root / "config").exists() and list((place.root / "tmp").iterdir()) == []


def refused(place, path, *words):
    for attempt in (lambda: restore.check(path), lambda: place.restore(path)):
        with pytest.raises(Refused) as why:
            attempt()
        assert all(word in str(why.value) for word in words), why.value
        untouched(place)


def test_a_sound_backup_passes_and_is_put_in_place(place, backed_up):
    assert restore.check(backed_up)["memories"] == 2
    untouched(place)
    told = place.restore(backed_up)
    assert told["memories"] == 2 and sqlite3.connect(place.places.db).execute(
        "SELECT content FROM memories ORDER BY id"
    ).fetchall() == [("one",), ("two",)]
    assert Path(told["moved_aside"]).read_bytes() == b"the store that is there"


OBJECTS = {
    "a trigger": ("CREATE TRIGGER gone AFTER INSERT ON memories BEGIN DELETE FROM memories; END", "trigger", "gone"),
    "a trigger of a known name": (
        (
            "DROP TRIGGER batches_memory; CREATE TRIGGER batches_memory AFTER DELETE ON memories BEGIN DELETE FROM "
            "episodes; END"
        ),
        "trigger",
        "batches_memory",
    ),
    "a view": ("CREATE VIEW peek AS SELECT * FROM memories", "view", "peek"),
    "a table": ("CREATE TABLE extra (x)", "table", "extra"),
    "an index": ("CREATE INDEX wide ON memories (content)", "index", "wide"),
    "no index": ("DROP INDEX memories_msg_id", "index", "memories_msg_id"),
    "no unique index": (
        (
            "DROP INDEX memories_content; CREATE INDEX memories_content ON memories (agent_id, content_key, "
            "project_id, channel)"
        ),
        "index",
        "memories_content",
    ),
    "another column": ("ALTER TABLE profiles ADD COLUMN more TEXT", "table", "profiles"),
    "a generated column": ("ALTER TABLE canaries ADD COLUMN more AS (1 / 0)", "table", "canaries"),
    "another tokenizer": (
        (
            "DROP TABLE memory_terms; DROP TABLE memory_fts;"
            "CREATE VIRTUAL TABLE memory_fts USING fts5 (body, content = '', contentless_delete = 1);"
            "CREATE VIRTUAL TABLE memory_terms USING fts5vocab (memory_fts, row)"
        ),
        "table",
        "memory_fts",
    ),
    "a virtual table of another kind": ("CREATE VIRTUAL TABLE files USING fts4 (x)", "table", "files"),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_a_schema_that_is_not_ours_object_by_object_is_refused(place, rebuilt, what):
    sql, kind, name = OBJECTS[what]
    refused(place, rebuilt(sql), kind, name, "nothing was changed")


CONTENTS = {
    "a step left out": ("DELETE FROM schema_migrations WHERE version = 3", "schema"),
    "a text that is bytes": ("UPDATE memories SET content = x'00ff' WHERE id = 1", "memories.content"),
    "an agent that is a number": ("UPDATE memories SET agent_id = x'31' WHERE id = 1", "memories.agent_id"),
    "a lock that is a text": ("UPDATE memories SET locked = 'yes' WHERE id = 1", "memories.locked"),
    "a stamp that is none": ("UPDATE episodes SET created_at = x'32303236'", "episodes.created_at"),
    "the last id": ("UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'memories'", "ids"),
    "a row with the last id": ("UPDATE memories SET id = 9223372036854775807 WHERE id = 2", "ids"),
    "a negative id": ("UPDATE memories SET id = -5 WHERE id = 2", "ids"),
    "a generation that is a text": (
        "UPDATE meta SET value = 'many' WHERE key = 'vector_generation'",
        "vector_generation",
    ),
    "an identity of another length": ("UPDATE meta SET value = x'00' WHERE key = 'vector_store'", "vector_store"),
    "another application": ("PRAGMA application_id = 7", "cpersona"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_values_that_cpersona_never_writes_are_refused(place, rebuilt, what):
    sql, word = CONTENTS[what]
    refused(place, rebuilt(sql), word, "nothing was changed")


def test_other_rows_than_the_manifest_says_are_refused(place, rebuilt):
    refused(
        place,
        rebuilt(change=lambda files, facts: facts.update(rows={"memories": 3, "episodes": 1, "profiles": 0})),
        "manifest",
    )


def test_an_older_schema_is_compared_with_what_that_version_made(place, rebuilt, tmp_path):
    from cpersona_daemon.storage import schema

    def older(files, facts):
        path = tmp_path / "older.db"
        conn = apsw.Connection(str(path))
        schema.migrate(conn, 0.0, 4)
        conn.close()
        files["database.sqlite"] = path.read_bytes()
        facts.update(schema=4, rows={"memories": 0, "episodes": 0, "profiles": 0})

    assert place.restore(rebuilt(change=older))["schema"] == 4


def test_rows_that_no_answer_carries_come_back_and_are_named(place, rebuilt):
    deep = '{"a":' * 900 + "1" + "}" * 900
    path = rebuilt(
        f"UPDATE memories SET source = '{deep}' WHERE id = 1; UPDATE memories SET content = CAST(x'ff20' AS TEXT) "
        f"WHERE id = 2"
    )
    for told in (restore.check(path), place.restore(path)):
        assert [row["ref"] for row in told["unfit"]] == ["mem:1", "mem:2"] and all(
            row["reason"] for row in told["unfit"]
        )


# -- the archive


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


# -- settings


def with_settings(rebuilt, kept):
    return rebuilt(
        change=lambda files, facts: files.update(
            {"settings.json": json.dumps(kept).encode() if not isinstance(kept, bytes) else kept}
        )
    )


def setting(value, origin="config"):
    return {"value": value, "origin": origin}


@pytest.mark.parametrize(
    "kept",
    [
        b"not json",
        b"[" * 100_000,
        [],
        "text",
        {"recall_mode": "rsf"},
        {"recall_mode": {"value": {"a": 1}, "origin": "config"}},
        {"recall_mode": {"origin": "config"}},
        {"recall_mode": {"value": "rsf", "origin": 7}},
    ],
)
@pytest.mark.parametrize("asked", [False, True])
def test_settings_of_another_shape_are_found_before_anything_is_replaced(place, rebuilt, kept, asked):
    path = with_settings(rebuilt, kept)
    with pytest.raises(Refused) as why:
        place.restore(path, with_settings=asked)
    assert "settings" in str(why.value)
    untouched(place)
    with pytest.raises(Refused):
        restore.check(path)


KEPT = {
    "recall_mode": setting("rsf"),
    "agent": setting("zoë\n\"'\\"),
    "vector_reach": setting(20_000),
    "confidence_enabled": setting(True),
    "log_level": setting("debug", "environment"),
    "acl_file": setting("/tmp/mine"),
    "export_dir": setting("/"),
    "embedding_url": setting("http://example.org/embed"),
    "embedding_mode": setting("http"),
    "token": setting("t"),
    "db_path": setting("/etc/passwd"),
    "socket": setting("/tmp/s"),
    "mystery": setting(1),
    "fts_enabled": setting("perhaps"),
    "max_memories": setting(-3),
}


def test_settings_are_written_only_when_asked_for_and_only_harmless_ones(place, rebuilt):
    path, config = with_settings(rebuilt, KEPT), place.root / "config" / "cpersona" / "config.toml"
    told = place.restore(path)
    assert (
        told["settings"] == "kept"
        and not config.exists()
        and told["offered_settings"] == ["agent", "confidence_enabled", "recall_mode", "vector_reach"]
    )
    told = place.restore(path, with_settings=True)
    assert told["settings"] == "written" and told["config"] == str(config)
    import tomllib

    assert tomllib.loads(config.read_text("utf-8")) == {
        "agent": "zoë\n\"'\\",
        "confidence_enabled": True,
        "recall_mode": "rsf",
        "vector_reach": 20_000,
    }
    assert set(told["refused_settings"]) == {
        "acl_file",
        "export_dir",
        "embedding_url",
        "embedding_mode",
        "token",
        "db_path",
        "socket",
        "mystery",
        "fts_enabled",
        "max_memories",
    }
    assert not load({"HOME": str(place.root), "XDG_CONFIG_HOME": str(place.root / "config")}).conflicts()


def test_a_config_file_that_is_there_is_never_written_over(place, rebuilt):
    config = place.root / "config" / "cpersona" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('recall_mode = "cascade"\n')
    told = place.restore(with_settings(rebuilt, KEPT), with_settings=True)
    assert (
        told["settings"] == "kept"
        and config.read_text() == 'recall_mode = "cascade"\n'
        and "recall_mode" in told["differing_settings"]
    )


# -- what a killed restore left, and one that fails


def test_what_a_killed_restore_left_is_removed_by_the_next(place, backed_up):
    left = place.root / "db" / "t.db.restoring-99999-database.sqlite"
    left.write_bytes(b"a draft")
    (place.root / "db" / "t.db.restoring-notes").mkdir()
    place.restore(backed_up)
    assert not left.exists() and (place.root / "db" / "t.db.restoring-notes").is_dir()


@pytest.mark.parametrize("failing", ["database", "calibration"])
def test_a_restore_that_fails_at_the_last_moment_leaves_the_store_as_it_was(place, rebuilt, monkeypatch, failing):
    path = rebuilt(change=lambda files, facts: files.update({"calibration.json": b"{}"}))
    replace = os.replace

    def broken(source, target, **more):
        if str(target) == (place.places.db if failing == "database" else place.places.calibration):
            raise OSError(5, "Input/output error", str(target))
        return replace(source, target, **more)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(StorageFailure):
        place.restore(path)
    monkeypatch.undo()
    assert (place.root / "db" / "t.db").read_bytes() == b"the store that is there"
    assert (place.root / "db" / "t.db.calibration.json").read_bytes() == b"its calibration"
    assert [p.name for p in (place.root / "db").iterdir() if "restor" in p.name] == []


def test_a_check_that_was_killed_leaves_nothing_for_long(place, backed_up):
    stale = place.root / "tmp" / "cpersona-check-stale"
    stale.mkdir()
    (stale / "lock").touch()
    (stale / "database.sqlite").write_bytes(b"a copy")
    restore.check(backed_up)
    assert list((place.root / "tmp").iterdir()) == []


def test_a_backup_that_was_killed_leaves_nothing_for_long_and_one_at_work_is_left_alone(house):
    import fcntl

    stale, working = house.root / ".cpersona-backup-stale", house.root / ".cpersona-backup-working"
    for directory in (stale, working):
        directory.mkdir()
        (directory / "database.sqlite").write_bytes(b"a copy")
    held = os.open(working / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    (stale / "lock").touch()
    assert house.ask("backup_database", output_path=str(house.root / "b.tar"))["ok"]
    assert not stale.exists() and (working / "database.sqlite").exists()
    os.close(held)


def test_a_backup_is_without_what_others_put_into_the_database_so_that_it_can_be_restored(house, place):
    house.ask("store", agent_id="a", content="one")
    house.change("CREATE TRIGGER mine AFTER INSERT ON memories BEGIN SELECT 1; END")
    house.change("CREATE INDEX extra ON memories (timestamp)")
    house.change("CREATE TABLE notes (x)")
    told = house.ask("backup_database", output_path=str(house.root / "b.tar"))
    assert told["ok"] and told["without"] == ["index extra", "table notes", "trigger mine"]
    assert place.restore(str(house.root / "b.tar"))["memories"] == 1
    house.change("ALTER TABLE profiles ADD COLUMN more TEXT")
    told = house.ask("backup_database", output_path=str(house.root / "b2.tar"))
    assert told["ok"] is False and "profiles" in told["error"] and not (house.root / "b2.tar").exists()


def test_a_backup_while_words_are_written_anew_keeps_the_index_that_finds_the_others(place, tmp_path):
    """The database of an earlier version, migrated a moment ago: its rows still wait for their new words."""
    path = str(tmp_path / "old.db")
    conn = apsw.Connection(path)
    conn.execute("PRAGMA journal_mode = WAL").fetchall()
    schema.migrate(conn, 0.0, 4)
    conn.execute(
        "INSERT INTO memories (agent_id, created_at, content_key, content) VALUES ('a', '2026-01-05 00:00:00', "
        "x'00', 'walnut')"
    )
    conn.execute("INSERT INTO memory_fts (rowid, body) VALUES (1, 'walnut')")
    schema.migrate(conn, 0.0)
    conn.close()
    where = paths.Places(path, str(tmp_path / "s"), str(tmp_path / "log"))
    make.make(where, place.settings, str(tmp_path / "b.tar"), 0.0, None, threading.Event())
    assert restore.restore(str(tmp_path / "b.tar"), place.settings, place.places, ownership.held)["memories"] == 1
    with closing(apsw.Connection(place.places.db)) as restored:
        assert (
            former.present(restored)
            and former.search(restored, MEMORY, parse_query("walnut").terms, Scope("a"), 5)[0][0] == 1
        )
