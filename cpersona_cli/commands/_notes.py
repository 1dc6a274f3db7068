"""Asking which notes of commits there are, as many as there may be.

Contract: git.notes.
"""

from __future__ import annotations

from ..git import commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpersona_daemon.shared.settings import Settings

    from ..session import Session

ASKED_TOGETHER = 10_000


def found(session: Session, settings: Settings, ids: list[str], refs: bool = False) -> Iterator[dict]:
    """Yield find_notes' answers about message ids, for some thousands of them each: `{missing, outdated, refs?}`."""
    for at in range(0, len(ids), ASKED_TOGETHER):
        asked = {**commits.owner(settings), "ids": ids[at : at + ASKED_TOGETHER], "refs": refs}
        yield session.ask("find_notes", asked).response
