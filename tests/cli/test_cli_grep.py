"""Lines as they are written, and those that an expression matches. Contract: grep.written, output.shapes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import scanning


@pytest.fixture(scope="module")
def rows(shared_daemon):
    """Four rows, the newest last; their order is that of their ids within a second."""

    def store(content, **more):
        shared_daemon.call("store", {"agent_id": "default", "content": content, **more})

    store("first line\nthe rate_limit = 5, rate_limit = 6\r\nlast", id="cfg", source={"type": "User", "id": "user:1"})
    store("RATE_LIMIT is spoken of, and 100% of it", project_id="p")
    store("a" * 40 + "b", channel="c")
    shared_daemon.call("archive_episode", {"agent_id": "default", "summary": "of limits", "keywords": "rate_limit"})
    shared_daemon.call("store", {"agent_id": "other", "content": "rate_limit of another"})


@pytest.mark.parametrize(
    "words, said",
    [
        ("rate_limit --project z", "mem:1\t2\tthe rate_limit = 5, rate_limit = 6\nep:1\t2\trate_limit\n"),
        ("-i rate_limit -l --source-id user:", "mem:1\n"),
        ("-i RATE_LIMIT --project p --fields ref,match", "mem:2\tRATE_LIMIT\nmem:1\trate_limit\nep:1\trate_limit\n"),
        ("% --fields ref", "mem:2\n"),
        ("-E ^[f-t]*a[f-t]*$ --fields ref,line,text", "mem:1\t3\tlast\n"),
        ("-E =.[0-9].*6.?$ --format {id}/{match}", "cfg/= 5, rate_limit = 6\r\n".replace("\r", "\\r")),
        ("rate_limit --agent other -l", "mem:4\n"),
        ("a -n 1 -l", "mem:3\n"),
        ("-q first", ""),
        ("first --max-chars 5", "mem:1\t1\tfirst\n"),
    ],
)
def test_lines_are_found_as_they_are_written_the_newest_row_first(shared_cli, rows, words, said):
    done = shared_cli(["grep", *words.split()])
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(said.splitlines()), done.stderr
    memories = [line for line in done.stdout.splitlines() if line.startswith("mem")]
    assert memories == [line for line in said.splitlines() if line.startswith("mem")]


def test_nothing_found_is_told_from_a_failure_by_its_status(shared_cli, rows):
    for words, status, said in (
        (["nowhere"], 3, "no line"),
        (["Rate_limit"], 3, "no line"),
        (["-q", "nowhere"], 3, ""),
        ([""], 2, "is empty"),
        (["-E", "("], 2, "without -E it is looked for as it is written"),
        (["a\nb"], 2, "line break"),
        (["x" * 1001], 1, "1000"),
    ):
        done = shared_cli(["grep", *words])
        assert (done.returncode, done.stdout) == (status, "") and said in done.stderr, done.stderr


def test_json_is_one_object_with_the_places_of_the_matches(shared_cli, rows):
    told = json.loads(shared_cli(["grep", "rate_limit = 6", "--json"]).stdout)
    (line,) = told["matches"]
    assert (line["ref"], line["id"], line["line"], told["rows"], told["more"]) == ("mem:1", "cfg", 2, 1, False)
    assert line["text"][line["start"] : line["end"]] == "rate_limit = 6"
    assert json.loads(shared_cli(["grep", "first", "--json=ref,match"]).stdout)["matches"] == [
        {"ref": "mem:1", "match": "first"}
    ]


def test_an_expression_without_an_end_costs_its_caller_alone_and_not_for_ever(
    shared_cli, shared_daemon, module_home, rows
):
    hurried = "from cpersona_cli.commands import grep; grep.LINE_SECONDS = 0.1"
    main = "from cpersona_cli.main import main; import sys; sys.exit(main())"
    for number in range(2):
        done = subprocess.run(
            [sys.executable, "-c", f"{hurried}; {main}", "grep", "-E", "(a+)+$"],
            env=module_home,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 1 and "mem:3" in done.stderr, done.stderr
        assert ("not looked through" in done.stderr) == (number == 0)
        for more in range(2):
            shared_daemon.call("store", {"agent_id": "default", "content": f"{more} " + "a" * 40 + "b"})


def test_the_matched_part_is_marked_on_a_terminal_and_a_long_line_shown_around_it(shared_terminal, shared_daemon, rows):
    shared_daemon.call("store", {"agent_id": "default", "content": "x " * 200 + "NEEDLE here " + "y " * 100})
    said, status = shared_terminal(["grep", "NEEDLE"], 60)
    assert status == 0 and said.count("\n") == 1 and "\x1b[1;33mNEEDLE\x1b[0m here y" in said and "… x" in said
    plain, _ = shared_terminal(["grep", "NEEDLE"], 60, NO_COLOR="1")
    assert "NEEDLE here" in plain and "\x1b" not in plain


def test_pages_go_on_where_the_last_one_ended(shared_daemon, module_home, rows, monkeypatch):
    import apsw

    monkeypatch.setattr(scanning, "LOOKED_AT", 2)
    conn = apsw.Connection(module_home["CPERSONA_DB_PATH"])
    seen, after = [], None
    while True:
        page = scanning.page(conn, MEMORY, Scope("default"), "", after)
        seen += [row.id for row in page.rows]
        after = page.next
        if after is None:
            break
    assert seen == [i for (i,) in conn.execute("SELECT id FROM memories WHERE agent_id = 'default' ORDER BY id DESC")]
    conn.close()
