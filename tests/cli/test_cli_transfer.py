"""Export, import, merge, forget, health, calibrate.

Contract: export.file, import.lines, merge.copies, forget.agent, exit.status.
"""

import json
import os
import stat


def counts(done):
    return dict(line.split("\t") for line in done.stdout.splitlines())


def test_an_export_reads_back_into_another_store_and_twice_is_harmless(run_cli, home):
    run_cli(["store", "--jsonl", "-"], input='{"content": "one", "id": "k"}\n"two"\n')
    path = os.path.join(home["HOME"], "out.jsonl")
    done = run_cli(["export", "out.jsonl"])
    assert done.returncode == 0 and done.stdout == path + "\n" and "2 memories" in done.stderr
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    env = {"CPERSONA_DB_PATH": os.path.join(home["HOME"], "db", "copy.db")}
    assert counts(run_cli(["import", "out.jsonl", "--dry-run"], env=env))["imported_memories"] == "2"
    assert run_cli(["list"], env=env).stdout == ""
    assert counts(run_cli(["import", "out.jsonl"], env=env))["imported_memories"] == "2"
    again = counts(run_cli(["import", "out.jsonl"], env=env))
    assert (again["imported_memories"], again["skipped_memories"]) == ("0", "2")


def test_export_and_import_go_through_pipes_and_leave_no_file_behind(run_cli, home):
    run_cli(["store", "one"])
    exported = run_cli(["export", "-", "-q"])
    assert exported.returncode == 0 and [json.loads(line)["_type"] for line in exported.stdout.splitlines()] == [
        "header",
        "memory",
    ]
    done = run_cli(["import", "-", "--to-agent", "b"], input=exported.stdout)
    assert done.returncode == 0 and counts(done)["imported_memories"] == "1"
    assert run_cli(["list", "--agent", "b"]).stdout.endswith("\tone\n")
    assert os.listdir(home["TMPDIR"]) == []


def test_a_pipe_works_where_transfers_are_confined_to_a_directory(run_cli, home):
    confined = os.path.join(home["HOME"], "exports")
    os.mkdir(confined, 0o700)
    env = {"CPERSONA_EXPORT_DIR": confined}
    run_cli(["store", "one"], env=env)
    exported = run_cli(["export", "-"], env=env)
    assert exported.returncode == 0 and run_cli(["import", "-"], input=exported.stdout, env=env).returncode == 0
    assert os.listdir(confined) == []
    outside = run_cli(["export", os.path.join(home["HOME"], "x.jsonl")], env=env)
    assert outside.returncode == 1 and outside.stderr.count("\n") == 1


def test_a_bad_line_is_said_with_its_number_and_the_status_is_1(run_cli):
    row = json.dumps({"_type": "memory", "agent_id": "default", "content": "good"})
    done = run_cli(["import", "-"], input=f"{row}\nnonsense\n")
    assert done.returncode == 1 and counts(done)["imported_memories"] == "1" and "Line 2" in done.stderr
    assert run_cli(["import", "/no/such/file"]).returncode == 1


def test_many_bad_lines_are_counted_and_the_first_are_shown(run_cli):
    rows = [json.dumps({"_type": "memory", "agent_id": "default", "content": "good"}), *["nonsense"] * 2000]
    done = run_cli(["import", "-"], input="\n".join(rows) + "\n")
    said = done.stderr.splitlines()
    assert done.returncode == 1 and [line.split(":")[1].strip() for line in said[:5]] == [
        f"Line {n}" for n in range(2, 7)
    ]
    assert said[5] == "cpersona import: 2,000 rejected, first 5 shown; --json has 100" and len(said) == 6
    again = run_cli(["import", "-", "--json"], input="\n".join(rows[:4]) + "\n")
    assert json.loads(again.stdout)["rejected"] == 3 and again.stderr.splitlines()[-1] == "cpersona import: 3 rejected"


