"""A tiny real embedding service, and settings for it."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cpersona_daemon.shared import settings as settings_module


def vector_of(text: str, width: int) -> list[float]:
    """A vector that depends on the text alone."""
    digest = b"".join(
        hashlib.sha256(f"{block}:{text}".encode("utf-8", "surrogatepass")).digest() for block in range(-(-width // 32))
    )
    return [(byte - 127.5) / 128 for byte in digest[:width]]


class EmbedService:
    """Serves POST /embed. ``answer`` may be replaced by a function of the texts that returns (status, body bytes);
    while ``gate`` is clear a request waits, and ``entered`` says that one is there.
    """

    def __init__(self, width: int = 8, model: str | None = None):
        self.width, self.model = width, model
        self.answer = self.good
        self.asked: list[list[str]] = []
        self.connections = 0
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()
        self.hang_up_after_answer = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                outer.connections += 1

            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
                outer.asked.append(texts)
                outer.entered.set()
                outer.gate.wait(20)
                status, body = outer.answer(texts)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # the other side left in the middle, as some tests want it to
                # Without a word in the headers: the client finds out when it uses the connection again.
                self.close_connection = outer.hang_up_after_answer

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/embed"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def good(self, texts: list[str]) -> tuple[int, bytes]:
        body: dict = {"embeddings": [vector_of(text, self.width) for text in texts]}
        if self.model is not None:
            body["model"] = self.model
        return 200, json.dumps(body).encode()

    def say(self, body: object, status: int = 200) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answer = lambda texts: (status, raw)

    def stop(self) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def embed_service():
    service = EmbedService()
    yield service
    service.stop()


@pytest.fixture
def make_settings(tmp_path):
    def make(mode: str, url: str = "", **options: object):
        return settings_module.load({"HOME": str(tmp_path)}, {"embedding_mode": mode, "embedding_url": url, **options})

    return make


class HeldClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def held_clock():
    return HeldClock()
