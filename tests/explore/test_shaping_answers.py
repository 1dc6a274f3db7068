"""What is shown of an answer, and what is asked: pure functions. Contract: explore.order, explore.account."""

from __future__ import annotations

import threading

import pytest

from cpersona_cli import exits
from cpersona_cli.explore import layout, shaping, state
from cpersona_cli.explore.asking import Asker, Request, Slots
from cpersona_cli.explore.state import AS_SET, Asked, Filters, Way
from cpersona_cli.terminal import view


def entry(ref, score, fate="returned", **more):
    return {"ref": ref, "fate": fate, "score": score, "threshold": 0.2, "signal": "blend", **more}


ANSWER = {
    "messages": [
        {"ref": "mem:2", "content": "second", "match_reason": {"score": 0.5}},
        {"ref": "mem:1", "content": "best", "match_reason": {"score": 0.9}},
    ],
    "trace": {
        "mode": "blend",
        "thresholds": {"blend": {"value": 0.2}},
        "stages": {"considered": 4},
        "rows": [
            entry("mem:1", 0.9, similarity=0.4, words=0.5, neighbours=0.0, lists=[]),
            entry("mem:2", 0.5, similarity=0.5, words=0.0, neighbours=0.0, lists=[]),
            entry("mem:3", 0.1, "gate", similarity=0.1, words=0.0, neighbours=0.0, passage={"start": 1, "end": 3}),
            entry("profile", 0.1, "gate"),
        ],
    },
}
TEXTS = {"mem:3": {"ref": "mem:3", "content": "below"}}


def test_the_best_row_is_first_and_those_not_returned_stand_behind_without_a_rank():
    assert [(row.ref, row.rank) for row in shaping.rows_of(ANSWER)] == [("mem:1", "1"), ("mem:2", "2")]
    rows = shaping.rows_of(ANSWER, TEXTS)
    assert [(row.ref, row.rank, row.fate) for row in rows[2:]] == [("mem:3", "", "gate")]
    assert rows[2].told["passage"] == {"start": 1, "end": 3} and shaping.below(ANSWER) == ["mem:3"]


def test_a_line_has_rank_ref_score_and_fate_and_marks_the_words_of_the_question():
    rows = shaping.rows_of(ANSWER, TEXTS)
    columns = shaping.Columns.of(rows, 50)
    text, words = shaping.line(rows[0], columns, view.marker("best"), 50)
    assert text == "1 mem:1  0.900 best" and [text[a:b] for a, b in words] == ["best"]
    assert shaping.line(rows[2], columns, view.marker("x"), 50)[0] == "  mem:3  0.100 [below gate] below"


def test_rows_beside_say_how_they_moved():
    one, two = (shaping.Row(f"mem:{n}", str(n), "returned", {}, {}) for n in (1, 2))
    three = shaping.Row("mem:3", "3", "returned", {}, {})
    assert shaping.moves([two, three, one], [one, two]) == {"mem:2": "↑1", "mem:3": "new", "mem:1": "↓2"}
    assert shaping.moves([one], [one]) == {"mem:1": "="}


def test_bars_are_what_the_gate_compared_with_what_it_asked_what_that_adds_up_from_and_a_penalty():
    rows = shaping.rows_of(ANSWER, TEXTS)
    scale = shaping.Scale.of(rows)
    shown = {bar.name: bar for bar in shaping.bars(rows[0].account, scale)}
    assert list(shown) == ["blend", "similarity", "words", "neighbours", "penalty"]
    assert scale == (0.9, 0.9) and shown["blend"].share == 1 and shown["words"].share == pytest.approx(5 / 9)
    assert shown["blend"].gate == pytest.approx(2 / 9) and shown["blend"].note == "gate asked 0.2000"
    assert shown["penalty"].value == "none"
    aged = {bar.name: bar for bar in shaping.bars(rows[0].account | {"prior": 0.5, "episode_penalty": 0.5}, scale)}
    assert (aged["penalty"].value, aged["penalty"].share, aged["penalty"].note) == (
        "×0.250",
        0.75,
        "age, before the last episode",
    )
    fused = {"signal": "rrf", "score": 0.03, "threshold": 0.01, "lists": [
        {"channel": "memory_fts", "rank": 0, "contribution": 0.03}, {"channel": "vector_near", "rank": 4}]}  # fmt: skip
    assert [bar.name for bar in shaping.bars(fused, shaping.Scale(1, 1))] == ["rrf", "words 1", "penalty"]


@pytest.mark.parametrize(
    "share, width, gate, drawn",
    [
        (0.0, 4, None, "····"),
        (1.0, 4, None, "████"),
        (0.5, 4, None, "██··"),
        (0.53125, 4, None, "██▏·"),
        (0.5, 4, 0.8, "██·┃"),
        (1.0, 4, 1.0, "███┃"),
    ],
)
def test_a_bar_has_a_line_where_the_gate_stands(share, width, gate, drawn):
    assert shaping.drawn(share, width, gate) == drawn


