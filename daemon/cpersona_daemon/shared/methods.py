"""Every method of the wire once: who may ask it, how long it may take, who answers it, and how it says no.

The daemon's dispatch and the client derive theirs from these rows: deadlines, idempotency keys, what is asked again
after a broken connection, what may be queued. It imports nothing but ``fields``: the client's hot path reads it too.

Contract: answer.shape, wire.requests, pause.answers.
"""

from .fields import DEFAULT_DEADLINE_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READ, WRITE, ADMIN = "read", "write", "admin"


class Method:
    """One row of the table.

    ``access``: what the access file must grant, READ, WRITE or ADMIN.
    ``family``: the file in ``rpc/handlers`` that answers it, '' for no method at all.
    ``unlimited``: no deadline but one that a request brings; such a method tells that it is alive.
    ``early``: it needs neither vectors nor embedder nor calibration, and is answered before these are open.
    ``tuned``: its answer follows from retrieval settings, so a client's own travel with it.
    ``control``: it concerns the daemon and no row: a client of another protocol may ask it, and where it changes
    something it carries no idempotency key and is not asked twice, which would end the next daemon as well.
    ``own_session``: a read that is answered for the session that asks, as every write is.
    ``waits``: a read is answered only after the writes that were queued before it; without, at once.
    ``refusal``: what stands beside `ok: false` when it fails, ``explains`` the key of the text.
    ``paused``: what it answers while persistence is paused; None where a pause does not concern it.
    ``touched``: the key under which it answers the number of the row it changed, and the prefix of that row's ref.
    ``listed``: the key under which it answers rows as they are stored.
    """

    __slots__ = (
        "name",
        "access",
        "family",
        "deadline_ms",
        "early",
        "tuned",
        "control",
        "own_session",
        "waits",
        "refusal",
        "explains",
        "paused",
        "touched",
        "listed",
    )

    def __init__(
        self,
        name: str,
        access: str,
        family: str,
        unlimited: bool = False,
        early: bool = False,
        tuned: bool = False,
        control: bool = False,
        own_session: bool = False,
        waits: bool = True,
        refusal: "dict[str, Any] | None" = None,
        explains: str = "error",
        paused: "dict[str, Any] | None" = None,
        touched: tuple[str, str] | None = None,
        listed: str = "",
    ) -> None:
        self.name, self.access, self.family = name, access, family
        self.deadline_ms = None if unlimited else DEFAULT_DEADLINE_MS
        self.early, self.tuned, self.control, self.waits = early, tuned, control, waits
        self.own_session = own_session or access != READ
        self.refusal, self.explains = refusal or {}, explains
        self.paused = paused and {**paused, **_NOT_PERSISTED}
        self.touched, self.listed = touched, listed

    @property
    def reads(self) -> bool:
        """Whether it changes nothing: its answer alone is worth something."""
        return self.access == READ

    @property
    def limited(self) -> bool:
        """Whether the default deadline applies."""
        return self.deadline_ms is not None

    @property
    def keyed(self) -> bool:
        """Whether a request carries an idempotency key."""
        return not (self.access == READ or self.control)

    @property
    def repeatable(self) -> bool:
        """Whether a client asks it again by itself after a connection that broke."""
        return self.deadline_ms is not None and not (self.control and self.access != READ)

    @property
    def queueable(self) -> bool:
        """Whether the spool may hold it for a daemon that cannot be reached."""
        return self.access == WRITE and self.deadline_ms is not None

    def failed(self, text: str) -> "dict[str, Any]":
        """Return the contract's answer of this method when it failed with this explanation.

        A denial, an unknown method and an unexpected exception have shapes of their own.
        """
        return {"ok": False, **self.refusal, self.explains: text} if self.family else {self.explains: text}


_NOT_PERSISTED = {"persisted": False, "dry_run": True, "reason": "persistence is paused"}

