"""Named runs, taken back; reads of another time. Contract: batch.undo, time.asof."""

import json
import os

import apsw
import pytest


def test_a_run_is_taken_back_but_for_what_was_there_before_and_what_is_locked(run_cli, daemon):
    run_cli(["store", "old"])
    batch = '"old"\n"new 1"\n"new 2"\n{"content": "new 3", "lock": true}\n'
    assert run_cli(["store", "--jsonl", "-", "--batch", "monday"], input=batch).returncode == 0
    assert run_cli(["store", "single", "--batch", "monday"]).returncode == 0
    done = run_cli(["undo", "monday"])
    assert (done.returncode, done.stdout) == (0, "deleted_memories\t3\ndeleted_episodes\t0\nkept_locked\t1\n")
    assert "locked and kept: mem:4" in done.stderr
    assert {row.split("\t")[-1] for row in run_cli(["list"]).stdout.splitlines()} == {"old", "new 3"}
    run_cli(["unlock", "mem:4"])
    assert json.loads(run_cli(["undo", "monday", "--json"]).stdout) == {
        "ok": True,
        "batch": "monday",
        "deleted_memories": 1,
        "deleted_episodes": 0,
        "kept_locked": 0,
    }
    row = run_cli(["undo", "mem:1"])
    assert row.returncode == 3 and "`cpersona restore-memory mem:1`" in row.stderr
    again = run_cli(["undo", "monday"])
    assert again.returncode == 3 and "no rows of batch 'monday'" in again.stderr
    assert "restore-memory" not in again.stderr


def test_an_import_is_taken_back_with_its_episodes(run_cli, home, daemon):
    run_cli(["store", "mine"])
    run_cli(["episode", "archive", "what happened"])
    path = os.path.join(home["HOME"], "out.jsonl")
    run_cli(["export", path])
    assert run_cli(["import", path, "--to-agent", "copy", "--batch", "b"]).returncode == 0
    other = run_cli(["undo", "b"])
    assert other.returncode == 3 and "2 more rows of this batch belong to other agents" in other.stderr
    assert run_cli(["undo", "b", "--agent", "copy"]).stdout.splitlines()[:2] == [
        "deleted_memories\t1",
        "deleted_episodes\t1",
    ]
    assert len(run_cli(["list", "--all-agents"]).stdout.splitlines()) == 1


def test_a_large_batch_goes_and_leaves_no_label_behind(daemon, home):
    for n in range(450):
        daemon.send("store", {"agent_id": "a", "content": f"row {n}", "batch": "big"})
        if daemon.waiting >= 64:
            daemon.receive()
    while daemon.waiting:
        daemon.receive()
    daemon.call("delete_memory", {"memory_id": 1})
    assert daemon.call("undo_batch", {"batch": "big", "agent_id": "a"})[0]["deleted_memories"] == 449
    with apsw.Connection(home["CPERSONA_DB_PATH"], flags=apsw.SQLITE_OPEN_READONLY) as conn:
        assert conn.execute("SELECT count(*) FROM batches").fetchone() == (0,)


@pytest.mark.parametrize("batch, said", [(" ", "not blank"), ("x" * 257, "at most 256"), (7, "a name")])
def test_a_name_that_is_none_is_refused(daemon, batch, said):
    answer = daemon.call("store", {"agent_id": "a", "content": "x", "batch": batch})[0]
    assert answer["ok"] is False and said in answer["reason"] or "batch" in answer["reason"]


@pytest.fixture
def ages(daemon, home, run_cli):
    """Rows stored on the first of each month of 2026, and one now, by way of an import: it keeps created_at."""
    path = os.path.join(home["HOME"], "ages.jsonl")
    with open(path, "w", encoding="utf-8") as handle:
        handle.writelines(
            json.dumps(
                {
                    "_type": "memory",
                    "id": month,
                    "agent_id": "default",
                    "msg_id": "",
                    "content": f"the deploy of month {month}",
                    "source": {},
                    "timestamp": "",
                    "metadata": {},
                    "created_at": f"2026-{month:02d}-01 12:00:00",
                }
            )
            + "\n"
            for month in range(1, 7)
        )
    assert run_cli(["import", path]).returncode == 0
    run_cli(["store", "the deploy of today"])
    return run_cli


