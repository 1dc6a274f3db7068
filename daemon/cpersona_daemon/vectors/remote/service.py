"""Asking a vector service, each of its paths over connections of its own.

Contract: remote.search, remote.told, services.keys.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import sha256

from ...errors import VectorServiceFailure
from ...services.address import EMBEDDING, checked, variable_of
from ...services.answers import Unfit
from ...services.http import HttpService
from ...shared.addresses import address_without_secrets
from ...shared.settings import Settings
from . import shapes
from .shapes import INDEX, PURGE, REMOVE, SEARCH, Found, Item

SEARCH_SECONDS, TELL_SECONDS = 5.0, 10.0
_REFUSED = (400, 413, 422)  # what is said to one request, and not of the service's own state


class Service:
    """The vector service beside the embedder that the settings name. Calls block; several threads may call at once.

    Questions and texts get what stands before them for the embedder: both are read by the same model. Raises
    SettingsConflict for an address that is none, and every method VectorServiceFailure.
    """

    def __init__(self, settings: Settings) -> None:
        embed, key = checked(settings, EMBEDDING)
        self._paths = {
            path: HttpService(
                "vector service",
                variable_of(EMBEDDING),
                shapes.sibling(embed, path),
                key,
                SEARCH_SECONDS if path == SEARCH else TELL_SECONDS,
                VectorServiceFailure,
            )
            for path in (SEARCH, INDEX, REMOVE, PURGE)
        }
        self.place = self._paths[SEARCH].place
        self._before_question, self._before_text = settings.embedding_query_prefix, settings.embedding_document_prefix
        # Texts that begin with something else are other texts. The address is told without what is secret of it.
        address = address_without_secrets(settings.embedding_url) or variable_of(EMBEDDING)
        prefixed = f"+{sha256(self._before_text.encode()).hexdigest()[:8]}" if self._before_text else ""
        self.target = f"remote:{address}{prefixed}"

    def search(
        self, agent_id: str, question: str, limit: int, floor: float, deadline: float | None = None
    ) -> list[Found]:
        """Return the rows of an agent that are nearest to a question. ``deadline`` is of time.monotonic."""
        service = self._paths[SEARCH]
        latest = time.monotonic() + SEARCH_SECONDS
        body = shapes.search_body(agent_id, self._before_question + question, limit, floor)
        answer = service.ask(body, latest if deadline is None else min(deadline, latest))
        try:
            return shapes.found(answer)
        except Unfit as error:
            raise service.refused(str(error)) from None

    def index(self, agent_id: str, items: Sequence[Item]) -> None:
        """Have rows of an agent kept, ``MOST_ITEMS`` at most."""
        sent = [item._replace(text=self._before_text + item.text) for item in items]
        self._tell(INDEX, shapes.index_body(agent_id, sent))

    def remove(self, agent_id: str, refs: Sequence[str]) -> None:
        """Have rows of an agent kept no longer."""
        self._tell(REMOVE, shapes.remove_body(agent_id, refs))

    def purge(self, agent_id: str) -> None:
        """Have nothing of an agent kept."""
        self._tell(PURGE, shapes.purge_body(agent_id))

    def close(self) -> None:
        """Close every connection; a call under way fails at once."""
        for service in self._paths.values():
            service.close()

    def _tell(self, path: str, body: bytes) -> None:
        service = self._paths[path]
        status, _ = service.post(body)
        if status >= 300:
            failure = service.denied(status)
            assert isinstance(failure, VectorServiceFailure)
            failure.refused = status in _REFUSED
            raise failure
