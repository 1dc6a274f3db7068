"""Rows by the caller's own key, and lists that are narrowed. Contract: rows.keyed, lists.narrowed."""

import json

import pytest


@pytest.fixture(scope="module")
def keyed(shared_daemon):
    """Memories with keys; `both` is one in two projects, `pool` one of project p and one of the pool."""

    def store(content, key, **more):
        shared_daemon.call("store", {"agent_id": "default", "content": content, "id": key, **more})

    store("of p", "both", project_id="p")
    store("of q", "both", project_id="q")
    store("of p again", "pool", project_id="p")
    store("of the pool", "pool")
    store("a text", "plain", source={"type": "User", "id": "user:1"}, batch="monday")
    store("another", "pl_in", lock=True)
    store("a third", "pl%in", channel="c")


@pytest.mark.parametrize(
    "words, said",
    [
        ("get --id plain --fields ref", "mem:5\n"),
        ("get mem:6 --id plain --id pl%in --fields ref", "mem:6\nmem:5\nmem:7\n"),
        ("get --id both --project p --fields ref", "mem:1\n"),
        ("get --id pool --project p --fields ref", "mem:3\n"),  # before the global pool's
        ("get --id pool --project z --fields ref", "mem:4\n"),
        ("lock --id plain", "mem:5\tlocked\n"),
        ("unlock --id plain", "mem:5\tunlocked\n"),
        ("update --id plain text", "mem:5\tupdated\n"),
        ("canary add text --id plain", "1\n"),
        ("list --id-prefix pl --fields ref", "mem:7\nmem:6\nmem:5\n"),
        ("list --id-prefix pl_ --fields ref", "mem:6\n"),
        ("list --id-prefix pl% --fields ref", "mem:7\n"),
        ("list --locked --fields ref", "mem:6\n"),
        ("list --batch monday --fields ref", "mem:5\n"),
        ("list --source-id user: --fields ref", "mem:5\n"),
        ("list --channel c --id-prefix pl% --batch none", ""),
    ],
)
def test_a_row_is_named_by_its_key_and_a_list_narrowed(shared_cli, keyed, words, said):
    done = shared_cli(words.split())
    assert (done.returncode, done.stdout) == (0, said), done.stderr


@pytest.mark.parametrize(
    "words, status, said",
    [
        ("get --id both", 1, "2 memories have the key 'both': mem:1 (project 'p'), mem:2 (project 'q')"),
        ("delete --id none", 1, "no memory of agent 'default' has the key 'none'"),
        ("delete --id plain --id none", 1, "has the key 'none'"),
        ("lock --id plain --agent other", 1, "no memory of agent 'other'"),
        ("get", 2, "--id KEY"),
        ("update mem:5 text --id plain", 2, "both name the memory"),
        ("get mem:2 --project p", 1, "no such row"),
    ],
)
def test_a_key_that_means_no_row_or_several_is_refused_before_anything_is_done(
    shared_cli, shared_daemon, keyed, words, status, said
):
    done = shared_cli(words.split())
    assert (done.returncode, done.stdout) == (status, "") and said in done.stderr and done.stderr.count("\n") == 1
    assert shared_daemon.call("list_memories", {})[0]["count"] == 7


def test_the_setting_of_a_project_says_whose_key_is_meant_and_hides_no_ref(shared_cli, keyed):
    done = shared_cli(["get", "--id", "both", "mem:1", "--fields", "ref"], env={"CPERSONA_PROJECT": "q"})
    assert done.stdout == "mem:1\nmem:2\n"


@pytest.mark.parametrize(
    "words, name, row",
    [
        ("list --id-prefix plain --json=ref,id,locked,length", "memories", ["mem:5", "plain", False, 4]),
        ("recall third --json=ref,rank,rrf,truncated", "messages", ["mem:7", 1, None, False]),
        ("get --id plain --json-fields source,id", "items", [{"type": "User", "id": "user:1"}, "plain"]),
    ],
)
def test_json_with_fields_prints_rows_with_these_alone(shared_cli, keyed, words, name, row):
    """Contract: output.shapes."""
    done = shared_cli(words.split())
    assert done.returncode == 0, done.stderr
    assert [list(found.values()) for found in json.loads(done.stdout)[name]] == [row]


def test_json_with_fields_says_which_there_are_and_that_it_is_json_already(shared_cli):
    for words in ("list --json=nothing", "list --json=ref --fields ref", "health --json=ref"):
        done = shared_cli(words.split())
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "--json" in done.stderr
