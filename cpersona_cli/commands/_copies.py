"""How many rows a copy of a store holds, in words.

Contract: issue "A tool to live in" (backup, restore); interface.md, "Exit codes".
"""

ROWS = ("memories", "episodes", "profiles")


def counted(told):
    return ", ".join(f"{told.get(name, 0)} {name}" for name in ROWS)
