"""Rows named by the keys that their writer gave them, beside refs: `--id KEY` wherever a ref is taken.

Contract: rows.keyed.
"""

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import option
from ..terminal import reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..session import Session

_SAID = 5  # refs of an ambiguous key that are named

KEYS = option("--id", "A memory by your own key, as `store --id` gave it; may be repeated.", metavar="KEY", many=True)

KEY = option("--id", "The memory by your own key, as `store --id` gave it, in place of REF.", metavar="KEY")


def within(session: "Session") -> dict:
    """Return the project that --project names, as a parameter: rows of others are not there then."""
    project = session.options.get("project")
    return {} if project is None else {"project_id": project}


def rows_named(session: "Session", refs: "Sequence[str]", keys: "Sequence[str]") -> list[tuple[str, int]]:
    """Return (kind, id) of each row named, those by a ref first.

    Raises Usage where none is named, Stop for a key that no row has or several have.
    """
    if not refs and not keys:
        raise exits.Usage(f"{session.name}: name a row by its ref, like mem:12, or by your own key with --id KEY")
    return [*map(reading.ref, refs), *_by_keys(session, keys)]


def one(session: "Session", ref: str | None, key: str | None, what: str = "") -> int:
    """Return the number of the one memory named by its ref or by its key. Raises Usage, Stop.

    ``what`` is said where both name it.
    """
    if ref is not None and key is not None:
        raise exits.Usage(f"{session.name}: a ref and --id both name the memory; give one of them{what}")
    if key is not None:
        return _by_keys(session, [key])[0][1]
    if ref is None:
        raise exits.Usage(f"{session.name}: name a memory by its ref, like mem:12, or by your own key with --id KEY")
    return reading.memory_id(ref)


def _by_keys(session: "Session", keys: "Sequence[str]") -> list[tuple[str, int]]:
    found: dict[str, list[dict]] = {}
    axes = session.axes()
    axes.pop("channel", None)  # a key is one in its project, whatever the channel
    for at in range(0, len(keys), fields.MAX_IDS):
        asked = {**axes, "ids": list(keys[at : at + fields.MAX_IDS])}
        for row in session.ask("find_ids", asked).response["found"]:
            found.setdefault(row["id"], []).append(row)
    return [reading.ref(_only(session, key, found.get(key, []), axes.get("project_id"))["ref"]) for key in keys]


def _only(session: "Session", key: str, rows: list[dict], project: str | None) -> dict:
    """Return the row that a key means: in a project its own before the global pool's. Raises Stop."""
    meant = [row for row in rows if project is not None and row["project_id"] == project] or rows
    if len(meant) == 1:
        return meant[0]
    if meant:
        some = ", ".join(f"{row['ref']} ({_place(row['project_id'])})" for row in meant[:_SAID])
        more = f" and {len(meant) - _SAID} more" if len(meant) > _SAID else ""
        raise exits.Stop(
            f"{session.name}: {len(meant)} memories have the key {key!r}: {some}{more}; give one of the refs, or name"
            " the project with --project"
        )
    where = "" if project is None else f" in {_place(project)}"
    raise exits.Stop(
        f"{session.name}: no memory of agent {session.agent!r} has the key {key!r}{where}; `cpersona list --id-prefix`"
        " looks for keys, --agent and --project name other places"
    )


def _place(project: str) -> str:
    return f"project {project!r}" if project else "the global pool"
