"""`git backfill`: the commits of history that have no note yet, a hundred in a request, several requests at once.

Contract: git.notes.
"""

from __future__ import annotations

from ..git import commits
from ..wire.interrupts import Interrupts
from . import _notes
from ._sending import Sending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings

    from ..session import Session


class Backfill(Sending):
    """The notes of commits on their way."""

    command, things = "git backfill", "commits"

    def __init__(self, session: Session, settings: Settings, batch: str | None) -> None:
        super().__init__(session, {**commits.axes(settings), "batch": batch})

    def missing(self, ids: list[str], settings: Settings) -> set[str]:
        """Return those of the notes' ids for which there is something to do; the others are skipped."""
        found: set[str] = set()
        for answer in _notes.found(self._session, settings, ids):
            found.update(answer["missing"], answer["outdated"])
        self.counts["skipped"] += len(ids) - len(found)
        return found

    def add(self, note: dict) -> None:
        """Have a note stored, given as store's parameters."""
        super().add({name: value for name, value in note.items() if name not in self._asked})

    def said(self) -> str:
        return super().said() + (f"; {self.cut:,} messages are cut" if self.cut else "")

    def named(self, note: dict) -> str:
        return note["metadata"]["commit"][:12]

    def is_cut(self, note: dict) -> bool:
        return commits.cut_of(note) is not None


def note_history(
    session: Session, repository: commits.Repository, settings: Settings, asked: list[str], run: Backfill
) -> None:
    """Have every commit that git names noted, oldest first, but for those that are noted already; a run that ends early
    says what was done until then.
    """
    with Interrupts() as interrupts:
        repository.git.wait = interrupts.for_input
        run.tell("reading history")
        listed = repository.listed(*asked)
        run.total = len(listed)
        run.begin(interrupts)
        root = repository.root() if listed else ""
        found = run.missing([commits.message_id(root, commit) for commit in listed], settings)
        due = [commit for commit in listed if commits.message_id(root, commit) in found]
        try:
            for commit in repository.named(due):
                interrupts.check()
                commit["reached_by"] = listed[commit["commit"]]
                run.add(commits.store_params(commit, repository, settings, commits.branch_of(repository, commit)))
            run.finish()
        except BrokenPipeError:
            raise
        except BaseException:
            early = run.ended_early(interrupts)
            session.out.warn(f"cpersona git backfill: {early}; run it again, what is noted already is skipped")
            interrupts.check()  # git gets the Ctrl-C of a terminal too; that it ended is no failure of its own
            raise
