"""Every way in which a commit comes about here leaves one note of it, and what others made leaves none.

Contract: git.notes.
"""

from __future__ import annotations

import subprocess

import pytest
from git_kit import Repo


def clash(repo: Repo, name: str) -> None:
    """Make a branch ``name`` and a commit here that change one line differently, and begin to bring them together."""
    repo.git("checkout", "-q", "-b", name)
    repo.commit(f"{name} there", "clash")
    repo.git("checkout", "-q", "main")
    repo.commit(f"{name} here", "clash")


def other(repo: Repo, *messages: str) -> None:
    """Let somebody else, who has no hooks, commit to a clone ``../other``."""
    theirs = Repo(repo.path.parent / "other", repo.environ)
    if theirs.path.exists():
        theirs.git("pull", "-q", "--ff-only")
    else:
        repo.git("clone", "-q", ".", str(theirs.path))
    for message in messages:
        theirs.commit(message)


def merge(repo):
    clash(repo, "m")
    repo.git("merge", "-q", "-X", "ours", "--no-edit", "m")


def merge_no_ff(repo):
    repo.git("checkout", "-q", "-b", "x")
    repo.commit("on x")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", "x")


def octopus(repo):
    for name in ("o1", "o2"):
        repo.git("checkout", "-q", "-b", name, "main")
        repo.commit(f"on {name}")
    repo.git("checkout", "-q", "main")
    repo.git(
        "merge", "-q", "--no-edit", "o1", "o2"
    )  # git moves on to o1 first: what stood here is no parent of the merge


def merge_committed_by_hand(repo):
    clash(repo, "h")
    repo.git("merge", "-q", "-X", "ours", "--no-commit", "h")
    repo.git("commit", "-q", "--no-edit")


def merge_continued(repo):
    clash(repo, "c")
    repo.run("git", "merge", "-q", "c", check=False)
    repo.git("add", "clash")
    repo.git("merge", "--continue")


def squash(repo):
    repo.git("checkout", "-q", "-b", "s")
    repo.commit("on s")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--squash", "s")
    repo.git("commit", "-q", "-m", "squashed")


def pull_with_a_merge(repo):
    other(repo, "theirs")
    repo.commit("mine")
    repo.git("pull", "-q", "--no-rebase", "--no-edit", "../other", "main")


def apply_mail(repo):
    repo.git("checkout", "-q", "-b", "a")
    repo.commit("patch one")
    repo.commit("patch two")
    patches = repo.git("format-patch", "-q", "--stdout", "main")
    repo.git("checkout", "-q", "main")
    repo.commit("between")
    repo.run("git", "am", "-q", input=patches + "\n")


def pick(repo):
    repo.git("checkout", "-q", "-b", "p")
    repo.commit("pick one")
    repo.commit("pick two")
    repo.git("checkout", "-q", "main")
    repo.commit("between")
    repo.git("cherry-pick", "main..p")


def pick_edited(repo):
    repo.git("checkout", "-q", "-b", "p")
    repo.commit("pick one")
    repo.git("checkout", "-q", "main")
    repo.commit("between")
    repo.git("cherry-pick", "-e", "p")


def pick_continued(repo):
    clash(repo, "pc")
    repo.run("git", "cherry-pick", "pc", check=False)
    (repo.path / "clash").write_text("both\n")
    repo.git("add", "clash")
    repo.git("cherry-pick", "--continue")


def revert(repo):
    repo.commit("wrong")
    repo.commit("wrong too")
    repo.git("revert", "--no-edit", "HEAD~2..HEAD")


def revert_edited(repo):
    repo.commit("wrong")
    repo.git("revert", "-e", "HEAD")


def no_verify(repo):
    repo.write_hook("pre-commit", "#!/bin/sh\nexit 1\n")
    repo.commit("past the check", None, "--no-verify")


def in_a_work_tree(repo):
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(repo.path.parent / "side", repo.environ)
    side.commit("at the side")
    repo.commit("on main")
    side.git("merge", "-q", "--no-edit", "main")


def hooks_elsewhere(repo):
    repo.cpersona("git", "uninstall")
    repo.git("config", "core.hooksPath", str(repo.path.parent / "hooks"))
    repo.cpersona("git", "install")
    merge_no_ff(repo)


