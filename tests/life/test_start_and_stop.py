"""One daemon per database, started by whoever comes first, and gone without a trace when it leaves.

Contract: daemon.starts, daemon.life, wire.peer.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

ASK = """
import sys
from cpersona_cli.wire import client
connection = client.connect()
answer, code = connection.call("store", {"agent_id": "a", "content": sys.argv[1]})
print(connection.hello["pid"], answer["result"], flush=True)
"""


def ask(environ: dict[str, str], text: str, **more) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", ASK, text],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def wait_for(condition, seconds: float = 30.0) -> None:
    """Look every few milliseconds until something is so; for what no event announces."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def has_left(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A daemon is reaped by whoever adopts it; until then it may linger as a zombie.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return not Path("/proc").exists()


@pytest.mark.parametrize("clients", [50])
def test_simultaneous_first_calls_start_one_daemon_and_all_are_answered(home, clients):
    asked = [ask(home, f"note {n}") for n in range(clients)]
    outcomes = [process.communicate(timeout=120) for process in asked]
    assert [process.returncode for process in asked] == [0] * clients, [err for _, err in outcomes if err][:3]
    answers = [out.split() for out, _ in outcomes]
    assert len({pid for pid, _ in answers}) == 1
    assert {result for _, result in answers} == {"stored"}


def test_a_killed_daemon_is_replaced_over_its_stale_socket(home, daemon, connect):
    daemon.call("store", {"agent_id": "a", "content": "kept"})
    os.kill(daemon.hello["pid"], signal.SIGKILL)
    assert os.path.exists(daemon.places.socket)
    second = connect()
    assert second.hello["pid"] != daemon.hello["pid"]
    assert second.call("store", {"agent_id": "a", "content": "kept"})[0]["result"] == "skipped"


def test_a_connection_survives_its_daemon(daemon):
    first = daemon.hello["pid"]
    os.kill(first, signal.SIGKILL)
    assert daemon.call("store", {"agent_id": "a", "content": "after"})[0]["result"] == "stored"
    assert daemon.hello["pid"] != first


def test_stop_ends_the_daemon_and_leaves_no_socket_no_note_and_no_wal(home, daemon):
    daemon.call("store", {"agent_id": "a", "content": "x"})
    settings = load(home)
    assert control.stop_daemon(settings, 30, home) is True
    wait_for(lambda: has_left(daemon.hello["pid"]))
    left = sorted(os.listdir(os.path.dirname(daemon.places.db)))
    assert not [name for name in left if name.endswith((".sock", ".daemon.json", "-wal", "-shm"))], left
    assert control.stop_daemon(settings, 30, home) is True
    assert control.find_daemon(settings, home) is None


