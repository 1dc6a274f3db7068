"""The client's side of a daemon: connect, start one where there is none, ask, and never wait for ever.

The way to a daemon that runs is the hot path of every command, so nothing heavy is imported at the
top: the C socket module, a small codec, and the daemon's tables of fields, settings and places.

Contract: wire.requests, daemon.starts.
"""

import os
import time

from cpersona_daemon import __version__
from cpersona_daemon.shared import fields, methods
from cpersona_daemon.shared.paths import Places, places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.shared.settings_table import BY_NAME, DAEMON, RETRIEVAL

from .dial import POLL_SECONDS, Absent, CallFailed, Nobody, reach
from .stream import Gone, Stream, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Callable, Mapping

    from cpersona_daemon.shared.settings import Settings

    from .ssh import Way
    from .stream import Wait

START_SECONDS = 30.0  # from the first attempt to a daemon that answers
ANSWER_SLACK_SECONDS = 5.0  # beyond a deadline, for the daemon's own "timed out" to arrive
SILENCE_SECONDS = 60.0  # without a deadline: a daemon that is alive sends a heartbeat every few seconds
ATTEMPTS = 3  # how often one request is put to a daemon that leaves meanwhile


def _patience(deadline_ms: int | None) -> float:
    """Return for how many seconds an answer is waited for, counted from the last that the daemon was heard."""
    return SILENCE_SECONDS if deadline_ms is None else deadline_ms / 1000 + ANSWER_SLACK_SECONDS


def connect(
    settings: "Settings | None" = None,
    environ: "Mapping[str, str] | None" = None,
    start: bool = True,
    create: bool = True,
    again: bool = False,
    wait: "Wait | None" = None,
) -> "Connection":
    """Return a Connection to the daemon of the database that the settings name, starting it if there is none.

    With ``start`` false a missing daemon raises CallFailed("unreachable"), with ``create`` false a missing database
    CallFailed("no_database"). Every other failure is a CallFailed too: a daemon that is alive but silent is
    "timed_out".

    ``again``: this process was connected before. It says no differences twice, and as it may be older by now than what
    is installed, it leaves a daemon of another version in its place. ``wait``: who waits otherwise, from the hello on.
    """
    environ = os.environ if environ is None else environ
    settings = load(environ) if settings is None else settings
    if settings.host:
        from .ssh import Way

        # As one that was connected before: the settings of this machine's daemon say nothing about that one's, and only
        # the cpersona there replaces it.
        way = Way(settings)
        return Connection(settings, Places("", way.host, ""), environ, start, create, True, wait, way)
    return Connection(settings, places(settings, environ), environ, start, create, again, wait)


