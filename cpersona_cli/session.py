"""One run of one command: its settings, its connection, its output."""

from cpersona_daemon.shared import fields, methods

from . import exits
from .terminal.output import Output

TYPE_CHECKING = False  # as typing has it, which takes longer to load than a command takes to run
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from cpersona_daemon.shared.settings import Settings

    from .declare.spec import Command
    from .wire.client import Connection

    # An option, the parameter it becomes, and what is made of its value (None: nothing, it travels as it is).
    Rows = Iterable[tuple[str, str, Callable[["Session", Any], Any] | None]]

_OPTION_OF = {"db": "db_path", "host": "host", "agent": "agent", "project": "project", "channel": "channel"}
_NAMED = 5  # rows of an answer that are named one by one


# What may be the first command of a database. Every other one asks of what is stored, and an empty answer from a store
# that it made itself, in the wrong place perhaps, would look like one.
FOUNDING = frozenset(
    {
        "store",
        "import",
        "episode archive",
        "profile set",
        "associate declare",
        "git note",
        "git backfill",
        "pause",
        "call",
        "daemon start",
        "daemon restart",
    }
)


class Answer:
    """A daemon's answer to ``method(params)``.

    ``response`` is the contract's map, ``code`` the error code beside it, ``status`` the exit status.
    """

    __slots__ = ("method", "params", "response", "code", "status")

    def __init__(self, method: str, params: dict, response: dict, code: str | None) -> None:
        self.method, self.params, self.response, self.code = method, params, response, code
        self.status = exits.status_of(response, code, method)


