"""Many rows that say nearly the same stand as one, and hide nothing. Contract: alike.folded."""

from __future__ import annotations

import pytest
from words_kit import WordStore

from cpersona_daemon.recall.scoring.folding import LEAST_ROWS, groups

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
FLOODS = {
    "line": lambda n: f"2026-03-{n % 28 + 1:02d} 02:{n % 60:02d}:11 backup of the orders database finished in {n} s",
    "note": lambda n: f"{DAYS[n % 7]} night check {n}: all services green, orders queue at {n} percent, nobody paged",
    "pull": lambda n: (
        f"bump the orders client to 1.{n}.0 in build {n * 7 + 3:07x}{n % 10} of the orders service (#{n})"
    ),
}
ANSWERS = {
    "line": ("where does the orders database backup go", "the backup of our orders database goes to a bucket in Oslo"),
    "note": (
        "who is paged about the orders queue at night",
        "Ines is paged first when the orders queue grows at night",
    ),
    "pull": (
        "why is the orders client pinned",
        "the orders client of the orders service was pinned because 2.0 breaks",
    ),
}


@pytest.fixture(scope="module", params=[40, 300], ids=lambda size: f"{size} rows")
def flooded(request, tmp_path_factory):
    store = WordStore(tmp_path_factory.mktemp("flood"))
    store.size = request.param
    store.fill(count=60)
    store.answers = {}
    for name, flood in FLOODS.items():
        store.fill(agent=name, count=60)
        (store.answers[name],) = store.add(ANSWERS[name][1], agent=name)
        store.add(*map(flood, range(store.size)), agent=name)
    yield store
    store.close()


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_stands_as_one_row_and_the_answer_behind_it_is_found(flooded, name):
    result = flooded.recall(ANSWERS[name][0], agent=name, trace=True)
    refs = [row.ref for row in result.rows]
    assert flooded.answers[name] in refs[:2] and len(refs) == len(set(refs)) <= 2
    others = [len(row.candidate.folded) for row in result.rows if row.ref != flooded.answers[name]]
    # Where the flood is far from as good as the answer, none of it follows.
    assert not others or 30 < others[0] < flooded.size and result.trace["stages"]["folded"] == others[0]


def test_the_newest_stands_for_its_equals_and_the_others_are_named(flooded):
    result = flooded.recall("orders database backup finished", agent="line", trace=True)
    (flood,) = [row for row in result.rows if row.candidate.folded]
    assert len(flood.candidate.folded) == flooded.size - 1
    assert int(flood.ref[4:]) > max(row_id for _, row_id in flood.candidate.folded)
    told = {row["ref"]: row for row in result.trace["rows"]}
    assert told[flood.ref]["alike"] == flooded.size - 1
    assert {row["folded_into"] for row in told.values() if row["fate"] == "folded"} == {flood.ref}
    why = flooded.recall("orders database backup finished", agent="line", why_not=flood.candidate.folded[0])
    assert why.trace["why_not"]["stage"] == "folded" and why.trace["why_not"]["into"] == flood.ref


def test_the_row_that_the_question_names_stands_for_the_others(flooded):
    rows = flooded.recall("night check 17 of the orders queue", agent="note").rows
    assert rows[0].text.endswith("queue at 17 percent, nobody paged")


def test_nothing_is_folded_when_deep_or_when_it_is_switched_off_or_in_other_modes(flooded):
    question = "orders database backup finished"
    assert len(flooded.recall(question, agent="line", deep=True).rows) == 10
    flooded.settings, before = flooded.settings.with_overrides({"fold_alike": False}), flooded.settings
    assert len(flooded.recall(question, agent="line").rows) == 10
    flooded.settings = before
    assert not any(row.candidate.folded for row in flooded.recall(question, mode="rrf", agent="line").rows)


def test_rows_of_different_sources_stand_apart(flooded):
    if flooded.size > 40:
        return
    for source in ("a", "b"):
        flooded.add(*(f"disk of the mail host is {n} percent full" for n in range(6)), agent=source)
    both = [f"disk of the mail host is {n} percent full, says cron" for n in range(12)]
    flooded.add(*both[:6], agent="voices", source='{"id": "one"}')
    flooded.add(*both[6:], agent="voices", source='{"id": "two"}')
    assert [len(row.candidate.folded) for row in flooded.recall("mail host disk full", agent="voices").rows] == [5, 5]
    assert [len(row.candidate.folded) for row in flooded.recall("mail host disk full", agent="a").rows] == [5]


APART = [
    ["our office is on Canal Street", "our office moved to Mill Lane", "our office is on Canal Street again"],
    [f"the api listens on port {n}" for n in (8080, 9090, 7070)],  # what was and what is
    [
        f"{name}'s phone number is 555 {n} and the office is in Bern"
        for n, name in enumerate("Ada Ben Cora Dan".split())
    ],
    [f"rack {rack} had its fan replaced on day {n}" for n, rack in enumerate("alpha beta gamma delta".split())],
    [f"note {n}" for n in range(9)],
    [f"invoice {n} paid" for n in range(9)],
    [f"types for {name}: annotations made in 2026" for name in "s3 ec2 wafv2 sesv2 route53".split()],
    ["Wow, what did you get?", "Wow, that is great!", "Thanks, that is great!", "Thanks, what did you get?"],
    [f"deployed {word} to production" for word in ("3fa9c1e", "parser", "index", "client")],
]


@pytest.mark.parametrize("texts", APART, ids=lambda texts: texts[0][:20])
def test_texts_that_differ_by_a_word_or_are_short_or_few_stand_apart(texts):
    assert groups(dict(enumerate(texts))) == []


@pytest.mark.parametrize("name", FLOODS)
def test_texts_that_differ_by_numbers_days_and_hashes_are_alike(name):
    texts = dict(enumerate(map(FLOODS[name], range(LEAST_ROWS))))
    assert groups(texts) == [list(range(LEAST_ROWS))]
    assert groups(dict(list(texts.items())[1:])) == []
