"""Hooks beside those that exist already, and back. Contract: git.hooks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from git_kit import Repo, mode

from cpersona_cli.git import hooks

READS = '#!/bin/sh\n# theirs\nwhile read -r line; do echo "$line" >> seen; done\necho "$0 $*" >> seen\nexit 0\n'


def test_install_and_uninstall_leave_no_trace(repo):
    repo.commit("root")
    before = sorted((p, p.read_bytes()) for p in (repo.path / ".git").rglob("*") if p.is_file())
    done = repo.cpersona("git", "install")
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [[name, "added"] for name in hooks.NAMES]
    assert mode(repo.hook("post-commit")) & 0o111
    assert [line.split("\t")[1] for line in repo.cpersona("git", "install").stdout.splitlines()] == ["unchanged"] * 4
    assert [line.split("\t")[1] for line in repo.cpersona("git", "uninstall").stdout.splitlines()] == ["removed"] * 4
    assert sorted((p, p.read_bytes()) for p in (repo.path / ".git").rglob("*") if p.is_file()) == before
    repo.commit("after")
    assert not repo.spool.exists()
    assert [line.split("\t")[1] for line in repo.cpersona("git", "uninstall").stdout.splitlines()] == ["absent"] * 4


def test_json_of_every_command(repo):
    root = repo.commit("root")
    installed = json.loads(repo.cpersona("git", "install", "--json").stdout)
    assert installed == {
        "ok": True,
        "hooks_directory": str(repo.path / ".git" / "hooks"),
        "hooks": dict.fromkeys(hooks.NAMES, "added"),
        "repository": "work",
        "root": root,
    }
    status = json.loads(repo.cpersona("git", "status", "--json").stdout)
    assert (status["state"], status["branch"], status["root"], status["queued"], status["refused"]) == (
        "installed",
        "main",
        root,
        0,
        0,
    )
    removed = json.loads(repo.cpersona("git", "uninstall", "--json").stdout)
    assert removed["hooks"] == dict.fromkeys(hooks.NAMES, "removed")


@pytest.mark.parametrize("theirs", ["script", "python", "link", "disabled", "no first line"])
def test_a_hook_that_is_there_already_goes_on_working_and_comes_back_as_it_was(repo, theirs):
    repo.commit("root")
    hook = repo.write_hook("post-rewrite", READS)
    if theirs == "python":
        hook.write_text(
            "#!/usr/bin/env python3\nimport sys\nopen('seen', 'a').write(sys.stdin.read() + sys.argv[0] + ' ' + ' "
            "'.join(sys.argv[1:]) + '\\n')\n"
        )
    elif theirs == "link":
        (repo.path / ".git" / "theirs.sh").write_text(READS)
        (repo.path / ".git" / "theirs.sh").chmod(0o755)
        hook.unlink()
        hook.symlink_to("../theirs.sh")
    elif theirs == "disabled":
        hook.chmod(0o644)
    elif theirs == "no first line":
        hook.write_text(READS.removeprefix("#!/bin/sh\n"))
    before = (hook.is_symlink() and os.readlink(hook), hook.read_bytes(), mode(hook))
    repo.cpersona("git", "install")
    old = repo.commit("one")
    repo.git("commit", "-q", "--amend", "-m", "two")
    new = repo.git("rev-parse", "HEAD")
    if theirs == "disabled":
        assert not (repo.path / "seen").exists()
    else:
        pair, called = (repo.path / "seen").read_text().splitlines()
        assert pair == f"{old} {new}"
        assert called.split("/")[-1] == "post-rewrite amend"
    assert repo.noted() == [new]
    repo.cpersona("git", "uninstall")
    assert (hook.is_symlink() and os.readlink(hook), hook.read_bytes(), mode(hook)) == before
    assert not list(hook.parent.glob("*cpersona*"))


def test_what_another_program_writes_into_the_hook_later_stays(repo):
    repo.commit("root")
    repo.cpersona("git", "install")
    hook = repo.hook("post-commit")
    hook.write_text(hook.read_text() + "echo later >> seen\n")
    repo.commit("x")
    assert (repo.path / "seen").read_text() == "later\n"
    repo.cpersona("git", "uninstall")
    assert hook.read_text() == "#!/bin/sh\necho later >> seen\n"


@pytest.mark.parametrize("where", [".githooks", "absolute"])
def test_the_hooks_of_core_hookspath_are_meant_from_anywhere_in_the_work_tree(repo, where):
    repo.commit("root", "deep/down/f")
    shared = repo.path / ".githooks" if where == ".githooks" else Path(repo.environ["HOME"]) / "hooks"
    repo.git("config", "core.hooksPath", ".githooks" if where == ".githooks" else str(shared))
    below = Repo(repo.path / "deep" / "down", repo.environ)
    done = below.cpersona("git", "install")
    assert f"{shared}/post-commit" in done.stdout and not repo.hook("post-commit").exists()
    assert ("lies in the work tree" in done.stderr) == (where == ".githooks")
    repo.git("config", "core.excludesFile", os.devnull)
    (repo.path / ".git" / "info" / "exclude").write_text(".githooks\n")
    id = repo.commit("with shared hooks")
    assert repo.noted() == [id]


def test_repositories_that_share_their_hooks_are_noted_only_where_that_was_asked_for(repo, home):
    shared = Path(home["HOME"]) / "hooks"
    other, third = Repo.new(home, "other"), Repo.new(home, "third")
    (Path(home["HOME"]) / ".gitconfig").open("a").write(f"[core]\n hooksPath = {shared}\n")
    for one in (repo, other):
        one.commit("root " + one.path.name)
        one.cpersona("git", "install")
    third.commit("not asked")
    mine, theirs = repo.commit("mine"), other.commit("theirs")
    assert repo.noted() == [mine, theirs]
    assert set(repo.cpersona("git", "uninstall").stdout.split("\t")[1::2]) and (shared / "post-commit").exists()
    repo.commit("no more")
    still = other.commit("still")
    assert repo.noted() == [mine, theirs, still]
    other.cpersona("git", "uninstall")
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    "harm, state", [("none", 0), ("removed", 1), ("not executable", 1), ("outdated", 1), ("not installed", 3)]
)
def test_status_says_by_its_exit_code_whether_commits_are_noted(repo, harm, state):
    repo.commit("root")
    if harm != "not installed":
        repo.cpersona("git", "install")
    hook = repo.hook("post-commit")
    if harm == "removed":
        hook.unlink()
    elif harm == "not executable":
        hook.chmod(0o644)
    elif harm == "outdated":
        hook.write_text(hook.read_text().replace(os.path.basename(os.sys.executable), "python9"))
    done = repo.cpersona("git", "status", check=False)
    assert done.returncode == state
    assert ("run `cpersona git install` again" in done.stderr) == (state == 1)
    if state == 1:
        repo.cpersona("git", "install")
        assert repo.cpersona("git", "status").returncode == 0


@pytest.mark.parametrize("words", [("install",), ("uninstall",), ("status",), ("note",), ("backfill",)])
def test_outside_a_repository_it_says_so_in_one_line(run_cli, words):
    done = run_cli(["git", *words])
    assert (
        done.returncode == 1
        and done.stdout == ""
        and "not a git repository" in done.stderr
        and done.stderr.count("\n") == 1
    )


def test_what_stands_in_a_hooks_place_and_is_no_file_is_named_and_holds_nothing(repo):
    repo.commit("root")
    hook = repo.hook("post-commit")
    hook.parent.mkdir(exist_ok=True)
    os.mkfifo(hook)
    for words in (["install"], ["status"]):
        done = repo.cpersona("git", *words, check=False)
        assert done.returncode == 1 and "a named pipe stands there" in done.stderr and str(hook) in done.stderr
    assert hook.is_fifo()
    assert [path.name for path in hook.parent.iterdir() if not path.name.endswith(".sample")] == ["post-commit"]


def test_no_link_is_written_through(repo):
    """Whoever may write into the hooks' directory chooses no file of ours to be overwritten."""
    repo.commit("root")
    theirs = repo.path / "theirs"
    theirs.write_text("theirs")
    (repo.path / ".git" / "cpersona.json").symlink_to(theirs)
    assert repo.cpersona("git", "install").returncode == 0
    assert theirs.read_text() == "theirs" and not (repo.path / ".git" / "cpersona.json").is_symlink()
