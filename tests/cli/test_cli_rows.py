"""Rows by their ref, episodes, profile, associations.

Contract: contents.refs, locks.hold, episode.archive, profile.one, exit.status.
"""

import json

import pytest
from cli_kit import runner


@pytest.fixture
def two(daemon):
    for text in ("first\nline", "second"):
        daemon.call("store", {"agent_id": "default", "content": text, "timestamp": "2026-03-01T00:00:00Z"})


def test_get_prints_a_row_a_line_and_fails_when_one_is_missing(run_cli, two):
    done = run_cli(["get", "mem:1", "2"])
    assert (
        done.stdout == "mem:1\t2026-03-01T00:00:00Z\t-\tfirst\\nline\nmem:2\t2026-03-01T00:00:00Z\t-\tsecond\n"
        and done.returncode == 0
    )
    missing = run_cli(["get", "mem:1", "mem:9", "ep:1"])
    assert missing.returncode == 1 and missing.stdout.count("\n") == 1 and "mem:9, ep:1" in missing.stderr
    assert run_cli(["get", "mem:1", "--agent", "other"]).returncode == 1


def test_get_raw_is_the_text_as_it_is(run_cli, two):
    assert run_cli(["get", "mem:1", "--raw"]).stdout == "first\nline\n"
    assert run_cli(["get", "mem:1", "mem:2", "--raw", "-0"]).stdout == "first\nline\0second\0"


def test_list_is_newest_first(run_cli, two, daemon):
    assert [line.split("\t")[0] for line in run_cli(["list"]).stdout.splitlines()] == ["mem:2", "mem:1"]
    assert run_cli(["list", "-n", "1"]).stdout.count("\n") == 1
    daemon.call("store", {"agent_id": "b", "content": "of b"})
    assert run_cli(["list", "--all-agents"]).stdout.splitlines()[0].split("\t")[0] == "b"
    empty = run_cli(["list", "--agent", "nobody"])
    assert empty.returncode == 0 and empty.stdout == "" and "nobody" in empty.stderr


def test_a_locked_row_stays_and_the_way_out_is_named(run_cli, two):
    assert run_cli(["lock", "mem:1"]).stdout == "mem:1\tlocked\n"
    for command in (["update", "mem:1", "new"], ["delete", "mem:1"]):
        done = run_cli(command)
        assert (
            done.returncode == 1
            and done.stdout == ""
            and "cpersona unlock mem:1" in done.stderr
            and done.stderr.count("\n") == 1
        )
    assert run_cli(["unlock", "mem:1"]).stdout == "mem:1\tunlocked\n"
    assert run_cli(["update", "mem:1", "new"]).stdout == "mem:1\tupdated\n"
    assert run_cli(["get", "mem:1", "--raw"]).stdout == "new\n"


def test_a_locked_row_and_one_that_is_not_there_are_told_apart_and_a_foreign_one_is_not_there(run_cli, two, daemon):
    foreign = daemon.call("store", {"agent_id": "other", "content": "a row of another agent", "lock": True})[0]["id"]
    assert run_cli(["lock", "mem:1"]).returncode == 0
    for command in (["update", "{}", "new"], ["delete", "{}"]):
        said = {}
        for number in (1, foreign, 99):
            done = run_cli([word.format(f"mem:{number}") for word in command])
            assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
            said[number] = done.stderr.replace(str(number), "N")
            told = json.loads(run_cli([*(word.format(number) for word in command), "--json"]).stdout)
            assert told["ok"] is False and ("locked" in told["error"]) == (number == 1), told
        assert "mem:N is locked; `cpersona unlock mem:N` frees it" in said[1] and "agent" not in said[1]
        assert said[foreign] == said[99] and "no row mem:N of agent 'default'" in said[99] and "locked" not in said[99]
    for command in (["lock"], ["unlock"]):
        assert run_cli([*command, "mem:99"]).stderr.replace("99", "N") == run_cli(
            [*command, f"mem:{foreign}"]
        ).stderr.replace(str(foreign), "N")
    assert "no row ep:9 of agent 'default'" in run_cli(["delete", "ep:9"]).stderr
    number = daemon.call("store", {"agent_id": "default", "content": "under a key", "id": "k", "lock": True})[0]["id"]
    assert (
        f"mem:{number} is locked; `cpersona unlock mem:{number}` frees it"
        in run_cli(["store", "otherwise", "--id", "k", "--on-conflict", "update"]).stderr
    )


