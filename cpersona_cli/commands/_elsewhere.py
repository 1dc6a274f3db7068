"""A command that works on a file, while the database is on another machine: it runs there, the file travels by ssh.

Contract: host.ssh.
"""

from __future__ import annotations

import sys

from cpersona_daemon.shared import fields, files

from .. import exits
from ..declare import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..declare.spec import Command
    from ..session import Session


def words_of(session: Session, command: Command, values: dict) -> list[str]:
    """Return the command line that means there what the given one means here, with `-` for its file."""
    given = [(parameter, values.get(parameter.name)) for parameter in command.parameters if parameter.flags]
    given += [(spec.COMMON[key], session.options.get(key)) for key in command.common if key not in ("db", "host")]
    words = [*command.path]
    for parameter, value in given:
        if value is True:
            words.append(parameter.flags[-1])
        elif value not in (None, False, [], ()):
            words += [f"{parameter.flags[-1]}={value}"]
    from ..wire.ssh import place_words

    return [*words, *place_words(session.settings), "-"]


def written(session: Session, command: Command, file: str, values: dict) -> int:
    """Run a command there that writes a file to its standard output, into a file here; return the exit status.

    The file appears whole or not at all. Raises Stop.
    """
    from ..wire.ssh import forward

    words = words_of(session, command, values)
    if session.options.get("agent") is None and not values.get("all_agents"):
        words.insert(-1, f"--agent={session.agent}")  # whom the settings of this machine mean
    if file == "-":
        session.out.flush()
        return forward(session.settings, words, 0, sys.stdout.fileno())
    if session.out.as_json:
        raise exits.Usage(f"{session.name} --host takes no --json: the answer is the file itself")
    with files.Replacing(file) as handle:
        status = forward(session.settings, words, 0, handle.fileno())
        if status:
            raise exits.Stop(f"{session.name}: it failed on {session.settings.host}, and {file} is as it was", status)
    session.out.line(file)
    return fields.EXIT_OK


def read(session: Session, command: Command, file: str, values: dict) -> int:
    """Run a command there that reads a file from its standard input, from a file here; return the exit status."""
    from ..wire.ssh import forward

    words = words_of(session, command, values)
    session.out.flush()
    if file == "-":
        return forward(session.settings, words, 0, sys.stdout.fileno())
    with open(files.opened(file, follow=True), "rb") as handle:
        return forward(session.settings, words, handle.fileno(), sys.stdout.fileno())
