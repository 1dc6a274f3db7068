"""The manual pages, written from the command tree and the settings table.

`python -m cpersona_cli.manual` rewrites `man/` and `completions/` of a checkout; a test holds what is
there to what this module would write, so the two cannot drift apart.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable

from cpersona_daemon import __version__
from cpersona_daemon.shared import fields, settings_table

from . import catalogue, completions, longer, spec

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SCOPES = {
    settings_table.PLACE: ("Where things live", "Read before a daemon can be found."),
    settings_table.CLIENT: ("The command line", "Read by the command line alone."),
    settings_table.RETRIEVAL: (
        "Retrieval",
        "May also change for one request: `recall --set NAME=VALUE`, or `overrides` on the wire.",
    ),
    settings_table.DAEMON: ("The daemon", "Fixed when the daemon starts; `cpersona daemon restart` applies a change."),
}
_EXITS = (
    (fields.EXIT_OK, "done: stored, skipped as a duplicate, queued, rows, or an honestly empty recall"),
    (fields.EXIT_FAILED, "refused or failed; in a batch: any line was rejected"),
    (fields.EXIT_USAGE, "the command line is wrong"),
    (fields.EXIT_NOTHING, "nothing found (--fail-empty), or skipped (--fail-if-skipped)"),
    (fields.EXIT_UNREACHABLE, "the daemon cannot be started or reached, or there is no database"),
    (fields.EXIT_DENIED, "permission denied"),
    (fields.EXIT_RETRY, "timed out or busy: try again"),
    (fields.EXIT_CRITICAL, "health found a critical problem"),
    (fields.EXIT_INTERRUPTED, "interrupted"),
)
_DAEMON = """
The daemon of cpersona holds one SQLite database and a vector index, and answers requests on a
Unix socket. The client starts it on demand; it leaves after CPERSONA_IDLE_TIMEOUT seconds without work.
One daemon serves one database, which it keeps locked as long as it lives.

SIGTERM and SIGINT let it finish the writes that it accepted, fold the log into the database, remove its
own socket and leave with status 0.

With socket activation (the units cpersonad.socket and cpersonad.service, or the launchd agent
org.cpersona.daemon) a service manager starts it. Nobody needs them.
"""
_SHARED = """
Nobody needs this for a memory of their own. `cpersona daemon unit` prints a systemd unit for one daemon that
the users of a machine share, with the steps that install it: the daemon runs as a user of its own, the
socket belongs to a group (CPERSONA_SOCKET_GROUP, mode 0660), and CPERSONA_ACL_FILE says who may do what. Users
name the same CPERSONA_DB_PATH and CPERSONA_SOCKET; they need not be able to read the database.

The access file is JSON, belongs to root or the daemon's user, and is read at the daemon's start.

Example:
    {"clients": [
      {"client_id": "keeper", "grants": {"*": "read-write"}},
      {"client_id": "alice", "user": "alice", "grants": {"alice": "read-write", "team": "read-write"}},
      {"client_id": "readers", "group": "staff", "grants": {"team": "read"}},
      {"client_id": "ci", "token": "…", "grants": {"ci": "read-write"}}]}

An entry is known by `user` (a name) or `uid`, by `group` (any of the groups that the peer has, as the kernel
tells them), or by `token` (CPERSONA_TOKEN; beside one of the others both must fit). A token that is sent counts alone,
then the user, then the first group in the file; what several entries grant is not added up. An entry with none of
them is the daemon's own user. A grant is none, read or read-write for an agent, `*` for each that is not named. What
names no agent (`daemon status`, --all-agents) needs `*`; export, import, backup, reindex and `daemon stop` need
read-write on it.

Shared, within the grants: everything in the database; the daemon's settings, its embedder, its calibration; a pause
without a session's key, which holds for everybody.

Not shared: an agent's rows with whom the file gives no grant for it; the settings of a client (agent, project,
channel, token), and its retrieval settings, which travel with each request. Files are the daemon's user's alone: its
log, the queue of `--queue` and of git hooks (others note commits with `git backfill`, which asks the daemon), and what
`export`, `import` and `backup` write and read.