# The order is that of the manual.
_TABLE = (
    Method(
        "store",
        WRITE,
        "memories",
        refusal={"result": "rejected"},
        explains="reason",
        paused={"ok": True, "result": "skipped", "id": "no-persist", "embedded": False},
    ),
    Method("recall", READ, "recall", tuned=True, refusal={"messages": []}),
    Method("recall_with_context", READ, "recall", tuned=True, refusal={"messages": []}),
    Method("exists", READ, "existence"),
    Method("reconstruct", READ, "associations", tuned=True, refusal={"items": []}),
    Method("traverse", READ, "associations"),
    Method(
        "declare_associations",
        WRITE,
        "associations",
        paused={"ok": True, "result": "declared", "entities": [], "mentions": 0, "relations": [], "dropped": []},
    ),
    Method("list_associations", READ, "associations"),
    Method("get_contents", READ, "contents", early=True, tuned=True),
    Method("find_ids", READ, "contents", early=True),
    Method("scan_texts", READ, "contents", early=True),
    Method("find_notes", READ, "notes"),
    Method("replace_notes", WRITE, "notes", paused={"ok": True, "deleted": 0, "notes": []}),
    Method("update_memory", WRITE, "memories", paused={"ok": True, "updated_id": None}, touched=("updated_id", "mem")),
    Method("delete_memory", WRITE, "memories", paused={"ok": True, "deleted_id": None}, touched=("deleted_id", "mem")),
    Method("lock_memory", WRITE, "memories", paused={"ok": True, "locked_id": None}, touched=("locked_id", "mem")),
    Method(
        "unlock_memory", WRITE, "memories", paused={"ok": True, "unlocked_id": None}, touched=("unlocked_id", "mem")
    ),
    Method("row_history", READ, "past", early=True),
    Method("restore_row", WRITE, "past", paused={"ok": True, "ref": None}),
    Method("purge_rows", WRITE, "past", unlimited=True, paused={"ok": True, "purged": []}),
    Method("undo_last", WRITE, "past", unlimited=True, paused={"ok": True, "undone": None, "rows": 0, "refs": []}),
    Method("list_memories", READ, "memories", early=True, listed="memories"),
    Method("list_axes", READ, "axes", early=True),
    Method("store_stats", READ, "stats"),
    Method(
        "archive_episode",
        WRITE,
        "episodes",
        refusal={"episode_id": None},
        paused={"ok": True, "episode_id": None},
        touched=("episode_id", "ep"),
    ),
    Method("list_episodes", READ, "episodes", early=True, listed="episodes"),
    Method("delete_episode", WRITE, "episodes", paused={"ok": True, "deleted_id": None}, touched=("deleted_id", "ep")),
    Method("update_profile", WRITE, "profiles", paused={"ok": True, "profiles_updated": 0}),
    Method("get_profile", READ, "profiles", early=True),
    # A pause keeps conversations out of the store; what is measured about the rows already there is none of that.
    Method("calibrate_threshold", WRITE, "calibration", unlimited=True, tuned=True),
    Method("set_recall_precision", WRITE, "calibration", unlimited=True, tuned=True),
    Method("get_recall_precision", READ, "calibration"),
    Method("add_canary", WRITE, "canaries", paused={"ok": True, "id": None}),
    Method("list_canaries", READ, "canaries"),
    # Running only looks, and keeping how it went concerns no conversation, so a pause leaves it alone.
    Method("run_canaries", WRITE, "canaries", unlimited=True),
    Method("remove_canary", WRITE, "canaries", paused={"ok": True, "removed_id": None}),
    Method("export_memories", ADMIN, "transfer", unlimited=True),
    Method(
        "import_memories",
        ADMIN,
        "transfer",
        unlimited=True,
        paused={
            "ok": True,
            "imported_memories": 0,
            "skipped_memories": 0,
            "imported_episodes": 0,
            "skipped_episodes": 0,
            "profile_updated": False,
        },
    ),
    Method("backup_database", ADMIN, "backup", unlimited=True),
    Method(
        "merge_memories",
        WRITE,
        "transfer",
        unlimited=True,
        paused={
            "ok": True,
            "merged_memories": 0,
            "skipped_memories": 0,
            "merged_episodes": 0,
            "skipped_episodes": 0,
            "profile_copied": False,
            "skipped_profile": False,
        },
    ),
    Method(
        "delete_agent_data",
        WRITE,
        "transfer",
        unlimited=True,
        paused={"ok": True, "deleted_memories": 0, "deleted_profiles": 0, "deleted_episodes": 0},
    ),
    Method(
        "undo_batch",
        WRITE,
        "transfer",
        unlimited=True,
        paused={"ok": True, "deleted_memories": 0, "deleted_episodes": 0, "kept_locked": 0},
    ),
    Method("list_batches", READ, "transfer"),
    # A pause keeps new content out of the store; repairing what is there adds none.
    Method("check_health", WRITE, "health", unlimited=True),
    Method("reindex", ADMIN, "health", unlimited=True),
    Method("pause_persistence", WRITE, "pausing", early=True),
    Method("resume_persistence", WRITE, "pausing", early=True),
    Method("persistence_status", READ, "pausing", early=True, own_session=True),
    Method("daemon_status", READ, "daemon", control=True, waits=False),
    Method("backlog_status", READ, "daemon", waits=False),
    Method("run_status", READ, "daemon", early=True, waits=False),
    Method("daemon_stop", ADMIN, "daemon", early=True, control=True),
)
METHODS = {method.name: method for method in _TABLE}
UNKNOWN = Method("unknown", READ, "")  # what is asked for under any other name: soon answered


def of(name: str) -> Method:
    """Return a method's row, UNKNOWN where there is no such method."""
    return METHODS.get(name, UNKNOWN)