class Session:
    """What a command works with. Nothing is read, opened or started before a command asks for it."""

    def __init__(self, name: str, options: dict) -> None:
        self.name = name
        self.options = options
        self.out = Output(bool(options.get("quiet")), bool(options.get("json")))
        self._settings: Settings | None = None
        self._connection: Connection | None = None
        self._was_connected = False
        self._times: dict[str, str] = {}

    @property
    def settings(self) -> "Settings":
        """The effective settings; what was wrong with them is said on stderr once."""
        if self._settings is None:
            from cpersona_daemon.shared import settings

            given = {_OPTION_OF[k]: v for k, v in self.options.items() if k in _OPTION_OF and v is not None}
            self._settings = settings.load(options=given)
            for warning in self._settings.warnings:
                self.out.warn(f"cpersona: {warning}")
        return self._settings

    @property
    def here(self) -> "Settings":
        """The settings of a command about this machine. Raises Usage where another one is set."""
        if self.settings.host:
            host = self.settings.host
            raise exits.Usage(
                f"{self.name} is about the machine that it runs on, and CPERSONA_HOST names {host}; "
                f"`ssh {host} cpersona {self.name}` runs it there, `CPERSONA_HOST= cpersona {self.name}` here"
            )
        return self.settings

    @property
    def connection(self) -> "Connection":
        """The connection to the database's daemon, which is started where none runs; raises client.CallFailed.

        Where there is no database, only a command that may be the first one makes it.
        """
        if self._connection is None:
            from .wire import client

            self._connection = client.connect(self.settings, create=self.name in FOUNDING, again=self._was_connected)
            self._was_connected = True
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Axes. An option given as '' is a value of its own, so options are asked before the settings.

    @property
    def agent(self) -> str:
        given = self.options.get("agent")
        return self.settings.agent if given is None else given

    def whom(self, all_agents: bool) -> str:
        """Return the agent that is meant, '' for every agent. Raises Usage where both are asked for."""
        if all_agents and self.options.get("agent") is not None:
            raise exits.Usage(f"{self.name}: --all-agents means every agent and --agent one; give one of them")
        return "" if all_agents else self.agent

    def axes(self) -> dict:
        """Return agent_id and those of project_id and channel that are set, as parameters."""
        params = {"agent_id": self.agent}
        for axis, parameter in (("project", "project_id"), ("channel", "channel")):
            given = self.options.get(axis)
            value = getattr(self.settings, axis) if given is None else given
            if value is not None and (value or axis == "project"):
                params[parameter] = value
        return params

    def parameters(self, given: "Mapping[str, Any]", table: "Rows") -> dict:
        """Return the parameters of a request: for each option of ``table`` that was given, what its row makes of it."""
        params = {}
        for option, parameter, make in table:
            value = given[option]
            if value is None or value is False or value == [] or value == ():
                continue
            params[parameter] = value if make is None else make(self, value)
        return params

    def instant(self, text: str, end: bool = False, name: str = "at") -> str:
        """Return a time that a person typed as an ISO instant: of a day its first or, with ``end``, its last.

        What ``name`` became is said where a time was named by words, and stands in the JSON. Raises Usage.
        """
        from .terminal import times

        typed = times.parse(text)
        warning = times.zone_warning(text, typed)
        if warning:
            self.out.warn(f"cpersona: {warning}")
        moment = typed.end if end else typed.start
        self._times[name] = moment.isoformat()
        if typed.named:
            self.out.note(f"{name.replace('_', ' ')} {times.local(moment)}")
        return moment.astimezone(times.UTC).isoformat()

    def at_most(self, limit: int, most: int) -> int:
        """Return a number of rows that was asked for, and say so where it is more than the daemon gives."""
        if limit > most:
            self.out.note(f"{self.name} gives {most} rows at most")
        return min(limit, most)

    # Asking

    def signed(self, method: str, params: dict) -> dict:
        """Return a write's parameters with the key of the session that --session names: its pause holds for it."""
        key = self.options.get("session")
        if key is None or not methods.METHODS[method].own_session:
            return params
        return {**params, "session_key": key}

    def call(self, method: str, params: dict, **more: "Any") -> "Answer":
        """Send one request and return its Answer, whatever it says. Raises client.CallFailed."""
        params = self.signed(method, params)
        return Answer(method, params, *self.connection.call(method, params, **more))

    def queued(self, method: str, params: dict) -> "Answer":
        """Put one write to the daemon that runs, or into the spool, and return its Answer. Raises client.CallFailed."""
        from .wire.spool import Queue

        params = self.signed(method, params)
        return Answer(method, params, *Queue(self.settings).ask(method, params))

    def ask(
        self,
        method: str,
        params: dict,
        hint: str | None = None,
        queue: bool = False,
        refused: "Callable[[Answer], None] | None" = None,
        **more: "Any",
    ) -> "Answer":
        """Send one request and return its Answer; a failure ends the command with its one line (and its JSON).

        ``refused(answer)`` may say more of a failure first. With ``queue`` no daemon is started, and where none can be
        reached the request is kept for the next one.
        """
        check_text(params)
        answer = self.queued(method, params) if queue else self.call(method, params, **more)
        if answer.status not in (fields.EXIT_OK, fields.EXIT_CRITICAL):
            if refused is not None:
                refused(answer)
            if self.out.as_json:
                self.out.json(answer.response)
            from .terminal.failure import failure_line

            raise exits.Stop(failure_line(self.name, answer.response, answer.code, hint), answer.status)
        if answer.response.get("left_out"):
            self._name_left_out(answer.response["left_out"])
        return answer

    def _name_left_out(self, rows: list[dict]) -> None:
        """Name on stderr the rows that belong into an answer and cannot be shown, each with the reason."""
        named = ", ".join(f"{row['ref']} ({row['reason']})" for row in rows[:_NAMED])
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        self.out.warn(
            f"cpersona {self.name}: {'a row is' if len(rows) == 1 else f'{len(rows)} rows are'} left out: {named}{more}"
        )

    def show(self, answer: "Answer", **beside: "Any") -> bool:
        """Print an answer as JSON if that was asked for, and tell whether it was.

        Rows stand in it under our names, ``beside`` with them, and between which times they were stored.
        """
        if self.out.as_json:
            from .terminal.naming import named

            bounds = {name: at for name, at in self._times.items() if name in ("since", "until")}
            self.out.json({**named(answer.method, answer.params, answer.response), **bounds, **beside})
        return self.out.as_json


def run(command: "Command", options: dict, values: dict) -> int:
    """Run a command with its own values in a session of these common options; return the exit status."""
    session = Session(" ".join(command.path), options)
    try:
        return command.run(session, **values) or fields.EXIT_OK
    finally:
        session.close()


def check_text(value: "Any") -> None:
    """Raise Usage when a text holds bytes that are not UTF-8, as an argument or a file name may."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            shown = repr(value[:40].encode("utf-8", "surrogateescape"))[1:]
            raise exits.Usage(f"{shown} is not valid UTF-8; convert it first, for instance with iconv") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(key)
            check_text(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            check_text(item)
