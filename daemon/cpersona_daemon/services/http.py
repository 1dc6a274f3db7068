"""One request to a service: POST a JSON body, within a deadline, over a connection that is kept alive.

Foreign failures become the caller's kind in one place; no message quotes what a service sent, which may be what it was
sent.

Contract: embedding.http, rerank.asks, services.keys.
"""

from __future__ import annotations

import base64
import http.client
import socket
import threading
import time
from urllib.parse import SplitResult, quote, unquote

from ..errors import CPersonaError
from .key import Key, KeyFailure

_LARGEST_ANSWER = 64 * 1024 * 1024
_CHUNK = 256 * 1024
# A service that takes longer to accept is down; the timeout is for its thinking.
_CONNECT_SECONDS = 5.0
_DENIED = (401, 403)
_MEANS = {
    401: "it does not take the key or password",
    403: "it does not take the key or password",
    404: "it has nothing at this path, or not the model that is asked for",
    413: "the texts are too long or too many for it",
    429: "it asks for fewer requests",
}


class HttpService:
    """A service at an address. ``what`` names it in messages, as ``failure`` of the caller's kind.

    A request may take ``timeout`` seconds in all. Every method may be called from any thread.
    """

    def __init__(
        self, what: str, variable: str, parts: SplitResult, key: Key, timeout: float, failure: type[CPersonaError]
    ) -> None:
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self.path = parts.path or "/"
        self._target = quote(self.path + (f"?{parts.query}" if parts.query else ""), safe="/?&=%:+,;@!$'()*~-._")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.username is not None:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode("ascii")
        # Shown in messages and logs: never the user name, password or query of the address.
        self.place = f"{self._host}:{self._port}" if self._port else self._host
        if "@" in parts.path + parts.query + parts.fragment:
            self.place = variable  # perhaps a password with a sign that ends the host's part
        self._what, self._key, self._timeout, self._failure = what, key, timeout, failure
        self._guard = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()
        self._generation = 0

    def close(self) -> None:
        """Close every connection; a call under way fails at once instead of at its timeout."""
        with self._guard:
            idle, busy = self._idle, list(self._busy)
            self._idle = []
            self._generation += 1
        for connection in idle:
            connection.close()
        for connection in busy:
            if connection.sock is not None:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it was closed in this moment

    def ask(self, body: bytes, deadline: float | None = None) -> bytes:
        """Return the answer to one request. Raises the failure of this service for anything but 200."""
        status, answer = self.post(body, deadline)
        if status != 200:
            raise self.denied(status)
        return answer

    def post(self, body: bytes, deadline: float | None = None) -> tuple[int, bytes]:
        """Return status and body of the answer. ``deadline`` is of time.monotonic; without, the timeout from now on."""
        deadline = time.monotonic() + self._timeout if deadline is None else deadline
        generation, headers = self._generation, self._headers
        try:
            if (bearer := self._key.bearer()) is not None:
                headers = {**headers, "Authorization": bearer}
        except KeyFailure as error:
            raise self._failure(f"the {self._what} at {self.place} was not asked: {error}") from None
        while True:
            connection, reused = self._take()
            try:
                status, data, keep = self._exchange(connection, body, headers, deadline)
            except (http.client.HTTPException, OSError) as error:
                self._put(connection, keep=False)
                if (
                    reused
                    and generation == self._generation
                    and isinstance(error, (BrokenPipeError, ConnectionResetError))
                ):
                    continue  # the service closed an idle connection; nothing was answered, so asking again is safe
                raise self._unreachable(error) from error
            except BaseException:
                self._put(connection, keep=False)
                raise
            self._put(connection, keep)
            if status in _DENIED:
                self._key.refused()
            return status, data

    def denied(self, status: int) -> CPersonaError:
        """Return the failure that an answer with another status than 200 is."""
        means = _MEANS.get(status)
        if status in _DENIED:
            means = f"{means} ({self._key.variable} or {self._key.variable}_FILE)"
        return self._failure(
            f"the {self._what} at {self.place} answered HTTP {status}" + (f": {means}" if means else "")
        )

    def refused(self, why: str) -> CPersonaError:
        """Return the failure that an answer is which cannot be used: ``why`` goes on from "the answer of …"."""
        return self._failure(f"the answer of the {self._what} at {self.place} {why}")

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, headers: dict[str, str], deadline: float
    ) -> tuple[int, bytes, bool]:
        connection.timeout = min(_left(deadline), _CONNECT_SECONDS)
        sock = connection.sock or _connected(connection)
        sock.settimeout(_left(deadline))
        connection.request("POST", self._target, body, headers)
        response = connection.getresponse()
        chunks, size = [], 0
        while True:
            # A timeout of the socket starts anew with every byte; the deadline does not.
            sock.settimeout(_left(deadline))
            chunk = response.read1(_CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size > _LARGEST_ANSWER:
                raise self.refused(f"is larger than {_LARGEST_ANSWER >> 20} MiB")
            chunks.append(chunk)
        keep = not response.will_close and not response.length  # a body cut short leaves nothing that could be reused
        response.close()  # read1 does not notice the end of a counted body by itself
        return response.status, b"".join(chunks), keep

    def _unreachable(self, error: Exception) -> CPersonaError:
        named = f"the {self._what} at {self.place}"
        if isinstance(error, TimeoutError):
            return self._failure(f"{named} did not answer in time")
        if isinstance(error, ConnectionRefusedError):
            return self._failure(f"{named} refuses connections")
        if isinstance(error, OSError):
            return self._failure(f"{named} failed ({type(error).__name__}: {error})")
        # What these quote is what the service sent, which may be what we sent it.
        return self._failure(f"{named} sends what is no answer in HTTP ({type(error).__name__})")

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._guard:
            reused = bool(self._idle)
            if reused:
                connection = self._idle.pop()
            else:
                kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
                connection = kind(self._host, self._port)
            self._busy.add(connection)
        return connection, reused

    def _put(self, connection: http.client.HTTPConnection, keep: bool) -> None:
        with self._guard:
            self._busy.discard(connection)
            if keep and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connected(connection: http.client.HTTPConnection) -> socket.socket:
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.sock
