"""What the client may import. Contract: house.layers, speed.client."""

import ast
import subprocess
import sys
from pathlib import Path

import cpersona_cli
from cpersona_cli.declare import catalogue

ROOM = Path(cpersona_cli.__file__).parent
# The daemon's light tables (its stop words too), and the operating system's answer to who is at the other end of a
# socket.
OF_THE_DAEMON = {
    "cpersona_daemon",
    "cpersona_daemon.shared",
    "cpersona_daemon.shared.stopwords",
    "cpersona_daemon.shared.settings",
    "cpersona_daemon.shared.settings_table",
    "cpersona_daemon.shared.paths",
    "cpersona_daemon.shared.fields",
    "cpersona_daemon.shared.methods",
    "cpersona_daemon.shared.pace",
    "cpersona_daemon.shared.peer",
    "cpersona_daemon.shared.params",
}
# What a start and the spool look at before they make anything; no command beside a running daemon loads it.
WITHOUT_DAEMON = {"cpersona_daemon.shared.header", "cpersona_daemon.shared.files", "cpersona_daemon.shared.holders"}
FOREIGN = {
    "msgpack": {"fast/codec.py"},
    "typer": {"declare/app.py"},
    "rich": {"terminal/render.py", "terminal/progress.py", "commands/get.py", "explore/widgets.py"},
    "textual": {"explore/app.py", "explore/deeds.py", "explore/widgets.py"},
    "watchfiles": {"notes/watching.py"},
    **dict.fromkeys(("anyio", "mcp", "mcp_types"), {"mcp/server.py"}),
}


def files():
    """Return every file of the client: its path within the client -> the file."""
    found = {path.relative_to(ROOM).as_posix(): path for path in ROOM.rglob("*.py")}
    assert len(found) > 50 and {"main.py", "wire/client.py", "commands/store.py"} <= found.keys(), sorted(found)
    return found


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in OF_THE_DAEMON | WITHOUT_DAEMON else node.module


def test_the_client_knows_of_the_daemon_only_its_tables_and_places():
    for where, path in files().items():
        for name in imported(path):
            if name.split(".")[0] == "cpersona_daemon":
                assert name in OF_THE_DAEMON | WITHOUT_DAEMON, f"{where} imports {name}"


def test_each_foreign_package_is_imported_only_where_it_is_needed():
    for where, path in files().items():
        for name in imported(path):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top != "cpersona_daemon":
                assert where in FOREIGN.get(top, ()), f"{where} imports {name}"


def modules_of(code, home):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(' '.join(sys.modules))"],
        env=home,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_neither_the_wire_nor_rich_nor_a_family(home):
    loaded = modules_of("from cpersona_cli.main import main\nassert main(['--help']) == 0", home)
    assert not loaded & {
        "rich",
        "numpy",
        "apsw",
        "msgspec",
        "msgpack",
        "cpersona_cli.wire.client",
        "cpersona_cli.commands.store",
        "cpersona_cli.commands.recall",
    }


def test_a_plain_recall_loads_no_rich_and_nothing_of_the_daemon_but_tables(home, daemon):
    loaded = modules_of("from cpersona_cli.main import main\nassert main(['recall', 'anything']) == 0", home)
    assert not loaded & {"rich", "numpy", "apsw", "msgspec", "asyncio"}
    assert not loaded & {
        "typer",
        "typing",
        "dataclasses",
        "re",
        "json",
        "datetime",
        "msgpack",
        "hashlib",
        "socket",
        "struct",
        "importlib",
        "pathlib",
        "enum",
        "functools",
    }
    assert {name for name in loaded if name.startswith("cpersona_daemon")} <= OF_THE_DAEMON


def test_each_word_that_a_person_types_has_a_file_of_its_name():
    words = {path.stem for path in (ROOM / "commands").glob("*.py") if not path.name.startswith("_")}
    assert words == {catalogue.module(name) for name in catalogue.ENTRIES}
    for name in catalogue.ENTRIES:
        assert {command.path[0] for command in catalogue.declared(name)} == {name}