WAYS = (
    merge,
    merge_no_ff,
    octopus,
    merge_committed_by_hand,
    merge_continued,
    squash,
    pull_with_a_merge,
    apply_mail,
    pick,
    pick_edited,
    pick_continued,
    revert,
    revert_edited,
    no_verify,
    in_a_work_tree,
    hooks_elsewhere,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_commit_that_is_made_here_is_noted_once(repo, way):
    repo.commit("root")
    repo.cpersona("git", "install")
    way(repo)
    by_others = {"theirs"}
    made = {
        line.split(" ", 1)[0]
        for line in repo.git("log", "--all", "--format=%H %s").splitlines()
        if line.split(" ", 1)[1] not in by_others | {"root"}
    }
    noted = repo.noted()
    assert sorted(noted) == sorted(made) and len(made) >= 1


@pytest.mark.parametrize("how", ["pull", "a merge of theirs", "merge", "pick"])
def test_what_comes_from_others_as_it_is_is_not_noted(repo, how):
    repo.commit("root")
    repo.cpersona("git", "install")
    if how == "a merge of theirs":
        # Its first parent is our HEAD, as with a merged pull request; only git knows that nothing was made here.
        other(repo)
        theirs = Repo(repo.path.parent / "other", repo.environ)
        merge_no_ff_there = (
            "checkout -q -b t",
            "commit -q --allow-empty -m t",
            "checkout -q main",
            "merge -q --no-ff --no-edit t",
        )
        for words in merge_no_ff_there:
            theirs.git(*words.split())
    else:
        other(repo, "theirs one", "theirs two")
    if how in ("pull", "a merge of theirs"):
        repo.git("pull", "-q", "--ff-only", "../other", "main")
    else:
        repo.git("fetch", "-q", "../other", "main")
        repo.git(
            *(
                ("merge", "-q", "--ff-only", "FETCH_HEAD")
                if how == "merge"
                else ("cherry-pick", "--ff", "FETCH_HEAD~1", "FETCH_HEAD")
            )
        )
    assert (
        repo.ids() == repo.run("git", "-C", "../other", "rev-list", "--reverse", "--topo-order", "HEAD").stdout.split()
    )
    assert repo.noted() == []
    assert f"stored\t{len(repo.ids())}\n" in repo.cpersona("git", "backfill").stdout


def test_a_pull_that_rebases_notes_what_is_made_anew(repo):
    repo.commit("root")
    repo.cpersona("git", "install")
    other(repo, "theirs")
    repo.commit("mine")
    repo.git("pull", "-q", "--rebase", "../other", "main")
    assert repo.noted() == [repo.git("rev-parse", "HEAD")]


def test_merges_are_told_apart_where_git_keeps_no_log_of_its_head(repo):
    repo.commit("root")
    repo.git("config", "core.logAllRefUpdates", "false")
    (repo.path / ".git" / "logs" / "HEAD").unlink()
    repo.cpersona("git", "install")
    other(repo, "theirs")
    repo.git("pull", "-q", "--ff-only", "../other", "main")
    assert repo.noted() == []
    merge_no_ff(repo)
    assert len(repo.noted()) == 2


def test_an_older_install_is_named_by_status_and_renewed_by_install(repo):
    repo.commit("root")
    repo.cpersona("git", "install")
    for name in ("post-merge", "post-applypatch"):
        repo.hook(name).unlink()  # what the first version installed
    said = repo.cpersona("git", "status", check=False)
    assert (
        said.returncode == 1
        and "post-merge is absent, post-applypatch is absent" in said.stderr
        and "`cpersona git install` again" in said.stderr
    )
    done = repo.cpersona("git", "install").stdout
    assert [line.split("\t")[:2] for line in done.splitlines()] == [
        ["post-commit", "unchanged"],
        ["post-merge", "added"],
        ["post-applypatch", "added"],
        ["post-rewrite", "unchanged"],
    ]
    assert repo.cpersona("git", "status").returncode == 0
    merge_no_ff(repo)
    assert len(repo.noted()) == 2


def test_a_merge_goes_through_when_the_store_is_down(repo):
    repo.commit("root")
    repo.cpersona("git", "install")
    repo.git("checkout", "-q", "-b", "x")
    repo.commit("on x")
    repo.git("checkout", "-q", "main")
    done = subprocess.run(
        ["git", "merge", "-q", "--no-ff", "--no-edit", "x"],
        cwd=repo.path,
        capture_output=True,
        text=True,
        env=repo.environ | {"CPERSONA_DB_PATH": str(repo.path.parent / ".gitconfig" / "t.db")},
    )
    assert done.returncode == 0 and "not noted" in done.stderr and done.stderr.count("\n") == 1
