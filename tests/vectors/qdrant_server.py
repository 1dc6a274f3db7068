"""A server that answers as Qdrant's REST API does, for the calls that the daemon makes; it can be told to go wrong.

No server of Qdrant runs in the tests. What it answers is in the shapes of its documentation, as its client reads them.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

KEY = "qdrant-k3y-of-the-tests"


class _Gone(Exception):
    """A request that is answered with a status."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *request: object) -> None:
        """Who gave up waiting drops the connection; that is what some tests are about."""


class QdrantServer:
    """``key``: what a request must carry, None for nothing. ``fault``: ``slow`` waits for ``gate``, ``broken`` answers
    500, ``nonsense`` answers what is no JSON, ``dead`` closes the connection.

    ``asked`` holds method and path of each request.
    """

    def __init__(self, port: int = 0) -> None:
        self.key: str | None = None
        self.fault: str | None = None
        self.gate = threading.Event()
        self.asked: list[tuple[str, str]] = []
        self.collections: dict[str, dict[str, Any]] = {}
        self._guard = threading.RLock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *args: object) -> None:
                pass

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append((self.command, self.path))
                if outer.fault == "dead":
                    self.close_connection = True
                    return
                if outer.fault == "slow":
                    outer.gate.wait(30)
                try:
                    if outer.key is not None and self.headers.get("api-key") != outer.key:
                        raise _Gone(401, "Must provide an API key or an Authorization bearer token")
                    if outer.fault == "broken":
                        raise _Gone(500, "Service internal error")
                    said: dict[str, Any] = {"result": outer.answer(self.command, self.path, body), "status": "ok"}
                    status = 200
                except _Gone as gone:
                    said, status = {"status": {"error": str(gone)}}, gone.status
                data = b"<html>" if outer.fault == "nonsense" else json.dumps(said | {"time": 0.001}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = _answer

        self._server = _Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    # -- what it answers

    def answer(self, method: str, path: str, body: bytes) -> Any:
        said = json.loads(body) if body else {}
        with self._guard:
            if path == "/collections":
                return {"collections": [{"name": name} for name in sorted(self.collections)]}
            found = re.match(r"/collections/([^/?]+)(/[a-z/]*)?", path)
            assert found is not None, path
            name, rest = found.group(1), found.group(2) or ""
            if (method, rest) == ("PUT", ""):
                self.collections[name] = {"width": said["vectors"]["size"], "points": {}, "indexes": []}
                assert said["vectors"]["distance"] == "Dot"
                return True
            if (method, rest) == ("DELETE", ""):
                return self.collections.pop(name, None) is not None
            if name not in self.collections:
                raise _Gone(404, f"Not found: Collection `{name}` doesn't exist!")
            return self._of(self.collections[name], method, rest, said)

    def _of(self, collection: dict[str, Any], method: str, rest: str, said: dict[str, Any]) -> Any:
        points, done = collection["points"], {"operation_id": 1, "status": "completed"}
        match method, rest:
            case "PUT", "/index":
                collection["indexes"].append(said["field_name"])
                return done
            case "PUT", "/points":
                for row, vector, payload in zip(*(said["batch"][part] for part in ("ids", "vectors", "payloads"))):
                    if len(vector) != collection["width"]:
                        raise _Gone(400, "Wrong input: Vector dimension error")
                    points[row] = (np.array(vector, np.float32), payload)
                return done
            case "POST", "/points/delete":
                gone = (
                    said["points"]
                    if "points" in said
                    else [i for i in points if _matches(points[i][1], said["filter"])]
                )
                for row in gone:
                    points.pop(row, None)
                return done
            case "POST", "/points/count":
                return {"count": len(points)}
            case "POST", "/points":
                return [{"id": row, "payload": points[row][1]} for row in said["ids"] if row in points]
            case "POST", "/points/query/batch":
                return [{"points": self._nearest(points, one)} for one in said["searches"]]
        raise AssertionError((method, rest))

    def _nearest(self, points: dict[int, Any], said: dict[str, Any]) -> list[dict[str, Any]]:
        asked = np.array(said["query"]["nearest"], np.float32)
        scored = [
            {"id": row, "version": 1, "score": float(vector @ asked)}
            for row, (vector, payload) in points.items()
            if _matches(payload, said["filter"])
        ]
        near = [one for one in scored if one["score"] >= said["score_threshold"]]
        return sorted(near, key=lambda one: -one["score"])[: said["limit"]]


def _matches(payload: dict[str, Any], said: dict[str, Any]) -> bool:
    if "key" not in said:
        must, should = said.get("must") or [], said.get("should") or []
        return all(_matches(payload, one) for one in must) and (
            not should or any(_matches(payload, one) for one in should)
        )
    value = payload[said["key"]]
    if said.get("range"):
        limits = {name: limit for name, limit in said["range"].items() if limit is not None}
        holds = {"gt": value.__gt__, "gte": value.__ge__, "lt": value.__lt__, "lte": value.__le__}
        return all(holds[name](int(limit)) for name, limit in limits.items())
    match, values = said["match"], value if isinstance(value, list) else [value]
    wanted = match["any"] if "any" in match else [match["value"]]
    return any(one in wanted for one in values)
