"""What is written into the settings of the usual clients so that they start this server.

A client starts it with little of the shell's environment, so everything that says which store is meant is named.

Contract: tools.config.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import ENVIRONMENT, OPTION, Settings
from cpersona_daemon.shared.settings_table import TABLE

_PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME")  # of the config file and the log; the database's is named itself


def blocks(settings: Settings, options: Sequence[str], environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (which clients, what is pasted) for a server with these command-line options."""
    command, *words = _program()
    entry = {"command": command, "args": [*words, "mcp", *_place(settings, environ), *options]}
    env = _environment(settings, environ)
    plain = {**entry, "env": env} if env else entry
    typed = {"type": "stdio", **plain}
    return [
        (
            "Claude Desktop, .mcp.json of Claude Code, Cursor, Windsurf, Gemini CLI, Cline (Zed: context_servers)",
            _json({"mcpServers": {"cpersona": plain}}),
        ),
        ("VS Code: .vscode/mcp.json", _json({"servers": {"cpersona": typed}})),
        ("Codex: ~/.codex/config.toml", _toml(plain)),
        ("Claude Code: run", f"claude mcp add-json cpersona {shlex.quote(json.dumps(typed, ensure_ascii=False))}"),
    ]


def _place(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return the words that name the store: a file of this machine, or another machine, and a file there if one is."""
    if not settings.host:
        return ["--db", places(settings, environ).db]
    named = ["--db", settings.db_path] if settings.origin("db_path") == OPTION else []
    return ["--host", settings.host, *named]


def unprinted(settings: Settings) -> list[str]:
    """Return the variables that are set and are nobody's to read: they belong into ``env`` by hand."""
    return [row.variable for row in TABLE if row.secret and settings.origin(row.name) == ENVIRONMENT]


def _program() -> list[str]:
    """Return what starts this very cpersona: the script beside its interpreter, else the interpreter itself."""
    script = os.path.join(os.path.dirname(sys.executable), "cpersona")
    return [script] if os.access(script, os.X_OK) else [sys.executable, "-m", "cpersona_cli"]


def _environment(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    env = {name: environ[name] for name in _PLACES if environ.get(name)}
    for row in TABLE:
        if settings.origin(row.name) != ENVIRONMENT or row.secret or row.name in ("db_path", "host"):
            continue
        value = environ[row.variable].strip()
        env[row.variable] = os.path.abspath(os.path.expanduser(value)) if row.kind == "path" and value else value
    return env


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _toml(entry: Mapping[str, object]) -> str:
    # A JSON string and a list of them are TOML as well.
    said = [f"{key} = {json.dumps(entry[key], ensure_ascii=False)}" for key in ("command", "args")]
    env = entry.get("env")
    if isinstance(env, dict):
        said.append("\n[mcp_servers.cpersona.env]")
        said += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in env.items()]
    return "\n".join(["[mcp_servers.cpersona]", *said])
