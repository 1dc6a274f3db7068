"""`call`: any method with the contract's raw answer, once or line by line. The interface for programs.

Contract: call.lines.
"""

import sys

from cpersona_daemon.shared import fields, methods

from .. import exits
from ..declare.spec import PLAIN, argument, command, option
from ..terminal import reading
from ..terminal.output import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

_LONGEST_SECONDS = 10_000_000


@command(
    "call",
    argument("method", "The method, for instance recall.", required=False, values="methods"),
    argument(
        "params",
        "Its parameters as a JSON object, or - to read them from standard input.",
        required=False,
        metavar="JSON|-",
    ),
    option("--stdin", "Read one request a line, answer one line each.", kind="flag", default=False),
    option(
        "--set",
        "A retrieval setting for this call alone; may be repeated.",
        metavar="NAME=VALUE",
        many=True,
        values="overrides",
    ),
    option("--deadline", "Seconds that the daemon may take.", kind="float", metavar="SECONDS"),
    common=PLAIN,
    epilog="Methods: " + ", ".join(methods.METHODS) + ".",
)
def call(
    session: "Session", method: str | None, params: str | None, stdin: bool, set: list[str], deadline: float | None
) -> int:
    """Call any method of the daemon and print its answer as one line of JSON.

    Parameters are sent as they are; nothing is filled in. With --stdin, each line
    {"id": 1, "method": "recall", "params": {...}} is answered by one line {"id": 1, "response": {...}},
    in order and as soon as it is ready.

    Example:
      cpersona call recall '{"agent_id": "default", "query": "deploys"}'
    """
    overrides = reading.pairs(set) or None
    if stdin:
        if method is not None:
            raise exits.Usage("call --stdin reads methods from standard input; leave the method out")
        return _each_line(session, overrides, deadline)
    if method is None:
        raise exits.Usage("name a method, for instance `cpersona call daemon_status`, or use --stdin")
    text = "{}" if params is None else reading.read_text("-", session.out) if params == "-" else params
    value = reading.json_argument(text, "the parameters")
    answer = session.call(method, value, overrides=overrides, deadline_ms=_milliseconds(deadline))
    session.out.json(answer.response)
    if answer.status not in (fields.EXIT_OK, fields.EXIT_CRITICAL):
        from ..terminal.failure import failure_line

        session.out.warn("cpersona: " + failure_line(f"call {method}", answer.response, answer.code))
    return answer.status


def _each_line(session: "Session", overrides: dict | None, deadline: float | None) -> int:
    from ..wire.client import CallFailed

    reading.announce(session.out)
    lines = reading.Lines(sys.stdin.fileno())
    while True:
        named: object = None
        try:
            line = lines.next()
            if line is None:
                return fields.EXIT_OK
            if not line.strip():
                continue
            named, request = _request(line)
            response = session.call(
                request["method"],
                request.get("params", {}),
                overrides=request.get("overrides", overrides),
                deadline_ms=request.get("deadline_ms", _milliseconds(deadline)),
            ).response
        except (ValueError, exits.Stop) as error:
            response = {"ok": False, "error": str(error)}
        except CallFailed as error:
            response = {"ok": False, "error": str(error)}
            if error.code != "invalid_params":
                # The daemon cannot answer this line or any later one: say so where the program listens, then leave.
                _answer(session, named, response)
                raise
        _answer(session, named, response)


def _answer(session: "Session", named: object, response: dict) -> None:
    session.out.line(to_json({"id": named, "response": response}))
    session.out.flush()


def _request(line: bytes) -> tuple[object, dict]:
    """Return (id, request) of one line. Raises ValueError with what is wrong with it."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("the line is not valid UTF-8") from None
    try:
        request = reading.parse_json(text)
    except ValueError as error:
        raise ValueError(f"the line is not JSON: {error}") from None
    if not isinstance(request, dict) or "id" not in request or not isinstance(request.get("method"), str):
        raise ValueError('the line is not an object like {"id": 1, "method": "recall", "params": {}}')
    if not isinstance(request.get("params", {}), dict):
        raise ValueError("params must be an object")
    if not isinstance(request.get("overrides", {}), dict):
        raise ValueError("overrides must be an object")
    limit = request.get("deadline_ms", 0)
    if type(limit) is not int or not 0 <= limit < _LONGEST_SECONDS * 1000:
        raise ValueError("deadline_ms must be a whole number of milliseconds, 0 or more")
    return request["id"], request


def _milliseconds(deadline: float | None) -> int | None:
    if deadline is None:
        return None
    if not 0 < deadline < _LONGEST_SECONDS:
        raise exits.Usage("--deadline takes seconds, more than 0")
    return int(deadline * 1000)


COMMANDS = (call,)
