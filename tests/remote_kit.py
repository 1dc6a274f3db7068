"""An embedding service with a vector search beside it, as the memory protocol's remote mode asks one.

It can be told to go wrong in each of the ways that such services do.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from models_kit import vector_of

MODEL, WIDTH, MOST_ITEMS = "kit-remote", 24, 100
SECONDS = 20.0


def unit(text: str) -> np.ndarray:
    vector = np.array(vector_of(text, WIDTH))
    return vector / np.linalg.norm(vector)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *request: object) -> None:
        """Who gave up waiting drops the connection; that is what some tests are about."""


class VectorServer:
    """Serves POST /embed, /search, /index, /remove and /purge; ``url`` is that of the first, with a query string.

    ``held`` is what it keeps: the texts by namespace and id. ``faults``: what goes wrong, by path (see ``answer``; "*"
    is every path but /embed). ``results`` stands in for what a search finds. ``asked`` holds path and body of each
    request. While ``gate`` is clear, a path with the fault "slow" waits.
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.held: dict[str, dict[str, str]] = {}
        self.faults: dict[str, str] = {}
        self.results: list[Any] | None = None
        self.asked: list[tuple[str, dict]] = []
        self.targets: set[str] = set()
        self.gate = threading.Event()
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path, _, query = self.path.partition("?")
                outer.targets.add(self.path)
                with outer._changed:
                    outer.asked.append((path, body))
                    outer._changed.notify_all()
                fault = outer.fault(path)
                if fault == "slow":
                    outer.gate.wait(SECONDS)
                if fault == "dead":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                status, answer = outer.answer(path, body, fault, self.headers.get("Authorization"))
                with outer._changed:
                    outer._changed.notify_all()
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *said: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v/embed?tenant=t1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def fault(self, path: str) -> str | None:
        name = path.removeprefix("/v")
        return self.faults.get(name) or (self.faults.get("*") if name != "/embed" else None)

    def until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds that requests make true."""
        with self._changed:
            assert self._changed.wait_for(holds, SECONDS), (self.held, self.asked[-5:])

    def sent(self, path: str) -> list[dict]:
        """Return the bodies of the requests to a path."""
        return [body for to, body in self.asked if to == "/v" + path]

    def answer(self, path: str, body: dict, fault: str | None, authorization: str | None) -> tuple[int, Any]:
        if fault == "key" or (self.key is not None and authorization != f"Bearer {self.key}"):
            return 401, {"error": f"bad token {authorization}"}
        if fault == "broken":
            return 500, {"error": "index failed"}
        if fault == "refuses" and any("refused" in item["text"] for item in body.get("items", ())):
            return 422, {"error": "a text that it will not have"}
        if path == "/v/embed":
            return 200, {"embeddings": [unit(text).tolist() for text in body["texts"]], "model": MODEL}
        act = getattr(self, "_" + path.removeprefix("/v/"), None)
        return (404, {}) if act is None else act(body, fault)

    def _search(self, body: dict, fault: str | None) -> tuple[int, Any]:
        assert set(body) == {"namespace", "query", "limit", "min_similarity"}
        results = self.results
        if results is None:
            asked = unit(body["query"])
            scored = [(float(unit(text) @ asked), ref) for ref, text in self.held.get(body["namespace"], {}).items()]
            scored = sorted(pair for pair in scored if pair[0] >= body["min_similarity"])[::-1]
            results = [{"id": ref, "score": round(score, 4)} for score, ref in scored][: min(body["limit"], 500)]
        wrong = {
            "missing": {"ok": True},
            "null": {"results": None},
            "text": {"results": [*results, {"id": "mem:1", "score": "0.9"}]},
            "bool": {"results": [*results, {"id": "mem:1", "score": True}]},
            "scoreless": {"results": [*results, {"id": "mem:1"}]},
            "nan": b'{"results": [{"id": "mem:1", "score": NaN}]}',
            "infinite": b'{"results": [{"id": "mem:1", "score": 1e999}]}',
            "nonsense": b'{"results": [',
        }
        return 200, wrong.get(fault or "", {"results": results})

    def _index(self, body: dict, fault: str | None) -> tuple[int, Any]:
        if len(body["items"]) > MOST_ITEMS:
            return 400, {"error": "too many items"}
        kept = self.held.setdefault(body["namespace"], {})
        kept |= {item["id"]: item["text"] for item in body["items"]}
        return 200, {"ok": True, "indexed": len(body["items"])}

    def _remove(self, body: dict, fault: str | None) -> tuple[int, Any]:
        kept = self.held.get(body["namespace"], {})
        return 200, {"ok": True, "removed": sum(kept.pop(ref, None) is not None for ref in body["ids"])}

    def _purge(self, body: dict, fault: str | None) -> tuple[int, Any]:
        assert set(body) == {"namespace"}
        return 200, {"ok": True, "removed": len(self.held.pop(body["namespace"], {}))}
