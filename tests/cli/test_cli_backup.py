"""`backup` and `restore`. Contract: backup.file, restore.checked, exit.status."""

import base64
import gzip
import io
import json
import os
import sqlite3
import stat
import struct
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from cpersona_cli.wire import client
from cpersona_daemon.errors import Refused
from cpersona_daemon.portability.backup import restore, shape
from cpersona_daemon.shared.settings import load


def texts(run_cli, **more):
    return {line.split("\t")[-1] for line in run_cli(["list"], **more).stdout.splitlines()}


@pytest.fixture
def backed_up(run_cli, home):
    """A store of two memories and its backup."""
    run_cli(["store", "--jsonl", "-"], input='"one"\n"two"\n')
    done = run_cli(["backup", "b.tar"])
    assert done.returncode == 0, done.stderr
    return Path(home["HOME"]) / "b.tar"


def test_a_backup_is_one_private_file_and_its_path_is_the_output(run_cli, home, backed_up):
    assert stat.S_IMODE(backed_up.stat().st_mode) == 0o600
    done = run_cli(["backup", "b.tgz"])
    assert (
        done.stdout == str(backed_up.with_suffix(".tgz")) + "\n"
        and "2 memories" in done.stderr
        and "verified" in done.stderr
    )
    told = json.loads(run_cli(["backup", "b.tar", "--json"]).stdout)
    assert (told["ok"], told["memories"], told["bytes"]) == (True, 2, backed_up.stat().st_size)
    assert [name for name in os.listdir(home["HOME"]) if name.startswith(".cpersona")] == []
    with tarfile.open(backed_up.with_suffix(".tgz")) as tar:
        assert [entry.name for entry in tar] == ["manifest.json", "database.sqlite", "settings.json"]
        assert {entry.mode for entry in tar} == {0o600}


def test_restoring_moves_what_was_there_aside_and_overwrites_nothing(run_cli, home, backed_up):
    run_cli(["store", "three"])
    done = run_cli(["restore", "b.tar"])
    assert done.returncode == 0 and done.stdout == home["CPERSONA_DB_PATH"] + "\n", done.stderr
    assert texts(run_cli) == {"one", "two"}
    (aside,) = Path(home["CPERSONA_DB_PATH"]).parent.glob("t.db.before-restore-*")
    assert str(aside) in done.stderr and texts(run_cli, env={"CPERSONA_DB_PATH": str(aside)}) == {"one", "two", "three"}
    told = json.loads(run_cli(["restore", "b.tar", "--json"]).stdout)
    assert told["ok"] is True and told["memories"] == 2 and told["moved_aside"] != str(aside)
    assert run_cli(["health", "--deep", "--check", "sqlite_integrity", "--check", "lexical_index"]).returncode == 0


def test_a_backup_carries_what_rows_were_and_an_export_does_not(run_cli, backed_up):
    """Contract: past.kept."""
    run_cli(["update", "mem:1", "one otherwise"])
    run_cli(["delete", "mem:2"])
    assert run_cli(["backup", "later.tar"]).returncode == 0
    exported = run_cli(["export", "-"]).stdout
    assert "one otherwise" in exported and '"two"' not in exported
    assert run_cli(["restore", "later.tar"]).returncode == 0
    assert run_cli(["history", "mem:1"]).stdout.endswith("\tupdated\tone\n")
    assert run_cli(["restore-memory", "mem:2"]).stdout == "mem:2\tbrought back\n"


def with_vector(name, *values):
    packed = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    return (
        json.dumps(
            {"_type": "memory", "agent_id": "default", "content": name, "embedding_b64": packed, "embedding_model": "m"}
        )
        + "\n"
    )