def texts(done):
    assert done.returncode == 0, done.stderr
    return [line.split("\t")[-1].split()[-1] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--since", "2026-04-01"], ["today", "6", "5", "4"]),
        (["--until", "2026-02-01"], ["2", "1"]),
        (["--until", "2026-02-01T11:59:59Z"], ["1"]),
        (["--since", "2026-02-01T12:00:00Z", "--until", "2026-03-15"], ["3", "2"]),
        (["--as-of", "2026-01-31"], ["1"]),
        (["--since", "1h"], ["today"]),
        (["--since", "2026-02-01T13:00:00+01:00", "--as-of", "2026-02-01"], ["2"]),
    ],
)
def test_a_list_is_bounded_by_when_rows_were_stored(ages, options, expected):
    assert texts(ages(["list", *options])) == expected


def test_a_recall_as_of_an_instant_knows_nothing_later_in_any_channel(ages, daemon):
    daemon.call("update_profile", {"agent_id": "default", "profile": "written today"})
    rows = ages(["recall", "deploy", "--deep", "--as-of", "2026-03-31", "--json"])
    assert sorted(row["content"][-1] for row in json.loads(rows.stdout)["messages"]) == ["1", "2", "3"]
    assert texts(ages(["recall", "", "--as-of", "2026-02-01", "--fields", "preview"])) == ["1", "2"]
    assert ages(["context", "deploy", "--deep", "--as-of", "2025-12-31"]).stdout == ""
    assert ages(["recall", "deploy", "--as-of", "noon"]).returncode == 2
    assert daemon.call("recall", {"agent_id": "default", "query": "x", "as_of": "noon"})[1] == "invalid_params"


def test_what_is_asked_between_two_times_is_what_a_list_shows_of_them(ages, daemon):
    between = ["--since", "2026-02-01T13:00:00+01:00", "--until", "2026-03-01"]
    assert sorted(texts(ages(["recall", "deploy", "--deep", *between, "--fields", "preview"]))) == ["2", "3"]
    assert sorted(texts(ages(["context", "deploy", "--deep", *between, "--fields", "content"]))) == ["2", "3"]
    assert ages(["exists", "deploy month 3", *between]).returncode == 0
    assert ages(["exists", "deploy month 4", *between]).returncode == 3
    done = ages(["recall", "mem:1", *between, "--json"])  # no ref: what is asked for is narrowed
    assert json.loads(done.stdout)["since"] == "2026-02-01T12:00:00+00:00" and "names a row" not in done.stderr


def test_times_that_say_nothing_are_refused_and_named_ones_are_said_back(ages):
    for command in (["recall", "x"], ["context", "x"], ["exists", "x"], ["list"]):
        wrong = ages([*command, "--since", "2026-03-01", "--until", "2026-02-01"])
        assert wrong.returncode == 2 and "--since 2026-03-01 lies after --until 2026-02-01" in wrong.stderr
        assert "is not a time" in ages([*command, "--until", "noonish"]).stderr
        said = ages([*command, "--since", "last year", "--json"])
        first = json.loads(said.stdout)["since"]
        assert first[4:19] == "-01-01T00:00:00" and f"since {first[:10]} 00:00 {first[19:]}" in said.stderr


def rows_of(run_cli):
    return len(run_cli(["list", "-n", "500"]).stdout.splitlines())


