"""An http embedding service for the tests of any room."""

from __future__ import annotations

import base64
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "kit"


def with_vector(vector: list[float], model: str = MODEL) -> dict:
    """Return the fields of an import line that give its row this vector."""
    packed = struct.pack(f"<{len(vector)}f", *vector)
    return {"embedding_b64": base64.b64encode(packed).decode(), "embedding_model": model}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *request: object) -> None:
        """A daemon that is killed, or that gave up waiting, drops its connections; that is what some tests are
        about.
        """


class EmbedServer:
    """Serves POST /embed at ``url``: what ``reply`` makes of the texts, as JSON."""

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.dumps(
                    outer.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"])
                ).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *said: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/embed"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def reply(self, texts: list[str]) -> dict:
        """Return the service's answer to these texts."""
        raise NotImplementedError

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