@pytest.mark.parametrize("taken", [None, ".memories.vec", ".memories.vec.rows", ".episodes.vec"])
def test_after_a_restore_the_vectors_are_the_restored_ones_and_the_status_tells_nothing_that_is_over(
    run_cli, home, taken
):
    header = '{"_type": "header", "version": "cpersona-export/1.1"}\n'
    assert run_cli(["import", "-"], input=header + with_vector("one", 1, 0) + with_vector("two", 0, 1)).returncode == 0
    assert run_cli(["backup", "b.tar"]).returncode == 0
    assert run_cli(["import", "-"], input=header + with_vector("three", 0.6, 0.8)).returncode == 0
    assert run_cli(["daemon", "stop"]).returncode == 0
    if taken:
        place = Path(home["CPERSONA_DB_PATH"] + taken)
        place.unlink(missing_ok=True)
        place.mkdir()
    done = run_cli(["restore", "b.tar"])
    assert done.returncode == 0, done.stderr
    assert run_cli(["health", "--deep", "--check", "vector_index"]).returncode == 0
    status = json.loads(run_cli(["daemon", "status", "--json"]).stdout)["vectors"]
    assert status["mem"]["rows"] == 2 and not any("reason" in part for part in status.values())
    assert "stale" not in run_cli(["daemon", "status"]).stdout


def test_a_backup_comes_back_on_an_empty_machine_with_its_settings_and_calibration(run_cli, home):
    config = Path(home["XDG_CONFIG_HOME"]) / "cpersona" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('recall_mode = "rsf"\nagent = "zoë"\ntoken = "not for a backup"\n', encoding="utf-8")
    run_cli(["store", "one"])
    calibration = Path(home["CPERSONA_DB_PATH"] + ".calibration.json")
    calibration.write_text('{"kept": "as it is"}')
    assert run_cli(["backup", "b.tar"]).returncode == 0
    assert b"not for a backup" not in (Path(home["HOME"]) / "b.tar").read_bytes()
    other = Path(home["HOME"]) / "new"
    empty = {"CPERSONA_DB_PATH": str(other / "data" / "n.db"), "XDG_CONFIG_HOME": str(other / "config")}
    unasked = run_cli(["restore", "b.tar"], env=empty)
    assert (
        unasked.returncode == 0
        and "--settings" in unasked.stderr
        and "agent, recall_mode" in unasked.stderr
        and not (other / "config").exists()
    )
    done = run_cli(["restore", "b.tar", "--settings"], env=empty)
    assert done.returncode == 0 and "settings were written" in done.stderr, done.stderr
    assert run_cli(["restore", "b.tar", "--settings", "--check"], env=empty).returncode == 2
    assert Path(empty["CPERSONA_DB_PATH"] + ".calibration.json").read_text() == '{"kept": "as it is"}'
    written = other / "config" / "cpersona" / "config.toml"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600 and "token" not in written.read_text("utf-8")
    assert json.loads(run_cli(["config", "show", "agent", "--json"], env=empty).stdout)["settings"][0]["value"] == "zoë"
    assert texts(run_cli, env=empty) == {"one"}


def test_settings_of_now_stay_and_what_differs_is_named(run_cli, home):
    config = Path(home["XDG_CONFIG_HOME"]) / "cpersona" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('recall_mode = "rsf"\n')
    run_cli(["store", "one"])
    run_cli(["backup", "b.tar"])
    config.write_text('recall_mode = "cascade"\n')
    done = run_cli(["restore", "b.tar"])
    assert "recall_mode" in done.stderr and config.read_text() == 'recall_mode = "cascade"\n'
    assert json.loads(run_cli(["restore", "b.tar", "--json"]).stdout)["differing_settings"] == ["recall_mode"]


def test_check_verifies_and_changes_nothing(run_cli, home, backed_up):
    run_cli(["store", "three"])
    done = run_cli(["restore", "b.tar", "--check"])
    assert done.returncode == 0 and done.stdout == f"{backed_up}\n" and "sound" in done.stderr
    assert json.loads(run_cli(["restore", "b.tar", "--check", "--json"]).stdout)["memories"] == 2
    assert texts(run_cli) == {"one", "two", "three"}


