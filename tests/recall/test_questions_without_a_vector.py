"""A question that could not be embedded: the answer says so, each time and in every kind of recall.

Contract: advisory.says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from contract_kit import Embedder
from store_kit import Store, opened_store

_numbers = itertools.count()


class Moody(Embedder):
    """Answers questions, as texts that begin with `?`, only while ``well``."""

    well = True

    def reply(self, texts: list[str]) -> dict:
        if not self.well and any(text.startswith("?") for text in texts):
            return {"embeddings": []}
        return super().reply(texts)


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[Store, Moody]]:
    embedder = Moody()
    try:
        with opened_store(**embedder.settings) as (store, _):
            store.call("store", {"agent_id": "a", "content": "the kettle whistles"})
            yield store, embedder
    finally:
        embedder.stop()


@pytest.fixture
def ask(house):
    """Ask a new question, with the embedder well or not, and return the answer."""
    store, embedder = house

    def ask(well: bool, method: str = "recall", query: str = "", **more) -> dict:
        embedder.well = well
        answer, code = store.call(
            method, {"agent_id": "a", "query": query or f"?{next(_numbers)}", **more.pop("params", {})}, **more
        )
        assert code is None, answer
        return answer

    ask(True)  # an earlier test may have left failures in a row
    yield ask
    embedder.well = True


def test_one_failed_question_is_a_hint_and_names_the_reason(ask):
    said = ask(False)["advisory"]
    assert (said["degraded"], said["severity"]) == (True, "hint")
    assert "words alone" in said["reason"] and "0 vectors for 1 texts" in said["evidence"]


def test_failures_that_alternate_with_successes_are_said_each_time(ask):
    answers = [ask(well) for well in (False, True, False, True, False)]
    assert ["advisory" in answer for answer in answers] == [True, False, True, False, True]
    assert {answer["advisory"]["severity"] for answer in answers[::2]} == {"hint"}


def test_from_the_second_failure_in_a_row_on_it_is_a_fault(ask):
    assert [ask(False)["advisory"]["severity"] for _ in range(3)] == ["hint", "fault", "fault"]
    assert "advisory" not in ask(True)


def test_a_question_whose_vector_is_remembered_lacks_nothing_while_others_fail(ask):
    ask(True, query="?remembered")
    ask(False), ask(False)
    assert "advisory" not in ask(False, query="?remembered")
    assert ask(False)["advisory"]["severity"] == "fault"


@pytest.mark.parametrize("method", ["recall", "recall_with_context", "reconstruct"])
def test_every_kind_of_recall_says_it(ask, method):
    assert ask(False, method)["advisory"]["severity"] == "hint"


def test_a_blank_question_needs_no_vector_and_the_setting_silences_it(ask):
    assert "advisory" not in ask(False, query=" ")
    assert "advisory" not in ask(False, overrides={"degraded_advisory": False})


def test_a_saved_question_that_cannot_be_embedded_is_not_recorded_as_lost(house, ask):
    store, embedder = house
    embedder.questions |= {"it boils", "?what sings in the morning"}  # these mean the same, and share no word
    ref = f"mem:{store.call('store', {'agent_id': 'c', 'content': 'it boils'})[0]['id']}"
    embedder.well = False
    added, _ = store.call("add_canary", {"agent_id": "c", "query": "?what sings in the morning", "ref": ref})
    assert (added["ok"], added["state"], added["advisory"]["severity"]) == (True, "new", "hint")
    answer, code = store.call("run_canaries", {"agent_id": "c"})
    assert (
        code == "embedding"
        and answer["ok"] is False
        and "1 of 1 saved questions could not be embedded" in answer["error"]
    )
    assert [c["state"] for c in store.call("list_canaries", {"agent_id": "c"})[0]["canaries"]] == ["new"]
    embedder.well = True
    assert store.call("run_canaries", {"agent_id": "c"})[0]["found"] == 1
