"""Directories of notes in the store: again, changed, gone. Contract: import.markdown, import.prune, notes.upsert."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from cli_kit import runner
from powers import heed_modes, needs_modes

PARAGRAPH = "word " * 250
LONG = f"# Guide\n\nintro\n\n## Install\n\n{PARAGRAPH}\n\n## Use\n\nrun it"


def test_a_second_run_stores_what_is_new_updates_what_changed_and_skips_the_rest(notes):
    notes.write("a.md", "# A\n\nalpha")
    notes.write("sub/b.md", "---\ntags: [x]\ndate: 2024-01-02\n---\nbeta")
    assert notes.bring() == {
        "ok": True,
        "files": 2,
        "stored": 2,
        "updated": 0,
        "skipped": 0,
        "rejected": 0,
        "deleted": 0,
    }
    first = notes.rows()
    assert first[1]["timestamp"] == "2024-01-02T00:00:00+00:00" and first[1]["metadata"]["tags"] == ["x"]
    os.utime(notes.root / "a.md")
    notes.write("sub/b.md", "---\r\ntags: [x]\r\ndate: 2024-01-02\r\n---\r\nbeta\r\n")
    assert notes.counts() == (0, 0, 2, 0) and notes.rows() == first
    notes.write("a.md", "# A\n\nalpha anew")
    notes.write("sub/b.md", "---\ntags: [y]\n---\nbeta")
    notes.write("c.md", "gamma")
    assert notes.counts() == (1, 2, 0, 0)
    rows = notes.rows()
    assert [row["ref"] for row in rows[:2]] == [row["ref"] for row in first]
    assert [row["content"] for row in rows] == ["A\n\nalpha anew", "b\n\nbeta", "c\n\ngamma"]
    assert rows[1]["metadata"]["tags"] == ["y"] and rows[1]["timestamp"] != "2024-01-02T00:00:00+00:00"
    answer, _ = notes.connection.call("recall", {"agent_id": notes.agent, "query": "anew"})
    assert [row["content"] for row in answer["messages"]] == ["A\n\nalpha anew"]


def test_a_file_that_grows_has_sections_and_one_that_loses_some_loses_their_notes(notes):
    notes.write("a.md", "# Guide\n\nintro")
    notes.counts()
    notes.write("a.md", LONG)
    assert notes.counts() == (2, 0, 1, 0)
    assert list(notes.texts()) == ["a.md", "a.md#Guide > Install", "a.md#Guide > Use"]
    notes.write("a.md", LONG.replace("## Use", "## Usage"))
    assert notes.counts() == (1, 0, 2, 1)
    notes.write("a.md", "# Guide\n\nshort again")
    assert notes.counts() == (0, 1, 0, 2) and notes.texts() == {"a.md": "Guide\n\nshort again"}


def test_notes_of_a_file_that_is_gone_stay_until_they_are_pruned(notes):
    notes.write("a.md", "alpha")
    notes.write("b.md", LONG)
    notes.counts()
    notes.remove("b.md")
    done = notes.run()
    assert done.returncode == 0 and "kept, though their files are gone: 3 notes; --prune deletes them" in done.stderr
    assert notes.bring("--prune", "--dry-run")["deleted"] == 3 and len(notes.rows()) == 4
    refused = notes.run("--prune")
    assert refused.returncode == 2 and "add --yes" in refused.stderr and len(notes.rows()) == 4
    assert notes.counts("--prune", "--yes") == (0, 0, 1, 3)
    assert list(notes.texts()) == ["a.md"]


def test_a_renamed_file_and_two_that_change_places_lose_nothing(notes):
    notes.write("a.md", "# T\n\nthe text")
    notes.write("x.md", "# T\n\none")
    notes.write("y.md", "# T\n\ntwo")
    notes.counts()
    os.rename(notes.root / "a.md", notes.root / "b.md")
    assert notes.bring()["same_text"] == 1 and "a.md" in notes.texts()
    assert notes.counts("--prune", "--yes") == (1, 0, 2, 1) and notes.texts()["b.md"] == "T\n\nthe text"
    notes.write("x.md", "# T\n\ntwo")
    notes.write("y.md", "# T\n\nthree")
    notes.counts()
    assert sorted(notes.texts().values()) == ["T\n\nthe text", "T\n\nthree", "T\n\ntwo"]
    assert notes.counts() == (0, 0, 3, 0)


def test_of_two_files_with_one_text_the_other_has_it_when_the_first_is_gone(notes):
    notes.write("a.md", "# T\n\nthe text")
    notes.write("b.md", "# T\n\nthe text")
    assert notes.bring()["same_text"] == 1
    notes.write("a.md", "# T\n\nanother")
    assert notes.counts() == (1, 1, 0, 0)
    assert notes.texts() == {"a.md": "T\n\nanother", "b.md": "T\n\nthe text"}


def test_locked_notes_are_said_and_neither_changed_nor_deleted(notes):
    notes.write("a.md", "alpha")
    notes.write("b.md", "beta")
    notes.write("c.md", "gamma")
    notes.counts()
    refs = [notes.lock("a.md"), notes.lock("b.md")]
    notes.write("a.md", "changed")
    notes.remove("b.md")
    done = notes.run("--prune", "--yes")
    assert f"locked and kept as they are: {', '.join(refs)}; `cpersona unlock` frees them" in done.stderr
    assert notes.bring("--prune", "--yes")["kept_locked"] == refs
    assert set(notes.texts().values()) == {"a\n\nalpha", "b\n\nbeta", "c\n\ngamma"}


def test_another_directory_another_agent_and_other_rows_are_not_touched_by_prune(notes, tmp_path):
    notes.write("a.md", "alpha")
    (tmp_path / "elsewhere" / "docs").mkdir(parents=True)
    (tmp_path / "elsewhere" / "docs" / "a.md").write_text("others")
    notes.counts()
    notes.counts(what=str(tmp_path / "elsewhere" / "docs"))
    notes.cli(["store", "by hand", "--agent", notes.agent, "--id", "md:mine"])
    notes.cli(["import", "--markdown", str(notes.root), "--agent", f"{notes.agent}b"])
    notes.remove("a.md")
    notes.write("b.md", "beta")
    assert notes.counts("--prune", "--yes") == (1, 0, 0, 1)
    assert sorted(row["content"] for row in notes.rows()) == ["a\n\nothers", "b\n\nbeta", "by hand"]
    other = notes.connection.call("list_memories", {"agent_id": f"{notes.agent}b"})[0]["memories"]
    assert [row["content"] for row in other] == ["a\n\nalpha"]


@pytest.mark.parametrize("how", ["emptied", "blank"])
def test_a_directory_without_notes_deletes_nothing_by_itself(notes, how):
    notes.write("a.md", "alpha")
    notes.counts()
    notes.remove("a.md")
    if how == "blank":
        notes.write("a.md", "---\ntitle: T\n---\n\n")
    for words in ((), ("--prune", "--yes")):
        done = notes.run(*words)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and "kept of it: 1 note." in done.stderr
    assert len(notes.rows()) == 1


def test_a_file_that_cannot_be_read_is_said_and_its_note_is_not_gone(notes):
    notes.write("a.md", "alpha")
    notes.write("b.md", "beta")
    notes.counts()
    notes.write("b.md", b"caf\xe9")
    os.mkfifo(notes.root / "pipe.md")
    done = notes.run("--prune", "--yes")
    assert done.returncode == 1 and "unread\t2\n" in done.stdout
    assert f"cpersona import: {notes.root}/b.md is left out: it is no UTF-8 (byte 3)" in done.stderr
    assert "pipe.md is left out: a named pipe stands there" in done.stderr
    told = notes.bring("--prune", "--yes", status=1)
    assert not told["ok"] and [unread["file"] for unread in told["unread"]] == [
        f"{notes.root}/{n}.md" for n in ("b", "pipe")
    ]
    assert len(notes.rows()) == 2


@pytest.mark.parametrize("in_git", [False, True])
def test_a_directory_that_cannot_be_looked_into_keeps_its_notes(notes, module_home, in_git):
    needs_modes()
    if in_git:
        subprocess.run(["git", "init", "-q", notes.root], check=True)
    notes.write("a.md", "alpha")
    notes.write("sub/deeper/b.md", "beta")
    notes.counts()
    closed = notes.root / "sub"
    try:
        for mode in (0o000, 0o100, 0o400):
            closed.chmod(mode)
            done = runner(module_home, heed_modes)(
                ["import", "--markdown", str(notes.root), "--agent", notes.agent, "--prune", "--yes"]
            )
            assert len(notes.rows()) == 2, (oct(mode), done)
            assert in_git or (done.returncode == 1 and "Permission denied" in done.stderr)
    finally:
        closed.chmod(0o700)


def test_an_import_that_is_interrupted_says_what_was_stored(notes, module_home):
    for n in range(800):
        notes.write(f"{n}.md", f"the text of number {n}")
    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "import", "--markdown", str(notes.root), "--agent", notes.agent],
        env=module_home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with closing(sqlite3.connect(module_home["CPERSONA_DB_PATH"], timeout=60)) as conn:
        count = "SELECT count(*) FROM memories WHERE agent_id = ?"
        while process.poll() is None and not conn.execute(count, (notes.agent,)).fetchone()[0]:
            pass
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
        ((kept,),) = conn.execute(count, (notes.agent,)).fetchall()
    assert process.returncode == 130 and out == ""
    assert f"cpersona import: ended early: {kept:,} stored, 0 updated" in said and "of 800 notes; run it again" in said


def test_single_files_are_notes_of_the_directory_that_they_lie_in(notes):
    notes.write("a.md", "alpha")
    notes.write("b.md", "beta")
    assert notes.counts(what=str(notes.root / "a.md")) == (1, 0, 0, 0)
    assert notes.counts(str(notes.root / "b.md"), what=str(notes.root / "a.md")) == (1, 0, 1, 0)
    assert notes.counts() == (0, 0, 2, 0)
    notes.remove("b.md")
    assert notes.counts("--prune", "--yes", what=str(notes.root / "a.md")) == (0, 0, 1, 0) and len(notes.rows()) == 2


def test_the_axes_and_the_batch_are_those_that_were_asked_for(notes):
    notes.write("a.md", "alpha")
    notes.counts("--project", "p", "--channel", "c", "--batch", "monday")
    (row,) = notes.rows()
    assert (row["project_id"], row["channel"]) == ("p", "c")
    notes.write("b.md", "beta")
    assert notes.counts("--project", "p", "--batch", "tuesday") == (1, 0, 1, 0)
    assert "deleted_memories\t1" in notes.cli(["undo", "tuesday", "--agent", notes.agent]).stdout
    assert list(notes.texts()) == ["a.md"]


def test_a_section_of_more_than_a_memory_keeps_is_several(notes):
    notes.write("a.md", "# T\n\n" + "\n\n".join(f"{n} " + "word " * 60 for n in range(100)))
    told = notes.bring()
    assert told["stored"] == 2 and "cut" not in told
    assert list(notes.texts()) == ["a.md", "a.md# (2)"] and all(len(text) <= 16_000 for text in notes.texts().values())


def test_a_directory_of_basic_memory_brings_its_relations(notes):
    notes.write("a.md", "# A\n\n- [idea] words #tag\n- part_of [[B]]")
    assert notes.counts("--format", "basic-memory") == (1, 0, 0, 0)
    metadata = notes.rows()[0]["metadata"]
    assert metadata["relations"] == [{"type": "part_of", "target": "B"}] and metadata["tags"] == ["tag"]
    assert notes.counts("--format", "basic-memory") == (0, 0, 1, 0)


def test_what_a_pause_keeps_out_is_said(notes):
    notes.write("a.md", "alpha")
    notes.cli(["pause", "--session", "s"])
    done = notes.run("--session", "s")
    assert (
        "skipped\t1\n" in done.stdout and "paused\t1" in done.stdout and "`cpersona resume` keeps again" in done.stderr
    )
    assert notes.rows() == [] and notes.counts() == (1, 0, 0, 0)


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["--markdown", "none"], 1, "there is no file or directory 'none'"),
        (["--markdown", "empty"], 1, "there is no Markdown (.md, .markdown, .mdx) in 'empty'"),
        (["--markdown", "a.txt"], 1, "'a.txt' is no Markdown (.md, .markdown, .mdx); `cpersona store - < a.txt`"),
        (["--markdown", "-"], 2, "reads files and directories"),
        (["empty"], 1, "'empty' is a directory; `cpersona import --markdown empty` reads its Markdown files"),
        (["a.txt", "b.txt"], 2, "import reads one file, 2 are given; --markdown reads several"),
        (["a.txt", "--prune"], 2, "--prune goes with --markdown"),
        (["a.txt", "--agent", "a"], 2, "--agent goes with --markdown"),
        (["--markdown", "empty", "--watch", "--dry-run"], 2, "give one of them"),
        (["--markdown", "empty", "--watch", "--wait"], 2, "leave out --wait"),
        (["--markdown", "empty", "--keep-vectors"], 2, "leave out --keep-vectors"),
        (["--markdown", "empty", "--every", "1"], 2, "--every says how many seconds --watch waits"),
        (["--markdown", "empty", "--watch", "--prune"], 2, "add --yes"),
        (["--markdown", "empty", "--agent", "a", "--to-agent", "b"], 2, "name two agents"),
        (["--format", "mem0", "a.txt"], 2, "the schema that the caller gives"),
        (["--format", "claude-memory", "empty"], 2, "plain Markdown"),
        (["--format", "none", "empty"], 2, "the formats are basic-memory"),
    ],
)
def test_what_cannot_be_read_or_go_together_says_in_one_line_what_to_do(home, run_cli, words, status, said):
    os.mkdir(f"{home['HOME']}/empty")
    with open(f"{home['HOME']}/a.txt", "w") as handle:
        handle.write("words")
    done = run_cli(["import", *words])
    assert (done.returncode, done.stdout) == (status, "") and done.stderr.count("\n") == 1, done
    assert said in done.stderr and not os.path.exists(home["CPERSONA_DB_PATH"])


def test_a_dry_run_of_notes_makes_no_database(home, run_cli):
    with open(f"{home['HOME']}/a.md", "w") as handle:
        handle.write("words")
    done = run_cli(["import", "--markdown", "a.md", "--dry-run", "--json"])
    assert json.loads(done.stdout)["stored"] == 1 and not os.path.exists(home["CPERSONA_DB_PATH"])


def test_a_path_with_spaces_is_quoted_where_a_command_is_told(home, run_cli):
    path = f"{home['HOME']}/my notes"
    os.mkdir(path)
    assert f"`cpersona import --markdown {shlex.quote(path)}`" in run_cli(["import", path]).stderr
