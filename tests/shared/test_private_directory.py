"""A directory of ours is made where it is missing, and what stands in its place is left alone.

Contract: files.private.
"""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from cpersona_daemon.shared.paths import make_private_directory

AT_ONCE, ROUNDS = 8, 300


def test_whoever_makes_it_at_the_same_moment_as_others_has_it_too(tmp_path):
    together = Barrier(AT_ONCE)

    def make(path: str) -> None:
        together.wait()
        make_private_directory(path)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for at in range(ROUNDS):
            path = tmp_path / f"{at}" / "made"
            list(pool.map(make, [str(path)] * AT_ONCE))
            assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("put", [lambda path: path.write_text("mine"), lambda path: path.symlink_to("nowhere")])
@pytest.mark.parametrize("below", ["", "below"])
def test_what_is_no_directory_stays_and_is_named(tmp_path, put, below):
    there = tmp_path / "there"
    put(there)
    with pytest.raises(NotADirectoryError) as refused:
        make_private_directory(str(there / below).rstrip("/"))
    assert os.path.lexists(there) and refused.value.filename.startswith(str(there))


def test_one_that_is_there_is_not_changed(tmp_path):
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_private_directory(str(there))
    assert stat.S_IMODE(there.stat().st_mode) == 0o755
