"""An embedder behind an HTTP service: POST ``{"texts": […]}`` -> ``{"embeddings": [[…]], "model"?}``.

An answer is taken whole or refused: a wrong count, a non-number, a width other than the database's is a
failure, never a vector. Connections are kept alive, one for each call under way.

Contract: embedding.http.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import numpy as np

from ..errors import EmbeddingFailure
from ..model.identity import VectorModel, may_change_width
from .address import checked
from .base import unit_rows
from .turns import Piece, at_once
from .values import Declared, Embeddings

TEXTS_PER_REQUEST = 32
_LARGEST_ANSWER = 64 * 1024 * 1024
_CHUNK = 256 * 1024
# A service that takes longer to accept is down; the timeout is for its thinking.
_CONNECT_SECONDS = 5.0


class _Answer(msgspec.Struct):
    embeddings: list[list[float]]
    model: Any = None


_decode = msgspec.json.Decoder(_Answer).decode


class HttpEmbedder:
    """Asks the service at ``url``; a request may take ``timeout`` seconds in all. Raises SettingsConflict for a url
    that is none.
    """

    name = "http"
    declared: Declared | None = None
    resident = False
    slice_size = TEXTS_PER_REQUEST
    query_threads = 2

    def __init__(self, url: str, timeout: float) -> None:
        parts = checked(url)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._path = quote(
            (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe="/?&=%:+,;@!$'()*~-._"
        )
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.username is not None:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode("ascii")
        # Shown in messages and logs: never the user name, password or query of the address.
        self.place = f"{self._host}:{self._port}" if self._port else self._host
        if "@" in parts.path + parts.query + parts.fragment:
            self.place = "CPERSONA_EMBEDDING_URL"  # perhaps a password with a sign that ends the host's part
        self._timeout = timeout
        self._guard = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()
        self._generation = 0
        self._known: tuple[str, int] | None = None
        self._model = VectorModel("", None)

    @property
    def model(self) -> VectorModel:
        return self._model

    def expect(self, model: str, dimension: int) -> None:
        """Refuse from now on answers of another width, unless they are certainly another model's."""
        with self._guard:
            self._known = (model, dimension)

    def sense(self, words: Sequence[str]) -> float:
        return 1.0

    def load(self) -> None:
        """There is nothing to load; the service is asked when there is something to embed."""

    def unload(self) -> None:
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

    def embed(self, texts: list[str], piece: Piece = at_once) -> Embeddings:
        model: str | None = None
        rows: list[np.ndarray] = []
        for start in range(0, len(texts), TEXTS_PER_REQUEST):
            some = texts[start : start + TEXTS_PER_REQUEST]
            part, answered = piece("request", lambda stop: self._request(some))  # noqa: B023
            if rows and (answered != model or part.shape[1] != rows[0].shape[1]):
                raise EmbeddingFailure(
                    f"the embedding service at {self.place} changed its model in the middle of a batch"
                )
            rows.append(part)
            model = answered
        if not rows:
            identity, width = self._model
            return Embeddings(np.empty((0, width or 0), dtype=np.float32), identity)
        return Embeddings(np.concatenate(rows), model or "")

    # -- one request

    def _request(self, texts: list[str]) -> tuple[np.ndarray, str]:
        # ASCII escapes carry a lone surrogate too, which UTF-8 cannot.
        status, body = self._post(json.dumps({"texts": texts}).encode("ascii"))
        if status != 200:
            raise EmbeddingFailure(f"the embedding service at {self.place} answered HTTP {status}")
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._refused(f"is not what was asked for ({error})") from None
        return self._check(answer, len(texts))

    def _check(self, answer: _Answer, count: int) -> tuple[np.ndarray, str]:
        """Return the answer's vectors, of unit length, and the model that it names. Raises EmbeddingFailure for any
        other answer.
        """
        rows = answer.embeddings
        if (wrong := _wrong(rows, count)) is not None:
            raise self._refused(wrong)
        vectors = unit_rows(np.array(rows, dtype=np.float64))
        model, width = answer.model if isinstance(answer.model, str) else "", len(rows[0])
        self._learn(model, width)
        return vectors, model

    def _learn(self, model: str, width: int) -> None:
        """Remember which model answered. Raises EmbeddingFailure for vectors that the database's cannot be compared
        with.
        """
        with self._guard:
            known = self._known
            if known is not None and known[1] != width and not may_change_width(known[0], model):
                raise self._refused(
                    f"has vectors of {width} numbers, the database's have {known[1]};"
                    " configure the service that the memories were embedded with, or reindex"
                )
            # A service that leaves its name out once is still the model that it named before.
            if known is not None and not model and not may_change_width(known[0], model):
                self._known = (known[0], width)
            else:
                self._known = (model, width)
            self._model = VectorModel(model, width)

    def _refused(self, why: str) -> EmbeddingFailure:
        return EmbeddingFailure(f"the answer of the embedding service at {self.place} {why}")

    # -- connections

    def _post(self, body: bytes) -> tuple[int, bytes]:
        deadline, generation = time.monotonic() + self._timeout, self._generation
        while True:
            connection, reused = self._take()
            try:
                status, data, keep = self._exchange(connection, body, deadline)
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
            return status, data

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, deadline: float
    ) -> tuple[int, bytes, bool]:
        sock = connection.sock or _connected(connection)
        sock.settimeout(self._left(deadline))
        connection.request("POST", self._path, body, self._headers)
        response = connection.getresponse()
        chunks, size = [], 0
        while True:
            # A timeout of the socket starts anew with every byte; the deadline does not.
            sock.settimeout(self._left(deadline))
            chunk = response.read1(_CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size > _LARGEST_ANSWER:
                raise self._refused(f"is larger than {_LARGEST_ANSWER >> 20} MiB")
            chunks.append(chunk)
        keep = not response.will_close and not response.length  # a body cut short leaves nothing that could be reused
        response.close()  # read1 does not notice the end of a counted body by itself
        return response.status, b"".join(chunks), keep

    def _left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _unreachable(self, error: Exception) -> EmbeddingFailure:
        if isinstance(error, TimeoutError):
            return EmbeddingFailure(f"the embedding service at {self.place} did not answer in time")
        if isinstance(error, ConnectionRefusedError):
            return EmbeddingFailure(f"the embedding service at {self.place} refuses connections")
        if isinstance(error, OSError):
            return EmbeddingFailure(f"the embedding service at {self.place} failed ({type(error).__name__}: {error})")
        # What these quote is what the service sent, which may be what we sent it.
        return EmbeddingFailure(
            f"the embedding service at {self.place} sends what is no answer in HTTP ({type(error).__name__})"
        )

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._guard:
            reused = bool(self._idle)
            if reused:
                connection = self._idle.pop()
            else:
                kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
                connection = kind(self._host, self._port, timeout=min(self._timeout, _CONNECT_SECONDS))
            self._busy.add(connection)
        return connection, reused

    def _put(self, connection: http.client.HTTPConnection, keep: bool) -> None:
        with self._guard:
            self._busy.discard(connection)
            if keep and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()


def _wrong(rows: list[list[float]], count: int) -> str | None:
    """Return what keeps an answer's rows from being the vectors of ``count`` texts, None where nothing does."""
    if len(rows) != count:
        return f"has {len(rows)} vectors for {count} texts"
    width = len(rows[0])
    if width == 0 or any(len(row) != width for row in rows):
        return "has empty vectors or vectors of different widths"
    if not all(math.isfinite(sum(row)) or all(map(math.isfinite, row)) for row in rows):
        return "has a number that is not finite"
    return None


def _connected(connection: http.client.HTTPConnection) -> socket.socket:
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.sock
