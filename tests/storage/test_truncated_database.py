"""A database that another program cuts short while it is open: an error that says so, and no signal.

Contract: files.damage.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.errors import CPersonaError
from cpersona_daemon.storage import memories, vectors
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.memories import NewMemory

path, who = sys.argv[1:]

def cut_and_read(conn):
    if not conn.in_transaction:
        conn.execute("BEGIN")
    conn.execute("SELECT max(id) FROM memories").fetchall()
    os.truncate(path, 8 * 4096)
    conn.execute("SELECT sum(length(content)) FROM memories").fetchall()

for begun in range(2):  # the second time the log is folded in and every page is read from the database itself
    db = Database(path, SystemClock())
    db.open()
    if not begun:
        db.write_now(lambda tx: [memories.insert(tx, NewMemory("a", f"{n} " + "x" * 2000)) for n in range(2000)])
        db.close()
try:
    if who == "a reader":
        db.read_now(cut_and_read)
    elif who == "the writer":
        db.write_now(lambda tx: cut_and_read(tx.conn))
    else:
        with vectors.reader(path) as conn:
            cut_and_read(conn)
except CPersonaError as error:
    print(error.code, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("who", ["a reader", "the writer", "a rebuild of the vector index"])
def test_a_database_cut_short_while_it_is_open_is_an_error_and_no_signal(tmp_path, who):
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "d.db"), who]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "corrupt\n"), done.stderr[-2000:]
