"""Which commands exist, where each is declared and the words that the first help screen has for it.

Drawing that screen and completing a word import no family module. Imports nothing.
"""

# name, module, one short phrase (it must fit half a line); commands of two words are one entry here
GROUPS = (
    (
        "Write",
        (
            ("store", "storing", "keep a memory"),
            ("update", "rows", "change its text"),
            ("delete", "rows", "remove rows"),
            ("lock", "rows", "protect rows"),
            ("unlock", "rows", "free them again"),
            ("episode", "episodes", "archive, list, delete"),
            ("profile", "profiles", "show or set"),
            ("undo", "undoing", "take a batch back"),
        ),
    ),
    (
        "Ask",
        (
            ("recall", "recalling", "find; the best is last"),
            ("get", "rows", "whole rows by ref"),
            ("list", "rows", "the newest rows"),
            ("context", "recalling", "recall plus a dialogue"),
            ("reconstruct", "associations", "items with evidence"),
            ("traverse", "associations", "an entity's neighbours"),
            ("associate", "associations", "declare, retract, list"),
            ("exists", "existing", "yes or no, by words"),
        ),
    ),
    ("Tune", (("calibrate", "tuning", "measure the thresholds"), ("precision", "tuning", "strict to lenient"))),
    (
        "Move",
        (
            ("export", "transfer", "write a JSONL file"),
            ("import", "transfer", "read one"),
            ("backup", "backups", "the store as one file"),
            ("restore", "backups", "put one back"),
            ("merge", "transfer", "one agent into another"),
            ("forget-agent", "transfer", "erase an agent"),
        ),
    ),
    (
        "Keep up",
        (
            ("health", "upkeep", "check, and --fix"),
            ("reindex", "upkeep", "rebuild the indexes"),
            ("canary", "canaries", "questions to watch"),
            ("doctor", "doctoring", "check the installation"),
            ("pause", "upkeep", "keep nothing for now"),
            ("resume", "upkeep", "keep again"),
        ),
    ),
    (
        "Operate",
        (
            ("daemon", "daemons", "start, stop, status"),
            ("config", "configuration", "values and origins"),
            ("call", "calling", "any method, raw JSON"),
            ("git", "committing", "notes of commits"),
            ("help", "topics", "the concepts, a page each"),
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
    "config": "Every setting, its value and where it came from.",
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
ENTRIES = {name: (module, phrase) for _, rows in GROUPS for name, module, phrase in rows}


def declared(name):
    """Return the declarations of one entry in the order of its module: a single command, or those of its group."""
    # Not importlib, which would be one more module to load.
    module = __import__(f"{__package__}.{ENTRIES[name][0]}", fromlist=("COMMANDS",))
    return [command for command in module.COMMANDS if command.path[0] == name]