Several machines: one daemon writes, others ask it through ssh. `cpersona --host USER@MACHINE recall …` (or
CPERSONA_HOST) runs `cpersona daemon pipe` there with the system's ssh and sends the frames of the socket through it;
that starts the daemon where none runs. No port is opened, and the user there is whom the access file sees. --db names
a file of that machine; CPERSONA_DB_PATH and CPERSONA_SOCKET of this one say nothing about it. `export FILE` and
`import FILE` stream a file of this machine; `backup`, `restore`, `daemon stop` and `--queue` are refused with what to
do instead; `doctor`, `config` and git hooks are about the machine that they run on. Where its cpersona is not on the
PATH of an ssh command, CPERSONA_HOST_COMMAND names it. Each command is a connection of ssh: its ControlMaster and
ControlPersist make a second one quick. Ports, keys and jumps belong into ~/.ssh/config.
"""
_DAEMON_OPTIONS = (
    (
        "--foreground",
        "Stay in the foreground and log to standard error, for a service manager; `cpersona daemon run` does this.",
    ),
    (
        "--restore FILE [--check | --settings]",
        (
            "Put a backup in the place of the database while no daemon has it, its settings too or none, or only"
            " verify it; `cpersona restore` does this."
        ),
    ),
    ("--doctor", "Look at the installation and print one line of JSON a check; `cpersona doctor` does this."),
    ("--version", "Print the version and leave."),
)
_ELSEWHERE = """
The daemon compares vectors itself and exactly, up to some millions of rows. A store that is larger than memory, or an
index that other programs ask too, may be searched by Qdrant: CPERSONA_VECTOR_SEARCH_MODE=qdrant with
CPERSONA_QDRANT_URL, which is the address of a server or a cluster (http or https) or path: and a folder for its
engine, which the daemon then runs in a process of its own. The packages are an extra, `pip install
'cpersona-cli[qdrant]'`. A key stands in a file that only you can read (CPERSONA_QDRANT_API_KEY_FILE) or in
CPERSONA_QDRANT_API_KEY; https checks the certificate.

The database stays the authority. A change is listed in it in the transaction that makes it, and brought to Qdrant by
one thread in the background, whether Qdrant is there or not; `cpersona daemon status` and `cpersona health` say how
many wait and why. What Qdrant finds is read from the database before it counts, with its exact cosine, and rows that
it has not heard of are compared beside that: nothing that is gone is found, and what was stored a moment ago is.
Down, slow (5 s), with a wrong key, or while it is being filled, the database answers in its place (10 s, then words
alone) and the answer says so.

Its collections are named after the store (cpersona- and its identity, or CPERSONA_QDRANT_COLLECTION), one for each
kind, model and width, so that two databases share none. Where something is missing there, too much, or of another
time, all of it is filled anew by itself; `cpersona reindex --vectors` does that at once. A server follows a graph,
which may miss a row; CPERSONA_QDRANT_EXACT=true has every vector in scope compared, as the engine in a folder always
does. A copy of a database has the same identity: give one of the two its own CPERSONA_QDRANT_COLLECTION.

