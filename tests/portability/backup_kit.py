"""A sound backup, the same tampered with, and a store to restore it over: for tests of what a restore takes.

Contract: restore.checked.
"""

import json
import tarfile
from types import SimpleNamespace

import apsw
import pytest
from house_kit import House, memory

from cpersona_daemon.errors import Refused
from cpersona_daemon.life import ownership
from cpersona_daemon.portability.backup import restore, shape
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load


@pytest.fixture(scope="session")
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
