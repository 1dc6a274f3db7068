"""A tool's call put to the daemon: a connection of its own for each, and nothing kept between them.

A connection that lasted would keep the daemon from leaving when it is idle and from being replaced after an upgrade.
Everything a call may need is imported here, before the first: a server lives long, and the files under it may be
those of another version by then.

Contract: tools.bridge, tools.fixed.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cpersona_daemon.shared import fields, methods

from .. import exits
from ..terminal.failure import failure_line
from ..wire import client, launch, presence
from .tools import Offer

if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings

_LOOK_SECONDS = 0.1  # how soon a call that waits sees that it was cancelled
_OWN_WORDS = ("refused", "invalid_params")  # codes whose hint is a command line; a model has the tool's schema
_LOADED = (launch, presence)


class Outcome(NamedTuple):
    """What came of a call: the daemon's answer, and the one line that says why it failed, '' where it did not."""

    response: dict[str, Any] | None
    failure: str = ""


class Bridge:
    """Puts calls to the daemon of these settings; may be used from many threads.

    ``create``: whether a database that is not there is made. ``session_key``: whose pause the calls heed, '' of none.
    """

    def __init__(self, settings: Settings, create: bool, session_key: str = "") -> None:
        self._settings, self._create, self._session_key = settings, create, session_key
        self._connected = False

    def call(self, offer: Offer, arguments: Mapping[str, Any], check: Callable[[], None]) -> Outcome:
        """Answer a tool's call. ``check`` raises what ends it; it is asked while an answer is waited for."""
        # Many clients send null for what they leave out.
        given = {name: value for name, value in arguments.items() if value is not None}
        why = _not_taken(offer, given)
        if why:
            return Outcome(None, f"{offer.name}: {why}")
        params = {**offer.meant, **given, **offer.fixed}
        if self._session_key and methods.of(offer.name).own_session:
            params.setdefault("session_key", self._session_key)
        try:
            response, code = self._asked(offer.name, params, check)
        except client.CallFailed as error:
            hint = "" if error.code in _OWN_WORDS else f"; {error.hint}"
            return Outcome(None, f"{offer.name}: {error.message}{hint}")
        if exits.status_of(response, code, offer.name) in (fields.EXIT_OK, fields.EXIT_CRITICAL):
            return Outcome(response)
        return Outcome(response, failure_line(offer.name, response, "refused" if code in _OWN_WORDS else code, ""))

    def _asked(self, method: str, params: dict[str, Any], check: Callable[[], None]) -> tuple[dict, str | None]:
        def wait(descriptor: int, seconds: float) -> bool:
            deadline, poller = time.monotonic() + seconds, select.poll()
            poller.register(descriptor, select.POLLIN)
            while (left := deadline - time.monotonic()) > 0:
                check()
                if poller.poll(min(left, _LOOK_SECONDS) * 1000):
                    return True
            return False

        with client.connect(self._settings, create=self._create, again=self._connected, wait=wait) as connection:
            self._connected = True
            return connection.call(method, params)


def _not_taken(offer: Offer, given: Mapping[str, Any]) -> str:
    """Return why a call is not put to the daemon, '' where it is: it names what this tool does not take here."""
    for name in given:
        if name in offer.fixed:
            if given[name] != offer.fixed[name]:
                return f"{name} is fixed to {offer.fixed[name]!r} here; leave it out"
        elif name not in offer.takes:
            return f"it takes no {name!r} here; it takes {', '.join(offer.input_schema['properties'])}"
    return ""
