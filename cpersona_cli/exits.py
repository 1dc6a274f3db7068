"""What an answer means for the exit status, and the failures that end a command.

Contract: exit.status, answer.shape.
"""

from cpersona_daemon.shared import fields


class Stop(Exception):
    """A command that cannot go on: the message is the one line that is printed, status the exit status."""

    def __init__(self, message: str, status: int = fields.EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_status = status


class Usage(Stop):
    """The command line itself is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, fields.EXIT_USAGE)


def status_of(response: dict, code: str | None = None, method: str | None = None) -> int:
    """Return the exit status of one answer: 0 unless it reports a failure.

    ``code`` is the error code of the response frame; without one the body decides, so that no answer
    with `ok: false`, an `error` or a rejected row ever counts as success.
    """
    if code is not None:
        return fields.ERRORS.get(code, (fields.EXIT_FAILED,))[0]
    if response.get("error") == "permission_denied":
        return fields.EXIT_DENIED
    if response.get("ok") is False or response.get("error") is not None or response.get("result") == "rejected":
        return fields.EXIT_FAILED
    if method == "check_health" and response.get("status") == "unhealthy":
        return fields.EXIT_CRITICAL
    return fields.EXIT_OK


def reason_of(response: dict) -> str:
    """Return why an answer failed, in the daemon's own words."""
    if response.get("error") == "permission_denied":
        return f"permission denied for client {response.get('client_id') or 'unknown'}"
    why = response.get("reason") or response.get("error") or "refused without a reason"
    return why if isinstance(why, str) else str(why)
