"""The notes of the commits that touched a file or a line of it. Contract: git.blame."""

from __future__ import annotations

import json

import pytest
from git_kit import Repo

from cpersona_cli.git.touching import place_of


@pytest.mark.parametrize(
    "text, place",
    [
        ("there", ("there", None)),
        ("there:7", ("there", 7)),
        ("there:7:12", ("there", 7)),
        ("so:3", ("so:3", None)),
        ("so:3:9", ("so:3", 9)),
        ("gone.py", ("gone.py", None)),
        ("gone.py:7", ("gone.py", 7)),
        (":7", (":7", None)),
        ("there:", ("there:", None)),
        ("there:x", ("there:x", None)),
        ("there:12345678901", ("there:12345678901", None)),
    ],
)
def test_a_place_is_a_file_and_a_line_unless_a_file_is_called_so(tmp_path, monkeypatch, text, place):
    monkeypatch.chdir(tmp_path)
    for name in ("there", "so:3"):
        (tmp_path / name).write_text("")
    assert place_of(text) == place


def blamed(repo: Repo, *words: str) -> list[str]:
    """The commits of the notes that a file or line has, newest first."""
    return [row["commit"] for row in json.loads(repo.cpersona("git", "blame-note", *words, "--json").stdout)["notes"]]


def test_the_commits_of_a_file_and_of_a_line_are_shown_newest_first_through_renames(repo):
    path = repo.path / "src" / "old name.py"
    path.parent.mkdir()
    path.write_text("one\ntwo\nthree\nfour\nfive\n")
    begun = repo.commit("Begin", "src/words")
    path.write_text("one\ntwo\n3\nfour\nfive\n")
    changed = repo.commit("Write three as a number", "src/words")
    repo.git("mv", "src/old name.py", "src/it's.py")
    moved = repo.commit("Move it", "src/words")
    other = repo.commit("Do something else", "src/words")
    repo.cpersona("git", "backfill")
    assert blamed(repo, "src/it's.py") == [moved, changed, begun]
    assert blamed(repo, "src/old name.py") == [moved, changed, begun]  # a file that is gone has a history too
    assert blamed(repo, "src/it's.py:3") == [changed, begun]
    assert blamed(repo, "src/it's.py:1") == [begun]
    assert blamed(repo, "src")[0] == other
    # A line is where it lies now, and here is where one stands.
    (repo.path / "src" / "it's.py").write_text("new\none\ntwo\n3\nfour\nfive\n")
    assert blamed(Repo(repo.path / "src", repo.environ), "it's.py:4") == [changed, begun]
    plain = repo.cpersona("git", "blame-note", "src/it's.py", "-n", "1")
    assert plain.stdout.startswith(f"{moved[:12]}\t") and "\tMove it\\n\\nfiles: " in plain.stdout
    assert plain.stderr == "left out: 2 older notes; -n 3 shows all\n"
    whole = repo.cpersona("git", "blame-note", "src/it's.py", "--format", "<{commit}>{content}", "-0").stdout.split(
        "\0"
    )
    assert len(whole) == 4 and whole[0].startswith(f"<{moved[:12]}") and ">Move it\n\nfiles: " in whole[0]
    columns = repo.cpersona("git", "blame-note", "src/it's.py", "--fields", "ref,commit").stdout.splitlines()
    assert [row.split("\t")[1][:12] for row in columns] == [commit[:12] for commit in (moved, changed, begun)]
    cut = repo.cpersona("git", "blame-note", "src/it's.py", "--max-chars", "4", "--format", "{content}")
    assert cut.stdout == "Move\n" and "--max-chars left" in cut.stderr

    said = {
        "src/it's.py:1": "line 1 of src/it's.py is not committed yet",
        "src/it's.py:99": "file src/it's.py has only 6 lines",
        "src/it's.py:0": "src/it's.py has no line 0; lines count from 1",
        "src/none.py": "src/none.py was touched by no commit that led to HEAD; give a file as its path from here",
        "src/none.py:3": "src/none.py is no file here, so it has no line 3; without the line its history may be found",
        "fresh": "fresh is not committed yet; give a file as its path from here",
    }
    (repo.path / "fresh").write_text("x\n")
    for place, reason in said.items():
        done = repo.cpersona("git", "blame-note", place, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"cpersona: {reason}\n"), place

    # What was committed since has no note yet.
    late = repo.commit("Come late", "src/it's.py")
    done = repo.cpersona("git", "blame-note", "src/it's.py", "--json")
    assert json.loads(done.stdout)["without_note"] == [late]
    assert "no note yet: 1 of the 4 commits; `cpersona git backfill` notes all of history" in done.stderr
    done = repo.cpersona("git", "blame-note", "src/it's.py:7", check=False)
    assert (done.returncode, done.stdout) == (3, "") and "no note yet of the 1 commit that touched" in done.stderr


def test_a_line_of_a_file_with_an_odd_former_name_has_a_history(repo):
    odd = 'a "quoted"\tö \\ name'
    (repo.path / odd).write_text("one\n")
    begun = repo.commit("Begin")
    repo.git("mv", odd, "plain")
    repo.commit("Name it plainly")
    repo.cpersona("git", "backfill")
    assert blamed(repo, "plain:1") == [begun]


def test_outside_of_a_repository_it_says_where_to_run_it(repo):
    done = Repo(repo.path.parent, repo.environ).cpersona("git", "blame-note", "work", check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "run it inside a repository" in done.stderr