def test_many_rows_are_asked_about_on_a_terminal_and_few_are_not(run_cli, on_terminal, daemon):
    run_cli(["store", "--jsonl", "-", "--batch", "many"], input="".join(f'"row {n}"\n' for n in range(21)))
    run_cli(["store", "--jsonl", "-", "--batch", "few"], input="".join(f'"few {n}"\n' for n in range(20)))
    out, status = on_terminal(["undo", "many"], typed=b"n\n")
    assert (
        status == 1
        and "Delete 21 memories of batch 'many'? [y/N]" in out
        and "nothing was deleted" in out
        and rows_of(run_cli) == 41
    )
    out, status = on_terminal(["undo", "few"])
    assert status == 0 and "Delete" not in out and rows_of(run_cli) == 21
    out, status = on_terminal(["undo", "many"], typed=b"y\n")
    assert status == 0 and rows_of(run_cli) == 0
    run_cli(["store", "--jsonl", "-", "--batch", "many"], input="".join(f'"again {n}"\n' for n in range(30)))
    out, status = on_terminal(["undo", "many", "--yes"])
    assert status == 0 and "Delete" not in out and rows_of(run_cli) == 0


def test_a_dry_run_counts_what_an_undo_would_delete_and_says_the_same(run_cli, daemon):
    run_cli(
        ["store", "--jsonl", "-", "--batch", "b"],
        input='"one"\n{"content": "two", "lock": true}\n{"content": "theirs", "agent": "other"}\n',
    )
    run_cli(["episode", "archive", "not of it"])
    dry = json.loads(run_cli(["undo", "b", "--dry-run", "--json"]).stdout)
    assert rows_of(run_cli) == 2 and dry.pop("dry_run") is True
    assert (
        json.loads(run_cli(["undo", "b", "--json"]).stdout)
        == dry
        == {
            "ok": True,
            "batch": "b",
            "deleted_memories": 1,
            "deleted_episodes": 0,
            "kept_locked": 1,
            "kept": ["mem:2"],
            "other_agents": 1,
        }
    )
    assert run_cli(["undo", "no such batch", "--dry-run"]).returncode == 3


def test_the_last_write_is_taken_back_by_undo_alone_and_by_undo_again(run_cli, daemon):
    """Contract: past.acts."""
    run_cli(["store", "old"])
    run_cli(["update", "mem:1", "new"])
    looked = run_cli(["undo", "--dry-run"])
    assert looked.returncode == 0 and looked.stdout.startswith("mem:1\tchanged ") and "a dry run" in looked.stderr
    assert run_cli(["undo"]).stdout == "mem:1\tchanged back\n" and run_cli(["get", "1", "--raw"]).stdout == "old\n"
    assert run_cli(["undo"]).stdout == "mem:1\tchanged back\n" and run_cli(["get", "1", "--raw"]).stdout == "new\n"
    run_cli(["delete", "mem:1"])
    assert json.loads(run_cli(["undo", "--json"]).stdout)["results"] == ["returned"]
    run_cli(["store", "a run", "--batch", "b"])
    assert run_cli(["undo"]).returncode == 1 and "`cpersona undo b`" in run_cli(["undo"]).stderr
    assert run_cli(["batches"]).stdout.startswith("b\t1\t0\t") and run_cli(["undo", "b"]).returncode == 0
    assert run_cli(["batches"]).stdout == ""
    assert run_cli(["undo", "--all-agents"]).returncode == 2
    gone = run_cli(["history", "mem:1"]).stdout.splitlines()
    assert gone[0] == "now\t-\t-\tnew" and [line.split("\t")[2] for line in gone[1:]][:2] == ["brought back", "deleted"]
    assert run_cli(["restore-memory", "mem:1@9"]).returncode == 1
    assert run_cli(["restore-memory", "mem:1@x"]).returncode == 2


def test_what_is_purged_is_not_brought_back(run_cli, daemon):
    """Contract: past.purged."""
    for text in ("one", "two", "three"):
        run_cli(["store", text])
    run_cli(["lock", "mem:2"])
    run_cli(["delete", "mem:1"])
    done = run_cli(["delete", "--purge", "mem:1", "mem:2", "mem:3"])
    assert (done.returncode, done.stdout) == (1, "mem:1\tdeleted for good\nmem:3\tdeleted for good\n")
    assert "mem:2 stays: " in done.stderr and "locked" in done.stderr
    assert run_cli(["restore-memory", "mem:1"]).returncode == 1
    assert "for good" in run_cli(["undo"]).stderr
    assert json.loads(run_cli(["delete", "--purge", "mem:9", "--json"]).stdout)["ok"] is False
