"""Which commands exist and the words that the first help screen has for each; ``commands/`` has a file for each word.

Drawing that screen and completing a word import no command. Imports nothing.
"""

TYPE_CHECKING = False  # as typing has it, which takes longer to load than a command takes to run
if TYPE_CHECKING:
    from .spec import Command

# name and one phrase; two entries share a line, and a word that shares another's place names that as its third. Names
# and phrase of a place have 35 characters at most, the phrase of one word alone 22. Two words are one entry.
GROUPS = (
    (
        "Write",
        (
            ("store", "keep a memory"),
            ("update", "change its text"),
            ("edit", "in your editor", "update"),
            ("delete", "remove rows"),
            ("lock", "protect rows"),
            ("unlock", "free them again", "lock"),
            ("episode", "archive, list, delete"),
            ("profile", "show or set"),
            ("undo", "take a write back"),
            ("batches", "the named runs", "undo"),
            ("history", "former text"),
            ("restore-memory", "bring one back", "history"),
        ),
    ),
    (
        "Ask",
        (
            ("recall", "find; the best is last"),
            ("explore", "look while you type"),
            ("get", "whole rows by ref"),
            ("list", "the newest rows"),
            ("context", "recall plus a dialogue"),
            ("reconstruct", "items with evidence"),
            ("traverse", "an entity's neighbours"),
            ("associate", "declare, retract, list"),
            ("exists", "yes or no, by words"),
            ("grep", "lines as written"),
        ),
    ),
    ("Tune", (("calibrate", "measure the thresholds"), ("precision", "strict to lenient"))),
    (
        "Move",
        (
            ("export", "write a JSONL file"),
            ("import", "read one"),
            ("backup", "the store as one file"),
            ("restore", "put one back"),
            ("merge", "one agent into another"),
            ("forget-agent", "erase an agent"),
        ),
    ),
    (
        "Keep up",
        (
            ("health", "check, and --fix"),
            ("reindex", "rebuild the indexes"),
            ("canary", "questions to watch"),
            ("stats", "a store in numbers"),
            ("doctor", "check the installation"),
            ("pause", "keep nothing for now"),
            ("resume", "keep again", "pause"),
        ),
    ),
    (
        "Operate",
        (
            ("daemon", "start, stop, status"),
            ("status", "short for daemon status", "daemon"),
            ("config", "show, set, edit"),
            ("call", "any method, raw JSON"),
            ("mcp", "tools for agents (MCP)"),
            ("git", "notes of commits"),
            ("help", "concepts, a page each"),
        ),
    ),
)
# What `cpersona GROUP --help` says about a command that has commands of its own.
FAMILIES = {
    "episode": "Summaries of whole sessions: archive one, list them, delete one.",
    "profile": "The one text that describes an agent: show it or set it.",
    "associate": "Entities, aliases and relations, exactly as declared; reconstruct and traverse read them.",
    "canary": "Saved questions with the row that must come back; they run by themselves and by `canary run`.",
    "precision": "How strict the gate is that a recalled row must pass.",
    "daemon": "The process that holds the database; commands start it when they need it.",
    "git": "One memory for each commit, from hooks and from history; nothing of it needs the network.",
    "config": "Every setting, its value and where it came from, and the file that sets them.",
}
# What a command with commands of its own does when none of them is named.
UNNAMED = {
    "episode": "list",
    "profile": "show",
    "associate": "list",
    "precision": "get",
    "canary": "list",
    "daemon": "status",
    "git": "status",
    "config": "show",
}
ENTRIES = {entry[0]: entry[1] for _, rows in GROUPS for entry in rows}
PLACE_OF = {entry[0]: entry[2] for _, rows in GROUPS for entry in rows if len(entry) == 3}


def module(name: str) -> str:
    """Return the name of the file in ``commands/`` that declares the commands of this first word."""
    # The one word of ours that Python keeps for itself cannot name a module.
    return "import_" if name == "import" else name.replace("-", "_")


def declared(name: str) -> "tuple[Command, ...]":
    """Return the declarations of one entry in the order of its module: a single command, or those of its group."""
    # Not importlib, which would be one more module to load.
    return __import__(f"cpersona_cli.commands.{module(name)}", fromlist=("COMMANDS",)).COMMANDS


def tree() -> "list[Command]":
    """Return every declared command, in the order of the catalogue."""
    return [command for name in ENTRIES for command in declared(name)]
