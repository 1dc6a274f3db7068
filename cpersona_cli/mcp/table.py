"""The tools once: a row for each method that is one, with what a model must know of it, and what it answers.

Names, parameters and who may ask them are those of ``shared.methods`` and of the Structs behind ``shared.params``; a
row adds words. Descriptions have two lines: what it does, and where it is easy to guess wrong.

Contract: tools.rows, tools.schemas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
MAP: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": TEXT}
WHOLES: Schema = {"type": "array", "items": WHOLE}
CHANGED: Schema = {"type": ["integer", "null"]}  # null while persistence is paused


def rows(**keys: Schema) -> Schema:
    """Return the schema of a list of objects with these keys."""
    return {"type": "array", "items": {"type": "object", "properties": keys}}


@dataclass(frozen=True, slots=True)
class Tool:
    """One row.

    ``answers``: the keys of a successful answer; more may come. ``always``: those that are never absent.
    ``usual``: whether it is offered without being asked for all. ``required``: what the method would do without, and a
    model should not. ``notes``: words on parameters that are this tool's own. ``unlisted``: parameters that are taken
    and not told of. ``writes``: by which parameters alone a method that may write does so.
    ``replaces``: it changes or removes what is there. ``repeats``: a second call with the same arguments changes
    nothing more.
    ``beyond``: parameters by which it reaches past a project, closed where one is fixed.
    ``of_agent``: what it reaches belongs to an agent as a whole, in no project, so that a fixed project keeps it.
    """

    name: str
    says: str
    answers: dict[str, Schema]
    always: tuple[str, ...]
    usual: bool = False
    required: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    replaces: bool = False
    repeats: bool = True
    of_agent: bool = False


# Words on the parameters that many tools have.
NOTES = {
    "project_id": "X means X and the global pool, '' the pool alone; left out: all",
    "source_id": "user:1 is exact, user: a prefix",
    "since": "stored from then on, ISO",
    "until": "stored until then, ISO",
    "ref": "mem:N or ep:N",
}

_FOR_PROGRAMS = (
    "session_key",
    "no_wait",
    "trace",
    "absolute",
    "why_not",
    "precision",
    "uncounted",
    "placed",
    "as_of",
    "fail_if_cut",
    "batch",
    "cut",
)
_SCORE = {"type": "object", "properties": {"signal": TEXT, "score": NUMBER, "cosine": NUMBER}}
_RECALLED = rows(
    ref=TEXT,
    content=TEXT,
    content_truncated=FLAG,
    content_len=WHOLE,
    timestamp=TEXT,
    id=TEXT,
    source=MAP,
    match_reason=_SCORE,
)
_LINKED = {"entities": rows(id=WHOLE, name=TEXT), "relations": WHOLES}

TABLE = (
    Tool(
        "store",
        "Keep one memory. result skipped (same text or same id) is success, nothing to repair.\n"
        "No upsert: the same id with other text stays as it was; change a row with update_memory.",
        {"ok": FLAG, "result": TEXT, "id": {"type": ["integer", "string"]}, "embedded": FLAG, "reason": TEXT},
        ("result",),
        usual=True,
        required=("content",),
        notes={
            "content": "over 16,000 characters are cut, and said",
            "id": "your own key",
            "source": "such as {type: User, id, name}",
            "timestamp": "when it was said, ISO; else now",
            "project_id": "left out: the global pool",
            "associations": "as declare_associations takes them",
            "lock": "keeps it from edits, not higher in rank",
        },
        unlisted=(*_FOR_PROGRAMS, "message", "on_conflict", "check_secrets"),
    ),
    Tool(
        "recall",
        "Find memories by meaning and words. THE LAST ROW IS THE BEST; no rows is an honest answer.\n"
        "Texts are previews: get_contents(refs) has them whole. A score orders one answer only.",
        {"messages": _RECALLED, "absent": TEXTS, "advisory": MAP},
        ("messages",),
        usual=True,
        required=("query",),
        notes={
            "limit": "10 unless said",
            "exclude_contents": "texts you already have",
            "full_content": "whole texts, 200,000 characters in all",
            "deep": "lower gate: more, weaker rows",
        },
        unlisted=_FOR_PROGRAMS,
    ),
    Tool(
        "recall_with_context",
        "recall merged with a conversation that you pass in, without what it says already.\n"
        "Order is BY TIME, oldest first, not by score; undated entries come before all others.",
        {"messages": _RECALLED, "absent": TEXTS, "advisory": MAP},
        ("messages",),
        usual=True,
        required=("query",),
        notes={"external_context": "[{role, content, timestamp}]"},
        unlisted=(*_FOR_PROGRAMS, "exclude_contents", "since", "until"),
    ),
    Tool(
        "get_contents",
        "Whole rows by ref (mem:N, ep:N), 20 at most, in the order asked.\n"
        "What is unknown or another agent's is named in missing, and is no error.",
        {"items": rows(ref=TEXT, content=TEXT, timestamp=TEXT, source=MAP), "missing": TEXTS, "count": WHOLE},
        ("items", "missing"),
        usual=True,
        required=("agent_id", "refs"),
    ),
    Tool(
        "update_memory",
        "Replace the text of one memory; it is embedded anew.\n"
        "memory_id is the N of mem:N. Locked rows and a text that another row has are refused.",
        {"ok": FLAG, "updated_id": CHANGED},
        ("ok",),
        usual=True,
        unlisted=(*_FOR_PROGRAMS, "if_content"),
        replaces=True,
    ),
    Tool(
        "delete_memory",
        "Delete one memory; it is kept for a while.\nmemory_id is the N of mem:N. Locked rows are refused.",
        {"ok": FLAG, "deleted_id": CHANGED},
        ("ok",),
        usual=True,
        unlisted=_FOR_PROGRAMS,
        replaces=True,
    ),
    Tool(
        "row_history",
        "What a memory or episode was before each change and deletion, newest first, for 30 days unless set.\n"
        "n is what restore_row takes as version; an entry without n is a return of a row that was gone.",
        {
            "ref": TEXT,
            "now": {"type": ["object", "null"]},
            "entries": rows(n=WHOLE, at=TEXT, done=TEXT, content=TEXT, created_at=TEXT),
            "count": WHOLE,
            "more": FLAG,
            "days": NUMBER,
        },
        ("ref", "now", "entries"),
        required=("agent_id", "ref"),
        unlisted=_FOR_PROGRAMS,
    ),
    Tool(
        "restore_row",
        "Make a memory or episode what it was: version 1 is before the latest change or deletion.\n"
        "Locked rows are refused, and a row whose text or key another one has by now.",
        {"ok": FLAG, "ref": {"type": ["string", "null"]}, "result": TEXT},
        ("ok",),
        required=("ref",),
        notes={"version": "the n of row_history"},
        unlisted=_FOR_PROGRAMS,
        replaces=True,
        repeats=False,
    ),
    Tool(
        "purge_rows",
        "Delete rows, or what is kept of deleted ones, for good: nothing brings them back.\n"
        "Locked rows stay and are named in kept. Writes wait while the database is written anew.",
        {"ok": FLAG, "purged": TEXTS, "kept": rows(ref=TEXT, reason=TEXT)},
        ("ok", "purged"),
        required=("agent_id", "refs"),
        unlisted=_FOR_PROGRAMS,
        replaces=True,
    ),
    Tool(
        "undo_last",
        "Take the agent's last write back: delete what was stored, or make rows what they were.\n"
        "Asked twice it takes its own doing back; a batch is undone with undo_batch. dry_run says what it would do.",
        {
            "ok": FLAG,
            "undone": {"type": ["string", "null"]},
            "at": TEXT,
            "rows": WHOLE,
            "refs": TEXTS,
            "results": TEXTS,
            "kept": rows(ref=TEXT, reason=TEXT),
        },
        ("ok", "undone", "refs"),
        required=("agent_id",),
        unlisted=_FOR_PROGRAMS,
        replaces=True,
        repeats=False,
    ),
    Tool(
        "lock_memory",
        "Protect one memory from edits and deletion.\nIt does not rank higher: a locked row can still lose a recall.",
        {"ok": FLAG, "locked_id": CHANGED},
        ("ok",),
        usual=True,
        unlisted=_FOR_PROGRAMS,
    ),
    Tool(
        "list_memories",
        "The newest memories first, with whole texts: ask for few.\n"
        "A list, not a search. Without agent_id those of every agent.",
        {
            "memories": rows(
                ref=TEXT, content=TEXT, created_at=TEXT, timestamp=TEXT, msg_id=TEXT, project_id=TEXT, locked=FLAG
            ),
            "count": WHOLE,
        },
        ("memories",),
        usual=True,
        notes={"limit": "100 unless said, 500 at most"},
        unlisted=(*_FOR_PROGRAMS, "locked"),
    ),
    Tool(
        "archive_episode",
        "Keep the summary of a whole session as an episode, which recall finds as ep:N.\n"
        "No dedup: twice archived is twice there. Start and end come from the times in history.",
        {"ok": FLAG, "episode_id": CHANGED},
        ("ok",),
        usual=True,
        required=("summary",),
        notes={"history": "[{timestamp}], for its start and end", "project_id": "left out: the global pool"},
        unlisted=_FOR_PROGRAMS,
        repeats=False,
    ),
    Tool(
        "update_profile",
        "Replace the one text that describes the agent (2,000 characters).\n"
        "The old one is gone. No recall promises to show it; what must always be known belongs into your prompt.",
        {"ok": FLAG, "profiles_updated": WHOLE},
        ("ok",),
        usual=True,
        required=("profile",),
        unlisted=_FOR_PROGRAMS,
        replaces=True,
        of_agent=True,
    ),
    Tool(
        "declare_associations",
        "Declare entities, other names of theirs and relations, or retract them; nothing is ever inferred.\n"
        "A bad item is named in dropped and the rest stands. Only reconstruct and traverse read them.",
        {"ok": FLAG, "result": TEXT, **_LINKED, "mentions": WHOLE, "dropped": rows(reason=TEXT)},
        ("ok",),
        usual=True,
        notes={
            "associations": "entities [{name, aliases}], relations [{subject, predicate, object}] of names or refs",
            "anchor_ref": "the row that says so",
            "retract": "{relations: [id], mentions: [{entity, ref}]}",
            "project_id": "left out: the global pool",
        },
        unlisted=_FOR_PROGRAMS,
        beyond=("retract",),  # a relation's number knows no project
        replaces=True,
    ),
    Tool(
        "traverse",
        "An entity's neighbours along declared relations, with the rows that mention them.\n"
        "reason no_such_entity: nobody declared that name, which says nothing about the memories.",
        {
            "entities": rows(id=WHOLE, name=TEXT, hops=WHOLE, mentions=TEXTS),
            "relations": rows(id=WHOLE, subject=WHOLE, predicate=TEXT, object=WHOLE),
            "reason": TEXT,
        },
        ("entities", "relations"),
        usual=True,
        notes={"max_hops": "1 unless said, 5 at most", "limit": "20 unless said"},
    ),
    Tool(
        "reconstruct",
        "Answers to a question as few items, BEST FIRST, each with its evidence and quotes.\n"
        "shortfall_reason no_relevant_evidence means that nothing was found. supersedes: the newer version.",
        {
            "items": rows(content=TEXT, head_ref=TEXT, claims=rows(ref=TEXT, as_of=TEXT, why=TEXT), excerpts=rows()),
            "returned_count": WHOLE,
            "shortfall_reason": TEXT,
        },
        ("items",),
        usual=True,
        required=("query",),
        notes={"count": "items, 10 at most", "budget": "characters of quotes"},
        unlisted=_FOR_PROGRAMS,
    ),
    Tool(
        "check_health",
        "Whether the store is well: status healthy, degraded or unhealthy, with what is wrong.\n"
        "It changes nothing without fix. An unhealthy store is an answer, not a failure of the call.",
        {
            "status": TEXT,
            "total_memories": WHOLE,
            "issues": rows(check=TEXT, severity=TEXT),
            "fixed": {"type": "array"},
        },
        ("status", "issues"),
        usual=True,
        notes={"checks": "names of checks; all unless said", "deep": "read every page"},
        unlisted=_FOR_PROGRAMS,
        writes=("fix",),
        of_agent=True,
    ),
    Tool(
        "exists",
        "Whether a row holds all of these words, or the text itself.\n"
        "Words alone, no meaning: what to ask before saying that there is no such record.",
        {"exists": FLAG, "ref": TEXT, "match": TEXT},
        ("exists",),
    ),
    Tool(
        "list_associations",
        "What was declared: entities and relations with their ids.\nGo on with after and after_relation.",
        {"entities": rows(id=WHOLE, name=TEXT), "relations": rows(id=WHOLE, predicate=TEXT)},
        ("entities", "relations"),
    ),
    Tool(
        "unlock_memory",
        "Let a locked memory be edited and deleted again.\nmemory_id is the N of mem:N.",
        {"ok": FLAG, "unlocked_id": CHANGED},
        ("ok",),
    ),
    Tool(
        "list_axes",
        "The projects and channels of an agent.\nWithout agent_id the agents.",
        {"projects": TEXTS, "channels": TEXTS, "agents": TEXTS},
        (),
    ),
    Tool(
        "store_stats",
        "Memories a day, by agent, project, channel and source, lengths and recalls.\nSources, lengths and recalls are "
        "those of the newest 10,000.",
        {"memories": WHOLE, "episodes": WHOLE, "days": rows(day=TEXT, memories=WHOLE), "looked_at": WHOLE},
        ("memories", "episodes", "days"),
        of_agent=True,
    ),
    Tool(
        "list_episodes",
        "The newest episodes first.\nA list, not a search.",
        {"episodes": rows(ref=TEXT, summary=TEXT), "count": WHOLE},
        ("episodes",),
        notes={"limit": "50 unless said, 200 at most"},
    ),
    Tool(
        "delete_episode",
        "Delete one episode for good.\nepisode_id is the N of ep:N.",
        {"ok": FLAG, "deleted_id": CHANGED},
        ("ok",),
        replaces=True,
    ),
    Tool(
        "get_profile",
        "The text that describes the agent.\nEmpty where none was set.",
        {"profile": TEXT},
        ("profile",),
        required=("agent_id",),
        of_agent=True,
    ),
    Tool(
        "calibrate_threshold",
        "Measure the agent's thresholds anew from its own rows.\nNeeds 10 embedded memories; dry_run only says.",
        {"ok": FLAG, "old_threshold": NUMBER, "new_threshold": NUMBER, "gates": MAP},
        ("ok",),
        unlisted=("session_key", "sample_size", "percentile", "z_factor"),
        replaces=True,
        repeats=False,
        of_agent=True,
    ),
    Tool(
        "set_recall_precision",
        "How strict the gate is: strict, balanced or lenient; '' clears it.\nIt is measured anew at once.",
        {"ok": FLAG, "precision": TEXT, "beta": NUMBER, "cleared": FLAG},
        ("ok",),
        replaces=True,
        of_agent=True,
    ),
    Tool(
        "get_recall_precision",
        "How strict the gate is.\nbalanced unless set.",
        {"precision": TEXT, "beta": NUMBER, "overridden": FLAG},
        ("precision",),
        of_agent=True,
    ),
    Tool(
        "add_canary",
        "Save a question with the row that must come back.\nIt runs once now, and by itself from then on.",
        {"ok": FLAG, "id": CHANGED, "state": TEXT, "rank": WHOLE},
        ("ok",),
        notes={"ref": "mem:N or ep:N"},
    ),
    Tool(
        "list_canaries",
        "The saved questions and how they fared last.\nstate lost: its row no longer comes back.",
        {"canaries": rows(id=WHOLE, query=TEXT, ref=TEXT, state=TEXT), "count": WHOLE},
        ("canaries",),
    ),
    Tool(
        "run_canaries",
        "Ask the saved questions now.\nok says that they ran; lost counts those whose row did not come back.",
        {"ok": FLAG, "total": WHOLE, "found": WHOLE, "lost": WHOLE},
        ("ok",),
    ),
    Tool(
        "remove_canary",
        "Forget a saved question.\nIts row stays.",
        {"ok": FLAG, "removed_id": CHANGED},
        ("ok",),
        replaces=True,
    ),
    Tool(
        "export_memories",
        "Write memories to a JSON lines file; give an absolute path.\nWithout agent_id those of every agent.",
        {"ok": FLAG, "path": TEXT, "memories": WHOLE, "episodes": WHOLE},
        ("ok",),
    ),
    Tool(
        "import_memories",
        "Read an export; give an absolute path.\nWhat is there already is skipped; dry_run only counts.",
        {"ok": FLAG, "imported_memories": WHOLE, "skipped_memories": WHOLE, "errors": {"type": "array"}},
        ("ok",),
        unlisted=("session_key", "batch", "fail_if_cut"),
    ),
    Tool(
        "backup_database",
        "The whole store as one verified file; give an absolute path.\nRestoring is done outside, without a daemon.",
        {"ok": FLAG, "path": TEXT, "bytes": WHOLE, "memories": WHOLE},
        ("ok",),
        repeats=False,
    ),
    Tool(
        "merge_memories",
        "Copy one agent's rows to another, or move them.\nmove deletes what it copied; dry_run only counts.",
        {"ok": FLAG, "merged_memories": WHOLE, "skipped_memories": WHOLE},
        ("ok",),
        replaces=True,
    ),
    Tool(
        "delete_agent_data",
        "Erase everything of an agent, locked rows too.\nThere is no way back.",
        {"ok": FLAG, "deleted_memories": WHOLE, "deleted_episodes": WHOLE},
        ("ok",),
        replaces=True,
    ),
    Tool(
        "list_batches",
        "The named runs that have rows, the latest first, with how many and when the first and last was stored.\n"
        "undo_batch deletes what one of them wrote.",
        {
            "batches": rows(batch=TEXT, memories=WHOLE, episodes=WHOLE, locked=WHOLE, first=TEXT, last=TEXT),
            "count": WHOLE,
            "more": FLAG,
        },
        ("batches",),
    ),
    Tool(
        "undo_batch",
        "Delete what was stored under a batch's name.\nLocked rows stay; dry_run only counts.",
        {"ok": FLAG, "deleted_memories": WHOLE, "deleted_episodes": WHOLE, "kept_locked": WHOLE},
        ("ok",),
        replaces=True,
    ),
    Tool(
        "reindex",
        "Build every index anew from the rows.\nIt takes a while, and recalls go on meanwhile.",
        {"ok": FLAG, "memories": WHOLE, "episodes": WHOLE},
        ("ok",),
    ),
    Tool(
        "pause_persistence",
        "Keep nothing for a while: writes answer as if done, with persisted false.\n"
        "Without session_key it holds for everyone who has none.",
        {"paused": FLAG, "expires_at": TEXT, "scope": TEXT},
        ("paused",),
        repeats=False,
    ),
    Tool(
        "resume_persistence",
        "Keep again.\nWhat was written meanwhile is not made up for.",
        {"paused": FLAG, "was_active": FLAG},
        ("paused",),
    ),
    Tool(
        "persistence_status",
        "Whether writes are kept now.\nOf the session_key that is given.",
        {"paused": FLAG, "ttl_remaining_seconds": CHANGED},
        ("paused",),
    ),
    Tool(
        "daemon_status",
        "How the process that holds the store is.\nFor operators: versions, load, indexes, warnings.",
        {"version": TEXT, "rows": MAP},
        ("version",),
    ),
)
BY_NAME = {tool.name: tool for tool in TABLE}
# Methods that no model should have, and why.
NO_TOOLS = {
    "find_ids": "which refs keys of the caller's have; the command line's --id asks it, and recall and list tell both",
    "scan_texts": "pages of every text, for `grep`; recall and exists find words",
    "find_notes": "which notes of a git history or a directory are there; `git` and `import --markdown` ask it",
    "replace_notes": "what a changed git history or directory does to its notes; hooks and `import --markdown` call it",
    "backlog_status": "what `--wait` asks; daemon_status tells it",
    "run_status": "how far a request came whose caller left; the command line asks it after Ctrl-C",
    "daemon_stop": "it ends the process under every other client",
}
