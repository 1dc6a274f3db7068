"""Whatever is done to rows later, an answer as of an instant is the answer that was given at that instant.

Contract: time.asof.
"""

from __future__ import annotations

import random

import pytest
from store_kit import Store

from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.instants import created_text

WORDS = ("walnut", "cherry", "maple", "poplar", "larch", "PR-77", "v2.1")
MODES = ("blend", "rrf", "rsf", "cascade")
STEPS, EVERY = 60, 6
POOL = 100  # a cascade returns rows without a score only from a pool of so many


class Minutes(SystemClock):
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.time = 1_750_000_000.0

    def now(self) -> float:
        return self.time


@pytest.fixture
def clock():
    return Minutes()


@pytest.fixture
def store(tmp_path, clock):
    opened = Store(tmp_path, clock)
    yield opened
    opened.close()


class History:
    """Random acts of one agent, each a minute after the other."""

    def __init__(self, store: Store, clock: Minutes, seed: int) -> None:
        self._store, self._clock, self._chance = store, clock, random.Random(seed)
        self._written = 0
        self.there: dict[str, list[str]] = {"mem": [], "ep": []}
        self.gone: list[str] = []

    def own(self, method: str, set: dict | None = None, **params: object) -> dict:
        answer, code = self._store.call(method, {"agent_id": "kit", **params}, set)
        assert code is None, (method, answer)
        return answer

    def text(self) -> str:
        self._written += 1
        return " ".join([f"note{self._written}", *self._chance.sample(WORDS, 2)])

    def step(self) -> None:
        """Do something to some row."""
        self._clock.time += 60
        act = self._chance.choice(("store", "store", "episode", "update", "delete", "restore", "undo"))
        memories, refs = self.there["mem"], self.there["mem"] + self.there["ep"]
        if act == "store":
            source = {"id": self._chance.choice(("me", "you"))}
            memories.append(f"mem:{self.own('store', content=self.text(), source=source)['id']}")
        elif act == "episode":
            answer = self.own("archive_episode", summary=self.text(), keywords=self._chance.choice(WORDS))
            self.there["ep"].append(f"ep:{answer['episode_id']}")
        elif act == "update" and memories:
            ref = self._chance.choice(memories)
            self.own("update_memory", memory_id=int(ref[4:]), content=self.text())
        elif act == "delete" and refs:
            self._delete(self._chance.choice(refs))
        elif act == "restore" and self.gone:
            ref = self.gone.pop(self._chance.randrange(len(self.gone)))
            self.own("restore_row", ref=ref)
            self.there[ref.split(":")[0]].append(ref)
        elif act == "undo" and memories:
            ref = self._chance.choice(memories)
            self.own("update_memory", memory_id=int(ref[4:]), content=self.text())
            self._clock.time += 60
            self.own("undo_last")

    def _delete(self, ref: str) -> None:
        kind, number = ref.split(":")
        if kind == "mem":
            self.own("delete_memory", memory_id=int(number))
        else:
            self.own("delete_episode", episode_id=int(number))
        self.there[kind].remove(ref)
        self.gone.append(ref)

    def answers(self, as_of: str | None) -> dict[tuple, list]:
        """Return what each question finds in each mode, as texts in an order of their own."""
        found = {}
        for mode in MODES:
            for query in (*WORDS, "walnut larch", "ote1", ""):
                answer = self.own(
                    "recall", {"recall_mode": mode}, query=query, as_of=as_of, deep=True, limit=50, uncounted=True
                )
                rows = [
                    (row["content"], row.get("ref"), str(row["source"]), row.get("timestamp"))
                    for row in answer["messages"]
                ]
                found[mode, query] = rows if query == "" else sorted(rows)
        return found


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_as_of_an_instant_is_the_one_that_was_given_then(store, clock, seed):
    history = History(store, clock, seed)
    for n in range(POOL):
        history.own("store", content=f"padding {n}")
    told = {}
    for step in range(STEPS):
        history.step()
        if step % EVERY == 0:
            told[created_text(clock.time)] = history.answers(None)
    for instant, answers in told.items():
        again = history.answers(instant)
        for asked, rows in answers.items():
            if asked[0] == "rsf":  # the weakest row scores nothing, and which one that is hangs on today's rows
                assert set(again[asked]) <= set(answers["rrf", asked[1]]), (instant, asked)
            else:
                assert again[asked] == rows, (instant, asked)
