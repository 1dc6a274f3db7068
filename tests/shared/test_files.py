"""Files of our own are opened, read and replaced without harm to, or from, what somebody put in their place.

Contract: files.durable, files.private.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cpersona_daemon.shared import files

WORDS = b"what stands here is somebody else's"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A path where nothing stands yet, and a file of somebody else beside it."""
    (tmp_path / "theirs").write_bytes(WORDS)
    (tmp_path / "ours").mkdir()
    return tmp_path / "ours" / "file"


def a_link(place: Path) -> None:
    place.symlink_to(place.parent.parent / "theirs")


def a_dangling_link(place: Path) -> None:
    place.symlink_to(place.parent.parent / "nothing")


def a_link_to_itself(place: Path) -> None:
    place.symlink_to(place)


def a_pipe(place: Path) -> None:
    os.mkfifo(place)


def a_directory(place: Path) -> None:
    (place / "inside").mkdir(parents=True)


def a_socket(place: Path) -> None:
    here = os.getcwd()
    os.chdir(place.parent)  # a socket's path has to be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.name)
    finally:
        os.chdir(here)


OTHERS = [
    (a_link, "a symbolic link"),
    (a_dangling_link, "a symbolic link"),
    (a_link_to_itself, "a symbolic link"),
    (a_pipe, "a named pipe"),
    (a_directory, "a directory"),
    (a_socket, "a socket"),
]
others = pytest.mark.parametrize(("put", "name"), OTHERS, ids=[put.__name__ for put, _ in OTHERS])
FLAGS = {
    "read": os.O_RDONLY,
    "write": os.O_WRONLY,
    "both": os.O_RDWR,
    "make": os.O_RDWR | os.O_CREAT,
    "append": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}


@others
@pytest.mark.parametrize("flags", FLAGS)
def test_nothing_but_a_regular_file_is_opened_and_it_is_said_what_stands_there(place, put, name, flags):
    put(place)
    with pytest.raises(files.InTheWay) as failure:
        files.opened(str(place), FLAGS[flags])
    assert failure.value.strerror == f"{name} stands there, where a file belongs; move it away"
    assert failure.value.filename == str(place)
    assert not (place.parent.parent / "nothing").exists()


def test_a_device_is_not_opened():
    with pytest.raises(files.InTheWay, match="a device stands there"):
        files.opened(os.devnull, os.O_RDWR)


def test_a_pipe_that_somebody_writes_to_is_not_read(place):
    os.mkfifo(place)
    keeper = os.open(place, os.O_RDWR)
    os.write(keeper, WORDS)
    try:
        with pytest.raises(files.InTheWay):
            files.read(str(place), 100)
    finally:
        os.close(keeper)


def test_a_link_that_a_person_named_is_followed_and_a_pipe_behind_it_is_not_waited_for(place):
    a_link(place)
    assert files.read(str(place), 1000, follow=True) == WORDS
    place.unlink()
    os.mkfifo(place.parent / "pipe")
    place.symlink_to("pipe")
    with pytest.raises(files.InTheWay, match="a named pipe"):
        files.read(str(place), 1000, follow=True)


def test_a_missing_file_and_one_that_may_not_be_read_fail_as_the_system_says(place):
    with pytest.raises(FileNotFoundError):
        files.read(str(place), 10)
    place.write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        files.read(str(place / "below"), 10)


def test_no_more_is_read_than_was_asked_for(place):
    place.write_bytes(WORDS)
    assert files.read(str(place), 4) == WORDS[:4]


def test_what_is_made_is_private_whatever_the_umask(place):
    before = os.umask(0)
    try:
        os.close(files.opened(str(place), os.O_RDWR | os.O_CREAT))
        files.replace(str(place) + "2", b"x")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place, Path(f"{place}2"))] == [0o600, 0o600]


def test_what_is_replaced_has_its_new_content_and_mode_and_leaves_nothing_beside_it(place):
    place.write_bytes(WORDS)
    files.replace(str(place), b"new", mode=0o755)
    assert place.read_bytes() == b"new" and stat.S_IMODE(place.stat().st_mode) == 0o755
    assert os.listdir(place.parent) == ["file"]


