"""History as memories. Contract: git.hooks, git.paths."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import pytest
from git_kit import Repo


def history(repo: Repo, count: int) -> list[str]:
    """Make ``count`` commits on a branch and a merge quickly, many with one message; return all ids, oldest first."""
    stream = ["feature done", "reset refs/heads/main"]
    for n in range(count):
        message = "wip" if n % 5 == 0 else f"Change number {n}"
        stream.append(
            f"commit refs/heads/main\nmark :{n + 1}\nauthor A <a@x> {1_700_000_000 + n} +0100\ncommitter A <a@x> "
            f"{1_700_000_000 + n} +0100\n"
            f"data {len(message)}\n{message}\n"
            + (f"from :{n}\n" if n else "")
            + f"M 644 inline f{n % 7}\ndata {len(str(n))}\n{n}\n"
        )
    stream.append(
        f"commit refs/heads/main\nmark :{count + 1}\nauthor A <a@x> 1800000000 +0000\ncommitter A <a@x> 1800000000 "
        f"+0000\ndata 5\nmerge\n"
        f"from :{count}\nmerge :{count // 2}\nM 644 inline merged\ndata 1\nx\n"
    )
    repo.run("git", "fast-import", "--quiet", input="\n".join(stream) + "\ndone\n")
    return repo.ids("main")


def test_history_is_noted_oldest_first_once(repo):
    ids = history(repo, 300)
    done = repo.cpersona("git", "backfill", check=False)
    assert done.stdout == "stored\t301\nskipped\t0\nrejected\t0\n" and done.stderr == ""
    notes = repo.notes()
    assert sorted(n["metadata"]["commit"] for n in notes) == sorted(ids) and len(notes) == 301
    assert notes[0]["metadata"]["commit"] == ids[0] and notes[0]["timestamp"] == "2023-11-14T23:13:20+01:00"
    merge = next(n for n in notes if n["metadata"]["commit"] == ids[-1])
    assert len(merge["metadata"]["parents"]) == 2 and merge["metadata"]["paths"] == ["merged"]
    again = repo.cpersona("git", "backfill", "--json")
    assert json.loads(again.stdout) == {"ok": True, "commits": 301, "stored": 0, "skipped": 301, "rejected": 0}


def test_a_commit_is_found_by_a_path_that_it_changed(repo):
    target = repo.commit("Let a lease end where it should", "lib/leases/expiry.py")
    repo.commit("Count leases anew", "lib/leases/count.py")
    repo.commit("Say what expiry means", "docs/words.md")
    # The note that an earlier version made of it, which listed no paths.
    before = [
        f"Let a lease end where it should\n\ncommit {target}",
        "--id",
        f"git:{target}:{target}",
        "--channel",
        "git",
    ]
    repo.cpersona("store", *before, "--metadata", json.dumps({"commit": target, "paths": ["lib/leases/expiry.py"]}))
    assert repo.cpersona("git", "backfill").stdout == "stored\t2\nskipped\t0\nrejected\t0\nupdated\t1\n"
    for question in ("expiry.py", "leases/expiry.py", "lib/leases/expiry.py", "what was lib/leases/expiry.py about"):
        best = json.loads(repo.cpersona("recall", question, "--json").stdout)["messages"][-1]
        assert best["content"].endswith(target), question
    # The word itself: what says it comes before what has it in a path.
    assert "docs/words.md" in json.loads(repo.cpersona("recall", "expiry", "--json").stdout)["messages"][-1]["content"]


def test_a_range_a_branch_and_a_batch(repo):
    ids = history(repo, 20)
    repo.git("branch", "dev", ids[9])
    assert "stored\t5\n" in repo.cpersona("git", "backfill", f"{ids[4]}..dev", "--batch", "b").stdout
    assert {n["source"]["branch"] for n in repo.notes()} == {"dev"}
    assert "deleted_memories\t5" in repo.cpersona("undo", "b").stdout
    assert "stored\t21\n" in repo.cpersona("git", "backfill", "--all").stdout
    assert repo.cpersona("git", "backfill", "nowhere", check=False).returncode == 1
    assert repo.cpersona("git", "backfill", "--all", "dev", check=False).returncode == 2


def test_single_commits_are_noted_by_any_name_that_git_knows(repo):
    ids = history(repo, 6)
    repo.git("tag", "-a", "-m", "t", "v1", ids[2])
    assert repo.cpersona("git", "note", "main").stdout == f"{ids[-1]}\tstored\tmem:1\n"
    done = repo.cpersona("git", "note", "v1", "main~1", "main")
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [
        [ids[2], "stored"],
        [repo.git("rev-parse", "main~1"), "stored"],
        [ids[-1], "skipped"],
    ]
    assert repo.cpersona("git", "note", "v9", check=False).returncode == 1
    repo.cpersona("daemon", "stop")
    queued = repo.cpersona("git", "note", ids[0], "--queue", "--json")
    assert json.loads(queued.stdout)["result"] == "queued" and ids[0] in repo.noted()


def test_the_hook_and_history_make_one_note_of_one_commit(repo):
    history(repo, 3)
    repo.git("checkout", "-q", "main")
    repo.cpersona("git", "install")
    id = repo.commit("by the hook")
    assert "skipped\t1\n" in repo.cpersona("git", "backfill").stdout
    assert repo.noted().count(id) == 1
    clone = Repo(repo.path.parent / "clone", repo.environ)
    repo.git("clone", "-q", ".", str(clone.path))
    assert "stored\t0\n" in clone.cpersona("git", "backfill").stdout


def started(repo: Repo, own_session: bool = False) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "git", "backfill"],
        cwd=repo.path,
        env=repo.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_session,
    )


def until_stored(repo: Repo, process: subprocess.Popen, rows: int) -> None:
    with closing(sqlite3.connect(repo.environ["CPERSONA_DB_PATH"], timeout=60)) as conn:
        while process.poll() is None and conn.execute("SELECT count(*) FROM memories").fetchone()[0] < rows:
            pass


def test_a_backfill_that_is_interrupted_says_what_was_committed_and_goes_on_when_run_again(repo):
    ids = history(repo, 3_000)
    assert repo.notes() == []  # and the daemon runs
    process = started(repo)
    until_stored(repo, process, 50)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    with closing(sqlite3.connect(repo.environ["CPERSONA_DB_PATH"])) as conn:
        ((kept,),) = conn.execute("SELECT count(*) FROM memories").fetchall()
    assert said == (
        f"cpersona git backfill: ended early: {kept:,} stored, 0 skipped, 0 rejected of 3,001 commits; run it "
        f"again, what is noted already is skipped\n"
    )
    totals = json.loads(repo.cpersona("git", "backfill", "--json").stdout)
    assert (totals["stored"], totals["skipped"], totals["rejected"]) == (len(ids) - kept, kept, 0)


def lock(conn: sqlite3.Connection) -> None:
    """Take the write lock from a daemon that commits all the time: SQLite's own wait sleeps while it is free."""
    while not conn.in_transaction:
        with suppress(sqlite3.OperationalError):
            conn.execute("BEGIN IMMEDIATE")


