"""One commit is one memory, whatever rewrites it. Contract: git.notes."""

from __future__ import annotations

import json
import os
import subprocess
import threading

import pytest
from git_kit import Repo


@pytest.fixture
def hooked(repo: Repo) -> Repo:
    repo.commit("root")
    repo.cpersona("git", "install")
    return repo


def test_a_commit_is_queued_without_a_daemon_and_kept_with_everything_that_names_it(hooked):
    hooked.commit("x", "ünïcode/ä b.txt")
    id = hooked.commit("Fix the race of two starts", "src/start.py")
    assert len(list(hooked.spool.glob("*.json"))) == 2 and not os.path.exists(
        hooked.environ["CPERSONA_DB_PATH"] + ".lock"
    )
    first, note = hooked.notes()
    root = hooked.ids()[0]
    assert note["msg_id"] == f"git:{root}:{id}" and note["agent_id"] == "default" and note["project_id"] == ""
    assert note["content"] == f"Fix the race of two starts\n\nfiles: src/start.py\n\ncommit {id}"
    source = note["source"]
    assert (source["type"], source["id"], source["repository"], source["branch"]) == (
        "Git",
        "work@main",
        "work",
        "main",
    )
    assert source["author"] == "A. U. Thor <author@example.org>" and source["time"] == note["timestamp"] == hooked.git(
        "log", "-1", "--format=%aI"
    )
    assert note["metadata"] == {
        "commit": id,
        "root": root,
        "parents": [hooked.git("rev-parse", "HEAD^")],
        "paths_total": 1,
        "paths": ["src/start.py"],
    }
    assert first["metadata"]["paths"] == ["ünïcode/ä b.txt"]


def test_commits_with_one_message_are_notes_of_their_own_and_are_found_by_id(hooked):
    ids = [hooked.commit("wip", f"f{n}") for n in range(3)]
    assert hooked.noted() == ids
    found = json.loads(hooked.cpersona("recall", ids[1], "--json").stdout)
    assert found["messages"][-1]["content"].endswith(ids[1])


def test_an_amended_commit_takes_the_place_of_the_old_one(hooked):
    hooked.commit("first try")
    hooked.git("commit", "-q", "--amend", "-m", "second try")
    hooked.git("commit", "-q", "--amend", "--no-edit", "--date", "2020-01-01T00:00:00Z")
    (note,) = hooked.notes()
    assert note["metadata"]["commit"] == hooked.ids()[-1] and note["content"].startswith("second try")
    hooked.git("commit", "-q", "--amend", "-m", "third try")
    assert hooked.noted() == [hooked.ids()[-1]]


def test_a_locked_note_stays_beside_the_new_one(hooked):
    old = hooked.commit("precious")
    (note,) = hooked.notes()
    hooked.cpersona("lock", f"mem:{note['id']}")
    hooked.git("commit", "-q", "--amend", "-m", "changed")
    assert hooked.noted() == [old, hooked.ids()[-1]]


def branches(repo: Repo) -> None:
    """Two branches that went apart: f with three commits of its own, main with one more."""
    repo.git("checkout", "-q", "-b", "f")
    for name in "abc":
        repo.commit(name)
    repo.git("checkout", "-q", "main")
    repo.commit("z")
    repo.git("checkout", "-q", "f")


@pytest.mark.parametrize("how", [(), ("--apply",)])
def test_a_rebase_replaces_every_note_once(hooked, how):
    branches(hooked)
    assert len(hooked.noted()) == 4
    hooked.git("rebase", "-q", *how, "main")
    assert sorted(hooked.noted()) == sorted(hooked.ids()[1:])
    assert {note["source"]["branch"] for note in hooked.notes()} == {"main", "f"}


@pytest.mark.parametrize(
    "plan",
    [
        "2s/pick/squash/;3s/pick/fixup/",
        "1s/pick/reword/",
        "2d",
        "1!G;h;$!d",
        "1a exec git commit -q --allow-empty -m by-hand",
    ],
)
def test_what_an_interactive_rebase_leaves_is_what_is_noted(hooked, plan):
    branches(hooked)
    before = hooked.ids()
    env = {"GIT_SEQUENCE_EDITOR": f"sed -i -e '/^#/d;/^$/d' -e '{plan}'", "GIT_EDITOR": "sed -i 1s/$/-reworded/"}
    if plan.startswith("1!"):
        env["GIT_SEQUENCE_EDITOR"] = 'sh -c \'grep pick "$1" | tac > "$1.x"; mv "$1.x" "$1"\' --'
    hooked.run("git", "rebase", "-q", "-i", "main", env=env)
    noted = set(hooked.noted())
    assert noted >= set(hooked.ids()[1:])
    # A commit that was dropped was not rewritten: its note stays, as it does when a branch is deleted.
    assert noted - set(hooked.ids()) <= ({before[2]} if plan == "2d" else set())


def test_a_rebase_that_is_given_up_leaves_the_notes_as_they_were(hooked):
    branches(hooked)
    before = hooked.noted()
    done = hooked.run("git", "rebase", "-i", "main", env={"GIT_SEQUENCE_EDITOR": "sed -i '2i exec false'"}, check=False)
    assert done.returncode != 0
    hooked.git("rebase", "--abort")
    assert hooked.noted() == before


def test_picks_reverts_and_conflicts_are_commits_like_others(hooked):
    branches(hooked)
    hooked.git("cherry-pick", "main")
    hooked.git("revert", "--no-edit", "HEAD")
    assert sorted(hooked.noted()) == sorted({*hooked.ids(), *hooked.ids("main")} - {hooked.ids()[0]})