def test_a_text_that_another_row_has_names_that_row(run_cli, two, daemon):
    done = run_cli(["update", "mem:1", "second"])
    assert (
        done.returncode == 1
        and "mem:2 has this content already; `cpersona get mem:2` shows it" in done.stderr
        and "mem:1`" not in done.stderr
    )
    daemon.call("store", {"agent_id": "default", "content": "third", "id": "k3"})
    assert (
        "`cpersona get mem:2` shows it" in run_cli(["store", "second", "--id", "k3", "--on-conflict", "update"]).stderr
    )
    for words in (
        ["store", "second", "--on-conflict", "fail"],
        ["store", "new", "--id", "k3", "--on-conflict", "fail"],
    ):
        done = run_cli(words)
        assert done.returncode == 1 and f"`cpersona get mem:{2 if 'second' in words else 3}` shows it" in done.stderr


def test_each_of_several_refs_gets_its_outcome_and_one_failure_shows_in_the_status(run_cli, two):
    done = run_cli(["delete", "mem:1", "mem:9", "mem:2"])
    assert (
        done.returncode == 1
        and done.stdout == "mem:1\tdeleted\nmem:2\tdeleted\n"
        and done.stderr.startswith("cpersona delete mem:9")
    )
    as_json = run_cli(["delete", "mem:9", "--json"])
    assert as_json.returncode == 1 and json.loads(as_json.stdout)["ok"] is False


def test_episodes_are_archived_listed_and_deleted(run_cli):
    history = '[{"timestamp": "2026-03-01T10:00:00Z"}, {"timestamp": "2026-03-01T09:00:00Z"}]'
    assert (
        run_cli(
            ["episode", "archive", "moved the queue", "--keywords", "queue", "--history", "-", "--resolved"],
            input=history,
        ).stdout
        == "ep:1\n"
    )
    assert (
        run_cli(["episode", "list"]).stdout
        == "ep:1\t2026-03-01T09:00:00Z\t2026-03-01T10:00:00Z\tresolved\tqueue\tmoved the queue\n"
    )
    assert run_cli(["get", "ep:1", "--raw"]).stdout == "[Episode] moved the queue\n"
    assert run_cli(["episode"]).stdout.startswith("ep:1")
    assert run_cli(["delete", "ep:1"]).stdout == "ep:1\tdeleted\n"
    assert run_cli(["episode", "delete", "1"]).returncode == 1


def test_a_profile_is_shown_as_it_was_set(run_cli):
    assert run_cli(["profile"]).stdout == ""
    assert run_cli(["profile", "set", "-"], input="Keeps\nthe build green.\n").returncode == 0
    assert run_cli(["profile", "show"]).stdout == "Keeps\nthe build green.\n"


def test_a_paused_write_says_that_nothing_was_kept(run_cli, two):
    assert run_cli(["pause", "--for", "10m"]).stdout.startswith("paused\tuntil ")
    for command in (
        ["store", "x"],
        ["update", "mem:1", "x"],
        ["delete", "mem:1"],
        ["profile", "set", "x"],
        ["episode", "archive", "x"],
    ):
        done = run_cli(command)
        assert done.returncode == 0 and done.stdout == "" and "cpersona resume" in done.stderr, command
    assert run_cli(["pause", "--status"]).stdout.startswith("paused\t")
    assert "lasts 86400 s" in run_cli(["pause", "--for", "9d"]).stderr
    assert run_cli(["resume"]).stdout == "keeping\n"
    assert run_cli(["pause", "--status"]).stdout == "keeping\n"
    assert run_cli(["get", "mem:1", "--raw"]).stdout == "first\nline\n"