def rebuilt(source, target, change):
    """Write a backup with one of its members changed, its manifest made to agree."""
    files = {}
    with tarfile.open(source) as tar:
        for entry in tar:
            files[entry.name] = tar.extractfile(entry).read()
    head = json.loads(files.pop("manifest.json"))
    facts = {name: value for name, value in head["manifest"].items() if name not in ("format", "files")}
    change(files, facts)
    paths = {}
    for name, data in files.items():
        paths[name] = f"{target}.{name}"
        Path(paths[name]).write_bytes(data)
    with open(target, "wb") as handle:
        shape.pack(handle, False, facts, paths, 0, lambda done, total: None)


def test_what_is_no_sound_backup_is_refused_and_nothing_changes(run_cli, home, backed_up):
    root, raw = backed_up.parent, backed_up.read_bytes()
    flipped = bytearray(raw)
    flipped[len(raw) // 2] ^= 1
    in_manifest = raw.replace(b'"created_at": "2', b'"created_at": "3', 1)
    assert in_manifest != raw
    foreign = io.BytesIO()
    with tarfile.open(fileobj=foreign, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("holiday.jpg"))
    wrong = {
        "text": b"not a backup",
        "empty": b"",
        "cut": raw[: len(raw) // 2],
        "flipped": bytes(flipped),
        "manifest": in_manifest,
        "foreign": foreign.getvalue(),
        "cutgz": gzip.compress(raw)[:4000],
        "sqlite": Path(home["CPERSONA_DB_PATH"]).read_bytes(),
    }
    for name, data in wrong.items():
        (root / name).write_bytes(data)
    rebuilt(backed_up, str(root / "newer"), lambda files, facts: facts.update(schema=999))
    rebuilt(
        backed_up,
        str(root / "hollow"),
        lambda files, facts: files.update({"database.sqlite": b"SQLite format 3\0" + bytes(4080)}),
    )
    rebuilt(
        backed_up,
        str(root / "other"),
        lambda files, facts: facts.update(rows={"memories": 7, "episodes": 0, "profiles": 0}),
    )
    said = {}
    for name in [*wrong, "newer", "hollow", "other"]:
        with pytest.raises(Refused) as refused:
            restore.check(str(root / name))
        said[name] = str(refused.value)
    done = run_cli(["restore", "cut"])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1) and "damaged" in done.stderr
    assert (
        "no backup" in said["text"]
        and "no backup" in said["foreign"]
        and "damaged" in said["flipped"]
        and "damaged" in said["cut"]
        and "upgrade" in said["newer"]
    )
    assert run_cli(["restore", "nowhere"]).returncode == 1
    assert json.loads(run_cli(["restore", "flipped", "--json"]).stdout)["ok"] is False
    assert texts(run_cli) == {"one", "two"}
    assert [name for name in os.listdir(Path(home["CPERSONA_DB_PATH"]).parent) if "restor" in name] == []


def test_a_daemon_at_work_for_others_is_left_alone_unless_forced(run_cli, home, backed_up):
    settings = load(home)
    with client.connect(settings, home, start=False):
        done = run_cli(["restore", "b.tar"])
        assert done.returncode == 6 and "--force" in done.stderr and done.stderr.count("\n") == 1
        assert run_cli(["restore", "b.tar", "--force"]).returncode == 0


def test_the_wal_of_a_killed_daemon_goes_with_the_database_it_belongs_to(run_cli, home, backed_up):
    pid = json.loads(run_cli(["daemon", "status", "--json"]).stdout)["pid"]
    run_cli(["store", "only in the wal"])
    os.kill(pid, 9)
    done = run_cli(["restore", "b.tar", "--force"])
    assert done.returncode == 0, done.stderr
    assert texts(run_cli) == {"one", "two"}
    aside = next(
        name
        for name in Path(home["CPERSONA_DB_PATH"]).parent.glob("t.db.before-restore-*")
        if not name.name.endswith(("-wal", "-shm"))
    )
    assert texts(run_cli, env={"CPERSONA_DB_PATH": str(aside)}) == {"one", "two", "only in the wal"}


def test_a_damaged_database_can_be_replaced_by_its_backup(run_cli, home, backed_up):
    run_cli(["daemon", "stop"])
    Path(home["CPERSONA_DB_PATH"]).write_bytes(b"\xff" * 50_000)
    assert run_cli(["list"]).returncode != 0
    assert run_cli(["restore", "b.tar"]).returncode == 0
    assert texts(run_cli) == {"one", "two"}


def test_a_backup_where_it_must_not_or_cannot_be_written_fails_with_one_line(run_cli, home, backed_up):
    (Path(home["HOME"]) / "dir").mkdir()
    for target in (home["CPERSONA_DB_PATH"], "no/such/dir/b.tar", "dir"):
        done = run_cli(["backup", target])
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), target
    assert run_cli(["backup"]).returncode == 2 and run_cli(["restore"]).returncode == 2


