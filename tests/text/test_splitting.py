"""Long texts are cut into passages of whole sentences. Contract: passages.split."""

from __future__ import annotations

import random

import pytest

from cpersona_daemon.shared.fields import LONG_BYTES
from cpersona_daemon.text.passages import PASSAGE_BYTES, is_long, split

SENTENCE = "The keeper wrote down the height of the tide once more. "
TEXTS = {
    "paragraphs": "\n\n".join(SENTENCE * n for n in (3, 9, 14, 2, 1, 7, 20)),
    "one paragraph": SENTENCE * 60,
    "no end of a sentence": "tide " * 900,
    "no blank": "x" * 5_000,
    "Chinese": "潮汐表每天早上都要重新写一遍。" * 90,
    "lines": "\n".join(f"- item {n} of the list" for n in range(200)),
    "headings": "\n\n".join(f"## Day {n}\n\n{SENTENCE * 5}" for n in range(12)),
    "lone surrogates": "\ud800 tide " * 400,
    "blanks around": " \n" * 800 + SENTENCE * 40 + "\n " * 700,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_every_character_of_a_long_text_stands_in_a_passage_that_is_short(text):
    spans = split(text)
    held = set().union(*(range(*span) for span in spans))
    assert {at for at, char in enumerate(text) if not char.isspace()} <= held
    assert spans == sorted(spans) and len({span.end for span in spans}) == len(spans)
    for start, end in spans:
        assert text[start:end].strip() == text[start:end]
        assert len("".join(text[start:end].split()).encode("utf-8", "replace")) < 2 * PASSAGE_BYTES


def test_a_passage_begins_with_the_last_sentence_of_the_one_before():
    text = TEXTS["one paragraph"]
    spans = split(text)
    overlaps = {text[after.start : before.end] for before, after in zip(spans, spans[1:], strict=False)}
    assert overlaps == {SENTENCE.strip()}


def test_a_passage_ends_with_its_paragraph_where_it_is_full_by_then():
    first, second = SENTENCE * 9, SENTENCE.upper() * 30
    assert split(f"{first}\n\n{second}")[0].end == len(first.rstrip())


@pytest.mark.parametrize("text", ["", " " * 9_000, "a" * LONG_BYTES, "潮" * (LONG_BYTES // 3)])
def test_what_a_model_takes_in_at_once_has_no_passages(text):
    assert split(text) == []


@pytest.mark.parametrize("text", ["a" * (LONG_BYTES + 1), "潮" * (LONG_BYTES // 3 + 1)])
def test_length_is_counted_in_bytes(text):
    assert is_long(text) and split(text)


def test_any_text_is_cut_the_same_way_whatever_it_holds():
    draw = random.Random(5)
    for _ in range(60):
        text = "".join(
            draw.choices("ab .!?\n\t\u3002é潮", weights=[9, 9, 6, 1, 1, 1, 2, 1, 1, 2, 2], k=draw.randint(0, 4_000))
        )
        held = set().union(*(range(*span) for span in split(text)))
        assert not is_long(text) or {at for at, char in enumerate(text) if not char.isspace()} <= held