def test_a_file_that_is_no_export_is_named_with_the_command_that_takes_it(run_cli, home):
    path = os.path.join(home["HOME"], "my notes.jsonl")
    with open(path, "w") as handle:
        handle.write('{"content": "one"}\n{"content": "two"}\n')
    done = run_cli(["import", "my notes.jsonl"])
    assert (
        done.returncode == 1
        and done.stdout == ""
        and done.stderr.count("\n") == 1
        and "cpersona store --jsonl 'my notes.jsonl'`" in done.stderr
    )
    assert run_cli(["store", "--jsonl", "my notes.jsonl"]).returncode == 0
    piped = run_cli(["import", "-"], input="")
    assert piped.returncode == 1 and "empty" in piped.stderr
    assert len(run_cli(["list"]).stdout.splitlines()) == 2


def test_merge_moves_and_forget_agent_asks_first(run_cli):
    run_cli(["store", "one", "--agent", "scratch"])
    assert counts(run_cli(["merge", "scratch", "default", "--dry-run"]))["merged_memories"] == "1"
    assert run_cli(["list"]).stdout == ""
    assert run_cli(["merge", "scratch", "default", "--move"]).returncode == 0
    assert run_cli(["list"]).stdout.endswith("\tone\n") and run_cli(["list", "--agent", "scratch"]).stdout == ""
    refused = run_cli(["forget-agent", "default"])
    assert refused.returncode == 2 and "--yes" in refused.stderr
    assert counts(run_cli(["forget-agent", "default", "--yes"]))["deleted_memories"] == "1"
    assert run_cli(["list"]).stdout == ""


def test_an_agent_that_nothing_is_stored_for_is_an_error_where_its_rows_were_to_go(run_cli, home):
    run_cli(["store", "one"])
    for command in (
        ["forget-agent", "defualt", "--yes"],
        ["merge", "defualt", "other"],
        ["merge", "defualt", "other", "--move"],
        ["merge", "defualt", "other", "--dry-run"],
    ):
        done = run_cli(command)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), command
        assert "'defualt'" in done.stderr and home["CPERSONA_DB_PATH"] in done.stderr
    assert json.loads(run_cli(["forget-agent", "defualt", "--yes", "--json"]).stdout)["unknown_agent"] is True
    run_cli(["profile", "set", "somebody", "--agent", "p"])
    assert (
        run_cli(["forget-agent", "p", "--yes"]).returncode == 0
        and run_cli(["forget-agent", "p", "--yes"]).returncode == 1
    )
    assert run_cli(["list"]).stdout.endswith("\tone\n")


def test_health_prints_the_verdict_first_and_refuses_an_unknown_check(run_cli):
    run_cli(["store", "one"])
    done = run_cli(["health", "--check", "sqlite_integrity"])
    assert done.returncode == 0 and done.stdout.splitlines()[:2] == ["status\thealthy", "memories\t1"]
    assert run_cli(["health", "--check", "astrology"]).returncode == 1


def test_reindex_ends_with_what_it_did(run_cli):
    run_cli(["store", "one"])
    assert "memories in the word index\t1" in run_cli(["reindex"]).stdout.splitlines()


def test_a_calibration_that_cannot_be_made_fails_and_changes_nothing(run_cli):
    seeds = {"CPERSONA_RECALL_MODE": "rrf"}
    run_cli(["store", "one"])
    assert run_cli(["calibrate"], env=seeds).returncode == 1
    refused = run_cli(["precision", "set", "strict"], env=seeds)
    assert refused.returncode == 1 and "nothing was changed" in refused.stderr
    assert run_cli(["precision"], env=seeds).stdout == "balanced\n"
    assert run_cli(["precision", "clear"], env=seeds).stdout == "default\n"


def test_a_precision_of_the_blend_needs_nothing_to_measure(run_cli):
    run_cli(["store", "one"])
    assert run_cli(["precision", "set", "strict"]).stdout == "strict\n" == run_cli(["precision"]).stdout
