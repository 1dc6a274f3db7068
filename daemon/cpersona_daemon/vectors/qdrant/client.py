"""What is asked of Qdrant, whatever it is: a server over HTTP, or its engine in this process.

Filters are those of its REST API. Every call ends within seconds and raises Failed with words that hold nothing of what
was sent or answered, nor the key.

Contract: qdrant.faults, services.keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ...services.key import Key, KeyFailure
from .filters import INTEGERS, KEYWORDS, Filter

TIMEOUT_SECONDS = 5
EXTRA = "pip install 'cpersona-cli[qdrant]'"

T = TypeVar("T")


class Failed(Exception):
    """A call failed. ``missing``: the collection is not there; ``unfit``: it will not take these points, ever."""

    def __init__(self, why: str, missing: bool = False, unfit: bool = False) -> None:
        super().__init__(why)
        self.missing, self.unfit = missing, unfit


class Point(NamedTuple):
    """A point to be kept."""

    id: int
    vector: np.ndarray
    payload: dict[str, Any]


class Search(NamedTuple):
    """A question: the nearest ``limit`` points that match, with a score of at least ``floor``."""

    vector: np.ndarray
    filter: Filter
    limit: int
    floor: float
    exact: bool


class Client(Protocol):
    """``place`` names it in messages and holds no secret. Any thread may call; ``close`` ends what runs."""

    place: str

    def collections(self) -> list[str]:
        """Return the names of all collections."""

    def create(self, name: str, width: int) -> None:
        """Make a collection for vectors of a width, compared by their dot product, with its payload indexes."""

    def drop(self, name: str) -> None:
        """Take a collection away, if it is there."""

    def upsert(self, name: str, points: Sequence[Point]) -> None:
        """Keep points in place of those of the same id. Returns when they are found."""

    def delete(self, name: str, ids: Sequence[int]) -> None:
        """Take points away, those that are there."""

    def delete_all(self, name: str, matching: Filter) -> None:
        """Take all points away that match."""

    def search(self, name: str, asked: Sequence[Search], deadline: float) -> list[list[tuple[int, float]]]:
        """Return (id, score) of the nearest points for each question; ``deadline`` is of time.monotonic."""

    def count(self, name: str) -> int:
        """Return how many points a collection has."""

    def payload(self, name: str, point: int) -> dict[str, Any] | None:
        """Return what a point says, None where there is none or no such collection."""

    def set_payload(self, name: str, point: int, payload: dict[str, Any]) -> None:
        """Have a point of a collection of width 1 say this."""

    def close(self) -> None: ...


class Served:
    """A server or a cluster, by the client that Qdrant offers."""

    def __init__(self, url: str, place: str, key: Key) -> None:
        self.place, self._url, self._key = f"the Qdrant at {place}", url, key
        self._client: Any = None

    def _connected(self) -> Any:
        if self._client is None:
            from qdrant_client import QdrantClient

            try:
                given = self._key.bearer()
            except KeyFailure as error:
                raise Failed(f"{self.place} was not asked: {error}") from None
            # What it warns of is a key over http, which is what was asked for, and said at the start.
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._client = QdrantClient(
                    url=self._url,
                    api_key=given.removeprefix("Bearer ") if given else None,
                    timeout=TIMEOUT_SECONDS,
                    prefer_grpc=False,
                    check_compatibility=False,
                )
        return self._client

    def _call(self, work: Callable[[Any], T]) -> T:
        """Return what a call returns; foreign failures become Failed here and nowhere else."""
        client = self._connected()
        from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

        try:
            return work(client)
        except UnexpectedResponse as error:
            raise self._answered(error.status_code or 0) from None
        except ResponseHandlingException as error:
            raise self._unanswered(error.source) from None
        except ApiException as error:
            raise Failed(f"{self.place} failed ({type(error).__name__})") from None
        except Exception as error:  # what its own HTTP library raises, which only it names
            raise self._unanswered(error) from None

    def _answered(self, status: int) -> Failed:
        if status in (401, 403):
            self._key.refused()
            self._client = None  # a key in a file may be renewed
            return Failed(f"{self.place} does not take the key ({self._key.variable} or {self._key.variable}_FILE)")
        if status == 404:
            return Failed(f"{self.place} has not the collection", missing=True)
        if status in (400, 413, 422):
            return Failed(f"{self.place} answered HTTP {status} to what it was sent", unfit=True)
        return Failed(f"{self.place} answered HTTP {status}")

    def _unanswered(self, error: Exception) -> Failed:
        name = type(error).__name__
        if "Timeout" in name:
            return Failed(f"{self.place} did not answer in time")
        if "Connect" in name:
            return Failed(f"{self.place} cannot be reached")
        return Failed(f"{self.place} failed ({name})")

    def collections(self) -> list[str]:
        return [one.name for one in self._call(lambda client: client.get_collections()).collections]

    def create(self, name: str, width: int) -> None:
        def work(client: Any) -> None:
            from qdrant_client import models

            client.create_collection(
                name, vectors_config=models.VectorParams(size=width, distance=models.Distance.DOT, on_disk=True)
            )
            for key in KEYWORDS:
                tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
                schema = tenant if key == KEYWORDS[0] else models.PayloadSchemaType.KEYWORD
                client.create_payload_index(name, key, field_schema=schema)
            for key in INTEGERS:
                client.create_payload_index(name, key, field_schema=models.PayloadSchemaType.INTEGER)

        self._call(work)

    def drop(self, name: str) -> None:
        try:
            self._call(lambda client: client.delete_collection(name))
        except Failed as error:
            if not error.missing:
                raise

    def upsert(self, name: str, points: Sequence[Point]) -> None:
        def work(client: Any) -> None:
            from qdrant_client import models

            batch = models.Batch(
                ids=[point.id for point in points],
                vectors=[point.vector.tolist() for point in points],
                payloads=[point.payload for point in points],
            )
            client.upsert(name, batch, wait=True)

        self._call(work)

    def delete(self, name: str, ids: Sequence[int]) -> None:
        def work(client: Any) -> None:
            from qdrant_client import models

            client.delete(name, models.PointIdsList(points=list(ids)), wait=True)

        self._call(work)

    def delete_all(self, name: str, matching: Filter) -> None:
        def work(client: Any) -> None:
            from qdrant_client import models

            client.delete(name, models.FilterSelector(filter=models.Filter(**matching)), wait=True)

        self._call(work)

    def search(self, name: str, asked: Sequence[Search], deadline: float) -> list[list[tuple[int, float]]]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Failed(f"{self.place} did not answer in time")

        def work(client: Any) -> Any:
            from qdrant_client import models

            return client.query_batch_points(
                name,
                [
                    models.QueryRequest(
                        query=one.vector.tolist(),
                        filter=models.Filter(**one.filter),
                        limit=one.limit,
                        score_threshold=one.floor,
                        params=models.SearchParams(exact=one.exact),
                        with_payload=False,
                    )
                    for one in asked
                ],
                timeout=max(1, min(TIMEOUT_SECONDS, int(left))),
            )

        return [[(int(hit.id), float(hit.score)) for hit in found.points] for found in self._call(work)]

    def count(self, name: str) -> int:
        return int(self._call(lambda client: client.count(name, exact=True)).count)

    def payload(self, name: str, point: int) -> dict[str, Any] | None:
        try:
            found = self._call(lambda client: client.retrieve(name, [point], with_payload=True))
        except Failed as error:
            if error.missing:
                return None
            raise
        return dict(found[0].payload or {}) if found else None

    def set_payload(self, name: str, point: int, payload: dict[str, Any]) -> None:
        self.upsert(name, [Point(point, np.ones(1, np.float32), payload)])

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
