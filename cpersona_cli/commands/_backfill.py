"""`git backfill`: the commits of history that have no note yet, a hundred in a request, several requests at once.

Contract: git.notes.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..git import commits
from ..terminal.failure import failure_line
from ..wire.interrupts import Interrupts
from . import _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings

    from ..session import Session

# Together the notes of a request are one commit of the database; more would hold up other writers.
TOGETHER, IN_FLIGHT = 100, 4


class Backfill:
    """Notes on their way, at most ``IN_FLIGHT`` requests at once, and what became of them."""

    def __init__(self, session: Session, batch: str | None) -> None:
        from ..terminal import progress

        self._session, self._batch, self.total = session, batch, 0
        self.counts = {"stored": 0, "skipped": 0, "rejected": 0}
        self.cut = self.paused = 0
        self.status = fields.EXIT_OK
        self._ready: list[dict] = []
        self._waiting: dict[int, list[dict]] = {}
        self._shown = progress.shown(session.out, session.name)

    def __enter__(self) -> Backfill:
        if self._shown is not None:
            self._shown.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def waiting(self) -> int:
        """How many notes have no answer yet."""
        return sum(map(len, self._waiting.values()))

    def tell(self, stage: str) -> None:
        """Say on a terminal what is being done before there is anything to count."""
        if self._shown is not None:
            self._shown({"stage": stage})

    def begin(self) -> None:
        """Reach the daemon: where none can be had, nothing has begun and nothing ends early."""
        self.tell("starting the daemon")
        self._connection = self._session.connection

    def missing(self, ids: list[str], settings: Settings) -> set[str]:
        """Return those of the notes' ids for which there is something to do; the others are skipped."""
        found: set[str] = set()
        for answer in _notes.found(self._session, settings, ids):
            found.update(answer["missing"], answer["outdated"])
        self.counts["skipped"] += len(ids) - len(found)
        return found

    def add(self, params: dict) -> None:
        """Have a note stored, given as store's parameters; several go together."""
        self._ready.append(params)
        if len(self._ready) == TOGETHER:
            self._send()

    def _send(self) -> None:
        while len(self._waiting) >= IN_FLIGHT:
            self._receive()
        if not (notes := self._ready):
            return
        self._ready = []
        asked = {name: notes[0][name] for name in ("agent_id", "channel", "project_id") if name in notes[0]}
        if self._batch is not None:
            asked["batch"] = self._batch
        asked["notes"] = [{name: value for name, value in note.items() if name not in asked} for note in notes]
        request = self._connection.send("replace_notes", self._session.signed("replace_notes", asked))
        self._waiting[request] = notes

    def settle(self, interrupts: Interrupts) -> bool:
        """Take in the answers that come within the grace of a run that ends early; false where some did not come."""
        from ..wire.client import CallFailed

        interrupts.hurry()
        try:
            while self._waiting:
                self._receive()
        except (KeyboardInterrupt, CallFailed, exits.Stop):
            return False
        return True

    def counted(self) -> dict[str, int]:
        """Return what became of the commits; where messages were cut, of how many."""
        return {**self.counts, **{name: count for name, count in (("cut", self.cut), ("paused", self.paused)) if count}}

    def finish(self) -> None:
        self._send()
        while self._waiting:
            self._receive()
        self.close()

    def close(self) -> None:
        if self._shown is not None:
            self._shown.__exit__(None, None, None)
            self._shown = None

    def said(self) -> str:
        """Return what became of the commits, in words."""
        return f"{', '.join(f'{count:,} {name}' for name, count in self.counts.items())} of {self.total:,} commits" + (
            f"; {self.cut:,} messages are cut" if self.cut else ""
        )

    def _receive(self) -> None:
        request, response, code = self._connection.receive()
        notes = self._waiting.pop(request)
        failed = exits.status_of(response, code)
        if failed and code is not None and fields.ERRORS[code][1]:
            raise exits.Stop("git backfill: " + failure_line(_commit(notes[0]), response, code), failed)
        if failed:
            self._refused(f"{_commit(notes[0])} and what was sent with it", response, code, failed)
        persisted = response.get("persisted") is not False
        self.paused += 0 if persisted else len(notes)
        one = {"result": "rejected" if failed else "skipped"}
        for note, outcome in zip(
            notes, [one] * len(notes) if failed or not persisted else response["notes"], strict=True
        ):
            self._count(note, outcome)
        if self._shown is not None:
            self._shown({"done": sum(self.counts.values()), "total": self.total, "stage": "commits"})

    def _count(self, note: dict, outcome: dict) -> None:
        result = outcome["result"]
        if result == "rejected" and "reason" in outcome:
            self._refused(_commit(note), outcome, None, fields.EXIT_FAILED)
        self.counts[result] = self.counts.get(result, 0) + 1
        self.cut += result != "rejected" and (commits.cut_of(note) is not None or "cut" in outcome)

    def _refused(self, what: str, response: dict, code: str | None, status: int) -> None:
        self.status = self.status or status
        self._session.out.warn("cpersona " + failure_line(f"git backfill {what}", response, code))


def _commit(note: dict) -> str:
    return note["metadata"]["commit"][:12]


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
        run.begin()
        interrupts.attend(session.connection)
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
            known = run.settle(interrupts)
            run.close()
            lost = "" if known else f"; {run.waiting} more were under way, what became of them is not known"
            session.out.warn(
                f"cpersona git backfill: ended early: {'' if known else 'at least '}{run.said()}{lost}; run it again, "
                "what is noted already is skipped"
            )
            interrupts.check()  # git gets the Ctrl-C of a terminal too; that it ended is no failure of its own
            raise
