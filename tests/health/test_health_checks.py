"""The verdict, each check, and what --fix mends. Contract: health.checks, health.repairs."""

import base64
import os
import struct
import subprocess
import sys

import pytest
from house_kit import memory

from cpersona_daemon.calibration.measured import scoring_version
from cpersona_daemon.health import files
from cpersona_daemon.health.checks import CHECKS

EMBEDDER = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:9/embed"}


def b64(*values):
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def load(house, *lines):
    assert house.ask("import_memories", input_path=house.write("in.jsonl", *lines))["ok"]


def walnuts(house, kind="memory"):
    """How many rows the word index finds."""
    return house.sql(f"SELECT count(*) FROM {kind}_fts WHERE {kind}_fts MATCH 'walnut'")[0][0]


def found(house, check, **params):
    answer = house.ask("check_health", checks=[check], **params)
    return answer["status"], [(issue["severity"], issue.get("count")) for issue in answer["issues"]]


def test_a_new_store_without_an_embedder_is_healthy(house):
    answer = house.ask("check_health")
    assert answer == {
        "status": "healthy",
        "total_memories": 0,
        "issues": answer["issues"],
        "severity_summary": {"critical": 0, "warn": 0, "info": 0},
        "checks_run": list(CHECKS),
        "fixed": [],
    }


def test_a_store_in_use_is_healthy_whole_and_deep(house):
    load(
        house,
        memory("x", embedding_b64=b64(1, 0)),
        memory("y"),
        {"_type": "episode", "agent_id": "a", "summary": "e", "embedding_b64": b64(0, 1)},
    )
    house.ask("delete_memory", memory_id=2)
    house.ask("update_memory", memory_id=1, content="z")
    for deep in (False, True):
        answer = house.ask("check_health", deep=deep)
        assert answer["status"] == "healthy" and answer["total_memories"] == 1, answer


def test_total_memories_are_those_of_the_agent_asked_about(house):
    load(house, memory("x"), memory("y", agent_id="b"))
    assert house.ask("check_health", agent_id="b")["total_memories"] == 1


def test_an_unknown_check_is_refused_by_name(house):
    answer = house.ask("check_health", checks=["sqlite_integrity", "no_such_check"])
    assert answer["ok"] is False and "no_such_check" in answer["error"] and house.code == "refused"


def test_the_help_names_every_check():
    from cpersona_cli.commands.health import health

    assert set(CHECKS) <= set(health.help.replace(",", " ").replace(".", " ").split())


def test_only_the_named_checks_run(house):
    assert house.ask("check_health", checks=["schema", "schema"])["checks_run"] == ["schema"]


def test_missing_and_surplus_postings_are_found_and_mended(house):
    load(house, memory("walnut one"), memory("walnut two"))
    house.change("DELETE FROM memory_fts WHERE rowid = 1")
    house.change("INSERT INTO memory_fts (rowid, body) VALUES (77, 'ghost')")
    assert found(house, "lexical_index") == ("degraded", [("warn", 1), ("warn", 1)])
    fixed = house.ask("check_health", fix=True)
    assert fixed["status"] == "healthy" and len(fixed["fixed"]) == 1
    assert walnuts(house) == 2


def test_a_damaged_word_index_is_critical_and_built_anew(house):
    load(house, *[memory(f"walnut {i}") for i in range(200)])
    house.change("UPDATE memory_fts_data SET block = x'00' WHERE id > 10")
    assert house.ask("check_health", checks=["lexical_index"])["status"] == "unhealthy"
    assert house.ask("check_health", fix=True, checks=["lexical_index"])["status"] == "healthy"
    assert walnuts(house) == 200