def test_a_relative_name_and_a_name_below_an_open_directory_are_replaced(place, monkeypatch):
    monkeypatch.chdir(place.parent)
    files.replace("file", b"one")
    directory = os.open(place.parent.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        files.replace("below", b"two", directory=directory)
        assert files.read("below", 10, directory=directory) == b"two"
    finally:
        os.close(directory)
    assert place.read_bytes() == b"one" and (place.parent.parent / "below").read_bytes() == b"two"


@pytest.mark.parametrize("put", [a_link, a_dangling_link, a_pipe])
def test_a_link_is_replaced_and_what_it_leads_to_stays(place, put):
    put(place)
    files.replace(str(place), b"new")
    assert stat.S_ISREG(place.lstat().st_mode) and place.read_bytes() == b"new"
    assert (place.parent.parent / "theirs").read_bytes() == WORDS and not (place.parent.parent / "nothing").exists()


def test_a_directory_is_not_replaced_and_it_is_said(place):
    a_directory(place)
    with pytest.raises(files.InTheWay, match="a directory stands there"):
        files.replace(str(place), b"new")
    assert os.listdir(place.parent) == ["file"] and os.listdir(place) == ["inside"]


def test_what_ends_a_replacement_early_leaves_the_old_file_and_nothing_else(place):
    place.write_bytes(WORDS)
    with pytest.raises(KeyboardInterrupt), files.Replacing(str(place)) as handle:
        handle.write(b"half")
        raise KeyboardInterrupt
    assert place.read_bytes() == WORDS and os.listdir(place.parent) == ["file"]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit cannot be set back everywhere")
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(place, size):
    place.write_bytes(WORDS)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, before[1]))
    try:
        with pytest.raises(OSError) as failure:
            files.replace(str(place), b"x" * size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert failure.value.errno == errno.EFBIG
    assert place.read_bytes() == WORDS and os.listdir(place.parent) == ["file"]


def test_a_replacement_needs_no_name_longer_than_the_file_systems(place):
    long = place.parent / ("n" * 255)
    files.replace(str(long), b"x")
    assert long.read_bytes() == b"x"


def test_many_at_once_leave_one_whole_file(place):
    bodies = [bytes([65 + number]) * 50_000 for number in range(8)]

    def work(body: bytes) -> None:
        for _ in range(5):
            files.replace(str(place), body)

    threads = [threading.Thread(target=work, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.read_bytes() in bodies and os.listdir(place.parent) == ["file"]


def test_no_kill_leaves_half_a_file_and_what_it_leaves_is_tidied_once_it_is_old(place):
    place.write_bytes(WORDS)
    script = (
        "import sys; from cpersona_daemon.shared import files\nwith files.Replacing(sys.argv[1]) as handle:\n"
        " handle.write(b'half'); handle.flush(); print(flush=True); sys.stdin.read()"
    )
    command, pipe = [sys.executable, "-c", script, str(place)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert place.read_bytes() == WORDS
    (left,) = set(os.listdir(place.parent)) - {"file"}
    files.tidy(str(place.parent))
    assert (place.parent / left).exists()  # whoever writes it may still be there
    os.utime(place.parent / left, (1, 1))
    (place.parent / ".cpersona-of-a-person").write_bytes(b"")
    (place.parent / ".cpersona-directory.tmp").mkdir()
    for name in (".cpersona-of-a-person", ".cpersona-directory.tmp"):
        os.utime(place.parent / name, (1, 1))
    files.tidy(str(place.parent))
    assert sorted(os.listdir(place.parent)) == [".cpersona-directory.tmp", ".cpersona-of-a-person", "file"]


@others
def test_what_is_in_the_way_gets_another_name_and_stays_what_it_is(place, put, name):
    put(place)
    was = place.lstat()
    (place.parent / "file.aside-1").write_bytes(WORDS)
    aside = files.make_way(str(place))
    assert aside == f"{place}.aside-2" and os.lstat(aside).st_ino == was.st_ino
    assert not os.path.lexists(place) and files.make_way(str(place)) is None


def test_a_file_is_not_in_the_way(place):
    place.write_bytes(WORDS)
    assert files.make_way(str(place)) is None and place.read_bytes() == WORDS


def test_nothing_heavy_is_imported():
    script = (
        "import sys; before = set(sys.modules); from cpersona_daemon.shared import files; "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert set(out) <= {"cpersona_daemon", "cpersona_daemon.shared", "cpersona_daemon.shared.files", "errno"}


@pytest.fixture(autouse=True)
def _no_descriptor_is_left() -> Iterator[Callable[[], int] | None]:
    if not os.path.isdir("/proc/self/fd"):
        yield None
        return
    before = len(os.listdir("/proc/self/fd"))
    yield None
    assert len(os.listdir("/proc/self/fd")) == before