An http embedding service that has /search, /index, /remove and /purge beside /embed may rank as well, by
CPERSONA_VECTOR_SEARCH_MODE=remote: it is told of texts as Qdrant is of vectors, under a name for each agent
(cpersona:AGENT), with the key and the query string of CPERSONA_EMBEDDING_URL. Its scores stand for cosines, an empty
answer is one, and it ranks under its own window: CPERSONA_MAX_MEMORIES and CPERSONA_VECTOR_REACH do not reach it. The
daemon keeps its own index all the same, which weighs what is found and answers where the service does not. One service
belongs to one database: the names are the same for every store.
"""
# What stands beside the database, by the names of ``paths.Places`` first.
_FILES = (
    (
        "db",
        "<db>",
        (
            "The database: CPERSONA_DB_PATH, else $XDG_DATA_HOME/cpersona/cpersona.db "
            "(~/.local/share/cpersona/cpersona.db). "
            "<db>-wal and <db>-shm belong to it while a daemon runs; copying <db> alone loses what stands in them."
        ),
    ),
    ("lock", "<db>.lock", "Held by the daemon for life; it stays when the daemon leaves."),
    (
        "start_lock",
        "<db>.start.lock",
        "Held by a client while it starts the daemon, so that many at once start one; it stays.",
    ),
    (
        "socket",
        "<db>.sock",
        (
            "The socket: CPERSONA_SOCKET, else this, else /tmp/cpersona-<uid>/<hash>.sock where the path is over 100 "
            "bytes or others can write into its directory."
        ),
    ),
    (
        "daemon_json",
        "<db>.daemon.json",
        "Process id, start, version, protocol and socket of the daemon that serves the database.",
    ),
    (
        "calibration",
        "<db>.calibration.json",
        (
            "Measured thresholds. <db>.calibration.json.previous is the measure before, for `cpersona calibrate "
            "--rollback`."
        ),
    ),
    (
        "memory_vectors",
        "<db>.memories.vec*",
        "The vector index of the memories, built anew from the database whenever it is missing, damaged or stale.",
    ),
    ("episode_vectors", "<db>.episodes.vec*", "The same of the episodes."),
    ("memory_passages", "<db>.memories.passages.vec*", "The same of the passages of long memories."),
    ("episode_passages", "<db>.episodes.passages.vec*", "The same of the passages of long episodes."),
    (
        "spool",
        "<db>.spool/",
        "Writes that wait for a daemon, one file each; those that it refused lie in failed/ with the reason.",
    ),
    (
        "log",
        "$XDG_STATE_HOME/cpersona/<db name>-<hash>.log",
        "The log (~/.local/state), rotated; never memory content unless the log level is debug.",
    ),
    ("", "<db>.before-restore-<time>", "What stood in the place of a restored backup; yours to delete."),
    ("", "$XDG_CONFIG_HOME/cpersona/config.toml", "Settings, see cpersona-config(5)."),
)
_DAEMON_EXITS = (
    (fields.EXIT_OK, "it served and left"),
    (fields.EXIT_FAILED, "a check of --doctor failed, or a backup cannot be restored"),
    (fields.EXIT_USAGE, "the command line is wrong"),
    (
        fields.EXIT_UNREACHABLE,
        "it could not start: settings that contradict each other, a place that cannot be used, a newer database",
    ),
    (fields.EXIT_RETRY, "another daemon serves the database"),
)


def _roff(text: str) -> str:
    """Escape text for roff: backslashes, hyphens that must stay hyphens, and dots that would begin a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def _paragraphs(text: str) -> list[str]:
    """Render a docstring: examples and indented lines stay as they are, everything else is filled."""
    out: list[str] = []
    for block in inspect.cleandoc(text).split("\n\n"):
        if block.startswith(("Example", " ")):
            head, _, rest = block.partition("\n")
            out += [".PP", _roff(head)] if rest else [".PP"]
            out += [".nf", _roff(inspect.cleandoc(rest or head)), ".fi"]
        else:
            out += [".PP", _roff(" ".join(block.split("\n")))]
    return out


def _head(title: str, section: int, summary: str) -> list[str]:
    return [
        f'.TH {title.upper()} {section} "" "cpersona {__version__}" "cpersona manual"',
        ".SH NAME",
        f"{_roff(title)} \\- {_roff(summary)}",
    ]


def _flag(parameter: spec.Parameter) -> str:
    value = (
        ""
        if parameter.kind == "flag"
        else " " + (parameter.metavar or "|".join(parameter.choices) or parameter.kind.upper())
    )
    return ", ".join(parameter.flags) + value


def _parameters(parameters: Iterable[spec.Parameter]) -> list[str]:
    out: list[str] = []
    for parameter in parameters:
        out += [
            ".TP",
            f"\\fB{_roff(_flag(parameter) if parameter.flags else parameter.metavar or '')}\\fR",
            _roff(parameter.help or ""),
        ]
    return out


def _synopsis(command: spec.Command) -> str:
    words = ["cpersona", *command.path, "[OPTIONS]"]
    for p in command.parameters:
        if not p.flags:
            name = f"{p.metavar}{'...' if p.many else ''}"
            words.append(name if p.required else f"[{name}]")
    return " ".join(words)


def _command(command: spec.Command) -> list[str]:
    out = [
        f".SS {_roff(' '.join(('cpersona', *command.path)))}",
        ".PP",
        f"\\fB{_roff(_synopsis(command))}\\fR",
        *_paragraphs(command.help),
    ]
    return out + _parameters([*command.parameters, *(spec.COMMON[name] for name in command.common)])


def _exit_section(exits: Iterable[tuple[int, str]] = _EXITS) -> list[str]:
    return [".SH EXIT STATUS", *_terms(exits)]


def _terms(pairs: Iterable[tuple[object, str]]) -> list[str]:
    return [line for term, meaning in pairs for line in (".TP", f"\\fB{_roff(str(term))}\\fR", _roff(meaning))]


def _see_also(*pages: tuple[str, int]) -> list[str]:
    return [".SH SEE ALSO", ", ".join(f"\\fB{_roff(page)}\\fR({section})" for page, section in pages)]