def test_a_vector_index_that_lost_a_row_is_critical_and_rebuilt(house):
    load(house, memory("x", embedding_b64=b64(1, 0)), memory("y", embedding_b64=b64(0, 1)))
    house.change("DELETE FROM memory_vectors WHERE id = 1")
    assert found(house, "vector_index")[0] == "unhealthy"
    assert house.ask("check_health", fix=True, checks=["vector_index"])["status"] == "healthy"
    assert house.ctx.vectors.status()["mem"]["rows"] == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memory_vectors SET vector = (SELECT vector FROM memory_vectors WHERE id = 2) WHERE id = 1",
        (
            "DELETE FROM memory_vectors WHERE id = 1;"
            " INSERT INTO memory_vectors VALUES (3, 'm', (SELECT vector FROM memory_vectors WHERE id = 2))"
        ),
    ],
)
def test_deep_compares_every_vector_of_the_index_with_the_databases(house, change):
    load(house, memory("x", embedding_b64=b64(1, 0)), memory("y", embedding_b64=b64(0, 1)), memory("z"))
    assert found(house, "vector_index", deep=True) == ("healthy", [])
    house.change(change)
    assert found(house, "vector_index") == ("healthy", [])
    assert found(house, "vector_index", deep=True) == ("unhealthy", [("critical", 1)])
    assert house.ask("check_health", fix=True, deep=True, checks=["vector_index"])["status"] == "healthy"


@pytest.mark.parametrize("form", ["", ".int8"])
def test_deep_finds_damaged_index_files_and_has_them_built_anew(house, form):
    load(house, memory("x", embedding_b64=b64(1, 0)), memory("y", embedding_b64=b64(0, 1)))
    os.truncate(house.places.memory_vectors + form, 4096)
    house.ask("check_health", deep=True, checks=["vector_index"])
    house.ctx.vectors.wait()
    assert house.ctx.vectors.status()["mem"]["origin"] == "rebuilt"
    assert found(house, "vector_index", deep=True) == ("healthy", [])


def test_rows_without_a_vector_matter_only_with_an_embedder(make_house):
    without = make_house("without")
    load(without, memory("x"))
    assert found(without, "missing_vectors") == ("healthy", [])
    with_one = make_house("with", **EMBEDDER)
    load(with_one, memory("x"), memory("y", agent_id="b"))
    assert found(with_one, "missing_vectors") == ("degraded", [("warn", 2)])
    assert found(with_one, "missing_vectors", agent_id="b") == ("degraded", [("warn", 1)])
    with_one.ask("check_health", fix=True, checks=["missing_vectors"])
    assert found(with_one, "missing_vectors") == ("healthy", [("info", 2)])
    assert with_one.sql("SELECT count(*) FROM embedding_backlog") == [(2,)]


def test_vectors_of_another_width_or_model_are_found_and_listed_again(make_house):
    house = make_house(**EMBEDDER)
    house.ctx.embedding.expect("m", 2)
    load(
        house,
        memory("x", embedding_b64=b64(1, 0), embedding_model=""),
        memory("y", embedding_b64=b64(0, 1, 0), embedding_model=""),
    )
    if house.ctx.embedding.model.dimension is None:
        assert found(house, "foreign_vectors") == ("healthy", [])
        return
    assert found(house, "foreign_vectors") == ("degraded", [("warn", 1)])
    house.ask("check_health", fix=True, checks=["foreign_vectors"])
    assert found(house, "foreign_vectors") == ("healthy", [("info", 1)])
    assert house.sql("SELECT id FROM embedding_backlog") == [(2,)]


@pytest.mark.parametrize(
    ("data", "deep"), [(b"abc", False), (struct.pack("<2f", float("nan"), 1), True), (bytes(8), True)]
)
def test_vectors_that_are_none_are_found_and_removed(house, data, deep):
    load(house, memory("x", embedding_b64=b64(1, 0)))
    house.change("UPDATE memory_vectors SET vector = ?", data)
    assert found(house, "damaged_vectors", deep=deep) == ("degraded", [("warn", 1)])
    assert house.ask("check_health", fix=True, deep=deep, checks=["damaged_vectors"])["status"] == "healthy"
    assert house.sql("SELECT count(*) FROM memory_vectors") == [(0,)]


def test_files_that_others_can_read_are_found_and_closed(house):
    os.chmod(house.places.db, 0o644)
    assert found(house, "permissions")[0] == "degraded"
    assert house.ask("check_health", fix=True)["status"] == "healthy"
    assert os.stat(house.places.db).st_mode & 0o777 == 0o600


