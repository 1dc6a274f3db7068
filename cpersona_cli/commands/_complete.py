"""What may stand where the cursor is: the values that a shell offers for an option or an argument.

A completion script calls `cpersona __complete WORD…` with the words behind `cpersona` up to the cursor, the last of
them the one that is being typed, '' for none. Names and refs are asked of a daemon that runs, for SECONDS at most; none
is started, and nothing is ever said but values.
"""

from __future__ import annotations

import os

from ..declare import catalogue
from ..declare.place import place_of
from ..terminal.output import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..declare.place import Place


SECONDS = 1.0
ROWS = 50  # refs that are offered, the newest
_PREVIEW = 60
_FILES = 1  # the exit status that says that a file may be meant as well


def main(words: list[str]) -> int:
    """Print a value and what it is, between them a tab, one a line; return 1 where a file may be meant, else 0."""
    import signal

    # The answer of a daemon that is at work comes too late for whoever waits at a prompt.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    place = place_of(words or [""])
    if place.parameter is not None and place.parameter.values == "files":
        return _FILES
    for value, said in offered(place):
        print(f"{place.before}{value}\t{said}" if said else place.before + value)
    return 0


def offered(place: Place) -> list[tuple[str, str]]:
    """Return the (value, what it is) pairs that go on like the text at a place.

    None where nothing is known, or nobody answers in time.
    """
    parameter = place.parameter
    if parameter is None:
        return []
    if parameter.name in ("fields", "json_fields"):
        return _listed(parameter.values, place.text)
    values = parameter.choices or parameter.values
    try:
        found = (
            [(word, "") for word in values] if isinstance(values, tuple) else SOURCES[values](place) if values else []
        )
        return [
            (value, one_line(said)) for value, said in found if value.startswith(place.text) and value.isprintable()
        ]
    except Exception:
        return []  # whatever is wrong is said by the command itself, once it is run


def _listed(names: Iterable[str], text: str) -> list[tuple[str, str]]:
    """Offer the names that go on like the last one of a list between commas, those left out that it holds already."""
    before, comma, last = text.rpartition(",")
    return [(f"{before}{comma}{name}", "") for name in names if name.startswith(last) and name not in before.split(",")]


def _settings(place: Place) -> list[tuple[str, str]]:
    from cpersona_daemon.shared import settings_table

    return [(setting.name, setting.meaning) for setting in settings_table.TABLE]


def _overrides(place: Place) -> list[tuple[str, str]]:
    from cpersona_daemon.shared import settings_table

    found: list[tuple[str, str]] = []
    for name in settings_table.SCOPED[settings_table.RETRIEVAL]:
        setting = settings_table.BY_NAME[name]
        words = setting.choices or (("true", "false") if setting.kind == "bool" else ())
        found += (
            [(f"{name}=", setting.meaning)] if "=" not in place.text else [(f"{name}={word}", "") for word in words]
        )
    return found


def _setting_values(place: Place) -> list[tuple[str, str]]:
    from cpersona_daemon.shared import settings_table

    setting = settings_table.BY_NAME.get(place.given[0] if place.given else "")
    if setting is None:
        return []
    return [(word, "") for word in setting.choices or (("true", "false") if setting.kind == "bool" else ())]


def _methods(place: Place) -> list[tuple[str, str]]:
    from cpersona_daemon.shared import methods

    return [(method, "") for method in methods.METHODS]


def _topics(place: Place) -> list[tuple[str, str]]:
    if place.given:
        return (
            [(command.path[1], "") for command in catalogue.declared(place.given[0])]
            if place.given[0] in catalogue.FAMILIES and len(place.given) == 1
            else []
        )
    from .help import TOPICS

    return [(name, summary) for name, (summary, _) in TOPICS.items()] + [
        (name, phrase) for name, phrase in catalogue.ENTRIES.items() if name not in TOPICS
    ]


def _agents(place: Place) -> list[tuple[str, str]]:
    return [(name, "") for name in _ask(place, "list_axes", {})["agents"]]


def _projects(place: Place) -> list[tuple[str, str]]:
    return [(name, "") for name in _ask(place, "list_axes", None)["projects"]]


def _channels(place: Place) -> list[tuple[str, str]]:
    return [(name, "") for name in _ask(place, "list_axes", None)["channels"]]


def _batches(place: Place) -> list[tuple[str, str]]:
    found = _ask(place, "list_batches", None, limit=ROWS)["batches"]
    return [(row["batch"], f"{row['memories'] + row['episodes']} rows, {row['last']}") for row in found]


def _memories(place: Place) -> list[tuple[str, str]]:
    return [
        (row["ref"], row["content"][:_PREVIEW]) for row in _ask(place, "list_memories", None, limit=ROWS)["memories"]
    ]


def _episodes(place: Place) -> list[tuple[str, str]]:
    return [
        (row["ref"], row["summary"][:_PREVIEW]) for row in _ask(place, "list_episodes", None, limit=ROWS)["episodes"]
    ]


def _refs(place: Place) -> list[tuple[str, str]]:
    return [
        *([] if place.text.startswith("ep:") else _memories(place)),
        *([] if place.text.startswith("mem:") else _episodes(place)),
    ]


def _ask(place: Place, method: str, params: dict | None, **more: Any) -> dict:
    """Ask the daemon that runs; without ``params`` about the agent that the command line means.

    Raises CallFailed where none runs.
    """
    from ..session import Session
    from ..wire import client
    from ..wire.dial import CallFailed

    session = Session("", dict(place.options))
    session.out.warn = lambda text: None  # type: ignore[method-assign]  # nothing is ever said but values
    if params is None:
        params = {"agent_id": session.agent, **more}
    if session.settings.host:
        raise CallFailed("unreachable", "no other machine is asked for what a person has not typed yet")
    with client.connect(session.settings, start=False) as connection:
        return connection.call(method, params)[0]


# What ``spec.Parameter.values`` may name besides "files".
SOURCES = {
    "agents": _agents,
    "projects": _projects,
    "channels": _channels,
    "batches": _batches,
    "refs": _refs,
    "memories": _memories,
    "episodes": _episodes,
    "settings": _settings,
    "setting_values": _setting_values,
    "overrides": _overrides,
    "methods": _methods,
    "topics": _topics,
}
