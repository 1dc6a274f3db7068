"""Which commands exist, where each is declared and the words that the first help screen has for it.

Drawing that screen and completing a word import no family module. Imports nothing.
"""

# name, module, one short phrase (it must fit half a line); commands of two words are one entry here
GROUPS = (
    (
        "Write",
        (
            ("store", "store", "keep a memory"),
            ("update", "get", "change its text"),
            ("delete", "get", "remove rows"),
            ("lock", "get", "protect rows"),
            ("unlock", "get", "free them again"),
            ("episode", "episode", "archive, list, delete"),
            ("profile", "profile", "show or set"),
            ("undo", "undo", "take a batch back"),
        ),
    ),
    (
        "Ask",
        (
            ("recall", "recall", "find; the best is last"),
            ("get", "get", "whole rows by ref"),
            ("list", "get", "the newest rows"),
            ("context", "recall", "recall plus a dialogue"),
            ("reconstruct", "associate", "items with evidence"),
            ("traverse", "associate", "an entity's neighbours"),
            ("associate", "associate", "declare, retract, list"),
            ("exists", "exists", "yes or no, by words"),
        ),
    ),
    ("Tune", (("calibrate", "calibrate", "measure the thresholds"), ("precision", "calibrate", "strict to lenient"))),
    (
        "Move",
        (
            ("export", "import_", "write a JSONL file"),
            ("import", "import_", "read one"),
            ("backup", "restore", "the store as one file"),
            ("restore", "restore", "put one back"),
            ("merge", "import_", "one agent into another"),
            ("forget-agent", "import_", "erase an agent"),
        ),
    ),
    (
        "Keep up",
        (
            ("health", "health", "check, and --fix"),
            ("reindex", "health", "rebuild the indexes"),
            ("canary", "canary", "questions to watch"),
            ("doctor", "doctor", "check the installation"),
            ("pause", "health", "keep nothing for now"),
            ("resume", "health", "keep again"),
        ),
    ),
    (
        "Operate",
        (
            ("daemon", "daemon", "start, stop, status"),
            ("config", "config", "values and origins"),
            ("call", "call", "any method, raw JSON"),
            ("git", "git", "notes of commits"),
            ("help", "help", "the concepts, a page each"),
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
    module = __import__(f"cpersona_cli.commands.{ENTRIES[name][0]}", fromlist=("COMMANDS",))
    return [command for command in module.COMMANDS if command.path[0] == name]