def test_what_a_killed_restore_left_is_removed_when_a_daemon_starts(run_cli, home, backed_up):
    run_cli(["daemon", "stop"])
    left = Path(home["CPERSONA_DB_PATH"] + ".restoring-99999-database.sqlite")
    left.write_bytes(b"a draft")
    assert texts(run_cli) == {"one", "two"} and not left.exists()


def test_a_restore_that_is_killed_leaves_the_store_and_nothing_for_long(run_cli, home, backed_up):
    """Killed at any moment: while it unpacks, checks, or swaps."""
    run_cli(["store", "three"])
    run_cli(["daemon", "stop"])
    for seconds in (0.0, 0.1, 0.2, 0.3, 0.4):
        started = subprocess.Popen(
            [sys.executable, "-m", "cpersona_daemon.main", "--restore", str(backed_up)],
            env=home,
            stdout=subprocess.PIPE,
        )
        try:
            started.wait(seconds)
        except subprocess.TimeoutExpired:
            started.kill()
        started.communicate()
        assert texts(run_cli) in ({"one", "two", "three"}, {"one", "two"})
        assert [name for name in os.listdir(Path(home["CPERSONA_DB_PATH"]).parent) if ".restoring-" in name] == []
        run_cli(["daemon", "stop"])


def test_the_program_itself_refuses_while_a_daemon_has_the_database(run_cli, home, backed_up):
    done = subprocess.run(
        [sys.executable, "-m", "cpersona_daemon.main", "--restore", str(backed_up)],
        env=home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 6 and json.loads(done.stdout)["code"] == "busy"


def test_a_backup_among_writers_holds_what_was_acknowledged_before_and_loses_nothing(run_cli, home, backed_up):
    """40 parallel hooks, 8 writers and a backup at once lose nothing, in small."""
    settings, stop, begun, stored = load(home), threading.Event(), threading.Event(), []

    def write(number):
        with client.connect(settings, home, start=False) as connection:
            at = 0
            while not stop.is_set():
                answer, code = connection.call("store", {"agent_id": "w", "content": f"writer {number} row {at}"})
                assert code is None
                stored.append((number, at))
                at += 1
                if len(stored) >= 40:
                    begun.set()

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    try:
        assert begun.wait(60)
        before = list(stored)
        assert run_cli(["backup", "live.tar"]).returncode == 0
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    with tarfile.open(Path(home["HOME"]) / "live.tar") as tar:
        (Path(home["HOME"]) / "live.db").write_bytes(tar.extractfile("database.sqlite").read())
    rows = {text for (text,) in sqlite3.connect(Path(home["HOME"]) / "live.db").execute("SELECT content FROM memories")}
    assert rows >= {f"writer {number} row {at}" for number, at in before}
    with client.connect(settings, home, start=False) as connection:
        assert connection.call("check_health", {"checks": ["sqlite_integrity"]})[0]["total_memories"] == len(stored) + 2
