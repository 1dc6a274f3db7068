"""A row has one name in every answer of the command line, `ref`, and the key that its owner gave it has one, `id`.

Contract: output.shapes, answer.rows.
"""

from __future__ import annotations

import json

import pytest


def told(run, *words, status=0, **more):
    done = run([*words, "--json"], **more)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def rows(answer):
    return next((answer[name] for name in ("memories", "items", "messages", "episodes") if name in answer), [answer])


@pytest.fixture(scope="module")
def stored(shared_cli):
    """A memory with a key and one without, and an episode: (their refs, what the stores answered)."""
    answers = [
        told(shared_cli, "store", "walnut one", "--id", "k1"),
        told(shared_cli, "store", "walnut two"),
        told(shared_cli, "episode", "archive", "walnut three"),
    ]
    return [answer["ref"] for answer in answers], answers


def test_a_store_names_the_row_and_the_key_it_was_given(stored):
    refs, answers = stored
    assert refs == ["mem:1", "mem:2", "ep:1"] and [answer.get("id") for answer in answers] == ["k1", None, None]


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["get", "mem:1", "mem:2"],
        ["recall", "walnut", "--deep"],
        ["context", "walnut", "--deep"],
        ["recall", ""],
    ],
    ids=" ".join,
)
def test_every_answer_with_rows_names_them_alike(shared_cli, stored, words):
    found = {row["ref"]: row.get("id") for row in rows(told(shared_cli, *words)) if row["ref"].startswith("mem:")}
    assert found == {"mem:1": "k1", "mem:2": None}
    assert all("msg_id" not in row and not isinstance(row.get("id"), int) for row in rows(told(shared_cli, *words)))


def test_a_list_of_episodes_names_them_alike(shared_cli, stored):
    assert [(row["ref"], row.get("id")) for row in rows(told(shared_cli, "episode", "list"))] == [("ep:1", None)]


def test_what_changes_a_row_names_it(shared_cli, stored):
    for words in (["update", "mem:2", "walnut two, changed"], ["lock", "2"], ["unlock", "mem:2"]):
        assert told(shared_cli, *words)["ref"] == "mem:2"
    gone = told(shared_cli, "store", "gone")["ref"]
    assert told(shared_cli, "delete", gone)["ref"] == gone
    episode = told(shared_cli, "episode", "archive", "gone")["ref"]
    assert told(shared_cli, "episode", "delete", episode)["ref"] == episode


def test_a_skip_names_the_row_that_is_there_and_a_key_only_where_it_is_that_rows(shared_cli, stored):
    by_key = told(shared_cli, "store", "walnut otherwise", "--id", "k1")
    assert (by_key["result"], by_key["ref"], by_key["id"]) == ("skipped", "mem:1", "k1")
    by_text = told(shared_cli, "store", "walnut one", "--id", "k2")
    assert (by_text["result"], by_text["ref"], by_text.get("id")) == ("skipped", "mem:1", None)
    updated = told(shared_cli, "store", "walnut one", "--id", "k1", "--on-conflict", "update")
    assert (updated["ref"], updated.get("id")) == ("mem:1", "k1")


def test_what_was_not_kept_has_no_ref(shared_cli, stored):
    assert not {"ref", "id"} & set(told(shared_cli, "store", "", status=1))
    assert shared_cli(["pause", "--for", "1m"]).returncode == 0
    try:
        for words in (["store", "walnut", "--id", "k3"], ["episode", "archive", "walnut"]):
            answer = told(shared_cli, *words)
            assert answer["persisted"] is False and not {"ref", "id"} & set(answer)
    finally:
        assert shared_cli(["resume"]).returncode == 0


def test_call_answers_as_the_contract_does(shared_cli, stored):
    (row, *_) = json.loads(shared_cli(["call", "list_memories", '{"agent_id": "default", "limit": 1}']).stdout)[
        "memories"
    ]
    assert isinstance(row["id"], int) and row["msg_id"] == ""