@pytest.mark.parametrize("width", [20, 40, 74, 120])
def test_bars_fit_the_width(width):
    lines = shaping.bar_lines(shaping.bars(ANSWER["trace"]["rows"][0], shaping.Scale(1, 1)), width)
    assert {len(line) for line in lines} <= {width, (width - 2) // 2 * 2 + 2} and len(lines) == (3 if width > 73 else 5)


def test_a_text_keeps_the_places_of_words_and_passage_whatever_it_holds():
    content = "\x1b[31mred\x07 deploys\nrun \u202eback"
    text = shaping.text_of(content, {"start": 9, "end": 16}, view.marker("deploy"))
    assert text.plain == "␛[31mred␇ deploys\nrun \ufffdback" and len(text.plain) == len(content)
    assert [text.plain[a:b] for a, b in text.words] == ["deploys"] and text.plain[slice(*text.passage)] == " deploy"
    assert shaping.text_of("short", {"start": 2, "end": 99}, view.marker("x")).passage is None


@pytest.mark.parametrize(
    "response, said",
    [
        ({"absent": ["E1"]}, "no row holds E1"),
        ({"not_held": ["a b"]}, 'no row holds "a b"'),
        ({"considered": 3}, "3 rows"),
        ({}, "nothing found"),
        ({"best_missed": {"ref": "mem:4", "signal": "blend", "score": 0.1, "threshold": 0.2}}, "mem:4 has blend 0.1"),
    ],
)
def test_an_answer_without_rows_says_what_is_missing(response, said):
    assert said in shaping.nothing(response)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_keys_fit_one_line_of_80_columns_all_of_them(width):
    for keys in (layout.KEYS_OF_QUESTION, layout.KEYS_OF_ROWS):
        fitting = shaping.fitting(keys, width)
        assert len(fitting) == len(keys) and sum(len(key + word) for key, word in fitting) <= width + 2
    assert shaping.fitting(layout.KEYS_OF_ROWS, 20)[-1][0] == "?"
    assert max(map(len, layout.HELP.splitlines())) <= 78


def test_filters_are_what_was_typed_and_an_empty_line_is_no_limit():
    fields = {"agent": "a", "project": "''", "channel": "", "since": "2026-01-01", "until": ""}
    filters = Filters.typed(fields)
    assert filters == Filters("a", "", None, "2026-01-01", None) and filters.fields() == fields
    assert filters.params() == {"agent_id": "a", "project_id": "", "since": "2026-01-01T00:00:00+00:00"}
    assert filters.told() == "agent a · global pool · any channel · since 2026-01-01"
    assert Filters.typed(fields | {"project": ""}).project is None


@pytest.mark.parametrize("wrong", [{"agent": " "}, {"since": "soon"}, {"since": "2026-02-01", "until": "2026-01-01"}])
def test_filters_that_mean_nothing_are_refused(wrong):
    with pytest.raises(exits.Usage):
        Filters.typed({"agent": "a", "project": "", "channel": "", "since": "", "until": ""} | wrong)


def test_the_ways_beside_go_round_and_end_with_none():
    ways, way = [], AS_SET
    for _ in range(4):
        way = state.next_mode(way, "blend")
        ways.append(way.told("blend"))
    assert ways == ["rrf", "rsf", "cascade", "blend"] and way == AS_SET
    assert state.next_mode(AS_SET, "rrf") == Way("blend") and state.next_precision(AS_SET, "rrf") == Way(
        "blend", "strict"
    )
    levels = [way := state.next_precision(way, "blend") for _ in range(4)]
    assert [level.precision for level in levels] == ["strict", "balanced", "lenient", ""] and levels[-1] == AS_SET


def test_a_question_counts_nowhere_whichever_way_it_is_asked():
    """Contract: recall.uncounted."""
    asked = Asked("q", Filters("a"), 5, True)
    for params in (asked.params(), asked.params(Way("blend", "strict")), asked.params(why_not="mem:1")):
        assert params["uncounted"] is True and params["query"] == "q" and params["deep"] is True
    assert asked.params(Way("blend", "strict"))["precision"] == "strict" and "trace" not in asked.params(
        why_not="mem:1"
    )


def test_of_each_kind_only_the_newest_waits_and_the_first_kind_is_asked_first():
    """Contract: explore.asked."""
    slots = Slots(("answer", "row"))
    for kind, query in (("row", 1), ("answer", 2), ("answer", 3)):
        slots.put(Request(kind, "recall", {"query": query}, None, print))
    first = slots.take()
    assert (first.kind, first.params["query"]) == ("answer", 3) and slots.fresh(first)
    assert slots.take().kind == "row" and slots.take() is None
    slots.drop("answer")
    assert not slots.fresh(first)


class Held:
    """A way to a daemon on which each answer waits until it is let go."""

    def __init__(self):
        self.hello, self.asked = {"pid": 1}, []
        self.began, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def call(self, method, params, overrides=None):
        self.asked.append(params["query"])
        self.began.release()
        assert self.go.acquire(timeout=10)
        return {"query": params["query"]}, None

    def close(self):
        pass


def test_never_more_than_one_request_is_under_way_and_a_stale_answer_is_dropped():
    """Contract: explore.asked."""
    daemon, shown, done = Held(), [], threading.Event()

    def deliver(call):
        call()
        if len(daemon.asked) == 3:
            done.set()

    asker = Asker(daemon, lambda: daemon, deliver, ("answer",))
    asker.ask("answer", "recall", {"query": "d"}, lambda told: shown.append(told.response["query"]))
    assert daemon.began.acquire(timeout=10)
    for query in ("de", "dep", "depl"):  # typed while the first is under way
        asker.ask("answer", "recall", {"query": query}, lambda told: shown.append(told.response["query"]))
    errand = asker.errand("lock_memory", {"query": "an errand is never dropped"})
    assert daemon.asked == ["d"] and asker.waits_for > 0
    for _ in range(3):
        daemon.go.release()
    assert done.wait(10) and errand.result(10).response
    assert daemon.asked == ["d", "an errand is never dropped", "depl"] and shown == ["depl"]
    asker.close()