class Connection:
    """One connection for one thread; requests may be pipelined. ``hello`` is what the daemon said about itself.

    A connection that breaks is made anew, and what was under way is asked again: reads as they are,
    writes under the idempotency key they already carry. One on which the daemon fell silent or spoke
    something else is given up: every later use raises the failure that ended it.
    """

    def __init__(
        self,
        settings: "Settings",
        where: "Places",
        environ: "Mapping[str, str]",
        start: bool,
        create: bool = True,
        again: bool = False,
        wait: "Wait | None" = None,
        way: "Way | None" = None,
    ) -> None:
        self.settings, self.places, self._environ, self._start, self._create = settings, where, environ, start, create
        self._way = way  # to another machine
        self.wait = wait  # who waits for answers otherwise: see ``interrupts``
        self._stream: Stream | None = None
        self._heard = 0.0  # when the daemon last said anything
        self._ids = 0
        self._pending: dict[int, _Pending] = {}  # id -> _Pending, in the order they were sent
        self._lasting = again
        self._named = again  # settings that differ are named once
        self._overrides: dict[str, object] = {}
        self._failure: CallFailed | None = None  # the CallFailed that ended this connection for good
        self.hello: dict = {}
        self._open(start)

    # -- asking

    def call(
        self,
        method: str,
        params: dict,
        deadline_ms: int | None = None,
        overrides: dict | None = None,
        progress: "Callable[[dict], None] | None" = None,
        key: str | None = None,
    ) -> tuple[dict, str | None]:
        """Ask one thing and wait for its answer: (response map, error code or None). Raises CallFailed."""
        asked = self.send(method, params, deadline_ms, overrides, progress, key)
        id, response, code = self.receive()
        if id != asked:
            raise CallFailed("protocol", f"the daemon answered request {id} where {asked} was asked")
        return response, code

    def send(
        self,
        method: str,
        params: dict,
        deadline_ms: int | None = None,
        overrides: dict | None = None,
        progress: "Callable[[dict], None] | None" = None,
        key: str | None = None,
    ) -> int:
        """Send one request without waiting and return its id; ``receive`` brings the answers.

        ``overrides`` are retrieval settings for this request alone. ``progress(map)`` is called for each
        progress frame. ``key`` is the idempotency key of a write, made here when not given.
        """
        if self._failure is not None:
            raise self._failure
        pending = self._prepared(method, params, deadline_ms, overrides, progress, key)
        frame = self._frame(pending)
        self._pending[pending.id] = pending
        try:
            self._write(frame, pending.seconds)
        except Gone:
            self._again()
        return pending.id

    def _prepared(
        self,
        method: str,
        params: dict,
        deadline_ms: int | None,
        overrides: dict | None,
        progress: "Callable[[dict], None] | None",
        key: str | None,
    ) -> "_Pending":
        """Return a request with what its method's row adds: a key, progress, a deadline, whether it is asked again."""
        row = methods.of(method)
        self._ids += 1
        request: dict = {"id": self._ids, "method": method, "params": params}
        if deadline_ms is not None:
            request["deadline_ms"] = deadline_ms
        if key or row.keyed:
            request["idempotency_key"] = key or os.urandom(16).hex()
        if progress is not None or not row.limited:
            request["progress"] = True
        seconds = _patience(row.deadline_ms if deadline_ms is None else deadline_ms)
        return _Pending(request, overrides, progress, row.repeatable, seconds)

    def receive(self) -> tuple[int, dict, str | None]:
        """Return the next answer, (id, response, code), in the order the daemon gives them. Raises CallFailed."""
        if self._failure is not None:
            raise self._failure
        if not self._pending:
            raise CallFailed("internal", "nothing was asked")
        while True:
            frame = self._next()
            pending = self._pending.get(frame.get("id", 0))
            if "progress" in frame:
                if pending is not None:
                    pending.reached(frame["progress"])
            elif frame.get("id") is None:
                self.close()
                raise CallFailed(frame.get("code") or "protocol", error_text(frame))
            elif pending is not None and not pending.waits_on(frame.get("code")):
                del self._pending[pending.id]
                return pending.id, frame["response"], frame.get("code")

    def _next(self) -> dict:
        """Return the next frame; where the daemon leaves meanwhile, whoever serves next is asked again."""
        while True:
            oldest = next(iter(self._pending.values()))
            try:
                frame = self._read(max(oldest.since, self._heard) + oldest.seconds, self.wait)
            except Gone:
                self._again()
                continue
            self._heard = time.monotonic()
            return frame

    @property
    def waiting(self) -> int:
        """How many answers are still to come."""
        return len(self._pending)

    def close(self) -> None:
        """Close the connection; answers still to come are given up."""
        self._pending.clear()
        self._drop()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- connecting

    def _open(self, start: bool) -> None:
        """Connect and greet; start a daemon where there is none, and replace an idle one of another version."""
        deadline = time.monotonic() + START_SECONDS
        replaced = False
        while True:
            self._stream = self._dial(start, deadline)
            try:
                self._greet()
            except Gone:
                self._drop()
                if time.monotonic() > deadline:
                    raise CallFailed("unreachable", "the daemon leaves as soon as it is spoken to") from None
                time.sleep(POLL_SECONDS)
                continue
            if self._same_version() or replaced or self._lasting or not start or not self._replace():
                break
            replaced = True
        if self._failure is not None:
            raise self._failure
        if self.hello["protocol"] != fields.PROTOCOL and start:
            self._drop()
            spoken = f"the daemon speaks protocol {self.hello['protocol']}, this client {fields.PROTOCOL}"
            if self._lasting:
                raise CallFailed("protocol", spoken, "start this program anew, another cpersona is installed")
            raise CallFailed("protocol", f"{spoken}, and it is at work")
        self._compare_settings()

    def _dial(self, start: bool, deadline: float) -> Stream:
        if self._way is None:
            return Stream(self._reached(start, deadline), self.places.socket)
        stream, self.places.db = self._way.dial(start, self._create)
        return stream

    def _reached(self, start: bool, deadline: float) -> "Socket":
        """Return a socket connected to the daemon; with ``start`` it is started where none runs. Raises CallFailed."""
        try:
            return reach(self.places, self.settings, deadline)
        except Absent:
            if not start:
                raise Nobody("unreachable", f"no daemon serves {self.places.db}") from None
        from .launch import nothing_is_stored, start_daemon
        from .presence import owner_elsewhere

        owner = owner_elsewhere(self.places)
        if owner is not None:
            raise CallFailed(
                "unreachable",
                f"no daemon answers for {self.places.db}, which belongs to the user {owner}",
                "have it started (`systemctl start cpersonad`), and name its socket with CPERSONA_SOCKET",
            )
        if not self._create and nothing_is_stored(self.places):
            raise CallFailed("no_database", f"there is no database at {self.places.db}")
        return start_daemon(self.places, self.settings, self._environ, deadline)

    def _greet(self) -> None:
        self._write(
            packed(
                {
                    "protocol": fields.PROTOCOL,
                    "version": __version__,
                    "capabilities": list(fields.CAPABILITIES),
                    "db": self.places.db,
                    "settings_digest": self.settings.digest(),
                    "token": self.settings.token,
                }
            ),
            fields.HELLO_SECONDS,
        )
        hello = self._read(time.monotonic() + fields.HELLO_SECONDS, self.wait)
        if "response" in hello:
            code = hello.get("code") or "protocol"
            if code == "shutting_down":
                raise Gone
            self._drop()
            raise CallFailed(code, error_text(hello))
        if not isinstance(hello.get("protocol"), int):
            self._drop()
            raise CallFailed("protocol", f"what answers at {self.places.socket} is no cpersona daemon")
        if hello.get("db") != self.places.db:
            if not os.path.exists(str(hello.get("db"))):
                raise Gone  # its database was moved here with its socket: it leaves as soon as it notices
            self._drop()
            raise CallFailed(
                "settings", f"the daemon at {self.places.socket} serves {hello.get('db')}, not {self.places.db}"
            )
        self.hello = hello

    def _same_version(self) -> bool:
        return self.hello["protocol"] == fields.PROTOCOL and self.hello.get("version") == __version__

    def _replace(self) -> bool:
        """Have a daemon of another version leave; false, said once, when it is at work or not ours to stop."""
        if not self.hello.get("busy", True):
            try:
                _, code = self.call("daemon_stop", {}, deadline_ms=5000)
            except CallFailed as error:
                code = error.code if error.code != "unreachable" else None
            if code is None:
                from .presence import wait_until_gone

                self._drop()
                wait_until_gone(self.places, time.monotonic() + START_SECONDS, self.hello.get("pid"))
                return True
        if not self._named:
            _say(
                f"the running daemon is version {self.hello.get('version')}, this is {__version__}; `cpersona daemon "
                "restart` brings them together"
            )
        return False

    def _compare_settings(self) -> None:
        """Work out what of our own settings must travel with requests, and name once what cannot."""
        self._overrides = {}
        if self.hello.get("settings_digest") in ("", self.settings.digest()):
            return  # the same, or not for us to know
        theirs = self.hello.get("settings") or {}
        for name, value in self.settings.carried(RETRIEVAL).items():
            # What the daemon has of its own accord may hang on the mode, which is the request's.
            if (name not in theirs and BY_NAME[name].by_mode) or theirs.get(name, BY_NAME[name].default) != value:
                self._overrides[name] = value
        if self._named:
            return
        self._named = True
        for name, value in self.settings.carried(DAEMON).items():
            in_use = theirs.get(name, BY_NAME[name].default)
            if BY_NAME[name].kind == "path" and value:
                value = os.path.abspath(os.path.expanduser(value))
            value = BY_NAME[name].shown(value)
            if in_use != value:
                _say(
                    f"{BY_NAME[name].variable}={value} is not what the running daemon uses ({in_use}); `cpersona "
                    "daemon restart` applies it"
                )

    def _again(self) -> None:
        """Connect anew and ask again what was under way, each under the key it had."""
        self._drop()
        for pending in list(self._pending.values()):
            pending.attempts += 1
            if not pending.repeatable or pending.attempts >= ATTEMPTS:
                self._pending.clear()
                raise CallFailed(
                    "unreachable",
                    f"the daemon went away during {pending.method}; whether it was done is not known",
                    "read `cpersona daemon logs`, and look before you run it again",
                )
        try:
            self._open(self._start)
        except CallFailed as error:
            raise self._given_up(error) from None
        for pending in list(self._pending.values()):
            pending.since = time.monotonic()
            try:
                self._write(self._frame(pending), pending.seconds)
            except Gone:
                self._again()
                return

    def _frame(self, pending: "_Pending") -> bytes:
        request = dict(pending.request)
        overrides = dict(self._overrides) if methods.of(request["method"]).tuned else {}
        overrides.update(pending.overrides or {})
        if overrides:
            request["overrides"] = overrides
        try:
            frame = packed(request)
        except (ValueError, OverflowError, TypeError, RecursionError) as error:
            raise CallFailed("invalid_params", f"the parameters cannot be sent: {error}") from None
        if len(frame) - fields.LENGTH_BYTES > fields.MAX_FRAME_BYTES:
            raise CallFailed("invalid_params", f"the request is above the limit of {fields.MAX_FRAME_BYTES} bytes")
        return frame

    def _write(self, frame: bytes, seconds: float) -> None:
        """Send a frame. Raises Gone, CallFailed."""
        if self._stream is None:
            raise Gone
        try:
            self._stream.write(frame, seconds)
        except CallFailed as error:
            raise self._given_up(error) from None

    def _read(self, deadline: float, wait: "Wait | None" = None) -> dict:
        """Return the next frame. Raises Gone, CallFailed, and what ``wait`` raises, which loses nothing."""
        if self._stream is None:
            raise Gone
        try:
            return self._stream.read(deadline, wait)
        except CallFailed as error:
            raise self._given_up(error) from None

    def _given_up(self, error: "CallFailed") -> "CallFailed":
        """End this connection for good and return ``error``: an answer that comes late must never be taken for
        another's.
        """
        self._failure = self._failure or error
        self.close()
        if self._way is not None:
            self._way.end()
        return error

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class _Pending:
    """A request under way, with what it takes to ask it again."""

    __slots__ = ("request", "overrides", "progress", "repeatable", "seconds", "attempts", "since")

    def __init__(
        self,
        request: dict,
        overrides: dict | None,
        progress: "Callable[[dict], None] | None",
        repeatable: bool,
        seconds: float,
    ) -> None:
        self.request, self.overrides, self.progress = request, overrides, progress
        self.repeatable, self.seconds = repeatable, seconds
        self.attempts = 0
        self.since = time.monotonic()

    @property
    def id(self) -> int:
        return self.request["id"]

    @property
    def method(self) -> str:
        return self.request["method"]

    def reached(self, progress: dict) -> None:
        """Pass on how far the work has come; an empty map is a sign of life."""
        if self.progress is not None and progress:
            self.progress(progress)

    def waits_on(self, code: str | None) -> bool:
        """Tell whether an answer decides nothing: once the stream ends, whoever serves next is asked again."""
        return code == "shutting_down" and self.repeatable and self.attempts < ATTEMPTS


def error_text(frame: dict) -> str:
    response = frame.get("response")
    text = response.get("error") if isinstance(response, dict) else None
    return text if isinstance(text, str) else "the daemon refused without a reason"


def _say(text: str) -> None:
    from ..terminal.output import to_stderr

    to_stderr(f"cpersona: {text}")
