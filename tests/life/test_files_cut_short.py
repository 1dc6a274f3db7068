"""Files that somebody cuts short under a running daemon: answers stay right, and a daemon that it ends says so.

Contract: files.damage.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from embed_kit import EmbedServer

from cpersona_cli.wire import client
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load


class Model(EmbedServer):
    def reply(self, texts: list[str]) -> dict:
        digests = [hashlib.sha256(text.split()[0].encode()).digest()[:8] for text in texts]
        return {"embeddings": [[byte - 127.5 for byte in digest] for digest in digests], "model": "one"}


@pytest.fixture
def model():
    served = Model()
    yield served
    served.stop()


@pytest.mark.parametrize("suffix", ["", ".int8", ".rows"])
def test_a_daemon_survives_that_its_vector_files_are_cut_short(home, model, suffix):
    environ = home | {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": model.url,
        "CPERSONA_RECALL_MODE": "rrf",
    }
    where = places(load(environ), environ)
    with client.connect(load(environ), environ) as connection:
        for word in ("plum", "pear", "fig"):
            assert connection.call("store", {"agent_id": "a", "content": f"{word} tree"})[0]["ok"]

        def ask():
            answer, _ = connection.call("recall", {"agent_id": "a", "query": "pear tart", "deep": True})
            return [(message["ref"], message["match_reason"].get("cosine")) for message in answer["messages"]]

        pid, before = connection.call("daemon_status", {})[0]["pid"], ask()
        assert before[-1] == ("mem:2", pytest.approx(1))
        os.truncate(where.memory_vectors + suffix, 100)
        assert ask() == before
        assert connection.call("store", {"agent_id": "a", "content": "quince tree"})[0]["ok"]
        assert [row for row in ask() if row[0] != "mem:4"] == before
        assert connection.call("daemon_status", {})[0]["pid"] == pid


@pytest.mark.parametrize("words", [("recall", "tree"), ("list",), ("store", "pear tree")])
def test_a_daemon_that_sqlites_shared_memory_ends_says_so_and_the_next_one_answers(home, run_cli, words):
    where = places(load(home), home)
    assert run_cli(["store", "plum tree"]).returncode == 0
    os.truncate(where.db + "-shm", 0)
    assert run_cli(list(words)).returncode == 0
    assert "Bus error" in Path(where.log).read_text()
    assert "plum tree" in run_cli(["list"]).stdout


def test_a_signal_is_told_in_the_log_that_was_begun_anew(tmp_path):
    path = tmp_path / "d.log"
    program = (
        "import faulthandler, logging, sys; from cpersona_daemon.life import logfile; logfile.BYTES = 200;"
        " logfile.start('info', sys.argv[1]);"
        " [logging.getLogger('x').info('y' * 150) for _ in range(9)]; faulthandler._sigsegv()"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, timeout=60).returncode < 0
    assert "Segmentation fault" in path.read_text() and "Segmentation" not in (tmp_path / "d.log.1").read_text()
