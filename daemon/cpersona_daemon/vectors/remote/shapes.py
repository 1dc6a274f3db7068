"""How a vector service beside an embedder is asked and what it answers. Pure functions of addresses and bytes.

Contract: remote.search, remote.told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import SplitResult

import msgspec

from ...model.kinds import Rid, parse_ref
from ...services.answers import decoded

EMBED = "/embed"  # what the embedder's path ends in, in whose place the others stand
SEARCH, INDEX, REMOVE, PURGE = "/search", "/index", "/remove", "/purge"
MOST_ITEMS = 100  # in one request: a service may refuse more
MOST_HITS = 500  # what the reference's server answers at most


class Item(NamedTuple):
    """A row as a service indexes it: its ref and its text."""

    id: str
    text: str


class Found(NamedTuple):
    """A row that a service names, and how near it says that it is."""

    rid: Rid
    score: float


def sibling(embed: SplitResult, path: str) -> SplitResult:
    """Return the address of another path of an embedder's service; all else of it stays, the query string too."""
    return embed._replace(path=embed.path.removesuffix(EMBED) + path)


def namespace(agent_id: str) -> str:
    """Return under which name a service keeps the rows of an agent."""
    return f"cpersona:{agent_id}"


def search_body(agent_id: str, query: str, limit: int, floor: float) -> bytes:
    """Return the request for the ``limit`` rows of an agent that are nearest to a question, none below ``floor``."""
    asked = {"query": query, "limit": min(limit, MOST_HITS), "min_similarity": floor}
    return _body(agent_id, asked)


def index_body(agent_id: str, items: Sequence[Item]) -> bytes:
    """Return the request to keep rows, in the place of what is kept of them."""
    return _body(agent_id, {"items": [item._asdict() for item in items]})


def remove_body(agent_id: str, refs: Sequence[str]) -> bytes:
    """Return the request to keep rows no longer."""
    return _body(agent_id, {"ids": list(refs)})


def purge_body(agent_id: str) -> bytes:
    """Return the request to keep nothing of an agent."""
    return _body(agent_id, {})


def _body(agent_id: str, more: dict[str, Any]) -> bytes:
    # ASCII escapes carry a lone surrogate too, which UTF-8 cannot.
    return json.dumps({"namespace": namespace(agent_id), **more}).encode("ascii")


class _Result(msgspec.Struct):
    score: float  # finite: neither NaN nor a number beyond its range is one to the decoder
    id: Any = None


class _Results(msgspec.Struct):
    results: list[_Result]


_decode = msgspec.json.Decoder(_Results).decode


def found(body: bytes) -> list[Found]:
    """Return the rows that an answer names, as it orders them, each once; an id that names none is left out.

    Raises Unfit for an answer without results, or with a score that is no finite number.
    """
    results = decoded(_decode, body).results
    best: dict[Rid, float] = {}
    for result in results:
        if (rid := parse_ref(result.id)) is not None:
            best.setdefault(rid, result.score)
    return [Found(rid, score) for rid, score in best.items()]
