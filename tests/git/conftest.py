"""A repository for each test."""

from __future__ import annotations

import shutil

import pytest
from git_kit import Repo


@pytest.fixture
def repo(home) -> Repo:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    return Repo.new(home)
