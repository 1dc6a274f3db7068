"""History as memories. Contract: issue "A tool to live in", Git: progress, resumable, idempotent."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from git_kit import Repo


def history(repo: Repo, count: int) -> list[str]:
    """Make ``count`` commits on a branch and a merge quickly, many with one message; return all ids, oldest first."""
    stream = ["feature done", "reset refs/heads/main"]
    for n in range(count):
        message = "wip" if n % 5 == 0 else f"Change number {n}"
        stream.append(f"commit refs/heads/main\nmark :{n + 1}\nauthor A <a@x> {1_700_000_000 + n} +0100\ncommitter A <a@x> {1_700_000_000 + n} +0100\n"
                      f"data {len(message)}\n{message}\n" + (f"from :{n}\n" if n else "") + f"M 644 inline f{n % 7}\ndata {len(str(n))}\n{n}\n")
    stream.append(f"commit refs/heads/main\nmark :{count + 1}\nauthor A <a@x> 1800000000 +0000\ncommitter A <a@x> 1800000000 +0000\ndata 5\nmerge\n"
                  f"from :{count}\nmerge :{count // 2}\nM 644 inline merged\ndata 1\nx\n")
    repo.run("git", "fast-import", "--quiet", input="\n".join(stream) + "\ndone\n")
    return repo.ids("main")


def test_history_is_noted_oldest_first_once(repo):
    ids = history(repo, 300)
    done = repo.cpersona("git", "backfill")
    assert done.stdout == "stored\t301\nskipped\t0\nrejected\t0\n" and done.stderr == ""
    notes = repo.notes()
    assert sorted(n["metadata"]["commit"] for n in notes) == sorted(ids) and len(notes) == 301
    assert notes[0]["metadata"]["commit"] == ids[0] and notes[0]["timestamp"] == "2023-11-14T23:13:20+01:00"
    merge = next(n for n in notes if n["metadata"]["commit"] == ids[-1])
    assert len(merge["metadata"]["parents"]) == 2 and merge["metadata"]["paths"] == ["merged"]
    again = repo.cpersona("git", "backfill", "--json")
    assert json.loads(again.stdout) == {"ok": True, "commits": 301, "stored": 0, "skipped": 301, "rejected": 0}


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
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [[ids[2], "stored"], [repo.git("rev-parse", "main~1"), "stored"], [ids[-1], "skipped"]]
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


def test_a_backfill_that_is_interrupted_says_how_far_it_came_and_goes_on_when_run_again(repo):
    ids = history(repo, 300)
    assert repo.notes() == []   # and the daemon runs
    with closing(sqlite3.connect(repo.environ["CPERSONA_DB_PATH"], isolation_level=None, timeout=60)) as other:
        process = subprocess.Popen([sys.executable, "-m", "cpersona_cli", "git", "backfill"], cwd=repo.path, env=repo.environ, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while process.poll() is None and other.execute("SELECT count(*) FROM memories").fetchone()[0] < 50:
            pass
        other.execute("BEGIN IMMEDIATE")   # so that it cannot come to its end before the signal does
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
        other.execute("ROLLBACK")
    if process.returncode == 0:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == 130 and out == "" and "ended early" in said and "of 301 commits" in said
    totals = json.loads(repo.cpersona("git", "backfill", "--json").stdout)
    assert totals["stored"] + totals["skipped"] == len(ids) and totals["skipped"] >= 50 and totals["rejected"] == 0