def _main_page() -> list[str]:
    out = _head("cpersona", 1, "a durable memory for agents, scripts and people")
    out += [
        ".SH SYNOPSIS",
        "\\fBcpersona\\fR [OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION",
        _roff(
            "cpersona stores what it is told and gives the right thing back, by meaning and by words. A daemon that "
            "starts by itself holds "
            "one database. Data goes to standard output, everything else to standard error. The best row of a recall "
            "is the last one; "
            "a skipped duplicate is a success; an empty recall is an answer."
        ),
    ]
    for title, entries in catalogue.GROUPS:
        out += [f".SH {_roff(title.upper())}"]
        for name, phrase, *_ in entries:
            out += [".TP", f"\\fBcpersona\\-{_roff(name)}\\fR(1)", _roff(phrase)]
    out += [".SH OPTIONS", *_parameters(spec.COMMON.values()), *_exit_section()]
    return out + _see_also(("cpersona-config", 5), ("cpersonad", 8))


def _family_page(name: str) -> list[str]:
    commands = catalogue.declared(name)
    phrase = catalogue.ENTRIES[name]
    out = _head(f"cpersona-{name}", 1, phrase)
    out += [".SH SYNOPSIS", *(line for command in commands for line in (f"\\fB{_roff(_synopsis(command))}\\fR", ".br"))]
    if name in catalogue.FAMILIES:
        out += [".SH DESCRIPTION", _roff(catalogue.FAMILIES[name])]
    out += [".SH COMMANDS" if len(commands) > 1 else ".SH COMMAND"]
    for command in commands:
        out += _command(command)
    for title, text in longer.SECTIONS.get(name, ()):
        out += [f".SH {_roff(title.upper())}", *_paragraphs(text)]
    return out + _exit_section() + _see_also(("cpersona", 1), ("cpersona-config", 5))


def _config_page() -> list[str]:
    out = _head("cpersona-config", 5, "settings of cpersona")
    out += [
        ".SH DESCRIPTION",
        _roff(
            "Every setting is an environment variable CPERSONA_NAME and a key `name` of "
            "$XDG_CONFIG_HOME/cpersona/config.toml "
            "(~/.config/cpersona/config.toml). An option wins over the environment, the environment over the file, "
            "the file over the default. "
            "Values are trimmed and case-folded, an empty one means the default, a malformed one falls back to the "
            "default with a warning; "
            "values that contradict each other refuse to start. `cpersona config show` prints each with its origin."
        ),
    ]
    for scope, (title, text) in _SCOPES.items():
        out += [f".SH {_roff(title.upper())}", _roff(text)]
        for name in settings_table.SCOPED[scope]:
            s = settings_table.BY_NAME[name]
            out += [
                ".TP",
                f"\\fB{s.variable}\\fR",
                _roff(f"{s.meaning[:1].upper()}{s.meaning[1:]}. Takes {s.range_text}; default {s.default_text}."),
            ]
    return out + _see_also(("cpersona", 1), ("cpersonad", 8))


def _daemon_page() -> list[str]:
    out = _head("cpersonad", 8, "the daemon of cpersona")
    out += [
        ".SH SYNOPSIS",
        f"\\fBcpersonad\\fR {_roff('[--foreground]')}",
        ".SH DESCRIPTION",
        *_paragraphs(_DAEMON),
        ".SH OPTIONS",
        *_terms(_DAEMON_OPTIONS),
        ".SH MANY READERS, ONE WRITER",
        *_paragraphs(_SHARED),
    ]
    out += [
        ".SH VECTORS ELSEWHERE",
        *_paragraphs(_ELSEWHERE),
        ".SH FILES",
        "Everything is made private to its owner: directories 0700, files 0600, but a socket that is given to a group.",
        *_terms((path, meaning) for _, path, meaning in _FILES),
    ]
    return (
        out + _exit_section(_DAEMON_EXITS) + _see_also(("cpersona", 1), ("cpersona-daemon", 1), ("cpersona-config", 5))
    )


def pages() -> dict[str, str]:
    """Return every manual page: path below `man/` -> text."""
    out = {
        "man1/cpersona.1": _main_page(),
        "man5/cpersona-config.5": _config_page(),
        "man8/cpersonad.8": _daemon_page(),
    }
    out |= {f"man1/cpersona-{name}.1": _family_page(name) for name in catalogue.ENTRIES}
    return {path: "\n".join(lines) + "\n" for path, lines in out.items()}


def write(root: str = ROOT) -> None:
    """Write every page and script below ``root``, and remove those of commands that are gone."""
    for folder, texts in (("man", pages()), ("completions", completions.completions())):
        base = os.path.join(root, folder)
        for directory, _, files in os.walk(base):
            for name in files:
                if os.path.relpath(os.path.join(directory, name), base) not in texts:
                    os.remove(os.path.join(directory, name))
        for path, text in texts.items():
            target = os.path.join(base, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as handle:
                handle.write(text)