def test_associations_are_declared_shown_as_a_tree_and_retracted(run_cli, two):
    done = run_cli(
        [
            "associate",
            "declare",
            "--alias",
            "Postgres=pg",
            "--relation",
            "queue | runs on | Postgres",
            "--anchor",
            "mem:1",
        ]
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "relation\t1"
    tree = run_cli(["traverse", "pg"]).stdout.splitlines()
    assert tree[0] == "pg" and "\tqueue  1 hop" in tree and "\t\tqueue runs on Postgres  (relation 1)" in tree
    assert "\t\tqueue runs on Postgres  (relation 1)" in run_cli(["associate", "list"]).stdout.splitlines()
    assert run_cli(["associate", "retract", "--relation", "1", "--mention", "Postgres=mem:1"]).returncode == 0
    assert "relation" not in run_cli(["associate"]).stdout
    bad = run_cli(["associate", "declare", "--relation", "queue runs on"])
    assert bad.returncode == 2 and "SUBJECT | PREDICATE | OBJECT" in bad.stderr
    assert "associate list" in run_cli(["traverse", "nobody"]).stderr


def test_what_cannot_be_declared_is_said_and_the_rest_stands(run_cli):
    done = run_cli(["associate", "declare", "-"], input='{"entities": [{"name": "good"}, {"name": ""}]}')
    assert done.returncode == 1 and "good" in done.stdout and "left out" in done.stderr


def test_an_alias_without_its_sign_is_a_usage_error_that_shows_the_form(run_cli):
    bad = run_cli(["associate", "declare", "--alias", "Postgres", "pg"])
    assert (
        bad.returncode == 2
        and "--alias takes NAME=ALIAS, not 'Postgres'" in bad.stderr
        and "JSON" not in bad.stderr.split(";")[0]
    )


def test_the_list_of_associations_goes_on_to_the_last_page(run_cli, daemon):
    for at in range(0, 520, 40):
        daemon.call(
            "declare_associations",
            {"agent_id": "default", "associations": {"entities": [{"name": f"e{n}"} for n in range(at, at + 40)]}},
        )
    shown = run_cli(["associate", "list"]).stdout.split()
    assert [name for name in shown if name.startswith("e") and name[1:].isdigit()] == [f"e{n}" for n in range(520)]
    answer = json.loads(run_cli(["associate", "list", "--json"]).stdout)
    assert len(answer["entities"]) == 520 and "next" not in answer


def test_reconstruct_shows_items_with_their_claims(run_cli, two):
    done = run_cli(["reconstruct", "second", "--deep"])
    assert done.returncode == 0 and done.stdout.splitlines()[:2] == ["mem:2  second", "\tmem:2  2026-03-01T00:00:00Z"]
    assert "order" not in json.loads(run_cli(["reconstruct", "second", "--deep", "--json"]).stdout)


def test_as_of_says_how_many_rows_it_cannot_know(run_cli, daemon, two):
    daemon.call("update_memory", {"memory_id": 1, "content": "first, changed"})
    now = run_cli(["list", "--as-of", "0s"])
    assert now.stderr == "" and "first, changed" in now.stdout
    row = {"_type": "memory", "agent_id": "default", "content": "walnut", "created_at": "2026-01-01 00:00:00"}
    assert run_cli(["import", "-"], input=json.dumps(row) + "\n").returncode == 0
    assert run_cli(["update", "mem:3", "walnut, changed"]).returncode == 0
    for command in (["recall", "walnut", "--deep"], ["context", "walnut", "--deep"]):
        then = run_cli([*command, "--as-of", "2026-01-01"])
        assert "walnut" in then.stdout and "walnut, changed" not in then.stdout and "changed since" not in then.stderr
    assert json.loads(run_cli(["list", "--as-of", "2026-01-01", "--json"]).stdout)["as_of"]["changed_since"] == 1
    assert run_cli(["delete", "mem:3"]).returncode == 0
    then = run_cli(["recall", "walnut", "--deep", "--as-of", "2026-01-01"])
    assert then.stdout.endswith("\twalnut\n") and "deleted since" not in then.stderr
    listed = run_cli(["list", "--as-of", "2026-01-01"])
    assert listed.stdout.endswith("\twalnut\n") and "deleted since" not in listed.stderr
    assert run_cli(["get", "mem:3", "--as-of", "2026-01-01", "--raw"]).stdout == "walnut\n"
    assert run_cli(["delete", "--purge", "mem:3"]).returncode == 0
    then = run_cli(["recall", "walnut", "--deep", "--as-of", "2026-01-01"])
    assert then.stdout == "" and "1 row was deleted since and not kept" in then.stderr
    assert "`cpersona help time`" in then.stderr


def test_a_row_that_is_not_kept_as_it_was_is_named(home):
    run = runner(home | {"CPERSONA_HISTORY_DAYS": "0"})
    row = {"_type": "memory", "agent_id": "default", "content": "walnut", "created_at": "2026-01-01 00:00:00"}
    assert run(["import", "-"], input=json.dumps(row) + "\n").returncode == 0
    assert run(["update", "mem:1", "walnut, changed"]).returncode == 0
    for command in (["recall", "walnut", "--deep"], ["context", "walnut", "--deep"], ["get", "mem:1"]):
        then = run([*command, "--as-of", "2026-01-01"])
        assert then.returncode == 0 and "walnut, changed" in then.stdout
        assert "cpersona: mem:1 has changed since then, and what it was is not kept" in then.stderr
