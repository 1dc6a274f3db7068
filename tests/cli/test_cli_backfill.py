"""`git backfill` on a terminal: what it does while there is nothing to count yet. Contract: git.hooks."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_history_that_takes_long_to_be_read_is_said_to_be_read(on_terminal, home, tmp_path):
    run = {"cwd": tmp_path, "env": home | {"GIT_CONFIG_NOSYSTEM": "1"}, "check": True}
    subprocess.run(["git", "init", "-q"], **run)
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@x", "commit", "-q", "--allow-empty", "-m", "root"], **run
    )
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(f'#!/bin/sh\ncase "$1" in log) sleep 0.6;; esac\nexec {shutil.which("git")} "$@"\n')
    (slow / "git").chmod(0o755)
    out, status = on_terminal(
        ["git", "backfill"], GIT_DIR=str(tmp_path / ".git"), PATH=f"{slow}{os.pathsep}{home['PATH']}"
    )
    assert status == 0, out
    assert "reading history" in out and out.index("reading history") < out.index("stored")