def test_a_directory_that_others_can_write_to_is_found_but_never_changed(house):
    directory = os.path.dirname(house.places.db)
    os.chmod(directory, 0o755)
    assert found(house, "permissions") == ("healthy", [("info", None)])
    os.chmod(directory, 0o777)
    assert house.ask("check_health", fix=True)["status"] == "degraded"
    assert os.stat(directory).st_mode & 0o777 == 0o777


def test_what_two_racing_stores_left_twice_is_told_without_alarm(house):
    load(
        house,
        memory("x"),
        memory("x", project_id="p"),
        memory("x", project_id="q", channel="c"),
        memory("y", project_id="p"),
        memory("y", project_id="q"),
    )
    for _ in range(3):
        house.ask("archive_episode", agent_id="a", summary="same")
    assert found(house, "duplicates") == ("healthy", [("info", 2), ("info", 2)])


def test_associations_of_rows_that_are_gone_are_found_and_removed(house):
    load(
        house,
        memory("x", id=1),
        {"_type": "entity", "id": 1, "agent_id": "a", "name": "A"},
        {"_type": "mention", "entity": 1, "ref": "mem:1"},
        {
            "_type": "relation",
            "agent_id": "a",
            "subject_kind": "mem",
            "subject_id": 1,
            "predicate": "supports",
            "object_kind": "entity",
            "object_id": 1,
        },
    )
    house.change("DELETE FROM memories")
    assert found(house, "associations") == ("degraded", [("warn", 2)])
    assert house.ask("check_health", fix=True, checks=["associations"])["status"] == "healthy"


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc to name the reader")
def test_a_reader_that_keeps_the_log_growing_is_named_with_its_size(house, monkeypatch):
    monkeypatch.setattr(files, "WAL_BYTES", 700_000)
    load(house, memory("walnut"))
    assert found(house, "wal") == ("healthy", [])
    reader = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN');"
        " c.execute('SELECT count(*) FROM memories').fetchone(); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", reader, house.places.db], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parked:
        parked.stdout.readline()
        load(house, *[memory(f"row {i} " + "x" * 4000) for i in range(200)])
        answer = house.ask("check_health", checks=["wal"])
        (issue,) = answer["issues"]
        assert answer["status"] == "degraded" and issue["bytes"] == os.path.getsize(house.places.db + "-wal") > 700_000
        assert f"(pid {parked.pid})" in issue["message"] and "fixable" not in issue
        parked.communicate(b"\n")
    house.ctx.db._writer_conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert found(house, "wal") == ("healthy", [])


def test_rows_whose_owner_is_gone_are_found_and_removed(house):
    house.change(
        "PRAGMA foreign_keys = OFF"
    )  # nothing inside a transaction; the row below is written past the keys instead
    house.ctx.db._writer_conn.execute("PRAGMA foreign_keys = OFF")
    house.change("INSERT INTO memory_vectors VALUES (9, 'm', x'0000803f')")
    house.ctx.db._writer_conn.execute("PRAGMA foreign_keys = ON")
    assert found(house, "schema") == ("degraded", [("warn", 1)])
    assert house.ask("check_health", fix=True, checks=["schema"])["status"] == "healthy"


def test_refused_and_waiting_queued_stores_are_told(house):
    failed = os.path.join(house.places.spool, "failed")
    os.makedirs(failed)
    for path in (os.path.join(failed, "1.json"), os.path.join(house.places.spool, "2.json")):
        with open(path, "w"):
            pass
    assert found(house, "spool") == ("degraded", [("warn", 1), ("info", 1)])


def test_a_damaged_database_is_unhealthy_not_an_exception(house):
    load(house, *[memory(f"row {i} " + "x" * 500) for i in range(300)])
    house.ctx.db.write_now(lambda tx: None)
    house.ctx.db._writer_conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with open(house.places.db, "r+b") as handle:
        handle.seek(4096 * 20)
        handle.write(b"\xff" * 4096 * 40)
    answer = house.ask("check_health", checks=["sqlite_integrity"])
    assert "status" in answer, answer
    assert answer["status"] == "unhealthy" and answer["severity_summary"]["critical"] >= 1


