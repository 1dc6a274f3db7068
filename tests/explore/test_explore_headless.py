"""The screen, driven without a terminal before a real daemon.

Contract: explore.asked, explore.order, explore.keys, explore.goes, explore.account.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager

import pytest
from textual.widgets import Input, Static

from cpersona_cli.explore import app, widgets
from cpersona_cli.explore.asking import Asker
from cpersona_cli.explore.state import Filters, Setup
from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load


class Screen:
    """What a person sees and does."""

    def __init__(self, explore, pilot):
        self.app, self.pilot, self.press = explore, pilot, pilot.press

    async def until(self, check):
        """Wait until something is to be seen; what is there instead is the failure."""
        for _ in range(1000):
            if check():
                return
            await self.pilot.pause(0.01)
        raise AssertionError((self.refs(), self.refs("right"), self.heading(), self.said(), self.facts()))

    async def type(self, text):
        await self.press(*("space" if c == " " else c for c in text))

    def refs(self, side="left"):
        return [row.ref for row in self.app.part(f"#{side}", widgets.Rows).rows]

    def shown(self, selector):
        return str(self.app.part(selector, Static).content)

    def heading(self):
        return self.shown("#own .heading")

    def said(self):
        return self.shown("#said")

    def facts(self):
        return self.shown("#facts")

    def text(self):
        return self.app.part("#text", Static).content


@pytest.fixture
def screen(shared_daemon, module_home, refs):
    """Open the screen: ``async with screen("question") as seen``."""

    @asynccontextmanager
    async def opened(question="", size=(80, 24), **more):
        settings = load(module_home)
        setup = Setup(question, Filters("default"), settings.recall_mode, 20, False, lambda method, params: params)
        setup = setup._replace(**more)

        def connect():
            return client.connect(settings, module_home, create=False, again=True)

        explore = app.Explore(setup, lambda deliver: Asker(connect(), connect, deliver, app.ORDER))
        async with explore.run_test(size=size) as pilot:
            yield Screen(explore, pilot)

    return opened


def test_rows_follow_each_keystroke_and_the_best_is_first(screen, refs):
    async def look():
        async with screen() as seen:
            await seen.until(lambda: len(seen.refs()) == 7)
            await seen.type("deploys branch")
            await seen.until(lambda: seen.refs()[:1] == [refs[0]])
            assert seen.heading().startswith("best first, nearest the question · ")
            await seen.until(lambda: "blend" in seen.facts() and "gate asked" in seen.facts())
            assert "mem:" in seen.facts() and "similarity" in seen.facts() and "penalty" in seen.facts()
            text = seen.text()
            assert text.plain.startswith("Deploys run from the release branch")
            marked = {text.plain[span.start : span.end] for span in text.spans if "underline" in str(span.style)}
            assert marked == {"Deploys", "branch"}
            await seen.press("ctrl+u")
            await seen.type("E1042")
            await seen.until(lambda: seen.refs() == [refs[1]])
            await seen.press("backspace", "x")
            await seen.until(lambda: "no row holds" in seen.heading() and not seen.refs())

    asyncio.run(look())


def test_why_not_shows_what_was_not_returned_and_says_why(screen, refs):
    async def look():
        async with screen("deploys release branch audit", limit=1) as seen:
            await seen.until(lambda: seen.refs() == [refs[0]])
            await seen.press("enter", "w")
            await seen.until(lambda: refs[3] in seen.refs())
            await seen.press("down")
            await seen.until(lambda: seen.shown("#why").startswith(f"why not {refs[3]}: "))
            assert seen.refs()[0] == refs[0]
            await seen.press("w")
            await seen.until(lambda: seen.refs() == [refs[0]])

    asyncio.run(look())


def test_the_same_question_stands_beside_under_another_mode_and_precision(screen, refs):
    async def look():
        async with screen("deploys", size=(120, 40)) as seen:
            await seen.until(lambda: len(seen.refs()) == 2)
            await seen.press("enter", "m")
            await seen.until(lambda: seen.refs("right") == [refs[3]])  # rrf asks more of what only words found
            assert seen.shown("#beside .heading").startswith("rrf · ") and seen.heading().startswith("blend · ")
            await seen.press("right")
            await seen.until(lambda: "words 1" in seen.facts())  # what each list gave
            await seen.press("p")
            await seen.until(lambda: seen.shown("#beside .heading").startswith("blend, strict · "))
            await seen.press("p", "p", "p")
            await seen.until(lambda: seen.heading().startswith("best first"))

    asyncio.run(look())


def test_filters_hold_for_what_is_asked_from_then_on(screen):
    async def look():
        async with screen("site") as seen:
            await seen.until(lambda: len(seen.refs()) == 4)
            await seen.press("ctrl+t")
            await seen.until(lambda: isinstance(seen.app.screen, widgets.Form))
            form = seen.app.screen
            form.query_one("#since", Input).value = "never"
            form.query_one("#project", Input).value = "site"
            form.query_one("#channel", Input).value = "ops"
            await seen.press("enter")
            await seen.until(lambda: "is not a time" in str(form.query_one("#wrong", Static).content))
            form.query_one("#since", Input).value = "1h"
            await seen.press("enter")
            await seen.until(lambda: len(seen.refs()) == 3)  # those of the project, and of the global pool
            assert "project site · channel ops · since 1h" in seen.shown("#where")

    asyncio.run(look())


def test_a_row_is_locked_copied_saved_as_a_canary_and_deleted_once_that_is_meant(screen, shared_daemon):
    ask = shared_daemon.call
    ref = f"mem:{ask('store', {'agent_id': 'default', 'content': 'kumquats are for the taking'})[0]['id']}"

    async def look():
        async with screen("kumquats") as seen:
            await seen.until(lambda: seen.refs() == [ref])
            await seen.press("enter", "l")
            await seen.until(lambda: "is locked" in seen.said() and "locked" in seen.facts())
            await seen.press("d")
            await seen.until(lambda: "l unlocks it" in seen.said())
            await seen.press("y")
            assert seen.app.clipboard == ref
            await seen.press("Y")
            await seen.until(lambda: seen.app.clipboard == "kumquats are for the taking")
            await seen.press("a")
            await seen.until(lambda: "comes back at rank 1" in seen.said())
            await seen.press("l")
            await seen.until(lambda: "is unlocked" in seen.said() and " locked" not in seen.facts())
            for key in ("n", "y"):
                assert seen.refs() == [ref]
                await seen.press("d")
                await seen.until(lambda: isinstance(seen.app.screen, widgets.Sure))
                await seen.press(key)
            await seen.until(lambda: seen.refs() == [] and "is deleted" in seen.said())

    asyncio.run(look())
    assert ask("get_contents", {"agent_id": "default", "refs": [ref]})[0]["missing"] == [ref]


def test_keys_that_arrive_at_once_are_each_taken_where_they_were_meant(screen, refs):
    async def look():
        async with screen("deploys") as seen:
            await seen.until(lambda: len(seen.refs()) == 2)
            await seen.press("enter")
            # What a slow line brings in one piece: the letters behind / are the question's.
            for key in ("down", "slash", "l", "d"):
                seen.app.post_message(_key(key))
            await seen.until(lambda: seen.app.part("#question", Input).value == "deploysld")
            assert not isinstance(seen.app.screen, widgets.Sure) and seen.said() == ""

    asyncio.run(look())


def _key(name):
    from textual.events import Key

    return Key(name, {"slash": "/"}.get(name, name if len(name) == 1 else None))


def test_a_daemon_that_is_started_anew_or_fails_is_a_line_and_the_screen_goes_on(
    screen, module_home, refs, monkeypatch
):
    monkeypatch.setattr(app, "_AGAIN_SECONDS", 0.2)
    settings = load(module_home)

    async def look():
        async with screen("deploys") as seen:
            await seen.until(lambda: len(seen.refs()) == 2)
            assert await asyncio.to_thread(control.stop_daemon, settings, 15, module_home)
            await seen.type(" branch")
            await seen.until(lambda: "the daemon was started anew" in seen.said() and seen.refs()[:1] == [refs[0]])
            os.rename(module_home["CPERSONA_DB_PATH"], module_home["CPERSONA_DB_PATH"] + ".away")
            assert await asyncio.to_thread(control.stop_daemon, settings, 15, module_home)
            os.mkdir(module_home["CPERSONA_DB_PATH"])
            await seen.type(" audit")
            await seen.until(lambda: "asked again in a moment" in seen.said())
            assert seen.refs()[:1] == [refs[0]]  # what was there stays
            os.rmdir(module_home["CPERSONA_DB_PATH"])
            os.rename(module_home["CPERSONA_DB_PATH"] + ".away", module_home["CPERSONA_DB_PATH"])
            await seen.until(lambda: "again in a moment" not in seen.said() and seen.refs()[:1] == [refs[0]])

    asyncio.run(look())


def test_any_size_is_drawn_and_help_names_every_key(screen):
    async def look():
        async with screen("deploys") as seen:
            await seen.until(lambda: len(seen.refs()) == 2)
            for size in ((120, 40), (30, 8), (80, 24)):
                await seen.pilot.resize_terminal(*size)
                await seen.pilot.pause()
                assert seen.app.part("#question", Input).size.height == 1
                assert seen.app.part("#keys", Static).region.bottom == size[1]
            await seen.press("f1")
            await seen.until(lambda: isinstance(seen.app.screen, widgets.Help))
            await seen.press("q")
            await seen.until(lambda: not isinstance(seen.app.screen, widgets.Help))

    asyncio.run(look())
