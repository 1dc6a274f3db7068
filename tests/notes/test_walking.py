"""Which files of a directory are notes. Contract: import.walk."""

import os
import shutil
import subprocess

import pytest

from cpersona_cli.notes.walking import is_note, walk


@pytest.fixture
def tree(tmp_path):
    """Make files of these paths, each with a word in it, below a directory of no repository."""

    def make(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("word")
        return str(tmp_path)

    return make


@pytest.fixture
def git(tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def run(*words, cwd=tmp_path):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@x", *words], cwd=cwd, check=True)

    return run


@pytest.mark.parametrize("name", ["a.md", "A.MD", "a.markdown", "a.mdx", "two words.md", ".md"])
def test_a_name_says_that_a_file_is_markdown(name):
    assert is_note(name) and not is_note(name + ".txt") and not is_note("README")


def test_hidden_files_packages_and_environments_are_passed_over_where_no_git_is(tree):
    root = tree(
        "b.md",
        "a/c.md",
        "a/x.txt",
        ".hidden.md",
        ".obsidian/d.md",
        "node_modules/p/README.md",
        "a/node_modules/e.md",
        "env/pyvenv.cfg",
        "env/f.md",
    )
    assert walk(root).files == ["a/c.md", "b.md"]


def test_no_link_is_followed(tree, tmp_path):
    root = tree("root/a.md", "root/d/b.md", "elsewhere/secret.md")
    os.symlink("../elsewhere", f"{root}/root/out")
    os.symlink("..", f"{root}/root/d/up")
    os.symlink("../elsewhere/secret.md", f"{root}/root/s.md")
    os.symlink("a.md", f"{root}/root/same.md")
    os.symlink("circle", f"{root}/root/circle")
    found = walk(f"{root}/root")
    assert found.files == ["a.md", "d/b.md"] and found.links == 4
    os.symlink("root", f"{root}/named")
    assert walk(f"{root}/named").files == ["a.md", "d/b.md"]


def test_what_git_ignores_is_no_note_and_what_it_does_not_know_yet_is_one(tree, git, tmp_path, monkeypatch):
    root = tree("kept.md", "new.md", "drafts/a.md", "build/b.md", ".github/c.md", "node_modules/d.md", "gone.md")
    (tmp_path / ".gitignore").write_text("build/\n/drafts/*\n")
    git("init", "-q")
    git("add", "kept.md", "gone.md")
    os.unlink(f"{root}/gone.md")
    assert walk(root).files == [".github/c.md", "kept.md", "new.md", "node_modules/d.md"]
    # As a hook of another repository runs it.
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert walk(root).files[1] == "kept.md"
    # What is ignored as a whole and named all the same is read.
    assert walk(f"{root}/build").files == ["b.md"] and walk(f"{root}/drafts").files == []


def test_repositories_inside_are_asked_each_for_itself(tree, git, tmp_path):
    root = tree("outer/a.md", "outer/inner/b.md", "outer/inner/no.md", "plain/c.md")
    (tmp_path / "outer/inner/.gitignore").write_text("no.md\n")
    git("init", "-q", cwd=tmp_path / "outer")
    git("init", "-q", cwd=tmp_path / "outer/inner")
    assert walk(root).files == ["outer/a.md", "outer/inner/b.md", "plain/c.md"]
    assert walk(f"{root}/outer").files == ["a.md", "inner/b.md"]


def test_where_git_cannot_say_the_names_do(tree, tmp_path, monkeypatch):
    root = tree("a.md", ".git/config", "d/node_modules/b.md")
    assert walk(root).files == ["a.md"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert walk(root).files == ["a.md"]


def test_a_directory_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        walk(str(tmp_path / "none"))
    with pytest.raises(NotADirectoryError):
        (tmp_path / "a.md").write_text("word")
        walk(str(tmp_path / "a.md"))