def test_a_linked_work_tree_and_a_detached_head_are_the_same_repository(hooked):
    hooked.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(hooked.path.parent / "side", hooked.environ)
    id = side.commit("from the side")
    side.git("commit", "-q", "--amend", "-m", "again")
    side.git("checkout", "-q", "--detach")
    loose = side.commit("loose")
    notes = hooked.notes()
    assert [note["metadata"]["commit"] for note in notes] == [
        side.git("rev-parse", "HEAD^"),
        loose,
    ] and id not in hooked.noted()
    assert [(note["source"]["repository"], note["source"]["branch"]) for note in notes] == [
        ("work", "side"),
        ("work", ""),
    ]
    assert side.cpersona("git", "status").returncode == 0


def test_the_first_commit_of_an_empty_repository_is_its_root(repo):
    repo.cpersona("git", "install")
    id = repo.commit("begin")
    (note,) = repo.notes()
    assert note["msg_id"] == f"git:{id}:{id}" and note["metadata"]["paths"] == ["begin"]


def test_at_most_a_hundred_paths_are_kept_and_never_more_than_metadata_may_hold(hooked):
    for n in range(150):
        (hooked.path / f"file-{n:03}").write_text("x")
    hooked.commit("many short names")
    deep = hooked.path / ("d" * 200)
    deep.mkdir()
    for n in range(120):
        (deep / ("ä" * 90 + str(n))).write_text("x")
    hooked.commit("many long names")
    short, long = hooked.notes()
    assert (short["metadata"]["paths_total"], len(short["metadata"]["paths"])) == (151, 100)
    assert long["metadata"]["paths_total"] == 121 and 0 < len(long["metadata"]["paths"]) < 100


def test_a_long_message_keeps_the_id_at_its_end(hooked):
    id = hooked.commit("subject", "f", "-m", "word " * 5_000)
    (note,) = hooked.notes()
    assert note["content"].endswith(f"\n\ncommit {id}") and len(note["content"]) < 16_000


@pytest.mark.parametrize("harm", ["directory", "program", "state"])
def test_a_commit_hook_never_fails_the_commit_when_the_store_is_down(hooked, harm):
    """The complaint: a commit hook that takes a second, fails the commit when the store is down, or stores a rebase ten
    times.
    """
    env = {}
    if harm == "directory":
        env["CPERSONA_DB_PATH"] = os.path.join(hooked.environ["HOME"], ".gitconfig", "t.db")
    elif harm == "program":
        hook = hooked.hook("post-commit")
        hook.write_text(hook.read_text().replace(f"[ -x {os.path.dirname(os.sys.executable)}", "[ -x /nowhere"))
    else:
        (hooked.path / ".git" / "cpersona.json").write_text("{damaged")
    (hooked.path / "f").write_text("x")
    hooked.git("add", "-A")
    done = hooked.run("git", "commit", "-q", "-m", "goes through", env=env)
    assert hooked.git("log", "-1", "--format=%s") == "goes through"
    assert done.stderr.count("\n") == (0 if harm == "state" else 1) and (harm == "state" or "not noted" in done.stderr)


def test_a_hook_needs_no_path_no_terminal_and_no_settings_of_a_shell(hooked):
    """A GUI starts git with next to nothing."""
    (hooked.path / "f").write_text("x")
    hooked.git("add", "-A")
    bare = {"HOME": hooked.environ["HOME"], "PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "commit", "-q", "-m", "from a window"], cwd=hooked.path, env=bare, check=True, stdin=subprocess.DEVNULL
    )
    default = os.path.join(hooked.environ["HOME"], ".local", "share", "cpersona", "cpersona.db.spool")
    assert len(os.listdir(default)) == 1


def test_what_install_is_told_is_kept_and_nothing_else(repo):
    repo.commit("root")
    told = repo.cpersona("git", "install", "--agent", "team", "--project", "p")
    assert "CPERSONA_DB_PATH is set here" in told.stderr
    assert set(json.loads((repo.path / ".git" / "cpersona.json").read_text())) == {"agent", "project", "root"}
    id = repo.commit("for the team")
    (note,) = repo.notes("team")
    assert (note["metadata"]["commit"], note["project_id"]) == (id, "p")


@pytest.mark.stress
def test_forty_hooks_eight_writers_and_a_backup_at_once_lose_nothing(hooked, run_cli):
    trees = []
    for n in range(40):
        hooked.git("worktree", "add", "-q", "--detach", f"../t{n}")
        trees.append(Repo(hooked.path.parent / f"t{n}", hooked.environ))
    made, stored, failures, backup = [], [], [], os.path.join(hooked.environ["HOME"], "b")

    def commits(tree):
        made.append(tree.commit(f"{tree.path.name} number", tree.path.name))

    def writer(number):
        for n in range(4):
            done = run_cli(["store", f"writer {number} says {n}", *(["--queue"] if number % 2 else [])])
            (stored if done.returncode == 0 else failures).append(f"writer {number} says {n}")

    threads = [threading.Thread(target=commits, args=(tree,)) for tree in trees] + [
        threading.Thread(target=writer, args=(n,)) for n in range(8)
    ]
    threads.append(
        threading.Thread(target=lambda: failures.extend([b for b in [run_cli(["backup", backup])] if b.returncode]))
    )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and len(made) == 40 and run_cli(["restore", backup, "--check"]).returncode == 0
    assert sorted(hooked.noted()) == sorted(made)
    assert {f"writer {n} says {m}" for n in range(8) for m in range(4)} <= {
        line.split("\t")[-1] for line in run_cli(["list", "-n", "500"]).stdout.splitlines()
    }
