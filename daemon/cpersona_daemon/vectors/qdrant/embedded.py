"""Qdrant's engine inside this process: a folder with a shard for each collection.

It scans; a graph is built only by ``optimize``. Shards are opened when they are asked for, and belong to one process.

Contract: qdrant.embedded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .client import Failed, Point, Search
from .filters import INTEGERS, KEYWORDS, Filter

T = TypeVar("T")


class Embedded:
    """A Client over shards in a folder, which is made when the first one is."""

    def __init__(self, folder: str) -> None:
        self.place, self._folder = f"the Qdrant in {folder}", folder
        self._guard = threading.RLock()
        self._shards: dict[str, Any] = {}
        self._closed = False

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _shard(self, name: str) -> Any:
        with self._guard:
            if self._closed:
                raise Failed(f"{self.place} is closed")
            if name not in self._shards:
                if not os.path.isdir(self._path(name)):
                    raise Failed(f"{self.place} has not the collection", missing=True)
                import qdrant_edge

                try:
                    self._shards[name] = qdrant_edge.EdgeShard.load(self._path(name))
                except Exception as error:
                    if "WouldBlock" in str(error):
                        raise Failed(f"{self.place} is in use by another process") from None
                    raise Failed(f"{self.place} cannot open the collection: it is damaged", missing=True) from None
            return self._shards[name]

    def _call(self, name: str, work: Callable[[Any], T]) -> T:
        shard = self._shard(name)
        try:
            return work(shard)
        except Exception as error:  # the package has one kind for all
            said = str(error)
            if "not initialized" in said:
                raise Failed(f"{self.place} is closed") from None
            raise Failed(f"{self.place} failed ({said.partition(':')[0][:60]})", unfit="dimension" in said) from None

    def collections(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if os.path.isdir(os.path.join(self._path(name))))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Failed(f"{self.place} cannot be read: {error.strerror}") from None

    def create(self, name: str, width: int) -> None:
        import qdrant_edge as edge

        with self._guard:
            try:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                os.makedirs(self._path(name), 0o700, exist_ok=True)
                vectors = edge.EdgeVectorParams(size=width, distance=edge.Distance.Dot)
                shard = self._shards[name] = edge.EdgeShard.create(self._path(name), edge.EdgeConfig(vectors=vectors))
                for key in KEYWORDS:
                    shard.update(edge.UpdateOperation.create_field_index(key, edge.PayloadSchemaType.Keyword))
                for key in INTEGERS:
                    shard.update(edge.UpdateOperation.create_field_index(key, edge.PayloadSchemaType.Integer))
            except OSError as error:
                raise Failed(f"{self.place} cannot be written to: {error.strerror}") from None
            except Exception as error:
                raise Failed(f"{self.place} failed ({str(error).partition(':')[0][:60]})") from None

    def drop(self, name: str) -> None:
        with self._guard:
            shard = self._shards.pop(name, None)
            if shard is not None:
                with contextlib.suppress(Exception):
                    shard.close()
            shutil.rmtree(self._path(name), ignore_errors=True)

    def upsert(self, name: str, points: Sequence[Point]) -> None:
        import qdrant_edge as edge

        made = [edge.Point(point.id, point.vector.tolist(), point.payload) for point in points]
        self._call(name, lambda shard: shard.update(edge.UpdateOperation.upsert_points(made)))

    def delete(self, name: str, ids: Sequence[int]) -> None:
        import qdrant_edge as edge

        self._call(name, lambda shard: shard.update(edge.UpdateOperation.delete_points(list(ids))))

    def delete_all(self, name: str, matching: Filter) -> None:
        import qdrant_edge as edge

        gone = edge.UpdateOperation.delete_points_by_filter(_filter(matching))
        self._call(name, lambda shard: shard.update(gone))

    def search(self, name: str, asked: Sequence[Search], deadline: float) -> list[list[tuple[int, float]]]:
        import qdrant_edge as edge

        requests = [
            edge.QueryRequest(
                limit=one.limit,
                query=edge.Query.Nearest(one.vector.tolist()),
                filter=_filter(one.filter),
                score_threshold=one.floor,
                params=edge.SearchParams(exact=one.exact),
            )
            for one in asked
        ]
        found = self._call(name, lambda shard: shard.query_batch(edge.QueryBatchRequest(requests)))
        return [[(int(hit.id), float(hit.score)) for hit in hits] for hits in found]

    def count(self, name: str) -> int:
        import qdrant_edge as edge

        return int(self._call(name, lambda shard: shard.count(edge.CountRequest(exact=True))))

    def payload(self, name: str, point: int) -> dict[str, Any] | None:
        try:
            found = self._call(name, lambda shard: shard.retrieve([point], with_payload=True, with_vector=False))
        except Failed as error:
            if error.missing:
                return None
            raise
        return dict(found[0].payload or {}) if found else None

    def set_payload(self, name: str, point: int, payload: dict[str, Any]) -> None:
        """Have a point say this, once all that it speaks of is in its place: a shard whose log is long opens slowly."""
        with self._guard:
            shards = list(self._shards)
        for shard in shards:
            self._call(shard, lambda opened: opened.flush())
        self.upsert(name, [Point(point, np.ones(1, np.float32), payload)])

    def close(self) -> None:
        with self._guard:
            self._closed = True
            shards, self._shards = list(self._shards.values()), {}
        for shard in shards:
            with contextlib.suppress(Exception):
                shard.close()


def _filter(said: Filter) -> Any:
    """Return a filter of the REST API as the package's own."""
    import qdrant_edge as edge

    must, should = ([_condition(one) for one in said[part]] if part in said else None for part in ("must", "should"))
    return edge.Filter(must=must, should=should)


def _condition(said: Filter) -> Any:
    import qdrant_edge as edge

    if "key" not in said:
        return _filter(said)
    if "range" in said:
        return edge.FieldCondition(key=said["key"], range=edge.RangeFloat(**said["range"]))
    match = said["match"]
    wanted = edge.MatchAny(match["any"]) if "any" in match else edge.MatchValue(match["value"])
    return edge.FieldCondition(key=said["key"], match=wanted)
