"""`reindex`: rebuild the word and vector indexes.

Contract: embedding.identity, health.repairs.
"""

from __future__ import annotations

from ..declare.spec import PLAIN, PROGRESS, WAIT, command, option
from ._waiting import tempo, until_embedded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..session import Session


@command(
    "reindex",
    option("--vectors", "Only the vector indexes; a vector service is filled anew.", kind="flag", default=False),
    WAIT,
    PROGRESS,
    common=PLAIN,
)
def reindex(session: Session, vectors: bool, wait: bool, progress: bool) -> int:
    """Rebuild the word and vector indexes, and embed every row that has no vector of the present model.

    Other commands keep working meanwhile.

    Example:
      cpersona reindex
      cpersona reindex --wait
      cpersona reindex --vectors
    """
    from ._runs import watch

    def early(reached: dict) -> str:
        far = (
            f"at least {reached['done']:,} of {reached['total']:,} rows stand in the word index anew"
            if "done" in reached
            else "how far it came is not known"
        )
        return f"{far}; the old indexes serve until it is run again"

    answer = watch(session, "reindex", {"vectors": True} if vectors else {}, early, lines=progress)
    if not session.show(answer):
        session.out.records(_rebuilt(answer.response))
    if wait and not answer.status:
        return until_embedded(session, progress)
    if answer.response.get("waiting_for_embedding"):
        session.out.note(
            f"the vectors are made in the background: `cpersona status --watch` shows how far{tempo(session)}"
        )
    return answer.status


def _rebuilt(response: dict) -> Iterator[tuple[str, object]]:
    """Return what a reindex did as (what, how many) pairs."""
    for name in ("memories", "episodes"):
        if name in response:
            yield f"{name} in the word index", response[name]
    for name, count in (response.get("vectors") or {}).items():
        yield f"{name} with a vector", count
    yield "listed for embedding", response.get("listed_for_embedding")
    yield "waiting for embedding", response.get("waiting_for_embedding")


COMMANDS = (reindex,)