def test_a_backfill_whose_answers_do_not_come_says_the_least(repo):
    history(repo, 9_000)
    assert repo.notes() == []
    with closing(sqlite3.connect(repo.environ["CPERSONA_DB_PATH"], isolation_level=None, timeout=0)) as other:
        process = started(repo)
        until_stored(repo, process, 50)
        lock(other)  # so that it cannot come to its end before the signal does
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
        ((kept,),) = other.execute("SELECT count(*) FROM memories").fetchall()
        other.execute("ROLLBACK")
    least = re.search(r"ended early: at least ([\d,]+) stored", said)
    assert (
        process.returncode == 130
        and out == ""
        and least
        and int(least[1].replace(",", "")) <= kept
        and "is not known" in said
    )


def test_the_ctrl_c_of_a_terminal_which_git_gets_too_is_an_interrupt_and_no_failure(repo):
    history(repo, 3_000)
    assert repo.notes() == []
    process = started(repo, own_session=True)
    until_stored(repo, process, 1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.count("\n") == 1 and "ended early: " in said and "at least" not in said


def test_messages_that_are_cut_are_counted_and_keep_their_id(repo):
    history(repo, 3)
    repo.git("checkout", "-q", "main")
    long = "word " * 5_000
    id = repo.commit("subject", "f", "-m", long)
    done = repo.cpersona("git", "backfill", check=False)
    assert done.stdout == "stored\t5\nskipped\t0\nrejected\t0\ncut\t1\n"
    note = next(n for n in repo.notes() if n["metadata"]["commit"] == id)
    assert note["content"].endswith(f"\n\ncommit {id}") and note["metadata"]["message_length"] == len(
        f"subject\n\n{long}".strip()
    )
    again = repo.cpersona("git", "note", id)
    assert (
        f"the message of {id[:12]} was cut: kept 15,000 of {note['metadata']['message_length']:,} characters"
        in again.stderr
    )
    # What is noted already is not read again.
    assert "cut" not in json.loads(repo.cpersona("git", "backfill", "--json").stdout)


def test_a_smaller_limit_of_texts_leaves_a_note_its_id(repo):
    repo.commit("subject", "f", "-m", "word " * 200)
    repo.environ["CPERSONA_MAX_CONTENT_LENGTH"] = "300"
    assert "cut\t1\n" in repo.cpersona("git", "backfill").stdout
    (note,) = repo.notes()
    assert note["content"].endswith(f"\n\ncommit {repo.ids()[0]}") and len(note["content"]) <= 300 and "cut" not in note


def test_history_is_read_with_one_look_for_its_root(repo, tmp_path):
    history(repo, 50)
    real = shutil.which("git")
    (tmp_path / "git").write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\nexec {real} "$@"\n')
    (tmp_path / "git").chmod(0o755)
    repo.cpersona("git", "backfill", env={"PATH": f"{tmp_path}:{repo.environ['PATH']}"})
    assert (tmp_path / "calls").read_text().split().count("rev-list") == 1  # the root


def test_a_branch_without_a_commit_is_said_to_have_none(repo):
    done = repo.cpersona("git", "backfill", check=False)
    assert done.returncode == 1 and "there is no commit on this branch yet" in done.stderr
    assert "bad revision" in repo.cpersona("git", "backfill", "nowhere", check=False).stderr
