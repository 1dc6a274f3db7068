"""Whether the services that the settings name answer: each is asked one tiny question, as the daemon asks it.

Contract: health.doctor, embedding.openai, rerank.asks, remote.search, services.keys.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

from ..errors import EmbeddingFailure, RerankFailure, SettingsConflict, VectorServiceFailure
from ..model.identity import may_change_width, same_model
from ..services.address import EMBEDDING, QDRANT, RERANK, checked, variable_of
from ..shared.addresses import FOLDER
from ..shared.settings import CONFIG, Settings, config_path
from .findings import OK, WARN, Finding

PATIENCE_SECONDS = 5.0  # longer than a reranker has: how slow it is can be said then
_LINES = "`cpersona help models` has the lines for usual servers"
_HERE = ("localhost", "127.0.0.1", "::1")
_QUESTION, _ANSWER, _OTHER = "which animal barks?", "A dog is an animal that barks.", "The invoice is due in March."


def embedding_service(settings: Settings, known: tuple[str, int] | None) -> Iterator[Finding]:
    """The embedding service answers, with vectors that the database's can be compared with.

    ``known`` is the identity and the width of the database's vectors, None without any.
    """
    from ..embedding.http import embedder_of

    try:
        yield from _key(settings, EMBEDDING)
        embedder = embedder_of(settings, min(PATIENCE_SECONDS, settings.embedding_timeout_secs))
        try:
            embedder.embed([settings.embedding_document_prefix + "doctor"])
        finally:
            embedder.unload()
    except (EmbeddingFailure, SettingsConflict) as error:
        yield WARN, str(error), f"start it, or correct CPERSONA_EMBEDDING_URL; {_LINES}"
        return
    model, width = embedder.model
    told = f"model {model}" if model else "a model that it does not name"
    yield OK, f"the embedding service at {embedder.place} answers: {told}, {width} numbers", ""
    if known is None:
        return
    if known[1] != width and not may_change_width(known[0], model):
        yield (
            WARN,
            f"the database's vectors have {known[1]} numbers, so the service's are refused",
            "set what the memories were embedded with, or another CPERSONA_EMBEDDING_MODEL and run `cpersona reindex`",
        )
    elif not same_model(known[0], model):
        yield (
            WARN,
            f"the latest vectors of the database are of {known[0]}; rows of another model are found by words alone",
            "`cpersona reindex` has them embedded anew",
        )


def reranker(settings: Settings) -> Iterator[Finding]:
    """The reranker answers, in time, and knows an answer from another text."""
    if not settings.rerank_url:
        yield OK, "no reranker is asked for", ""
        return
    from ..rerank.service import Asker

    try:
        yield from _key(settings, RERANK)
        asker, started = Asker(settings), time.monotonic()
        try:
            answer, other = asker.scores(_QUESTION, [_ANSWER, _OTHER], started + PATIENCE_SECONDS)
        finally:
            asker.close()
    except (RerankFailure, SettingsConflict) as error:
        yield WARN, str(error), f"start it, or correct CPERSONA_RERANK_URL; {_LINES}"
        return
    seconds, most = time.monotonic() - started, settings.rerank_timeout_secs
    yield OK, f"the reranker at {asker.place} answers: two texts in {seconds:.2g} s", ""
    if seconds > most:
        yield (
            WARN,
            f"the reranker took {seconds:.2g} s for two texts, and a recall waits {most:g} s for twenty",
            "give it a smaller model, or a recall more time with CPERSONA_RERANK_TIMEOUT_SECS",
        )
    if answer <= other:
        yield (
            WARN,
            f"the reranker scores an answer ({answer:.3g}) no higher than a text about something else ({other:.3g})",
            f"give it a model that is made for reranking; {_LINES}",
        )


def vector_service(settings: Settings) -> Iterator[Finding]:
    """The service that searches vectors, where it is not the daemon, answers a search."""
    if settings.vector_search_mode == "qdrant":
        yield from _qdrant(settings)
        return
    if settings.vector_search_mode != "remote":
        yield OK, "vectors are searched by the daemon itself", ""
        return
    from ..vectors.remote.service import Service

    try:
        service = Service(settings)
        try:
            service.search("", _QUESTION, 1, 0.0)
        finally:
            service.close()
    except (VectorServiceFailure, SettingsConflict) as error:
        yield WARN, str(error), "start it, or correct CPERSONA_EMBEDDING_URL; recalls compare vectors here meanwhile"
        return
    yield OK, f"the vector service at {service.place} answers", ""


def _key(settings: Settings, what: str) -> Iterator[Finding]:
    parts, key = checked(settings, what)
    if (said := key.exposed()) is not None:
        problem, _, do = said.partition("; ")
        yield WARN, problem, do
    config = config_path()
    if settings.origin(f"{what}_api_key") == CONFIG and os.stat(config).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield WARN, f"others can use {config}, which holds a key", f"`chmod go= {config}`"
    if key.given and parts.scheme == "http" and parts.hostname not in _HERE:
        yield WARN, f"the key goes to {variable_of(what)} without encryption", "give it an https address"


def _qdrant(settings: Settings) -> Iterator[Finding]:
    """Qdrant answers, and takes the key."""
    from ..vectors import choice
    from ..vectors.qdrant.client import Failed

    try:
        client = choice.qdrant(settings)
        if not settings.qdrant_url.startswith(FOLDER):
            yield from _key(settings, QDRANT)
        try:
            count = len(client.collections())
        finally:
            client.close()
    except (Failed, SettingsConflict) as error:
        yield WARN, str(error), "start it, or correct CPERSONA_QDRANT_URL; recalls compare vectors here meanwhile"
        return
    yield OK, f"{client.place} answers: {count} collections", ""