def test_reindex_writes_every_posting_anew_and_counts(house):
    load(
        house,
        memory("walnut one", embedding_b64=b64(1, 0)),
        memory("walnut two"),
        {"_type": "episode", "agent_id": "a", "summary": "walnut three"},
    )
    house.change("DELETE FROM memory_fts")
    house.change("INSERT INTO episode_fts (rowid, summary, keywords) VALUES (50, 'ghost', '')")
    answer = house.ask("reindex")
    assert answer == {
        "ok": True,
        "memories": 2,
        "episodes": 1,
        "vectors": {"memories": 1, "episodes": 0},
        "listed_for_embedding": 0,
        "waiting_for_embedding": 0,
        "waiting_for_passages": 0,
    }
    assert house.progress[-1] == {"done": 3, "total": 3}
    assert (walnuts(house), walnuts(house, "episode")) == (2, 1)
    assert (answer := house.ask("check_health", deep=True))["status"] == "healthy", answer


def test_reindex_lists_what_has_no_vector(make_house):
    house = make_house(**EMBEDDER)
    load(house, memory("x"), memory("y", embedding_b64=b64(1, 0)))
    answer = house.ask("reindex")
    assert answer["listed_for_embedding"] == 1 and answer["waiting_for_embedding"] == 1


def test_what_a_recall_printed_and_somebody_stored_again_is_found_and_cleaned(house):
    load(house, memory("plain"), memory("talks of [Memory from old] times"), memory("x", locked=1))
    house.change("UPDATE memories SET content = '[Memory from 3 days ago] walnut', content_key = x'01' WHERE id = 1")
    house.change(
        "UPDATE memories SET content = '[Memory from 3 days ago] kept as it is', content_key = x'02' WHERE id = 3"
    )
    count = house.ask("check_health", checks=["contamination"])["issues"][0]["count"]
    assert count == house.ask("check_health", checks=["contamination"], agent_id="a")["issues"][0]["count"] >= 2
    house.ask("check_health", checks=["contamination"], fix=True)
    assert house.sql("SELECT content FROM memories WHERE id = 1") == [("walnut",)] and walnuts(house) == 1
    assert house.sql("SELECT content FROM memories WHERE id = 3") == [("[Memory from 3 days ago] kept as it is",)]
    assert found(house, "contamination") == ("degraded", [("warn", 1)])


def test_stamps_that_name_no_instant_or_one_to_come_are_told_without_alarm(house):
    load(
        house,
        memory("x", timestamp="last summer"),
        memory("y", timestamp="2999-01-01T00:00:00Z"),
        memory("z", timestamp=""),
        memory("w", timestamp="2026-01-01"),
    )
    assert found(house, "timestamps") == ("healthy", [("info", 1), ("info", 1)])


def test_an_instant_that_its_timestamp_does_not_name_is_found_by_a_deep_look_and_mended(house):
    load(house, memory("x", timestamp="2026-01-01T00:00:00Z"))
    house.change("UPDATE memories SET instant = 5")
    assert found(house, "timestamps") == ("healthy", [])
    assert found(house, "timestamps", deep=True) == ("degraded", [("warn", 1)])
    assert house.ask("check_health", checks=["timestamps"], deep=True, fix=True)["status"] == "healthy"
    assert house.sql("SELECT instant FROM memories") == [(1767225600.0,)]


def test_a_created_at_of_another_form_is_found(house):
    load(house, memory("x"))
    house.change("UPDATE memories SET created_at = '2026-01-01T00:00:00Z'")
    assert found(house, "timestamps") == ("degraded", [("warn", 1)])


def test_a_calibration_of_another_model_or_of_long_ago_is_told(make_house):
    house = make_house(**EMBEDDER)
    house.ctx.calibration.update(lambda held: held.for_model("other-model", 4, scoring_version(house.ctx.settings)))
    assert found(house, "calibration") == ("healthy", [])  # the service has not said which model it is
    year_ago = house.ctx.clock.now() - 365 * 86_400
    os.utime(house.places.calibration, (year_ago, year_ago))
    assert found(house, "calibration") == ("healthy", [("info", None)])
    house.ctx.calibration.update(lambda held: held.for_model("other-model", 4, "0-fusion"))
    assert found(house, "calibration") == ("degraded", [("warn", None)])
