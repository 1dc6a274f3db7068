"""An embedder behind an HTTP service, in the shape that it speaks.

An answer is taken whole or refused: a wrong count, a non-number, a width other than the database's is a
failure, never a vector.

Contract: embedding.http, embedding.openai, embedding.prefixes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ..errors import EmbeddingFailure
from ..model.identity import VectorModel, bare, may_change_width, with_prefix
from ..services.address import EMBEDDING, checked, variable_of
from ..services.answers import Unfit
from ..services.http import HttpService
from ..shared.settings import Settings
from .base import unit_rows
from .shapes import Shape, shape_of
from .turns import Piece, at_once
from .values import Declared, Embeddings, Prefixes

TEXTS_PER_REQUEST = 32


def embedder_of(settings: Settings, timeout: float | None = None) -> HttpEmbedder:
    """Return the http embedder of some settings. Raises SettingsConflict for an address that is none."""
    parts, key = checked(settings, EMBEDDING)
    seconds = settings.embedding_timeout_secs if timeout is None else timeout
    service = HttpService("embedding service", variable_of(EMBEDDING), parts, key, seconds, EmbeddingFailure)
    return HttpEmbedder(
        service,
        shape_of(settings.embedding_api, settings.embedding_url),
        settings.embedding_model,
        Prefixes(settings.embedding_query_prefix, settings.embedding_document_prefix),
    )


class HttpEmbedder:
    """Asks a service in one shape for the vectors of one model; ``model`` is its name where the service tells none.

    What is put before documents is part of the identity of their vectors: with another prefix they are others.
    """

    name = "http"
    declared: Declared | None = None
    resident = False
    slice_size = TEXTS_PER_REQUEST
    query_threads = 2

    def __init__(self, service: HttpService, shape: Shape, model: str, prefixes: Prefixes) -> None:
        self._service, self._shape, self._named, self.prefixes = service, shape, model, prefixes
        self.place = service.place
        self._guard = threading.Lock()
        self._known: tuple[str, int] | None = None
        self._model = VectorModel("", None)

    @property
    def model(self) -> VectorModel:
        return self._model

    def expect(self, model: str, dimension: int) -> None:
        """Refuse from now on answers of another width, unless they are certainly another model's."""
        with self._guard:
            self._known = (bare(model), dimension)

    def sense(self, words: Sequence[str]) -> float:
        return 1.0

    def load(self) -> None:
        """There is nothing to load; the service is asked when there is something to embed."""

    def unload(self) -> None:
        """Close every connection; a call under way fails at once instead of at its timeout."""
        self._service.close()

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

    def _request(self, texts: list[str]) -> tuple[np.ndarray, str]:
        """Return the vectors of some texts, of unit length, and the identity of the model that made them. Raises
        EmbeddingFailure for any other answer.
        """
        body = self._service.ask(self._shape.body(texts, self._named))
        try:
            rows, answered = self._shape.read(body, len(texts))
        except Unfit as error:
            raise self._service.refused(str(error)) from None
        vectors, model = unit_rows(np.array(rows, dtype=np.float64)), answered or self._named
        self._learn(model, vectors.shape[1])
        return vectors, with_prefix(model, self.prefixes.document)

    def _learn(self, model: str, width: int) -> None:
        """Remember which model answered. Raises EmbeddingFailure for vectors that the database's cannot be compared
        with.
        """
        with self._guard:
            known = self._known
            if known is not None and known[1] != width and not may_change_width(known[0], model):
                raise self._service.refused(
                    f"has vectors of {width} numbers, the database's have {known[1]};"
                    " configure the service that the memories were embedded with, or reindex"
                )
            # A service that leaves its name out once is still the model that it named before.
            if known is not None and not model and not may_change_width(known[0], model):
                self._known = (known[0], width)
            else:
                self._known = (model, width)
            self._model = VectorModel(with_prefix(model, self.prefixes.document), width)
