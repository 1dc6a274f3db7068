"""A server that speaks as those that people run do: OpenAI-shaped embeddings, and reranking in both shapes.

It can be told to go wrong in each of the ways that such servers do.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-k3y-of-the-tests"
MODEL = "kit-embed"


def vector_of(text: str, width: int = 8) -> list[float]:
    """A vector that depends on the text alone: its words count, so that texts which share some are near."""
    out = [0.01] * width
    for word in text.lower().split():
        digest = hashlib.sha256(word.encode()).digest()
        out[digest[0] % width] += 1.0
        out[digest[1] % width] += 0.5
    return out


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *request: object) -> None:
        """Who gave up waiting drops the connection; that is what some tests are about."""


class ModelServer:
    """Serves POST /v1/embeddings and POST /rerank.

    ``key``: what a request must carry, None for nothing. ``fault`` goes wrong: see ``FAULTS``. ``speaks``: the shape in
    which /rerank is asked (cohere, tei). ``score(query, text)`` is what the reranker says. ``asked`` holds the path and
    body of each request, ``headers`` those of the latest. While ``gate`` is clear, a slow one waits.
    """

    FAULTS = ("key", "width", "slow", "dead", "fewer", "nan", "twice", "beyond", "nonsense")

    def __init__(self) -> None:
        self.key: str | None = None
        self.fault: str | None = None
        self.speaks, self.width, self.model = "cohere", 8, MODEL
        self.names_model = True
        self.score: Callable[[str, str], float] = lambda query, text: 0.5
        self.asked: list[tuple[str, dict]] = []
        self.headers: dict[str, str] = {}
        self.gate, self.entered = threading.Event(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, body))
                outer.headers = dict(self.headers)
                outer.entered.set()
                if outer.fault == "dead":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if outer.fault == "slow":
                    outer.gate.wait(20)
                status, answer = outer.answer(self.path.partition("?")[0], body, self.headers.get("Authorization"))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *said: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.at = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.embeddings, self.rerank = self.at + "/v1/embeddings", self.at + "/rerank"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: dict, authorization: str | None) -> tuple[int, bytes]:
        if self.fault == "key" or (self.key is not None and authorization != f"Bearer {self.key}"):
            # OpenAI's says part of the key again; so may another, whole.
            return 401, json.dumps({"error": {"message": f"Incorrect API key provided: {authorization}"}}).encode()
        if self.fault == "nonsense":
            return 200, b'{"object": "list", "data": "sk-k3y'
        if path == "/v1/embeddings":
            return self._embed(body)
        if path == "/rerank":
            return self._rerank(body)
        return 404, b'{"detail": "Not Found"}'

    def _embed(self, body: dict) -> tuple[int, bytes]:
        if set(body) != {"model", "input"}:
            return 422, b'{"detail": "model and input"}'
        width = 2 * self.width if self.fault == "width" else self.width
        data: list[Any] = [
            {"object": "embedding", "embedding": vector_of(text, width), "index": at}
            for at, text in enumerate(body["input"])
        ]
        answer: dict[str, Any] = {"object": "list", "data": self._twisted(data, "embedding")}
        if self.names_model:
            answer["model"] = self.model
        answer["usage"] = {"prompt_tokens": 8, "total_tokens": 8}
        return 200, json.dumps(answer).encode()

    def _rerank(self, body: dict) -> tuple[int, bytes]:
        names = {"cohere": ("documents", "relevance_score"), "tei": ("texts", "score")}[self.speaks]
        if names[0] not in body:
            return 422, f'{{"error": "missing field `{names[0]}`", "error_type": "Validation"}}'.encode()
        scored: list[Any] = [
            {"index": at, names[1]: self.score(body["query"], text)} for at, text in enumerate(body[names[0]])
        ]
        scored = self._twisted(sorted(scored, key=lambda item: -item[names[1]]), names[1])
        if self.speaks == "tei":
            return 200, json.dumps(scored).encode()
        return 200, json.dumps({"id": "rerank-1", "results": scored, "usage": {"total_tokens": 8}}).encode()

    def _twisted(self, items: list[Any], value: str) -> list[Any]:
        """Return what a lying server makes of its items; an honest one answers in whatever order."""
        if self.fault == "fewer":
            return items[:-1]
        if self.fault == "nan":
            number = float("nan")
            return [
                {**items[0], value: [number] * len(items[0][value])}
                if value == "embedding"
                else {**items[0], value: number},
                *items[1:],
            ]
        if self.fault == "twice":
            return [{**items[0], "index": items[-1]["index"]}, *items[1:]] if len(items) > 1 else items * 2
        if self.fault == "beyond":
            return [*items[:-1], {**items[-1], "index": len(items)}]
        return items[::-1]
