"""`export`: write a JSONL file.

Contract: export.file.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from .. import exits
from ..declare.spec import AGENT, argument, command, option
from ..terminal.output import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session


@command(
    "export",
    argument("file", "Where to write; - writes to standard output.", metavar="FILE|-", values="files"),
    option("--all-agents", "Everything, not one agent's rows.", kind="flag", default=False),
    option("--embeddings", "Take the vectors along, so that importing needs no embedding.", kind="flag", default=False),
    option(
        "--for",
        "Write it so that the reference implementation takes all of it.",
        choices=("reference",),
        metavar="reference",
        name="reader",
    ),
    common=AGENT,
)
def export(session: Session, file: str, all_agents: bool, embeddings: bool, reader: str | None) -> int:
    """Write an agent's memories, episodes, profile and associations as JSON lines.

    The file appears whole or not at all. The reference implementation knows two who declare an association, agent and
    operator: with --for reference the owner is its operator and every other client an agent, and the name stands beside
    that for an import here.

    Example:
      cpersona export backup.jsonl --all-agents
      cpersona export - | gzip > backup.jsonl.gz
      cpersona export peer.jsonl --all-agents --embeddings --for reference
    """
    params: dict = {"agent_id": session.whom(all_agents)}
    if session.settings.host:
        from ._elsewhere import written

        return written(session, export, file, {"all_agents": all_agents, "embeddings": embeddings})
    if embeddings:
        params["include_embeddings"] = True
    if reader:
        params["for_reference"] = True
    if file != "-":
        params["output_path"] = os.path.abspath(file)
        answer = session.ask("export_memories", params)
        if not session.show(answer):
            session.out.line(answer.response.get("path", params["output_path"]))
            session.out.note(_counts(answer.response, "exported"))
            _say_empty(session, answer.response, all_agents)
        return answer.status
    if session.out.as_json:
        raise exits.Usage("export - writes the records themselves; leave --json out, or name a file")
    with PrivateDirectory(session) as directory:
        params["output_path"] = os.path.join(directory, "export.jsonl")
        answer = session.ask("export_memories", params)
        with open(params["output_path"], "rb") as handle:
            while data := handle.read(1 << 20):
                session.out.write(data)
    session.out.note(_counts(answer.response, "exported"))
    _say_empty(session, answer.response, all_agents)
    return answer.status


def _say_empty(session: Session, response: dict, all_agents: bool) -> None:
    """Say of an export without a record that it is one, and of what."""
    if not any(response.get(name) for name in ("memories", "episodes", "profiles", "associations")):
        whose = "nothing" if all_agents else f"nothing for an agent {session.agent!r}"
        session.out.warn(
            f"cpersona export: {whose} is stored in {session.connection.places.db}, so the export is empty;"
            " check --agent and --db"
        )


def _counts(response: dict, done: str) -> str:
    parts = [counted(response[name], name) for name in ("memories", "episodes", "profiles") if name in response]
    parts += [counted(count, name) for name, count in (response.get("associations") or {}).items()]
    return f"{done} {', '.join(parts)}"


class PrivateDirectory:
    """A temporary 0700 directory that the daemon may use: below CPERSONA_EXPORT_DIR where that confines it."""

    def __init__(self, session: Session) -> None:
        self._parent = session.settings.export_dir or None

    def __enter__(self) -> str:
        self._path = tempfile.mkdtemp(prefix="cpersona-", dir=self._parent)
        return os.path.abspath(self._path)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


COMMANDS = (export,)
