"""A backup or restore that was killed or fails, and a backup of a store that others changed.

Contract: restore.checked.
"""

import os
import threading
from contextlib import closing

import apsw
import pytest

from cpersona_daemon.errors import StorageFailure
from cpersona_daemon.life import ownership
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.portability.backup import make, restore
from cpersona_daemon.shared import paths
from cpersona_daemon.storage import former, schema
from cpersona_daemon.text.terms import parse_query


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