def test_without_start_a_missing_daemon_is_unreachable_and_stays_missing(home, connect):
    with pytest.raises(client.CallFailed) as failure:
        connect(start=False)
    assert (failure.value.code, failure.value.exit_status) == ("unreachable", 4)
    assert not os.path.exists(home["CPERSONA_DB_PATH"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_in_order(home, daemon, number):
    daemon.call("store", {"agent_id": "a", "content": "x"})
    os.kill(daemon.hello["pid"], number)
    wait_for(lambda: control.find_daemon(load(home), home) is None)
    assert not os.path.exists(daemon.places.socket)
    assert not os.path.exists(daemon.places.db + "-wal")


def test_a_hangup_is_ignored(daemon):
    os.kill(daemon.hello["pid"], signal.SIGHUP)
    assert daemon.call("daemon_status", {})[0]["pid"] == daemon.hello["pid"]


def test_an_idle_daemon_leaves(home, connect):
    connection = connect(CPERSONA_IDLE_TIMEOUT="0.2")
    pid = connection.hello["pid"]
    time.sleep(1)
    # A connection keeps it, however long nothing is asked.
    assert connection.call("persistence_status", {})[1] is None and connection.hello["pid"] == pid
    connection.close()
    wait_for(lambda: has_left(pid))
    assert not os.path.exists(connection.places.socket)


def test_the_daemon_holds_nothing_of_its_caller(home, tmp_path):
    """What `x=$(cpersona store hi)` needs: the pipe closes when the client ends, and nothing else is kept open."""
    kept = os.open(tmp_path / "inherited", os.O_CREAT | os.O_RDWR)
    process = ask(home, "hi", pass_fds=[kept], cwd=tmp_path)
    out, err = process.communicate(timeout=60)  # returns only when every copy of the pipe's end is closed
    pid = int(out.split()[0])
    if Path("/proc").exists():
        targets = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
        assert not [t for t in targets if "inherited" in t or t.startswith("pipe:")], targets
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) == pid or os.getsid(pid) != os.getsid(0)
    os.close(kept)


def test_a_bare_environment_meets_the_same_daemon(home):
    """A cron job has HOME and PATH; a login shell has more. Both mean the same database by default."""
    shell = {n: v for n, v in home.items() if n != "CPERSONA_DB_PATH" and not n.startswith("XDG")}
    shell |= {"XDG_RUNTIME_DIR": home["TMPDIR"], "TERM": "xterm"}
    cron = {n: shell[n] for n in ("HOME", "PATH", "PYTHONPATH") if n in shell}
    first = ask(shell, "one").communicate(timeout=60)[0].split()
    second = ask(cron, "two").communicate(timeout=60)[0].split()
    assert first[0] == second[0] and second[1] == "stored"


@pytest.mark.parametrize("spelling", ["relative", "link"])
def test_another_spelling_of_the_path_meets_the_same_daemon(home, daemon, spelling):
    root = Path(home["HOME"])
    if spelling == "link":
        (root / "link").symlink_to(root / "db")
    path = {"relative": "db/../db/t.db", "link": str(root / "link" / "t.db")}[spelling]
    out, _ = ask(home | {"CPERSONA_DB_PATH": path}, "again", cwd=root).communicate(timeout=60)
    assert int(out.split()[0]) == daemon.hello["pid"]


def test_a_foreign_file_at_the_sockets_path_is_left_alone(home, connect):
    path = Path(home["CPERSONA_DB_PATH"] + ".sock")
    path.parent.mkdir(mode=0o700)
    path.write_text("mine")
    with pytest.raises(client.CallFailed) as failure:
        connect()
    assert failure.value.exit_status == 4 and "a file stands at" in failure.value.message
    assert path.read_text() == "mine"


def test_another_programs_listening_socket_is_left_alone(home, connect):
    path = Path(home["CPERSONA_DB_PATH"] + ".sock")
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        outcome = run_daemon(home)
    assert outcome.returncode != 0 and "another program answers" in outcome.stderr
    assert path.exists()


def test_two_daemons_for_one_database_are_impossible(home, daemon):
    outcome = run_daemon(home)
    assert outcome.returncode == 6 and "already" in outcome.stderr
    elsewhere = run_daemon(home | {"CPERSONA_SOCKET": home["HOME"] + "/other.sock"})
    assert elsewhere.returncode == 4 and "serves this database at" in elsewhere.stderr
    assert not os.path.exists(home["HOME"] + "/other.sock")
    assert daemon.call("daemon_status", {})[0]["pid"] == daemon.hello["pid"]


def run_daemon(environ: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "cpersona_daemon.main", "--foreground"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_daemon_that_cannot_start_says_why_to_the_caller(home, connect):
    with pytest.raises(client.CallFailed) as failure:
        connect(CPERSONA_EMBEDDING_MODE="http")
    assert (failure.value.code, failure.value.exit_status) == ("settings", 4)
    assert "CPERSONA_EMBEDDING_URL" in failure.value.message
    assert control.find_daemon(load(home), home) is None


def test_a_directory_that_cannot_be_written_is_a_typed_failure(home, connect):
    blocked = Path(home["HOME"]) / "file"
    blocked.write_text("")
    with pytest.raises(client.CallFailed) as failure:
        connect(CPERSONA_DB_PATH=str(blocked / "db" / "t.db"))
    assert failure.value.exit_status == 4


def test_a_recycled_pid_in_the_note_is_not_taken_for_a_daemon(home):
    settings = load(home)
    where = places(settings, home)
    os.makedirs(os.path.dirname(where.db), mode=0o700)
    Path(where.lock).touch()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander:
        try:
            Path(where.daemon_json).write_text(json.dumps({"pid": bystander.pid, "socket": where.socket}))
            assert control.find_daemon(settings, home) is None
            assert control.stop_daemon(settings, 5, home) is True
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_every_file_and_directory_is_the_owners_alone(home, daemon):
    daemon.call("store", {"agent_id": "a", "content": "x"})
    made = [Path(base) / name for base, directories, files in os.walk(home["HOME"]) for name in directories + files]
    modes = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in made if path.name != "tmp"}
    assert len(modes) > 6
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


def test_a_directory_that_exists_keeps_its_mode(home, connect):
    directory = Path(home["CPERSONA_DB_PATH"]).parent
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    connect()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


def test_a_removed_socket_is_made_again(hurried, daemon, connect):
    os.unlink(daemon.places.socket)
    wait_for(lambda: os.path.exists(daemon.places.socket))
    assert connect().hello["pid"] == daemon.hello["pid"]


@pytest.mark.parametrize("note", ["kept", "lost"])
def test_the_first_calls_after_a_sockets_end_wait_for_the_new_one(home, connect, note):
    daemon = connect(CPERSONA_IDLE_TIMEOUT="8")  # it looks at its socket every two seconds
    os.unlink(daemon.places.socket)
    if note == "lost":
        os.unlink(daemon.places.daemon_json)
    asked = [ask(home | {"CPERSONA_IDLE_TIMEOUT": "8"}, f"note {n}") for n in range(3)]
    outcomes = [process.communicate(timeout=60) for process in asked]
    assert [out.split()[0] for out, _ in outcomes] == [str(daemon.hello["pid"])] * 3, outcomes
    assert [err for _, err in outcomes] == [""] * 3


@pytest.mark.parametrize("ask_for", ["find", "stop"])
def test_a_daemon_whose_socket_is_gone_is_found_and_stopped(hurried, home, connect, ask_for):
    daemon = connect()
    daemon.close()
    pid = daemon.hello["pid"]
    os.unlink(daemon.places.socket)
    if ask_for == "find":
        found = control.find_daemon(load(home), home)
        assert found["answers"] is True and found["pid"] == pid
    assert control.stop_daemon(load(home), 6, home) is True
    wait_for(lambda: has_left(pid))


@pytest.mark.parametrize("held", [False, True])
def test_a_link_to_the_socket_is_followed(home, connect, run_cli, held):
    """Somebody moved the socket and left a link: the daemon stays reachable, and so does its successor."""
    quick = {"CPERSONA_IDLE_TIMEOUT": "2"}  # it looks at its socket every half second
    daemon = connect(**quick)
    pid, path, moved = daemon.hello["pid"], daemon.places.socket, home["HOME"] + "/moved.sock"
    os.rename(path, moved)
    os.symlink(moved, path)
    if not held:
        daemon.close()
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        began = time.monotonic()
        done = run_cli(["call", "persistence_status"], env=quick)
        assert done.returncode == 0 and time.monotonic() - began < 5, done
        assert control.find_daemon(load(home), home)["pid"] == pid
    daemon.close()
    assert control.stop_daemon(load(home), 30, home) is True
    assert not os.path.lexists(moved) and os.path.islink(path)
    assert connect(**quick).hello["pid"] != pid and stat.S_ISSOCK(os.lstat(moved).st_mode)


@pytest.mark.parametrize("target", ["file", "directory", "itself", "foreign"])
@pytest.mark.parametrize("running", [False, True])
def test_a_link_that_leads_to_no_socket_of_ours_is_said_at_once(home, connect, run_cli, target, running):
    root, path = Path(home["HOME"]), Path(home["CPERSONA_DB_PATH"] + ".sock")
    path.parent.mkdir(mode=0o700)
    if running:
        connect(CPERSONA_IDLE_TIMEOUT="2")  # stays connected, so that the daemon stays
        path.unlink()
    places_of = {"itself": path, "foreign": root / "foreign" / "t.sock"}
    there = places_of.get(target, root / target)
    if target == "file":
        there.write_text("theirs")
    elif target != "itself":
        (root / target).mkdir()
        (root / target).chmod(0o777 if target == "foreign" else 0o700)
    path.symlink_to(there)
    began = time.monotonic()
    done = run_cli(["store", "kept by nobody"])
    assert done.returncode == 4 and time.monotonic() - began < 5, done
    assert str(root / target if target == "foreign" else there) in done.stderr and done.stderr.count("\n") == 1
    assert os.path.islink(path) and (target != "file" or there.read_text() == "theirs")


def test_a_socket_that_was_taken_is_left_to_its_taker(hurried, connect):
    connection = connect()
    pid, path = connection.hello["pid"], connection.places.socket
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        taken = os.lstat(path).st_ino
        connection.close()
        wait_for(lambda: has_left(pid))
        assert os.lstat(path).st_ino == taken


def test_a_daemon_whose_database_was_removed_leaves(hurried, daemon):
    daemon.close()
    shutil.rmtree(os.path.dirname(daemon.places.db))
    wait_for(lambda: has_left(daemon.hello["pid"]))


def test_readiness_goes_to_a_service_manager_and_its_socket_is_used(home):
    """What systemd does: it holds the socket, passes it as descriptor 3, and is told READY=1 and STOPPING=1."""
    root = Path(home["HOME"])
    (root / "db").mkdir(mode=0o700)
    path = home["CPERSONA_DB_PATH"] + ".sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        manager.bind(str(root / "notify"))
        manager.settimeout(30)
        inode = os.lstat(path).st_ino
        start = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ['LISTEN_PID'] = str(os.getpid()); "
            "os.execv(sys.executable, [sys.executable, '-m', 'cpersona_daemon.main', '--foreground'])"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", start, str(listener.fileno())],
            pass_fds=[listener.fileno()],
            env=home | {"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(root / "notify")},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert manager.recv(100) == b"READY=1"
        with client.connect(load(home), home, start=False) as connection:
            assert connection.hello["pid"] == process.pid
            assert connection.call("daemon_status", {})[0]["activated"] is True
        process.send_signal(signal.SIGTERM)
        assert manager.recv(100) == b"STOPPING=1"
        assert process.wait(30) == 0
        process.stderr.close()
        assert os.lstat(path).st_ino == inode


def test_clients_that_come_while_a_daemon_leaves_are_served_by_its_successor(home, daemon):
    stored: list[str] = []

    def work(number: int) -> None:
        with client.connect(load(home), home) as connection:
            for turn in range(20):
                stored.append(connection.call("store", {"agent_id": "a", "content": f"{number}-{turn}"})[0]["result"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        control.stop_daemon(load(home), 30, home)
    for thread in threads:
        thread.join(120)
    assert stored == ["stored"] * 80
