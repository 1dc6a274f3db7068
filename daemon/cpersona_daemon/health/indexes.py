"""Checks of what is derived from the rows: the word index, the vector index, and the vectors themselves.

Contract: health.checks.
"""

from __future__ import annotations

from typing import Any

import apsw
import numpy as np

from ..model.kinds import VectorKind
from ..shared.pace import seconds_left
from ..storage import generations, health, passages
from ..vectors.cosine import is_usable
from .view import CRITICAL, INFO, KINDS, VECTOR_KINDS, WARN, Issue, View, issue


def lexical_index(view: View) -> list[Issue]:
    """Every row has its postings, no postings are left over, and the index is sound in itself."""
    out: list[Issue] = []
    for kind, name in KINDS:
        damage = health.postings_damage(view.conn, kind)
        if damage is not None:
            out.append(issue(CRITICAL, f"the word index of the {name} is damaged: {damage}", kind=kind))
            continue
        for found, what in (
            (health.rows_without_postings, f"{name} are not in the word index"),
            (health.postings_without_row, f"entries of the word index have no {name}"),
        ):
            count = len(found(view.conn, kind))
            if count:
                out.append(issue(WARN, f"{count} {what}", count=count, kind=kind))
    return out


def vector_index(view: View) -> list[Issue]:
    """The vector index is in use and holds what the database holds; with deep, every vector is compared."""
    (generation, _), out = generations.current(view.conn), []
    for kind, name in VECTOR_KINDS if view.deep else ():
        differing = view.ctx.vectors.differing(kind)
        if differing:
            message = (
                f"{len(differing)} {name} have another vector in the vector index than in the database,"
                " so that recall ranks them wrongly"
            )
            out.append(issue(CRITICAL, message, kind=kind, count=len(differing)))
    statuses = view.ctx.vectors.status()
    for kind, name in VECTOR_KINDS:
        for aside in statuses[kind].get("moved_aside", ()):
            message = f"what stood in the place of the vector index of the {name} is now {aside}"
            out.append(issue(INFO, message, kind=kind, path=aside))
        found = _state(statuses[kind], name)
        # Where another generation is reached a commit came in between, and the numbers cannot be compared.
        if found is None and statuses[kind].get("generation") == generation.number:
            held, stored = statuses[kind]["rows"], health.usable_vectors(view.conn, kind)
            if held != stored:
                found = CRITICAL, f"the vector index of the {name} holds {held} vectors, the database {stored}"
        if found is not None:
            out.append(issue(*found, kind=kind))
    return out


def _state(status: dict[str, Any], name: str) -> tuple[str, str] | None:
    """Return severity and message where an index is not in use or something is wrong with it."""
    if status["state"] == "rebuilding":
        return INFO, f"the vector index of the {name} is being rebuilt; recall scans the database meanwhile"
    if status["state"] != "ready":
        reason = status.get("reason", "unknown reason")
        return WARN, f"the vector index of the {name} is not in use ({reason}); recall scans the database"
    if "reason" in status:
        return WARN, f"the vector index of the {name} is in use, but {status['reason']}"
    return None


def missing_vectors(view: View) -> list[Issue]:
    """Every row has a vector, and a long one its passages, or waits for them, where there is an embedder."""
    out: list[Issue] = []
    if not view.ctx.embedding.enabled:
        return out
    for kind, name in KINDS:
        listed, forgotten = health.without_vector(view.conn, kind, view.agent_id)
        if forgotten:
            out.append(
                issue(WARN, f"{forgotten} {name} have no vector and do not wait for one", count=forgotten, kind=kind)
            )
        if listed:
            message = f"{listed} {name} wait for their vector{_left(listed, view.ctx.backlog.rate)}"
            out.append(issue(INFO, message, count=listed, kind=kind))
        listed, forgotten = passages.count_missing(view.conn, kind, view.agent_id)
        if forgotten:
            message = f"{forgotten} long {name} have no passages and do not wait for any"
            out.append(issue(WARN, message, count=forgotten, kind=kind))
        if listed:
            out.append(issue(INFO, f"{listed} long {name} wait for their passages", count=listed, kind=kind))
    return out


def _left(listed: int, rate: float | None) -> str:
    """Return how long so many take, in words behind a number; '' where that is not known."""
    left = seconds_left(listed, rate)
    return "" if left is None or rate is None else f", {max(1, round(left))} s at {rate:.2g} rows a second"


def foreign_vectors(view: View) -> list[Issue]:
    """Every vector is of the present model, so that vector search can see it."""
    embedding = view.ctx.embedding
    out: list[Issue] = []
    model, dimension = embedding.model
    if not embedding.enabled or dimension is None:
        return out
    for kind, name in VECTOR_KINDS:
        listed, others = health.foreign_vectors(view.conn, kind, model, dimension, view.agent_id)
        if others:
            out.append(
                issue(
                    WARN,
                    f"{others} {name} have a vector of another model, which recall passes over;"
                    " reindex embeds them anew",
                    count=others,
                    kind=kind,
                )
            )
        if listed:
            out.append(
                issue(
                    INFO, f"{listed} {name} with a vector of another model wait for a new one", count=listed, kind=kind
                )
            )
    return out


def damaged_vectors(view: View) -> list[Issue]:
    """Every stored vector is one; with deep, its numbers are looked at too."""
    out: list[Issue] = []
    for kind, name in VECTOR_KINDS:
        count = len(damaged(view.conn, kind, view.deep, view.agent_id))
        if count:
            out.append(
                issue(
                    WARN,
                    f"{count} {name} have a vector that is none (wrong length, not finite or zero)",
                    count=count,
                    kind=kind,
                )
            )
    return out


def damaged(conn: apsw.Connection, kind: VectorKind, deep: bool, agent_id: str = "") -> list[int]:
    """Return the ids of stored vectors that count as none."""
    found = health.broken_vectors(conn, kind, agent_id)
    if deep:
        found += [
            row_id
            for row_id, data in health.vectors_of(conn, kind, agent_id)
            if data and len(data) % 4 == 0 and not is_usable(np.frombuffer(data, "<f4"))
        ]
    return found
