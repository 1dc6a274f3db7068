"""Who goes first: a question before a row being stored, both before the background, which starves all the same never.

Contract: embedding.waits.
"""

from __future__ import annotations

import threading
import time

import pytest

from cpersona_daemon.embedding.turns import (
    BACKGROUND,
    LINGER_SECONDS,
    PATIENCE_SECONDS,
    QUESTION,
    STORED,
    Aside,
    Stopped,
    Turns,
    at_once,
)

LONG = 30.0


def piece(turns: Turns, work):
    return Aside(turns, lambda: None).piece("some", work)


def in_thread(work):
    """Run work in a thread; returns the thread and a list that gets its result."""
    results: list = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


def test_with_nobody_there_a_piece_is_done_at_once():
    assert piece(Turns(), lambda stop: "done") == "done" and at_once("some", lambda stop: stop) is None


@pytest.mark.parametrize("level", [QUESTION, STORED])
def test_the_background_waits_for_every_claim_and_a_moment_longer(level):
    turns = Turns()
    first, second = turns.claim(level), turns.claim(level)
    thread, results = in_thread(lambda: piece(turns, lambda stop: time.monotonic()))
    first.give_up()
    assert not turns.wait(BACKGROUND, 0.0)
    free = time.monotonic()
    second.give_up()
    thread.join()
    assert results[0] >= free + LINGER_SECONDS


def test_a_row_being_stored_waits_for_questions_alone():
    turns = Turns()
    with turns.claim(STORED):
        assert turns.wait(STORED, 0.0)
        with turns.claim(QUESTION):
            assert not turns.wait(STORED, 0.0)


def test_a_claim_given_up_for_a_while_lets_the_others_go_on():
    turns = Turns()
    with turns.claim(QUESTION) as claim:
        claim.give_up()
        assert turns.wait(BACKGROUND, LONG)
        claim.take()
        assert not turns.wait(BACKGROUND, 0.0)
    assert turns.wait(BACKGROUND, LONG)


def test_a_piece_that_can_be_stopped_is_stopped_when_somebody_comes_and_done_again_afterwards():
    turns, told, begun = Turns(), threading.Event(), threading.Event()
    tries = []

    def work(stop):
        tries.append(1)
        if len(tries) > 1:
            return len(tries)
        stop.then(told.set)
        begun.set()
        assert told.wait(LONG)
        raise Stopped

    thread, results = in_thread(lambda: piece(turns, work))
    assert begun.wait(LONG)
    with turns.claim(QUESTION):
        assert told.wait(LONG)
    thread.join()
    assert results == [2]


def test_a_piece_that_is_told_late_is_told_all_the_same():
    turns, told = Turns(), []
    with turns.stoppable() as stop:
        turns.claim(QUESTION)
        stop.then(lambda: told.append(True))
    assert told == [True]


def test_a_stream_of_questions_without_a_pause_does_not_starve_the_background():
    turns, over = Turns(), threading.Event()

    def asks():
        claim = turns.claim(QUESTION)
        while not over.is_set():  # the next one comes before the last one goes
            following = turns.claim(QUESTION)
            claim.give_up()
            claim = following
        claim.give_up()

    threading.Thread(target=asks).start()
    try:
        background = Aside(turns, lambda: None)
        assert background.piece("short", lambda stop: stop) is None  # after a second: nobody knew how long it takes
        started = time.monotonic()
        assert [background.piece("short", lambda stop: stop) for _ in range(20)] == [None] * 20
        assert time.monotonic() - started < PATIENCE_SECONDS
    finally:
        over.set()


def test_closing_ends_every_wait():
    turns = Turns()
    turns.claim(QUESTION)
    thread, results = in_thread(lambda: turns.wait(BACKGROUND, LONG))
    turns.close()
    thread.join()
    assert results == [True]
